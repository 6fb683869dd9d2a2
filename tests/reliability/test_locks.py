"""Who waits for whom: readers for nobody, writers for each other, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import StorageBusy
from scrubjay.folders.registry import Registry
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.wholeness import checked, everything
from tests.servers.peer import Peer
from tests.servers.samples import sample

pytestmark = pytest.mark.process

TABLES = [*map(find, DIALECTS), *map(find, ONLY_REST)]
BUSY = ("storage_busy", "UNAVAILABLE", "STORAGE_ERROR", StorageBusy().message)  # as the dialects call it
NEVER = 3600.0  # seconds; who waited for the writer so long would fail by the time that a test may take


@pytest.fixture
def home(tmp_path) -> Path:
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
        jay.store_many({"content": f"The harbour has pier {number}"} for number in range(50))
    return tmp_path


@pytest.fixture
def writer(home) -> Iterator[Child]:
    """Another process, in the middle of a write that ends when it is told."""
    with Child("hold", home / "memories.db") as child:
        assert child.hear() == {"held": True}, child.errors
        yield child


def timed(milliseconds: list[float], function, *arguments, **options):
    begun = time.monotonic()
    result = function(*arguments, **options)
    milliseconds.append(1000 * (time.monotonic() - begun))
    return result


def test_every_read_answers_while_another_process_holds_a_write_transaction(home, writer):
    """A process that opens the store only now is no exception: reading takes no write lock, not even at the start."""
    took: list[float] = []
    jay = timed(took, engine_on, SqliteStore(home / "memories.db", timeout_seconds=NEVER), HashingEmbedder())

    for _ in range(20):
        page = timed(took, jay.list, limit=10)
        hits = timed(took, jay.search, "harbour pier")
        timed(took, jay.get, page.memories[0].id)
        timed(took, jay.history, page.memories[0].id)
        assert (len(page), len(hits)) == (10, 10)
    timed(took, jay.upkeep.check)
    timed(took, lambda: list(jay.transfer.export()))

    print(f"reads beside a writer: slowest {max(took):.0f} ms")
    jay.close()  # counted reads are given up, not waited for
    writer.tell()
    assert writer.hear() == {"undone": True}


def test_no_operation_that_only_reads_waits_for_a_writer(home, writer):
    """Every one of every dialect, by what it declares; one that took the write lock would be refused after a moment."""
    registry = Registry(home, home, walk_seconds=0)
    with engine_on(
        SqliteStore(home / "memories.db", timeout_seconds=0.05), HashingEmbedder(), registry=registry
    ) as jay:
        words = {"id": next(iter(jay.list(limit=1))).id, "store": "default"}
        answers = {
            f"{dialect.name} {operation.name}": dialect.call(jay, operation.name, sample(operation.takes, words))
            for dialect in TABLES
            for operation in dialect.operations.values()
            if not operation.changes and operation.streams is None
        }

    refused = {name: code_of(reply.body) for name, reply in answers.items() if reply.failed}
    assert [name for name, code in refused.items() if code in BUSY] == []
    assert len(answers) > 50
    assert len(refused) < len(answers) / 3, refused  # of things that are not there


def code_of(body: dict) -> object:
    error = body.get("error", body)
    return error.get("code", error) if isinstance(error, dict) else error


def test_a_server_answers_reads_beside_a_held_lock_and_a_write_in_the_end_with_an_error(home, writer):
    """Two clients: one writes and waits, the other reads. The write is refused as a whole and works afterwards."""
    with ExitStack() as stack:
        patient, reader = stack.enter_context(Peer(home)), stack.enter_context(Peer(home))
        patient.greet()
        reader.greet()
        reader.call("list_recent_memories")
        patient.send("tools/call", {"name": "store_memory", "arguments": {"content": "too early"}}, id=99)
        begun = time.monotonic()
        took: list[float] = []
        for _ in range(100):
            result = timed(took, reader.call, "search_memories", query="harbour")
            assert len(result["structuredContent"]["memories"]) == 5
            assert len(timed(took, reader.call, "list_recent_memories")["structuredContent"]["memories"]) == 10
        refused = patient.read()
        waited = time.monotonic() - begun

        assert refused["id"] == 99
        assert refused["result"]["isError"]
        error = refused["result"]["structuredContent"]["error"]
        assert error["code"] == "STORAGE_ERROR"
        assert str(home) not in error["message"]
        print(f"{len(took)} reads in {waited:.1f} s beside a waiting write: slowest {max(took):.0f} ms")
        writer.tell()
        assert writer.hear() == {"undone": True}
        assert not patient.call("store_memory", content="in time")["isError"]

    assert checked(home / "memories.db").memories == 51
    with closing(SqliteStore(home / "memories.db")) as store:
        texts = {memory.content for memory in everything(store).values()}
        assert store.history.fact("held") is None
    assert "in time" in texts
    assert "too early" not in texts


@pytest.mark.parametrize("verb", ["store", "update", "supersede", "forget"])
def test_a_write_that_waited_too_long_changed_nothing_and_may_be_repeated(home, writer, verb):
    with engine_on(SqliteStore(home / "memories.db", timeout_seconds=1.0), HashingEmbedder()) as jay:
        first, second = jay.list(limit=2)
        attempt = {
            "store": lambda: jay.store("one more"),
            "update": lambda: jay.update(first.id, content="changed"),
            "supersede": lambda: jay.supersede(old=first.id, new=second.id),
            "forget": lambda: jay.forget(first.id),
        }[verb]

        with pytest.raises(StorageBusy) as caught:
            attempt()

        assert caught.value.retryable
        assert (jay.get(first.id), jay.list(counted=True).total) == (first, 50)
        writer.tell()
        assert writer.hear() == {"undone": True}
        attempt()
    checked(home / "memories.db")


def test_a_writer_that_dies_with_the_lock_holds_nobody_up(home, writer):
    writer.kill()
    writer.process.wait()

    with engine_on(SqliteStore(home / "memories.db", timeout_seconds=NEVER), HashingEmbedder()) as jay:
        jay.store("after the funeral")

    assert checked(home / "memories.db").memories == 51
