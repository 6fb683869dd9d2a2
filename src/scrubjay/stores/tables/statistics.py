"""What there is, when it came and how often it was handed out, in every backend: read from totals that writes keep.

    totals     one row per part, space, audience, state, category and level: added up for what a caller may see
    activity   the same by the hour and by the day: when memories were created, handed out, consolidated

The schema (0002) says what a part is. Moments within an hour are settled by the memories' own rows.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from scrubjay.stores.promises.statistics import Activity, Group, Level, Of, Part, SpaceCounts, Totals
from scrubjay.stores.tables.sql import SUPERSEDED, Row, Sql
from scrubjay.stores.tables.tally import HOUR, Tally
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Category, State
from scrubjay.values.times import milliseconds, moment

DAY = 24  # hours
SUMS = (
    "memories", "text_bytes", "vector_bytes", "reads", "squared_reads", "read_memories", "judged", "agreed", "repeats",
)  # fmt: skip
EVERY_STATE = ", ".join(str(int(state)) for state in State)

LEVEL = "CASE WHEN importance >= 0.7 THEN 'high' WHEN importance < 0.3 THEN 'low' ELSE 'medium' END"

K = TypeVar("K")


class Statistics:
    def __init__(self, sql: Sql, tally: Tally) -> None:
        self._sql = sql
        self._tally = tally

    def totals(self, part: Part, audience: Audience, *, now: datetime) -> Totals:
        """What there is of a part, as far as the audience sees it; counted reads not yet written included."""
        those = Those(self._sql, part, audience)
        groups = those.all(
            # the primary key; groups that have become empty keep their row
            "totals",
            f"""
            SELECT state, category, level, {", ".join(f"CAST(sum({name}) AS BIGINT)" for name in SUMS)}
            FROM totals
            WHERE {{}}
            AND memories > 0
            GROUP BY state, category, level
            """,
        )
        first = those.all(
            # the primary key
            "activity",
            "SELECT at FROM activity WHERE {} AND hours = 1 AND created > 0 ORDER BY at LIMIT 1",
        )
        return totals_of(
            groups,
            uncounted=self._uncounted(those),
            expired=those.count("expires_at <= :at AND state IN (0, 1)", "memories_by_expiry", at=milliseconds(now)),
            since=moment(first[0][0] * HOUR) if first else None,
        )

    def at_hand(self, part: Part, audience: Audience, *, now: datetime, hours: int) -> list[Group]:
        """What lists of current and of superseded memories show, by the hours, or days, they were created in."""
        those, (others, named) = Those(self._sql, part, audience), self._sql.visible(audience.reaching, "others")
        seen = "{} AND (expires_at IS NULL OR expires_at > :now)"
        rows = those.rows(
            # memories_by_created holds all that is asked; then memories by their ids
            f"""
            SELECT superseded, category, {LEVEL} AS level, created_at / :step AS at, CAST(sum(number) AS BIGINT)
            FROM (
                SELECT state AS superseded, category, importance, created_at, 1 AS number
                FROM memories
                WHERE state IN (0, 1) AND {seen}
                UNION ALL
                SELECT moved.state, category, importance, created_at, moved.by_one
                FROM memories
                CROSS JOIN (SELECT 0 AS state, -1 AS by_one UNION ALL SELECT 1, 1) AS moved
                WHERE memories.state = 0 AND {seen}
                AND memories.id IN ({SUPERSEDED.format(others)})
            ) AS counted
            GROUP BY 1, 2, 3, 4
            """,
            step=hours * HOUR,
            now=milliseconds(now),
            **named,
        )
        return [
            Group(bool(outdated), Category(category), Level(level), moment(at * hours * HOUR), memories)
            for outdated, category, level, at, memories in rows
        ]

    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> list[int]:
        """For each moment how many memories, whatever became of them since, were created before it."""
        times = [milliseconds(each) for each in moments]
        return created_before(times, Those(self._sql, part, audience)) if times else []

    def activity(self, part: Part, audience: Audience, *, since: datetime, until: datetime) -> Activity:
        """What happened from one moment to another, both included.

        Reads and consolidations are counted by the hour, so for them the stretch is widened to whole hours. They
        belong to where the memory was then; a memory that is moved takes only its later ones along.
        """
        those, first, last = Those(self._sql, part, audience), milliseconds(since), milliseconds(until)
        hours = range(first // HOUR, last // HOUR + 1)
        rows = those.all(
            # the primary key
            "activity",
            """
            SELECT
                at, CAST(sum(reads) AS BIGINT), CAST(sum(consolidations) AS BIGINT), CAST(sum(consolidated) AS BIGINT)
            FROM activity
            WHERE {}
            AND hours = 1
            AND at BETWEEN :first AND :last
            AND (reads > 0 OR consolidations > 0)
            GROUP BY at
            """,
            first=first // HOUR,
            last=last // HOUR,
        )
        waiting = self._tally.batch().readings
        new = (one for name in those.reads_of(waiting) for one in waiting[name].hours.items() if one[0] in hours)
        deleted = "deleted_at BETWEEN :first AND :last AND state >= 3"
        return Activity(
            reads=by_weekday_and_hour([*((at, reads) for at, reads, _, _ in rows if reads), *new]),
            deleted=those.count(deleted, "memories_by_deletion", first=first, last=last),
            consolidations=sum(row[2] for row in rows),
            consolidated=sum(row[3] for row in rows),
        )

    def tags(self, audience: Audience, *, now: datetime, found: bool, limit: int) -> list[tuple[str, int]]:
        """The tags of active memories with how many have each, the most frequent first: those that were given or, with
        `found`, those that were found in texts as well."""
        visible, values = self._sql.visible(audience)
        rows = self._sql.all(
            f"""
            SELECT tags, auto_tags
            FROM memories
            WHERE state = 0
            AND (expires_at IS NULL OR expires_at > :at)
            AND {visible}
            """,
            at=milliseconds(now),
            **values,
        )
        counts = Counter(
            tag for given, others in rows for tag in {*json.loads(given), *(json.loads(others) if found else ())}
        )
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:limit]

    def space_counts(self, audience: Audience, *, now: datetime) -> dict[str, SpaceCounts]:
        """What each space holds of what the audience sees; spaces without any may be left out. Never a scan."""
        sql = self._sql
        (counted, some), (visible, given) = sql.visible(audience, "totals"), sql.visible(audience)
        others, named = sql.visible(audience.reaching, "others")
        rows = sql.all(
            # the primary key of totals; memories_by_expiry; memories by their ids
            f"""
            SELECT
                {sql.space_name.format("counts.space")},
                CAST(coalesce(sum(memories) FILTER (WHERE state = 0), 0) AS BIGINT),
                CAST(coalesce(sum(memories) FILTER (WHERE state = 1), 0) AS BIGINT)
            FROM (
                SELECT space, state, memories
                FROM totals
                WHERE part = '' AND state IN (0, 1) AND {counted}
                UNION ALL
                SELECT space, state, -1
                FROM memories
                WHERE expires_at <= :at AND state IN (0, 1) AND {visible}
                UNION ALL
                SELECT space, moved.state, moved.by_one
                FROM memories
                CROSS JOIN (SELECT 0 AS state, -1 AS by_one UNION ALL SELECT 1, 1) AS moved
                WHERE memories.state = 0
                AND (expires_at IS NULL OR expires_at > :at)
                AND {visible}
                AND memories.id IN ({SUPERSEDED.format(others)})
            ) AS counts
            GROUP BY counts.space
            """,
            at=milliseconds(now),
            **some,
            **given,
            **named,
        )
        return {name: SpaceCounts(active=active, superseded=superseded) for name, active, superseded in rows}

    def _uncounted(self, those: Those) -> tuple[int, int, int]:
        """What reads that are not written yet add to reads, their squares and memories read at least once."""
        waiting = self._tally.batch().readings
        added = [(before, waiting[memory].count) for memory, before in those.reads_of(waiting).items()]
        return (
            sum(count for _, count in added),
            sum((before + count) ** 2 - before**2 for before, count in added),
            sum(before == 0 for before, _ in added),
        )


class Those:
    """The memories of a part, as far as an audience sees them."""

    def __init__(self, sql: Sql, part: Part, audience: Audience) -> None:
        self._sql = sql
        self._audience = audience
        self._values: dict[str, Any] = {"name": part.name}
        self._part, self._where = "''", "TRUE"
        if part.of is not Of.ALL:
            column, value = ("category", ":name") if part.of is Of.CATEGORY else (f"{part.of}_id", sql.name)
            self._part = f"CAST('{part.of}:' AS TEXT) || {value}"
            self._where = f"memories.{column} = {value}"

    def all(self, table: str, statement: str, **values: object) -> list[Row]:
        """Rows of `totals` or `activity`; the statement leaves out which."""
        visible, given = self._sql.visible(self._audience, table)
        which = f"{table}.part = {self._part} AND {visible}"
        return self._sql.all(statement.format(which), **self._values, **given, **values)

    def count(self, where: str, index: str, **values: object) -> int:
        """How many memories meet a condition, of which this index holds all."""
        return self._sql.count(f"{self._where} AND {where}", self._audience, index=index, **self._values, **values)

    def rows(self, statement: str, **values: object) -> list[Row]:
        """Rows made of the memories themselves; the statement leaves out which."""
        visible, given = self._sql.visible(self._audience)
        which = f"{self._where} AND {visible}"
        return self._sql.all(statement.replace("{}", which), **self._values, **given, **values)

    def reads_of(self, waiting: Mapping[str, object]) -> dict[str, int]:
        """How often each of these was handed out."""
        if not waiting:
            return {}
        among = self._sql.among("memories.id", "ids")  # memories by their ids
        return dict(self.rows(f"SELECT id, access_count FROM memories WHERE {{}} AND {among}", ids=list(waiting)))

    def created(self, hours: int, first: int, end: int) -> Series:
        """By the hour or the day, from one hour to another."""
        return Series(
            self.all(
                # the primary key
                "activity",
                """
                SELECT at, CAST(sum(created) AS BIGINT)
                FROM activity
                WHERE {}
                AND hours = :hours
                AND at >= :first
                AND at < :end
                GROUP BY at
                ORDER BY at
                """,
                hours=hours,
                first=first,
                end=end,
            )
        )

    def created_within(self, first: int, end: int) -> int:
        where = f"state IN ({EVERY_STATE}) AND created_at >= :first AND created_at < :end"
        return self.count(where, "memories_by_created", first=first, end=end)


def totals_of(
    groups: Sequence[Row], *, uncounted: tuple[int, int, int], expired: int, since: datetime | None
) -> Totals:
    """From groups of state, category, level and the sums of the other columns of `totals`, in their order.

    `uncounted` is what reads that are not written yet add to reads, their squares and memories read at least once.
    """
    reads, squared_reads, read_memories, judged, agreed, repeats = (sum(row[n] for row in groups) for n in range(6, 12))
    return Totals(
        states=_sum_up((State(row[0]), row[3]) for row in groups),
        categories=_sum_up((Category(row[1]), row[3]) for row in groups),
        levels=_sum_up((Level(row[2]), row[3]) for row in groups),
        text_bytes=_sum_up((State(row[0]), row[4]) for row in groups),
        vector_bytes=_sum_up((State(row[0]), row[5]) for row in groups),
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

    def __init__(self, rows: Iterable[Row]) -> None:
        self._starts: list[int] = []
        self._sums = [0]
        for at, created in rows:
            self._starts.append(at)
            self._sums.append(self._sums[-1] + created)

    def before(self, hour: int) -> int:
        return self._sums[bisect_left(self._starts, hour)]


def created_before(times: Sequence[int], those: Those) -> list[int]:
    """How many there were before each moment: whole days, then whole hours of the last day, then single rows."""
    by_day = those.created(DAY, 0, max(times) // HOUR)
    by_hour = {
        day: those.created(1, day, day + DAY) for day in {_first_hour(time) for time in times if time % (DAY * HOUR)}
    }
    counts = []
    for time in times:
        count = by_day.before(_first_hour(time))
        if time % (DAY * HOUR):
            count += by_hour[_first_hour(time)].before(time // HOUR)
        if time % HOUR:
            count += those.created_within(time // HOUR * HOUR, time)
        counts.append(count)
    return counts


def by_weekday_and_hour(reads: Iterable[tuple[int, int]]) -> Mapping[tuple[int, int], int]:
    counts: Counter[tuple[int, int]] = Counter()
    for hour, count in reads:
        counts[(hour // DAY + 3) % 7, hour % DAY] += count  # 1970 began on a Thursday
    return counts


def _sum_up(pairs: Iterable[tuple[K, int]]) -> Mapping[K, int]:
    sums: dict[K, int] = {}
    for key, number in pairs:
        sums[key] = sums.get(key, 0) + number
    return sums


def _first_hour(time: int) -> int:
    """Of its day."""
    return time // (DAY * HOUR) * DAY
