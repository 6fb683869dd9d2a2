"""What may be outdated is listed, and settled by a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import State


@pytest.fixture
def pair(real_jay):
    old = real_jay.store("User lives in Seattle").memory
    new = real_jay.store("User moved to Austin").memory
    return old, new


@pytest.mark.parametrize("limit", [0, -1, 10**6, True, "5"])
def test_an_impossible_limit_is_refused(jay, limit):
    with pytest.raises(InvalidInput):
        jay.conflicts.list(limit=limit)


def test_what_nobody_proposed_cannot_be_settled(jay):
    one, other = jay.store("User likes tea").memory, jay.store("The harbour is called Vik").memory

    with pytest.raises(NotFound, match="proposal"):
        jay.conflicts.settle(old=one.id, new=other.id, keep=True)
    with pytest.raises(NotFound):
        jay.conflicts.settle(old=one.id, new="mem_unknown00000")


def test_a_reader_settles_nothing(real_jay, pair):
    old, new = pair
    reader = real_jay.bound_to(caller=Caller(user="eve", role=Role.READER))

    with pytest.raises(Forbidden):
        reader.conflicts.settle(old=old.id, new=new.id, keep=True)
    assert len(real_jay.conflicts.list()) == 1


def test_an_open_pair_is_listed_with_both_texts(real_jay, pair):
    old, new = pair

    [conflict] = real_jay.conflicts.list()

    assert (conflict.old.id, conflict.new.id) == (old.id, new.id)
    assert 0.5 <= conflict.score <= 1


def test_keeping_both_settles_it_and_changes_neither(real_jay, pair):
    old, new = pair

    real_jay.conflicts.settle(old=old.id, new=new.id, keep=True)
    real_jay.conflicts.settle(old=old.id, new=new.id, keep=True)

    assert real_jay.conflicts.list() == []
    assert real_jay.get(old.id).state is State.ACTIVE
    assert real_jay.get(old.id).version == old.version
    assert [hit.memory.id for hit in real_jay.search("Which place does the user live in?")] == [old.id, new.id]


def test_what_was_kept_may_be_superseded_later_but_not_the_other_way_round(real_jay, pair):
    old, new = pair
    real_jay.conflicts.settle(old=old.id, new=new.id, keep=True)

    real_jay.conflicts.settle(old=old.id, new=new.id)

    assert real_jay.get(old.id).superseded_by == new.id
    with pytest.raises(Conflict):
        real_jay.conflicts.settle(old=old.id, new=new.id, keep=True)


@pytest.mark.parametrize("gone", ["forgotten", "expired"])
def test_a_pair_of_which_one_is_gone_is_not_listed(real_jay, pair, clock, gone):
    real_jay.forget(pair[1].id) if gone == "forgotten" else real_jay.update(pair[0].id, expires_at=clock.time)
    clock.move(days=2)

    assert real_jay.conflicts.list() == []


def test_other_spaces_and_other_peoples_private_memories_are_not_listed(real_jay, pair):
    real_jay.bound_to(spaces=("elsewhere",)).store("User lives in Seattle", access_level="private")
    real_jay.bound_to(spaces=("elsewhere",)).store("User moved to Austin", access_level="private")
    reader = real_jay.bound_to(caller=Caller(user="eve", role=Role.READER), spaces=("elsewhere",))

    assert len(real_jay.bound_to(only=True).conflicts.list()) == 1
    assert len(real_jay.conflicts.list()) == 2
    assert reader.bound_to(only=True).conflicts.list() == []


# --- two memories that say the same, without anybody having stored the same twice ------------------------------------

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)


def twins(jay, clock, way):
    """Two current memories with the same words, of which the older one came last: their ids."""
    first = jay.store("The ferry leaves at nine").memory.id
    clock.move(minutes=1)
    if way in ("recovered", "undone"):
        jay.forget(first)
    elif way == "restored":
        jay.cold_storage.archive([first])
    elif way in ("released", "current again"):
        later = jay.store("The ferry leaves at noon").memory.id
        jay.supersede(old=first, new=later)
    else:
        jay.update(first, content="The ferry leaves at ten")
    second = jay.store("The Ferry leaves  at nine").memory.id
    clock.move(minutes=1)
    if way == "updated":
        jay.update(first, content="The ferry leaves at nine")
    elif way == "an earlier version":
        jay.restore_version(first, 1)
    elif way == "recovered":
        jay.recover(first)
    elif way == "undone":
        jay.curation.undo(first)
    elif way == "restored":
        jay.cold_storage.restore([first])
    elif way == "released":
        jay.curation.release(first)
        jay.forget(later)
    elif way == "current again":
        jay.forget(later)
    return first, second


@BOTH
@pytest.mark.parametrize(
    "way", ["recovered", "undone", "restored", "updated", "an earlier version", "released", "current again"]
)
def test_what_comes_to_say_the_same_as_another_is_an_open_pair(jay, clock, way):
    first, second = twins(jay, clock, way)

    [pair] = jay.conflicts.list()
    assert (pair.old.id, pair.new.id) == (first, second)
    assert jay.conflicts.same_as(first, second) == {first: [second], second: [first]}
    jay.conflicts.settle(old=first, new=second)
    assert [one.id for one in jay.list()] == [second]
    assert (jay.conflicts.same_as(first, second), jay.conflicts.list()) == ({}, [])


def test_both_are_kept_if_somebody_said_so(jay, clock):
    first, second = twins(jay, clock, "recovered")
    jay.conflicts.settle(old=first, new=second, keep=True)
    jay.forget(first)
    jay.recover(first)

    assert jay.conflicts.list() == []


def test_a_text_that_merely_resembles_another_or_is_not_current_opens_nothing(jay, clock):
    first = jay.store("The ferry leaves at nine").memory.id
    jay.store("Gone", expires_at=clock() + timedelta(minutes=1))
    clock.move(minutes=2)
    jay.bound_to(spaces=("elsewhere",), only=True).store("The ferry leaves at ten")
    jay.update(first, content="The ferry leaves at ten")
    jay.update(first, content="Gone")
    jay.update(first, content="The ferry leaves at ten", tags=["t"])
    jay.update(first, tags=["u"])

    assert (jay.conflicts.list(), jay.conflicts.same_as(first)) == ([], {})


def test_the_same_words_of_another_user_are_not_told(jay, clock):
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    ann.store("The ferry leaves at nine", access_level="private")
    mine = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER))
    first = mine.store("The ferry leaves at ten").memory.id
    mine.update(first, content="The ferry leaves at nine")

    assert (mine.conflicts.same_as(first), mine.conflicts.list(), jay.conflicts.list()) == ({}, [], [])
