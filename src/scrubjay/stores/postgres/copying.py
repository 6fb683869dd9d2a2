"""A PostgreSQL store as one side of a copy. Rows come in through COPY, words and tags of memories beside them."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from scrubjay.errors import Conflict
from scrubjay.stores.copying import OFTEN, Copyable, Row, Table, batched, copy, put_away, stems_as_text, stems_of_text
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import CARRIED, audience_of
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.postgres.transaction import PostgresTransaction
from scrubjay.stores.postgres.values import VectorBytes, copied_line, rows_of_bytes, vector_bytes, vector_of
from scrubjay.stores.postgres.words import COUNTS, Passage, passages_of
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.sqlite.filters import sizes_of
from scrubjay.stores.sqlite.vectors.blobs import from_blob, matrix, shortened, to_floats
from scrubjay.stores.tables.rows import FIELDS, memory_of
from scrubjay.values.memory import AccessLevel, Memory, random_suffix

KEPT_BACK = "('schema', 'copy', 'copy_indexes')"  # facts about this database alone

VECTOR_TABLES: Mapping[str, tuple[str, ...]] = {  # and the types of their columns
    "vectors": ("text", "int8", "int2", "vector"),
    "second_vectors": ("text", "int8", "int2", "text", "vector"),
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "spaces": ("name",),
    "memories": ("space", "seq"),
    "aliases": ("space", "alias"),
    "versions": ("space", "memory", "version"),
    "ancestry": ("space", "memory", "origin"),
    "vectors": ("space", "memory", "part"),
    "second_vectors": ("space", "memory", "part"),
    "pending": ("space", "memory"),
    "links": ("source", "target", "kind"),
    "asides": ("memory", "role", "other"),
    "events": ("space", "number"),
    "recalls": ("space", "number"),
    "recall_counts": ("space", "user_id", "hour"),
    "activity": ("space", "part", "hours", "at", "audience"),
    "results": ("caller", "key"),
    "result_memories": ("memory", "caller", "key"),
    "credentials": ("id",),
    "grants": ("user_id", "space"),
    "sessions": ("encode(secret, 'hex')",),
    "acts": ("number",),
    "files": ("space", "memory"),
    "outbox": ("space", "memory"),
    "sections": ("space", "path"),
    "jobs": ("id",),
    "archives": ("space", "memory"),
    "archived_words": ("space", "memory", "place"),
    "objects_to_remove": ("object",),
    "conversations": ("space", "id"),
    "messages": ("space", "conversation", "number"),
    "injections": ("space", "conversation", "memory"),
    "deeds": ("id",),
    "deed_memories": ("deed", "memory"),
    "endpoints": ("name",),
    "heard": ("speaker", "listener", "space"),
    "sync_conflicts": ("number",),
    "facts": ("key",),
    "clock": ("clock",),
}
BOOLEANS = {
    ("spaces", "mirrored"),
    ("links", "given"),
    ("pending", "judged"),
    ("jobs", "cancelling"),
    ("injections", "active"),
}
# Passages of archived memories. A stem comes with its label before it; the one that names the space has none.
ARCHIVED_WORDS = """
    (
        SELECT words.space, words.memory, words.place, words.length,
            ARRAY(SELECT weights[1] || lexeme FROM unnest(words.terms) WHERE weights IS NOT NULL) AS stems
        FROM words
        JOIN memories ON memories.space = words.space AND memories.seq = words.memory
        WHERE memories.packed_bytes IS NOT NULL AND words.length > 0
    ) AS archived_words
"""
INDEXED = ("memories", "tags", "words", "signatures")  # their indexes are made at the end: growing them costs more
LABELS = {"D": 1} | {label: count for count, label in COUNTS.items() if label} | {"A": OFTEN}
NAMED = {"user_id": "user", "conversation_id": "conversation"}  # columns that a copy calls otherwise
NUMBERED = (  # whose next number must be past those that came
    "links",
    "recalls",
    "acts",
    "jobs",
    "conversations",
    "messages",
    "injections",
    "sync_conflicts",
)


class PostgresCopy(Copyable):
    shortened = staticmethod(shortened)
    vector_size = 0  # bytes that a vector of the other side will take here, if it has any

    def __init__(self, store: PostgresStore, con: Connection | None = None) -> None:
        """With a connection that is inside a transaction everything is read as of one moment."""
        self._store = store
        self._con = con
        self.origin = store.origin

    def expect(self, vector: bytes) -> None:
        self.vector_size = 4 * len(from_blob(vector))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._con is not None:
            yield self._con
        else:
            with self._store._connections.apart() as con, con.transaction():
                yield con

    def count(self, table: Table) -> int:
        with self._reading() as con:
            [(count,)] = con.execute(f"SELECT count(*) FROM {_physical(table)} WHERE {_kept(table)}")
            return int(count)

    def rows(self, table: Table, after: Sequence[Any] | None = None) -> Iterator[tuple[list[Any], Row]]:
        key = KEYS[table.name]
        columns = ", ".join(_read(table, name) for name in table.columns)
        behind = f"AND ({', '.join(key)}) > ({', '.join(['%s'] * len(key))})" if after else ""
        with self._reading() as con, con.cursor(name="copied") as found:
            found.itersize = 500
            found.execute(
                f"""
                SELECT {", ".join(key)}, {columns}
                FROM {_physical(table)}
                WHERE {_kept(table)} {behind}
                ORDER BY {", ".join(key)}
                """,
                list(after or ()),
                binary=table.name in VECTOR_TABLES,
            )
            for row in found:
                yield list(row[: len(key)]), _plain(table, row[len(key) :])

    def take_in(self, table: Table, rows: Sequence[Row], progress: str) -> None:
        with _uncollected(), self._store._changing() as transaction:
            _take_in(transaction, table, rows, self.vector_size)
            transaction.history.set_fact("copy", progress)

    def finish(self, progress: str) -> None:
        with self._store._changing() as transaction:
            con = transaction._con
            con.execute("SET LOCAL statement_timeout = 0; SET LOCAL maintenance_work_mem = '512MB'")
            con.execute("SELECT setval('arrivals', greatest((SELECT coalesce(max(seq), 0) FROM memories), 1))")
            for table in NUMBERED:
                con.execute(
                    f"""
                    SELECT setval(
                        pg_get_serial_sequence('{table}', 'number'),
                        greatest((SELECT coalesce(max(number), 0) FROM {table}), 1)
                    )
                    """
                )
            con.execute(
                """
                UPDATE memories SET packed_bytes = archives.bytes
                FROM archives
                WHERE archives.space = memories.space AND archives.memory = memories.seq
                """
            )
            postgres_signatures.sign_all(con)
            postgres_words.count_anew(con)
            transaction.count_again()  # but not what was created when: that was copied
            for definition in json.loads(transaction.history.fact("copy_indexes") or "[]"):
                con.execute(definition)
            con.execute("DELETE FROM facts WHERE key = 'copy_indexes'")
            transaction.history.set_fact("copy", progress)
            # At a glance, in a quarter of the time: where there are many, they are looked at again with the index of
            # vectors (vectors.py), which is made after this.
            con.execute("SET LOCAL default_statistics_target = 25")
            con.execute(f"ANALYZE {', '.join(INDEXED)}")


def backup(store: PostgresStore, path: Path, progress: Callable[[int, int], None] | None) -> Checkup:
    """Copy a store as it is at this moment into a SQLite file, which appears complete and checked, or not at all."""
    from scrubjay.stores.sqlite.copying import SqliteCopy
    from scrubjay.stores.sqlite.store import SqliteStore

    if path.exists():
        raise Conflict("The backup's target already exists.", hint="Choose another name.")
    draft = path.with_name(f"{path.name}.{random_suffix()}.new")

    def report(_table: str, done: int, of: int) -> None:
        if progress is not None:
            progress(done, of)

    try:
        with store._connections.apart() as con, con.transaction():
            con.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            with closing(SqliteStore(draft)) as target:
                copy(PostgresCopy(store, con), SqliteCopy(target), report)
                checkup = target.check(deep=True)
        os.link(draft, path)  # unlike a rename, never replaces what came to be there meanwhile
    except FileExistsError:
        raise Conflict("The backup's target already exists.") from None
    finally:
        for left in path.parent.glob(f"{draft.name}*"):
            left.unlink()
    return checkup


@contextmanager
def _uncollected() -> Iterator[None]:
    """For one batch: of what it makes nothing refers to itself, and looking for what does takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _take_in(transaction: PostgresTransaction, table: Table, rows: Sequence[Row], vector_size: int) -> None:
    con = transaction._con
    if table.name == "spaces":  # the first of all
        _put_indexes_aside(transaction)
        con.cursor().executemany(
            """
            INSERT INTO spaces (name, description, created_at, events, checkpoints, mirrored, title, deleted_at)
            VALUES (%s, %s, %s, %s, %s, %s = 1, %s, %s)
            ON CONFLICT (name) DO UPDATE SET
                description = excluded.description, created_at = excluded.created_at,
                events = excluded.events, checkpoints = excluded.checkpoints, mirrored = excluded.mirrored,
                title = excluded.title, deleted_at = excluded.deleted_at
            """,
            rows,
        )
    elif table.name == "facts":
        for key, value in rows:
            transaction.history.set_fact(key, value)
    elif table.name == "clock":
        con.execute("UPDATE counters SET clock = greatest(clock, %s)", rows[0])
    elif table.name == "memories":
        memories = [dict(zip(table.columns, row, strict=True)) for row in rows]
        for row in memories:
            row["vector_bytes"] = row["parts"] * vector_size  # as most have; the others are counted at the end
        _take_in_memories(transaction, memories)
    elif table.name in VECTOR_TABLES:
        sent = _sent([blob for *_, blob in rows])
        vectors = [(*place, vector) for (*place, _), vector in zip(rows, sent, strict=True)]
        _copy(con, table.name, table.columns, vectors, types=VECTOR_TABLES[table.name])
    elif table.name == "archived_words":
        for (space, seq), passages in groupby(rows, key=itemgetter(0, 1)):
            transaction.write_words(
                space,
                seq,
                [Passage(place, stems_of_text(stems, length)) for _, _, place, length, stems in passages],
            )
    else:
        _copy(con, table.name, [_column(table.name, name) for name in table.columns], _booleans(table, rows))


def _sent(blobs: Sequence[bytes]) -> Iterable[VectorBytes]:
    """Vectors as pgvector takes them; looked at together, if they have one length, in a twentieth of the time.

    :raises EmbeddingError: if one is not made of numbers
    """
    dimension = len(from_blob(blobs[0]))
    if {*map(len, blobs)} <= {*sizes_of(dimension)}:
        vectors = matrix(blobs, dimension)
        if vectors.any(axis=1).all():  # otherwise some may be unusable
            return rows_of_bytes(vectors)
    return [vector_bytes(from_blob(blob)) for blob in blobs]


def _put_indexes_aside(transaction: PostgresTransaction) -> None:
    """Drop them, and keep how they are made for the end; those of primary keys stay."""
    indexes = transaction._con.execute(
        """
        SELECT indexes.relname, pg_get_indexdef(indexes.oid)
        FROM pg_index
        JOIN pg_class AS indexes ON indexes.oid = indexrelid
        JOIN pg_class AS tables ON tables.oid = indrelid
        WHERE tables.relnamespace = to_regnamespace(current_schema())
        AND tables.relname = ANY(%s)
        AND NOT indisprimary
        """,
        (list(INDEXED),),
    ).fetchall()
    if indexes:  # otherwise they are put aside already
        transaction.history.set_fact("copy_indexes", json.dumps([definition for _, definition in indexes]))
        for name, _ in indexes:
            transaction._con.execute(f"DROP INDEX {name}")


def _take_in_memories(transaction: PostgresTransaction, rows: Sequence[dict[str, Any]]) -> None:
    con = transaction._con
    for row in rows:
        row["audience"] = audience_of(AccessLevel(row["access_level"]), row["user"])
    living: list[tuple[Memory, dict[str, Any]]] = []
    words: list[Row] = []

    def memories() -> Iterator[Row]:
        """The rows; and while the server still writes them, what their words are."""
        yield from (tuple(row.values()) for row in rows)
        living.extend((memory_of([row[name] for name in FIELDS]), row) for row in rows if row["state"] < 4)
        words.extend(_words(one for one in living if not put_away(one[1])))

    _copy(con, "memories", [_column("memories", name) for name in rows[0]], memories())
    tags = [(memory.space, memory.seq, tag) for memory, _ in living for tag in {*memory.tags, *memory.auto_tags}]
    _copy(con, "tags", ("space", "memory", "tag"), tags)
    _copy(con, "words", ("space", "memory", "place", "length", "terms", *CARRIED), words)


_carried = itemgetter(*(NAMED.get(name, name) for name in CARRIED))


def _words(memories: Iterable[tuple[Memory, dict[str, Any]]]) -> Iterator[Row]:
    for memory, row in memories:
        carried = _carried(row)
        for passage in passages_of(memory):
            yield memory.space, memory.seq, passage.place, passage.length, passage.terms(memory.space), *carried


def _copy(con: Any, table: str, columns: Iterable[str], rows: Iterable[Row], *, types: Sequence[str] = ()) -> None:
    """With `types`, in binary form."""
    how = " (FORMAT BINARY)" if types else ""
    with con.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN{how}") as copying:
        if types:
            copying.set_types(types)
            for row in rows:
                copying.write_row(row)
        else:
            for lines in batched(map(copied_line, rows), 100):
                copying.write("".join(lines))


def _physical(table: Table) -> str:
    return {"clock": "counters", "archived_words": ARCHIVED_WORDS}.get(table.name, table.name)


def _kept(table: Table) -> str:
    return f"key NOT IN {KEPT_BACK}" if table.name == "facts" else "TRUE"


def _column(table: str, name: str) -> str:
    if table == "memories" and name in ("conversation", "session"):
        return f"{name}_id"
    return "user_id" if name == "user" else name


def _read(table: Table, name: str) -> str:
    if name == "vector":
        return "vector_send(vector)"
    return f"{name}::INTEGER" if (table.name, name) in BOOLEANS else _column(table.name, name)


def _plain(table: Table, row: Row) -> Row:
    if table.name in VECTOR_TABLES:
        return (*row[:-1], to_floats(vector_of(row[-1])))
    if table.name == "archived_words":
        return (*row[:-1], stems_as_text({labelled[1:]: LABELS[labelled[0]] for labelled in row[-1]}))
    return tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)


def _booleans(table: Table, rows: Sequence[Row]) -> Sequence[Row]:
    """With the column types of the database, where these are not numbers."""
    return [_bool(table, row) for row in rows] if any(table.name == name for name, _ in BOOLEANS) else rows


def _bool(table: Table, row: Row) -> Row:
    return tuple(
        bool(value) if (table.name, name) in BOOLEANS else value for name, value in zip(table.columns, row, strict=True)
    )
