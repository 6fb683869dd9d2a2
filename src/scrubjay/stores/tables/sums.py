"""What every backend makes of its rows of `totals` and `activity`: sums by state, by weekday and hour, by moment."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from scrubjay.stores.promises.statistics import Level, Totals
from scrubjay.stores.tables.rows import Row
from scrubjay.stores.tables.tally import HOUR
from scrubjay.values.memory import Category, State

DAY = 24  # hours

K = TypeVar("K")


def totals_of(
    groups: Sequence[Row], *, uncounted: tuple[int, int, int], expired: int, since: datetime | None
) -> Totals:
    """From groups of state, category, level and the sums of the other columns of `totals`, in their order.

    `uncounted` is what reads that are not written yet add to reads, their squares and memories read at least once.
    """
    reads, squared_reads, read_memories, judged, agreed, repeats = (sum(row[n] for row in groups) for n in range(6, 12))
    return Totals(
        states=_summed((State(row[0]), row[3]) for row in groups),
        categories=_summed((Category(row[1]), row[3]) for row in groups),
        levels=_summed((Level(row[2]), row[3]) for row in groups),
        text_bytes=_summed((State(row[0]), row[4]) for row in groups),
        vector_bytes=_summed((State(row[0]), row[5]) for row in groups),
        expired=expired,
        reads=reads + uncounted[0],
        squared_reads=squared_reads + uncounted[1],
        read_memories=read_memories + uncounted[2],
        judged=judged,
        agreed=agreed,
        repeats=repeats,
        since=since,
    )


class Series:
    """How many memories were created in each hour or day of a stretch, from rows in order of time."""

    def __init__(self, rows: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._sums = [0]
        for at, created in rows:
            self._starts.append(at)
            self._sums.append(self._sums[-1] + created)

    def before(self, hour: int) -> int:
        return self._sums[bisect_left(self._starts, hour)]


def created_before(
    times: Sequence[int], created: Callable[[int, int, int], Series], within: Callable[[int, int], int]
) -> list[int]:
    """How many memories there were before each moment: whole days, then whole hours of the last day, then single rows.

    `created` reads the series of a length in hours from one hour to another, `within` counts rows between two moments.
    """
    by_day = created(DAY, 0, max(times) // HOUR)
    by_hour = {day: created(1, day, day + DAY) for day in {_first_hour(time) for time in times if time % (DAY * HOUR)}}
    counts = []
    for time in times:
        count = by_day.before(_first_hour(time))
        if time % (DAY * HOUR):
            count += by_hour[_first_hour(time)].before(time // HOUR)
        if time % HOUR:
            count += within(time // HOUR * HOUR, time)
        counts.append(count)
    return counts


def by_weekday_and_hour(reads: Iterable[tuple[int, int]]) -> Mapping[tuple[int, int], int]:
    counts: Counter[tuple[int, int]] = Counter()
    for hour, count in reads:
        counts[(hour // DAY + 3) % 7, hour % DAY] += count  # 1970 began on a Thursday
    return counts


def _summed(pairs: Iterable[tuple[K, int]]) -> Mapping[K, int]:
    sums: dict[K, int] = {}
    for key, number in pairs:
        sums[key] = sums.get(key, 0) + number
    return sums


def _first_hour(time: int) -> int:
    """Of its day."""
    return time // (DAY * HOUR) * DAY
