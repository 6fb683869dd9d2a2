"""What a store promises about spaces, and the store as a whole, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.promises.memories import OWN_MODEL, Store
from scrubjay.stores.promises.statistics import Part, SpaceCounts
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AT_HAND, AccessLevel, Context, Kind, LinkKind, Memory, Status
from scrubjay.values.search import Filter
from scrubjay.values.store import BulkOperation
from tests.stores.contract.samples import (
    EVERY_STATE,
    EVERYTHING,
    NOTHING,
    NOW,
    QUERY,
    SCRIPTS,
    Reopen,
    a_link,
    at_cosine,
    changed,
    create_spaces,
    got,
    ids,
    later,
    matched,
    nearest,
    put,
    put_all,
    put_in,
    put_talk,
    relate,
    some,
)


class SpacesContract:
    # --- spaces, facts, clock, aliases ---

    def test_checkpoints_are_numbered_per_space(self, store: Store) -> None:
        with store.writing() as tx:
            tx.spaces.create("work", at=NOW)
            numbers = [tx.spaces.number_checkpoint(space) for space in ("default", "work", "default")]
        with store.writing() as tx:
            assert numbers == [1, 1, 2]
            assert tx.spaces.number_checkpoint("default", wanted=7) == 7  # past every one given
            assert tx.spaces.number_checkpoint("default", wanted=3) == 8  # perhaps given before
            assert tx.spaces.number_checkpoint("default", wanted=9) == 9

    def test_a_checkpoint_belongs_to_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.spaces.number_checkpoint("nowhere")

    def test_topics_are_one_however_they_are_spelt(self, store: Store) -> None:
        def decided(topic: str, minutes: int, **fields: Any) -> Memory:
            return some("x", kind=Kind.DECISION, topic=topic, created_at=later(minutes), **fields)

        spellings = ("Caching", " caching\u3000", "ＣＡＣＨＩＮＧ", "인증")
        put_all(store, [decided(topic, minutes) for minutes, topic in enumerate(spellings, 1)])
        put_all(store, [decided("gone", 5, status=Status.DELETED), decided("over", 6, expires_at=NOW)])
        put(store, some("no decision", topic="plain", created_at=later(9)))

        found = store.topics(EVERYTHING, now=later(30), limit=10)

        assert [(topic.name, topic.decisions, topic.latest_at) for topic in found] == [
            ("인증", 1, later(4)),
            ("ＣＡＣＨＩＮＧ", 3, later(3)),
        ]
        assert [topic.name for topic in store.topics(EVERYTHING, now=later(30), limit=1)] == ["인증"]
        assert store.topics(NOTHING, now=NOW, limit=10) == []
        assert store.count(Filter(topic="CACHING"), EVERYTHING, now=NOW) == 3

    def test_a_purged_decision_leaves_no_topic(self, store: Store) -> None:
        memory = some("x", kind=Kind.DECISION, topic="secret plan")
        put(store, memory)
        with store.writing() as tx:
            tx.purge(memory.id, at=later(1))

        assert store.topics(EVERYTHING, now=NOW, limit=10) == []
        assert store.list(Filter(topic="secret plan", states=EVERY_STATE), EVERYTHING, now=NOW) == []

    def test_the_default_space_is_there_from_the_start(self, store: Store) -> None:
        assert [space.name for space in store.spaces.list()] == ["default"]

    def test_spaces_come_by_name(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.spaces.create("work", at=NOW, description="what pays")
            assert not tx.spaces.create("work", at=later(1), description="other")

        default, work = store.spaces.list()

        assert default.name == "default"
        assert (work.name, work.description, work.created_at) == ("work", "what pays", NOW)

    def test_a_space_holds_as_many_as_a_list_of_it_shows(self, store: Store) -> None:
        create_spaces(store, "work")
        kinds: list[dict[str, Any]] = [
            {},
            {"status": Status.DELETED},
            {"superseded_by": "x"},
            {"expires_at": later(5)},
            {"superseded_by": "x", "expires_at": later(5)},
        ]
        put_all(
            store,
            (
                some(space=space, access_level=level, context=Context(user_id=user), **fields)
                for space in ("default", "work")
                for level in AccessLevel
                for user in ("ann", "bob")
                for fields in kinds
            ),
        )
        some_of_both = (Scope("default", Sight.OWN), Scope("work", Sight.PUBLIC))
        for scopes in (*((Scope("work", sight),) for sight in Sight), some_of_both, (Scope(None, Sight.OWN),), ()):
            audience = Audience("ann", scopes)
            for at in (NOW, later(5), later(9)):
                counted = store.statistics.space_counts(audience, now=at)
                for space in ("default", "work"):
                    seen = store.list(Filter(), audience, now=at, limit=99)
                    both = store.list(Filter(states=AT_HAND), audience, now=at, limit=99)
                    counts = counted.get(space, SpaceCounts())
                    assert counts.active == len([memory for memory in seen if memory.space == space])
                    assert counts.active + counts.superseded == len([one for one in both if one.space == space])
                groups = store.statistics.at_hand(Part(), audience, now=at)
                assert sum(one.memories for one in groups if not one.superseded) == len(seen)
                assert sum(one.memories for one in groups) == len(both)

    def test_facts_are_remembered_and_replaced(self, store: Store, reopen: Reopen) -> None:
        for value in ("one", "two"):
            with store.writing() as tx:
                tx.history.set_fact(OWN_MODEL, value)

        assert reopen().history.fact(OWN_MODEL) == "two"

    def test_an_unknown_fact_is_none(self, store: Store) -> None:
        assert store.history.fact("unknown") is None

    def test_the_clock_grows_though_the_wall_clock_stands_or_goes_back(self, store: Store, reopen: Reopen) -> None:
        ticks = []
        for at in (NOW, NOW, later(-60), later(1), later(-600)):
            with store.writing() as tx:
                ticks += [tx.clock.tick(at), tx.clock.tick(at)]
        with reopen().writing() as tx:
            ticks.append(tx.clock.tick(later(-6000)))

        assert ticks == sorted(set(ticks))

    def test_a_memory_is_found_by_its_aliases(self, store: Store) -> None:
        memory = put(store, some())
        for _ in range(2):  # saying it twice is no error
            with store.writing() as tx:
                tx.history.alias("decision_auth_1", memory.id)

        assert store.get(["decision_auth_1"], EVERYTHING) == [memory]
        assert store.get(["decision_auth_1"], NOTHING) == []

    def test_a_memory_asked_for_by_two_names_comes_once(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.history.alias("another", memory.id)

        assert store.get([memory.id, "another"], EVERYTHING) == [memory]

    def test_an_alias_means_one_memory(self, store: Store) -> None:
        one, two = put_all(store, [some(), some()])
        with store.writing() as tx:
            tx.history.alias("taken", one.id)

        for alias in ("taken", one.id):
            with pytest.raises(Conflict), store.writing() as tx:
                tx.history.alias(alias, two.id)
        with pytest.raises(Conflict):
            put(store, some(id="taken"))

    # --- spaces put away, deeds, conflicts ---

    def test_a_space_is_described_anew(self, store: Store) -> None:
        create_spaces(store, "work")
        with store.writing() as tx:
            tx.spaces.describe("work", title="The office", description="what pays")

        [_, work] = store.spaces.list()
        assert (work.title, work.description) == ("The office", "what pays")
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.spaces.describe("nowhere", title=None, description=None)

    def test_only_a_space_without_memories_is_dropped(self, store: Store) -> None:
        create_spaces(store, "work")
        memory = put(store, some(space="work"))
        with pytest.raises(Conflict), store.writing() as tx:
            tx.spaces.drop("work", at=NOW)
        changed(store, memory, status=Status.DELETED)
        put_talk(store, "c1", space="work")

        with store.writing() as tx:
            tx.spaces.drop("work", at=NOW)

        assert [space.name for space in store.spaces.list()] == ["default"]
        assert not store.spaces.has("work")
        assert store.conversations.spaces_of("c1") == []
        with store.writing() as tx:
            assert tx.spaces.create("work", at=later(1))
            assert not tx.spaces.create("work", at=later(1))
            assert tx.spaces.has("work")
        assert store.spaces.has("work")
        assert not store.spaces.has("nowhere")
        assert [space.name for space in store.spaces.list()] == ["default", "work"]
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.spaces.drop("nowhere", at=NOW)

    def test_a_deed_is_remembered_with_all_its_memories(self, store: Store, reopen: Reopen) -> None:
        deed = BulkOperation(
            id="deed_1", action="forgotten", user="ann", at=NOW, reason="poisoned", memories=("mem_a", "mem_b")
        )
        with store.writing() as tx:
            tx.history.note_operation(deed)
            tx.history.note_operation(replace(deed, at=later(1), memories=("mem_b", "mem_c")))

        assert store.history.bulk_operation("deed_2") is None
        history = reopen().history
        assert history.bulk_operation("deed_1") == replace(deed, at=later(1), memories=("mem_a", "mem_b", "mem_c"))
        assert history.last_bulk_operation("ann") == history.bulk_operation("deed_1")
        assert history.last_bulk_operation("bob") is None

    def test_a_deed_that_goes_on_loses_what_was_restored_since(self, store: Store) -> None:
        still, again, back = put_all(
            store,
            [
                some(status=Status.DELETED, deleted_at=NOW),
                some(status=Status.DELETED, deleted_at=later(2)),
                some(),
            ],
        )
        deed = BulkOperation(id="deed_1", action="forgotten", user="ann", at=later(1))
        with store.writing() as tx:
            tx.history.note_operation(replace(deed, memories=(still.id, again.id, back.id)))
            tx.history.note_operation(replace(deed, at=later(3), memories=("mem_more",)))

        known = store.history.bulk_operation("deed_1")
        assert known is not None
        assert set(known.memories) == {still.id, "mem_more"}

    def test_open_conflicts_are_between_living_memories(self, store: Store) -> None:
        old, new, expired, deleted = put_all(
            store, [some(), some(), some(expires_at=later(-1)), some(status=Status.DELETED)]
        )
        conflict = a_link(new.id, old.id, kind=LinkKind.MAY_OUTDATE, score=0.8)
        relate(
            store,
            conflict,
            a_link(old.id, expired.id, kind=LinkKind.MAY_OUTDATE),
            a_link(deleted.id, old.id, kind=LinkKind.MAY_OUTDATE),
            a_link(old.id, new.id, kind=LinkKind.MAY_OUTDATE, state="kept"),
            a_link(old.id, new.id),
        )

        assert store.history.open_conflicts(EVERYTHING, now=NOW, limit=9) == [conflict]
        assert store.history.open_conflicts(NOTHING, now=NOW, limit=9) == []
        assert store.history.open_conflicts(EVERYTHING, now=NOW, limit=9, offset=1) == []
        assert store.history.count_open_conflicts(EVERYTHING, now=NOW) == 1
        assert store.history.count_open_conflicts(NOTHING, now=NOW) == 0

    def test_open_conflicts_with_what_one_may_not_see_are_not_shown(self, store: Store) -> None:
        mine, hers = put_all(store, [some(), some(access_level=AccessLevel.PRIVATE, context=Context(user_id="ann"))])
        relate(store, a_link(mine.id, hers.id, kind=LinkKind.MAY_OUTDATE))

        for user, found in (("ann", 1), ("bob", 0)):
            audience = Audience(user, (Scope("default", Sight.OWN),))
            assert len(store.history.open_conflicts(audience, now=NOW, limit=9)) == found

    # --- check and rebuild ---

    def test_a_whole_store_has_no_problems(self, store: Store) -> None:
        put(store, some())
        put(store, some(), [QUERY], parts=2)
        with store.writing() as tx:
            tx.purge(put_in(tx, some()).id, at=NOW)

        for deep in (False, True):
            checkup = store.check(deep=deep)

            assert checkup.problems == checkup.wrong_hashes == ()
            assert (checkup.memories, checkup.with_words, checkup.with_vectors, checkup.pending) == (2, 2, 1, 1)
            assert checkup.bytes_on_disk > 0
            assert checkup.schema > 0

    def test_a_backup_holds_what_was_there_and_never_overwrites(self, store: Store, tmp_path: Path) -> None:
        memory = put(store, some())
        done: list[tuple[int, int]] = []

        checkup = store.backup(tmp_path / "copy.db", progress=lambda *now: done.append(now))

        assert (checkup.memories, checkup.problems, checkup.wrong_hashes) == (1, (), ())
        assert done[-1][0] == done[-1][1] > 0
        before = (tmp_path / "copy.db").read_bytes()
        with pytest.raises(Conflict):
            store.backup(tmp_path / "copy.db")
        assert (tmp_path / "copy.db").read_bytes() == before
        assert got(store, memory.id) == memory

    def test_tending_ends_and_changes_no_answer(self, store: Store) -> None:
        near, far = put(store, some(), [at_cosine(0.9)]), put(store, some(), [at_cosine(0.1)])
        before = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9)

        steps = 0
        while store.tend():
            steps += 1
            assert steps < 100

        assert not store.needs_tending()
        assert store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9) == before
        assert [match.memory for match in before] == [near.id, far.id]

    def test_rebuilding_changes_nothing_in_a_whole_store(self, store: Store) -> None:
        memories = put_all(store, (some(text) for text, _ in SCRIPTS))
        waiting = put(store, some("waits"), (), parts=2)

        store.rebuild()

        assert matched(store, "python") == [memory.id for memory in reversed(memories) if "Python" in memory.content]
        assert matched(store, "waits") == [waiting.id]
        assert len(nearest(store)) == len(memories)
        assert ids(one.memory for one in store.upkeep.pending(limit=99)) == [waiting.id]
        assert store.check(deep=True).problems == ()
