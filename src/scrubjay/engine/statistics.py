"""What there is and how it is used: counts, sizes, distributions, rates, trends and health.

Everything is counted by the store when it is asked. `docs/reference/statistics.md` defines every number in a sentence;
the small functions at the end are those sentences as arithmetic. Days and hours are UTC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from scrubjay.engine import access
from scrubjay.errors import InvalidInput
from scrubjay.stores.promises.memories import Reads
from scrubjay.stores.promises.statistics import Activity, Group, Level, Of, Part, Totals
from scrubjay.values.callers import Audience, Caller, Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Category, State
from scrubjay.values.search import Filter, Order

MAX_POINTS = 1_000  # of a trend; the newest ones are shown
MAX_RECALL_POINTS = 30  # each is counted by itself
MOMENT = timedelta(milliseconds=1)  # the smallest step of a stored time
LAST = datetime.max.replace(tzinfo=UTC)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
KEPT = (State.ACTIVE, State.ARCHIVED)  # neither outdated nor deleted
SHOWN = frozenset({State.ACTIVE, State.SUPERSEDED, State.ARCHIVED})


class StatsScope(StrEnum):
    EVERYTHING = "everything"  # all that the caller reads
    GLOBAL = "global"  # all in every space that the caller may use, even if it is kept to one
    OWN = "own"  # what is the caller's: of an owner all that it reads, of others what they are the user of
    USER = "user"
    CONVERSATION = "conversation"
    CATEGORY = "category"


class Granularity(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"  # from Monday
    MONTH = "month"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsQuery:
    scope: StatsScope = StatsScope.EVERYTHING
    scope_id: str | None = None  # of the user, conversation or category
    start: datetime | None = None  # None: the hour of the first memory
    end: datetime | None = None  # included; None, or in the future: now
    trends: Granularity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    total: int
    active: int
    archived: int
    deleted: int
    expired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """What a list shows that is not filtered: neither superseded, archived, deleted nor expired."""

    total: int
    superseded: int  # what a list of these shows
    categories: Mapping[Category, int]  # largest first, none that is empty
    levels: Mapping[Level, int]
    growth: Sequence[TrendPoint] = ()  # the trend, if it was asked for: how many there were of what is current now


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageSize:
    total_bytes: int
    average_memory_bytes: int
    embeddings_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPatterns:
    total_recalls: int
    unique_memories_accessed: int
    average_recalls_per_memory: float
    most_accessed_memory_id: str | None
    most_accessed_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRate:
    memories_per_day: float
    trend: str  # increasing, stable, decreasing
    percent_change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFrequency:
    daily_average: int
    peak_hour: int | None
    peak_day: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationRate:
    consolidations_per_week: float
    memories_consolidated: int
    consolidation_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionRate:
    deletions_per_week: float
    soft_deletes: int
    hard_deletes: int
    deletion_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFactors:
    deduplication: float
    categorization_accuracy: float
    access_distribution: float
    storage_efficiency: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthScore:
    overall: float
    factors: HealthFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    at: datetime  # when the hour, day, week or month began
    value: int  # memories at its end, or recalls in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    exists: bool  # False: no such user, conversation or category, or not visible to this caller
    start: datetime
    end: datetime
    count: Count
    current: Current
    storage_size: StorageSize
    category_distribution: Mapping[Category, int]  # largest first, none that is empty
    importance_distribution: Mapping[Level, int]
    access_patterns: AccessPatterns
    growth_rate: GrowthRate
    recall_frequency: RecallFrequency
    consolidation_rate: ConsolidationRate
    deletion_rate: DeletionRate
    health_score: HealthScore
    memory_count: Sequence[TrendPoint] = ()  # the trend, oldest first, if it was asked for
    recall_count: Sequence[TrendPoint] = ()  # the same for recalls: how many in each step, of the newest ones
    recall_hours: Sequence[Sequence[int]] = ()  # recalls by weekday, Monday first, and hour of the day


def statistics(records: Reads, caller: Caller, audience: Audience, query: StatsQuery, *, now: datetime) -> Statistics:
    """The numbers of what a caller may see.

    :raises Forbidden: if it names another user without the right
    :raises InvalidInput: if the time range is reversed, or the scope needs an id and has none
    """
    query = _of_caller(query, caller)
    part = _part(query)
    if query.scope is StatsScope.USER and query.scope_id:
        access.checked_user(caller, query.scope_id)
    if query.scope is StatsScope.GLOBAL:
        audience = access.audience_anywhere(caller)
    totals = records.statistics.totals(part, audience, now=now)
    start, end = _range(query, totals, now)
    starts = [] if query.trends is None else steps(start, end, query.trends)
    moments = [start, start + (end - start) / 2, *starts[1:], end + MOMENT]
    before, middle, *at_ends = _there_were(records, part, audience, moments, present=totals.memories, now=now)
    there_was = partial(records.statistics.activity, part, audience)
    activity = there_was(since=start, until=end)
    days = whole_days(start, end)
    return Statistics(
        exists=_exists(caller, query, totals),
        start=start,
        end=end,
        count=count(totals),
        current=current(records, part, audience, starts, end, now=now),
        storage_size=storage_size(totals),
        category_distribution=dict(sorted(totals.categories.items(), key=lambda item: (-item[1], item[0]))),
        importance_distribution={level: totals.levels.get(level, 0) for level in Level},
        access_patterns=access_patterns(totals, most_accessed(records, query, audience, now)),
        growth_rate=growth_rate(middle - before, at_ends[-1] - middle, days),
        recall_frequency=recall_frequency(activity, days),
        consolidation_rate=consolidation_rate(activity, totals, days),
        deletion_rate=deletion_rate(activity, totals, days),
        health_score=health_score(totals),
        memory_count=tuple(TrendPoint(at=at, value=value) for at, value in zip(starts, at_ends, strict=False)),
        recall_count=recalls(there_was, starts[-MAX_RECALL_POINTS:], end),
        recall_hours=recall_hours(activity),
    )


# --- what is asked ---------------------------------------------------------------------------------------------------


def _of_caller(query: StatsQuery, caller: Caller) -> StatsQuery:
    """The same question, with what is the caller's own named."""
    if query.scope is not StatsScope.OWN:
        return query
    if caller.role is Role.OWNER:
        return replace(query, scope=StatsScope.EVERYTHING)
    return replace(query, scope=StatsScope.USER, scope_id=caller.user)


def _part(query: StatsQuery) -> Part:
    if query.scope in (StatsScope.EVERYTHING, StatsScope.GLOBAL):
        return Part()
    if not query.scope_id:
        raise InvalidInput(f"scope_id is required for scope {query.scope}.", field="scope_id")
    return Part(Of(query.scope), query.scope_id)


def _exists(caller: Caller, query: StatsQuery, totals: Totals) -> bool:
    match query.scope:
        case StatsScope.USER if query.scope_id == caller.user:
            return True
        case StatsScope.CATEGORY:
            return query.scope_id in list(Category)
        case StatsScope.USER | StatsScope.CONVERSATION:
            return totals.memories > 0
        case _:
            return True


def _range(query: StatsQuery, totals: Totals, now: datetime) -> tuple[datetime, datetime]:
    if query.start is not None and query.end is not None and query.start > query.end:
        raise InvalidInput("The time range ends before it starts.", field="time_range")
    end = min(query.end or now, now)
    start = query.start if query.start is not None else totals.since or end
    return min(start, end), end


# --- numbers ---------------------------------------------------------------------------------------------------------


def count(totals: Totals) -> Count:
    states = Counter(totals.states)
    return Count(
        total=totals.memories,
        active=states[State.ACTIVE] + states[State.SUPERSEDED],
        archived=states[State.ARCHIVED],
        deleted=states[State.DELETED] + states[State.PURGED],
        expired=totals.expired,
    )


def current(
    records: Reads, part: Part, audience: Audience, starts: Sequence[datetime], end: datetime, *, now: datetime
) -> Current:
    groups = records.statistics.at_hand(part, audience, now=now)
    found = [group for group in groups if not group.superseded]
    categories, levels = _sums(found, "category"), _sums(found, "level")
    ends = [*starts[1:], LAST if end >= now else end + MOMENT] if starts else []
    counts = records.statistics.created_before(part, audience, ends, at_hand=now) if starts else []
    return Current(
        total=sum(group.memories for group in found),
        superseded=sum(group.memories for group in groups if group.superseded),
        categories=dict(sorted(categories.items(), key=lambda item: (-item[1], item[0]))),
        levels={level: levels[level] for level in Level},
        growth=[TrendPoint(at=at, value=value) for at, value in zip(starts, counts, strict=True)],
    )


def _sums(groups: Iterable[Group], name: str) -> Counter[Any]:
    sums: Counter[Any] = Counter()
    for group in groups:
        sums[getattr(group, name)] += group.memories
    return sums


def storage_size(totals: Totals) -> StorageSize:
    embeddings = sum(totals.vector_bytes.values())
    size = sum(totals.text_bytes.values()) + embeddings
    return StorageSize(
        total_bytes=size,
        average_memory_bytes=rounded_up(size, totals.memories),
        embeddings_bytes=embeddings,
    )


def most_accessed(records: Reads, query: StatsQuery, audience: Audience, now: datetime) -> tuple[str | None, int]:
    """The memory handed out most often of those that can still be read, the newest of equals."""
    name = query.scope_id
    wanted = Filter(
        states=SHOWN,
        expired=None,
        user_id=name if query.scope is StatsScope.USER else None,
        conversation_id=name if query.scope is StatsScope.CONVERSATION else None,
        categories=_categories(name) if query.scope is StatsScope.CATEGORY else None,
    )
    for memory in records.list(wanted, audience, now=now, order=Order.ACCESSES, limit=1):
        if memory.access_count:
            return memory.id, memory.access_count
    return None, 0


def access_patterns(totals: Totals, most: tuple[str | None, int]) -> AccessPatterns:
    return AccessPatterns(
        total_recalls=totals.reads,
        unique_memories_accessed=totals.read_memories,
        average_recalls_per_memory=ratio(totals.reads, totals.memories, digits=2),
        most_accessed_memory_id=most[0],
        most_accessed_count=most[1],
    )


def growth_rate(first_half: int, second_half: int, days: int) -> GrowthRate:
    change = percent_change(first_half, second_half)
    return GrowthRate(
        memories_per_day=ratio(first_half + second_half, days, digits=1),
        trend="increasing" if change > 0 else "decreasing" if change < 0 else "stable",
        percent_change=change,
    )


def recall_frequency(activity: Activity, days: int) -> RecallFrequency:
    by_hour, by_day = Counter[int](), Counter[int]()
    for (weekday, hour), reads in activity.reads.items():
        by_day[weekday] += reads
        by_hour[hour] += reads
    return RecallFrequency(
        daily_average=rounded_up(sum(by_day.values()), days),
        peak_hour=_peak(by_hour),
        peak_day=None if (peak := _peak(by_day)) is None else WEEKDAYS[peak],
    )


def consolidation_rate(activity: Activity, totals: Totals, days: int) -> ConsolidationRate:
    return ConsolidationRate(
        consolidations_per_week=per_week(activity.consolidations, days),
        memories_consolidated=activity.consolidated,
        consolidation_ratio=ratio(activity.consolidated, totals.memories, digits=2),
    )


def deletion_rate(activity: Activity, totals: Totals, days: int) -> DeletionRate:
    soft, hard = totals.states.get(State.DELETED, 0), totals.states.get(State.PURGED, 0)
    return DeletionRate(
        deletions_per_week=per_week(activity.deleted, days),
        soft_deletes=soft,
        hard_deletes=hard,
        deletion_ratio=ratio(soft + hard, totals.memories, digits=3),
    )


def health_score(totals: Totals) -> HealthScore:
    kept = sum(totals.states.get(state, 0) for state in KEPT)
    sizes = (totals.text_bytes, totals.vector_bytes)
    kept_bytes = sum(size.get(state, 0) for size in sizes for state in KEPT)
    factors = HealthFactors(
        deduplication=share(kept - totals.repeats, kept),
        categorization_accuracy=share(totals.agreed, totals.judged),
        access_distribution=share(totals.reads**2, totals.read_memories * totals.squared_reads),
        storage_efficiency=share(kept_bytes, sum(sum(size.values()) for size in sizes)),
    )
    return HealthScore(overall=overall(factors), factors=factors)


def overall(factors: HealthFactors) -> float:
    each: list[float] = [getattr(factors, entry.name) for entry in fields(factors)]
    return round(sum(each) / len(each), 2)


def recalls(there_was: Callable[..., Activity], starts: Sequence[datetime], end: datetime) -> Sequence[TrendPoint]:
    """How often memories were handed out in each step."""
    ends = [*(begun - MOMENT for begun in starts[1:]), end]
    return tuple(
        TrendPoint(at=since, value=sum(there_was(since=since, until=until).reads.values()))
        for since, until in zip(starts, ends, strict=False)
    )


def recall_hours(activity: Activity) -> Sequence[Sequence[int]]:
    return tuple(tuple(activity.reads.get((day, hour), 0) for hour in range(24)) for day in range(len(WEEKDAYS)))


def _there_were(
    records: Reads, part: Part, audience: Audience, moments: Sequence[datetime], *, present: int, now: datetime
) -> Sequence[int]:
    """How many memories there were before each moment; past the present, as many as there are."""
    past = [moment for moment in moments if moment <= now]
    counts = iter(records.statistics.created_before(part, audience, past))
    return [next(counts) if moment <= now else present for moment in moments]


# --- arithmetic ------------------------------------------------------------------------------------------------------


def whole_days(start: datetime, end: datetime) -> int:
    return max(1, (end - start).days)


def rounded_up(amount: int, parts: int) -> int:
    return -(-amount // parts) if parts else 0


def ratio(amount: float, total: float, *, digits: int) -> float:
    return round(amount / total, digits) if total else 0.0


def share(amount: int, total: int) -> float:
    """For health: where there is nothing to judge, nothing is wrong."""
    return round(amount / total, 2) if total else 1.0


def per_week(amount: int, days: int) -> float:
    return round(amount / max(1.0, days / 7), 1)


def percent_change(first: int, second: int) -> float:
    if not first:
        return 100.0 if second else 0.0
    return round((second - first) / first * 100, 1)


def steps(start: datetime, end: datetime, granularity: Granularity) -> list[datetime]:
    """When the hours, days, weeks or months from `start` to `end` began, oldest first; the newest `MAX_POINTS`."""
    begun = [_begin(end, granularity)]
    while begun[-1] > start and len(begun) < MAX_POINTS:
        begun.append(_begin(begun[-1] - MOMENT, granularity))
    return begun[::-1]


def _begin(at: datetime, granularity: Granularity) -> datetime:
    hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    day = hour.replace(hour=0)
    match granularity:
        case Granularity.HOUR:
            return hour
        case Granularity.DAY:
            return day
        case Granularity.WEEK:
            return day - timedelta(days=day.weekday())
        case Granularity.MONTH:
            return day.replace(day=1)


def _peak(counts: Counter[int]) -> int | None:
    """The one with the highest count, the first of equals."""
    return min(counts, key=lambda key: (-counts[key], key), default=None)


def _categories(name: str | None) -> frozenset[Category]:
    return frozenset(category for category in Category if category == name)
