"""MAMA as its clients meet it: a real process, its environment, its name."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys

import httpx
import pytest

from tests.servers.peer import Peer

pytestmark = pytest.mark.process


def started(tmp_path, *arguments, **env):
    return Peer(tmp_path / "home", "--dialect", "mama", *arguments, **env)


def test_the_server_is_called_as_the_specification_says(tmp_path):
    with started(tmp_path) as peer:
        assert peer.greet()["serverInfo"]["name"] == "mama-server"
        tools = [tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]]

    assert tools == ["save", "search", "update", "load_checkpoint"]


def test_extras_lists_the_old_names(tmp_path):
    with started(tmp_path, "--extras") as peer:
        peer.greet()
        tools = [tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]]

    assert {"save_decision", "recall_decision", "suggest_decision", "list_decisions"} <= set(tools)


def test_an_error_is_the_seeds_text_and_a_body(tmp_path):
    with started(tmp_path) as peer:
        peer.greet()
        result = peer.call("update", id="decision_gone_1_abcd", outcome="success")

    assert result["isError"]
    assert result["content"][0]["text"] == "Error: Decision not found: decision_gone_1_abcd"
    assert result["structuredContent"]["error"]["code"] == "not_found"


def test_what_is_saved_lies_in_the_file_that_the_environment_names(tmp_path):
    where = tmp_path / "deep" / "mama-memory.db"
    with started(tmp_path, MAMA_DB_PATH=str(where), MAMA_SERVER_TOKEN="dev-token-1234") as peer:
        peer.greet()
        saved = peer.call("save", type="decision", topic="auth", decision="Use JWT", reasoning="Stateless")
    with Peer(tmp_path / "home", "--dialect", "memento", SCRUBJAY_STORE=f"sqlite:///{where}") as other:
        other.greet()
        found = other.call("list_recent_memories")["structuredContent"]["memories"]

    assert json.loads(saved["content"][0]["text"])["message"] == "Decision saved: auth"
    assert [memory["content"] for memory in found] == ["Use JWT\n\nStateless"]
    assert not (tmp_path / "home" / "memories.db").exists()
    assert b"dev-token" not in peer.errors + other.errors


def test_a_database_of_the_original_program_is_refused_and_left_alone(tmp_path):
    where = tmp_path / "mama-memory.db"
    with sqlite3.connect(where) as con:
        con.execute("CREATE TABLE decisions (id TEXT PRIMARY KEY, topic TEXT, decision TEXT)")
        con.execute("INSERT INTO decisions VALUES ('decision_x', 'x', 'y')")
    con.close()
    before = where.read_bytes()
    with started(tmp_path, MAMA_DB_PATH=str(where)) as peer:
        peer.greet()
        result = peer.call("search")

    assert result["isError"]
    assert "another program" in result["content"][0]["text"]
    assert where.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("mama")] == ["mama-memory.db"]


def test_the_token_of_the_environment_is_the_owners_key_over_http(tmp_path):
    env = {"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_EMBEDDER": "hashing", "MAMA_SERVER_TOKEN": "dev-token-1234"}
    command = [sys.executable, "-m", "scrubjay", "serve", "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True) as process:
        said = ""
        while "/mcp" not in said:
            said += process.stderr.readline()
        [address] = set(re.findall(r"http://127\.0\.0\.1:\d+", said))
        answers = [
            httpx.post(f"{address}/api/mama/load_checkpoint", json={}, headers=headers, timeout=60).status_code
            for headers in ({}, {"authorization": "Bearer dev-token-1234"}, {"authorization": "Bearer wrong"})
        ]
        process.terminate()
        said += process.stderr.read()

    assert answers == [401, 200, 401]
    assert "dev-token" not in said
