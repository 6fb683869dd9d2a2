"""Backups under writers: each holds all that was acknowledged before it began, and is whole."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite import backup as sqlite_backup
from scrubjay.stores.sqlite.store import SqliteStore
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long
from tests.reliability.wholeness import checked, everything

pytestmark = pytest.mark.process


@short_and_long("backups", 3, 30)
def test_a_backup_under_eight_writers_holds_all_that_was_acknowledged_before_it_began(quick_path, backups):
    path = quick_path / "memories.db"
    written: dict[str, str] = {}
    stop = threading.Event()

    def hear(child: Child) -> None:
        while not stop.is_set() and (line := child.hear()) is not None:
            if "id" in line:
                written[line["id"]] = line["text"]

    with Child("write", path, "b", 4, 100_000) as one, Child("write", path, "c", 4, 100_000) as other:
        for child in (one, other):
            assert child.hear() == {"ready": True}
            child.tell()
        listeners = [threading.Thread(target=hear, args=(child,)) for child in (one, other)]
        for listener in listeners:
            listener.start()
        copies = []
        with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
            for number in range(backups):
                before = dict(written)
                while len(written) < len(before) + 8:
                    stop.wait(0.01)
                before = dict(written)
                jay.upkeep.backup(quick_path / f"{number}.db")
                copies.append((quick_path / f"{number}.db", before))
        stop.set()
        for child in (one, other):
            child.kill()
        for listener in listeners:
            listener.join()

    for copy, before in copies:
        target = copy.with_name(f"restored-{copy.name}")
        sqlite_backup.restore(copy, target)
        checked(target, pending=True)
        with closing(SqliteStore(target)) as store:
            there = {id: memory.content for id, memory in everything(store).items()}
        assert {id: there.get(id) for id in before} == before
    print(f"{backups} backups under 8 writers, the last of at least {len(copies[-1][1])} memories: nothing missing")
