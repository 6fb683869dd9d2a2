"""Being shown is not a use: what counts is what an agent was handed, the first ten of a call, once."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Provenance


@pytest.fixture
def engine(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as engine:
        for number in range(15):
            engine.store(f"Tea is served in room {number}")
        yield engine


def count_uses(engine) -> int:
    return sum(memory.access_count for memory in engine.list(limit=100))


def test_the_first_ten_hits_of_a_search_count_once(engine):
    found = find("memento").call(engine, "search_memories", {"query": "tea", "limit": 20}).body["memories"]

    assert len(found) == 15
    assert count_uses(engine) == 10
    assert all(engine.get(memory["id"]).access_count == 1 for memory in found[:10])


@pytest.mark.parametrize(
    "provenance", [Provenance(transport="cli"), Provenance(transport="http", dialect="native")], ids=["cli", "page"]
)
def test_what_a_person_sees_counts_nothing(engine, provenance):
    assert len(engine.bound_to(provenance=provenance).search("tea")) > 0

    assert count_uses(engine) == 0


def test_who_was_shown_a_memory_is_known_all_the_same(engine):
    """A poisoned memory is followed to everyone who saw it, the page included."""
    person = engine.bound_to(provenance=Provenance(transport="http", dialect="native", client="page"))
    found = person.search("tea", limit=15)

    assert len(found) == 15
    for hit in found:
        assert [recall.client for recall in engine.curation.shown_to(hit.memory.id)] == ["page"]


def test_reading_by_path_counts_once(engine):
    [memory] = engine.list(limit=1)

    find("cortex").call(engine, "get_memory", {"store": "default", "path": memory.path})

    assert engine.get(memory.id).access_count == 1
