"""What a store promises about sync: `promises/sync.py` in other words, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scrubjay.errors import Conflict
from scrubjay.stores.promises.memories import Store, Transaction, clock_at
from scrubjay.stores.promises.statistics import Part
from scrubjay.stores.promises.sync import Aside, Endpoint, Erased, Heard, Replica, Stamp, SyncConflict
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AT_HAND, AccessLevel, Context, Memory, State, Status
from scrubjay.values.search import Filter
from scrubjay.values.times import milliseconds
from tests.stores.contract.samples import (
    CLOSE,
    EVERYTHING,
    NOTHING,
    NOW,
    QUERY,
    Reopen,
    changed,
    got,
    ids,
    later,
    listed,
    matched,
    nearest,
    purge,
    put,
    some,
    take,
    unit,
)


def point_aside(tx: Transaction, memory: Memory, aside: Aside) -> None:
    tx.sync.point(memory.id, supersedes=None, superseded_by=None, valid_until=None, asides=[aside])


class SyncContract:
    # --- what counts for some only ---

    def test_what_supersedes_a_memory_for_some_only_is_told_to_them_only(self, store: Store) -> None:
        old, other = put(store, some("one tide")), put(store, some("another tide"))
        new = put(store, some("a third tide", access_level=AccessLevel.PRIVATE, context=Context(user_id="ann")))
        with store.writing() as tx:
            point_aside(tx, old, Aside("superseded_by", new.id, 7))
            point_aside(tx, new, Aside("supersedes", old.id, 7))
        ann, bob = (Audience(user, (Scope("default", Sight.OWN),)) for user in ("ann", "bob"))

        assert [one.superseded_by for one in store.get([old.id], ann)] == [new.id]
        assert [one.superseded_by for one in store.get([old.id], bob)] == [None]
        assert [one.supersedes for one in store.get([new.id], ann)] == [old.id]
        assert got(store, old.id).superseded_by == new.id, "for those who see everything"
        assert {entry.id: entry.superseded_by for entry in store.files.entries("default", "", bob)} == {
            old.id: None,
            other.id: None,
        }
        for audience, current, outdated in ((ann, {other.id, new.id}, {old.id}), (bob, {old.id, other.id}, set())):
            for wanted, expected in (
                (Filter(), current),
                (Filter(states=frozenset({State.SUPERSEDED})), outdated),
                (Filter(states=AT_HAND), current | outdated),
            ):
                assert {one.id for one in store.list(wanted, audience, now=NOW)} == expected
                assert store.count(wanted, audience, now=NOW) == len(expected)
                assert {one.memory for one in store.match("tide", wanted, audience, now=NOW, limit=9)} == expected
                assert {one.memory for one in store.nearest(QUERY, wanted, audience, now=NOW, limit=9)} == expected

    def test_an_aside_is_no_part_of_a_memorys_row(self, store: Store) -> None:
        old, new = put(store, some()), put(store, some(access_level=AccessLevel.PRIVATE))
        with store.writing() as tx:
            point_aside(tx, old, Aside("superseded_by", new.id, 7))

        changed(store, got(store, old.id), title="read with it")

        nothing = Audience("", (Scope(None, Sight.ALL),), reach=())
        assert [one.superseded_by for one in store.get([old.id], nothing)] == [None]
        assert [one.memory.superseded_by for one in store.history.versions(old.id)] == [None]
        assert store.sync.asides(old.id) == [Aside("superseded_by", new.id, 7)]
        purge(store, new.id)
        assert store.sync.asides(old.id) == []

    def test_what_an_aside_names_counts_only_while_it_is_there(self, store: Store) -> None:
        old, new = put(store, some()), put(store, some(access_level=AccessLevel.PRIVATE))
        with store.writing() as tx:
            point_aside(tx, old, Aside("superseded_by", new.id, 7))

        changed(store, new, status=Status.DELETED, recoverable_until=later(9))

        assert got(store, old.id).superseded_by is None
        assert listed(store) == [old.id]

    def test_a_memory_travels_with_its_aliases_and_vectors(self, store: Store) -> None:
        memory = put(store, some(hlc=7, origin="a"), (unit(1), unit(2)), parts=3)
        with store.writing() as tx:
            tx.history.alias("arch_1", memory.id)

        [replica] = store.sync.replicas([memory.id, "unknown"], EVERYTHING, vectors=True)

        assert replica.memory == memory
        assert (replica.aliases, replica.parts, replica.erased, replica.seen) == (("arch_1",), 3, Erased.NO, {})
        assert np.allclose(replica.vectors, [unit(1), unit(2)], atol=CLOSE)
        assert store.sync.stamps([memory.id, "unknown"], EVERYTHING) == {memory.id: replica.stamp}
        assert store.sync.replicas([memory.id], EVERYTHING)[0].vectors == ()

    def test_what_nobody_may_see_does_not_travel(self, store: Store) -> None:
        memory = put(store, some())

        assert store.sync.replicas([memory.id], NOTHING) == []
        assert store.sync.stamps([memory.id], NOTHING) == {}

    def test_a_change_by_another_store_is_remembered_as_seen(self, store: Store) -> None:
        memory = put(store, some(hlc=5, origin="a"))
        memory = changed(store, memory, hlc=6, origin="a")
        assert store.sync.stamps([memory.id], EVERYTHING)[memory.id].seen == {}

        memory = changed(store, memory, hlc=9, origin="b")

        assert store.sync.stamps([memory.id], EVERYTHING)[memory.id].seen == {"a": 6}

    def test_a_tombstone_travels_and_says_whether_it_was_wished(self, store: Store) -> None:
        wished, due = put(store, some(hlc=5, origin="a")), put(store, some(hlc=5, origin="a", version=4))
        with store.writing() as tx:
            tx.purge(wished.id, at=NOW)
            tx.purge(due.id, at=later(9), final=False)

        one, other = store.sync.replicas([wished.id, due.id], EVERYTHING)

        assert (one.erased, other.erased) == (Erased.FINAL, Erased.IN_TIME)
        assert one.memory.version == 2
        assert (other.memory.version, other.memory.hlc, other.memory.origin) == (4, 5, "a")
        assert other.memory.updated_at == due.updated_at
        assert (one.memory.content, other.memory.content) == ("", "")

    def test_a_replica_is_written_as_it_is_and_found(self, store: Store) -> None:
        memory = some("User plays the cello", version=7, hlc=70, origin="b", tags=("music",))

        take(store, Replica(memory=memory, seen={"a": 3}, aliases=("backup_1",), parts=1), (QUERY,))

        [replica] = store.sync.replicas([memory.id], EVERYTHING)
        assert replica.memory == replace(memory, seq=replica.memory.seq)
        assert (replica.seen, replica.aliases) == ({"a": 3}, ("backup_1",))
        assert matched(store, "cello") == [memory.id]
        assert nearest(store) == [memory.id]
        assert got(store, "backup_1").id == memory.id

    def test_a_replica_replaces_what_is_here_which_joins_the_history(self, store: Store) -> None:
        memory = put(store, some("tea", version=5, hlc=50, origin="a"))
        other = replace(memory, content="milk", title="milk", version=6, hlc=40, origin="b")

        take(store, Replica(memory=other, parts=1), ())

        [replica] = store.sync.replicas([memory.id], EVERYTHING)
        assert (replica.memory.content, replica.memory.version, replica.memory.hlc) == ("milk", 6, 40)
        assert replica.seen == {"a": 50}
        assert [version.memory.content for version in store.history.versions(memory.id)] == ["tea"]
        assert matched(store, "tea") == []
        assert matched(store, "milk") == [memory.id]
        assert [one.memory.id for one in store.upkeep.pending(limit=9)] == [memory.id]

    def test_of_the_same_state_only_version_and_seen_are_written(self, store: Store) -> None:
        memory = put(store, some("tea", version=2, hlc=50, origin="a"))

        take(store, Replica(memory=replace(memory, version=4), seen={"b": 9}, parts=1), None)

        [replica] = store.sync.replicas([memory.id], EVERYTHING)
        assert (replica.memory.version, replica.seen) == (4, {"b": 9})
        assert store.history.versions(memory.id) == []
        assert nearest(store) == [memory.id]

    def test_a_tombstone_erases_what_is_here(self, store: Store) -> None:
        memory = put(store, some("tea", hlc=50, origin="a"))
        gone = replace(memory, content="", title="", path="", status=Status.DELETED, version=3, hlc=60, origin="b")

        take(store, Replica(memory=gone, erased=Erased.FINAL), None)

        assert store.get([memory.id], EVERYTHING) == []
        assert matched(store, "tea") == []
        assert store.sync.stamps([memory.id], EVERYTHING)[memory.id] == Stamp(
            hlc=60, origin="b", version=3, erased=Erased.FINAL, seen={"a": 50}
        )
        assert store.count(Filter(states=frozenset({State.PURGED})), EVERYTHING, now=NOW) == 1

    def test_a_tombstone_of_a_memory_never_seen_is_kept(self, store: Store) -> None:
        gone = some("", title="", path="", status=Status.DELETED, hlc=60, origin="b")

        take(store, Replica(memory=gone, erased=Erased.IN_TIME), None)

        assert store.get([gone.id], EVERYTHING) == []
        assert store.sync.stamps([gone.id], EVERYTHING)[gone.id].erased is Erased.IN_TIME

    def test_what_was_erased_in_time_comes_back_if_it_was_recovered_elsewhere(self, store: Store) -> None:
        memory = put(store, some("tea", hlc=50, origin="a", status=Status.DELETED))
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW, final=False)

        take(store, Replica(memory=replace(memory, status=Status.ACTIVE, version=2, hlc=60), parts=1), (QUERY,))

        assert got(store, memory.id).content == "tea"
        assert matched(store, "tea") == [memory.id]
        assert nearest(store) == [memory.id]
        states = store.statistics.totals(Part(), EVERYTHING, now=NOW).states
        assert states == {State.ACTIVE: 1}

    def test_a_replica_on_a_taken_path_is_refused(self, store: Store) -> None:
        holder = put(store, some("here", path="notes/a"))

        with pytest.raises(Conflict):
            take(store, Replica(memory=some("there", path="notes/a"), parts=1), ())

        assert store.files.at_path("default", "notes/a", EVERYTHING) == holder

    def test_a_private_replica_may_lie_where_a_shared_memory_does(self, store: Store) -> None:
        put(store, some("here", path="notes/a"))

        mine = some("there", id="mine", path="notes/a", access_level=AccessLevel.PRIVATE)
        take(store, Replica(memory=mine, parts=1), ())

        assert got(store, "mine").path == "notes/a"

    def test_an_alias_of_another_memory_stays_its_own(self, store: Store) -> None:
        first = put(store, some("first"))
        with store.writing() as tx:
            tx.history.alias("backup_1", first.id)

        take(store, Replica(memory=some("second"), aliases=("backup_1", first.id), parts=1), ())

        assert got(store, "backup_1").id == first.id
        assert got(store, first.id).content == "first"

    def test_the_clock_is_past_what_it_has_seen(self, store: Store) -> None:
        far = (milliseconds(NOW) + 10**9) << 16
        with store.writing() as tx:
            tx.clock.observe(far)
            assert tx.clock.tick(NOW) > far

    def test_a_lifted_clock_is_set_back_and_stamps_keep_their_order(self, store: Store) -> None:
        now, far = clock_at(NOW), 2**62
        stamps = {"early": 5, "last": far + 9, "third": far + 2, "second": now + 3}
        memories = {name: put(store, some(name, hlc=hlc, origin="a")) for name, hlc in stamps.items()}
        with store.writing() as tx:
            tx.clock.observe(far + 9)
            mended = tx.sync.mend_clock(now=now, latest=now + 10)
            after = tx.clock.tick(NOW)

        found = {name: got(store, memory.id).hlc for name, memory in memories.items()}
        assert mended == 2
        assert (found["early"], found["second"]) == (5, now + 3)
        assert now + 3 < found["third"] < found["last"] < after == store.sync.clock() < now + 100

    def test_pointing_changes_neither_version_nor_stamp(self, store: Store) -> None:
        old, new = put(store, some("old", hlc=5, origin="a")), put(store, some("new"))
        with store.writing() as tx:
            tx.sync.point(old.id, supersedes=None, superseded_by=new.id, valid_until=NOW)

        assert got(store, old.id) == replace(old, superseded_by=new.id, valid_until=NOW)
        assert listed(store) == [new.id]
        with store.writing() as tx:
            tx.sync.point(old.id, supersedes=None, superseded_by=None, valid_until=None)
        assert got(store, old.id) == old
        assert set(listed(store)) == {old.id, new.id}

    def test_spaces_are_told_with_their_descriptions(self, store: Store) -> None:
        with store.writing() as tx:
            tx.spaces.create("work", at=NOW, description="What the team knows")

        assert store.spaces.described() == {"default": None, "work": "What the team knows"}

    def test_an_alias_is_moved_to_another_memory(self, store: Store) -> None:
        first, second = put(store, some("first")), put(store, some("second"))
        with store.writing() as tx:
            tx.history.alias("default/checkpoint_1", first.id)
            tx.history.move_alias("default/checkpoint_1", second.id)
            tx.history.move_alias("default/checkpoint_2", first.id)

        assert got(store, "default/checkpoint_1").id == second.id
        assert got(store, "default/checkpoint_2").id == first.id

    def test_the_name_of_a_checkpoint_means_it_though_a_memory_has_it_for_its_id(self, store: Store) -> None:
        taken = put(store, some("took it", id="default/checkpoint_1", access_level=AccessLevel.PUBLIC))
        real = put(store, some("a checkpoint", access_level=AccessLevel.SHARED))
        with store.writing() as tx:
            tx.history.move_alias(taken.id, real.id)

        assert got(store, "default/checkpoint_1").id == real.id
        assert ids(store.get([taken.id], Audience("bob", (Scope("default", Sight.PUBLIC),)))) == [taken.id]

    def test_checkpoints_are_numbered_past_those_from_elsewhere(self, store: Store) -> None:
        with store.writing() as tx:
            tx.spaces.note_checkpoint("default", 5)
            tx.spaces.note_checkpoint("default", 3)

            assert tx.spaces.number_checkpoint("default") == 6

    def test_a_count_of_reads_is_written(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.set_access_count(memory.id, 5)

        assert got(store, memory.id) == replace(memory, access_count=5)
        assert store.statistics.totals(Part(), EVERYTHING, now=NOW).reads == 5

    def test_endpoints_are_kept_by_name(self, store: Store) -> None:
        one = Endpoint(name="one", url="sqlite:////a", spaces=("work",), added_at=NOW, synced_at=later(1))
        two = Endpoint(name="two", url="sqlite:////b", added_at=NOW)
        with store.writing() as tx:
            tx.sync.put_endpoint(two)
            tx.sync.put_endpoint(replace(one, url="old"))
            tx.sync.put_endpoint(one)

        assert store.sync.endpoints() == [one, two]
        with store.writing() as tx:
            assert tx.sync.remove_endpoint("one")
            assert not tx.sync.remove_endpoint("one")
        assert store.sync.endpoints() == [two]

    def test_how_far_a_feed_was_heard_is_kept_by_speaker_listener_and_space(self, store: Store) -> None:
        assert store.sync.heard("a", "b", "default") == Heard()
        with store.writing() as tx:
            tx.sync.hear("a", "b", "default", Heard(3, "x"))
            tx.sync.hear("a", "b", "default", Heard(7, "y"))

        assert store.sync.heard("a", "b", "default") == Heard(7, "y")
        assert store.sync.heard("b", "a", "default") == Heard()
        assert store.sync.heard("a", "b", "work") == Heard()

    def test_conflicts_wait_until_they_are_settled(self, store: Store) -> None:
        waits = SyncConflict(memory="m1", endpoint="drive", policy="manual", at=NOW, ours="{}", theirs="{}")
        with store.writing() as tx:
            tx.sync.note_conflict(replace(waits, theirs="former"))
            first = tx.sync.note_conflict(waits)
            second = tx.sync.note_conflict(replace(waits, memory="m2", outcome="incoming", settled_at=NOW))

        assert store.sync.conflicts(open=True) == [first]
        assert store.sync.conflicts(open=False) == [second]
        assert store.sync.conflicts() == [second, first]
        assert store.sync.conflicts(endpoint="stick") == []
        assert store.sync.conflicts(memory="m2") == [second]
        with store.writing() as tx:
            tx.sync.settle_conflict(first.number, "ours", at=later(1))
        assert store.sync.conflicts(open=True) == []
        assert store.sync.conflicts(memory="m1") == [replace(first, outcome="ours", settled_at=later(1))]

    def test_a_purge_erases_what_conflicts_say_of_a_memory(self, store: Store) -> None:
        memory = put(store, some())
        conflict = SyncConflict(memory=memory.id, endpoint="drive", policy="manual", at=NOW, ours="tea", theirs="milk")
        with store.writing() as tx:
            tx.sync.note_conflict(conflict)
            tx.purge(memory.id, at=NOW)

        [erased] = store.sync.conflicts()
        assert (erased.ours, erased.theirs, erased.outcome) == (None, None, "erased")

    def test_an_endpoint_takes_the_conflicts_that_wait_for_it_along(self, store: Store) -> None:
        with store.writing() as tx:
            tx.sync.put_endpoint(Endpoint(name="drive", url="x", added_at=NOW))
            tx.sync.note_conflict(SyncConflict(memory="m1", endpoint="drive", policy="manual", at=NOW))
            tx.sync.remove_endpoint("drive")

        assert store.sync.conflicts() == []

    def test_a_new_origin_signs_what_comes_from_now_on(self, store: Store, reopen: Reopen) -> None:
        former = store.origin
        memory = put(store, some(hlc=5, origin=former))
        with store.writing() as tx:
            origin = tx.sync.renew_origin()

        assert origin != former
        assert store.origin == origin
        assert got(store, memory.id).origin == former
        assert reopen().origin == origin

    def test_a_late_new_origin_signs_what_the_store_had_made_too(self, store: Store) -> None:
        former = store.origin
        memory = put(store, some(hlc=5, origin=former))
        foreign = put(store, some(hlc=5, origin="b"))
        with store.writing() as tx:
            origin = tx.sync.renew_origin(late=True)

        assert got(store, memory.id).origin == origin
        assert got(store, foreign.id).origin == "b"
        assert store.sync.stamps([memory.id], EVERYTHING)[memory.id].seen == {}
