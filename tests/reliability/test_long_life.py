"""A store that lives long: old work never delays the first answer, what is erased gives its room back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.large import fill
from tests.reliability.rounds import short_and_long, wait_until
from tests.reliability.usage import MIB
from tests.reliability.wholeness import checked
from tests.servers.peer import Peer

pytestmark = pytest.mark.process

# --- old work --------------------------------------------------------------------------------------------------------


@short_and_long(("memories", "waiting"), (1_000, 1_500), (100_000, 20_000))
def test_texts_that_wait_for_vectors_delay_neither_the_first_answer_nor_the_first_store(tmp_path, memories, waiting):
    """They were stored while there was no model. The server embeds them beside its work, and all of them in the end."""
    path = tmp_path / "memories.db"
    fill(path, memories)
    with engine_on(SqliteStore(path), None) as jay:
        jay.store_many({"content": f"waiting fact {number}"} for number in range(waiting))

    begun = time.monotonic()
    with Peer(tmp_path) as peer, closing(SqliteStore(path)) as store:
        peer.greet()
        greeted = time.monotonic() - begun
        stored = peer.call("store_memory", content="first")
        acknowledged = time.monotonic() - begun
        left = len(store.upkeep.pending(limit=waiting + 1))

        assert "degraded" not in stored["structuredContent"]
        assert left > 0, "nothing waited any more; this proves nothing"
        print(
            f"{memories} memories, {waiting} waiting: greeted after {1000 * greeted:.0f} ms, first store after "
            f"{1000 * acknowledged:.0f} ms, {left} still waited"
        )
        found = peer.call("search_memories", query="waiting fact 7")["structuredContent"]["memories"]
        assert "waiting fact 7" in [memory["content"] for memory in found]
        wait_until(lambda: not store.upkeep.pending(limit=1), seconds=1_800)
        print(f"all embedded after {time.monotonic() - begun:.1f} s")

    assert checked(path).memories == memories + waiting + 1


# --- growth ----------------------------------------------------------------------------------------------------------


@short_and_long(("kept", "erased"), (150, 300), (2_000, 10_000))
def test_a_store_after_many_erasures_one_by_one_is_smaller_than_three_times_what_lives(quick_path, kept, erased):
    with engine_on(SqliteStore(quick_path / "memories.db"), HashingEmbedder()) as jay:
        jay.store_many(long_facts("kept", kept))
        for fact in long_facts("passing", erased):
            jay.forget(jay.store(fact["content"]).memory.id, hard=True)

    assert times_what_lives(quick_path) < 3


@pytest.mark.long
def test_a_store_after_most_of_it_was_erased_is_smaller_than_three_times_what_lives(quick_path):
    with engine_on(SqliteStore(quick_path / "memories.db"), HashingEmbedder()) as jay:
        ids = jay.store_many(long_facts("fact", 2_500))
        for id in ids[:2_000]:
            jay.forget(id, hard=True)

    assert times_what_lives(quick_path) < 3


def long_facts(name: str, count: int) -> Iterator[dict[str, str]]:
    return ({"content": f"{name} {number} " + "and more " * 20} for number in range(count))


def times_what_lives(folder: Path) -> float:
    """The store's size against one that holds the same living memories and nothing else."""
    used, fresh = folder / "memories.db", folder / "fresh.db"
    with (
        engine_on(SqliteStore(used), HashingEmbedder()) as jay,
        engine_on(SqliteStore(fresh), HashingEmbedder()) as other,
    ):
        taken_in = other.transfer.import_from(jay.transfer.export())
    size, live = used.stat().st_size, fresh.stat().st_size
    print(f"{taken_in.stored} memories live: {size / MIB:.2f} MiB against {live / MIB:.2f} MiB: {size / live:.2f}")
    return size / live
