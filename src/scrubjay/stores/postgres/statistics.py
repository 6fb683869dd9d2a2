"""What there is, when it came and how often it was handed out: read from totals that every transaction keeps.

    totals     one row per space, part, audience, state, category and level: added up for what a caller may see
    activity   the same by the hour and by the day: when memories were created, handed out, consolidated

The schema (0002) says what a part is. Moments within an hour are settled by the memories' own rows.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.counts import TOTALS
from scrubjay.stores.postgres.filters import Condition, joined, seen, superseded_for, views_of
from scrubjay.stores.postgres.reads import PostgresReads
from scrubjay.stores.promises.memories import List, SpaceCounts, milliseconds, moment
from scrubjay.stores.promises.statistics import Activity, Of, Part, Totals
from scrubjay.stores.tables import sums
from scrubjay.stores.tables.tally import HOUR, Reading
from scrubjay.values.memory import Audience

_COLUMNS = {Of.USER: "user_id", Of.CONVERSATION: "conversation_id", Of.CATEGORY: "category"}
_SUMS = ", ".join(f"sum({name})::BIGINT" for name in TOTALS)


class PostgresStatistics(PostgresReads):
    def space_counts(self, audience: Audience, *, now: datetime) -> dict[str, SpaceCounts]:
        views = views_of(audience)
        (counted, some), (visible, values), at = seen(views, "totals"), seen(views), milliseconds(now)
        outdated, named = superseded_for(audience)  # for this audience, though not for everyone
        with self._reading() as con:
            rows = con.execute(
                # the primary key of totals; memories_by_expiry
                f"""
                SELECT
                    space,
                    coalesce(sum(memories) FILTER (WHERE state = 0), 0)::BIGINT,
                    coalesce(sum(memories) FILTER (WHERE state = 1), 0)::BIGINT
                FROM (
                    SELECT space, state, memories
                    FROM totals
                    WHERE part = '' AND state IN (0, 1) AND {counted}
                    UNION ALL
                    SELECT space, state, -1
                    FROM memories
                    WHERE expires_at <= %s AND state IN (0, 1) AND {visible}
                    UNION ALL
                    SELECT space, moved.state, moved.by_one
                    FROM memories
                    CROSS JOIN (VALUES (0, -1), (1, 1)) AS moved (state, by_one)
                    WHERE memories.id = ANY({outdated})
                    AND memories.state = 0
                    AND (expires_at IS NULL OR expires_at > %s)
                    AND {visible}
                ) AS counts
                GROUP BY space
                """,
                (*some, at, *values, *named, at, *values),
            )
            return {name: SpaceCounts(active=active, superseded=superseded) for name, active, superseded in rows}

    def totals(self, part: Part, audience: Audience, *, now: datetime) -> Totals:
        among = _Seen(part, audience)
        if among.nothing:
            return Totals()
        where, values = among.rows("totals")
        with self._reading() as con:
            groups = con.execute(
                # the primary key; groups that have become empty keep their row
                f"""
                SELECT state, category, level, {_SUMS}
                FROM totals
                WHERE {where}
                AND memories > 0
                GROUP BY state, category, level
                """,
                values,
            ).fetchall()
            return sums.totals_of(
                groups,
                uncounted=self._uncounted(con, among),
                expired=_expired(con, among, now),
                since=_since(con, among),
            )

    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> List[int]:
        among = _Seen(part, audience)
        if among.nothing or not moments:
            return [0] * len(moments)
        times = [milliseconds(each) for each in moments]
        with self._reading() as con:
            return sums.created_before(times, partial(_series, con, among), partial(_created_within, con, among))

    def activity(self, part: Part, audience: Audience, *, since: datetime, until: datetime) -> Activity:
        among = _Seen(part, audience)
        if among.nothing:
            return Activity()
        where, values = among.rows("activity")
        first, last = milliseconds(since), milliseconds(until)
        with self._reading() as con:
            rows = con.execute(
                # the primary key
                f"""
                SELECT at, sum(reads)::BIGINT, sum(consolidations)::BIGINT, sum(consolidated)::BIGINT
                FROM activity
                WHERE {where}
                AND hours = 1
                AND at BETWEEN %s AND %s
                AND (reads > 0 OR consolidations > 0)
                GROUP BY at
                """,
                (*values, first // HOUR, last // HOUR),
            ).fetchall()
            new = self._uncounted_by_hour(con, among, first // HOUR, last // HOUR)
            deleted = "deleted_at BETWEEN %s AND %s AND state >= 3"  # memories_by_deletion
            return Activity(
                reads=sums.by_weekday_and_hour([*((at, reads) for at, reads, _, _ in rows if reads), *new]),
                deleted=_count(con, among, deleted, [first, last]),
                consolidations=sum(row[2] for row in rows),
                consolidated=sum(row[3] for row in rows),
            )

    def _uncounted(self, con: Connection, among: _Seen) -> tuple[int, int, int]:
        """What reads that are not written yet add to reads, their squares and memories read at least once."""
        waiting = self._tally.batch().readings
        counts = _access_counts(con, among, waiting) if waiting else {}
        added = [(before, waiting[memory].count) for memory, before in counts.items()]
        return (
            sum(count for _, count in added),
            sum((before + count) ** 2 - before**2 for before, count in added),
            sum(before == 0 for before, _ in added),
        )

    def _uncounted_by_hour(self, con: Connection, among: _Seen, first: int, last: int) -> List[tuple[int, int]]:
        waiting = self._tally.batch().readings
        known = _access_counts(con, among, waiting) if waiting else {}
        return [
            (hour, count) for memory in known for hour, count in waiting[memory].hours.items() if first <= hour <= last
        ]


class _Seen:
    """A part, as far as an audience sees it."""

    def __init__(self, part: Part, audience: Audience) -> None:
        self.views = views_of(audience)
        self.nothing = not self.views
        self._part = "" if part.of is Of.ALL else f"{part.of}:{part.name}"
        self._named: list[Condition] = (
            [] if part.of is Of.ALL else [(f"memories.{_COLUMNS[part.of]} = %s", [part.name])]
        )

    def rows(self, table: str) -> Condition:
        """Of `totals` or `activity`."""
        return joined([(f"{table}.part = %s", [self._part]), seen(self.views, table)], "AND")

    def memories(self) -> Condition:
        """Of `memories`."""
        return joined([seen(self.views), *self._named], "AND")


def _series(con: Connection, among: _Seen, hours: int, first: int, end: int) -> sums.Series:
    where, values = among.rows("activity")
    rows = con.execute(
        # the primary key
        f"""
        SELECT at, sum(created)::BIGINT
        FROM activity
        WHERE {where}
        AND hours = %s
        AND at >= %s
        AND at < %s
        GROUP BY at
        ORDER BY at
        """,
        (*values, hours, first, end),
    )
    return sums.Series(rows)


def _created_within(con: Connection, among: _Seen, first: int, end: int) -> int:
    return _count(con, among, "created_at >= %s AND created_at < %s", [first, end])  # memories_by_created


def _access_counts(con: Connection, among: _Seen, waiting: Mapping[str, Reading]) -> dict[str, int]:
    where, values = among.memories()
    rows = con.execute(
        # memories_by_id
        f"SELECT memories.id, memories.access_count FROM memories WHERE memories.id = ANY(%s) AND {where}",
        ([*waiting], *values),
    )
    return dict(rows)


def _count(con: Connection, among: _Seen, condition: str, given: Sequence[Any]) -> int:
    where, values = among.memories()
    [(count,)] = con.execute(f"SELECT count(*) FROM memories WHERE {where} AND {condition}", (*values, *given))
    return int(count)


def _expired(con: Connection, among: _Seen, now: datetime) -> int:
    return _count(con, among, "expires_at <= %s AND state IN (0, 1)", [milliseconds(now)])  # memories_by_expiry


def _since(con: Connection, among: _Seen) -> datetime | None:
    where, values = among.rows("activity")
    [(at,)] = con.execute(
        # the primary key
        f"SELECT min(at) FROM activity WHERE {where} AND hours = 1 AND created > 0",
        values,
    )
    return None if at is None else moment(at * HOUR)
