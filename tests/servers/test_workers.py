"""Threads: those who ask do not wait for those who change, however many of them wait for the store's writer."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import replace

import httpx
import pytest

from scrubjay.dialects.base import Pieces
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rate_limits import Limits, SharedWindows
from scrubjay.servers.workers import WRITERS
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Role
from scrubjay.values.memory import AccessLevel
from tests.conftest import place_store
from tests.servers.peer import ENVELOPE
from tests.servers.samples import sample
from tests.servers.sites import running

pytestmark = pytest.mark.process

TABLES = [find(name) for name in (*DIALECTS, *ONLY_REST)]
PATIENCE = 60.0


class Patient(SqliteStore):
    """Waits for the writer until the test lets it; knows how many do."""

    def __init__(self, path) -> None:
        super().__init__(path, timeout_seconds=2 * PATIENCE)
        self.arrived = threading.Semaphore(0)
        self.writes = Counter()  # by thread

    @contextmanager
    def _changing(self, timeout_seconds=None):
        if timeout_seconds is None:  # else it does not wait
            self.writes[threading.get_ident()] += 1
            self.arrived.release()
        with super()._changing(timeout_seconds) as transaction:
            yield transaction


@pytest.fixture
def store(tmp_path):
    with closing(Patient(place_store(tmp_path / "memories.db"))) as store:
        yield store


@pytest.fixture
def other(store, tmp_path):
    """The same file, as another process has it."""
    with closing(SqliteStore(tmp_path / "memories.db")) as other:
        yield other


def by_rest(address, key, content):
    return httpx.post(
        f"{address}/api/memento/store_memory", json={"content": content}, headers={"x-api-key": key}, timeout=PATIENCE
    )


def by_mcp(address, key, content):
    params = {"name": "store_memory", "arguments": {"content": content}, **ENVELOPE}
    headers = {
        "x-api-key": key,
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "store_memory",
        "accept": "application/json, text/event-stream",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx.post(f"{address}/mcp/memento", json=body, headers=headers, timeout=PATIENCE)


@pytest.mark.parametrize("write", [by_rest, by_mcp])
def test_a_read_is_answered_while_many_writes_wait(store, other, write):
    jay = engine_on(store, HashingEmbedder())
    keys = [jay.callers.create(f"writer {number}").secret for number in range(3)]
    reader = {"x-api-key": jay.callers.create("reader").secret}
    app = build_app(jay, [find("memento")], call_seconds=4 * PATIENCE)
    with running(app) as address, ThreadPoolExecutor(24) as pool:
        with other.writing():
            store.arrived = threading.Semaphore(0)
            writes = [pool.submit(write, address, keys[number % 3], f"Fact {number}") for number in range(24)]
            for _ in range(WRITERS):  # as many as may at once
                assert store.arrived.acquire(timeout=PATIENCE)

            recent = f"{address}/api/memento/list_recent_memories"
            read = httpx.post(recent, json={}, headers=reader, timeout=PATIENCE)
            ready = httpx.get(f"{address}/readyz", timeout=PATIENCE)
            answered = [one for one in writes if one.done()]

        done, _ = wait(writes, timeout=PATIENCE)
        assert (read.status_code, ready.status_code) == (200, 200)
        assert not answered
        assert [one.result().status_code for one in done] == [200] * 24


class Stalled(SqliteStore):
    """Counts calls like a store that many servers share, and does not answer before the test lets it."""

    def __init__(self, path) -> None:
        super().__init__(path)
        self.asked, self.go_on = threading.Event(), threading.Event()

    def count_call(self, key, *, seconds, amount=1):
        self.asked.set()
        self.go_on.wait(2 * PATIENCE)
        return super().count_call(key, seconds=seconds, amount=amount)


def test_who_waits_for_a_store_that_does_not_answer_holds_up_no_other_and_is_told_to_try_again(tmp_path):
    with closing(Stalled(place_store(tmp_path / "memories.db"))) as store:
        jay = engine_on(store, HashingEmbedder())
        limits = Limits(windows=SharedWindows(store.count_call), local=True)
        app = build_app(jay, [find("memento")], limits=limits, call_seconds=0.2)
        with running(app) as address, ThreadPoolExecutor(1) as pool:
            try:
                recent = f"{address}/api/memento/list_recent_memories"
                asking = pool.submit(httpx.post, recent, json={}, timeout=PATIENCE)
                assert store.asked.wait(PATIENCE)
                healthy = httpx.get(f"{address}/healthz", timeout=PATIENCE)
                reply = asking.result()
            finally:
                store.go_on.set()

    assert healthy.status_code == 200
    assert reply.status_code == 503
    assert reply.headers["retry-after"]
    assert "0.2 seconds" in reply.text


QUESTIONS = [(table, one) for table in TABLES for one in table.operations.values() if not one.changes]


@pytest.mark.parametrize(
    ("dialect", "operation"), QUESTIONS, ids=[f"{table.name}.{one.name}" for table, one in QUESTIONS]
)
def test_what_only_asks_never_waits_for_the_writer(store, dialect, operation):
    jay = engine_on(store, HashingEmbedder())
    memory = jay.store("Tea is in the cupboard.", access_level=AccessLevel.SHARED).memory
    jay.conversations.create("tea")
    key = jay.callers.create("alice", role=Role.OWNER).secret
    store.writes.clear()

    engine = jay.bound_to(caller=replace(jay.callers.by_key(key), local=True))
    words = {"conversation": "tea", "id": memory.id, "Id": memory.id, "query": "tea", "store": "default"}
    reply = dialect.call(engine, operation.name, sample(operation.takes, words))

    if reply.stream is not None and reply.stream.kind is Pieces.LINES:
        list(reply.stream.pieces)
    assert threading.get_ident() not in store.writes
