"""Many clients send every field they know of: an optional null means "not given", a required one is missing."""

from __future__ import annotations

import jsonschema_rs
import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import InvalidInput
from scrubjay.stores.sqlite.store import SqliteStore

OPERATIONS = [
    pytest.param(operation, id=f"{dialect}-{name}")
    for dialect in [*DIALECTS, *ONLY_REST]
    for name, operation in find(dialect).operations.items()
]


@pytest.fixture
def engine(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as engine:
        yield engine


@pytest.mark.parametrize("operation", OPERATIONS)
def test_nulls_everywhere_are_read_as_nothing_given(operation):
    schema = operation.accepts or operation.takes
    required = schema.get("required", [])
    with_meaning = {name for name, inner in schema["properties"].items() if jsonschema_rs.is_valid(inner, None)}

    nulls = dict.fromkeys(schema["properties"])
    missing = set(required) - with_meaning

    if missing:
        with pytest.raises(InvalidInput, match=r"^[a-z_]+ is required\.$") as refused:
            operation.check(nulls)
        assert refused.value.details["field"] in missing
    else:
        assert set(operation.check(nulls)) == with_meaning


def test_an_optional_null_takes_the_default(engine):
    stored = find("memento").call(
        engine, "store_memory", {"content": "Tea is at four", "confidence": None, "source": None}
    )
    found = find("memento").call(engine, "search_memories", {"query": "tea", "limit": None})

    assert stored.body["created"]["confidence"] == 1.0
    assert [one["content"] for one in found.body["memories"]] == ["Tea is at four"]


def test_a_null_inside_an_object_is_not_given_either(engine):
    reply = find("system").call(
        engine,
        "store_memory",
        {"content": "Tea", "context": {"user_id": None, "conversation_id": None}, "metadata": {"tags": None}},
    )

    assert not reply.failed, reply.body


def test_nulls_in_free_metadata_are_kept(engine):
    reply = find("chimera").call(engine, "remember", {"text": "Tea is at four", "metadata": {"free": None}})

    assert not reply.failed, reply.body
    [memory] = engine.list()
    assert memory.metadata["free"] is None


def test_a_null_that_means_something_keeps_its_meaning(engine):
    system = find("system")
    metadata = {"expires_at": "2999-01-01T00:00:00Z"}
    id = system.call(engine, "store_memory", {"content": "Tea", "metadata": metadata}).body["memory_id"]

    changed = system.call(
        engine, "update_memory", {"memory_id": id, "updates": {"expires_at": None, "tags": None, "content": None}}
    )

    assert changed.body["updated_fields"] == ["expires_at"]
    assert engine.get(id).expires_at is None


def test_a_required_null_is_told_as_missing(engine):
    reply = find("memento").call(engine, "store_memory", {"content": None})

    assert reply.body["error"]["message"] == "content is required."


def test_a_request_with_nulls_is_the_same_request_as_without(engine):
    memento = find("memento")
    first = memento.call(engine, "store_memory", {"content": "Tea"}, key="k")
    again = memento.call(engine, "store_memory", {"content": "Tea", "confidence": None}, key="k")

    assert again.body == first.body
