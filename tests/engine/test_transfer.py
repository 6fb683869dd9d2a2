"""Out as lines of JSON and in again, with every field."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from dataclasses import fields, replace
from datetime import timedelta

import pytest

from scrubjay.dialects.mama import mama
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.engine.transfer import BATCH_OF_TEXTS, Transfer
from scrubjay.errors import Conflict, InvalidInput, QuotaExceeded
from scrubjay.stores.promises.memories import Request
from scrubjay.stores.sqlite.connections import Connections
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import Kind, LinkKind, Memory, NewMemory, State
from scrubjay.values.search import Filter


@pytest.fixture
def other(tmp_path, clock):
    with engine_on(SqliteStore(tmp_path / "other" / "memories.db"), HashingEmbedder(), clock=clock) as engine:
        yield engine


def through_json(lines):
    return [json.loads(json.dumps(line)) for line in lines]


LINK = {"type": "link", "kind": "related", "source": "a", "target": "b", "created_at": "2026-01-01T00:00:00Z"}


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
        {"content": "x", "id": "attic/checkpoint_1"},
        {"content": "x", "id": "checkpoint_1"},
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
        *(
            {**LINK, name: value}
            for name, value in (
                ("score", "nan"),
                ("score", "inf"),
                ("score", True),
                ("reason", {"a": 1}),
                ("reason", 5),
                ("reason", "x" * 1_000_000),
                ("state", "weird"),
                ("state", 7),
                ("given", "x"),
                ("given", None),
            )
        ),
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
        jay.transfer.import_from([{"content": "fine"}, line])

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

    result = other.transfer.import_from(through_json(jay.transfer.export()))

    assert result.stored == 3
    assert result.links == 1
    for memory in (old, new):
        theirs, ours = other.get(memory.id), jay.get(memory.id)
        for field in fields(Memory):
            if field.name not in ("hlc", "origin", "seq"):
                assert getattr(theirs, field.name) == getattr(ours, field.name), field.name
    assert [link.kind for link in other.links(new.id)] == ["supersedes"]


def test_two_imports_of_the_same_lines_at_once_bring_each_memory_once(jay, other, monkeypatch):
    """The other one comes after the first has looked which of them are here, and before it writes."""
    jay.store_many({"content": f"memory {number}"} for number in range(3))
    lines = through_json(jay.transfer.export())
    write = Transfer.add_all

    def beaten(engine, *given, **named):
        monkeypatch.setattr(Transfer, "add_all", write)
        assert other.transfer.import_from(lines[:2]).stored == 1
        return write(engine, *given, **named)

    monkeypatch.setattr(Transfer, "add_all", beaten)
    result = other.transfer.import_from(lines)

    assert (result.stored, result.already_here) == (2, 1)
    assert other.list(counted=True).total == 3


@pytest.mark.parametrize("verb", ["known_ids", "add_all"])
@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("done", [False, True])
def test_wherever_an_import_is_interrupted_the_lines_it_names_are_in(jay, monkeypatch, verb, at, done):
    """The first line of the second batch repeats an id of the first one: that it is here says nothing of the others."""
    ids = [f"m{number}" for number in range(128)]
    ids[64] = "m3"
    act, calls, told = getattr(Transfer, verb), iter(range(9)), [0]

    def interrupted(engine, *given, **named):
        now = next(calls, None) == at
        if now and not done:
            raise KeyboardInterrupt
        result = act(engine, *given, **named)
        if now:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Transfer, verb, interrupted)
    with suppress(KeyboardInterrupt):
        jay.transfer.import_from(({"id": id, "content": f"fact {id}"} for id in ids), progress=told.append)
    monkeypatch.undo()

    assert jay.transfer.known_ids(ids) >= {*ids[: told[-1]]}


def test_a_quota_does_not_refuse_what_another_import_has_brought(open_engine, monkeypatch):
    jay = open_engine(quota=3)
    lines, write = [{"id": f"m{number}", "content": f"fact {number}"} for number in range(2)], Transfer.add_all

    def beaten(engine, *given, **named):
        monkeypatch.setattr(Transfer, "add_all", write)
        jay.transfer.import_from(lines)
        return write(engine, *given, **named)

    monkeypatch.setattr(Transfer, "add_all", beaten)

    assert jay.transfer.import_from(lines).already_here == 2


def test_importing_twice_changes_nothing(jay, other):
    jay.store_many({"content": f"memory {number}"} for number in range(100))
    lines = through_json(jay.transfer.export())
    other.transfer.import_from(lines)

    result = other.transfer.import_from(lines)

    assert (result.stored, result.already_here) == (0, 100)
    assert other.list(counted=True).total == 100


def test_imported_memories_are_found_by_words_and_by_meaning(jay, other):
    jay.store("The spare key hangs behind the boiler")

    other.transfer.import_from(through_json(jay.transfer.export()))

    [hit] = other.search("spare key", explain=True)
    assert hit.explanation.words
    assert hit.explanation.cosine is not None


def test_a_list_made_by_hand_comes_in_as_new_memories(jay):
    result = jay.transfer.import_from(
        [{"content": "User likes tea"}, {"content": "User likes jazz", "tags": ["music"]}]
    )

    assert result.stored == 2
    assert [memory.provenance.transport for memory in jay.list()] == ["import", "import"]


@pytest.mark.parametrize("when", [1732530000, 1732530000.0, 1732530000000, "2024-11-25T10:20:00Z"])
def test_a4_3_times_in_seconds_and_in_milliseconds_come_in(jay, when):
    jay.transfer.import_from([{"content": "Use Redis", "kind": "decision", "topic": "caching", "created_at": when}])

    [row] = mama.call(jay, "search", {}).body["results"]
    assert row["created_at"] == 1732530000


def test_decisions_of_a_list_made_by_hand_form_a_chain(jay, clock):
    def line(content, at):
        return {"content": content, "kind": "decision", "topic": "caching", "created_at": at}

    now = int(clock().timestamp())
    jay.decisions.save("caching", "Use what there is")
    jay.transfer.import_from(
        [line("Use Redis", now - 9), line("Use Memcached", now - 6), line("Use an LRU cache", now - 3)]
    )

    chain = jay.decisions.chain("caching")
    assert [one.content for one in chain] == ["Use what there is", "Use an LRU cache", "Use Memcached", "Use Redis"]
    assert [one.content for one in chain if one.superseded_by is None] == ["Use what there is"]


def test_lines_with_the_same_path_get_numbers_and_private_ones_keep_it(jay):
    jay.store("here", path="notes/a")
    lines = [
        {"content": "one", "path": "notes/a"},
        {"content": "two", "path": "notes/b"},
        {"content": "three", "path": "notes/b", "access_level": "private"},
        {"content": "four", "path": "notes/b"},
        {"content": "five", "path": "notes/a-2"},
    ]

    jay.transfer.import_from(lines)

    paths = {memory.content: memory.path for memory in jay.list()}
    assert [paths[name] for name in ("here", "one", "two", "three", "four", "five")] == [
        "notes/a", "notes/a-2", "notes/b", "notes/b", "notes/b-2", "notes/a-2-2",
    ]  # fmt: skip


def test_a_path_that_is_taken_gets_a_number(jay, other):
    jay.store("one", path="notes/same")
    other.store("two", path="notes/same")

    other.transfer.import_from(through_json(jay.transfer.export()))

    assert sorted(memory.path for memory in other.list()) == ["notes/same", "notes/same-2"]


def test_an_export_is_the_same_whatever_the_page_size(jay, monkeypatch):
    jay.store_many({"content": f"memory {number}"} for number in range(25))
    whole = list(jay.transfer.export())

    monkeypatch.setattr("scrubjay.engine.transfer.PAGE", 4)

    assert [line.get("id") for line in jay.transfer.export()] == [line.get("id") for line in whole]


def test_a_memory_of_another_store_keeps_its_id(jay, other):
    memory = jay.store("x").memory

    other.transfer.import_from(through_json(jay.transfer.export()))

    assert replace(other.get(memory.id), hlc=0, origin="", seq=0) == replace(memory, hlc=0, origin="", seq=0)


CLAIMS = {
    "id": "mem_claimed00001",
    "content": "Ottilie signs every invoice herself",
    "provenance": {"client": "payroll", "caller": "ottilie", "transport": "http", "dialect": "memento"},
    "verified_at": "2026-11-01T00:00:00.000Z",
    "access_count": 40,
    "accessed_at": "2026-11-02T00:00:00.000Z",
    "superseded_by": "mem_of_another_0",
    "supersedes": "mem_of_another_1",
}


def test_a_member_cannot_import_who_wrote_verified_or_read_a_memory(jay):
    """Its own credential stands; the text comes in all the same, so that a member's export is readable again."""
    member = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=frozenset({"default"})))

    assert member.transfer.import_from(through_json([CLAIMS])).stored == 1

    memory = jay.get("mem_claimed00001")
    assert (memory.provenance.caller, memory.provenance.client) == ("bob", jay.provenance.client)
    assert memory.provenance.transport == "import"
    assert (memory.verified_at, memory.access_count, memory.accessed_at) == (None, 0, memory.created_at)
    assert (memory.supersedes, memory.superseded_by) == (None, None)
    assert memory.content == CLAIMS["content"]


def test_an_imported_memory_takes_no_name_away_from_another_space(jay):
    """Checkpoints of a space are found under names made of the space's and their number."""
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=frozenset({"default"})))
    attic = jay.bound_to(spaces=("attic",))

    bob.transfer.import_from([{"content": "Not yours", "detail": {"name": "attic/checkpoint_1"}}])
    saved = mama.call(attic, "save", {"type": "checkpoint", "summary": "Half of the shelves are up"}).body

    assert saved["id"] == "checkpoint_1"
    assert attic.get("checkpoint_1").content != "Not yours"


def test_the_name_of_a_decision_is_no_id_for_an_import(jay):
    decision = jay.store(NewMemory(content="Use Redis", kind=Kind.DECISION, topic="cache")).memory

    with pytest.raises(Conflict, match="taken"):
        jay.transfer.import_from([{"id": decision.name, "content": "The lantern is green."}])

    assert [memory.id for memory in jay.list()] == [decision.id]


def test_an_id_of_an_earlier_import_does_not_stop_checkpoints(jay):
    attic = jay.bound_to(spaces=("attic",))
    jay.transfer.add_all([jay.transfer.build_memory({"content": "In the way"}, id="attic/checkpoint_1")])

    saved = mama.call(attic, "save", {"type": "checkpoint", "summary": "Half of the shelves are up"}).body

    assert saved["id"] == "checkpoint_2"


def test_an_owner_imports_them_as_they_were(jay):
    jay.transfer.import_from(through_json([{**CLAIMS, "supersedes": None, "superseded_by": None}]))

    memory = jay.get("mem_claimed00001")
    assert memory.provenance.caller == "ottilie"
    assert memory.access_count == 40
    assert memory.verified_at is not None


def test_what_a_members_import_says_of_supersession_comes_from_its_links(jay, other):
    """Pointers of a line are only believed if a link says the same."""
    old, new = other.store("The ferry leaves at nine").memory, other.store("The ferry leaves at ten").memory
    other.supersede(old=old.id, new=new.id)
    exported = through_json(other.transfer.export())
    for line in exported:
        line.pop("context", None)  # whose it was there
    member = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=frozenset({"default"})))

    member.transfer.import_from(exported)

    assert (jay.get(old.id).superseded_by, jay.get(new.id).supersedes) == (new.id, old.id)


# --- links -----------------------------------------------------------------------------------------------------------


def a_link(source, target):
    return {
        "type": "link", "kind": "related", "source": source, "target": target, "created_at": "2026-01-01T00:00:00Z"
    }  # fmt: skip


def test_links_to_what_the_importer_may_not_see_or_change_are_left_out(jay):
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=frozenset({"default"})))
    hidden = ann.store("Hers", access_level="private").memory.id
    elsewhere = jay.bound_to(spaces=("elsewhere",)).store("For all", access_level="public").memory.id
    shared, mine = ann.store("Ours").memory.id, bob.store("His").memory.id

    ends = (hidden, elsewhere, "mem_nowhere00000", shared)
    lines = [a_link(mine, end) for end in ends] + [a_link(end, mine) for end in ends]
    result = bob.transfer.import_from(lines)

    assert (result.links, result.links_left_out) == (2, 6)
    assert {end for link in jay.records.history.links([mine]) for end in (link.source, link.target)} == {mine, shared}
    assert jay.records.history.links([hidden, elsewhere]) == []


def test_an_export_names_no_memory_that_its_reader_may_not_see(jay):
    ann, bob = (jay.bound_to(caller=Caller(user=user, role=Role.MEMBER)) for user in ("ann", "bob"))
    hidden, shared = ann.store("Hers", access_level="private").memory, ann.store("Ours").memory
    with ann.records.writing() as tx:
        ann.ledger.link(tx, LinkKind.RELATED, hidden, shared)

    assert hidden.id not in json.dumps(list(bob.transfer.export()))
    assert [line["source"] for line in ann.transfer.export() if line["type"] == "link"] == [hidden.id]


def test_an_import_sent_again_with_its_key_is_answered_alike_and_done_once(jay):
    once = jay.bound_to(request=Request(caller="local", key="once", operation="native.import", arguments=b"lines"))

    first = once.transfer.import_from([{"content": "The harbour opens at six"}])

    assert once.transfer.import_from([{"content": "The harbour opens at six"}]) == first
    assert jay.list(counted=True).total == 1


def test_links_that_are_already_here_are_not_imported_again(jay, other):
    old, new = (jay.store(text).memory.id for text in ("The ferry leaves at six", "The ferry leaves at seven"))
    jay.supersede(old=old, new=new)
    lines = through_json(jay.transfer.export())
    assert other.transfer.import_from(lines).links > 0
    before = other.records.history.last_event("default")

    again = other.transfer.import_from(lines)

    assert (again.already_here, again.links, again.links_left_out) == (2, 0, 0)
    assert other.records.history.last_event("default") == before


def test_many_at_once_and_imports_keep_to_the_quota_as_single_ones_do(open_engine):
    jay = open_engine(quota=3)
    jay.store("The crane is red")

    with pytest.raises(QuotaExceeded):
        jay.store_many([{"content": f"The tide of day {day}"} for day in range(3)])
    with pytest.raises(QuotaExceeded):
        jay.transfer.import_from([{"content": f"The tide of day {day}"} for day in range(3)])
    assert len(jay.list()) == 1

    jay.store_many([{"content": "The tide is high"}])
    assert jay.transfer.import_from([{"content": "The tide is low"}]).stored == 1
    with pytest.raises(QuotaExceeded):
        jay.store("The crane is tall")
    forgotten = {"content": "The crane was blue", "status": "deleted"}
    assert jay.transfer.import_from([forgotten]).stored == 1, "what is forgotten does not count"


# --- without a model --------------------------------------------------------------------------------------------------


def facts(count, first=0):
    return [{"content": f"The tide of day {day}"} for day in range(first, first + count)]


def test_batches_before_a_bad_line_stay_in_their_order(open_engine):
    jay, told = open_engine(None), []

    with pytest.raises(InvalidInput, match=f"Line {2 * BATCH_OF_TEXTS + 3}: content must not"):
        jay.transfer.import_from(
            [*facts(2 * BATCH_OF_TEXTS + 2), {"content": " "}, *facts(2_000)], progress=told.append
        )

    kept = [line["content"] for line in jay.transfer.export() if line["type"] == "memory"]
    assert told == [BATCH_OF_TEXTS, 2 * BATCH_OF_TEXTS]
    assert kept == [line["content"] for line in facts(2 * BATCH_OF_TEXTS)]


def test_a_batch_that_cannot_be_written_is_told_before_a_bad_line_of_the_next(open_engine):
    jay, told = open_engine(None, quota=BATCH_OF_TEXTS + 10), []

    with pytest.raises(QuotaExceeded):
        jay.transfer.import_from([*facts(2 * BATCH_OF_TEXTS), {"content": " "}], progress=told.append)

    assert told == [BATCH_OF_TEXTS]
    assert jay.list(counted=True).total == BATCH_OF_TEXTS


def test_a_bad_line_of_the_source_waits_for_what_came_before_it(open_engine):
    jay, told = open_engine(None), []

    def lines():
        yield from facts(BATCH_OF_TEXTS + 5)
        raise InvalidInput("Line 518 is not JSON.")

    with pytest.raises(InvalidInput, match="518"):
        jay.transfer.import_from(lines(), progress=told.append)

    assert told == [BATCH_OF_TEXTS]


def test_an_id_that_an_earlier_batch_brought_is_left_alone_by_the_next(open_engine):
    first, again = ({"id": "mem_000000000001", "content": text} for text in ("The crane is red", "The crane is blue"))

    jay = open_engine(None)
    result = jay.transfer.import_from([first, *facts(BATCH_OF_TEXTS - 1), again])

    assert (result.stored, result.already_here) == (BATCH_OF_TEXTS, 1)
    assert jay.get("mem_000000000001").content == "The crane is red"


def test_lines_are_asked_for_in_the_callers_thread_only(open_engine):
    """A source may wait for input, which only there can be interrupted; or belong to a thread, as a cursor does."""
    asked = set()

    def lines():
        for line in facts(3 * BATCH_OF_TEXTS):
            asked.add(threading.get_ident())
            yield line

    open_engine(None).transfer.import_from(lines())

    assert asked == {threading.get_ident()}


def test_an_interrupt_that_comes_with_the_commit_counts_the_batch_as_imported(open_engine, monkeypatch):
    """Else whoever resumes as told would import it twice."""
    jay, told, noted = open_engine(None), [], Connections.note_change

    def interrupted(connections, *given):
        noted(connections, *given)
        if told:
            raise KeyboardInterrupt

    monkeypatch.setattr(Connections, "note_change", interrupted)  # it comes right after a commit
    with pytest.raises(KeyboardInterrupt):
        jay.transfer.import_from(facts(3 * BATCH_OF_TEXTS), progress=told.append)
    monkeypatch.undo()

    assert told == [BATCH_OF_TEXTS, 2 * BATCH_OF_TEXTS]
    assert jay.list(counted=True).total == 2 * BATCH_OF_TEXTS


# --- a line is imported once -----------------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)


def said(jay):
    return sorted(memory.content for memory in jay.list(Filter(states=EVERY), limit=1_000).memories)


EVERY = frozenset(State) - {State.PURGED}


@BOTH
def test_a_file_without_ids_comes_in_once_however_often_it_is_imported(jay, clock):
    lines = [
        *({"content": f"Crate {number} stands on a shelf"} for number in range(150)),
        {"content": "Use Redis", "kind": "decision", "topic": "cache"},
        {"content": "Use Redis", "kind": "decision", "topic": "queue"},
        {"content": "The ferry leaves", "created_at": "2026-01-01T09:00:00Z"},
        {"content": "The ferry leaves", "created_at": "2026-01-02T09:00:00Z"},
        {"content": "The Ferry leaves", "created_at": "2026-01-02T09:00:00Z"},  # not the same text
    ]
    with pytest.raises(InvalidInput, match="Line 151"):
        jay.transfer.import_from([*lines[:150], {"broken": "line"}])
    clock.move(days=1)
    brought = len(said(jay))
    again = jay.transfer.import_from(lines)
    third = jay.transfer.import_from(reversed(lines))

    assert brought > 0
    assert (again.stored, again.already_here) == (len(lines) - brought, brought)
    assert (third.stored, third.already_here) == (0, len(lines))
    assert said(jay) == sorted(line["content"] for line in lines)


@pytest.mark.parametrize("embedder", ["hashing", None])
def test_a_line_twice_in_one_file_comes_in_once(open_engine, embedder):
    facts = [{"content": f"Fact {number % 1_100}"} for number in range(1_300)]
    timed = {"content": "At nine", "created_at": "2026-01-01T09:00:00Z"}
    result = open_engine(embedder).transfer.import_from([timed, *facts, timed, {"content": "At nine"}])

    assert (result.stored, result.already_here) == (1_101, 202)


@BOTH
def test_what_became_of_a_memory_does_not_bring_its_line_again_unless_it_was_forgotten(jay, clock):
    lines = [{"content": text} for text in ("Archived", "Superseded", "Superseding", "Forgotten", "Changed tags")]
    jay.transfer.import_from(lines)
    id = {memory.content: memory.id for memory in jay.list()}
    jay.cold_storage.archive([id["Archived"]])
    jay.supersede(old=id["Superseded"], new=id["Superseding"])
    jay.forget(id["Forgotten"])
    jay.update(id["Changed tags"], tags=["t"])

    assert jay.transfer.import_from(lines).already_here == 4
    assert [memory.content for memory in jay.list() if memory.id not in id.values()] == ["Forgotten"]


@BOTH
def test_two_imports_of_a_list_without_ids_at_once_bring_each_line_once(open_engine, open_store):
    first, second = open_engine(), open_engine()
    lines = [{"content": f"Fact {number}"} for number in range(300)]
    results = []
    threads = [
        threading.Thread(target=lambda jay=jay: results.append(jay.transfer.import_from(lines)))
        for jay in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(result.stored for result in results) == 300
    assert sum(result.already_here for result in results) == 300
    assert len(said(first)) == 300


def test_lines_that_the_other_brings_between_look_and_write_are_already_here(jay, other, monkeypatch):
    lines, write = [{"content": f"Fact {number}"} for number in range(3)], Transfer.add_all

    def beaten(engine, *given, **named):
        monkeypatch.setattr(Transfer, "add_all", write)
        assert other.transfer.import_from(lines[:2]).stored == 2
        return write(engine, *given, **named)

    monkeypatch.setattr(Transfer, "add_all", beaten)

    assert (other.transfer.import_from(lines).stored, len(said(other))) == (1, 3)


@BOTH
def test_the_count_of_lines_already_here_tells_nothing_of_another_user(jay):
    text = {"content": "The merger is called Heron"}
    ann, bob = (jay.bound_to(caller=Caller(user=name, role=Role.MEMBER)) for name in ("ann", "bob"))
    ann.transfer.import_from([{**text, "access_level": "private"}])

    for _ in range(2):
        told = bob.transfer.import_from([text])
    assert (told.stored, told.already_here) == (0, 1)
    assert bob.bound_to(spaces=("elsewhere",)).transfer.import_from([text]).stored == 1
    assert sorted(memory.context.user_id for memory in jay.list() if memory.space == "default") == ["ann", "bob"]


def test_lines_with_ids_are_told_apart_by_those_alone(jay):
    lines = [{"id": f"m{number}", "content": "The same words", "created_at": "2026-01-01"} for number in range(3)]

    assert jay.transfer.import_from([{"content": "The same words", "created_at": "2026-01-01"}, *lines]).stored == 4
    assert jay.transfer.import_from(lines).already_here == 3
