"""Who waits for whom: readers for nobody, writers for each other, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.errors import StorageBusy
from scrubjay.stores.sqlite import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.wholeness import checked, everything
from tests.servers.peer import Peer

SOON = 5.0  # seconds; a reader that waited for the writer would wait until it is refused, after ten


@pytest.fixture
def home(tmp_path) -> Path:
    with Engine(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
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
    jay = timed(took, Engine, SqliteStore(home / "memories.db"), HashingEmbedder())

    for _ in range(20):
        page = timed(took, jay.list, limit=10)
        hits = timed(took, jay.search, "harbour pier")
        timed(took, jay.get, page.memories[0].id)
        timed(took, jay.history, page.memories[0].id)
        assert (len(page), len(hits)) == (10, 10)
    timed(took, jay.check)
    timed(took, lambda: list(jay.export()))

    print(f"reads beside a writer: slowest {max(took):.0f} ms")
    assert max(took) < 1000 * SOON
    begun = time.monotonic()
    jay.close()
    assert time.monotonic() - begun < 2 * SOON  # counted reads are given up, not waited for
    writer.tell()
    assert writer.hear() == {"undone": True}


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
        assert max(took) < 1000 * SOON
        writer.tell()
        assert writer.hear() == {"undone": True}
        assert not patient.call("store_memory", content="in time")["isError"]

    assert checked(home / "memories.db").memories == 51
    with closing(SqliteStore(home / "memories.db")) as store:
        texts = {memory.content for memory in everything(store).values()}
        assert store.fact("held") is None
    assert "in time" in texts
    assert "too early" not in texts


@pytest.mark.parametrize("verb", ["store", "update", "supersede", "forget"])
def test_a_write_that_waited_too_long_changed_nothing_and_may_be_repeated(home, writer, verb):
    with Engine(SqliteStore(home / "memories.db", timeout_seconds=0.2), HashingEmbedder()) as jay:
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

    with Engine(SqliteStore(home / "memories.db", timeout_seconds=SOON), HashingEmbedder()) as jay:
        jay.store("after the funeral")

    assert checked(home / "memories.db").memories == 51
