"""What there is, when it came and how often it was handed out, in every backend: counted from the memories' rows for
every question. Only what no row knows is kept as it happens, in `activity`: how often memories were handed out and
consolidated in each hour, once for each part (see the schema) and audience.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any, TypeVar

from scrubjay.stores.promises.statistics import Activity, Group, Level, Of, Part, SpaceCounts, Totals
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.sql import SUPERSEDED, Row, Sql
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, Tally
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Category, State
from scrubjay.values.times import milliseconds, moment

DAY = 24  # hours

LEVEL = "CASE WHEN importance >= 0.7 THEN 'high' WHEN importance < 0.3 THEN 'low' ELSE 'medium' END"
TEXT_BYTES = """
    octet_length(content) + octet_length(metadata) + octet_length(detail) - 4 + coalesce(archives.bytes, 0)
"""  # empty JSON has two bytes and counts as none

# The part that a memory is in, for each of those below.
PART = """
    CASE facet
        WHEN 'user' THEN CAST('user:' AS TEXT) || user_id
        WHEN 'conversation' THEN CAST('conversation:' AS TEXT) || conversation_id
        WHEN 'category' THEN 'category:' || category
        ELSE ''
    END
"""
FACETS = "(SELECT 'all' AS facet UNION ALL SELECT 'user' UNION ALL SELECT 'conversation' UNION ALL SELECT 'category')"

# What lists of current and of superseded memories show, row by row, under a condition in place of each {seen}: those
# that something supersedes only for those who see `others` are taken from the current ones and added to the others.
AT_HAND = """
    SELECT space, state, category, importance, created_at, 1 AS number
    FROM memories
    WHERE state IN (0, 1) AND (expires_at IS NULL OR expires_at > :now) AND {seen}
    UNION ALL
    SELECT memories.space, moved.state, category, importance, created_at, moved.by_one
    FROM memories
    CROSS JOIN (SELECT 0 AS state, -1 AS by_one UNION ALL SELECT 1, 1) AS moved
    WHERE memories.state = 0 AND (expires_at IS NULL OR expires_at > :now) AND {seen}
    AND memories.id IN ({superseded})
"""

K = TypeVar("K")


class Statistics:
    def __init__(self, sql: Sql, tally: Tally) -> None:
        self._sql = sql
        self._tally = tally

    def totals(self, part: Part, audience: Audience, *, now: datetime) -> Totals:
        """What there is of a part, as far as the audience sees it; counted reads not yet written included."""
        those = Those(self._sql, part, audience)
        groups = those.rows(
            # memories_by_created holds all that is asked
            f"SELECT state, category, {LEVEL} AS level, count(*) FROM memories WHERE {{}} GROUP BY 1, 2, 3"
        )
        [(*sizes, reads, squared_reads, read_memories, judged, agreed, repeats, expired, first)] = those.rows(
            # Rows are read in their own order, and not grouped: SQLite would sort them with their texts.
            f"""
            SELECT
                {_sum_by_state(TEXT_BYTES)}, {_sum_by_state(self._sql.vector_bytes)},
                {_sum("access_count")}, {_sum("access_count * access_count")},
                count(*) FILTER (WHERE access_count > 0),
                count(category_agreed), {_sum("category_agreed")}, {_sum("repeat")},
                count(*) FILTER (WHERE expires_at <= :at AND state IN (0, 1)), min(created_at)
            FROM memories
            LEFT JOIN archives ON {self._sql.memory_key.joins("archives", "memories")}
            WHERE {{}}
            """,
            at=milliseconds(now),
        )
        states = _sum_up((State(row[0]), row[3]) for row in groups)
        waiting = self._tally.batch().readings
        for memory, before in those.reads_of(waiting).items():
            count = waiting[memory].count
            reads += count
            squared_reads += (before + count) ** 2 - before**2
            read_memories += before == 0
        return Totals(
            states=states,
            categories=_sum_up((Category(row[1]), row[3]) for row in groups),
            levels=_sum_up((Level(row[2]), row[3]) for row in groups),
            text_bytes={state: sizes[state] for state in states},
            vector_bytes={state: sizes[len(State) + state] for state in states},
            expired=expired,
            reads=reads,
            squared_reads=squared_reads,
            read_memories=read_memories,
            judged=judged,
            agreed=agreed,
            repeats=repeats,
            since=None if first is None else moment(first // HOUR * HOUR),
        )

    def at_hand(self, part: Part, audience: Audience, *, now: datetime) -> list[Group]:
        """What lists of current and of superseded memories show."""
        rows = self._rows_at_hand(
            f"SELECT state, category, {LEVEL} AS level, CAST(sum(number) AS BIGINT) FROM {{}} GROUP BY 1, 2, 3",
            Those(self._sql, part, audience),
            now,
        )
        return [Group(bool(state), Category(category), Level(level), count) for state, category, level, count in rows]

    def space_counts(self, audience: Audience, *, now: datetime) -> dict[str, SpaceCounts]:
        """What each space holds of what the audience sees; spaces without any may be left out."""
        rows = self._rows_at_hand(
            f"""
            SELECT
                {self._sql.space_name.format("counted.space")},
                CAST(coalesce(sum(number) FILTER (WHERE state = 0), 0) AS BIGINT),
                CAST(coalesce(sum(number) FILTER (WHERE state = 1), 0) AS BIGINT)
            FROM {{}}
            GROUP BY counted.space
            """,
            Those(self._sql, Part(), audience),
            now,
        )
        return {name: SpaceCounts(active=active, superseded=superseded) for name, active, superseded in rows}

    def count_of_user(self, user: str, audience: Audience) -> int:
        """How many memories of a user the audience sees that are not deleted."""
        where = f"user_id = {self._sql.name} AND state < 3"
        return self._sql.count(where, audience, index="memories_by_user", name=user)

    def created_before(
        self, part: Part, audience: Audience, moments: Sequence[datetime], *, at_hand: datetime | None = None
    ) -> list[int]:
        """For each moment how many memories, whatever became of them since, were created before it; or how many of
        those that a list of current ones shows `at_hand`."""
        those, times = Those(self._sql, part, audience), [milliseconds(each) for each in moments]
        # Counted by the hour; an hour that a moment divides is counted in two.
        divided = [f"created_at >= {time}" for time in times if time % HOUR]
        grouped = f"GROUP BY {', '.join([f'created_at / {HOUR}', *divided])} ORDER BY 1"
        if at_hand is None:
            # memories_by_created holds all that is asked
            rows = those.rows(f"SELECT min(created_at), count(*) FROM memories WHERE {{}} {grouped}")
        else:
            one = "SELECT min(created_at), CAST(sum(number) AS BIGINT)"
            rows = self._rows_at_hand(f"{one} FROM {{}} WHERE state = 0 {grouped}", those, at_hand)
        firsts, sums = [first for first, _ in rows], [*accumulate((count for _, count in rows), initial=0)]
        return [sums[bisect_left(firsts, time)] for time in times]

    def _rows_at_hand(self, statement: str, those: Those, now: datetime) -> list[Row]:
        """Rows made of `AT_HAND`; the statement leaves it out."""
        others, named = self._sql.visible(those.audience.reaching, "others")
        # memories_by_created holds all that is asked; then memories by their ids
        at_hand = f"({AT_HAND.format(seen='{}', superseded=SUPERSEDED.format(others))}) AS counted"
        return those.rows(statement.replace("{}", at_hand), now=milliseconds(now), **named)

    def activity(self, part: Part, audience: Audience, *, since: datetime, until: datetime) -> Activity:
        """What happened from one moment to another, both included.

        Reads and consolidations are counted by the hour, so for them the stretch is widened to whole hours. They
        belong to where the memory was then; a memory that is moved takes only its later ones along.
        """
        those, first, last = Those(self._sql, part, audience), milliseconds(since), milliseconds(until)
        hours = range(first // HOUR, last // HOUR + 1)
        visible, values = self._sql.visible(audience, "activity")
        rows = self._sql.all(
            # the primary key
            f"""
            SELECT
                at, CAST(sum(reads) AS BIGINT), CAST(sum(consolidations) AS BIGINT), CAST(sum(consolidated) AS BIGINT)
            FROM activity
            WHERE part = {those.part}
            AND {visible}
            AND at BETWEEN :first AND :last
            GROUP BY at
            """,
            name=part.name,
            first=first // HOUR,
            last=last // HOUR,
            **values,
        )
        waiting = self._tally.batch().readings
        new = (one for name in those.reads_of(waiting) for one in waiting[name].hours.items() if one[0] in hours)
        deleted = "deleted_at BETWEEN :first AND :last AND state >= 3"
        return Activity(
            reads=by_weekday_and_hour([*((at, reads) for at, reads, _, _ in rows if reads), *new]),
            deleted=self._sql.count(
                f"{those.where} AND {deleted}",
                audience,
                index="memories_by_deletion",
                name=part.name,
                first=first,
                last=last,
            ),
            consolidations=sum(row[2] for row in rows),
            consolidated=sum(row[3] for row in rows),
        )

    def tags(self, audience: Audience, *, now: datetime, found: bool, limit: int) -> list[tuple[str, int]]:
        """The tags of active memories with how many have each, the most frequent first: those that were given or, with
        `found`, those that were found in texts as well."""
        visible, values = self._sql.visible(audience)
        others, named = self._sql.visible(audience.reaching, "others")
        rows = self._sql.all(
            f"""
            SELECT tags, auto_tags
            FROM memories
            WHERE state = 0
            AND (expires_at IS NULL OR expires_at > :at)
            AND {visible}
            AND memories.id NOT IN ({SUPERSEDED.format(others)})
            """,
            at=milliseconds(now),
            **values,
            **named,
        )
        counts = Counter(
            tag for given, others in rows for tag in {*json.loads(given), *(json.loads(others) if found else ())}
        )
        return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:limit]


class StatisticsChanges(Statistics):
    """What a transaction keeps of what happens, under what the memory's row says at that moment."""

    def count_consolidation(self, id: str, *, sources: int, at: datetime) -> None:
        """Count that a memory was made of several others; unknown ids are passed over."""
        self._note([{"memory": id, "at": milliseconds(at) // HOUR, "reads": 0, "consolidations": 1, "of": sources}])

    def write_reads(self, batch: Batch) -> None:
        """Add a batch to the counters and the recall log; ids of no memory are passed over."""
        self._note(
            {"memory": memory, "at": hour, "reads": count, "consolidations": 0, "of": 0}
            for memory, one in batch.readings.items()
            for hour, count in one.hours.items()
        )
        self._sql.run_many(
            # memories by their ids
            f"""
            UPDATE memories
            SET access_count = access_count + :count, accessed_at = {self._sql.greatest}(accessed_at, :at)
            WHERE id = :memory
            """,
            [{"memory": memory, "count": one.count, "at": one.at} for memory, one in batch.readings.items()],
        )
        if not batch.recalls:
            return
        recalls = [
            {
                "at": milliseconds(one.at),
                "hour": milliseconds(one.at) // HOUR,
                "space": one.space,
                "user": one.user,
                "client": one.client,
                "memories": as_json(one.memories),
                "number": len(one.memories),
            }
            for one in batch.recalls
        ]
        self._sql.run_many(
            """
            INSERT INTO recalls (at, space, user_id, client, memories)
            VALUES (:at, :space, :user, :client, :memories)
            """,
            recalls,
        )
        self._sql.run_many(
            """
            INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
            VALUES (:space, :user, :hour, 1, :number)
            ON CONFLICT (space, user_id, hour) DO UPDATE SET
                recalls = recall_counts.recalls + 1,
                memories = recall_counts.memories + excluded.memories
            """,
            recalls,
        )
        self._sql.run(
            "DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - :kept", kept=KEPT_RECALLS
        )

    def _note(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._sql.run_many(
            # memories by their ids, the primary key of activity
            f"""
            INSERT INTO activity (part, at, space, audience, reads, consolidations, consolidated)
            SELECT {PART}, :at, space, audience, :reads, :consolidations, :of
            FROM memories
            CROSS JOIN {FACETS} AS facets
            WHERE memories.id = :memory
            AND (facet <> 'conversation' OR conversation_id IS NOT NULL)
            ON CONFLICT (part, at, space, audience) DO UPDATE SET
                reads = activity.reads + excluded.reads,
                consolidations = activity.consolidations + excluded.consolidations,
                consolidated = activity.consolidated + excluded.consolidated
            """,
            rows,
        )


class Those:
    """The memories of a part, as far as an audience sees them."""

    def __init__(self, sql: Sql, part: Part, audience: Audience) -> None:
        self._sql = sql
        self.audience = audience
        self._values: dict[str, Any] = {"name": part.name}
        # The part as rows of `activity` name it, and a condition on memories.
        self.part, self.where = "''", "TRUE"
        if part.of is not Of.ALL:
            column, value = ("category", ":name") if part.of is Of.CATEGORY else (f"{part.of}_id", sql.name)
            self.part = f"CAST('{part.of}:' AS TEXT) || {value}"
            self.where = f"memories.{column} = {value}"

    def rows(self, statement: str, **values: object) -> list[Row]:
        """Rows made of the memories themselves; the statement leaves out which."""
        visible, given = self._sql.visible(self.audience)
        which = f"{self.where} AND {visible}"
        return self._sql.all(statement.replace("{}", which), **self._values, **given, **values)

    def reads_of(self, waiting: Mapping[str, object]) -> dict[str, int]:
        """How often each of these was handed out."""
        if not waiting:
            return {}
        among = self._sql.among("memories.id", "ids")  # memories by their ids
        return dict(self.rows(f"SELECT id, access_count FROM memories WHERE {{}} AND {among}", ids=list(waiting)))


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


def _sum(expression: str, where: str = "TRUE") -> str:
    return f"CAST(coalesce(sum({expression}) FILTER (WHERE {where}), 0) AS BIGINT)"


def _sum_by_state(expression: str) -> str:
    return ", ".join(_sum(expression, f"state = {int(state)}") for state in State)
