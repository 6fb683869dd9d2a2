"""A SQLite store as one side of a copy: numbers become names on the way out, and names numbers on the way in.

Words and tags are made as they are for any new memory: by the transaction.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field
from typing import Any

import apsw

from scrubjay.errors import StorageDamaged
from scrubjay.stores.copying import MEMORY, Copyable, Row, Table, put_away, stems_as_text, stems_of_text
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.connections import Connections
from scrubjay.stores.sqlite.errors import translated_errors
from scrubjay.stores.sqlite.filters import FIRST_PRIVATE, PUBLIC, SHARED, audience_of, space_number
from scrubjay.stores.sqlite.sql import NAMES
from scrubjay.stores.sqlite.sql import TABLES as NAMED_MEMORIES
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.transaction import SqliteTransaction
from scrubjay.stores.sqlite.vectors import shorten
from scrubjay.stores.sqlite.words import count_passages, scope_token
from scrubjay.stores.tables.rows import FIELDS, memory_of
from scrubjay.text.words import MAX_PASSAGES
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import AccessLevel

AUDIENCES = {PUBLIC: "public", SHARED: "shared"}
PRIVATE = "private:"
KEPT_BACK = "('copy')"  # facts about this file alone


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a table's rows come from, in the order of what key, and columns that are not simply its own."""

    tables: str
    key: tuple[str, ...]
    spelt: Mapping[str, str] = field(default_factory=dict)
    where: str = "TRUE"


_OF_MEMORY = "CROSS JOIN memories ON memories.seq = {0}.memory CROSS JOIN spaces ON spaces.number = memories.space"


def _of_memory(table: str, *key: str) -> Reading:
    own = {"space": "spaces.name", "memory": f"{table}.memory", "id": f"{table}.id", "version": f"{table}.version"}
    return Reading(f"{table} {_OF_MEMORY.format(table)}", tuple(f"{table}.{name}" for name in key), own)


READINGS: Mapping[str, Reading] = {
    "spaces": Reading("spaces", ("name",)),
    "memories": Reading(
        NAMED_MEMORIES, ("memories.seq",), {name: NAMES.get(name, f"memories.{name}") for name in MEMORY}
    ),
    "aliases": _of_memory("aliases", "alias"),
    "versions": _of_memory("versions", "memory", "version"),
    "ancestry": _of_memory("ancestry", "memory", "origin"),
    "vectors": _of_memory("vectors", "memory", "model", "part"),
    "pending": _of_memory("pending", "memory"),
    "owed": Reading("owed", ("memory",)),
    "links": Reading("links", ("number",)),
    "asides": Reading("asides", ("memory", "role", "other")),
    "events": Reading("events", ("space", "number")),
    "recalls": Reading("recalls", ("number",)),
    "recall_counts": Reading("recall_counts", ("space", "user_id", "hour")),
    "activity": Reading(
        "activity CROSS JOIN spaces ON spaces.number = activity.space",
        ("activity.part", "activity.at", "activity.space", "activity.audience"),
        {"space": "spaces.name"},
    ),
    "results": Reading("results", ("caller", "key")),
    "result_memories": Reading("result_memories", ("memory", "caller", "key")),
    "credentials": Reading("credentials", ("id",)),
    "grants": Reading("grants", ("user_id", "space")),
    "sessions": Reading("sessions", ("hex(secret)",)),
    "acts": Reading("acts", ("number",)),
    "files": Reading("files", ("space", "memory")),
    "outbox": Reading("outbox", ("space", "memory")),
    "sections": Reading("sections", ("space", "path")),
    "jobs": Reading("jobs", ("number",)),
    "archives": _of_memory("archives", "memory"),
    "objects_to_remove": Reading("objects_to_remove", ("object",)),
    "conversations": Reading("conversations", ("number",)),
    "messages": Reading("messages", ("number",)),
    "injections": Reading("injections", ("number",)),
    "deeds": Reading("deeds", ("id",)),
    "deed_memories": Reading("deed_memories", ("deed", "memory")),
    "endpoints": Reading("endpoints", ("name",)),
    "heard": Reading("heard", ("speaker", "listener", "space")),
    "sync_conflicts": Reading("sync_conflicts", ("number",)),
    "facts": Reading("facts", ("key",), where=f"key NOT IN {KEPT_BACK}"),
    "clock": Reading("counters", ("clock",)),
}


class SqliteCopy(Copyable):
    shortened = staticmethod(shorten)

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.origin = store.origin

    def count(self, table: Table) -> int:
        if table.name == "archived_words":
            return count_stems(self._store._connections)
        reading = READINGS[table.name]
        with self._store._reading() as con:
            [(count,)] = con.execute(f"SELECT count(*) FROM {reading.tables} WHERE {reading.where}")
            return int(count)

    def rows(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[tuple[list[Any], Row]]:
        if table.name == "archived_words":
            yield from stems_out(self._store._connections, after[0] if after else 0)
            return
        reading, key = READINGS[table.name], ", ".join(READINGS[table.name].key)
        own = reading.tables.split()[0]
        columns = ", ".join(reading.spelt.get(name, f"{own}.{name}") for name in table.columns)
        behind = f"AND ({key}) > ({', '.join('?' * len(reading.key))})" if after else ""
        with self._store._reading() as con:
            names = dict(con.execute("SELECT number, name FROM names"))
            found = con.execute(
                f"SELECT {key}, {columns} FROM {reading.tables} WHERE {reading.where} {behind} ORDER BY {key}",
                list(after or ()),
            )
            for row in found:
                values = row[len(reading.key) :]
                yield list(row[: len(reading.key)]), _name_row(table, values, names)

    def take_in(self, table: Table, rows: Sequence[Row], progress: str) -> None:
        if table.name == "archived_words":
            stems_in(self._store._connections, rows, progress)
            return
        with self._store._changing() as transaction:
            Intake(transaction).take_in(table, rows)
            transaction.history.set_fact("copy", progress)

    def finish(self, progress: str) -> None:
        self.keep(progress)


class Intake:
    """Rows with names become rows with numbers, in one transaction."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        self._tx = transaction
        self._con = transaction._con

    def take_in(self, table: Table, rows: Sequence[Row]) -> None:
        special = getattr(self, f"_{table.name}", None)
        if special is not None:
            for row in rows:
                special(dict(zip(table.columns, row, strict=True)))
            return
        columns = tuple(name for name in table.columns if name != "space" or table.name not in _OF_A_MEMORY)
        places = [table.columns.index(name) for name in columns]
        if table.columns[-1] == "vector":
            rows = [(*row[:-1], shorten(row[-1])) for row in rows]
        self._con.executemany(
            f"INSERT OR REPLACE INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [[row[place] for place in places] for row in rows],
        )

    def _spaces(self, row: dict[str, Any]) -> None:
        self._con.execute(
            """
            INSERT INTO spaces (name, description, created_at, events, checkpoints, mirrored, title, deleted_at)
            VALUES (:name, :description, :created_at, :events, :checkpoints, :mirrored, :title, :deleted_at)
            ON CONFLICT (name) DO UPDATE SET
                description = excluded.description, created_at = excluded.created_at,
                events = excluded.events, checkpoints = excluded.checkpoints, mirrored = excluded.mirrored,
                title = excluded.title, deleted_at = excluded.deleted_at
            """,
            row,
        )

    def _memories(self, row: dict[str, Any]) -> None:
        memory = memory_of([row[name] for name in FIELDS])
        space, user = self._space(row["space"]), self._tx._number(row["user_id"])
        conversation = row["conversation_id"]
        columns = row | {
            "space": space,
            "user_id": user,
            "conversation_id": None if conversation is None else self._tx._number(conversation),
            "audience": audience_of(AccessLevel(row["access_level"]), user),
            "change": self._tx._changed(),
        }
        seq = self._tx._insert(columns)
        for table in ("files", "outbox"):  # what a trigger made of it; those of the source come later
            self._con.execute(f"DELETE FROM {table} WHERE memory = ?", (row["id"],))
        if row["state"] < 4:
            self._tx._write_tags(seq, memory)
            if not put_away(row["content"], row["content_length"]):
                self._tx._write_words(seq, memory, space)

    def _activity(self, row: dict[str, Any]) -> None:
        kind, _, name = row["part"].partition(":")
        part = f"{kind}:{self._tx._number(name)}" if kind in ("user", "conversation") else row["part"]
        audience = row["audience"]
        if audience.startswith(PRIVATE):
            number = FIRST_PRIVATE + self._tx._number(audience.removeprefix(PRIVATE))
        else:
            [number] = [known for known, text in AUDIENCES.items() if text == audience]
        self._insert("activity", row | {"part": part, "audience": number, "space": self._space(row["space"])})

    def _clock(self, row: dict[str, Any]) -> None:
        self._con.execute("UPDATE counters SET clock = max(clock, :clock)", row)

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        self._con.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({values})", row)

    def _space(self, name: str) -> int:
        number = space_number(self._con, name)
        assert number is not None, "spaces are copied first"
        return number


_OF_A_MEMORY = ("aliases", "versions", "ancestry", "vectors", "pending", "archives")


def _name_row(table: Table, row: Row, names: Mapping[int, str]) -> Row:
    if table.name != "activity":
        return row
    values = dict(zip(table.columns, row, strict=True))
    kind, _, number = values["part"].partition(":")
    if kind in ("user", "conversation"):
        values["part"] = f"{kind}:{names[int(number)]}"
    audience = values["audience"]
    values["audience"] = AUDIENCES.get(audience) or PRIVATE + names[audience - FIRST_PRIVATE]
    return tuple(values.values())


# The words of archived memories, as they are copied: their text is not in the file, only its stems are.
#
# They are read out of the index itself, and written on a connection whose tokenizer takes them as they stand: a stem of
# a stem may be another.


BUSY_SECONDS = 10.0


def count_stems(connections: Connections) -> int:
    with _instances(connections) as con:
        [(passages,)] = con.execute("SELECT count(DISTINCT doc) FROM temp.instances WHERE col = 'text'")
        return int(passages)


def stems_out(connections: Connections, after: int) -> Iterator[tuple[list[Any], Row]]:
    """Passages behind a row of the index, each with its space, memory, place, length and stems."""
    with _instances(connections) as con:
        found = con.execute(
            """
            SELECT doc, spaces.name, memories.seq, sum(often), json_group_object(term, often)
            FROM (
                SELECT doc, term, count(*) AS often
                FROM temp.instances
                WHERE col = 'text' AND doc > ?
                GROUP BY doc, term
            )
            CROSS JOIN memories ON memories.seq = doc / 256
            CROSS JOIN spaces ON spaces.number = memories.space
            GROUP BY doc
            ORDER BY doc
            """,
            (after,),
        )
        for row, space, memory, length, stems in found:
            yield [row], (space, memory, row % MAX_PASSAGES, length, stems_as_text(json.loads(stems)))


def stems_in(connections: Connections, passages: Sequence[Row], progress: str) -> None:
    with (
        connections._lock.held(BUSY_SECONDS),
        translated_errors(),
        closing(sqlite_file.connect(connections.path)) as con,
    ):
        con.register_fts5_tokenizer("porter", _AsTheyStand)
        con.execute("BEGIN IMMEDIATE")
        con.executemany(
            "INSERT INTO archived_words (rowid, text, scope) VALUES (?, ?, ?)",
            [
                (memory * MAX_PASSAGES + place, " ".join(stems_of_text(stems, length).elements()), _scope(con, space))
                for space, memory, place, length, stems in passages
            ],
        )
        for memory in {row[1] for row in passages}:
            count_passages(con, memory)
        con.execute(
            """
            INSERT INTO facts (key, value) VALUES ('copy', ?)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """,
            (progress,),
        )
        con.execute("COMMIT")


@contextmanager
def _instances(connections: Connections) -> Iterator[apsw.Connection]:
    """A connection that shows every place of every stem."""
    with connections.fresh() as con:
        con.pragma("query_only", "OFF")
        con.execute("CREATE VIRTUAL TABLE temp.instances USING fts5vocab (main, archived_words, instance)")
        con.pragma("query_only", "ON")
        yield con


def _scope(con: apsw.Connection, name: str) -> str:
    number = space_number(con, name)
    if number is None:
        raise StorageDamaged(f"The copy has no space {name!r}.", hint="Copy into a new store again.")
    return scope_token(number)


class _AsTheyStand:
    """A tokenizer: words separated by spaces, none of them changed."""

    def __init__(self, _con: apsw.Connection, _arguments: list[str]) -> None:
        pass

    def __call__(self, text: bytes, _reason: int, _locale: str | None) -> Iterable[str]:
        return text.decode().split(" ")
