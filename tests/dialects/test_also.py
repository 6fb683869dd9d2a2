"""Every dialect offers other words, for what is stored and for what is asked, beside what its paper defines."""

from __future__ import annotations

import json
from dataclasses import replace

import jsonschema_rs
import pytest

from scrubjay.dialects.base import PHRASES, WORDINGS
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.calls import offered_dialect
from scrubjay.values.search import Filter

BOAT = "The Ottilie is moored at pier four"
ALSO = ["where is the sailing boat?", "berth"]
TEXTS = {"content", "text", "decision", "summary"}
QUESTIONS = {"query", "question", "search"}
NOT_MEMORIES = {  # messages of a conversation; a client's suggestion, in its words; memories as another store has them
    ("chimera", "send_message"),
    ("native", "accept_suggestion"),
    ("native", "sync_take"),
}

# What each operation is asked to store, without its phrases; and where in the arguments they go.
STORES = {
    ("scrubjay", "remember"): {"facts": [{"content": BOAT}]},
    ("memento", "store_memory"): {"content": BOAT},
    ("cortex", "add_memory"): {"store": "default", "path": "boat/berth", "content": BOAT},
    ("cortex", "cortex_add_memory"): {"store": "default", "path": "boat/berth", "content": BOAT},
    ("system", "store_memory"): {"content": BOAT},
    ("mama", "save"): {"type": "decision", "topic": "pier", "decision": BOAT, "reasoning": "It is sheltered."},
    ("mama", "save_decision"): {"topic": "pier", "decision": BOAT, "reasoning": "It is sheltered."},
    ("mama", "save_checkpoint"): {"summary": BOAT},
    ("chimera", "remember"): {"text": BOAT},
    ("chimera", "create_memory"): {"workspace_id": "workspace-default", "content": BOAT},
    ("chimera", "batch_remember"): {"memories": [{"text": BOAT}]},
    ("native", "store_memory"): {"content": BOAT},
}
UPDATES = {
    ("scrubjay", "revise"): {"reason": "the user's words"},
    ("cortex", "update_memory"): {"store": "default", "path": "boat/berth"},
    ("cortex", "cortex_update_memory"): {"store": "default", "path": "boat/berth"},
    ("system", "update_memory"): {"updates": {}},
    ("chimera", "update_memory"): {},
    ("native", "update_memory"): {},
}
SEARCHES = {
    ("scrubjay", "recall"): {"question": "Where does she lie?"},
    ("memento", "search_memories"): {"query": "Where does she lie?"},
    ("system", "recall_memories"): {"query": "Where does she lie?"},
    ("mama", "search"): {"query": "Where does she lie?"},
    ("mama", "recall_decision"): {"topic": "Where does she lie?"},
    ("mama", "suggest_decision"): {"question": "Where does she lie?"},
    ("chimera", "search"): {"query": "Where does she lie?"},
    ("chimera", "list_workspace_memories"): {"workspace_id": "workspace-default", "search": "Where does she lie?"},
    ("native", "search"): {"query": "Where does she lie?"},
}


def objects(schema):
    """Every object of a schema, outer ones first."""
    if "properties" in schema:
        yield schema["properties"]
        for inner in schema["properties"].values():
            yield from objects(inner)
    if isinstance(schema.get("items"), dict):
        yield from objects(schema["items"])


def offering(changes, names):
    """The operations with a field of these names."""
    return {
        (dialect, name)
        for dialect in (*DIALECTS, *ONLY_REST)
        for name, operation in find(dialect).operations.items()
        if operation.changes is changes and any(names & set(fields) for fields in objects(operation.takes))
    }


def with_also(arguments, also):
    """The arguments with other words, where they belong."""
    for name in ("facts", "memories"):
        if name in arguments:
            return {name: [{**one, "also": also} for one in arguments[name]]}
    if "updates" in arguments:
        return {**arguments, "updates": {"also": also}}
    return {**arguments, "also": also}


def test_no_operation_that_stores_or_asks_is_left_out():
    assert offering(True, TEXTS) - NOT_MEMORIES == {*STORES, *UPDATES}
    assert offering(False, QUESTIONS) | {("mama", "recall_decision")} == {*SEARCHES}


@pytest.mark.parametrize(("dialect", "name"), [*STORES, *UPDATES, *SEARCHES])
def test_it_is_advertised_as_an_optional_argument(dialect, name):
    operation = find(dialect).operations[name]
    [offer] = [fields["also"] for fields in objects(operation.takes) if "also" in fields]
    searches = (dialect, name) in SEARCHES

    wanted = WORDINGS if searches else PHRASES
    assert (offer["type"], offer["items"], offer["maxItems"]) == ("array", wanted["items"], wanted["maxItems"])
    assert not any("also" in one.get("required", ()) for one in (operation.takes, operation.accepts or {}))
    if name != "revise":
        assert offer["description"] == wanted["description"]


@pytest.mark.parametrize(("dialect", "name"), STORES)
def test_what_is_stored_is_found_by_its_phrases_and_the_reply_is_the_same(open_engine, dialect, name):
    jay = open_engine()

    said = find(dialect).call(jay, name, with_also(STORES[dialect, name], ALSO))

    assert not said.failed, said.text
    [memory] = jay.list(Filter()).memories
    assert memory.also == tuple(ALSO)
    assert jay.search("berth", words_only=True)[0].memory.id == memory.id
    if dialect != "native":
        assert "sailing" not in said.text
        assert jsonschema_rs.is_valid(find(dialect).operations[name].gives, said.body)


@pytest.mark.parametrize(("dialect", "name"), UPDATES)
def test_an_update_changes_clears_or_leaves_them(open_engine, dialect, name):
    jay = open_engine()
    id = find("cortex").call(jay, "add_memory", with_also(STORES["cortex", "add_memory"], ALSO)).body["id"]
    named = {"scrubjay": {"id": id}, "native": {"id": id}, "cortex": {}}.get(dialect, {"memory_id": id})
    named = {"memory_id": f"memory-{id.removeprefix('mem_')}"} if dialect == "chimera" else named

    def update(also):
        said = find(dialect).call(jay, name, {**with_also(UPDATES[dialect, name], also), **named})
        assert not said.failed, said.text
        return jay.get(id)

    changed = update(["yacht"])
    assert (changed.also, changed.content, changed.version) == (("yacht",), BOAT, 1)
    assert update([]).also == ()


@pytest.mark.parametrize(("dialect", "name"), SEARCHES)
def test_other_wordings_find_what_the_question_does_not(open_engine, dialect, name):
    jay = open_engine()
    find("mama").call(jay, "save", STORES["mama", "save"])
    find("mama").call(jay, "save_decision", {"topic": "bread", "decision": "We bake rye", "reasoning": "It keeps."})

    said = find(dialect).call(jay, name, with_also(SEARCHES[dialect, name], ["the Ottilie's pier", "moored at"]))

    assert not said.failed, said.text
    assert BOAT in json.dumps(said.body)
    assert "rye" not in json.dumps(said.body).partition(BOAT)[0]  # the boat comes first


@pytest.mark.parametrize(("dialect", "name"), [*STORES, *SEARCHES])
def test_null_means_none(open_engine, dialect, name):
    jay = open_engine()
    arguments = {**STORES, **SEARCHES}[dialect, name]

    assert not find(dialect).call(jay, name, with_also(arguments, None)).failed


@pytest.mark.parametrize(("dialect", "name"), [*STORES, *UPDATES, *SEARCHES])
def test_switched_off_it_is_neither_offered_nor_accepted(open_engine, dialect, name):
    plain = offered_dialect(find(dialect), also=False)
    operation = plain.operations[name]

    assert "also" not in json.dumps([list(fields) for fields in objects(operation.takes)])
    arguments = {**STORES, **UPDATES, **SEARCHES}[dialect, name]
    said = plain.call(open_engine(), name, with_also({**arguments, **needed(operation, arguments)}, ALSO))
    assert said.failed
    assert "also" in said.text
    assert "not known" in said.text


def needed(operation, arguments):
    """Some value for what is required and not given."""
    return {name: "mem_000000000000" for name in operation.takes.get("required", ()) if name not in arguments}


def test_what_is_switched_off_leaves_everything_else_as_it_is():
    for name in (*DIALECTS, *ONLY_REST):
        dialect, plain = find(name), offered_dialect(find(name), also=False)

        assert [*plain.operations] == [*dialect.operations]
        assert plain == replace(dialect, operations=plain.operations)
        assert offered_dialect(dialect, also=True) is dialect
