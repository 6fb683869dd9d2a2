"""A server that lives long: memory, files and threads stay bounded, old work never delays the first answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.stores.sqlite import SqliteStore
from tests.reliability.rounds import short_and_long, wait_until
from tests.reliability.texts import Texts, word_of
from tests.reliability.wholeness import checked
from tests.servers.peer import Peer

MIB = 1024 * 1024


# --- many calls ------------------------------------------------------------------------------------------------------


@short_and_long(("warm_up", "calls", "storing"), (500, 1_000, False), (10_000, 10_000, True))
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_thousands_of_mixed_calls_leave_memory_files_and_threads_as_they_were(
    quick_path, chance, warm_up, calls, storing
):
    """A growing store fills the caches of every connection, for some thousand calls: the short version has it stand
    still after the warm-up, the long one waits until the caches are full.
    """
    texts = Texts(chance)
    with Peer(quick_path) as peer:
        peer.greet()
        use(peer, texts, warm_up)
        before = usage(peer)
        use(peer, texts, calls, storing=storing)
        after = usage(peer)

    growth = (after["memory"] - before["memory"]) / MIB / (calls / 1000)
    print(f"{calls} calls after {warm_up}: {growth:.2f} MiB per 1,000 calls, from {before} to {after}")
    assert growth < 1
    assert after["files"] <= before["files"] + 2
    assert after["threads"] <= before["threads"]


def use(peer: Peer, texts: Texts, calls: int, *, storing: bool = True) -> None:
    """Of ten calls two store and one supersedes; without `storing` all three supersede what is superseded already."""
    text = texts.next()
    kept = [peer.call("store_memory", content=content) for content in (texts.next(), text)]
    ids = [result["structuredContent"]["created"]["id"] for result in kept]
    for number in range(calls):
        kind = number % 10
        if kind in (0, 5) and storing:
            text = texts.next()
            result = peer.call("store_memory", content=text)
            ids.append(result["structuredContent"]["created"]["id"])
        elif kind in (0, 5, 7):
            result = peer.call("supersede_memory", old_memory_id=ids[-2], new_memory_id=ids[-1])
        elif kind == 9:
            result = peer.call("list_recent_memories", limit=10)
        else:
            result = peer.call("search_memories", query=word_of(text))
        assert not result["isError"], result


def usage(peer: Peer) -> dict[str, int]:
    process = Path(f"/proc/{peer.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text(encoding="ascii").splitlines())
    return {
        "memory": int(status["VmRSS"].split()[0]) * 1024,
        "threads": int(status["Threads"]),
        "files": len(list((process / "fd").iterdir())),
    }


# --- old work --------------------------------------------------------------------------------------------------------


@short_and_long(("memories", "waiting"), (1_000, 300), (5_000, 500))
def test_texts_that_wait_for_vectors_delay_neither_the_first_answer_nor_the_first_store(tmp_path, memories, waiting):
    """They were stored while there was no model. The server embeds them beside its work, and all of them in the end."""
    path = tmp_path / "memories.db"
    with Engine(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"old fact {number}"} for number in range(memories))
    with Engine(SqliteStore(path), None) as jay:
        jay.store_many({"content": f"waiting fact {number}"} for number in range(waiting))

    begun = time.monotonic()
    with Peer(tmp_path) as peer, closing(SqliteStore(path)) as store:
        peer.greet()
        greeted = time.monotonic() - begun
        stored = peer.call("store_memory", content="first")
        left = len(store.pending(limit=waiting + 1))
        acknowledged = time.monotonic() - begun

        assert "degraded" not in stored["structuredContent"]
        assert left > 0, "nothing waited any more; this proves nothing"
        print(
            f"{memories} memories, {waiting} waiting: greeted after {1000 * greeted:.0f} ms, first store after "
            f"{1000 * acknowledged:.0f} ms, {left} still waited"
        )
        found = peer.call("search_memories", query="waiting fact 7")["structuredContent"]["memories"]
        assert "waiting fact 7" in [memory["content"] for memory in found]
        wait_until(lambda: not store.pending(limit=1))
        print(f"all embedded after {time.monotonic() - begun:.1f} s")

    assert checked(path).memories == memories + waiting + 1


# --- growth ----------------------------------------------------------------------------------------------------------


@short_and_long(("kept", "erased"), (150, 300), (2_000, 10_000))
def test_a_store_after_many_erasures_one_by_one_is_smaller_than_three_times_what_lives(quick_path, kept, erased):
    with Engine(SqliteStore(quick_path / "memories.db"), HashingEmbedder()) as jay:
        jay.store_many(long_facts("kept", kept))
        for fact in long_facts("passing", erased):
            jay.forget(jay.store(fact["content"]).memory.id, hard=True)

    assert times_what_lives(quick_path) < 3


@pytest.mark.long
def test_a_store_after_most_of_it_was_erased_is_smaller_than_three_times_what_lives(quick_path):
    with Engine(SqliteStore(quick_path / "memories.db"), HashingEmbedder()) as jay:
        ids = jay.store_many(long_facts("fact", 2_500))
        for id in ids[:2_000]:
            jay.forget(id, hard=True)

    assert times_what_lives(quick_path) < 3


def long_facts(name: str, count: int) -> Iterator[dict[str, str]]:
    return ({"content": f"{name} {number} " + "and more " * 20} for number in range(count))


def times_what_lives(folder: Path) -> float:
    """The store's size against one that holds the same living memories and nothing else."""
    used, fresh = folder / "memories.db", folder / "fresh.db"
    with Engine(SqliteStore(used), HashingEmbedder()) as jay, Engine(SqliteStore(fresh), HashingEmbedder()) as other:
        taken_in = other.import_from(jay.export())
    size, live = used.stat().st_size, fresh.stat().st_size
    print(f"{taken_in.stored} memories live: {size / MIB:.2f} MiB against {live / MIB:.2f} MiB: {size / live:.2f}")
    return size / live
