"""The port of `tables/sql.py` for PostgreSQL: its parameters as psycopg writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache

from scrubjay.stores.postgres.history import Connection
from scrubjay.stores.tables.sql import Key, Row, Span, Sql


class PostgresSql(Sql):
    user = "user_id"
    events = "events"
    span = Span(("until",), "clock_timestamp() + make_interval(secs => :seconds)", "until > clock_timestamp()")

    space = ":space"
    talk = Key(("space", "conversation"), ("space", "id"), (":space", ":id"))
    injected = Key(("space", "memory"), ("space", "id"), (":space", ":memory"))
    greatest = "greatest"

    def __init__(self, connection: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._connection = connection

    def space_name(self, column: str) -> str:
        return column

    def all(self, statement: str, /, **values: object) -> list[Row]:
        with self._connection() as con:
            return con.execute(rewritten(statement), values).fetchall()

    def run(self, statement: str, /, **values: object) -> int:
        with self._connection() as con:
            return con.execute(rewritten(statement), values).rowcount

    def many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        with self._connection() as con:
            con.cursor().executemany(rewritten(statement), rows)

    def among(self, column: str, values: str) -> str:
        return f"{column} = ANY(:{values})"

    def array(self, values: Sequence[str]) -> object:
        return list(values)


@lru_cache(maxsize=500)
def rewritten(statement: str) -> bytes:
    """`:name` becomes `%(name)s`; a cast (`::TEXT`) stays."""
    return re.sub(r"(?<!:):([a-z_]\w*)", r"%(\1)s", statement.replace("%", "%%")).encode()
