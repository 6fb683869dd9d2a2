"""`scrubjay install --url`: a client of a server that runs, and its key, which is written nowhere."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from scrubjay.clients import jsonc
from scrubjay.clients.catalogue import CLIENTS, KEY, USER
from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.app import build_app
from tests.conftest import sqlite_store
from tests.servers.sites import running

KEYED = {name: client for name, client in CLIENTS.items() if client.address is not None and client.address.takes_keys}
HEADERS = {
    "claude-code": "Bearer ${SCRUBJAY_KEY}",
    "cursor": "Bearer ${env:SCRUBJAY_KEY}",
    "vscode": "Bearer ${input:scrubjay-key}",
    "gemini": "Bearer ${SCRUBJAY_KEY}",
    "windsurf": "Bearer ${env:SCRUBJAY_KEY}",
    "opencode": "Bearer {env:SCRUBJAY_KEY}",
}


@pytest.fixture
def far(tmp_path):
    with engine_on(sqlite_store(tmp_path / "far.db"), HashingEmbedder()) as engine:
        yield engine


@pytest.fixture
def server(far):
    """The address of a server that runs."""
    with running(build_app(far, [find("scrubjay")])) as address:
        yield address


@pytest.fixture
def key(far):
    return far.callers.create("ann").secret


def read_entry(name):
    file = CLIENTS[name].file(USER, Path())
    text = file.read_text("utf-8")
    return (tomllib.loads(text) if file.suffix == ".toml" else jsonc.read(text))[CLIENTS[name].table]["scrubjay"]


def everything_written():
    return "".join(one.read_text("utf-8") for one in Path.home().rglob("*") if one.is_file())


def test_a_server_without_keys_is_visited_and_written_as_each_client_has_it(call, place, server):
    for name, client in CLIENTS.items():
        done = call("install", name, "--url", server)
        if client.address is None:
            assert (done.code, "takes no address" in done.err) == (1, True)
            continue

        assert done.code == 0, done.err
        assert "8 tools" in done.err
        assert read_entry(name)[client.address.place] == f"{server}/mcp"
        assert "command" not in read_entry(name)
        assert "SCRUBJAY_KEY" not in everything_written()
        assert "nothing to change" in call("install", name, "--url", server).err


def test_what_a_client_of_a_server_needs_is_printed_as_it_is_written(call, place, server):
    call("install", "gemini", "--url", server)

    printed = call("config", "gemini", "--url", server)

    assert json.loads(printed.out)["mcpServers"]["scrubjay"] == read_entry("gemini")
    assert "takes no address" in call("config", "claude-desktop", "--url", server).err


def test_a_key_is_named_and_never_written(call, place, key, server, monkeypatch):
    monkeypatch.setenv(KEY, key)
    for name in KEYED:
        done = call("install", name, "--url", server)

        assert done.code == 0, done.err
        assert "8 tools" in done.err, "the key was sent to the server"
        assert key not in done.out + done.err
        if name == "codex":
            assert read_entry(name)["bearer_token_env_var"] == KEY
        else:
            assert read_entry(name)["headers"] == {"Authorization": HEADERS[name]}
    assert key not in everything_written()


def test_a_client_that_would_need_the_key_itself_is_refused(call, place, key, server):
    for name in ("zed", "cline"):
        done = call("install", name, "--url", server)

        assert done.code == 1
        assert "would need the key itself" in done.err
    assert everything_written() == ""


def test_vscode_asks_for_the_key_and_what_it_asks_besides_stays(call, place, key, server):
    file = CLIENTS["vscode"].file(USER, place)
    file.parent.mkdir(parents=True)
    before = '{\n  "inputs": [{"id": "theirs", "type": "promptString"}], // theirs\n  "servers": {}\n}\n'
    file.write_text(before)

    call("install", "vscode", "--url", server)
    asked = jsonc.read(file.read_text())["inputs"]

    assert [one["id"] for one in asked] == ["theirs", "scrubjay-key"]
    assert asked[1]["password"] is True
    assert call("install", "vscode", "--remove").code == 0
    assert file.read_text() == before


@pytest.mark.parametrize("name", ["cursor", "codex", "opencode"])
def test_an_entry_that_starts_a_server_gives_way_to_one_with_its_address_and_back(call, place, name, server):
    file = CLIENTS[name].file(USER, place)
    call("install", name)
    first = file.read_text()

    call("install", name, "--url", server)
    assert "mcp" not in read_entry(name).get("args", [])
    assert read_entry(name)["url"] == f"{server}/mcp"
    assert "warning" not in [line.split("\t")[0] for line in call("doctor").out.splitlines() if name in line]
    call("install", name)

    assert (tomllib.loads if name == "codex" else json.loads)(file.read_text()) == (
        tomllib.loads if name == "codex" else json.loads
    )(first)
    call("install", name, "--remove")
    assert not file.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://127.0.0.1:9", "No server answers at http://127.0.0.1:9/mcp: it cannot be reached."),
        ("nowhere", "not the address of a server"),
        ("http://ann:hunter2@127.0.0.1:9", "contains a password"),
    ],
)
def test_where_no_server_is_nothing_is_written(call, place, url, says):
    done = call("install", "cursor", "--url", url)

    assert done.code == 1
    assert says in done.err
    assert "hunter2" not in done.err
    assert not Path.home().exists()


def test_hooks_look_at_a_memory_of_this_machine(call, place):
    assert call("install", "codex", "--url", "http://127.0.0.1:9", "--hooks").code == 2
