"""What there is, when it came and how often it was handed out: read from totals that every transaction keeps.

    totals     one row per space, part, audience, state, category and level: added up for what a caller may see
    activity   the same by the hour and by the day: when memories were created, handed out, consolidated

The schema (0002) says what a part is. Moments within an hour are settled by the memories' own rows.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Condition, joined, seen, superseded_for, views_of
from scrubjay.stores.postgres.sql import COUNTED
from scrubjay.stores.promises.statistics import Activity, Of, Part, SpaceCounts, Statistics, Totals
from scrubjay.stores.tables import sums
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.sums import DAY
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, Reading, Tally
from scrubjay.values.memory import Audience
from scrubjay.values.times import milliseconds, moment

TOTALS = (
    "memories", "text_bytes", "vector_bytes", "reads", "squared_reads", "read_memories", "judged", "agreed", "repeats",
)  # fmt: skip
_COLUMNS = {Of.USER: "user_id", Of.CONVERSATION: "conversation_id", Of.CATEGORY: "category"}
_SUMS = ", ".join(f"sum({name})::BIGINT" for name in TOTALS)


class PostgresStatistics(Statistics):
    def __init__(self, reading: Callable[[], AbstractContextManager[Connection]], tally: Tally) -> None:
        self._reading = reading
        self._tally = tally

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

    def created_before(self, part: Part, audience: Audience, moments: Sequence[datetime]) -> list[int]:
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

    def _uncounted_by_hour(self, con: Connection, among: _Seen, first: int, last: int) -> list[tuple[int, int]]:
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


# What a transaction adds to totals, activity and vocabulary: added up in the process, written once at its end.
#
# A hundred memories stored together would otherwise change the same hundred rows a hundred times. Negative numbers take
# away.


class Counted(NamedTuple):
    """What statistics see of a memory's row; `postgres_rows.COUNTED` reads it."""

    space: str
    audience: str
    user_id: str
    conversation_id: str | None
    category: str
    state: int
    importance: float
    text_bytes: int
    vector_bytes: int
    reads: int
    agreed: int | None
    repeat: int
    created_at: int

    @property
    def level(self) -> str:
        return "high" if self.importance >= 0.7 else "low" if self.importance < 0.3 else "medium"

    def parts(self) -> Iterator[str]:
        yield ""
        yield f"user:{self.user_id}"
        yield f"category:{self.category}"
        if self.conversation_id is not None:
            yield f"conversation:{self.conversation_id}"

    def numbers(self) -> tuple[int, ...]:
        """The columns of `totals` behind its key."""
        judged, agreed = int(self.agreed is not None), self.agreed or 0
        reads = self.reads
        return 1, self.text_bytes, self.vector_bytes, reads, reads * reads, int(reads > 0), judged, agreed, self.repeat


ACTIVITY = ("created", "reads", "consolidations", "consolidated")


class Counts:
    """Changes that are not written yet."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], list[int]] = {}
        self._activity: dict[tuple[Any, ...], list[int]] = {}
        self._vocabulary: dict[str, Counter[str]] = {}  # by space
        self._passages: dict[str, list[int]] = {}

    def arrived(self, row: Counted) -> None:
        self._total(row, 1)
        self.happened(row, row.created_at // HOUR, created=1)

    def replaced(self, old: Counted, new: Counted) -> None:
        self._total(old, -1)
        self._total(new, 1)
        if old[:5] != new[:5] or old.created_at != new.created_at:
            self.happened(old, old.created_at // HOUR, created=-1)
            self.happened(new, new.created_at // HOUR, created=1)

    def happened(
        self,
        row: Counted,
        hour: int,
        *,
        created: int = 0,
        reads: int = 0,
        consolidations: int = 0,
        consolidated: int = 0,
    ) -> None:
        hour = max(hour, 0)
        for part in row.parts():
            for hours in (1, DAY):
                key = (row.space, part, hours, hour // hours * hours, row.audience)
                _add(self._activity, key, (created, reads, consolidations, consolidated))

    def words(self, space: str, terms: Iterable[str], length: int, sign: int = 1) -> None:
        """A passage that came, or with a negative sign went."""
        known = self._vocabulary.setdefault(space, Counter())
        for term in terms:
            known[term] += sign
        _add(self._passages, space, (sign, sign * length))

    def write(self, con: Connection) -> None:
        """Write what gathered, and start over."""
        totals, activity = _changes(self._totals), _changes(self._activity)
        vocabulary, passages = self._vocabulary, _changes(self._passages)
        self.__init__()  # type: ignore[misc]
        if totals or activity:
            con.execute(_ADD_UP, [*_columns(totals, 15), *_columns(activity, 9)])
        for space, terms in vocabulary.items():
            changed = {term: number for term, number in terms.items() if number}
            if changed or space in passages:
                _write_vocabulary(con, space, changed, passages.get(space, [0, 0]))

    def _total(self, row: Counted, sign: int) -> None:
        numbers = [sign * number for number in row.numbers()]
        for part in row.parts():
            _add(self._totals, (row.space, part, row.audience, row.state, row.category, row.level), numbers)


def _adding(table: str, key: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    types = [_TYPES.get(name, "TEXT") for name in key] + ["BIGINT"] * len(numbers)
    return f"""
        INSERT INTO {table} ({", ".join((*key, *numbers))})
        SELECT * FROM unnest({", ".join(f"%s::{name}[]" for name in types)})
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET
            {", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in numbers)}
        """


_TYPES = {"state": "SMALLINT", "hours": "SMALLINT", "at": "BIGINT"}
_TOTALS_KEY = ("space", "part", "audience", "state", "category", "level")
_ACTIVITY_KEY = ("space", "part", "hours", "at", "audience")
_ADD_UP = f"""
    WITH added AS ({_adding("totals", _TOTALS_KEY, TOTALS)})
    {_adding("activity", _ACTIVITY_KEY, ACTIVITY)}
    """


def count_from_memories(con: Connection) -> None:
    """Totals, and what was created when, from all memories. When they were handed out is known nowhere else and stays.

    This is `Counted` in the server's words: reading a hundred thousand rows takes longer than counting them there.
    """
    con.execute("DELETE FROM totals")
    con.execute(
        f"""
        INSERT INTO totals ({", ".join((*_TOTALS_KEY, *TOTALS))})
        SELECT
            space, part, audience, state, category,
            CASE WHEN importance >= 0.7 THEN 'high' WHEN importance < 0.3 THEN 'low' ELSE 'medium' END AS level,
            count(*), sum(text_bytes), sum(vector_bytes), sum(reads), sum(reads * reads),
            count(*) FILTER (WHERE reads > 0), count(agreed), coalesce(sum(agreed), 0), sum(repeat)
        FROM {_COUNTED_IN_PARTS}
        GROUP BY {", ".join(_TOTALS_KEY)}
        """
    )
    con.execute("UPDATE activity SET created = 0 WHERE created <> 0")
    con.execute(
        f"""
        INSERT INTO activity ({", ".join((*_ACTIVITY_KEY, *ACTIVITY))})
        SELECT space, part, hours, greatest(created_at / {HOUR}, 0) / hours * hours AS at, audience, count(*), 0, 0, 0
        FROM {_COUNTED_IN_PARTS}
        CROSS JOIN (VALUES (1), ({DAY})) AS lengths (hours)
        GROUP BY {", ".join(_ACTIVITY_KEY)}
        ON CONFLICT ({", ".join(_ACTIVITY_KEY)}) DO UPDATE SET created = excluded.created
        """
    )


_COUNTED_IN_PARTS = f"""
    (SELECT {COUNTED} FROM memories) AS counted ({", ".join(Counted._fields)})
    CROSS JOIN LATERAL (
        SELECT part
        FROM (
            VALUES (''), ('user:' || user_id), ('category:' || category), ('conversation:' || conversation_id)
        ) AS all_parts (part)
        WHERE part IS NOT NULL
    ) AS parts
    """


def _columns(changes: Mapping[Any, list[int]], width: int) -> list[list[Any]]:
    rows = sorted((*where, *added) for where, added in changes.items())
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _write_vocabulary(con: Connection, space: str, changed: Mapping[str, int], passages: list[int]) -> None:
    con.execute(
        # Stems hold no white space, and one text is read faster than an array of many.
        """
        WITH added AS (
            INSERT INTO vocabulary (space, term, passages)
            SELECT %s, *
            FROM unnest(string_to_array(%s, ' '), string_to_array(%s, ' ')::BIGINT[])
            ON CONFLICT (space, term) DO UPDATE SET passages = vocabulary.passages + excluded.passages
        )
        UPDATE spaces SET passages = passages + %s, passage_words = passage_words + %s WHERE name = %s
        """,
        (space, " ".join(changed), " ".join(map(str, changed.values())), *passages, space),
    )
    gone = [term for term, number in changed.items() if number < 0]
    if gone:  # a word that stands nowhere any more may be what was to be erased
        con.execute("DELETE FROM vocabulary WHERE space = %s AND term = ANY(%s) AND passages <= 0", (space, gone))


def _add(sums: dict[Any, list[int]], key: Any, numbers: Iterable[int]) -> None:
    known = sums.get(key)
    sums[key] = list(numbers) if known is None else [one + more for one, more in zip(known, numbers, strict=True)]


def _changes(sums: Mapping[Any, list[int]]) -> dict[Any, list[int]]:
    return {key: numbers for key, numbers in sums.items() if any(numbers)}


def count_reads(con: Connection, counts: Counts, batch: Batch) -> None:
    readings = batch.readings
    rows = con.execute(
        # memories_by_id
        f"""
        UPDATE memories
        SET access_count = access_count + counted.count, accessed_at = greatest(accessed_at, counted.at)
        FROM unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS counted (id, count, at)
        WHERE memories.id = counted.id
        RETURNING memories.id, {COUNTED}
        """,
        ([*readings], [one.count for one in readings.values()], [one.at for one in readings.values()]),
    )
    for memory, *row in rows:
        now = Counted(*row)
        counts.replaced(now._replace(reads=now.reads - readings[memory].count), now)
        for hour, count in readings[memory].hours.items():
            counts.happened(now, hour, reads=count)


def log_recalls(con: Connection, batch: Batch) -> None:
    cursor = con.cursor()
    cursor.executemany(
        "INSERT INTO recalls (at, space, user_id, client, memories) VALUES (%s, %s, %s, %s, %s)",
        [
            (milliseconds(recall.at), recall.space, recall.user, recall.client, as_json(recall.memories))
            for recall in batch.recalls
        ],
    )
    cursor.executemany(
        """
        INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
        VALUES (%s, %s, %s, 1, %s)
        ON CONFLICT (space, user_id, hour) DO UPDATE SET
            recalls = recall_counts.recalls + 1,
            memories = recall_counts.memories + excluded.memories
        """,
        [
            (recall.space, recall.user, milliseconds(recall.at) // HOUR, len(recall.memories))
            for recall in batch.recalls
        ],
    )
    con.execute(
        # recalls_by_number
        "DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - %s",
        (KEPT_RECALLS,),
    )
