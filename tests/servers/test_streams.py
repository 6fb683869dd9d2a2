"""Open streams: so many of one user, each woken when there is something, and no cost while there is nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, contextmanager

import httpx
import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.streams import OF_ONE_USER, Streams
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.tables import watching
from scrubjay.stores.tables.history import History
from tests.servers.sites import running

pytestmark = pytest.mark.process

PATIENCE = 60.0


class CountingHistory(History):
    def __init__(self, history: History, asked: Counter) -> None:
        super().__init__(history._sql, history._tally)
        self._asked = asked

    def events(self, space, **options):
        self._asked["events"] += 1
        return super().events(space, **options)

    def last_events(self):
        self._asked["last events"] += 1
        return super().last_events()


class Counting(SqliteStore):
    """Knows which questions it was asked how often."""

    def __init__(self, path) -> None:
        self.asked = Counter()
        super().__init__(path)
        self.history = CountingHistory(self.history, self.asked)
        self._watch = watching.Watch(self.history.last_events)

    @contextmanager
    def _reading(self):
        self.asked["anything"] += 1
        with super()._reading() as con:
            yield con


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.05)
    with closing(Counting(tmp_path / "memories.db")) as store:
        yield store


@pytest.fixture
def streams():
    return Streams()


@pytest.fixture
def jay(store):
    return engine_on(store, HashingEmbedder())


@pytest.fixture
def address(jay, streams):
    with running(build_app(jay, [find("memento")], only_rest=[find("native")], streams=streams)) as address:
        yield address


@pytest.fixture
def stack(address):  # what is open is closed before the server ends
    with ExitStack() as stack:
        yield stack


def wait_until(true) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def followed(stack, address, key):
    """A stream of the feed that has begun: what it says, as it comes."""
    port = int(address.rpartition(":")[2])
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
    sock.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n".encode())
    lines = stack.enter_context(sock.makefile("rb"))
    assert b" 200 " in lines.readline()
    while lines.readline() != b"\r\n":
        pass
    return sock, lines


def watched_twice(store):
    """What is asked until the watcher has looked twice."""
    store.asked.clear()
    wait_until(lambda: store.asked["last events"] >= 2)
    return store.asked


def told(lines):
    """The next event."""
    return json.loads(next(line for line in lines if line.startswith(b"data: ")).removeprefix(b"data: "))


def test_three_hundred_idle_streams_ask_no_more_than_one(stack, address, store, jay):
    keys = [jay.callers.create(f"user {number}").secret for number in range(6)]
    followers = [followed(stack, address, keys[number % 6]) for number in range(300)]
    wait_until(lambda: store.asked["events"] >= 300)
    while watched_twice(store)["events"]:  # those that were rung at the beginning have looked
        pass

    store.asked.clear()
    wait_until(lambda: store.asked["last events"] >= 4)

    assert store.asked["events"] == 0
    # The six credentials are checked again every few seconds; three hundred streams that ask would ask 1,200 times.
    assert store.asked["anything"] - store.asked["last events"] < 100
    assert [thread.name for thread in threading.enumerate()].count("watching") == 1
    stored = jay.store("The harbour freezes in January.").memory.id
    assert {told(lines)["memory"] for _, lines in followers} == {stored}


def test_what_another_process_writes_is_told(stack, address, jay, tmp_path):
    _, lines = followed(stack, address, jay.callers.create("alice").secret)
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as other:
        stored = other.store("The harbour freezes in January.").memory.id

    assert told(lines)["memory"] == stored


def test_one_stream_too_many_of_a_user_is_refused_until_it_closes_one(stack, address, jay, streams):
    alice, bob = (jay.callers.create(name).secret for name in ("alice", "bob"))
    (first, _), *_ = [followed(stack, address, alice) for _ in range(OF_ONE_USER)]

    refused = httpx.get(f"{address}/api/v1/events", headers={"x-api-key": alice}, timeout=PATIENCE)
    followed(stack, address, bob)

    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == "rate_limited"
    assert "Close one" in refused.json()["error"]["hint"]
    assert int(refused.headers["retry-after"]) >= 1
    first.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: len(streams.open) == OF_ONE_USER)
    followed(stack, address, alice)


def test_nobody_watches_when_the_last_follower_has_left(stack, address, jay, store):
    sock, _ = followed(stack, address, jay.callers.create("alice").secret)
    wait_until(lambda: store.asked["last events"])

    sock.shutdown(socket.SHUT_RDWR)

    wait_until(lambda: not any(thread.name == "watching" for thread in threading.enumerate()))
