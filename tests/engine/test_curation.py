"""Keeping order by hand: conflicts, supersessions taken back, versions compared, what lies around a memory."""

from __future__ import annotations

import os

import pytest

from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.lifecycle.curation import Curation
from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.codec import plain
from scrubjay.values.memory import AccessLevel, Kind, LinkKind, NewMemory, Relation, Status
from tests.conflict import open_conflict


def conflicting(jay):
    older = jay.store("The harbour master is called Ottilie").memory
    newer = jay.store("The harbour master is called Ada").memory
    open_conflict(jay, newer, older)
    return older, newer


def test_what_was_superseded_is_released(jay):
    old, new = jay.store("Ottilie leads").memory, jay.store("Ada leads").memory
    jay.supersede(old=old.id, new=new.id)

    released = jay.curation.release(old.id)

    assert (released.superseded_by, released.valid_until) == (None, None)
    assert jay.get(new.id).supersedes is None
    assert {memory.id for memory in jay.list()} == {old.id, new.id}
    jay.forget(new.id)
    jay.recover(new.id)
    assert jay.get(old.id).superseded_by is None, "a link that was released stays so"
    with pytest.raises(Conflict):
        jay.curation.release(old.id)

    jay.supersede(old=new.id, new=old.id)  # the other way round, and back
    jay.curation.release(new.id)
    jay.supersede(old=old.id, new=new.id)
    assert jay.get(old.id).superseded_by == new.id


def test_what_supersedes_many_names_the_one_before_when_the_last_is_released(jay):
    one, other, new = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=one, new=new)
    jay.supersede(old=other, new=new)

    jay.curation.release(other)

    assert jay.get(new).supersedes == one


def test_a_released_memory_stays_released_when_another_successor_comes_and_goes(jay):
    old, released, later = (jay.store(text).memory for text in ("Ottilie leads", "Ada leads", "Mo leads"))
    jay.supersede(old=old.id, new=released.id)
    jay.curation.release(old.id)

    jay.supersede(old=old.id, new=later.id)
    jay.forget(later.id)

    assert jay.get(old.id).superseded_by is None, "the supersession by Ada was taken back"


def test_a_memory_does_not_supersede_again_what_was_released_when_its_own_successor_goes(jay):
    old, new, newest = (jay.store(text).memory for text in ("Ottilie leads", "Ada leads", "Mo leads"))
    jay.supersede(old=old.id, new=new.id)
    jay.curation.release(old.id)

    jay.supersede(old=new.id, new=newest.id)
    jay.forget(newest.id)

    assert jay.get(new.id).supersedes is None


def test_versions_are_compared_field_by_field(jay):
    memory = jay.store("One\nTwo\nThree", tags=("a",)).memory
    jay.update(memory.id, content="One\nZwei\nThree", importance=0.9)
    jay.update(memory.id, tags=["b"])

    first = {one.field: one for one in jay.curation.diff(memory.id, old=1)}
    last = jay.curation.diff(memory.id, old=2, new=3)

    assert [line for line in first["content"].lines if line[0] in "+-"] == ["-Two", "+Zwei"]
    assert first["importance"].new == 0.9
    assert plain(first["tags"])["new"] == ["b"]
    assert [one.field for one in last] == ["tags"]
    assert jay.curation.diff(memory.id, old=2, new=2) == []
    with pytest.raises(NotFound):
        jay.curation.diff(memory.id, old=9)


def test_what_lies_around_a_memory(jay):
    centre = jay.store("The crane lifts nine tons").memory
    near = jay.store("The crane was built in 1971", related=(centre.id,)).memory
    far = jay.store("The builder was called Brandt", related=(near.id,)).memory
    gone = jay.store("The crane is broken", related=(centre.id,)).memory
    jay.forget(gone.id)

    one, two = jay.curation.around(centre.id), jay.curation.around(centre.id, steps=2)

    assert {memory.id for memory in one.memories} == {centre.id, near.id}
    assert {memory.id for memory in two.memories} == {centre.id, near.id, far.id}
    assert {(link.source, link.target) for link in two.links if link.kind is LinkKind.RELATED} == {
        (near.id, centre.id), (far.id, near.id),
    }  # fmt: skip
    with pytest.raises(InvalidInput):
        jay.curation.around(centre.id, steps=4)


def test_what_is_alike_is_shown_if_asked(jay):
    centre = jay.store("The crane lifts nine tons").memory
    like = jay.store("The crane lifts eight tons today").memory

    found = jay.curation.around(centre.id, similar=True)

    assert like.id in {memory.id for memory in found.memories}


def test_nobody_sees_what_is_not_theirs_around_a_memory(jay):
    centre = jay.store("The crane lifts nine tons").memory
    jay.store("The crane lifts ten tons", related=(centre.id,), access_level=AccessLevel.PRIVATE)
    member = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER))

    assert [memory.id for memory in member.curation.around(centre.id, similar=True).memories] == [centre.id]
    assert member.conflicts.list() == []


@pytest.mark.parametrize("take_back", ["recover", "undo"])
def test_a_forgotten_memory_is_restored_only_at_the_version_that_is_expected(jay, take_back):
    memory = jay.store("The crane is red").memory
    forgotten = jay.forget(memory.id).memory

    def restore(expected):
        bound = jay.bound_to(expected_version=expected)
        return bound.recover(memory.id) if take_back == "recover" else bound.curation.undo(memory.id)

    with pytest.raises(Conflict, match=f"now at version {forgotten.version}"):
        restore(memory.version)
    assert jay.get(memory.id, deleted=True).status is Status.DELETED

    restore(forgotten.version)
    assert jay.get(memory.id).status is Status.ACTIVE


@pytest.mark.parametrize("take_back", ["release", "undo"])
def test_a_supersession_is_taken_back_only_at_the_version_that_is_expected(jay, take_back):
    older, newer = conflicting(jay)
    outdated, _ = jay.supersede(old=older.id, new=newer.id)

    with pytest.raises(Conflict, match=f"now at version {outdated.version}"):
        getattr(jay.bound_to(expected_version=older.version).curation, take_back)(older.id)
    assert jay.get(older.id).superseded_by == newer.id

    getattr(jay.bound_to(expected_version=outdated.version).curation, take_back)(older.id)
    assert jay.get(older.id).superseded_by is None


@pytest.mark.parametrize("relation", Relation)
def test_an_undo_takes_back_what_was_said_about_a_pair_and_opens_it_again(jay, relation):
    for named in ("old", "new"):
        older, newer = conflicting(jay)
        ids = {"old": older.id, "new": newer.id}
        jay.update(ids[named], tags=["harbour"])
        jay.conflicts.relate(**ids, relation=relation)
        assert jay.conflicts.list() == []

        undone = jay.curation.undo(ids[named])

        assert undone.what == ("settled" if relation is Relation.BOTH_TRUE else "superseded")
        assert [(pair.old.id, pair.new.id) for pair in jay.conflicts.list()] == [(older.id, newer.id)]
        assert jay.get(older.id).superseded_by is None
        assert jay.get(newer.id).supersedes is None
        assert jay.get(ids[named]).tags == ("harbour",), "the update came before"
        for other in ("new", "old"):  # and so it can be settled and undone again, by either memory
            jay.conflicts.relate(old=older.id, new=newer.id, relation=relation)
            jay.curation.undo(ids[other])
            assert len(jay.conflicts.list()) == 1
        assert jay.curation.undo(ids[named]).what == "revised"
        with pytest.raises(Conflict, match="nothing to undo"):
            jay.curation.undo(ids[named])
        for memory in (older, newer):
            jay.forget(memory.id)


def test_a_later_update_is_taken_back_before_what_was_said_about_a_pair(jay):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.BOTH_TRUE)
    jay.update(older.id, tags=["harbour"])

    assert jay.curation.undo(older.id).what == "revised"
    assert jay.conflicts.list() == []
    assert jay.curation.undo(older.id).what == "settled"
    assert len(jay.conflicts.list()) == 1
    with pytest.raises(Conflict, match="nothing to undo"):
        jay.curation.undo(older.id)


def test_two_memories_that_were_never_asked_about_are_not_asked_about_after_an_undo(jay):
    one, other = jay.store("The crane is red").memory, jay.store("The crane is tall").memory
    jay.conflicts.relate(old=one.id, new=other.id, relation=Relation.BOTH_TRUE)

    assert jay.curation.undo(one.id).what == "settled"

    assert jay.conflicts.list() == []
    with pytest.raises(Conflict, match="nothing to undo"):
        jay.curation.undo(one.id)
    jay.conflicts.relate(old=one.id, new=other.id, relation=Relation.BOTH_TRUE)
    assert jay.curation.undo(other.id).what == "settled"


def test_what_was_said_about_a_pair_is_taken_back_only_at_the_version_that_is_expected(jay):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.BOTH_TRUE)

    with pytest.raises(Conflict, match="now at version"):
        jay.bound_to(expected_version=older.version + 1).curation.undo(older.id)
    assert jay.conflicts.list() == []


def test_what_a_stranger_may_not_change_it_cannot_reopen(jay):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.BOTH_TRUE)
    stranger = jay.bound_to(
        caller=Caller(user="ann", role=Role.READER, spaces=frozenset({older.space}), credential="c")
    )

    with pytest.raises(Forbidden):
        stranger.curation.undo(older.id)
    assert jay.conflicts.list() == []


def test_an_undo_takes_back_nothing_that_was_said_while_it_looked(jay, monkeypatch):
    old, new, newest = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=old, new=new)
    curation, look = jay.curation, Curation._last_settled

    def look_slowly(*given):
        monkeypatch.undo()
        found = look(curation, *given)
        jay.curation.release(old)
        jay.supersede(old=old, new=newest)
        return found

    monkeypatch.setattr(curation, "_last_settled", look_slowly)
    with pytest.raises(Conflict, match="meanwhile"):
        curation.undo(new)
    assert jay.get(old).superseded_by == newest


def test_an_outcome_is_taken_back_before_an_earlier_revision(jay):
    decision = jay.store(NewMemory(content="Use Redis", kind=Kind.DECISION, topic="cache", tags=("old",))).memory
    jay.update(decision.id, tags=["new"])
    jay.decisions.mark(decision.id, "failed", reason="too slow")

    undone = jay.curation.undo(decision.id)

    assert undone.fields == ("outcome",)
    assert "outcome" not in undone.memory.detail
    assert jay.get(decision.id).tags == ("new",)
    assert jay.curation.undo(decision.id).memory.tags == ("old",)
    with pytest.raises(Conflict, match="nothing to undo"):
        jay.curation.undo(decision.id)


def test_a_decision_that_replaced_another_from_the_start_has_nothing_to_undo(jay):
    first = jay.store(NewMemory(content="Use Redis", kind=Kind.DECISION, topic="cache")).memory
    second = jay.store(NewMemory(content="Use Valkey", kind=Kind.DECISION, topic="cache")).memory

    with pytest.raises(Conflict, match="nothing to undo") as refused:
        jay.curation.undo(second.id)
    assert jay.get(first.id).superseded_by == second.id
    assert refused.value.hint == (
        f"Forget it, if it should not have been stored: {first.id}, which it replaced, is then current again."
    )
    jay.forget(second.id)
    assert (jay.get(first.id).superseded_by, jay.get(first.id).valid_until) == (None, None)


def test_an_undo_takes_back_the_last_of_two_supersessions_and_then_the_first(jay, clock):
    old, first, second = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=old, new=first)
    ended = jay.get(old).valid_until
    clock.move(days=1)
    jay.supersede(old=old, new=second)

    undone = jay.curation.undo(old)
    assert (undone.other, undone.memory.superseded_by, undone.memory.valid_until) == (second, first, ended)
    assert jay.get(second).supersedes is None
    undone = jay.curation.undo(old)
    assert (undone.other, undone.memory.superseded_by, undone.memory.valid_until) == (first, None, None)
    with pytest.raises(Conflict, match="nothing to undo"):
        jay.curation.undo(old)


def test_the_first_of_two_supersessions_is_taken_back_by_what_replaced_it_first(jay, clock):
    old, first, second = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=old, new=first)
    clock.move(days=1)
    jay.supersede(old=old, new=second)

    undone = jay.curation.undo(first)

    assert (undone.what, undone.memory.id, undone.memory.superseded_by) == ("superseded", old, second)
    assert undone.memory.valid_until == clock()
    jay.forget(second)
    assert jay.get(old).superseded_by is None


def test_a_revision_after_a_supersession_is_taken_back_first_though_another_came_later(jay, clock):
    old, first, second = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=old, new=first)
    clock.move(days=1)
    jay.update(first, tags=["harbour"])
    clock.move(days=1)
    jay.supersede(old=old, new=second)

    assert [jay.curation.undo(first).what for _ in range(2)] == ["revised", "superseded"]


def test_an_undo_takes_back_no_supersession_that_came_while_it_looked(jay, monkeypatch):
    old, first, second = (jay.store(f"{name} leads").memory.id for name in ("Ottilie", "Ada", "Ida"))
    jay.supersede(old=old, new=first)
    undo = Curation._undo_supersession

    def late(curation, tx, memory):
        monkeypatch.undo()
        lifecycle.supersede(jay.ledger, tx, old, second)
        return undo(curation, tx, memory)

    monkeypatch.setattr(Curation, "_undo_supersession", late)
    with pytest.raises(Conflict, match="meanwhile"):
        jay.curation.undo(old)


@pytest.mark.parametrize("relation", Relation)
def test_an_undo_with_a_forgotten_memory_says_that_this_one_comes_first(jay, relation):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=relation)
    jay.forget(older.id)

    with pytest.raises(Conflict, match=f"{older.id}, which is forgotten") as refused:
        jay.curation.undo(newer.id)

    assert older.id in refused.value.hint
    assert jay.curation.undo(older.id).what == "forgotten"
    assert jay.curation.undo(newer.id).what == ("settled" if relation is Relation.BOTH_TRUE else "superseded")


def test_what_was_said_of_a_memory_that_cannot_come_back_is_passed_over(jay, clock):
    older, newer = conflicting(jay)
    jay.update(newer.id, tags=["harbour"])
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.REPLACES)
    jay.forget(older.id)
    clock.move(days=31)

    assert jay.curation.undo(newer.id).what == "revised"


def test_what_is_current_because_its_successor_is_forgotten_names_that_one(jay):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.REPLACES)
    jay.forget(newer.id)

    with pytest.raises(Conflict, match="nothing to undo") as refused:
        jay.curation.undo(older.id)

    assert refused.value.hint == (f"It is current because {newer.id}, which replaced it, was forgotten: undo that.")


def test_a_pair_that_is_both_true_is_so_again_after_an_undone_supersession(jay):
    older, newer = conflicting(jay)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.BOTH_TRUE)
    jay.conflicts.relate(old=older.id, new=newer.id, relation=Relation.REPLACES)
    with pytest.raises(Conflict, match="already superseded"):
        jay.conflicts.settle(old=older.id, new=newer.id, keep=True)

    jay.curation.undo(older.id)

    assert jay.conflicts.list() == []
    assert jay.curation.undo(older.id).what == "settled"
    assert len(jay.conflicts.list()) == 1


def test_a_statement_about_a_memory_in_a_read_only_folder_can_be_taken_back(jay, tmp_path):
    (tmp_path / "vault").mkdir()
    file = tmp_path / "vault" / "crane.md"
    file.write_text("The crane is red\n")
    os.utime(file, (1_600_000_000, 1_600_000_000))  # older than the other, so that the statement leads to it
    jay.folders.add("vault", tmp_path / "vault", read_only=True)
    [fixed] = jay.bound_to(spaces=("vault",)).list()
    own = jay.store("The crane is tall").memory
    jay.conflicts.relate(old=own.id, new=fixed.id, relation=Relation.BOTH_TRUE)

    assert jay.curation.undo(own.id).what == "settled"
