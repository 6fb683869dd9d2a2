"""Two states of a memory that meet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrubjay.engine.sync.merge import Winner, WinnerPolicy, includes, join_replicas
from scrubjay.stores.promises.sync import Erased, Replica, Stamp
from tests.stores.contract.suite import NOW, later, some

pytestmark = pytest.mark.process


def state(content: str = "tea", *, hlc: int = 10, origin: str = "a", version: int = 1, **fields) -> Replica:
    beside = {name: fields.pop(name) for name in ("seen", "erased", "aliases") if name in fields}
    memory = some(content, id="mem_1", hlc=hlc, origin=origin, version=version, **fields)
    return Replica(memory=memory, parts=1, **beside)


OURS = state("tea", hlc=20, origin="a", version=5, tags=("warm",), metadata={"cup": 1, "pot": 1}, access_count=2)
THEIRS = state("milk", hlc=30, origin="b", version=3, tags=("cold",), metadata={"cup": 2}, access_count=9)


def test_a_state_includes_its_own_change_and_what_it_has_seen():
    stamp = Stamp(hlc=30, origin="b", version=2, seen={"a": 20})

    assert includes(stamp, Stamp(hlc=30, origin="b", version=2))
    assert includes(stamp, Stamp(hlc=20, origin="a", version=1))
    assert not includes(stamp, Stamp(hlc=21, origin="a", version=1))
    assert not includes(stamp, Stamp(hlc=1, origin="c", version=1))


def test_what_is_not_known_here_is_taken_as_it_is():
    assert join_replicas(None, THEIRS, WinnerPolicy.NEWEST).state == THEIRS


def test_a_later_state_of_the_same_line_replaces_the_earlier_one_without_a_question():
    later_state = replace(THEIRS, seen={"a": 20})

    outcome = join_replicas(OURS, later_state, WinnerPolicy.MANUAL)

    assert outcome.state.memory.content == "milk"
    assert outcome.state.memory.version == 6
    assert not outcome.conflict
    assert not outcome.stamped_anew


def test_an_earlier_state_of_the_same_line_changes_nothing():
    current = replace(THEIRS, seen={"a": 20}, memory=replace(THEIRS.memory, version=6))

    assert join_replicas(current, OURS, WinnerPolicy.MANUAL).state is None


@pytest.mark.parametrize("policy", WinnerPolicy)
def test_the_same_state_twice_is_once(policy):
    assert join_replicas(OURS, OURS, policy).state is None


def test_the_newest_keeps_its_stamp_and_knows_of_the_other():
    outcome = join_replicas(OURS, THEIRS, WinnerPolicy.NEWEST)

    assert (outcome.state.memory.hlc, outcome.state.memory.origin) == (30, "b")
    assert outcome.state.seen == {"a": 20}
    assert outcome.state.memory.version == 6
    assert (outcome.conflict, outcome.winner) == (True, Winner.INCOMING)


def test_both_stores_come_to_the_same_newest_state():
    here, there = join_replicas(OURS, THEIRS, WinnerPolicy.NEWEST), join_replicas(THEIRS, OURS, WinnerPolicy.NEWEST)

    assert here.state == there.state
    assert there.winner is Winner.CURRENT


@pytest.mark.parametrize(("policy", "content"), [(WinnerPolicy.INCOMING, "milk"), (WinnerPolicy.CURRENT, "tea")])
def test_a_named_winner_becomes_a_new_state_that_includes_both(policy, content):
    outcome = join_replicas(OURS, THEIRS, policy)

    assert outcome.state.memory.content == content
    assert outcome.stamped_anew
    assert outcome.state.memory.version == 6
    assert outcome.state.seen == {"a": 20, "b": 30}


def test_merging_keeps_the_newest_text_both_tags_both_metadata_and_the_higher_count():
    merged = join_replicas(OURS, THEIRS, WinnerPolicy.MERGE).state.memory

    assert merged.content == "milk"
    assert merged.tags == ("cold", "warm")
    assert merged.metadata == {"cup": 2, "pot": 1}
    assert merged.access_count == 9


def test_left_to_somebody_nothing_is_written():
    outcome = join_replicas(OURS, THEIRS, WinnerPolicy.MANUAL)

    assert outcome.state is None
    assert (outcome.conflict, outcome.winner) == (True, Winner.NONE)


def test_the_same_change_made_twice_is_no_conflict():
    twin = replace(OURS, memory=replace(OURS.memory, hlc=25, origin="b", updated_at=later(1)))

    outcome = join_replicas(OURS, twin, WinnerPolicy.MANUAL)

    assert not outcome.conflict
    assert outcome.state.memory.origin == "b"


@pytest.mark.parametrize("policy", WinnerPolicy)
@pytest.mark.parametrize("gone_is_here", [True, False])
def test_what_somebody_wished_erased_wins_over_every_policy_and_time(policy, gone_is_here):
    gone = replace(state("", hlc=1, origin="c"), erased=Erased.FINAL)

    outcome = join_replicas(gone, THEIRS, policy) if gone_is_here else join_replicas(THEIRS, gone, policy)

    assert outcome.state is None or outcome.state.erased is Erased.FINAL
    assert outcome.winner is (Winner.CURRENT if gone_is_here else Winner.INCOMING)
    assert outcome.conflict  # somebody's edit is gone, and that is said


def test_a_recovery_elsewhere_wins_over_a_deletion_whose_date_had_come():
    purged = replace(state("", hlc=20, origin="a", version=2), erased=Erased.IN_TIME)
    recovered = state("tea", hlc=25, origin="b", version=3, seen={"a": 20})

    outcome = join_replicas(purged, recovered, WinnerPolicy.NEWEST)

    assert outcome.state.memory.content == "tea"
    assert not outcome.conflict


def test_a_deletion_whose_date_had_come_elsewhere_is_erased_here_too():
    deleted = state("tea", hlc=20, origin="a", version=2)
    purged = replace(state("", hlc=20, origin="a", version=2), erased=Erased.IN_TIME)

    assert join_replicas(deleted, purged, WinnerPolicy.NEWEST).state.erased is Erased.IN_TIME
    assert join_replicas(purged, deleted, WinnerPolicy.NEWEST).state is None


def test_aliases_add_up():
    one, other = replace(OURS, aliases=("backup_1",)), replace(OURS, aliases=("arch_1",))

    assert join_replicas(one, other, WinnerPolicy.NEWEST).state.aliases == ("arch_1", "backup_1")


def test_the_clock_on_the_wall_decides_nothing():
    """A store whose clock is an hour late has seen the other's state, so its change is the later one."""
    behind = replace(OURS, memory=replace(OURS.memory, hlc=31, updated_at=NOW), seen={"b": 30})
    ahead = replace(THEIRS, memory=replace(THEIRS.memory, updated_at=later(60)))

    assert join_replicas(ahead, behind, WinnerPolicy.NEWEST).state.memory.content == "tea"
