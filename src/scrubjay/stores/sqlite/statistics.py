"""What there is, when it came and how often it was handed out: read from totals that triggers keep.

    totals     one row per part, space, audience, state, category and level: added up for what a caller may see
    activity   the same by the hour and by the day: when memories were created, handed out, consolidated

The schema (0002) says what a part is. Moments within an hour are settled by the memories' own rows.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial

import apsw

from scrubjay.stores.promises.statistics import Activity, Of, Part, SpaceCounts, Statistics, Totals
from scrubjay.stores.sqlite.filters import (
    Condition,
    View,
    joined,
    number_of,
    seen,
    space_by_space,
    superseded_for,
    views_of,
)
from scrubjay.stores.tables import sums
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, Tally, hourly
from scrubjay.values.memory import Audience, State
from scrubjay.values.times import milliseconds, moment


class SqliteStatistics(Statistics):
    def __init__(self, reading: Callable[[], AbstractContextManager[apsw.Connection]], tally: Tally) -> None:
        self._reading = reading
        self._tally = tally

    def space_counts(self, audience: Audience, *, now: datetime) -> dict[str, SpaceCounts]:
        with self._reading() as con:
            views = views_of(con, audience)
            (counted, some), (visible, values), at = seen(views, "totals"), seen(views), milliseconds(now)
            rows = con.execute(
                # the primary key of totals; memories_by_expiry
                f"""
                SELECT spaces.name, sum(memories) FILTER (WHERE state = 0), sum(memories) FILTER (WHERE state = 1)
                FROM (
                    SELECT space, state, memories
                    FROM totals
                    WHERE part = '' AND state IN (0, 1) AND {counted}
                    UNION ALL
                    SELECT space, state, -1
                    FROM memories
                    WHERE expires_at <= ? AND state IN (0, 1) AND {visible}
                    UNION ALL
                    SELECT space, moved.state, moved.by_one
                    FROM memories
                    CROSS JOIN (SELECT 0 AS state, -1 AS by_one UNION ALL SELECT 1, 1) AS moved
                    WHERE seq IN (SELECT value FROM json_each(?))
                    AND (expires_at IS NULL OR expires_at > ?)
                    AND {visible}
                ) AS counts
                JOIN spaces ON spaces.number = counts.space
                GROUP BY counts.space
                """,
                (*some, at, *values, json.dumps(superseded_for(con, audience)), at, *values),
            )
            return {
                name: SpaceCounts(active=active or 0, superseded=superseded or 0) for name, active, superseded in rows
            }

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
            return sums.totals_of(
                groups,
                uncounted=self._uncounted(con, among),
                expired=_expired(con, among, now),
                since=_since(con, among),
            )

    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> list[int]:
        with self._reading() as con:
            among = _Seen(con, part, audience)
            if among.nothing or not moments:
                return [0] * len(moments)
            times = [milliseconds(each) for each in moments]
            return sums.created_before(times, partial(_series, con, among), partial(_created_within, con, among))

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
                reads=sums.by_weekday_and_hour([*((at, reads) for at, reads, _, _ in rows if reads), *new]),
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

    def _uncounted_by_hour(self, con: apsw.Connection, among: _Seen, first: int, last: int) -> list[tuple[int, int]]:
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


def _series(con: apsw.Connection, among: _Seen, hours: int, first: int, end: int) -> sums.Series:
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
    return sums.Series(rows)


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


# Counted reads, written into the file.


def write_reads(con: apsw.Connection, batch: Batch) -> None:
    """Add a batch to the counters and the recall log; ids of no memory are passed over."""
    if batch.readings:
        con.execute(
            """
            INSERT INTO happened
            SELECT space, audience, user, conversation, category, counted.value ->> 1, 0, sum(counted.value ->> 2), 0, 0
            FROM json_each(?) AS counted
            CROSS JOIN memories ON memories.id = counted.value ->> 0
            GROUP BY space, audience, user, conversation, category, counted.value ->> 1
            """,
            (hourly(batch),),
        )
        con.executemany(
            """
            UPDATE memories
            SET access_count = access_count + ?2, accessed_at = max(accessed_at, ?3)
            WHERE id = ?1
            """,
            [(memory, reading.count, reading.at) for memory, reading in batch.readings.items()],
        )
    if not batch.recalls:
        return
    con.executemany(
        "INSERT INTO recalls (at, space, user, client, memories) VALUES (?, ?, ?, ?, ?)",
        [
            (milliseconds(recall.at), recall.space, recall.user, recall.client, as_json(recall.memories))
            for recall in batch.recalls
        ],
    )
    con.executemany(
        """
        INSERT INTO recall_counts (space, user, hour, recalls, memories)
        VALUES (?, ?, ?, 1, ?)
        ON CONFLICT (space, user, hour) DO UPDATE SET
            recalls = recalls + 1,
            memories = memories + excluded.memories
        """,
        [
            (recall.space, recall.user, milliseconds(recall.at) // HOUR, len(recall.memories))
            for recall in batch.recalls
        ],
    )
    con.execute("DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - ?", (KEPT_RECALLS,))
