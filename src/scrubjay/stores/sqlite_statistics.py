"""What there is, when it came and how often it was handed out: read from totals that triggers keep.

    totals     one row per part, space, audience, state, category and level: added up for what a caller may see
    activity   the same by the hour and by the day: when memories were created, handed out, consolidated

The schema (0002) says what a part is. Moments within an hour are settled by the memories' own rows.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import apsw

from scrubjay.memory import Audience, Category, State
from scrubjay.stores.base import Activity, Level, List, Of, Part, Totals, milliseconds, moment
from scrubjay.stores.sqlite_filters import Condition, View, joined, number_of, seen, space_by_space, views_of
from scrubjay.stores.sqlite_reads import SqliteReads
from scrubjay.stores.tally import HOUR

DAY = 24  # hours

K = TypeVar("K")


class SqliteStatistics(SqliteReads):
    def due_for_purge(self, now: datetime, limit: int) -> List[str]:
        with self._reading() as con:
            rows = con.execute(
                # memories_by_recovery
                """
                SELECT id
                FROM memories
                WHERE state = 3
                AND recoverable_until <= ?
                ORDER BY recoverable_until
                LIMIT ?
                """,
                (milliseconds(now), limit),
            )
            return [memory for (memory,) in rows]

    def totals(self, part: Part, audience: Audience, *, now: datetime) -> Totals:
        with self._reading() as con:
            among = _Seen(con, part, audience)
            if among.nothing:
                return Totals()
            where, values = among.rows("totals")
            groups = [
                *con.execute(
                    # the primary key; groups that have become empty keep their row
                    f"""
                    SELECT state, category, level, sum(memories), sum(text_bytes), sum(vector_bytes),
                        sum(reads), sum(squared_reads), sum(read_memories), sum(judged), sum(agreed), sum(repeats)
                    FROM totals
                    WHERE {where}
                    AND memories > 0
                    GROUP BY state, category, level
                    """,
                    values,
                )
            ]
            reads, squared_reads, read_memories, judged, agreed, repeats = (
                sum(row[n] for row in groups) for n in range(6, 12)
            )
            new_reads, new_squares, new_memories = self._uncounted(con, among)
            return Totals(
                states=_summed((State(row[0]), row[3]) for row in groups),
                categories=_summed((Category(row[1]), row[3]) for row in groups),
                levels=_summed((Level(row[2]), row[3]) for row in groups),
                text_bytes=_summed((State(row[0]), row[4]) for row in groups),
                vector_bytes=_summed((State(row[0]), row[5]) for row in groups),
                expired=_expired(con, among, now),
                reads=reads + new_reads,
                squared_reads=squared_reads + new_squares,
                read_memories=read_memories + new_memories,
                judged=judged,
                agreed=agreed,
                repeats=repeats,
                since=_since(con, among),
            )

    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> List[int]:
        with self._reading() as con:
            among = _Seen(con, part, audience)
            if among.nothing or not moments:
                return [0] * len(moments)
            times = [milliseconds(each) for each in moments]
            by_day = _Series(con, among, DAY, 0, max(times) // HOUR)
            by_hour = {
                day: _Series(con, among, 1, day, day + DAY)
                for day in {_day(time) for time in times if time % (DAY * HOUR)}
            }
            counts = []
            for time in times:
                count = by_day.before(_day(time))
                if time % (DAY * HOUR):
                    count += by_hour[_day(time)].before(time // HOUR)
                if time % HOUR:
                    count += _created_within(con, among, time // HOUR * HOUR, time)
                counts.append(count)
            return counts

    def activity(self, part: Part, audience: Audience, *, since: datetime, until: datetime) -> Activity:
        with self._reading() as con:
            among = _Seen(con, part, audience)
            if among.nothing:
                return Activity()
            where, values = among.rows("activity")
            first, last = milliseconds(since), milliseconds(until)
            rows = [
                *con.execute(
                    # the primary key
                    f"""
                    SELECT at, sum(reads), sum(consolidations), sum(consolidated)
                    FROM activity
                    WHERE {where}
                    AND hours = 1
                    AND at BETWEEN ? AND ?
                    AND (reads > 0 OR consolidations > 0)
                    GROUP BY at
                    """,
                    (*values, first // HOUR, last // HOUR),
                )
            ]
            new = self._uncounted_by_hour(con, among, first // HOUR, last // HOUR)
            return Activity(
                reads=_by_weekday_and_hour([*((at, reads) for at, reads, _, _ in rows if reads), *new]),
                deleted=_deleted(con, among, first, last),
                consolidations=sum(row[2] for row in rows),
                consolidated=sum(row[3] for row in rows),
            )

    def _uncounted(self, con: apsw.Connection, among: _Seen) -> tuple[int, int, int]:
        """What reads that are not written yet add to reads, their squares and memories read at least once."""
        if (waiting := self._tally.as_rows()) == "[]":
            return 0, 0, 0
        where, values = among.memories()
        [(reads, squares, memories)] = con.execute(
            # the unique index of ids
            f"""
            SELECT
                coalesce(sum(value ->> 1), 0),
                coalesce(sum((access_count + (value ->> 1)) * (access_count + (value ->> 1))
                    - access_count * access_count), 0),
                coalesce(sum(access_count = 0), 0)
            FROM json_each(?)
            CROSS JOIN memories ON memories.id = value ->> 0
            WHERE {where}
            """,
            (waiting, *values),
        )
        return int(reads), int(squares), int(memories)

    def _uncounted_by_hour(self, con: apsw.Connection, among: _Seen, first: int, last: int) -> List[tuple[int, int]]:
        if (waiting := self._tally.by_hours()) == "[]":
            return []
        where, values = among.memories()
        rows = con.execute(
            # the unique index of ids
            f"""
            SELECT value ->> 1 AS hour, sum(value ->> 2)
            FROM json_each(?)
            CROSS JOIN memories ON memories.id = value ->> 0
            WHERE hour BETWEEN ? AND ?
            AND {where}
            GROUP BY hour
            """,
            (waiting, first, last, *values),
        )
        return [*rows]


class _Seen:
    """A part, as far as an audience sees it, in this store's numbers."""

    def __init__(self, con: apsw.Connection, part: Part, audience: Audience) -> None:
        self.views = views_of(con, audience)
        self._column, self._value = _named(con, part)
        self.part = f"{part.of}:{self._value}" if self._column else ""
        self.nothing = not self.views or self._value is None

    def rows(self, table: str) -> Condition:
        """Of `totals` or `activity`."""
        return joined([(f"{table}.part = ?", [self.part]), seen(self.views, table)], "AND")

    def memories(self, view: View | None = None) -> Condition:
        """Of `memories`."""
        conditions = [seen(self.views) if view is None else view.condition()]
        if self._column and self._value is not None:
            conditions.append((f"memories.{self._column} = ?", [self._value]))
        return joined(conditions, "AND")


class _Series:
    """How many memories were created in each hour or day of a stretch."""

    def __init__(self, con: apsw.Connection, among: _Seen, hours: int, first: int, end: int) -> None:
        where, values = among.rows("activity")
        rows = con.execute(
            # the primary key
            f"""
            SELECT at, sum(created)
            FROM activity
            WHERE {where}
            AND hours = ?
            AND at >= ?
            AND at < ?
            GROUP BY at
            ORDER BY at
            """,
            (*values, hours, first, end),
        )
        self._starts: list[int] = []
        self._sums = [0]
        for at, created in rows:
            self._starts.append(at)
            self._sums.append(self._sums[-1] + created)

    def before(self, hour: int) -> int:
        return self._sums[bisect_left(self._starts, hour)]


def _named(con: apsw.Connection, part: Part) -> tuple[str, int | str | None]:
    """The column that tells the part, and its value; None if there is nothing of that name."""
    if part.of is Of.ALL:
        return "", ""
    return part.of, part.name if part.of is Of.CATEGORY else number_of(con, part.name)


def _expired(con: apsw.Connection, among: _Seen, now: datetime) -> int:
    expired = 0
    for view in space_by_space(con, among.views):
        where, values = among.memories(view)
        [(count,)] = con.execute(
            # memories_by_expiry, which holds all that is asked
            f"""
            SELECT count(*)
            FROM memories INDEXED BY memories_by_expiry
            WHERE {where}
            AND expires_at <= ?
            AND state IN (0, 1)
            """,
            (*values, milliseconds(now)),
        )
        expired += count
    return expired


def _deleted(con: apsw.Connection, among: _Seen, first: int, last: int) -> int:
    deleted = 0
    for view in space_by_space(con, among.views):
        where, values = among.memories(view)
        [(count,)] = con.execute(
            # memories_by_deletion, which holds all that is asked
            f"""
            SELECT count(*)
            FROM memories INDEXED BY memories_by_deletion
            WHERE {where}
            AND deleted_at BETWEEN ? AND ?
            AND state >= 3
            """,
            (*values, first, last),
        )
        deleted += count
    return deleted


def _created_within(con: apsw.Connection, among: _Seen, first: int, end: int) -> int:
    created = 0
    for view in space_by_space(con, among.views):
        where, values = among.memories(view)
        for state in State:
            [(count,)] = con.execute(
                # memories_by_created, which holds all that is asked
                f"""
                SELECT count(*)
                FROM memories INDEXED BY memories_by_created
                WHERE {where}
                AND state = ?
                AND created_at >= ?
                AND created_at < ?
                """,
                (*values, state, first, end),
            )
            created += count
    return created


def _since(con: apsw.Connection, among: _Seen) -> datetime | None:
    where, values = among.rows("activity")
    row = con.execute(
        # the primary key
        f"SELECT at FROM activity WHERE {where} AND hours = 1 AND created > 0 ORDER BY at LIMIT 1",
        values,
    ).fetchone()
    return None if row is None else moment(row[0] * HOUR)


def _summed(pairs: Iterable[tuple[K, int]]) -> Mapping[K, int]:
    sums: dict[K, int] = {}
    for key, number in pairs:
        sums[key] = sums.get(key, 0) + number
    return sums


def _by_weekday_and_hour(reads: Iterable[tuple[int, int]]) -> Mapping[tuple[int, int], int]:
    counts: Counter[tuple[int, int]] = Counter()
    for hour, count in reads:
        counts[(hour // DAY + 3) % 7, hour % DAY] += count  # 1970 began on a Thursday
    return counts


def _day(time: int) -> int:
    """The first hour of its day."""
    return time // (DAY * HOUR) * DAY
