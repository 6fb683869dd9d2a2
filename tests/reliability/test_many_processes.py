"""Many processes on one file: nothing is lost, nobody is refused, and each sees at once what the others wrote."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Queue
from statistics import quantiles

import pytest

from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.rounds import PATIENCE, short_and_long
from tests.reliability.wholeness import checked, everything, unfindable
from tests.servers.peer import Peer

pytestmark = pytest.mark.process

NAMES = "bcdfghjklm"


@short_and_long(("processes", "threads", "stores", "watched"), (4, 4, 8, True), (4, 4, 50, False))
def test_sixteen_writers_in_four_processes_lose_nothing_and_refuse_nobody(
    tmp_path, processes, threads, stores, watched
):
    write_together(tmp_path / "memories.db", processes, threads, stores, watched=watched)


@short_and_long(("processes", "stores"), (10, 8), (10, 50))
def test_each_of_ten_processes_finds_at_once_what_another_has_written(tmp_path, processes, stores):
    """All of them open the store, which is not there yet, at the same time."""
    write_together(tmp_path / "memories.db", processes, 1, stores, watched=True)


@short_and_long("rounds", 1, 30)
def test_ten_servers_started_at_once_on_an_empty_home_make_one_store_and_all_serve_it(tmp_path, rounds):
    for number in range(rounds):
        home = tmp_path / str(number)
        with ExitStack() as stack:
            peers = [stack.enter_context(Peer(home)) for _ in range(10)]
            for peer in peers:
                peer.greet()
            writers = zip(NAMES, peers, strict=True)
            stored = [peer.call("store_memory", content=f"from {name}") for name, peer in writers]
            seen = [peer.call("list_recent_memories", limit=50)["structuredContent"]["memories"] for peer in peers]
            for peer in peers:
                peer.close_input()
            for peer in peers:
                assert peer.end(seconds=PATIENCE) == 0
            errors = [peer.errors for peer in peers]

        assert [result["structuredContent"] for result in stored if result["isError"]] == []
        texts = {f"from {name}" for name in NAMES}
        assert [{memory["content"] for memory in memories} for memories in seen] == [texts] * 10
        assert errors == [b""] * 10
        assert checked(home / "memories.db").memories == 10
        assert {file.name for file in home.iterdir()} <= {
            "memories.db", "memories.db-wal", "memories.db-shm", "memories.db.lock", "memories.db.turn", "run"
        }  # fmt: skip


def write_together(path: Path, processes: int, threads: int, stores: int, *, watched: bool) -> None:
    """Let processes write at the same time; with `watched`, look for each write as soon as it is acknowledged."""
    said: Queue = Queue()
    written: dict[str, str] = {}
    refused, stale, milliseconds = [], [], []
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child("write", path, NAMES[number], threads, stores, said=said))
            for number in range(processes)
        ]
        for _ in children:
            child, line = said.get(timeout=PATIENCE)
            assert line == {"ready": True}, child.errors
        reader = stack.enter_context(closing(SqliteStore(path)))
        begun = ended = time.monotonic()
        for child in children:
            child.tell()
        running = processes
        while running:
            child, line = said.get(timeout=PATIENCE)
            if line is None:
                running -= 1
            elif "refused" in line:
                refused.append(line["refused"])
            elif "id" in line:
                ended = time.monotonic()
                written[line["id"]] = line["text"]
                milliseconds.append(line["milliseconds"])
                if watched:
                    stale += unfindable(reader, [(line["id"], line["text"])])
        for child in children:
            child.end()
        assert [child.errors for child in children] == [b""] * processes

    assert refused == []
    assert stale == []
    assert len(written) == processes * threads * stores
    assert checked(path).memories == len(written)
    with closing(SqliteStore(path)) as store:
        assert {id: memory.content for id, memory in everything(store).items()} == written
        assert unfindable(store, written.items()) == []
    slowest = quantiles(milliseconds, n=100, method="inclusive")
    print(
        f"{processes} processes x {threads} writers x {stores} stores{', watched' if watched else ''}: lost 0, "
        f"refused 0, stale {0 if watched else '-'}, p50 {slowest[49]:.0f} ms, p99 {slowest[98]:.0f} ms, "
        f"worst {max(milliseconds):.0f} ms, {len(written) / (ended - begun):.0f} writes/s"
    )
    if not watched:  # a figure of the long version only: elsewhere it would measure the machine
        assert slowest[98] < 500
