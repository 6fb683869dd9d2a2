"""A server that lives long: memory, files and threads stay bounded, old work never delays the first answer."""

from __future__ import annotations

import time
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


@short_and_long(("warm_up", "calls"), (600, 900), (1_000, 20_000))
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_thousands_of_mixed_calls_leave_memory_files_and_threads_as_they_were(quick_path, chance, warm_up, calls):
    """Of ten calls two store, so that most of the growth would be a leak; a vector alone is 1.5 kB."""
    texts = Texts(chance)
    with Peer(quick_path) as peer:
        peer.greet()
        use(peer, texts, chance, warm_up)
        before = usage(peer)
        use(peer, texts, chance, calls)
        after = usage(peer)

    growth = (after["memory"] - before["memory"]) / MIB / (calls / 1000)
    print(f"{calls} calls after {warm_up}: {growth:.2f} MiB per 1,000 calls, from {before} to {after}")
    assert growth < 1
    assert after["files"] <= before["files"] + 2
    assert after["threads"] <= before["threads"]


def use(peer: Peer, texts: Texts, chance, calls: int) -> None:
    ids: list[str] = []
    text = texts.next()
    for number in range(calls):
        kind = number % 10
        if kind in (0, 5):
            text = texts.next()
            result = peer.call("store_memory", content=text)
            ids.append(result["structuredContent"]["created"]["id"])
        elif kind == 7 and len(ids) > 2:
            old, new = ids.pop(chance.randrange(len(ids) - 1)), ids[-1]
            result = peer.call("supersede_memory", old_memory_id=old, new_memory_id=new)
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


@short_and_long(("kept", "erased"), (150, 300), (2_000, 2_000))
def test_a_store_after_as_many_erasures_as_writes_is_smaller_than_three_times_what_lives(quick_path, kept, erased):
    """Compared with a store that holds the same living memories and nothing else."""
    path, fresh = quick_path / "memories.db", quick_path / "fresh.db"
    with Engine(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"kept fact {number} " + "and more " * 20} for number in range(kept))
        for number in range(erased):
            stored = jay.store(f"passing fact {number} " + "and more " * 20)
            jay.forget(stored.memory.id, hard=True)
        with Engine(SqliteStore(fresh), HashingEmbedder()) as other:
            other.import_from(jay.export())

    size, live = path.stat().st_size, fresh.stat().st_size
    print(f"{kept} kept, {erased} erased: {size / MIB:.2f} MiB against {live / MIB:.2f} MiB: {size / live:.2f}")
    assert size < 3 * live
