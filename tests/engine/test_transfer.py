"""Out as lines of JSON and in again, with every field."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from scrubjay.dialects.mama import mama
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.errors import InvalidInput
from scrubjay.memory import Memory
from scrubjay.stores.sqlite import SqliteStore


@pytest.fixture
def other(tmp_path, clock):
    with Engine(SqliteStore(tmp_path / "other" / "memories.db"), HashingEmbedder(), clock=clock) as engine:
        yield engine


def through_json(lines):
    return [json.loads(json.dumps(line)) for line in lines]


@pytest.mark.parametrize(
    "line",
    [
        {"content": "  "},
        {"content": "x", "colour": "red"},
        {"content": "x", "status": "lost"},
        {"content": "x", "created_at": "yesterday"},
        {"content": "x", "created_at": True},
        {"content": "x", "created_at": 1e300},
        {"content": "x", "id": ""},
        {"content": "x", "id": "a\nb"},
        {"content": "x", "id": "x" * 1_000},
        {"content": "x", "superseded_by": ["mem_1"]},
        {"content": "x", "supersedes": 5},
        {"content": "x", "version": 0},
        {"content": "x", "version": "2"},
        {"content": "x", "version": 2**70},
        {"content": "x", "access_count": -1},
        {"type": "link", "kind": "supersedes"},
        {"type": "link", "kind": "related", "source": 5, "target": "b", "created_at": "2026-01-01T00:00:00Z"},
        {"type": "link", "kind": "loves", "source": "a", "target": "b", "created_at": "2026-01-01T00:00:00Z"},
        {"type": "scrubjay", "format": 99},
        {"type": "cat"},
        {"no": "content"},
        "text",
        7,
        None,
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_of_its_batch_is_kept(jay, line):
    with pytest.raises(InvalidInput, match="Line 2"):
        jay.import_from([{"content": "fine"}, line])

    assert jay.list(counted=True).total == 0


def test_every_field_travels(jay, other, clock):
    old = jay.store("User lives in Seattle").memory
    new = jay.store(
        "User moved to Austin",
        tags=["home", "city"],
        category="event",
        importance=0.8,
        confidence=0.7,
        source="explicit",
        access_level="private",
        conversation_id="c1",
        session_id="s1",
        metadata={"n": 1, "nested": {"x": [1, 2]}},
        title="The move",
        path="life/the-move",
        created_at=clock() - timedelta(days=400),
        expires_at=clock() + timedelta(days=400),
        valid_from=clock() - timedelta(days=10),
    ).memory
    jay.supersede(old=old.id, new=new.id)
    jay.forget(jay.store("deleted softly").memory.id)

    result = other.import_from(through_json(jay.export()))

    assert result.stored == 3
    assert result.links == 1
    for memory in (old, new):
        theirs, ours = other.get(memory.id), jay.get(memory.id)
        for field in fields(Memory):
            if field.name not in ("hlc", "origin", "seq"):
                assert getattr(theirs, field.name) == getattr(ours, field.name), field.name
    assert [link.kind for link in other.links(new.id)] == ["supersedes"]


def test_importing_twice_changes_nothing(jay, other):
    jay.store_many({"content": f"memory {number}"} for number in range(100))
    lines = through_json(jay.export())
    other.import_from(lines)

    result = other.import_from(lines)

    assert (result.stored, result.already_here) == (0, 100)
    assert other.list(counted=True).total == 100


def test_imported_memories_are_found_by_words_and_by_meaning(jay, other):
    jay.store("The spare key hangs behind the boiler")

    other.import_from(through_json(jay.export()))

    [hit] = other.search("spare key", explain=True)
    assert hit.explanation.words
    assert hit.explanation.cosine is not None


def test_a_list_made_by_hand_comes_in_as_new_memories(jay):
    result = jay.import_from([{"content": "User likes tea"}, {"content": "User likes jazz", "tags": ["music"]}])

    assert result.stored == 2
    assert [memory.provenance.transport for memory in jay.list()] == ["import", "import"]


@pytest.mark.parametrize("when", [1732530000, 1732530000.0, 1732530000000, "2024-11-25T10:20:00Z"])
def test_a4_3_times_in_seconds_and_in_milliseconds_come_in(jay, when):
    jay.import_from([{"content": "Use Redis", "kind": "decision", "topic": "caching", "created_at": when}])

    [row] = mama.call(jay, "search", {}).body["results"]
    assert row["created_at"] == 1732530000


def test_decisions_of_a_list_made_by_hand_form_a_chain(jay, clock):
    def line(content, at):
        return {"content": content, "kind": "decision", "topic": "caching", "created_at": at}

    now = int(clock().timestamp())
    jay.decisions.save("caching", "Use what there is")
    jay.import_from([line("Use Redis", now - 9), line("Use Memcached", now - 6), line("Use an LRU cache", now - 3)])

    chain = jay.decisions.chain("caching")
    assert [one.content for one in chain] == ["Use what there is", "Use an LRU cache", "Use Memcached", "Use Redis"]
    assert [one.content for one in chain if one.superseded_by is None] == ["Use what there is"]


def test_a_path_that_is_taken_gets_a_number(jay, other):
    jay.store("one", path="notes/same")
    other.store("two", path="notes/same")

    other.import_from(through_json(jay.export()))

    assert sorted(memory.path for memory in other.list()) == ["notes/same", "notes/same-2"]


def test_an_export_is_the_same_whatever_the_page_size(jay, monkeypatch):
    jay.store_many({"content": f"memory {number}"} for number in range(25))
    whole = list(jay.export())

    monkeypatch.setattr("scrubjay.engine.transfer.PAGE", 4)

    assert [line.get("id") for line in jay.export()] == [line.get("id") for line in whole]


def test_a_memory_of_another_store_keeps_its_id(jay, other):
    memory = jay.store("x").memory

    other.import_from(through_json(jay.export()))

    assert replace(other.get(memory.id), hlc=0, origin="", seq=0) == replace(memory, hlc=0, origin="", seq=0)
