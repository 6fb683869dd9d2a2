"""A whole store is copied on the command line, between SQLite and PostgreSQL."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing

import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import CopyUnfinished
from scrubjay.servers.http.app import build_app
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.sqlite.store import SqliteStore
from tests.servers.sites import client_of

pytestmark = [pytest.mark.postgres, pytest.mark.process]


def test_a_store_moves_to_postgresql_and_back(call, stored, home, tmp_path, postgres_store, environment):
    id = stored("User lives in Seattle")
    url = postgres_store("copies")

    there = call("copy", str(home / "memories.db"), url)
    back = call("copy", url, str(tmp_path / "back.db"), "--json")

    assert (there.code, back.code) == (0, 0)
    assert "1 memory and 1 vector copied; both sides are identical." in there.err
    assert back.json["verified"] is True
    for address in (url, f"sqlite:///{tmp_path / 'back.db'}"):
        environment["SCRUBJAY_STORE"] = address
        found = call("search", "Where does the user live?", "--json")
        assert [hit["memory"]["id"] for hit in found.json] == [id]


def test_copying_from_nowhere_makes_nothing(call, tmp_path):
    done = call("copy", str(tmp_path / "none.db"), str(tmp_path / "new.db"))

    assert done.code != 0
    assert "No store to copy from" in done.err
    assert not (tmp_path / "new.db").exists()


def test_a_store_is_not_copied_onto_itself(call, stored, home):
    stored("User lives in Seattle")

    done = call("copy", str(home / "memories.db"), str(home / "memories.db"))

    assert done.code != 0
    assert "onto itself" in done.err


def test_a_password_is_never_shown(call, stored, home):
    stored("User lives in Seattle")

    done = call("copy", str(home / "memories.db"), "postgresql://jay:hunter2@127.0.0.1:9/none")

    assert done.code != 0
    assert "cannot be reached" in done.err
    assert "hunter2" not in done.err + done.out


def test_a_copy_that_is_complete_is_only_compared_and_says_so(call, stored, home, tmp_path):
    stored("User lives in Seattle")
    addresses = str(home / "memories.db"), str(tmp_path / "copy.db")
    call("copy", *addresses)

    done = call("copy", *addresses)

    assert done.code == 0
    assert "Already copied: 1 memory and 1 vector; both sides are identical." in done.err
    assert call("copy", *addresses, "--json").json["already_copied"] is True


# --- killed in the middle --------------------------------------------------------------------------------------------

# The real command, which kills itself at the given point: before a row is written, among the rows, among the checks.
KILLED = """
import os, signal, sys
from scrubjay.stores import copying
from scrubjay.wiring import copyable, open_store

source, target, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
copying.BATCH = 2
reports = 0

def report(table, done, of):
    global reports
    reports += 1
    if reports > at:
        os.kill(os.getpid(), signal.SIGKILL)

one, other = copyable(open_store(source)), copyable(open_store(target, unfinished=True))
if at < 0:
    os.kill(os.getpid(), signal.SIGKILL)  # the target was made, and nothing else
copying.copy(one, other, report)
"""


def kill_copy(source: str, target: str, at: int, environment) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, source, target, str(at)], env=environment, timeout=240)
    assert done.returncode == -signal.SIGKILL


# The real command, interrupted when it comes to a step.
INTERRUPTED = """
import os, signal, sys
from scrubjay.cli.main import main
from scrubjay.stores import copying

def stop(*_):
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs tests in the background may have it ignored
setattr(copying, sys.argv.pop(1), stop)
sys.argv = ["scrubjay", "copy", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("step", ["is_complete", "_taken_in"])
def test_an_interrupted_copy_says_how_to_go_on(step, call, stored, home, tmp_path, environment):
    stored("User lives in Seattle")
    addresses = str(home / "memories.db"), str(tmp_path / "copy.db")
    command = [sys.executable, "-c", INTERRUPTED, step, *addresses]

    done = subprocess.run(command, env=environment, timeout=240, capture_output=True, text=True)

    assert done.returncode == 130
    assert done.stderr.splitlines()[-2:] == ["To resume, run the same command again.", "Interrupted."]
    assert "1 memory and 1 vector copied; both sides are identical." in call("copy", *addresses).err


def open_address(url: str):
    return closing(PostgresStore(url) if url.startswith("postgres") else SqliteStore(url.removeprefix("sqlite:///")))


@pytest.fixture(params=["out", "back"])
def way(request, call, stored, home, tmp_path, postgres_store):
    """A store with memories and a key, and a place to copy it to, on the other backend."""
    for number in range(5):
        stored(f"Memory number {number} of the harbour")
    assert call("keys", "create", "--user", "ann", "--json").code == 0
    file, url = f"sqlite:///{home / 'memories.db'}", postgres_store(f"killed {request.param}")
    if request.param == "out":
        return file, url
    assert call("copy", file, url).code == 0
    return url, f"sqlite:///{tmp_path / 'back.db'}"


@pytest.mark.parametrize("at", [0, 12, 60])
def test_a_copy_that_was_killed_is_opened_by_nobody_and_goes_on(way, at, call, environment):
    source, target = way
    kill_copy(source, target, at, environment)

    with pytest.raises(CopyUnfinished):
        open_address(target).__enter__()
    environment["SCRUBJAY_STORE"] = target
    for command in (("list",), ("store", "Mine"), ("doctor", "--deep"), ("serve", "--port", "0")):
        refused = call(*command)
        assert refused.code != 0
        assert "an unfinished copy" in refused.out + refused.err
        assert "scrubjay copy FROM TO" in refused.out + refused.err

    del environment["SCRUBJAY_STORE"]
    done = call("copy", source, target)

    assert done.code == 0
    assert "5 memories and 5 vectors copied; both sides are identical." in done.err
    environment["SCRUBJAY_STORE"] = target
    assert len(call("list", "--json").json) == 5
    assert [key["user"] for key in call("keys", "list", "--json").json] == ["ann"]
    del environment["SCRUBJAY_STORE"]
    again = call("copy", source, target)
    assert again.code == 0
    assert "both sides are identical" in again.err
    environment["SCRUBJAY_STORE"] = target
    assert call("store", "Written later").code == 0
    del environment["SCRUBJAY_STORE"]
    assert "one of the two has changed since" in call("copy", source, target).err


def test_a_copy_killed_before_its_first_row_is_opened_by_nobody_and_goes_on(way, call, environment):
    source, target = way
    if target.startswith("postgres"):
        target += "_made_by_the_copy"
    kill_copy(source, target, -1, environment)

    with pytest.raises(CopyUnfinished):
        open_address(target).__enter__()
    done = call("copy", source, target)

    assert done.code == 0
    assert "5 memories and 5 vectors copied; both sides are identical." in done.err


def test_keys_are_there_before_any_memory(way, environment):
    """Whatever went wrong with the mark of an unfinished copy: memories never lie there without their locks."""
    source, target = way
    for at in (2, 4, 6, 8, 10):
        kill_copy(source, target, at, environment)
        store = PostgresStore if target.startswith("postgres") else SqliteStore
        with closing(store(target.removeprefix("sqlite:///"), unfinished=True)) as half, half._reading() as con:
            [(memories,)] = con.execute("SELECT count(*) FROM memories")
            [(keys,)] = con.execute("SELECT count(*) FROM credentials")
        assert keys or not memories


def test_a_server_that_has_the_target_open_is_not_ready_and_does_not_write(way, environment):
    """It was empty when the server opened it."""
    source, target = way
    with open_address(target) as store, engine_on(store, HashingEmbedder()) as engine:
        kill_copy(source, target, 12, environment)

        with pytest.raises(CopyUnfinished):
            engine.store("Mine")
        with client_of(build_app(engine, [find("memento")])) as http:
            assert http.get("/readyz").status_code == 503


@pytest.mark.long
@pytest.mark.parametrize("at", range(1, 78, 4))
def test_wherever_a_copy_is_killed_it_goes_on(way, at, call, environment):
    source, target = way
    kill_copy(source, target, at, environment)

    with pytest.raises(CopyUnfinished):
        open_address(target).__enter__()
    kill_copy(source, target, 2, environment)  # and so is the second attempt
    done = call("copy", source, target)

    assert done.code == 0
    assert "5 memories and 5 vectors copied; both sides are identical." in done.err
