"""A supersession counts for those who may see both memories, and for nobody else."""

from __future__ import annotations

from contextlib import suppress

import pytest

from scrubjay.engine.lifecycle import supersession
from scrubjay.errors import NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AT_HAND, AccessLevel, State
from scrubjay.values.search import Filter
from tests.conflict import open_conflict

pytestmark = pytest.mark.process

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)
TEAM = frozenset({"default"})
OLD = "The harbour office opens at nine"
NEW = "The harbour office opens at ten, I hear"


@pytest.fixture
def people(jay):
    """The local owner, an owner of the space, two members, a reader, and a stranger who may read what is public."""
    callers = {
        "owner": Caller(user="olga", role=Role.OWNER, spaces=TEAM),
        "ann": Caller(user="ann", role=Role.MEMBER, spaces=TEAM),
        "bob": Caller(user="bob", role=Role.MEMBER, spaces=TEAM),
        "reader": Caller(user="rita", role=Role.READER, spaces=TEAM),
        "stranger": Caller(user="eve", role=Role.MEMBER, spaces=frozenset({"other"})),
    }
    return {"local": jay, **{name: jay.bound_to(caller=caller) for name, caller in callers.items()}}


def pair(people, *, old: str = "shared", new: str = "private"):
    """Ann's new memory supersedes Bob's old one."""
    older = people["bob"].store(OLD, access_level=AccessLevel(old)).memory
    newer = people["ann"].store(NEW, access_level=AccessLevel(new)).memory
    people["ann"].supersede(old=older.id, new=newer.id)
    return older.id, newer.id


def current(engine) -> list[str]:
    """The ids that every way of asking for current memories gives; all ways agree."""
    listed = {memory.id for memory in engine.list()}
    assert len(engine.list(counted=True)) == engine.list(counted=True).total == len(listed)
    assert {hit.memory.id for hit in engine.search("harbour office opens", words_only=True)} == listed
    assert {hit.memory.id for hit in engine.search("harbour office opens")} == listed
    outdated = {memory.id for memory in engine.list(Filter(states=frozenset({State.SUPERSEDED})))}
    everything = {memory.id for memory in engine.list(Filter(states=AT_HAND))}
    assert (listed | outdated, listed & outdated) == (everything, set())
    assert {memory.id for memory in engine.list(Filter(states=AT_HAND)) if memory.superseded_by} == outdated
    assert [space.memories for space in engine.known_spaces.list() if space.name == "default"] == [len(listed)]
    return sorted(listed)


def ask_all(engine, id: str) -> str:
    """Everything that a caller can get to know of a memory."""
    known: list[object] = [engine.get(id), engine.links(id), list(engine.history(id)), engine.feed.events()]
    known += [list(engine.transfer.export()), engine.curation.around(id), engine.curation.network(id)]
    with suppress(NotFound):
        known.append(engine.paths.list("default"))
    return repr(known)


@BOTH
def test_a_private_successor_hides_a_shared_memory_from_its_author_and_owners_only(people):
    old, new = pair(people)

    for name in ("local", "owner", "ann"):
        assert current(people[name]) == [new], name
        assert people[name].get(old).superseded_by == new
        assert people[name].get(old).state is State.SUPERSEDED
    for name in ("bob", "reader"):
        assert current(people[name]) == [old], name
        assert people[name].get(old).superseded_by is None
        assert new not in ask_all(people[name], old)
    assert people["ann"].get(new).supersedes == old
    assert people["local"].get(old).version == 1, "for the others nothing has happened"
    assert people["local"].get(old).valid_until is None


@BOTH
def test_a_private_predecessor_is_not_named_by_its_shared_successor(people):
    older = people["ann"].store(OLD, access_level=AccessLevel.PRIVATE).memory.id
    newer = people["ann"].store(NEW).memory.id
    people["ann"].supersede(old=older, new=newer)

    assert people["ann"].get(newer).supersedes == older
    assert current(people["ann"]) == [newer]
    assert people["bob"].get(newer).supersedes is None
    assert older not in ask_all(people["bob"], newer)
    people["bob"].update(newer, importance=0.9)
    assert people["ann"].get(newer).supersedes == older, "another's change does not lose it"
    assert older not in ask_all(people["bob"], newer)


@BOTH
def test_what_counts_for_everyone_is_as_it_was(people):
    old, new = pair(people, new="shared")

    for name in ("local", "owner", "ann", "bob", "reader"):
        assert current(people[name]) == [new], name
        assert people[name].get(old).superseded_by == new
    assert people["local"].get(old).valid_until is not None
    assert people["local"].records.sync.asides(old) == []


@BOTH
def test_publishing_the_successor_lets_it_count_for_all_and_withdrawing_it_no_longer(people):
    old, new = pair(people)

    people["ann"].update(new, access_level="shared")

    assert current(people["bob"]) == current(people["ann"]) == [new]
    assert people["bob"].get(old).superseded_by == new
    assert people["bob"].get(old).valid_until is not None
    people["ann"].update(new, access_level="private")
    assert (current(people["bob"]), current(people["ann"])) == ([old], [new])
    assert new not in repr([people["bob"].get(old), people["bob"].history(old)])


@BOTH
def test_hiding_the_older_memory_too_makes_it_count_for_all_who_are_left(people):
    older = people["ann"].store(OLD).memory.id
    newer = people["ann"].store(NEW, access_level=AccessLevel.PRIVATE).memory.id
    people["ann"].supersede(old=older, new=newer)

    people["ann"].update(older, access_level="private")

    assert people["local"].records.sync.asides(older) == []
    assert people["ann"].get(older).superseded_by == newer


@BOTH
def test_deleting_and_recovering_the_successor_concerns_those_who_saw_it(people):
    old, new = pair(people)

    people["ann"].forget(new)
    assert current(people["ann"]) == current(people["bob"]) == [old]
    people["ann"].recover(new)
    assert (current(people["ann"]), current(people["bob"])) == ([new], [old])
    people["ann"].forget(new, hard=True)
    assert current(people["ann"]) == current(people["bob"]) == [old]
    assert people["local"].records.sync.asides(old) == []


@BOTH
def test_two_private_successors_count_each_for_its_own(people):
    old, anns = pair(people)
    bobs = people["bob"].store("The harbour office opens at eleven", access_level=AccessLevel.PRIVATE).memory.id
    people["bob"].supersede(old=old, new=bobs)

    assert (current(people["ann"]), current(people["bob"])) == ([anns], [bobs])
    assert people["ann"].get(old).superseded_by == anns
    assert people["bob"].get(old).superseded_by == bobs
    assert current(people["reader"]) == [old]


@BOTH
def test_a_change_by_someone_who_sees_it_superseded_does_not_tell_the_others(people):
    """What is read with an aside is written without it."""
    old, new = pair(people)

    for name in ("ann", "local", "bob"):
        people[name].update(old, tags=[name])
        assert (current(people["ann"]), current(people["bob"])) == ([new], [old])
        assert new not in ask_all(people["bob"], old)


@BOTH
def test_releasing_takes_back_what_the_caller_may_see_only(people):
    old, new = pair(people)

    people["ann"].curation.release(old)

    assert current(people["ann"]) == sorted([old, new])
    assert people["ann"].get(old).superseded_by is None
    assert people["ann"].get(new).supersedes is None
    assert people["local"].get(old).version == 1


def test_a_release_leaves_anothers_private_supersession_alone(people):
    old, anns = pair(people)
    shared = people["bob"].store("The harbour office opens at eight").memory.id
    people["bob"].supersede(old=old, new=shared)

    people["bob"].curation.release(old)

    assert people["bob"].get(old).superseded_by is None
    assert people["ann"].get(old).superseded_by == anns


def test_what_is_public_stays_current_for_strangers_when_something_shared_supersedes_it(people):
    old, new = pair(people, old="public", new="shared")

    assert people["stranger"].get(old).superseded_by is None
    assert [memory.id for memory in people["stranger"].list()] == [old]
    assert current(people["bob"]) == [new]


def test_a_successor_in_another_space_counts_for_those_who_may_go_there(jay):
    ann = Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default", "other"}))
    both = jay.bound_to(caller=ann, only=True)
    here = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=TEAM))
    old = both.store(OLD).memory.id
    new = both.bound_to(spaces=("other",)).store(NEW).memory.id
    both.supersede(old=old, new=new)

    assert both.get(old).superseded_by == new
    assert list(both.list()) == [], "also when it asks in one space"
    assert here.get(old).superseded_by is None
    assert [memory.id for memory in here.list()] == [old]


def test_a_private_decision_leaves_the_shared_head_of_its_topic_to_the_others(people):
    ann, bob = people["ann"], people["bob"]
    shared = bob.decisions.save("lock", "A barrel lock").memory
    private = ann.decisions.save("lock", "A time lock", access_level=AccessLevel.PRIVATE).memory
    later = bob.decisions.save("lock", "A padlock").memory

    assert later.supersedes == shared.id
    assert ann.get(shared.id).superseded_by == later.id
    assert private.id not in repr([bob.get(shared.id), bob.get(later.id), bob.links(later.id)])


def test_a_conflict_that_ann_has_settled_privately_is_still_open_for_bob(people):
    older, newer = (people["bob"].store(text).memory for text in (OLD, "The harbour office opens at eight"))
    open_conflict(people["bob"], newer, older)
    assert len(people["bob"].conflicts.list()) == 1
    private = people["ann"].store(NEW, access_level=AccessLevel.PRIVATE).memory.id
    people["ann"].supersede(old=older.id, new=private)

    assert len(people["bob"].conflicts.list()) == 1
    assert older.id not in [pair.old.id for pair in people["ann"].conflicts.list()]


def test_a_mirrored_file_does_not_name_a_hidden_memory(people, tmp_path):
    people["local"].folders.mirror("default")
    old, new = pair(people)
    people["local"].write_files(patient=True)
    texts = [file.read_text() for file in tmp_path.rglob("*.md") if old in file.read_text()]

    assert texts
    assert not any(new in text or "superseded_by" in text for text in texts)


def test_settling_twice_writes_nothing(people):
    old, _ = pair(people)
    jay = people["local"]

    with jay.records.writing() as tx:
        before = tx.sync.asides(old)
        assert supersession.settle(tx, supersession.plain(tx, jay.get(old))) is False
        assert tx.sync.asides(old) == before
