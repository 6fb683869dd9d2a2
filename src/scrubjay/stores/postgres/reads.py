"""Finding memories, on whatever connection: a reader's, or a transaction's own."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Restriction, restrict, views_of, visible_rows
from scrubjay.stores.postgres.sql import OWN, columns_for
from scrubjay.stores.postgres.values import Texts, fetch_rows
from scrubjay.stores.promises.memories import OPENING, List, Position, Reads
from scrubjay.stores.tables.rows import SKETCHED, Row, sketch_of
from scrubjay.stores.tables.sql import Condition, conditions_after, join_conditions
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.callers import Audience
from scrubjay.values.memory import AT_HAND, Kind, Memory, Sketch, State
from scrubjay.values.search import Filter, Glimpses, Match, Order
from scrubjay.values.store import Topic
from scrubjay.values.times import moment

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

SKETCH = {name: OWN[name] for name in SKETCHED}
T = TypeVar("T")
DECISIONS = Filter(kinds=frozenset({Kind.DECISION}), states=AT_HAND)

# With the reads that are not written yet.
OVERLAID: Mapping[Order, str] = {
    Order.ACCESSED: "greatest(memories.accessed_at, uncounted.at)",
    Order.ACCESSES: "memories.access_count + coalesce(uncounted.count, 0)",
}


class PostgresReads(Reads):
    def __init__(self, tally: Tally) -> None:
        self.tally = tally

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection for one call."""

    @abstractmethod
    def _extent(
        self,
        con: Connection,
        restriction: Restriction,
        asked: tuple[Filter, Audience],
        dimension: int,
        model: str | None,
    ) -> tuple[float, int]:
        """About how many memories are meant, and how many vectors of this length an index holds; (0, 0): nothing may
        be missed."""

    def _searched(self, search: Callable[[Connection], T]) -> T:
        """What a search finds."""
        with self._reading() as con:
            return search(con)

    def get(self, ids: Sequence[str], audience: Audience) -> List[Memory]:
        if not ids:
            self._nothing()
            return []
        visible = join_conditions(
            [visible_rows(views_of(audience)), ("memories.state <> %s", [int(State.PURGED)])], "AND"
        )
        columns = columns_for(audience)
        with self._reading() as con:
            found = {memory.id: memory for memory in self._by_ids(con, ids, columns, visible)}
            # A name with a slash is a checkpoint's before it is the id of a memory that was imported with it.
            missing = [name for name in ids if name not in found or "/" in name]
            aliases = _resolve_aliases(con, missing) if missing else {}
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
        restriction = restrict(filter, audience, now=now)
        if restriction is None:
            self._nothing()
            return []
        value, uncounted, tables = f"memories.{order}", list[object](), "memories"
        if order in OVERLAID and (waiting := self.tally.batch().readings):
            value = OVERLAID[order]
            tables = """
                memories
                LEFT JOIN unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS uncounted (id, count, at)
                ON uncounted.id = memories.id
            """
            uncounted = [[*waiting], [one.count for one in waiting.values()], [one.at for one in waiting.values()]]
        where, values = join_conditions(
            [restriction.condition(), *conditions_after(after, value, "%s", descending=descending)], "AND"
        )
        direction = "DESC" if descending else "ASC"
        columns, column_values = columns_for(audience)
        with self._reading() as con:
            rows = fetch_rows(
                con,
                # memories_by_created, _updated, _importance; other orders are sorted
                f"""
                SELECT {columns}
                FROM {tables}
                WHERE {where}
                ORDER BY {value} {direction}, memories.seq {direction}
                LIMIT %s OFFSET %s
                """,
                (*column_values, *uncounted, *values, limit, offset),
            )
            return self._memories(rows)

    def count(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        return self._counted("memories", filter, audience, now)

    def count_waiting(self, filter: Filter, audience: Audience, *, now: datetime) -> int:
        waiting = """
            pending
            JOIN memories
            ON memories.space = pending.space AND memories.seq = pending.memory AND pending.next_part = 0
        """
        return self._counted(waiting, filter, audience, now)

    def _counted(self, tables: str, filter: Filter, audience: Audience, now: datetime) -> int:
        restriction = restrict(filter, audience, now=now, purged=True)
        if restriction is None:
            self._nothing()
            return 0
        where, values = restriction.condition()
        with self._reading() as con:
            [(count,)] = con.execute(f"SELECT count(*) FROM {tables} WHERE {where}", values)
            return int(count)

    def topics(self, audience: Audience, *, now: datetime, limit: int) -> List[Topic]:
        restriction = restrict(DECISIONS, audience, now=now)
        if restriction is None:
            return []
        where, values = restriction.condition()
        with self._reading() as con:
            rows = con.execute(
                # memories_by_topic
                f"""
                SELECT
                    (array_agg(memories.topic ORDER BY memories.created_at DESC, memories.seq DESC))[1],
                    count(*),
                    max(memories.created_at)
                FROM memories
                WHERE memories.topic_key IS NOT NULL
                AND {where}
                GROUP BY memories.topic_key
                ORDER BY 3 DESC, memories.topic_key
                LIMIT %s
                """,
                (*values, limit),
            )
            return [Topic(name=name, decisions=count, latest_at=moment(at)) for name, count, at in rows]

    def match(self, text: str, filter: Filter, audience: Audience, *, now: datetime, limit: int) -> List[Match]:
        restriction = restrict(filter, audience, now=now)
        if restriction is None:
            return []
        return self._searched(lambda con: postgres_words.match(con, text, restriction, limit))

    def matched_words(self, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._reading() as con:
            return postgres_words.words_held(con, text, ids)

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
        restriction = restrict(filter, audience, now=now)
        if restriction is None:
            return []
        asked = (filter, audience)
        return self._searched(lambda con: self._near(con, vector, restriction, asked, limit=limit, model=model))

    def _near(
        self,
        con: Connection,
        vector: Vector,
        restriction: Restriction,
        asked: tuple[Filter, Audience],
        *,
        limit: int,
        model: str | None = None,
    ) -> List[Match]:
        """The nearest, found by the server."""
        scope, indexed = self._extent(con, restriction, asked, len(vector), model)
        return postgres_vectors.nearest(con, vector, restriction, limit, scope=scope, indexed=indexed, model=model)

    def rarity(self, words: Sequence[str], audience: Audience) -> dict[str, float]:
        with self._reading() as con:
            return postgres_words.rarities(con, words, views_of(audience), sees_all=audience.sees_all)

    def glimpses(self, ids: Sequence[str]) -> Glimpses:
        with self._reading() as con:
            rows = fetch_rows(
                con,
                # memories_by_id
                """
                SELECT
                    id, created_at, valid_from, valid_until, conversation_id, content_length, left(content, %s), also
                FROM memories
                WHERE id = ANY(%s)
                """,
                (OPENING, Texts(ids)),
                binary=True,
            )
            return Glimpses.of_rows(rows)

    def in_space(self, ids: Sequence[str], space: str) -> set[str]:
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id
                f"SELECT id FROM memories WHERE id = ANY(%s) AND space = %s AND state < {int(State.PURGED)}",
                (Texts(ids), space),
            )
            return {memory for (memory,) in rows}

    def sketches(self, ids: Sequence[str], audience: Audience) -> List[Sketch]:
        if not ids:
            return []
        (columns, column_values), (where, values) = columns_for(audience, SKETCH), visible_rows(views_of(audience))
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id
                f"SELECT {columns} FROM memories WHERE id = ANY(%s) AND state < {int(State.PURGED)} AND {where}",
                (*column_values, Texts(ids), *values),
            )
            found = {sketch.id: sketch for sketch in map(sketch_of, rows)}
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def cosines(self, vector: Vector, ids: Sequence[str], *, model: str | None = None) -> dict[str, float]:
        if not ids:
            return {}
        with self._reading() as con:
            return postgres_vectors.cosines(con, vector, ids, model=model)

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        if not ids:
            return {}
        with self._reading() as con:
            return postgres_vectors.vectors(con, ids)

    def _nothing(self) -> None:
        """Where nothing needs to be asked, a closed store still says so."""
        with self._reading():
            pass

    def _memories(self, rows: Iterable[Row]) -> List[Memory]:
        return [self.tally.memory_of(row) for row in rows]

    def _by_ids(self, con: Connection, ids: Sequence[str], columns: Condition, visible: Condition) -> List[Memory]:
        (selected, column_values), (where, values) = columns, visible
        rows = fetch_rows(
            con,
            # memories_by_id
            f"SELECT {selected} FROM memories WHERE memories.id = ANY(%s) AND {where}",
            (*column_values, Texts(ids), *values),
        )
        return self._memories(rows)


def _resolve_aliases(con: Connection, aliases: Sequence[str]) -> dict[str, str]:
    """The ids that these aliases stand for."""
    rows = con.execute(
        # aliases_by_alias, then the primary key of memories
        """
        SELECT aliases.alias, memories.id
        FROM aliases
        JOIN memories ON memories.space = aliases.space AND memories.seq = aliases.memory
        WHERE aliases.alias = ANY(%s)
        """,
        (list(aliases),),
    )
    return dict(rows)
