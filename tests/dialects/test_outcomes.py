"""A decision that failed is not a plain fact, whichever dialect shows it."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.conversations import fence
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore

TOLD = "(decision; failed: it could not keep up with the orders)"


@pytest.fixture
def engine(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as engine:
        saved = find("mama").call(
            engine,
            "save",
            {"type": "decision", "topic": "queue", "decision": "Use RabbitMQ", "reasoning": "It is what we know"},
        )
        find("mama").call(
            engine,
            "update",
            {"id": saved.body["id"], "outcome": "FAILED", "reason": "it could not keep up with the orders"},
        )
        yield engine


@pytest.mark.parametrize(
    ("dialect", "operation", "arguments"),
    [
        ("memento", "search_memories", {"query": "RabbitMQ"}),
        ("memento", "list_recent_memories", {}),
        ("system", "recall_memories", {"query": "RabbitMQ"}),
        ("chimera", "search", {"query": "RabbitMQ"}),
    ],
)
def test_its_outcome_is_told_with_its_text(engine, dialect, operation, arguments):
    assert TOLD in find(dialect).call(engine, operation, arguments).text


def test_its_outcome_is_told_in_a_conversations_context(engine):
    [memory] = engine.list()

    assert TOLD in fence.fence_memories([memory])


def test_its_outcome_is_told_to_who_reads_it_by_its_path(engine):
    [memory] = engine.list()

    assert TOLD in find("cortex").call(engine, "get_memory", {"store": "default", "path": memory.path}).text


def test_what_is_told_is_not_part_of_the_text(engine):
    """Else it would be searched, embedded and written back from files."""
    [memory] = engine.list()

    assert memory.text == "Use RabbitMQ\n\nIt is what we know"
