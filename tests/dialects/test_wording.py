"""Errors speak of what the caller wrote: its own names for fields, suggestions only where one was meant."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import InvalidInput
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Kind, NewMemory
from scrubjay.values.spelling import nearest


@pytest.fixture
def engine(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as engine:
        yield engine


def told(engine, dialect, operation, **arguments) -> str:
    reply = find(dialect).call(engine, operation, arguments)
    assert reply.failed
    return reply.text


@pytest.mark.parametrize(
    ("dialect", "operation", "arguments", "field"),
    [
        ("system", "store_memory", {"content": "Tea", "context": {"timestamp": "2999-01-01"}}, "context.timestamp"),
        ("system", "store_memory", {"content": "Tea", "context": {"user_id": " "}}, "context.user_id"),
        ("system", "store_memory", {"content": "Tea", "metadata": {"tags": [" "]}}, "metadata.tags"),
        ("system", "update_memory", {"memory_id": "x" * 300, "updates": {"importance": 1}}, "memory_id"),
        ("chimera", "remember", {"text": " "}, "text"),
        ("chimera", "batch_remember", {"memories": [{"text": " "}]}, "text"),
        ("memento", "store_memory", {"content": " "}, "content"),
    ],
)  # fmt: skip
def test_a_field_is_named_as_the_caller_wrote_it(engine, dialect, operation, arguments, field):
    assert field in told(engine, dialect, operation, **arguments)


def test_an_unknown_field_is_not_renamed(engine):
    """`content` is `text` in this dialect; a caller who writes `content` must read `content`."""
    assert "content is not known. Did you mean text?" in told(engine, "chimera", "remember", content="Tea")


@pytest.mark.parametrize(
    ("wrong", "known", "meant"),
    [
        ("contnet", ["content", "confidence"], "content"),
        ("memoryId", ["memory_id", "updates"], "memory_id"),
        ("id", ["memory_id", "updates"], "memory_id"),
        ("top_k", ["query", "limit"], "limit"),
        ("text", ["query", "limit"], "query"),
        ("tag", ["tags", "content"], "tags"),
        ("desicion", ["topic", "decision", "confidence"], "decision"),
        ("Qeury", ["query", "limit"], "query"),
        ("evidence", ["topic", "decision", "confidence"], None),
        ("form", ["type", "topic"], None),
        ("no", ["on"], None),
        ("user", ["query", "limit"], None),
    ],
)
def test_a_suggestion_is_what_was_meant_or_is_not_given(wrong, known, meant):
    assert nearest(wrong, known) == meant


@pytest.mark.parametrize(
    ("dialect", "operation", "arguments", "message"),
    [
        ("memento", "store_memory", {"contnet": "Tea"}, "content is required, and contnet is not known. Did you mean"),
        ("mama", "save", {"type": "decision", "desicion": "At four"}, "desicion is not known. Did you mean decision?"),
        ("chimera", "remember", {"content": "Tea"}, "text is required, and content is not known. Did you mean text?"),
        ("native", "store_memory", {"contnet": "Tea", "x": 1}, "content is required, and contnet is not known."),
        ("memento", "store_memory", {"evidence": "Tea"}, "evidence is not known. Known: content"),
        ("system", "update_memory", {"memory_id": "m", "update": {"importance": 1}}, "updates is required, and update"),
        (
            "chimera",
            "batch_remember",
            {"memories": [{"txet": "Tea"}]},
            "memories[0].text is required, and txet is not known. Did you mean text?",
        ),
    ],
)
def test_a_required_field_that_was_misspelt_is_told_as_that(engine, dialect, operation, arguments, message):
    assert message in told(engine, dialect, operation, **arguments)


def test_the_library_and_imports_tell_it_too(engine):
    for give in (lambda line: engine.store(line), lambda line: engine.transfer.import_from([line])):
        with pytest.raises(InvalidInput, match="content is required, and contnet is not known"):
            give({"contnet": "Tea is at four"})


def test_a_refusal_names_no_tool_that_the_dialect_does_not_have(engine):
    """Cortex has no `save`, with which mama's decisions are replaced."""
    new = NewMemory(content="Use PostgreSQL", kind=Kind.DECISION, topic="database", path="decisions/database/one")
    path = engine.store(new).memory.path

    message = told(engine, "cortex", "update_memory", store="default", path=path, content="Use SQLite")

    assert "Use save" not in message
    assert "mama" in message


def test_a_version_that_is_not_there_sends_a_model_to_no_shell(engine):
    memory = engine.store(NewMemory(content="Tea is at four.")).memory

    message = told(engine, "system", "restore_memory", memory_id=memory.id, version_id="ver_nope")

    assert "scrubjay history" not in message
    assert (
        "previous_version_id"
        in find("system")
        .call(engine, "update_memory", {"memory_id": memory.id, "updates": {"content": "Tea is at five."}})
        .text
    )


def test_a_restore_that_names_nothing_is_told_what_to_name(engine):
    message = told(engine, "system", "restore_memory")

    assert "Give exactly one of memory_id, archive_id, memory_ids." in message
