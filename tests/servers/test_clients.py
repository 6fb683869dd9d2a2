"""The texts that people paste into their clients."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrubjay.servers import clients
from scrubjay.servers.options import parse
from scrubjay.settings import data_folder, load

URL = "http://127.0.0.1:8377/mcp"


def test_a_database_servers_password_is_not_announced(tmp_path):
    settings = load({}, home=str(tmp_path), store="postgresql://jay:hunter2@db/memories")

    text = clients.announcement(("127.0.0.1", 8377), settings)

    assert "hunter2" not in text
    assert "start its own server" not in text


def test_the_announcement_says_where_it_listens_and_where_memories_lie(tmp_path):
    text = clients.announcement(("127.0.0.1", 8377), load({}, home=str(tmp_path)))

    assert "http://127.0.0.1:8377\n" in text
    assert str(tmp_path / "memories.db") in text


def test_an_ipv6_address_is_written_as_a_url(tmp_path):
    assert "http://[::1]:8377/mcp" in clients.announcement(("::1", 8377), load({}, home=str(tmp_path)))


@pytest.mark.parametrize("text", [clients.mcp_servers_stdio(), clients.vscode_stdio()])
def test_a_client_that_starts_its_own_server_starts_one_that_understands(text):
    [table] = json.loads(text).values()
    server = table["scrubjay"]

    assert Path(server["command"]).is_absolute(), "clients inherit no shell's search path"
    assert Path(server["command"]).name == "scrubjay"
    assert server["args"][0] == "mcp"
    assert parse(server["args"][1:]).dialects == ["memento"]


@pytest.mark.parametrize("text", [clients.mcp_servers_http(URL), clients.vscode_http(URL)])
def test_a_client_over_http_is_given_the_address(text):
    [table] = json.loads(text).values()

    assert table["scrubjay"] == {"type": "http", "url": URL}


def test_claude_code_is_one_command():
    assert clients.claude_code_stdio() == f"claude mcp add scrubjay -- {clients.quoted(clients.command())} mcp"
    assert clients.claude_code_http(URL) == f"claude mcp add --transport http scrubjay {URL}"


def test_a_home_of_ones_own_is_passed_on_and_the_default_is_not(tmp_path):
    elsewhere, usual = load({}, home=str(tmp_path / "my memories")), load({}, home=str(data_folder({})))

    assert clients.stdio_arguments(usual) == []
    assert parse(clients.stdio_arguments(elsewhere)).home == str(tmp_path / "my memories")
    assert f'--home "{tmp_path / "my memories"}"' in clients.claude_code_stdio(clients.stdio_arguments(elsewhere))


def test_every_text_is_in_the_announcement(tmp_path):
    settings = load({}, home=str(tmp_path))
    arguments = clients.stdio_arguments(settings)

    text = clients.announcement(("127.0.0.1", 8377), settings)

    unindented = "\n".join(line.removeprefix("    ") for line in text.splitlines())
    for part in (
        clients.claude_code_http(URL),
        clients.mcp_servers_http(URL),
        clients.vscode_http(URL),
        clients.claude_code_stdio(arguments),
        clients.mcp_servers_stdio(arguments),
        clients.vscode_stdio(arguments),
    ):
        assert part in unindented


def test_no_text_names_a_path_of_this_machine():
    texts = [clients.claude_code_stdio(), clients.mcp_servers_stdio(), clients.vscode_stdio()]

    assert not any(str(Path.home()) in text for text in texts)
