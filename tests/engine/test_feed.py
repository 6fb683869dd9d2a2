"""The changes of a space: each caller is told of what it may see."""

from __future__ import annotations

from itertools import islice

import pytest

from scrubjay.errors import InvalidInput
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel


def as_(jay, user, role=Role.MEMBER, spaces=("default",)):
    return jay.bound_to(caller=Caller(user=user, role=role, spaces=frozenset(spaces), local=False))


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1001}, {"after": -1}, {"after": 2**63}])
def test_a_bad_question_is_refused(jay, options):
    with pytest.raises(InvalidInput):
        jay.feed.events(**options)


@pytest.mark.parametrize("after", [-1, 2**63])
def test_following_from_a_number_that_cannot_be_is_refused_at_once(jay, after):
    with pytest.raises(InvalidInput):
        jay.feed.follow(after=after)


def test_each_caller_is_told_of_what_it_may_see(jay):
    alice = as_(jay, "alice")
    made = {level: alice.store(f"{level} text", access_level=level).memory.id for level in AccessLevel}

    def told(engine):
        return {event.memory for event in engine.feed.events()}

    assert told(jay) == told(alice) == set(made.values())
    assert told(as_(jay, "bob")) == {made[AccessLevel.SHARED], made[AccessLevel.PUBLIC]}
    assert told(as_(jay, "eve", Role.READER)) == {made[AccessLevel.SHARED], made[AccessLevel.PUBLIC]}
    assert told(as_(jay, "mallory", Role.OWNER, ["elsewhere"])) == {made[AccessLevel.PUBLIC]}


def test_what_is_erased_for_good_is_told_to_owners_and_to_whoever_did_it(jay):
    alice, bob = as_(jay, "alice"), as_(jay, "bob")
    alice.forget(alice.store("Tea").memory.id, hard=True)

    assert [event.action for event in alice.feed.events()] == ["stored", "forgotten", "purged"]
    assert len(jay.feed.events()) == 3
    assert bob.feed.events() == []


def test_events_go_on_behind_a_number(jay):
    for number in range(5):
        jay.store(f"Fact {number}")

    first = jay.feed.events(limit=2)

    assert [event.number for event in first] == [1, 2]
    assert [event.number for event in jay.feed.events(after=2)] == [3, 4, 5]


def test_following_tells_what_happens_from_now_on(jay):
    jay.store("Before")
    following = jay.feed.follow()
    assert next(following) is None

    new = jay.store("After").memory

    assert next(following).memory == new.id
    assert list(islice(following, 2)) == [None, None]


def test_following_from_a_number_misses_nothing_in_many(jay):
    jay.store_many([{"content": f"Fact {number}"} for number in range(1200)])

    numbers = [event.number for event in islice(jay.feed.follow(after=0), 1200)]

    assert numbers == list(range(1, 1201))
