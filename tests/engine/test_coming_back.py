"""A memory that was superseded and no longer is: current again, and true as long as it was before."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from scrubjay.engine.lifecycle import supersession
from scrubjay.values.memory import AccessLevel, LinkKind, Relation

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)


def store_ferries(jay, clock, *hours):
    """A memory for each hour at which the ferry is said to leave, a minute between them: their ids."""
    ids = []
    for hour in hours:
        ids.append(jay.store(f"The ferry leaves the harbour at {hour}").memory.id)
        clock.move(minutes=1)
    return ids


def current(jay) -> set[str]:
    """What lists, searches and a session's beginning show; all agree."""
    listed = {memory.id for memory in jay.list()}
    assert {hit.memory.id for hit in jay.search("ferry leaves harbour")} == listed
    assert {memory.id for section in jay.brief().sections for memory in section.memories} == listed
    return listed


def state(jay, id):
    memory = jay.get(id)
    return memory.superseded_by, memory.valid_until


@BOTH
@pytest.mark.parametrize("hard", [False, True])
def test_what_a_forgotten_memory_replaced_is_current_again_and_has_no_end(jay, clock, hard):
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.conflicts.relate(old=old, new=new, relation=Relation.REPLACES)
    version, ended = jay.get(old).version, state(jay, old)
    assert current(jay) == {new}
    clock.move(days=1)

    jay.forget(new, hard=hard)

    assert state(jay, old) == (None, None)
    assert current(jay) == {old}
    assert jay.get(old).version == version, "what follows from another's deletion is not a change"
    if not hard:
        clock.move(days=1)
        jay.curation.undo(new)
        assert state(jay, old) == ended == (new, ended[1])
        assert ended[1] is not None
        assert current(jay) == {new}


@BOTH
def test_an_end_of_its_own_stays_whatever_replaces_it(jay, clock):
    end = clock() + timedelta(days=30)
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.update(old, valid_until=end)
    jay.supersede(old=old, new=new)

    assert state(jay, old) == (new, end)
    jay.forget(new)
    assert state(jay, old) == (None, end)
    jay.recover(new)
    assert state(jay, old) == (new, end)
    assert jay.curation.release(old).valid_until == end


@BOTH
def test_an_end_of_its_own_at_which_the_next_one_begins_is_still_its_own(jay, clock):
    moved = clock() - timedelta(days=400)
    old = jay.store("The ferry leaves the harbour at nine", valid_until=moved).memory.id
    new = jay.store("The ferry leaves the harbour at ten", valid_from=moved).memory.id
    jay.supersede(old=old, new=new)

    jay.forget(new)

    assert state(jay, old) == (None, moved)


@BOTH
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("first", ["release", "forget"])
def test_an_end_given_later_is_kept_also_if_a_supersession_could_have_brought_it(jay, clock, begins, first):
    """Either the moment at which the other begins, or one right after it was said."""
    at = clock() + timedelta(days=5)
    old = jay.store("The ferry leaves the harbour at nine").memory.id
    new = jay.store("The ferry leaves the harbour at ten", valid_from=at if begins else None).memory.id
    clock.move(minutes=1)
    jay.supersede(old=old, new=new)
    end = at if begins else clock() + timedelta(milliseconds=900)
    clock.move(minutes=1)
    if first == "release":
        jay.curation.release(old)
    else:
        jay.forget(new)
    assert state(jay, old) == (None, None)
    clock.move(minutes=1)

    assert jay.update(old, valid_until=end).valid_until == end

    for change in (jay.recover, jay.forget, jay.recover, jay.forget)[first == "release" :]:
        clock.move(minutes=1)
        change(new)
        assert jay.get(old).valid_until == end
    assert jay.update(old, valid_until=None).valid_until is None
    jay.recover(new)
    jay.forget(new)
    assert state(jay, old) == (None, None)


@BOTH
def test_an_end_given_while_superseded_is_its_own_and_without_it_the_links_tell(jay, clock):
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.supersede(old=old, new=new)
    ended, version = jay.get(old).valid_until, jay.get(old).version
    clock.move(minutes=1)

    assert jay.update(old, valid_until=None).valid_until == ended
    assert jay.get(old).version == version, "there was nothing to take away"
    given = clock() + timedelta(days=3)
    assert jay.update(old, valid_until=given).valid_until == given
    assert jay.update(old, valid_until=None).valid_until == ended
    assert state(jay, old) == (new, ended)


@BOTH
@pytest.mark.parametrize("hard", [False, True])
def test_the_end_follows_the_beginning_of_the_successor(jay, clock, hard):
    first, later = clock() - timedelta(days=9), clock() - timedelta(days=4)
    old = jay.store("The ferry leaves the harbour at nine").memory.id
    new = jay.store("The ferry leaves the harbour at ten", valid_from=first).memory.id
    jay.supersede(old=old, new=new)
    assert state(jay, old) == (new, first)
    clock.move(minutes=1)

    jay.update(new, valid_from=later)

    assert state(jay, old) == (new, later)
    jay.forget(new, hard=hard)
    assert state(jay, old) == (None, None)


@BOTH
def test_an_end_of_its_own_is_kept_in_an_archive(jay, clock):
    begins = clock() - timedelta(days=9)
    old = jay.store("The ferry leaves the harbour at nine", valid_until=begins).memory.id
    new = jay.store("The ferry leaves the harbour at ten", valid_from=begins).memory.id
    jay.supersede(old=old, new=new)
    jay.cold_storage.archive([old])

    jay.forget(new)

    assert jay.get(old).valid_until == begins


@BOTH
@pytest.mark.parametrize("hard", [False, True])
def test_undoing_a_revision_does_not_bring_back_an_end_that_followed_from_links(jay, clock, hard):
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.supersede(old=old, new=new)
    clock.move(minutes=1)
    jay.update(old, access_level=AccessLevel.PRIVATE)
    clock.move(minutes=1)
    jay.forget(new, hard=hard)

    undone = jay.curation.undo(old)

    assert (undone.fields, undone.memory.valid_until) == (("access_level",), None)
    assert state(jay, old) == (None, None)


@BOTH
@pytest.mark.parametrize("order", ["BC", "CB"])
def test_a_chain_comes_back_from_either_end(jay, clock, order):
    a, b, c = store_ferries(jay, clock, "nine", "ten", "noon")
    jay.supersede(old=a, new=b)
    clock.move(hours=1)
    jay.supersede(old=b, new=c)
    states = state(jay, a), state(jay, b)
    named = {"B": b, "C": c}

    jay.forget(named[order[0]])
    assert current(jay) == ({c} if order == "BC" else {b})
    assert jay.get(a).superseded_by == (c if order == "BC" else b)
    jay.forget(named[order[1]])
    assert (current(jay), state(jay, a)) == ({a}, (None, None))

    jay.curation.undo(named[order[1]])
    assert current(jay) == {named[order[1]]}
    jay.curation.undo(named[order[0]])
    assert (state(jay, a), state(jay, b)) == states
    assert current(jay) == {c}


@BOTH
def test_all_that_one_memory_replaced_come_back_with_it(jay, clock):
    end = clock() + timedelta(days=30)
    a, b, new = store_ferries(jay, clock, "nine", "ten", "noon")
    jay.update(b, valid_until=end)
    jay.supersede(old=a, new=new)
    jay.supersede(old=b, new=new)

    jay.forget(new)

    assert (state(jay, a), state(jay, b)) == ((None, None), (None, end))
    assert {memory.id for memory in jay.list()} == {a, b}


@BOTH
def test_of_two_that_replaced_it_the_one_that_is_left_says_its_end(jay, clock):
    old, first, second = store_ferries(jay, clock, "nine", "ten", "noon")
    jay.supersede(old=old, new=first)
    ended = jay.get(old).valid_until
    clock.move(days=1)
    jay.supersede(old=old, new=second)
    assert state(jay, old) == (second, ended)

    jay.forget(first)
    assert state(jay, old) == (second, clock())
    jay.forget(second)
    assert state(jay, old) == (None, None)
    jay.recover(first)
    assert state(jay, old) == (first, ended)


@BOTH
def test_superseding_it_once_more_by_the_same_one_leaves_no_end_behind(jay, clock):
    old, first, second = store_ferries(jay, clock, "nine", "ten", "noon")
    for new in (first, second, first):
        jay.supersede(old=old, new=new)
        clock.move(days=1)

    for new in (first, second):
        jay.forget(new)

    assert state(jay, old) == (None, None)


@BOTH
def test_a_successor_that_is_withdrawn_leaves_no_end_behind(jay, clock):
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.supersede(old=old, new=new)

    jay.update(new, access_level=AccessLevel.PRIVATE)

    with jay.records.writing() as tx:
        assert supersession.plain(tx, jay.get(old)).valid_until is None


@BOTH
def test_an_imported_memory_comes_back_as_one_stored_here(jay, clock, open_engine):
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.supersede(old=old, new=new)
    other = open_engine(file="other.db")
    other.transfer.import_from(jay.transfer.export())
    assert state(other, old) == state(jay, old)

    other.forget(new)

    assert state(other, old) == (None, None)


def test_the_end_that_an_earlier_program_wrote_is_known_as_such(jay, clock):
    """It read the clock for the link first, and then for the end."""
    old, new = store_ferries(jay, clock, "nine", "ten")
    jay.supersede(old=old, new=new)
    with jay.records.writing() as tx:
        [link] = tx.history.links([old], kinds=frozenset({LinkKind.SUPERSEDES}))
        tx.history.relate(replace(link, created_at=link.created_at - timedelta(milliseconds=20)))

    jay.forget(new)

    assert state(jay, old) == (None, None)


def test_a_decision_is_the_current_one_again(jay, clock):
    old, new = (
        jay.decisions.save(topic="ferry", decision=f"The ferry leaves at {hour}", reasoning="The tide").memory.id
        for hour in ("nine", "ten")
    )
    clock.move(hours=1)

    jay.forget(new)

    assert state(jay, old) == (None, None)
