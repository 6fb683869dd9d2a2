"""What was stored in a repository is found from everywhere on this machine: commands, entries of clients, hooks, the
server. Each says which space it is from."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.servers.peer import Peer

pytestmark = pytest.mark.process

FACT = "The demo runs on port 8080"
QUESTION = "Which port does the demo run on?"


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "rocket"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


@pytest.fixture
def entry(home, monkeypatch):
    """The default tools, through a client's entry with these options."""

    def call(tool, *options, **arguments):
        with Peer(home, "--dialect", "scrubjay", *options) as peer:
            peer.greet()
            reply = peer.call(tool, **arguments)
        assert not reply.get("isError"), reply
        return reply["content"][0]["text"]

    return call


@pytest.fixture
def told(stored, repository, monkeypatch, tmp_path):
    """The fact, stored in the repository; commands then run outside of it."""
    monkeypatch.chdir(repository)
    stored(FACT)
    monkeypatch.chdir(tmp_path)
    return FACT


def test_another_clients_entry_finds_it_and_says_where_it_is_from(entry, repository, monkeypatch, tmp_path):
    monkeypatch.chdir(repository)
    entry("remember", "--space", "auto", facts=[FACT])
    monkeypatch.chdir(tmp_path)

    for tool, arguments in (("recall", {"question": QUESTION}), ("recent", {})):
        text = entry(tool, **arguments)

        assert FACT in text
        assert "from space rocket" in text


def test_an_entry_with_only_stays_in_its_space(told, entry):
    assert "Memory does not know" in entry("recall", "--only", question=QUESTION)
    assert FACT in entry("recall", "--only", "--space", "rocket", question=QUESTION)


@pytest.mark.parametrize("command", [("list",), ("search", "--words", "demo port")])
def test_commands_find_it_and_say_where_it_is_from(told, call, command):
    done = call(*command)

    assert FACT in done.out
    assert "from space rocket" in done.out
    assert json.loads(call(*command, "--json").out)


def test_in_the_repository_nothing_is_said_of_its_own_space(told, call, repository, monkeypatch):
    monkeypatch.chdir(repository)

    assert FACT in call("list").out
    assert "from space" not in call("list").out


def test_counts_and_briefs_know_of_it(told, call):
    assert call("stats", "--json").json["count"]["total"] == 1
    assert "rocket (1)" in call("brief").out
    assert FACT not in call("brief").out


@pytest.mark.parametrize("command", [("list",), ("search", "--words", "demo port"), ("stats",), ("tags",)])
def test_a_space_that_is_named_narrows_one_command(told, call, command):
    nothing = call(*command, "--space", "default")
    assert nothing.out == ""
    assert nothing.err.endswith(" Only the space default was looked at.\n")
    assert FACT in call("list", "--space", "rocket").out
    assert call(*command, "--space", "nowhere").code == 3


def test_auto_and_a_space_of_the_environment_narrow_nothing(told, call, environment):
    assert FACT in call("list", "--space", "auto").out
    environment["SCRUBJAY_SPACE"] = "other"

    assert FACT in call("list").out
    environment["SCRUBJAY_ONLY"] = "on"
    assert call("list", "--json").code == 3  # there is no such space yet


def test_a_command_in_the_repository_writes_to_its_space(call, stored, repository, monkeypatch):
    stored("Outside")
    monkeypatch.chdir(repository)
    done = call("store", "Inside")

    assert "Created space rocket." in done.err
    spaces = {one["content"]: one["space"] for one in call("list", "--json").json}
    assert spaces == {"Outside": "default", "Inside": "rocket"}


def test_a_command_that_stores_into_a_named_space_is_compared_with_every_space(told, call):
    done = call("store", FACT, "--space", "notes")

    assert f"It says the same as: {FACT} (from space rocket)" in done.err


def test_an_export_is_that_of_one_space_and_names_it(told, call, tmp_path):
    call("store", "Outside")
    file = tmp_path / "out.jsonl"

    assert "of space default in" in call("export", str(file)).err
    assert FACT not in file.read_text()


def test_a_prompts_hook_gives_it_from_anywhere(told, run):
    done = run("hook", "prompt", "--deadline", "60", stdin=json.dumps({"prompt": "demo runs on port 8080"}).encode())

    assert FACT in done.out
    assert "from space rocket" in done.out


def test_a_sessions_hook_names_the_other_spaces(told, run):
    done = run("hook", "session-start", "--deadline", "60", stdin=b"{}")

    assert "rocket (1)" in done.out
    assert FACT not in done.out
