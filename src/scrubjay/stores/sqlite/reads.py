"""Finding memories, on whatever connection: a reader's, or a transaction's own."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from scrubjay.stores.promises.memories import OPENING, List, Position, Reads
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.filters import (
    Found,
    Members,
    Restriction,
    among,
    ids_by_number,
    restrict,
    views_of,
    visible_rows,
)
from scrubjay.stores.sqlite.sql import OWN, TABLES, columns_for, snapshot
from scrubjay.stores.tables.rows import SKETCHED, sketch_of
from scrubjay.stores.tables.sql import Condition, conditions_after, join_conditions
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, Kind, Memory, Sketch, State
from scrubjay.values.search import Filter, Glimpses, Match, Order
from scrubjay.values.store import Topic
from scrubjay.values.times import moment

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
from collections.abc import Mapping

from scrubjay.stores.sqlite.filters import Value, look_up, space_by_space
from scrubjay.stores.tables.sql import View

BY_IDS = f"json_each(?) AS wanted CROSS JOIN {TABLES} WHERE memories.id = wanted.value"  # the unique index of ids
SKETCH = {name: OWN[name] for name in SKETCHED}
DECISIONS = Filter(kinds=frozenset({Kind.DECISION}), states=AT_HAND)


class SqliteReads(Reads):
    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @abstractmethod
    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        """A connection for one call."""

    @abstractmethod
    def _nearest(self, members: Members, vector: Vector, limit: int, model: str | None) -> List[Found]:
        """Search by meaning on this connection."""

    @abstractmethod
    def _cosines(
        self, con: apsw.Connection, vector: Vector, memories: Sequence[int], model: str | None
    ) -> dict[int, float]:
        """Of these memories that have vectors the highest cosine."""

    def get(self, ids: Sequence[str], audience: Audience) -> List[Memory]:
        with self._reading() as con:
            visible = join_conditions(
                [visible_rows(views_of(con, audience)), ("memories.state <> ?", [State.PURGED])], "AND"
            )
            columns = columns_for(con, audience)
            found = {memory.id: memory for memory in self._by_ids(con, ids, columns, visible)}
            # A name with a slash is a checkpoint's before it is the id of a memory that was imported with it.
            aliases = _resolve_aliases(con, [name for name in ids if name not in found or "/" in name])
            if aliases:
                found |= {memory.id: memory for memory in self._by_ids(con, [*aliases.values()], columns, visible)}
        named = dict.fromkeys(meant if (meant := aliases.get(name)) in found else name for name in ids)
        return [found[name] for name in named if name in found]

    def list(
        self,
        filter: Filter,
        audience: Audience,
        *,
        now: datetime,
        order: Order = Order.CREATED,
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
        after: Position | None = None,
    ) -> List[Memory]:
        with self._reading() as con:
            restriction = restrict(con, filter, audience, now=now)
            if restriction is None:
                return []
            direction = "DESC" if descending else "ASC"
            rows_of, values = arms(con, restriction, order, after=after, descending=descending, tally=self.tally)
            columns, column_values = columns_for(con, audience)
            rows = con.execute(
                # The page is chosen first, so that no text is sorted.
                f"""
                WITH page (seq, value) AS MATERIALIZED (
                    {rows_of}
                    ORDER BY 2 {direction}, 1 {direction}
                    LIMIT ? OFFSET ?
                )
                SELECT {columns}
                FROM page
                CROSS JOIN {TABLES}
                WHERE memories.seq = page.seq
                ORDER BY page.value {direction}, page.seq {direction}
                """,
                (*values, limit, offset, *column_values),
            )
            return self._memories(rows)

    def count(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        with self._reading() as con:
            restriction = restrict(con, filter, audience, now=now, purged=True)
            if restriction is None:
                return 0
            return count_rows(con, restriction)

    def count_waiting(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        with self._reading() as con:
            restriction = restrict(con, filter, audience, now=now, purged=True)
            if restriction is None:
                return 0
            where, values = restriction.condition()
            [(rows,)] = con.execute(
                # the whole of pending, then the key of memories
                f"""
                SELECT count(*)
                FROM pending
                CROSS JOIN memories ON memories.seq = pending.memory
                WHERE pending.next_part = 0
                AND {where}
                """,
                values,
            )
            return int(rows)

    def topics(self, audience: Audience, *, now: datetime, limit: int) -> List[Topic]:
        with self._reading() as con:
            restriction = restrict(con, DECISIONS, audience, now=now)
            if restriction is None:
                return []
            where, values = restriction.condition()
            rows = con.execute(
                # memories_by_topic; with max() the other columns are those of the newest decision
                f"""
                SELECT memories.topic, count(*), max(memories.created_at)
                FROM memories
                WHERE memories.topic_key IS NOT NULL
                AND {where}
                GROUP BY memories.topic_key
                ORDER BY 3 DESC, memories.topic_key
                LIMIT ?
                """,
                (*values, limit),
            )
            return [Topic(name=name, decisions=count, latest_at=moment(at)) for name, count, at in rows]

    def match(self, text: str, filter: Filter, audience: Audience, *, now: datetime, limit: int) -> List[Match]:
        with self._reading() as con, snapshot(con):
            restriction = restrict(con, filter, audience, now=now)
            found = [] if restriction is None else sqlite_words.match(Members(con, restriction), text, limit)
        return [Match(memory, min(score, 1.0)) for score, _, _, memory in found]

    def matched_words(self, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._reading() as con:
            return sqlite_words.words_held(con, text, ids_by_number(con, ids))

    def rarity(self, words: Sequence[str], audience: Audience) -> dict[str, float]:
        with self._reading() as con, snapshot(con):
            return sqlite_words.rarities(con, words, views_of(con, audience), sees_all=audience.sees_all)

    def nearest(
        self,
        vector: Vector,
        filter: Filter,
        audience: Audience,
        *,
        now: datetime,
        limit: int,
        model: str | None = None,
    ) -> List[Match]:
        with self._reading() as con:
            restriction = restrict(con, filter, audience, now=now)
            found = [] if restriction is None else self._nearest(Members(con, restriction), vector, limit, model)
        return [Match(memory, score) for score, _, _, memory in found]

    def cosines(self, vector: Vector, ids: Sequence[str], *, model: str | None = None) -> dict[str, float]:
        with self._reading() as con:
            known = ids_by_number(con, ids)
            return {known[seq]: cosine for seq, cosine in self._cosines(con, vector, [*known], model).items()}

    def glimpses(self, ids: Sequence[str]) -> Glimpses:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT
                    memories.id, created_at, valid_from, valid_until, conversation_id, content_length,
                    substr(content, 1, ?), also
                FROM json_each(?) AS wanted
                CROSS JOIN memories ON memories.id = wanted.value
                """,
                (OPENING, json.dumps(list(ids))),
            )
            return Glimpses.of_rows(rows)

    def in_space(self, ids: Sequence[str], space: str) -> set[str]:
        with self._reading() as con:
            names = "SELECT group_concat(name, '/') FROM spaces"  # no name has a slash
            if look_up(con, names, lambda: con.execute(names).get) == space:  # as in most stores
                return {*ids}
            rows = con.execute(
                # the unique index of ids
                """
                SELECT memories.id
                FROM json_each(?) AS wanted
                CROSS JOIN memories ON memories.id = wanted.value
                WHERE space = (SELECT number FROM spaces WHERE name = ?)
                AND state < 4
                """,
                (json.dumps(list(ids)), space),
            )
            return {memory for (memory,) in rows}

    def sketches(self, ids: Sequence[str], audience: Audience) -> List[Sketch]:
        with self._reading() as con:
            columns, column_values = columns_for(con, audience, SKETCH)
            where, values = visible_rows(views_of(con, audience))
            rows = con.execute(
                f"""
                SELECT {columns}
                FROM json_each(?) AS wanted
                CROSS JOIN memories ON memories.id = wanted.value
                WHERE memories.state < {int(State.PURGED)}
                AND {where}
                """,
                (*column_values, json.dumps(list(dict.fromkeys(ids))), *values),
            )
            return [*map(sketch_of, rows)]

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        from scrubjay.stores.sqlite.vectors import by_name

        with self._reading() as con:
            rows: list[Any] = con.execute(
                """
                SELECT memories.id, vectors.vector
                FROM json_each(?) AS wanted
                CROSS JOIN memories ON memories.id = wanted.value
                CROSS JOIN vectors ON vectors.memory = memories.seq AND vectors.model = '' AND vectors.part = 0
                """,
                (json.dumps(list(ids)),),
            ).fetchall()
        return by_name(rows)

    def _memories(self, rows: apsw.Cursor) -> List[Memory]:
        return [self.tally.memory_of(row) for row in rows]

    def _by_ids(self, con: apsw.Connection, ids: Sequence[str], columns: Condition, visible: Condition) -> List[Memory]:
        (selected, column_values), (where, values) = columns, visible
        rows = con.execute(
            # CROSS JOIN keeps the order: each memory by itself, never a scan of the space.
            f"""
            SELECT {selected}
            FROM {BY_IDS}
            AND {where}
            """,
            (*column_values, json.dumps(list(ids)), *values),
        )
        return self._memories(rows) if ids else []


def _resolve_aliases(con: apsw.Connection, aliases: Sequence[str]) -> dict[str, str]:
    """The ids that these aliases stand for."""
    if not aliases:
        return {}
    which, values = among("aliases.alias", aliases)
    rows = con.execute(
        f"""
        SELECT aliases.alias, memories.id
        FROM aliases
        JOIN memories ON memories.seq = aliases.memory
        WHERE {which}
        """,
        values,
    )
    return dict(rows)


# Pages of a list, and how long the list is: read from an index in the order asked, never sorted as a whole.
#
# An index gives an order within one space and one state, so a list over several is made of arms, one for each, which
# SQLite merges as it goes along. Filters are tested on the index, which holds what lists are usually filtered by.


MAX_ARMS = 100  # more spaces than this are sorted

INDEXES: Mapping[Order, str] = {
    Order.CREATED: "memories_by_created",
    Order.UPDATED: "memories_by_updated",
    Order.ACCESSED: "memories_by_accessed",
    Order.IMPORTANCE: "memories_by_importance",
    Order.ACCESSES: "memories_by_access_count",
    Order.LENGTH: "memories_by_length",
}

# With the reads that are not written yet.
OVERLAID: Mapping[Order, str] = {
    Order.ACCESSED: "max(memories.accessed_at, uncounted.at)",
    Order.ACCESSES: "memories.access_count + uncounted.count",
}


def arms(
    con: apsw.Connection,
    restriction: Restriction,
    order: Order,
    *,
    after: Position | None,
    descending: bool,
    tally: Tally,
) -> Condition:
    """A SELECT of the rows that a list is made of, `seq` and the value to sort by; it has no order yet.

    Memories with reads that are not written yet are out of place in the index of reads, so they make an arm of their
    own.
    """
    uncounted = tally.as_rows() if order in OVERLAID else "[]"  # as JSON rows `[id, count, at]`
    overlaid = uncounted != "[]"
    value, selects = f"memories.{order}", list[str]()
    values: list[Value] = []
    parts = _space_and_state(con, restriction)
    in_order = not restriction.is_few and len(parts) <= MAX_ARMS
    for part in parts if in_order else [restriction]:
        index, covered = _index(part, order) if in_order else ("", [])
        conditions = [part.condition(), *covered, *conditions_after(after, value, "?", descending=descending)]
        if overlaid:
            conditions.append((f"memories.seq NOT IN (SELECT seq FROM ({_UNCOUNTED}))", [uncounted]))
        where, given = join_conditions(conditions, "AND")
        selects.append(f"SELECT memories.seq, {value} FROM memories {index} WHERE {where}")
        values += given
    if overlaid:
        where, given = join_conditions(
            [restriction.condition(), *conditions_after(after, OVERLAID[order], "?", descending=descending)], "AND"
        )
        selects.append(
            f"""
            SELECT memories.seq, {OVERLAID[order]}
            FROM ({_UNCOUNTED}) AS uncounted
            CROSS JOIN memories ON memories.seq = uncounted.seq
            WHERE {where}
            """
        )
        values += [uncounted, *given]
    return "\nUNION ALL ".join(selects), values


def count_rows(con: apsw.Connection, restriction: Restriction) -> int:
    """Counted on an index alone, unless there are filters that it does not hold."""
    if restriction.is_few:
        where, values = restriction.condition()
        [(rows,)] = con.execute(f"SELECT count(*) FROM memories WHERE {where}", values)
        return int(rows)
    spaces: dict[tuple[int, ...] | None, list[int | None]] = {}
    for view in space_by_space(con, restriction.views):
        spaces.setdefault(view.audiences, []).append(view.space)
    total = 0
    for audiences, numbers in spaces.items():
        alike = replace(restriction, views=(View(None, audiences),))
        where, values = join_conditions(
            [among("memories.space", [n for n in numbers if n is not None]), alike.condition()], "AND"
        )
        [(rows,)] = con.execute(f"SELECT count(*) FROM memories INDEXED BY memories_by_created WHERE {where}", values)
        total += int(rows)
    return total


# By the unique index of ids.
_UNCOUNTED = """
    SELECT memories.seq, value ->> 1 AS count, value ->> 2 AS at
    FROM json_each(?)
    CROSS JOIN memories ON memories.id = value ->> 0
"""


def _space_and_state(con: apsw.Connection, restriction: Restriction) -> list[Restriction]:
    return [
        replace(restriction, views=(view,), states=(state,))
        for view in space_by_space(con, restriction.views)
        for state in restriction.states
    ]


def _index(part: Restriction, order: Order) -> tuple[str, list[Condition]]:
    """The index that gives the order, and what SQLite has to read to know that it may be used."""
    if order is Order.CREATED or State.ARCHIVED in part.states:  # archived ones are in no other: they are sorted
        return f"INDEXED BY {INDEXES[Order.CREATED]}", []
    return f"INDEXED BY {INDEXES[order]}", [(f"memories.state <> {int(State.ARCHIVED)}", [])]
