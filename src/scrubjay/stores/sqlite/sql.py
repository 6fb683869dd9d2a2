"""The port of `tables/sql.py` for SQLite, which takes its statements as they are."""

# ruff: noqa: S608 -- names of ours; values are always parameters

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

import apsw

from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.sql import Key, Row, Span, Sql


class SqliteSql(Sql):
    user = "user"
    events = """(
        SELECT at, user, action, spaces.name AS space, memory, client, transport, reason, events.number AS number
        FROM events
        JOIN spaces ON spaces.number = events.space
    )"""

    span = Span(
        ("taken_at", "until"),
        ":now, :now + CAST(:seconds * 1000 AS INTEGER)",
        # What was taken in the future was taken before the clock was set back; it holds off nobody.
        "(until > :now AND taken_at <= :now)",
    )

    space = "(SELECT number FROM spaces WHERE name = :space)"
    talk = Key(
        ("conversation",),
        ("number",),
        (f"(SELECT number FROM conversations WHERE space = {space} AND conversations.id = :id)",),
    )
    injected = Key(("memory",), ("seq",), ("(SELECT seq FROM memories WHERE memories.id = :memory)",))
    greatest = "max"

    def __init__(
        self,
        connection: Callable[[], AbstractContextManager[apsw.Connection]],
        note_erasure: Callable[[], None] = lambda: None,
    ) -> None:
        """`note_erasure` is called when text was erased: the log may hold copies of it."""
        self._connection = connection
        self._note_erasure = note_erasure

    def erased(self) -> None:
        self._note_erasure()

    def space_name(self, column: str) -> str:
        return f"(SELECT spaces.name FROM spaces WHERE spaces.number = {column})"

    def all(self, statement: str, /, **values: object) -> list[Row]:
        with self._connection() as con:
            return con.execute(statement, _timed(values)).fetchall()

    def run(self, statement: str, /, **values: object) -> int:
        with self._connection() as con:
            con.execute(statement, _timed(values))
            return con.changes()

    def many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        with self._connection() as con:
            con.executemany(statement, map(_timed, rows))

    def among(self, column: str, values: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(:{values}))"

    def array(self, values: Sequence[str]) -> object:
        return as_json(list(values))


def _timed(values: Mapping[str, object]) -> dict[str, object]:
    return {"now": time.time_ns() // 1_000_000, **values}
