"""What a store promises about counting: reads, totals, what happened when, as tests. Part of `suite.py`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from scrubjay.stores.promises.memories import Change, Store
from scrubjay.stores.promises.statistics import Activity, Level, Of, Part, Totals
from scrubjay.stores.tables import tally
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Memory, State, Status
from scrubjay.values.search import Filter, Order
from scrubjay.values.store import Recall
from tests.stores.contract.samples import (
    EVERYTHING,
    NOTHING,
    NOW,
    QUERY,
    Reopen,
    changed,
    create_spaces,
    got,
    later,
    listed,
    purge,
    put,
    put_all,
    sees,
    some,
    totals,
)


class StatisticsContract:
    vector_size: int

    # --- counted reads ---

    def test_tags_are_counted_as_the_audience_sees_them(self, store: Store) -> None:
        """Given ones, or found ones as well; of active memories, the most frequent first."""
        create_spaces(store, "work")
        private = {"access_level": AccessLevel.PRIVATE, "context": Context(user_id="bob")}
        put_all(store, [
            some(tags=("home", "tea"), auto_tags=("seattle",)),
            some(tags=("home",), auto_tags=("tea", "seattle")),
            some(tags=("secret",), **private),
            some(tags=("gone",), expires_at=NOW - timedelta(days=1)),
            some(tags=("elsewhere",), space="work"),
        ])  # fmt: skip
        shared = Audience(user="alice", scopes=(Scope("default", Sight.SHARED),))
        bobs = Audience(user="bob", scopes=(Scope("default", Sight.OWN),))

        def counted(audience: Audience, *, found: bool = False, limit: int = 10) -> list[tuple[str, int]]:
            return store.statistics.tags(audience, now=NOW, found=found, limit=limit)

        assert counted(shared) == [("home", 2), ("tea", 1)]
        assert counted(shared, found=True) == [("home", 2), ("seattle", 2), ("tea", 2)]
        assert counted(bobs, limit=2) == [("home", 2), ("secret", 1)]
        assert counted(EVERYTHING)[0] == ("home", 2)
        assert counted(NOTHING) == []

    def test_a_counted_read_is_seen_by_the_next_call(self, store: Store) -> None:
        memory = put(store, some())

        store.tally.count({memory.id: 2}, at=later(1))
        store.tally.count({memory.id: 1}, at=later(3))
        store.tally.count({memory.id: 1}, at=later(2))

        for seen in (got(store, memory.id), store.list(Filter(), EVERYTHING, now=NOW)[0]):
            assert (seen.access_count, seen.accessed_at) == (4, later(3))

    def test_reading_changes_neither_version_nor_clock(self, store: Store) -> None:
        memory = put(store, some())

        store.tally.count({memory.id: 1}, at=later(1))
        store.flush_reads()

        assert replace(got(store, memory.id), access_count=0, accessed_at=memory.accessed_at) == memory
        assert [*store.history.versions(memory.id), *store.history.events("default")] == []

    @pytest.mark.parametrize("flushed", [True, False])
    def test_lists_sort_by_reads_that_are_not_written_yet(self, store: Store, flushed: bool) -> None:
        put_all(store, [some(id="a"), some(id="b"), some(id="c")])
        store.tally.count({"a": 2, "b": 1}, at=later(1))
        if flushed:
            store.flush_reads()
        store.tally.count({"b": 2}, at=later(2))

        assert listed(store, order=Order.ACCESSES) == ["b", "a", "c"]
        assert listed(store, order=Order.ACCESSED) == ["b", "a", "c"]

    def test_counted_reads_survive_closing(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some(access_count=3))
        store.tally.count({memory.id: 2}, at=later(1), recall=_recall(memory.id))

        store = reopen()

        assert (got(store, memory.id).access_count, got(store, memory.id).accessed_at) == (5, later(1))
        assert store.history.recalls(memory.id) == [_recall(memory.id)]

    def test_counted_reads_are_written_though_nothing_else_is_asked(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So other processes see them, and the next one who asks need not wait for a write."""
        monkeypatch.setattr(tally, "FLUSH_SECONDS", 0.01)
        memory = put(store, some())

        store.tally.count({memory.id: 2}, at=later(1), recall=_recall(memory.id))
        while store.tally.has_unwritten:
            time.sleep(0.01)

        assert got(store, memory.id).access_count == 2
        assert store.history.recalls(memory.id) == [_recall(memory.id)]

    def test_counting_a_read_waits_for_no_writer(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tally, "FLUSH_SECONDS", 0.01)
        memory = put(store, some())

        with store.writing():
            for minutes in range(3):
                store.tally.count({memory.id: 1}, at=later(minutes))
                time.sleep(0.02)  # so that they would be due

        assert got(store, memory.id).access_count == 3
        store.flush_reads()
        assert got(store, memory.id).access_count == 3

    def test_where_no_thread_can_be_started_reads_are_written_at_once(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = put(store, some())

        def refused(_thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", refused)
        store.tally.count({memory.id: 2}, at=later(1))
        monkeypatch.undo()

        assert not store.tally.has_unwritten
        assert got(store, memory.id).access_count == 2

    def test_a_closed_store_leaves_no_thread_that_would_write_reads(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some())
        before = {*threading.enumerate()}
        store.tally.count({memory.id: 1}, at=later(1))
        [waiting] = {*threading.enumerate()} - before

        reopen()

        waiting.join(5)
        assert not waiting.is_alive()

    def test_reads_are_counted_once_whoever_writes_them(self, store: Store) -> None:
        memory = put(store, some())
        for minutes in range(3):
            store.tally.count({memory.id: 1}, at=later(minutes))
            put(store, some())
            store.flush_reads()

        assert got(store, memory.id).access_count == 3

    def test_an_update_does_not_set_the_counter_back(self, store: Store) -> None:
        memory = put(store, some())
        store.tally.count({memory.id: 5}, at=later(1))

        changed(store, memory, importance=0.1)

        assert got(store, memory.id).access_count == 5

    def test_reads_of_no_memory_are_passed_over(self, store: Store) -> None:
        store.tally.count({"unknown": 1}, at=NOW)
        store.flush_reads()

    def test_the_recall_log_says_to_whom_a_memory_was_handed(self, store: Store) -> None:
        for minutes in range(4):
            store.tally.count({}, at=NOW, recall=_recall("a", "b", at=later(minutes)))
            if minutes == 1:
                store.flush_reads()
        store.tally.count({}, at=NOW, recall=_recall("b"))

        assert [recall.at for recall in store.history.recalls("a")] == [later(3), later(2), later(1), later(0)]
        assert [recall.at for recall in store.history.recalls("a", limit=3)] == [later(3), later(2), later(1)]
        assert store.history.recalls("c") == []

    # --- totals ---

    def test_an_empty_store_has_empty_totals(self, store: Store) -> None:
        assert totals(store) == Totals()
        assert store.statistics.created_before(Part(), EVERYTHING, [NOW]) == [0]
        assert store.statistics.created_before(Part(), EVERYTHING, []) == []
        assert store.statistics.activity(Part(), EVERYTHING, since=NOW, until=NOW) == Activity()

    def test_totals_count_every_state_category_and_level(self, store: Store) -> None:
        put(store, some("four", category=Category.GOAL, importance=0.7), [QUERY, QUERY])
        put(store, some("é", importance=0.29, superseded_by="x"), [QUERY])
        put(store, some("ab", importance=0.3, status=Status.ARCHIVED, metadata={"a": 1}), ())
        put(store, some("ab", importance=0.69, status=Status.DELETED), ())
        purge(store, put(store, some("gone", importance=0.9, category=Category.EVENT)).id)

        found = totals(store)

        assert found.states == dict.fromkeys(State, 1)
        assert found.memories == 5
        assert found.categories == {Category.GOAL: 1, Category.FACT: 3, Category.EVENT: 1}
        assert found.levels == {Level.HIGH: 2, Level.LOW: 1, Level.MEDIUM: 2}
        texts = {State.ACTIVE: 4, State.SUPERSEDED: 2, State.ARCHIVED: 2 + 5, State.DELETED: 2, State.PURGED: 0}
        assert found.text_bytes == texts
        vectors = {State.ACTIVE: 2 * self.vector_size, State.SUPERSEDED: self.vector_size}
        assert found.vector_bytes == dict.fromkeys(State, 0) | vectors

    def test_totals_know_what_has_expired(self, store: Store) -> None:
        put(store, some(expires_at=NOW))
        put(store, some(expires_at=later(-1), superseded_by="x"))
        put(store, some(expires_at=later(-1), status=Status.ARCHIVED))
        put(store, some(expires_at=later(1)))
        put(store, some())

        assert totals(store).expired == 2
        assert totals(store, Part(Of.CATEGORY, "fact")).expired == 2
        assert totals(store, Part(Of.CATEGORY, "goal")).expired == 0

    def test_totals_are_of_a_part(self, store: Store) -> None:
        put(store, some(context=Context(user_id="ann", conversation_id="c1")))
        put(store, some(context=Context(user_id="ann", conversation_id="c2"), category=Category.GOAL))
        put(store, some(context=Context(user_id="bob", conversation_id="c1")))
        purge(store, put(store, some(context=Context(user_id="bob", conversation_id="c1"))).id)

        def size(of: Of, name: str) -> int:
            part = Part(of, name)
            assert store.statistics.created_before(part, EVERYTHING, [later(1)]) == [totals(store, part).memories]
            return totals(store, part).memories

        assert (size(Of.USER, "ann"), size(Of.USER, "bob"), size(Of.USER, "c1")) == (2, 2, 0)
        assert (size(Of.CONVERSATION, "c1"), size(Of.CONVERSATION, "c2"), size(Of.CONVERSATION, "ann")) == (3, 1, 0)
        assert (size(Of.CATEGORY, "goal"), size(Of.CATEGORY, "fact"), size(Of.CATEGORY, "skill")) == (1, 3, 0)
        assert (size(Of.USER, "nobody"), size(Of.CONVERSATION, "nowhere")) == (0, 0)

    def test_totals_follow_every_change_and_show_each_caller_its_part(self, store: Store) -> None:
        """Whatever happens to memories, totals are what counting them one by one gives, for whoever asks."""
        create_spaces(store, "work")
        rng = np.random.default_rng(7)

        def any_of(*values: Any) -> Any:
            return values[rng.integers(len(values))]

        def drawn() -> dict[str, Any]:
            user, conversation = any_of("ann", "bob"), any_of(None, "c1")
            return {
                "category": any_of(*Category),
                "importance": any_of(0.1, 0.5, 0.9),
                "access_level": any_of(*AccessLevel),
                "status": any_of(*Status),
                "superseded_by": any_of(None, None, "x"),
                "expires_at": any_of(None, later(-1), later(1)),
                "context": Context(user_id=user, conversation_id=conversation),
                "metadata": any_of({}, {"a": "é"}),
            }

        known: dict[str, Memory] = {}
        gone: list[Memory] = []
        reads: Counter[str] = Counter()
        for step in range(120):
            match any_of("new", "new", "change", "text", "read", "judge", "purge") if known else "new":
                case "new":
                    space, at = any_of("default", "work"), later(float(rng.integers(9_000)))
                    new = some(f"text {rng.integers(5)}", space=space, created_at=at, **drawn())
                    known[new.id] = put(store, new, [QUERY] * int(rng.integers(3)))
                case "change":
                    old = any_of(*known.values())
                    known[old.id] = put(store, replace(old, version=old.version + 1, **drawn()), None)
                case "text":
                    old = any_of(*known.values())
                    text = f"text {rng.integers(5)}"
                    known[old.id] = put(store, replace(old, version=old.version + 1, content=text), [QUERY])
                case "read":
                    read = any_of(*known)
                    store.tally.count({read: 3}, at=later(float(step)))
                    reads[read] += 3
                case "judge":
                    with store.writing() as tx:
                        tx.judge_category(any_of(*known), agreed=any_of(True, False))
                case "purge":
                    gone.append(known.pop(any_of(*known)))
                    purge(store, gone[-1].id)
        memories = store.get(list(known), EVERYTHING)
        kept_ones = [memory for memory in memories if memory.state in (State.ACTIVE, State.ARCHIVED)]
        texts = {memory.content for memory in kept_ones}
        whole = totals(store)
        assert whole.repeats == len(kept_ones) - len(texts)
        assert sum(whole.text_bytes.values()) == sum(
            len(memory.content) + (len('"a":"é"'.encode()) if memory.metadata else 0) for memory in memories
        )
        assert whole.agreed <= whole.judged <= whole.memories

        parts: list[tuple[Part, Callable[[Memory], bool]]] = [
            (Part(), lambda memory: True),
            (Part(Of.USER, "ann"), lambda memory: memory.context.user_id == "ann"),
            (Part(Of.CONVERSATION, "c1"), lambda memory: memory.context.conversation_id == "c1"),
            (Part(Of.CATEGORY, "goal"), lambda memory: memory.category is Category.GOAL),
        ]
        scopes = [(Scope(space, sight),) for space in ("default", "work") for sight in Sight]
        for part, belongs in parts:
            for audience in [Audience("ann", each) for each in (*scopes, (*scopes[0], *scopes[5]))]:
                seen = [memory for memory in memories if sees(audience, memory) and belongs(memory)]
                found = totals(store, part, audience)
                buried = [memory for memory in gone if sees(audience, memory) and belongs(memory)]
                ever = [*seen, *buried]
                assert found.states == _counted([*(memory.state for memory in seen), *[State.PURGED] * len(buried)])
                assert found.expired == sum(
                    memory.state in (State.ACTIVE, State.SUPERSEDED) and memory.expires_at in (later(-1), NOW)
                    for memory in seen
                )
                assert found.categories == _counted(memory.category for memory in ever)
                assert sum(found.levels.values()) == len(ever)
                assert found.reads == sum(reads[memory.id] for memory in ever)
                assert found.squared_reads == sum(reads[memory.id] ** 2 for memory in ever)
                assert found.read_memories == sum(reads[memory.id] > 0 for memory in ever)
                moments = [later(9_000 * share / 7 - 3) for share in range(9)]
                assert store.statistics.created_before(part, audience, moments) == [
                    sum(memory.created_at < moment for memory in ever) for moment in moments
                ]

    def test_rebuilding_changes_no_totals(self, store: Store) -> None:
        for n in range(6):
            put(store, some(f"text {n % 3}", created_at=later(90 * n), context=Context(conversation_id="c")))
        store.tally.count({put(store, some()).id: 2}, at=NOW)
        store.flush_reads()
        before, counts = totals(store), store.statistics.created_before(Part(), EVERYTHING, [later(200)])
        happened = store.statistics.activity(Part(), EVERYTHING, since=NOW, until=NOW)

        store.rebuild()

        assert totals(store) == before
        assert store.statistics.created_before(Part(), EVERYTHING, [later(200)]) == counts == [4]
        assert store.statistics.activity(Part(), EVERYTHING, since=NOW, until=NOW) == happened

    def test_a_repeat_is_one_only_while_there_is_a_first(self, store: Store) -> None:
        first, second = put_all(store, [some("same"), some("same")])
        assert totals(store).repeats == 1

        first = changed(store, first, status=Status.DELETED)
        assert totals(store).repeats == 0

        changed(store, first, status=Status.ACTIVE)
        assert totals(store).repeats == 1

        purge(store, second.id)
        assert totals(store).repeats == 0

    def test_judged_categories_are_counted_once(self, store: Store) -> None:
        one, two = put_all(store, [some(), some(category=Category.GOAL)])
        with store.writing() as tx:
            tx.judge_category(one.id, agreed=False)
            tx.judge_category(one.id, agreed=True)
            tx.judge_category(two.id, agreed=False)
            tx.judge_category("unknown", agreed=False)

        assert (totals(store).judged, totals(store).agreed) == (2, 1)
        assert totals(store, Part(Of.CATEGORY, "goal")).agreed == 0
        assert got(store, one.id) == one

    @pytest.mark.parametrize("agreed", [True, False])
    def test_a_new_memory_may_come_with_what_its_neighbours_say_of_its_category(
        self, store: Store, agreed: bool
    ) -> None:
        memory = some(category=Category.GOAL)
        with store.writing() as tx:
            change = Change(user="ann", at=NOW, reason=None)
            tx.put(memory, fingerprint=b"one", vectors=(), parts=0, change=change, agreed=agreed)
        put(store, some(category=Category.GOAL))

        goals = totals(store, Part(Of.CATEGORY, "goal"))
        assert (goals.judged, goals.agreed) == (1, int(agreed))

    @pytest.mark.parametrize("flushed", [True, False])
    def test_totals_include_reads_that_are_not_written_yet(self, store: Store, flushed: bool) -> None:
        often, once, never = put_all(store, [some(access_count=3), some(category=Category.GOAL), some()])
        store.tally.count({often.id: 2, once.id: 1, "unknown": 7}, at=NOW)
        if flushed:
            store.flush_reads()

        found = totals(store)

        assert (found.reads, found.squared_reads, found.read_memories) == (6, 26, 2)
        assert totals(store, Part(Of.CATEGORY, "goal")).reads == 1
        assert totals(store, audience=NOTHING).reads == 0
        assert got(store, never.id).access_count == 0

    # --- what happened when ---

    def test_memories_are_counted_to_the_millisecond(self, store: Store) -> None:
        """Around an hour, around a day, long ago and in the future."""
        moments = [
            datetime(2026, 1, 2, hour, minute, tzinfo=UTC) for hour, minute in ((0, 0), (3, 0), (3, 7), (23, 59))
        ]
        moments += [datetime(1950, 1, 1, tzinfo=UTC), datetime(2030, 5, 5, 5, 5, tzinfo=UTC)]
        for at in moments:
            put(store, some(created_at=at))

        around = [at + timedelta(milliseconds=step) for at in moments for step in (-1, 0, 1) if at.year > 1970]

        assert store.statistics.created_before(Part(), EVERYTHING, around) == [
            sum(at < one for at in moments) for one in around
        ]

    def test_the_first_hour_is_known(self, store: Store) -> None:
        put(store, some(created_at=later(90)))
        moved = put(store, some(created_at=NOW, category=Category.GOAL))

        assert totals(store).since == NOW.replace(minute=0, second=0, microsecond=0)
        changed(store, moved, category=Category.EVENT)
        assert totals(store, Part(Of.CATEGORY, "goal")).since is None
        assert totals(store, Part(Of.CATEGORY, "event")).since == totals(store).since

    @pytest.mark.parametrize("flushed", [True, False])
    def test_reads_are_known_by_weekday_and_hour(self, store: Store, flushed: bool) -> None:
        """NOW is a Friday, past three."""
        one, two = put_all(store, [some(access_count=9), some(category=Category.GOAL)])
        store.tally.count({one.id: 2, two.id: 1}, at=NOW)
        store.tally.count({one.id: 4}, at=NOW + timedelta(hours=21))
        store.tally.count({one.id: 8}, at=NOW + timedelta(days=7, hours=1))
        if flushed:
            store.flush_reads()

        def reads(part: Part = Part(), **stretch: float) -> dict[tuple[int, int], int]:  # noqa: B008 -- frozen
            return dict(store.statistics.activity(part, EVERYTHING, since=NOW, until=NOW + timedelta(**stretch)).reads)

        assert reads(days=9) == {(4, 3): 3, (5, 0): 4, (4, 4): 8}
        assert reads(hours=21) == {(4, 3): 3, (5, 0): 4}
        assert reads(minutes=1) == {(4, 3): 3}
        assert reads(Part(Of.CATEGORY, "goal"), days=9) == {(4, 3): 1}
        assert store.statistics.activity(Part(), NOTHING, since=NOW, until=NOW) == Activity()

    def test_deletions_are_known_by_when_they_were(self, store: Store) -> None:
        for minutes in (-1, 0, 5, 6):
            put(store, some(status=Status.DELETED, deleted_at=later(minutes)))
        put(store, some(deleted_at=later(1)))
        private = some(access_level=AccessLevel.PRIVATE, status=Status.DELETED, deleted_at=later(2))
        purge(store, put(store, private).id)

        assert store.statistics.activity(Part(), EVERYTHING, since=NOW, until=later(5)).deleted == 3
        strangers = Audience("stranger", (Scope(None, Sight.OWN),))
        assert store.statistics.activity(Part(), strangers, since=NOW, until=later(5)).deleted == 2

    def test_consolidations_are_counted(self, store: Store) -> None:
        memory = put(store, some(category=Category.GOAL))
        with store.writing() as tx:
            tx.statistics.count_consolidation(memory.id, sources=3, at=NOW)
            tx.statistics.count_consolidation(memory.id, sources=2, at=later(30))
            tx.statistics.count_consolidation("unknown", sources=2, at=NOW)

        found = store.statistics.activity(Part(Of.CATEGORY, "goal"), EVERYTHING, since=NOW, until=later(60))

        assert (found.consolidations, found.consolidated) == (2, 5)
        assert store.statistics.activity(Part(), EVERYTHING, since=later(60), until=later(120)) == Activity()


def _counted(values: Iterable[Any]) -> dict[Any, int]:
    return dict(Counter(values))


def _recall(*memories: str, at: datetime = NOW) -> Recall:
    return Recall(at=at, space="default", user="ann", client="editor", memories=memories)
