"""A PostgreSQL store at the other end of a sync: both sides end up with the same."""

from __future__ import annotations

from contextlib import closing

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.postgres.store import PostgresStore
from tests.stores.contract.suite import EVERYTHING

pytestmark = [pytest.mark.postgres, pytest.mark.process]


def test_memories_travel_to_postgresql_and_back(open_engine, clock, postgres_store) -> None:
    url = postgres_store("endpoint")
    jay = open_engine()
    jay.sync.add("drive", url)
    ours = jay.store("User lives in Seattle").memory
    with closing(engine_on(PostgresStore(url), HashingEmbedder(), clock=clock)) as drive:
        theirs = drive.store("User likes green tea").memory
        jay.sync.run(destination="drive")

        clock.move(minutes=1)
        drive.forget(ours.id)
        jay.update(theirs.id, content="User likes black tea")
        jay.sync.run(destination="drive")

        for engine in (jay, drive):
            assert [hit.memory.content for hit in engine.search("tea", words_only=True)] == ["User likes black tea"]
            assert list(engine.search("Seattle", words_only=True)) == []
        stamps = [engine.records.sync.stamps([ours.id, theirs.id], EVERYTHING) for engine in (jay, drive)]
        assert stamps[0] == stamps[1]
        assert len(stamps[0]) == 2
