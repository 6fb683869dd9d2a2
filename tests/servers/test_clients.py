"""The texts that people paste into their clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrubjay.clients.launch import command, home_arguments
from scrubjay.servers.http import connect_texts
from scrubjay.servers.stdio.options import parse
from scrubjay.settings import data_folder, load

URL = "http://127.0.0.1:8377/mcp"


def test_a_database_servers_password_is_not_announced(tmp_path):
    settings = load({}, home=str(tmp_path), store="postgresql://jay:hunter2@db/memories")

    text = connect_texts.announcement(("127.0.0.1", 8377), settings)

    assert "hunter2" not in text
    assert "start its own server" not in text


def test_the_announcement_says_where_it_listens_and_where_memories_lie(tmp_path):
    text = connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)))

    first, second, *_ = text.splitlines()
    assert first.endswith(" http://127.0.0.1:8377")
    assert str(tmp_path / "memories.db") in second


def test_the_address_of_the_page_and_the_way_in_come_before_how_to_connect(tmp_path):
    text = connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)), sign_in="/sign-in/x")

    order = ("browser: http://127.0.0.1:8377", "/sign-in/x", "Connect over HTTP", "Stop")
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_an_ipv6_address_is_written_as_a_url(tmp_path):
    assert "http://[::1]:8377/mcp" in connect_texts.announcement(("::1", 8377), load({}, home=str(tmp_path)))


@pytest.mark.parametrize("client", ["claude-desktop", "cursor", "vscode"])
def test_a_client_that_starts_its_own_server_starts_one_that_understands(client):
    [table] = json.loads(connect_texts.stdio(client, load({}))).values()
    server = table["scrubjay"]

    assert Path(server["command"]).is_absolute(), "clients inherit no shell's search path"
    assert Path(server["command"]).name == "scrubjay"
    assert server["args"][0] == "mcp"
    assert server["args"][1:3] == ["--dialect", "scrubjay"], "written out: the doctor warns of an entry without it"
    assert parse(server["args"][1:]).dialects == ["scrubjay"]


@pytest.mark.parametrize("text", [connect_texts.mcp_servers_http(URL), connect_texts.vscode_http(URL)])
def test_a_client_over_http_is_given_the_address(text):
    [table] = json.loads(text).values()

    assert table["scrubjay"] == {"type": "http", "url": URL}


def test_where_a_key_is_needed_every_text_over_http_has_a_place_for_it(tmp_path):
    text = connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)), sign_in="/sign-in/x")

    over_http = text[text.index("Connect over HTTP") : text.index("Or let the client")]
    assert "scrubjay keys create" in over_http
    assert '--header "X-API-Key: YOUR_KEY"' in over_http
    assert over_http.count('"X-API-Key": "YOUR_KEY"') == 2


def test_where_no_key_is_needed_none_is_spoken_of(tmp_path):
    assert "KEY" not in connect_texts.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)))


def test_claude_code_is_one_command():
    usual = load({}, home=str(data_folder({})))
    assert connect_texts.claude_code_stdio(usual) == (
        f"claude mcp add scrubjay -- {connect_texts.quoted(command())} mcp --dialect scrubjay --space auto"
    )
    assert connect_texts.claude_code_http(URL) == f"claude mcp add --transport http scrubjay {URL}"


def test_a_home_of_ones_own_is_passed_on_and_the_default_is_not(tmp_path):
    elsewhere, usual = load({}, home=str(tmp_path / "my memories")), load({}, home=str(data_folder({})))

    assert home_arguments(usual) == []
    assert parse(home_arguments(elsewhere)).home == str(tmp_path / "my memories")
    assert f'--home "{tmp_path / "my memories"}"' in connect_texts.claude_code_stdio(elsewhere)


def test_every_text_is_in_the_announcement(tmp_path):
    settings = load({}, home=str(tmp_path))
    text = connect_texts.announcement(("127.0.0.1", 8377), settings)

    unindented = "\n".join(line.removeprefix("    ") for line in text.splitlines())
    for part in (
        connect_texts.claude_code_http(URL),
        connect_texts.mcp_servers_http(URL),
        connect_texts.vscode_http(URL),
        connect_texts.claude_code_stdio(settings),
        *(connect_texts.stdio(client, settings) for client in ("claude-desktop", "cursor", "vscode")),
    ):
        assert part in unindented


def test_no_text_names_a_path_of_this_machine():
    usual = load({}, home=str(data_folder({})))
    texts = [connect_texts.claude_code_stdio(usual), connect_texts.stdio("cursor", usual)]

    assert not any(str(Path.home()) in text for text in texts)
