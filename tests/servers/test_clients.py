"""The texts that people paste into their clients."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scrubjay.clients.catalogue import CLIENTS, USER
from scrubjay.clients.install import find_wanted
from scrubjay.clients.launch import command, home_arguments
from scrubjay.servers.http import connect_texts
from scrubjay.servers.stdio.options import parse
from scrubjay.settings import data_folder, load
from tests.clients.conftest import call, environment, home, place

__all__ = ["call", "environment", "home", "place"]

ROOT = Path(__file__).parents[2]
URL = "http://127.0.0.1:8377/mcp"


def test_a_database_servers_password_is_not_announced(tmp_path):
    settings = load({}, home=str(tmp_path), store="postgresql://jay:hunter2@db/memories")

    text = connect_texts.announcement(("127.0.0.1", 8377), settings)

    assert "hunter2" not in text
    assert "scrubjay install --url http://127.0.0.1:8377/mcp" in text
    assert " mcp --dialect" not in text, "a client that starts its own server would need the address with the password"


def test_the_announcement_says_where_it_listens_and_where_memories_lie(tmp_path):
    text = connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)))

    first, second, *_ = text.splitlines()
    assert first.endswith(" http://127.0.0.1:8377")
    assert str(tmp_path / "memories.db") in second


def test_the_address_of_the_page_and_the_way_in_come_before_how_to_connect(tmp_path):
    text = connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)), sign_in="/sign-in/x")

    order = ("browser: http://127.0.0.1:8377", "/sign-in/x", " install", "claude mcp add", " config CLIENT", "Stop")
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_an_ipv6_address_is_written_as_a_url(tmp_path):
    assert "--url http://[::1]:8377/mcp" in connect_texts.announcement(("::1", 8377), load({}, home=str(tmp_path)))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_starts_its_own_server_starts_one_that_understands(client, call):
    entry = call("config", client, "--json").json["entry"]
    program, *args = entry["command"] if client == "opencode" else [entry["command"], *entry["args"]]

    assert Path(program).is_absolute(), "clients inherit no shell's search path"
    assert Path(program).name == "scrubjay"
    assert args[0] == "mcp"
    assert args[1:3] == ["--dialect", "scrubjay"], "written out: the doctor warns of an entry without it"
    assert ("--space" in args) == CLIENTS[client].codes
    assert parse(args[1:]).dialects == ["scrubjay"]


def test_where_a_key_is_needed_the_entry_over_http_has_a_place_for_it(tmp_path):
    settings = load({}, home=str(tmp_path), store="postgresql://db/memories")
    text = connect_texts.announcement(("127.0.0.1", 8377), settings, sign_in="/sign-in/x")

    assert "scrubjay keys create" in text
    assert '--header "X-API-Key: YOUR_KEY"' in text


def test_where_no_key_is_needed_none_is_spoken_of(tmp_path):
    assert "KEY" not in connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)))


def test_claude_code_is_one_command():
    usual = load({}, home=str(data_folder({})))
    assert connect_texts.claude_code_stdio(usual) == (
        f"claude mcp add scrubjay -- {connect_texts.quote(command())} mcp --dialect scrubjay --space auto"
    )
    assert connect_texts.claude_code_http(URL) == f"claude mcp add --transport http scrubjay {URL}"


BY_HAND = [
    "README.md",
    "docs/tutorial/connect-a-client.md",
    "src/scrubjay/cli/main.py",
    "src/scrubjay/cli/commands/mcp.py",
    "src/scrubjay/servers/stdio/options.py",
]


@pytest.mark.parametrize("page", BY_HAND)
def test_what_documents_say_by_hand_is_what_install_writes(page):
    text = (ROOT / page).read_text("utf-8")
    lines = re.findall(r"^ *claude mcp add scrubjay -- .*scrubjay (mcp .*)$", text, re.MULTILINE)
    lists = [" ".join(json.loads(found)) for found in re.findall(r'"args": (\[.*\])', text)]
    want = find_wanted(CLIENTS["cursor"], load({}, home=str(data_folder({}))), scope=USER, folder=ROOT, space=None)

    assert lines
    assert {*lines, *lists} == {" ".join(want.arguments)}


def test_plugin_bundle_and_registry_name_the_same_dialect():
    plugin = json.loads((ROOT / "src/scrubjay/clients/plugin/.mcp.json").read_text())["mcpServers"]["scrubjay"]["args"]
    bundle = json.loads((ROOT / "packaging/manifest.json").read_text())["server"]["mcp_config"]["args"]
    registry = json.loads((ROOT / "server.json").read_text())["packages"][0]["packageArguments"]

    assert plugin[1:] == ["mcp", "--dialect", "scrubjay", "--space", "auto"]
    assert bundle[-5:-2] == ["mcp", "--dialect", "scrubjay"]
    assert [(one.get("name"), one["value"]) for one in registry] == [(None, "mcp"), ("--dialect", "scrubjay")]


def test_a_home_of_ones_own_is_passed_on_and_the_default_is_not(tmp_path):
    elsewhere, usual = load({}, home=str(tmp_path / "my memories")), load({}, home=str(data_folder({})))

    assert home_arguments(usual) == []
    assert parse(home_arguments(elsewhere)).home == str(tmp_path / "my memories")
    assert f'--home "{tmp_path / "my memories"}"' in connect_texts.claude_code_stdio(elsewhere)


def test_the_announcement_names_install_first_and_has_one_entry(tmp_path):
    settings = load({}, home=str(tmp_path))
    text = connect_texts.announcement(("127.0.0.1", 8377), settings)

    assert text.count("claude mcp add") == 1
    assert text.index(f"install --home {tmp_path}") < text.index(connect_texts.claude_code_stdio(settings))
    assert f"config CLIENT --home {tmp_path}" in text
    assert "mcpServers" not in text


def test_no_text_names_a_path_of_this_machine():
    usual = load({}, home=str(data_folder({})))

    assert str(Path.home()) not in connect_texts.claude_code_stdio(usual)
