"""Hooks where memories are in PostgreSQL: by words in the hook's own process, or by a server that runs."""

from __future__ import annotations

import time

import pytest

from scrubjay.hooks import log

pytestmark = [pytest.mark.postgres, pytest.mark.process]


@pytest.fixture
def address(postgres_store, environment):
    environment["SCRUBJAY_STORE"] = postgres_store("hooks")
    return environment["SCRUBJAY_STORE"]


def test_a_session_and_a_prompt_get_what_is_there(address, hook, stored, home):
    id = stored("The billing-core demo runs on port 8080.")
    home.mkdir(exist_ok=True)

    assert id in hook("session-start")
    assert id in hook("prompt", prompt="billing-core demo port?")
    assert hook("prompt", prompt="make the button blue") == ""
    assert [one["how"] for one in log.read(home)] == ["words"] * 3


def test_a_running_server_is_asked(address, hook, stored, home, start):
    id = stored("The billing-core demo runs on port 8080.")
    with start("mcp") as server:
        while not list((home / "run").glob("*.sock")) if (home / "run").exists() else True:
            assert server.poll() is None
            time.sleep(0.05)
        for _ in range(5):  # on a busy machine it may lose its patience with a hook that is late with its line
            said = hook("session-start")
            if (how := next(log.read(home))["how"]) == "server":
                break
        server.stdin.close()
        server.wait(timeout=60)

    assert id in said
    assert how == "server"


def test_a_database_that_cannot_be_reached_is_no_concern_of_the_session(hook, home, environment):
    home.mkdir()
    environment["SCRUBJAY_STORE"] = "postgresql://jay:hunter2@127.0.0.1:9/none"

    assert hook("session-start") == ""
    assert hook("prompt", prompt="billing-core demo port?", deadline="0.3") == ""
    assert not list(home.glob("*.db"))
    assert "hunter2" not in (home / "hooks.log").read_text()
