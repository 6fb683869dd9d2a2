"""The port of `tables/sql.py` for SQLite, which takes its statements as they are; and the columns of `memories`, where
names of spaces, users and conversations are numbers."""

# ruff: noqa: S608 -- names of ours; values are always parameters

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import apsw

from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.filters import any_asides, audience_of, first_row, space_by_space, views_of, visible_rows
from scrubjay.stores.tables.rows import FIELDS, as_json, columns_of
from scrubjay.stores.tables.sql import Clause, Condition, Key, Row, Span, Sql, columns_as_seen, name_values
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Memory

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

NAMES = {"space": "spaces.name", "user_id": "users.name", "conversation_id": "conversations.name"}
OWN = {name: NAMES.get(name, f"memories.{name}") for name in FIELDS}
COLUMNS = ", ".join(OWN.values())

NEW_LINKS = "SELECT number, source, target FROM links WHERE number > ? ORDER BY number LIMIT ?"  # the primary key
LINKS = "ends of links"  # as `filters.look_up` calls what it remembers
MOST_VALUES = 32_766  # that a statement can take
MOST_LINKS = 10_000  # that a reader remembers

WORDS, TAGS, PENDING = ("rowid", "text", "scope"), ("memory", "tag"), ("memory", "next_part")  # columns of these tables

# Left joins, so that the planner starts with `memories` and its index whatever else is asked.
TABLES = """
    memories
    LEFT JOIN spaces ON spaces.number = memories.space
    LEFT JOIN names AS users ON users.number = memories.user_id
    LEFT JOIN names AS conversations ON conversations.number = memories.conversation_id
"""


@contextmanager
def snapshot(con: apsw.Connection) -> Iterator[None]:
    """Let several statements see the same moment, and what was looked up before (`filters.look_up`) be of it."""
    if con.in_transaction:  # they do
        yield
        return
    con.execute("BEGIN")
    try:
        version = con.execute("PRAGMA data_version").get  # the moment is fixed by the first read, which this is
        if isinstance(con, sqlite_file.Connection) and con.looked_up is not None and con.kept[0] != version:
            con.kept = version, {}
            con.looked_up = con.kept[1]
        yield
    finally:
        if con.in_transaction:  # a disk that fails has ended it
            con.execute("COMMIT")


def columns_for(con: apsw.Connection, audience: Audience, own: Mapping[str, str] = OWN) -> Condition:
    """The columns of a memory as this audience may see them, and the values of their parameters."""
    if not any_asides(con):
        return ", ".join(own.values()), []
    return columns_as_seen(own, visible_rows(views_of(con, audience.reaching), "others"))


def row_of(memory: Memory, *, space: int, user: int, conversation: int | None) -> dict[str, Any]:
    """The columns of `memories` that follow from the memory; names come as their numbers."""
    return columns_of(memory) | {
        "space": space,
        "audience": audience_of(memory.access_level, user),
        "user_id": user,
        "conversation_id": conversation,
    }


def tags_of(seq: int, memory: Memory) -> list[tuple[int, str]]:
    return [(seq, tag) for tag in sorted({*memory.tags, *memory.auto_tags})]


def insert(con: apsw.Connection, table: str, columns: Sequence[str], rows: Sequence[Collection[Any]]) -> None:
    """Write many rows, by as few statements as take them all.

    SQLite lets other threads have the interpreter while it works. If it asked for it back after each row, it would wait
    for it as often, each time for up to 5 ms (`sys.getswitchinterval`), and no two of them would get on at once.
    """
    for start in range(0, len(rows), most := MOST_VALUES // len(columns)):
        some = rows[start : start + most]
        con.execute(_insertion(table, tuple(columns), len(some)), [*chain.from_iterable(some)])


@lru_cache(16)
def _insertion(table: str, columns: tuple[str, ...], rows: int) -> str:
    marks = ", ".join([f"({', '.join('?' * len(columns))})"] * rows)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {marks}"


class SqliteSql(Sql):
    span = Span(
        ("taken_at", "until"),
        ":now, :now + CAST(:seconds * 1000 AS INTEGER)",
        # What was taken in the future was taken before the clock was set back; it holds no one off.
        "({0}.until > :now AND {0}.taken_at <= :now)",
    )

    space = "(SELECT number FROM spaces WHERE name = :space)"
    space_name = "(SELECT spaces.name FROM spaces WHERE spaces.number = {})"
    name = "(SELECT names.number FROM names WHERE names.name = :name)"
    memory_key = Key(("memory",), ("seq",), ("(SELECT memories.seq FROM memories WHERE memories.id = :memory)",))
    with_file_waiting = "{}"  # triggers see to it
    notification = ""
    each = "(SELECT key AS place, value FROM json_each({list}))"
    json = "{}"
    place = "instr"
    greatest = "max"
    word_bytes = """(
        SELECT coalesce(sum(octet_length(text)), 0)
        FROM words
        WHERE words.rowid BETWEEN memories.seq * 256 AND memories.seq * 256 + 255
    )"""
    vector_bytes = """(
        SELECT coalesce(sum(octet_length(vector)), 0)
        FROM vectors
        WHERE vectors.memory = memories.seq AND vectors.model = ''
    )"""

    def __init__(
        self,
        connection: Callable[[], AbstractContextManager[apsw.Connection]],
        tally: Tally,
        note_erasure: Callable[[], None] = lambda: None,
    ) -> None:
        """`note_erasure` is called when text was erased: the log may hold copies of it."""
        self._connection = connection
        self._tally = tally
        self._note_erasure = note_erasure

    def note_erasure(self) -> None:
        self._note_erasure()

    def memories(self, where: str, audience: Audience | None, /, *, order: str = "", **values: object) -> list[Memory]:
        columns, visible = COLUMNS, "TRUE"
        if audience is not None:
            with self._connection() as con:
                columns, column_values = name_values(columns_for(con, audience), "?", "column_")
            visible, given = self.visible(audience)
            values |= column_values | given
        rows = self.all(
            f"SELECT {columns} FROM {TABLES} WHERE {where} AND {visible} {order and f'ORDER BY {order}'}", **values
        )
        return [self._tally.memory_of(row) for row in rows]

    def count(self, where: str, audience: Audience, /, *, index: str, **values: object) -> int:
        with self._connection() as con:
            views = space_by_space(con, views_of(con, audience))
        total = 0
        for view in views:  # an index begins with the space
            visible, given = name_values(visible_rows([view]), "?", "seen_")
            statement = f"SELECT count(*) FROM memories INDEXED BY {index} WHERE {visible} AND {where}"
            total += sum(count for (count,) in self.all(statement, **values, **given))
        return total

    def vectors(self, memory: str, model: str | None = None) -> list[Vector]:
        from scrubjay.stores.sqlite.vectors import from_blob

        its_rows = self.memory_key.matches_parameters("vectors")
        rows = self.all(
            f"SELECT vector FROM vectors WHERE {its_rows} AND model = :model ORDER BY part",
            memory=memory,
            model=model or "",
        )
        return [from_blob(blob) for (blob,) in rows]

    def visible(self, audience: Audience, table: str = "memories") -> Clause:
        with self._connection() as con:
            return name_values(visible_rows(views_of(con, audience), table), "?", f"{table}_")

    def all(self, statement: str, /, **values: object) -> list[Row]:
        with self._connection() as con:
            return con.execute(statement, _bind(values)).fetchall()

    def cached_row(self, statement: str, /, **values: Hashable) -> Row | None:
        with self._connection() as con:
            return first_row(con, statement, values)

    def find_linked(self, ids: Sequence[str], within: Collection[str] | None = None) -> Sequence[str]:
        with self._connection() as con:
            if not isinstance(con, sqlite_file.Connection) or con.looked_up is None:
                return ids  # a transaction's connection may see links that are undone
            if LINKS not in con.looked_up:
                con.looked_up[LINKS] = _read_links(con)
            linked: dict[str, list[str]] | None = con.looked_up[LINKS]
        if linked is None:
            return ids
        some = [memory for memory in ids if memory in linked]
        if not some or within is None:
            return some
        others = frozenset(within)
        return [memory for memory in some if not others.isdisjoint(linked[memory])]

    def run(self, statement: str, /, **values: object) -> int:
        with self._connection() as con:
            con.execute(statement, _bind(values))
            return con.changes()

    def run_many(self, statement: str, rows: Iterable[Mapping[str, object]], /) -> None:
        with self._connection() as con:
            now = _now()
            con.executemany(statement, [_bind(row, now) for row in rows])

    def among(self, column: str, values: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(:{values}))"


def _read_links(con: sqlite_file.Connection) -> dict[str, list[str]] | None:
    """All memories that links touch, with those at the other ends; None if they are too many. No link is ever deleted,
    so what was seen is at most too much, and only new ones are read."""
    last, linked = con.links or (0, {})
    if last < MOST_LINKS:
        new: list[Any] = con.execute(NEW_LINKS, (last, MOST_LINKS)).fetchall()
        for number, source, target in new:
            last = number
            linked.setdefault(source, []).append(target)
            linked.setdefault(target, []).append(source)
    con.links = last, linked if last < MOST_LINKS else {}  # there may be more than were read
    return linked if last < MOST_LINKS else None


def _bind(values: Mapping[str, object], now: int | None = None) -> dict[str, object]:
    """Lists as JSON, for `among`; and what time it is."""
    bound: dict[str, object] = {"now": _now() if now is None else now, **values}
    for name, value in values.items():
        if isinstance(value, list):
            bound[name] = as_json(value)
    return bound


def _now() -> int:
    return time.time_ns() // 1_000_000
