"""Every number of the statistics, worked out by hand; `docs/reference/statistics.md` has the sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scrubjay.engine import access
from scrubjay.engine import statistics as figures
from scrubjay.engine.engine import Engine
from scrubjay.engine.statistics import (
    MAX_POINTS,
    Granularity,
    HealthFactors,
    Statistics,
    StatsQuery,
    StatsScope,
    statistics,
)
from scrubjay.errors import Forbidden, InvalidInput
from scrubjay.stores.promises.statistics import Activity, Level, Totals
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel, Category, State, Status
from scrubjay.values.search import Filter
from tests.conftest import Clock

ANN, BOB = Caller(user="ann", role=Role.MEMBER), Caller(user="bob", role=Role.MEMBER)


def stats(jay: Engine, **asked: Any) -> Statistics:
    seen = access.audience_in(jay.caller, jay.spaces)
    return statistics(jay.records, jay.caller, seen, StatsQuery(**asked), now=jay.now())


def archive(jay: Engine, id: str) -> None:
    memory = jay.get(id)
    with jay.records.writing() as tx:
        jay.ledger.change(tx, replace(memory, status=Status.ARCHIVED), "archived", "status")


def kept(jay: Engine, content: str = "User likes tea", **fields: Any) -> str:
    return jay.store(content, **fields).memory.id


def points(found: Statistics) -> list[tuple[str, int]]:
    return [(f"{point.at:%Y-%m-%d %H}", point.value) for point in found.memory_count]


# --- the arithmetic hidden in the specification's examples ---

EXAMPLE = Totals(
    states={State.ACTIVE: 1150, State.SUPERSEDED: 30, State.ARCHIVED: 45, State.DELETED: 18, State.PURGED: 4},
    text_bytes={State.ACTIVE: 5_242_880 - 2_097_152},
    vector_bytes={State.ACTIVE: 2_097_152},
    reads=5430,
    read_memories=847,
)
START, END = datetime(2025, 11, 1, tzinfo=UTC), datetime(2025, 12, 6, 10, 50, tzinfo=UTC)


def test_the_total_is_active_archived_and_deleted():
    found = figures.count(EXAMPLE)

    assert (found.total, found.active, found.archived, found.deleted) == (1247, 1180, 45, 22)


def test_the_average_size_is_rounded_up():
    found = figures.storage_size(EXAMPLE)

    assert (found.total_bytes, found.average_memory_bytes, found.embeddings_bytes) == (5_242_880, 4205, 2_097_152)


def test_recalls_per_memory_have_two_digits():
    found = figures.access_patterns(EXAMPLE, ("mem_x9y8z7", 145))

    assert (found.total_recalls, found.unique_memories_accessed, found.average_recalls_per_memory) == (5430, 847, 4.35)
    assert (found.most_accessed_memory_id, found.most_accessed_count) == ("mem_x9y8z7", 145)


def test_days_are_whole_ones():
    assert figures.whole_days(START, END) == 35
    assert figures.growth_rate(600, 647, 35).memories_per_day == 35.6


def test_recalls_per_day_are_rounded_up():
    assert figures.recall_frequency(Activity(reads={(2, 14): 5430}), 35).daily_average == 156


def test_ratios_have_two_and_three_digits():
    assert figures.consolidation_rate(Activity(consolidated=87), EXAMPLE, 35).consolidation_ratio == 0.07
    deletion = figures.deletion_rate(Activity(), EXAMPLE, 35)
    assert (deletion.soft_deletes, deletion.hard_deletes, deletion.deletion_ratio) == (18, 4, 0.018)


def test_weeks_are_seven_of_the_whole_days_and_at_least_one():
    assert figures.per_week(22, 35) == 4.4
    assert figures.per_week(3, 1) == figures.per_week(3, 7) == 3.0


def test_health_is_the_mean_of_its_factors():
    factors = HealthFactors(
        deduplication=0.95, categorization_accuracy=0.91, access_distribution=0.88, storage_efficiency=0.94
    )

    assert figures.overall(factors) == 0.92


@pytest.mark.parametrize(
    ("first", "second", "change", "trend"),
    [
        (8, 9, 12.5, "increasing"),
        (9, 8, -11.1, "decreasing"),
        (5, 5, 0.0, "stable"),
        (0, 3, 100.0, "increasing"),
        (0, 0, 0.0, "stable"),
        (4, 0, -100.0, "decreasing"),
    ],
)
def test_growth_compares_the_two_halves_of_the_time(first: int, second: int, change: float, trend: str):
    found = figures.growth_rate(first, second, 10)

    assert (found.percent_change, found.trend) == (change, trend)


# --- counts ---


def test_an_empty_memory_has_nothing_and_is_well(jay: Engine, clock: Clock):
    found = stats(jay, trends=Granularity.DAY)

    assert found.exists
    assert (found.start, found.end) == (clock.time, clock.time)
    assert found.count == figures.Count(total=0, active=0, archived=0, deleted=0, expired=0)
    assert found.storage_size == figures.StorageSize(total_bytes=0, average_memory_bytes=0, embeddings_bytes=0)
    assert found.category_distribution == {}
    assert found.importance_distribution == {Level.HIGH: 0, Level.MEDIUM: 0, Level.LOW: 0}
    assert found.access_patterns.most_accessed_memory_id is None
    assert found.recall_frequency == figures.RecallFrequency(daily_average=0, peak_hour=None, peak_day=None)
    assert found.health_score.overall == 1.0
    assert points(found) == [("2026-11-15 00", 0)]


def test_every_state_is_counted_where_the_visibility_table_says(jay: Engine, clock: Clock):
    active, outdated, archived, soft, hard = (kept(jay, f"User likes tea number {n}") for n in range(5))
    kept(jay, "User is away", expires_at=clock.time + timedelta(days=1))
    jay.supersede(old=outdated, new=active)
    archive(jay, archived)
    jay.forget(soft)
    jay.forget(hard, hard=True)
    clock.move(days=2)

    found = stats(jay)

    assert found.count == figures.Count(total=6, active=3, archived=1, deleted=2, expired=1)
    assert sum(found.category_distribution.values()) == sum(found.importance_distribution.values()) == 6
    assert (found.deletion_rate.soft_deletes, found.deletion_rate.hard_deletes) == (1, 1)
    assert found.deletion_rate.deletion_ratio == 0.333


def test_a_recovered_memory_is_active_again(jay: Engine):
    memory = kept(jay)
    jay.forget(memory)
    jay.recover(memory)

    found = stats(jay)

    assert (found.count.active, found.count.deleted, found.deletion_rate.deletions_per_week) == (1, 0, 0.0)


def test_categories_come_largest_first_and_only_those_that_are_there(jay: Engine):
    for category in (Category.GOAL, Category.FACT, Category.GOAL, Category.EVENT):
        memory = kept(jay, f"About {category} {category.value}", category=category)
    jay.update(memory, category=Category.GOAL)

    assert list(stats(jay).category_distribution.items()) == [(Category.GOAL, 3), (Category.FACT, 1)]


def test_importance_is_high_from_seven_tenths_and_low_below_three(jay: Engine):
    for importance in (0.0, 0.29, 0.3, 0.5, 0.69, 0.7, 1.0):
        kept(jay, f"Worth {importance}", importance=importance)

    assert stats(jay).importance_distribution == {Level.HIGH: 2, Level.MEDIUM: 3, Level.LOW: 2}


def test_current_is_what_a_list_shows_in_every_chart(jay: Engine, clock: Clock):
    kept(jay, "User lives in Rome", category=Category.FACT, importance=0.9)
    clock.move(days=1)
    for number, category in enumerate((Category.FACT, Category.FACT, Category.GOAL, Category.GOAL, Category.EVENT)):
        kept(jay, f"About {number}", category=category, importance=0.2)
    gone, outdated, packed, expired, _ = (one.id for one in jay.list().memories[:5])
    jay.forget(gone)
    jay.supersede(old=outdated, new=jay.list().memories[-1].id)
    archive(jay, packed)
    jay.update(expired, expires_at=jay.now() + timedelta(minutes=1))
    clock.move(days=1)

    found = stats(jay, trends=Granularity.DAY).current

    listed = jay.list(counted=True)
    assert found.total == listed.total == len(listed.memories) == 2
    assert found.superseded == jay.list(Filter(states=frozenset({State.SUPERSEDED})), counted=True).total == 1
    assert sum(found.categories.values()) == sum(found.levels.values()) == 2
    assert [point.value for point in found.growth] == [1, 2, 2]
    assert [point.value for point in stats(jay, trends=Granularity.HOUR).current.growth][:25] == [1] * 24 + [2]
    before = stats(jay, trends=Granularity.DAY, end=jay.now() - timedelta(days=1)).current
    assert [point.value for point in before.growth] == [1, 2]


def test_sizes_are_those_of_texts_and_vectors(jay: Engine):
    """The embedder of the tests makes vectors of a known length, one for a short text."""
    memory = kept(jay, "tea é", metadata={"a": 1})
    vector = 2 * len(jay.records.vectors([memory])[memory]) + 5

    found = stats(jay).storage_size

    assert found.embeddings_bytes == vector
    assert found.total_bytes == vector + len("tea é".encode()) + len('"a":1')
    kept(jay, "x")
    assert stats(jay).storage_size.average_memory_bytes == -(-(found.total_bytes + vector + 1) // 2)


def test_a_purged_memory_takes_no_room(jay: Engine):
    jay.forget(kept(jay), hard=True)

    assert stats(jay).storage_size == figures.StorageSize(total_bytes=0, average_memory_bytes=0, embeddings_bytes=0)


# --- use ---


def test_recalls_are_counted_at_once_by_memory_day_and_hour(jay: Engine, clock: Clock):
    """Found on a Sunday at 10, twice on the Monday at 14, and looked at on the Tuesday."""
    tea = kept(jay, "User likes tea")
    kept(jay, "The office is in Berlin")
    jay.search("tea", words_only=True)
    clock.move(days=1, hours=4)
    jay.search("tea", words_only=True)
    jay.search("tea", words_only=True)
    clock.move(days=1)

    found = stats(jay)

    assert found.access_patterns == figures.AccessPatterns(
        total_recalls=3,
        unique_memories_accessed=1,
        average_recalls_per_memory=1.5,
        most_accessed_memory_id=tea,
        most_accessed_count=3,
    )
    assert found.recall_frequency == figures.RecallFrequency(daily_average=2, peak_hour=14, peak_day="monday")


def test_recalls_outside_the_time_are_not_in_the_frequency(jay: Engine, clock: Clock):
    kept(jay, "User likes tea")
    jay.search("tea", words_only=True)
    clock.move(days=10)
    jay.search("tea", words_only=True)

    found = stats(jay, start=clock.time - timedelta(days=2), end=clock.time)

    assert found.recall_frequency.daily_average == 1
    assert found.access_patterns.total_recalls == 2


def test_the_most_accessed_memory_is_one_that_can_still_be_read(jay: Engine):
    gone, there = kept(jay, "User likes tea and milk"), kept(jay, "The office is in Berlin")
    for words in ("tea milk", "tea milk", "office berlin"):
        jay.search(words, words_only=True)
    jay.forget(gone)

    found = stats(jay).access_patterns

    assert (found.most_accessed_memory_id, found.most_accessed_count, found.total_recalls) == (there, 1, 3)


# --- time ---


def test_growth_is_by_whole_days_and_by_halves(jay: Engine, clock: Clock):
    """Ten days; two memories in the first half, three in the second: 0.5 a day, half as many again."""
    start = clock.time
    for days in (0, 2, 6, 7, 9):
        clock.time = start + timedelta(days=days)
        kept(jay, f"Day {days}")
    clock.time = start + timedelta(days=10, hours=3)

    found = stats(jay)

    assert (found.start, found.end) == (start, clock.time)
    assert found.growth_rate == figures.GrowthRate(memories_per_day=0.5, trend="increasing", percent_change=50.0)


def test_both_ends_of_a_time_range_belong_to_it(jay: Engine, clock: Clock):
    start = clock.time + timedelta(minutes=7)
    for minutes in (6, 7, 60, 67, 68):
        clock.time = start + timedelta(minutes=minutes - 7)
        kept(jay, f"Minute {minutes}")

    found = stats(jay, start=start, end=start + timedelta(hours=1), trends=Granularity.HOUR)

    assert found.growth_rate.memories_per_day == 3.0
    assert points(found) == [("2026-11-15 10", 2), ("2026-11-15 11", 4)]
    assert found.count.total == 5


def test_an_end_in_the_future_means_now(jay: Engine, clock: Clock):
    kept(jay)

    found = stats(jay, end=clock.time + timedelta(days=1), trends=Granularity.DAY)

    assert found.end == clock.time
    assert points(found) == [("2026-11-15 00", 1)]


@pytest.mark.parametrize(
    ("granularity", "expected"),
    [
        (Granularity.HOUR, [("2026-11-15 10", 1), ("2026-11-15 11", 1), ("2026-11-15 12", 2)]),
        (Granularity.DAY, [("2026-11-15 00", 2)]),
    ],
)
def test_a_trend_holds_what_there_was_at_the_end_of_each_step(
    jay: Engine, clock: Clock, granularity: Granularity, expected: list[tuple[str, int]]
):
    kept(jay, "One")
    clock.move(hours=2)
    kept(jay, "Two")

    found = stats(jay, trends=granularity)

    assert points(found) == expected
    assert found.memory_count[-1].value == found.count.total


def test_weeks_begin_on_monday_and_months_on_their_first(jay: Engine, clock: Clock):
    """The 15th of November 2026 is a Sunday."""
    for _ in range(3):
        jay.forget(kept(jay, f"At {clock.time}"), hard=True)
        clock.move(days=8)

    assert points(stats(jay, trends=Granularity.WEEK)) == [
        ("2026-11-09 00", 1),
        ("2026-11-16 00", 1),
        ("2026-11-23 00", 2),
        ("2026-11-30 00", 3),
        ("2026-12-07 00", 3),
    ]
    assert points(stats(jay, trends=Granularity.MONTH)) == [("2026-11-01 00", 2), ("2026-12-01 00", 3)]


def test_without_being_asked_there_is_no_trend(jay: Engine):
    kept(jay)

    assert stats(jay).memory_count == ()


def test_a_trend_has_the_newest_thousand_points(jay: Engine, clock: Clock):
    kept(jay, "Long ago", created_at=clock.time - timedelta(days=1_000))

    found = stats(jay, trends=Granularity.HOUR)

    assert len(found.memory_count) == MAX_POINTS
    assert found.memory_count[-1].at == clock.time
    assert found.memory_count[0].at == clock.time - timedelta(hours=MAX_POINTS - 1)


def test_deletions_per_week_are_those_of_the_time(jay: Engine, clock: Clock):
    """Fourteen days, four deletions of which one was before: 1.5 a week."""
    memories = [kept(jay, f"Number {n}") for n in range(5)]
    jay.forget(memories[0])
    clock.move(days=1)
    start = clock.time
    for memory in memories[1:4]:
        jay.forget(memory, hard=memory == memories[3])
    clock.move(days=14)

    found = stats(jay, start=start).deletion_rate

    assert (found.deletions_per_week, found.soft_deletes, found.hard_deletes) == (1.5, 3, 1)
    assert found.deletion_ratio == 0.8


def test_consolidations_are_shown_once_they_are_counted(jay: Engine, clock: Clock):
    memory, *_ = [kept(jay, f"Number {n}") for n in range(8)]
    assert stats(jay).consolidation_rate.memories_consolidated == 0
    with jay.records.writing() as tx:
        tx.statistics.count_consolidation(memory, sources=3, at=clock.time)
        tx.statistics.count_consolidation(memory, sources=2, at=clock.time)

    found = stats(jay).consolidation_rate

    assert (found.consolidations_per_week, found.memories_consolidated, found.consolidation_ratio) == (2.0, 5, 0.62)


def test_a_reversed_time_range_is_refused(jay: Engine, clock: Clock):
    with pytest.raises(InvalidInput):
        stats(jay, start=clock.time, end=clock.time - timedelta(seconds=1))


# --- health ---


def test_repeated_texts_cost_deduplication(jay: Engine):
    """Four kept ones, one of them a repeat; the outdated and the deleted do not count."""
    kept(jay, "User likes tea")
    kept(jay, "user LIKES tea")
    kept(jay, "The office is in Berlin")
    kept(jay, "Something else")
    jay.forget(kept(jay, "User likes tea"))

    assert stats(jay).health_score.factors.deduplication == 0.75


def test_categories_that_agree_with_their_neighbours_are_accurate(jay: Engine):
    memories = [kept(jay, f"Number {n}") for n in range(4)]
    with jay.records.writing() as tx:
        for memory in memories[:3]:
            tx.judge_category(memory, agreed=memory != memories[0])

    assert stats(jay).health_score.factors.categorization_accuracy == 0.67


def test_access_is_well_distributed_when_each_is_recalled_as_often(jay: Engine):
    """Counts of 1 and 1 give 1; counts of 1 and 3 give (1 + 3)² / (2 × (1 + 9)) = 0.8."""
    kept(jay, "User likes tea")
    kept(jay, "The office is in Berlin")
    jay.search("tea", words_only=True)
    jay.search("office", words_only=True)
    assert stats(jay).health_score.factors.access_distribution == 1.0

    jay.search("office", words_only=True)
    jay.search("office", words_only=True)
    assert stats(jay).health_score.factors.access_distribution == 0.8


def test_room_taken_by_outdated_and_deleted_memories_is_not_efficient(jay: Engine):
    """Four texts of one length with a vector each; one is outdated, one deleted."""
    one, two, three, _ = (kept(jay, f"Number {n}") for n in range(4))
    jay.supersede(old=one, new=two)
    jay.forget(three)

    assert stats(jay).health_score.factors.storage_efficiency == 0.5


# --- scopes and who sees them ---


@pytest.fixture
def shared(jay: Engine) -> Callable[[Caller], Engine]:
    """Memories of two users in two spaces; a view for each caller."""
    jay.known_spaces.create("work")
    for caller in (ANN, BOB):
        for space in ("default", "work"):
            one = jay.bound_to(caller=caller, spaces=(space,))
            for level in AccessLevel:
                kept(
                    one,
                    f"{caller.user} {space} {level}",
                    access_level=level,
                    conversation_id=f"of {caller.user}",
                    category=Category.GOAL,
                )
    return lambda caller: jay.bound_to(caller=caller)


@pytest.mark.parametrize(
    ("caller", "total", "everywhere"),
    [
        (Caller(), 6, 12),
        (ANN, 5, 10),
        (Caller(user="eve", role=Role.MEMBER), 4, 8),
        (Caller(user="ann", role=Role.READER), 4, 8),
        (Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default"})), 5, 5),
        (Caller(user="ann", role=Role.OWNER, spaces=frozenset({"work"})), 2, 6),
    ],
)
def test_a_caller_counts_what_it_may_see(
    shared: Callable[[Caller], Engine], caller: Caller, total: int, everywhere: int
):
    """In its space by default, in every space granted to it with `global`."""
    jay = shared(caller)

    assert stats(jay).count.total == total
    assert stats(jay, scope=StatsScope.GLOBAL).count.total == everywhere


def test_a_scope_narrows_what_is_counted(shared: Callable[[Caller], Engine]):
    jay = shared(Caller())

    def total(scope: StatsScope, name: str) -> int:
        found = stats(jay, scope=scope, scope_id=name, trends=Granularity.DAY)
        assert found.memory_count[-1].value == found.count.total
        return found.count.total

    assert total(StatsScope.USER, "ann") == total(StatsScope.CONVERSATION, "of bob") == 3
    assert total(StatsScope.CATEGORY, "goal") == 6
    assert stats(shared(ANN), scope=StatsScope.CONVERSATION, scope_id="of bob").count.total == 2


def test_an_unknown_scope_says_so(shared: Callable[[Caller], Engine]):
    jay = shared(ANN)

    def exists(scope: StatsScope, name: str) -> bool:
        return stats(jay, scope=scope, scope_id=name).exists

    assert exists(StatsScope.USER, "ann")
    assert exists(StatsScope.CONVERSATION, "of bob")
    assert exists(StatsScope.CATEGORY, "skill")
    assert not exists(StatsScope.CONVERSATION, "nowhere")
    assert not exists(StatsScope.CATEGORY, "nothing")
    assert not stats(shared(Caller()), scope=StatsScope.USER, scope_id="nobody").exists
    assert stats(shared(Caller(user="new")), scope=StatsScope.USER, scope_id="new").exists


def test_a_conversation_of_purged_memories_is_still_known(jay: Engine):
    jay.forget(kept(jay, conversation_id="c"), hard=True)

    found = stats(jay, scope=StatsScope.CONVERSATION, scope_id="c")

    assert (found.exists, found.count.deleted) == (True, 1)


def test_a_foreign_user_is_for_owners_only(shared: Callable[[Caller], Engine]):
    with pytest.raises(Forbidden):
        stats(shared(ANN), scope=StatsScope.USER, scope_id="bob")


@pytest.mark.parametrize("scope", [StatsScope.USER, StatsScope.CONVERSATION, StatsScope.CATEGORY])
def test_a_scope_of_something_needs_its_name(jay: Engine, scope: StatsScope):
    with pytest.raises(InvalidInput, match="scope_id"):
        stats(jay, scope=scope)


def test_tags_are_counted_of_what_is_current_for_the_caller(jay: Engine) -> None:
    """A private memory supersedes another for those who see both, and for nobody else."""
    ann, bob = jay.bound_to(caller=ANN), jay.bound_to(caller=BOB)
    old = ann.store("The ferry leaves at nine", tags=["ferry"]).memory
    new = ann.store("The ferry leaves at ten", tags=["ferry"], access_level=AccessLevel.PRIVATE).memory
    ann.supersede(old=old.id, new=new.id)

    assert [memory.id for memory in ann.list()] == [new.id]
    assert [memory.id for memory in bob.list()] == [old.id]
    assert [(one.tag, one.memories) for one in ann.tags()] == [("ferry", 1)]
    assert [(one.tag, one.memories) for one in bob.tags()] == [("ferry", 1)]
