"""Many memories at once: looked at first, forgotten by where they came from, brought back as one deed."""

from __future__ import annotations

from contextlib import closing

import apsw
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.lifecycle import bulk
from scrubjay.engine.parts import engine_on
from scrubjay.engine.store.intake import TagChange
from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound
from scrubjay.stores.promises.memories import Request
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import AccessLevel, Status
from scrubjay.values.search import Filter


class World:
    """An engine with three memories of an evil client and one of a good one."""

    def __init__(self, jay):
        self.jay = jay
        evil = jay.bound_to(provenance=Provenance(client="evil", transport="http"))
        self.evil = [evil.store(f"Lie number {number}").memory.id for number in range(3)]
        self.good = jay.store("The harbour opens at six").memory.id

    def __getattr__(self, name):
        return getattr(self.jay, name)


@pytest.fixture
def world(jay):
    return World(jay)


EVIL = Filter(client="evil")


def test_a_filter_that_names_nothing_in_particular_is_refused(world):
    for filter in (Filter(), Filter(expired=None)):
        for verb in (world.bulk.preview, world.bulk.forget):
            with pytest.raises(InvalidInput):
                verb(filter)
    assert world.list(counted=True).total == 4


def test_a_reader_forgets_nothing(world):
    reader = world.bound_to(caller=Caller(user="rea", role=Role.READER))

    with pytest.raises(Forbidden):
        reader.bulk.forget(EVIL)


def test_a_preview_changes_nothing(world):
    named = world.bulk.preview(EVIL, limit=2)

    assert named.total == 3
    assert len(named.memories) == 2
    assert world.list(counted=True).total == 4


def test_however_many_there_are_they_are_forgotten_as_one_deed(world, monkeypatch):
    monkeypatch.setattr(bulk, "MOST", 2)
    keyed = world.bound_to(request=Request(caller="local", key="k", operation="native.forget", arguments=b"x"))

    done = keyed.bulk.forget_all(EVIL)

    assert (done.count, done.left, sorted(done.memories)) == (3, 0, sorted(world.evil))
    assert [memory.id for memory in world.list()] == [world.good]
    assert keyed.bulk.forget_all(EVIL) == done, "sent again it is answered alike"
    assert (world.bulk.undo(done.deed).count, world.bulk.undo(done.deed).count) == (2, 1)


def test_a_further_batch_does_not_go_through_the_earlier_ones(tmp_path, monkeypatch):
    """Or forgetting many would take a time that grows with the square of their number."""
    monkeypatch.setattr(bulk, "MOST", 2)
    looks = []

    def remember(_cursor, sql, _values):
        if ("count(*)" in sql and "LIMIT" not in sql) or ("deed_memories" in sql and "INSERT" not in sql):
            looks.append(sql)
        return True

    def traced(con):
        con.exec_trace = remember

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, traced])
    with closing(SqliteStore(tmp_path / "memories.db")) as store, closing(engine_on(store, HashingEmbedder())) as jay:

        def looks_at(count):
            for number in range(count):
                jay.store(f"Fact {number} of {count}", tags=["evil"])
            looks.clear()
            assert jay.bulk.forget_all(Filter(tags=frozenset({"evil"}))).count == count
            return len(looks)

        assert looks_at(4) == looks_at(20)


def test_a_long_conversation_is_cleared_to_its_end(jay, monkeypatch):
    monkeypatch.setattr(bulk, "MOST", 2)
    for number in range(5):
        jay.store(f"Said number {number}", conversation_id="conv-1")

    assert jay.conversations.clear("conv-1").count == 5
    assert not jay.list(Filter(conversation_id="conv-1")).memories


def test_a_poisoned_client_is_undone_and_that_too(world):
    done = world.bulk.forget(EVIL, reason="poisoned")

    assert sorted(done.memories) == sorted(world.evil)
    assert [memory.id for memory in world.list()] == [world.good]
    assert world.bulk.preview(EVIL).total == 0

    world.forget(world.good)
    undone = world.bulk.undo(done.deed)

    assert undone.count == 3
    assert world.bulk.preview(EVIL).total == 3
    assert world.get(world.good, deleted=True).status is Status.DELETED, "what was forgotten otherwise stays so"
    assert world.bulk.undo(done.deed).count == 0


def test_what_is_outdated_or_expired_is_forgotten_too(world, clock):
    world.supersede(old=world.evil[0], new=world.good)
    world.update(world.evil[1], expires_at=clock())
    clock.move(days=1)

    assert world.bulk.forget(EVIL).count == 3


def test_more_than_fit_in_one_transaction_take_further_calls_under_one_deed(world, monkeypatch):
    monkeypatch.setattr(bulk, "MOST", 2)

    first = world.bulk.forget(EVIL)
    second = world.bulk.forget(EVIL, operation=first.deed)

    assert (first.count, first.left, second.count, second.left) == (2, 1, 1, 0)
    assert (world.bulk.undo(first.deed).left, world.bulk.undo(first.deed).count) == (1, 1)
    assert world.bulk.preview(EVIL).total == 3


def test_somebody_elses_deed_is_not_undone(world):
    done = world.bulk.forget(EVIL)
    member = world.bound_to(caller=Caller(user="bob", role=Role.MEMBER))

    for deed in (done.deed, "deed_unknown"):
        with pytest.raises(NotFound):
            member.bulk.undo(deed)
    with pytest.raises(NotFound):
        member.bulk.forget(EVIL, operation=done.deed)


def test_a_member_forgets_only_what_it_sees(world):
    hidden = world.store("A private thing", access_level=AccessLevel.PRIVATE).memory.id
    member = world.bound_to(caller=Caller(user="bob", role=Role.MEMBER))

    done = member.bulk.forget(Filter(caller="local"))

    assert hidden not in done.memories
    assert world.get(hidden).status is Status.ACTIVE


def test_the_same_change_to_many_keeps_every_history(world):
    done = world.bulk.update(EVIL, tags=TagChange(add=("suspect",)), importance=0.1, reason="review")

    assert done.count == 3
    changed = world.get(world.evil[0])
    assert (changed.tags, changed.importance) == (("suspect",), 0.1)
    assert world.history(changed.id)[0].reason == "review"
    assert world.get(world.good).tags == ()
    with pytest.raises(InvalidInput):
        world.bulk.update(EVIL)
    with pytest.raises(InvalidInput):
        world.bulk.update(EVIL, content="all the same")


@pytest.mark.parametrize("field", ["ids", "tags"])
def test_a_filter_that_names_more_than_can_be_asked_for_is_refused(jay, field):
    with pytest.raises(InvalidInput, match=f"{field} names too many: 50,000 .maximum 1,000"):
        jay.bulk.preview(Filter(**{field: frozenset(f"mem_{n}" for n in range(50_000))}))


@pytest.mark.parametrize("again", ["before more is forgotten", "afterwards"])
def test_what_was_restored_by_hand_and_deleted_again_is_no_part_of_a_deed_that_goes_on(world, clock, again):
    done = world.bulk.forget(EVIL)
    clock.move(seconds=1)
    world.recover(world.evil[0])
    clock.move(seconds=1)
    if again == "before more is forgotten":
        world.forget(world.evil[0])
        clock.move(seconds=1)
    world.bulk.forget(Filter(ids=frozenset({world.good})), operation=done.deed)
    if again == "afterwards":
        world.forget(world.evil[0])

    assert set(world.bulk.undo(done.deed).memories) == {*world.evil[1:], world.good}
    assert world.get(world.evil[0], deleted=True).status is Status.DELETED


def test_what_was_undone_and_forgotten_again_under_the_same_deed_is_undone_again(world, clock):
    done = world.bulk.forget(EVIL)
    for _ in range(2):
        clock.move(seconds=1)
        assert world.bulk.undo(done.deed).count == 3
        clock.move(seconds=1)
        assert world.bulk.forget(EVIL, operation=done.deed).count == 3

    assert world.bulk.undo(done.deed).count == 3
    assert world.bulk.preview(EVIL).total == 3


def test_one_memory_named_by_id_is_forgotten_only_at_the_version_that_is_expected(world):
    with pytest.raises(Conflict, match="version 1"):
        world.bound_to(expected_version=7).bulk.forget(Filter(ids=frozenset({world.good})))

    assert world.get(world.good).status is Status.ACTIVE
