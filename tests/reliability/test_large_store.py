"""A store past the size where vectors are compared one by one: killed at its index's making, opened, served."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.large import fill
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long
from tests.reliability.wholeness import checked, everything, unfindable
from tests.servers.peer import Peer
from tests.stores.test_vec1 import every_table, expected_rows, rows

pytestmark = pytest.mark.process


@short_and_long("rounds", 3, 30)
def test_killed_while_the_index_is_made_and_memories_are_written_nothing_is_lost(tmp_path, chance, rounds):
    """Each round goes on with what the last one left; afterwards the index holds exactly the vectors there are."""
    path = tmp_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"fact {number} of many"} for number in range(1_500))
    acknowledged: dict[str, str] = {}
    for _ in range(rounds):
        with Child("tend_and_write", path, chance.randrange(10**6)) as child:
            for _ in range(chance.randint(1, 12)):
                line = child.hear()
                if line is None:
                    break
                if "id" in line:
                    acknowledged[line["id"]] = line["text"]
            child.kill()
            child.process.wait()

    with closing(SqliteStore(path, index_from=1_000)) as store:
        while store.tend():
            pass
        [table] = every_table(store)
        assert rows(store, table) == expected_rows(store)
        there = {id: memory.content for id, memory in everything(store).items()}
        assert {id: there.get(id) for id in acknowledged} == acknowledged
        assert unfindable(store, list(acknowledged.items())[-20:]) == []
    checked(path, pending=True)


@short_and_long(("memories", "rounds"), (300, 1), (100_000, 20))
def test_a_server_on_many_memories_starts_answers_and_ends_as_quickly_as_on_none(tmp_path, memories, rounds):
    """Of a hundred thousand there is an index."""
    fill(tmp_path / "memories.db", memories)
    stored, ends = [], []
    starts = {home: [] for home in (tmp_path, tmp_path / "empty")}
    (tmp_path / "empty").mkdir()
    for _ in range(rounds):
        for home, taken in starts.items():
            begun = time.monotonic()
            with Peer(home) as peer:
                peer.greet()
                taken.append(time.monotonic() - begun)
                assert not peer.call("store_memory", content="one more fact")["isError"]
                stored.append(time.monotonic() - begun)
                assert not peer.call("search_memories", query="harbour 7")["isError"]
                peer.close_input()
                ended = time.monotonic()
                assert peer.end() == 0
                ends.append(time.monotonic() - ended)
    large, small = (sorted(taken)[rounds // 2] for taken in starts.values())
    print(
        f"{rounds} starts: greeted after {1000 * large:.0f} ms with {memories:,} memories, {1000 * small:.0f} ms with "
        f"none; first store at the latest after {1000 * max(stored):.0f} ms, end within {1000 * max(ends):.0f} ms"
    )
    if rounds > 1:  # one start tells nothing about time
        assert large < 2 * small + 0.1
