"""The port of `tables/sql.py` for PostgreSQL, its parameters as psycopg writes them; and the columns of `memories`."""

# ruff: noqa: S608 -- names of ours; values are always parameters

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import audience_of, views_of, visible_rows
from scrubjay.stores.postgres.values import Texts, vector_of
from scrubjay.stores.tables.rows import FIELDS, columns_of, memory_of
from scrubjay.stores.tables.sql import Clause, Condition, Key, Row, Span, Sql, columns_as_seen, name_values
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Memory

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

# What a memory is read from, in the order `memory_of` takes it apart.
OWN = {name: f"memories.{name}" for name in FIELDS}
COLUMNS = ", ".join(OWN.values())


def columns_for(audience: Audience, own: Mapping[str, str] = OWN) -> Condition:
    """The columns of a memory as this audience may see them, and the values of their parameters."""
    return columns_as_seen(own, visible_rows(views_of(audience.reaching), "others"))


def row_of(memory: Memory) -> dict[str, Any]:
    """The columns of `memories` that follow from the memory."""
    return columns_of(memory) | {"audience": audience_of(memory.access_level, memory.context.user_id)}


def memory_of_columns(columns: dict[str, Any]) -> Memory:
    """The memory that reading a row with these columns gives: times rounded to milliseconds."""
    return memory_of([columns[name] for name in FIELDS])


class PostgresSql(Sql):
    span = Span(("until",), ":instant + make_interval(secs => :seconds)", "({0}.until > :instant)")  # see `_timed`
    space = ":space"
    space_name = "{}"
    name = ":name"
    memory_key = Key(
        ("space", "memory"),
        ("space", "seq"),
        (
            "(SELECT memories.space FROM memories WHERE memories.id = :memory)",
            "(SELECT memories.seq FROM memories WHERE memories.id = :memory)",
        ),
    )
    # The file of what it leads from names it, and so waits; a proposal is named nowhere.
    with_file_waiting = """
        WITH former AS MATERIALIZED (  -- Citus runs one after the other
            SELECT state FROM links WHERE source = :source AND target = :target AND kind = :kind
        ), written AS (
            {}
            RETURNING kind, source, state
        )
        INSERT INTO outbox (space, memory, version)
        SELECT files.space, files.memory, memories.version
        FROM written
        JOIN files ON files.memory = written.source
        JOIN memories ON memories.id = files.memory
        WHERE written.kind <> 'may_outdate'
        AND written.state IS DISTINCT FROM (SELECT state FROM former)
        ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version
    """
    notification = "SELECT pg_notify(current_schema(), :space)"  # see postgres/listening.py
    each = """(
        SELECT listed.number - 1 AS place, listed.value AS value
        FROM unnest(CAST({list} AS TEXT[])) WITH ORDINALITY AS listed (value, number)
    ) AS listed"""
    json = "{}::JSON"
    place = "strpos"
    greatest = "greatest"
    word_bytes = "0"  # they stay where they are: a stem says nothing of the order in which it stood
    vector_bytes = "memories.vector_bytes"

    def __init__(self, connection: Callable[[], AbstractContextManager[Connection]], tally: Tally) -> None:
        self._connection = connection
        self._tally = tally

    def memories(self, where: str, audience: Audience | None, /, *, order: str = "", **values: object) -> list[Memory]:
        columns, visible = COLUMNS, "TRUE"
        if audience is not None:
            columns, column_values = name_values(columns_for(audience), "%s", "column_")
            visible, given = self.visible(audience)
            values |= column_values | given
        rows = self.all(
            f"SELECT {columns} FROM memories WHERE {where} AND {visible} {order and f'ORDER BY {order}'}", **values
        )
        return [self._tally.memory_of(row) for row in rows]

    def count(self, where: str, audience: Audience, /, *, index: str, **values: object) -> int:  # noqa: ARG002 -- the planner finds it
        visible, given = self.visible(audience)
        rows = self.all(f"SELECT count(*) FROM memories WHERE {visible} AND {where}", **values, **given)
        return sum(count for (count,) in rows)

    def vectors(self, memory: str, model: str | None = None) -> list[Vector]:
        its_rows = self.memory_key.matches_parameters("vectors")
        with self._connection() as con:
            rows = con.execute(
                rewritten(f"SELECT vector_send(vector) FROM vectors WHERE {its_rows} AND model = :model ORDER BY part"),
                {"memory": memory, "model": model or ""},
                binary=True,
            )
            return [vector_of(sent) for (sent,) in rows]

    def visible(self, audience: Audience, table: str = "memories") -> Clause:
        return name_values(visible_rows(views_of(audience), table), "%s", f"{table}_")

    def all(self, statement: str, /, **values: object) -> list[Row]:
        with self._connection() as con:
            return con.execute(rewritten(statement), _arrays(values | _add_time(con, statement))).fetchall()

    def run(self, statement: str, /, **values: object) -> int:
        with self._connection() as con:
            return con.execute(rewritten(statement), _arrays(values | _add_time(con, statement))).rowcount

    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        with self._connection() as con:
            time = _add_time(con, statement)
            con.cursor().executemany(rewritten(statement), [{**row, **time} for row in rows] if time else rows)

    def among(self, column: str, values: str) -> str:
        return f"{column} = ANY(:{values})"


def _add_time(con: Connection, statement: str) -> dict[str, object]:
    """The database's time, for a statement that asks for it. It is asked for by itself, because Citus takes no function
    whose value changes in a condition of what is written."""
    return {"instant": clock(con)} if ":instant" in statement else {}


def clock(con: Connection) -> datetime:
    """The time by the clock that all servers of the store share."""
    [(now,)] = con.execute("SELECT clock_timestamp()")
    return cast("datetime", now)


def _arrays(values: Mapping[str, object]) -> dict[str, object]:
    """With lists of texts in the form that is quick to send."""
    return {
        name: Texts(value)
        if isinstance(value, list) and value and all(issubclass(kind, str) for kind in {*map(type, value)})
        else value
        for name, value in values.items()
    }


@lru_cache(maxsize=500)
def rewritten(statement: str) -> bytes:
    """`:name` becomes `%(name)s`; a cast (`::TEXT`) stays."""
    return re.sub(r"(?<!:):([a-z_]\w*)", r"%(\1)s", statement.replace("%", "%%")).encode()
