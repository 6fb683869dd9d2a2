"""A PostgreSQL store as one side of a copy. Rows come in through COPY, words and tags of memories beside them.

Both sides work at once: while the server writes a batch, the next one is read and made ready here. At the end the
server works on two connections, one for words and one for the rest.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from scrubjay.errors import Conflict
from scrubjay.stores.copying import OFTEN, Copyable, Row, Table, copy, put_away, stems_as_text, stems_of_text
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.checkup import measure_vectors
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.errors import translated_errors
from scrubjay.stores.postgres.filters import CARRIED, audience_of
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.postgres.transaction import PostgresTransaction
from scrubjay.stores.postgres.values import (
    VectorBytes,
    copied_lines,
    copied_vectors,
    copy_in,
    rows_of_bytes,
    vector_bytes,
    vector_of,
)
from scrubjay.stores.postgres.words import COUNTS, Passage, passages_in
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.sqlite.filters import sizes_of
from scrubjay.stores.sqlite.vectors import from_blob, matrix, shorten, to_floats
from scrubjay.stores.tables.rows import strings
from scrubjay.text.words import found_by_parts
from scrubjay.values.memory import AccessLevel, State, random_suffix, text_of

KEPT_BACK = "('schema', 'copy', 'copy_indexes')"  # facts about this database alone

KEYS: Mapping[str, tuple[str, ...]] = {
    "spaces": ("name",),
    "memories": ("space", "seq"),
    "aliases": ("space", "alias"),
    "versions": ("space", "memory", "version"),
    "ancestry": ("space", "memory", "origin"),
    "vectors": ("space", "memory", "model", "part"),
    "pending": ("space", "memory"),
    "owed": ("memory",),
    "links": ("source", "target", "kind"),
    "asides": ("memory", "role", "other"),
    "events": ("space", "number"),
    "recalls": ("space", "number"),
    "recall_counts": ("space", "user_id", "hour"),
    "activity": ("space", "part", "at", "audience"),
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
BESIDE = ("words", "tags")  # on another connection, at the same time
# Statistics are made at a glance, in a quarter of the time: where there are many rows, they are looked at again with
# the index of vectors (vectors.py), which is made after this.
LONG_WORK = """
    SET LOCAL statement_timeout = 0;
    SET LOCAL maintenance_work_mem = '256MB';
    SET LOCAL default_statistics_target = 25
"""
LABELS = {"D": 1} | {label: count for count, label in COUNTS.items() if label} | {"A": OFTEN}
TOLD = (  # what tags and words are made of
    "space", "seq", "state", "content", "content_length", "detail", "topic", "title", "path", "tags", "auto_tags",
    "also",
)  # fmt: skip
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

Write = Callable[[PostgresTransaction], None]


class PostgresCopy(Copyable):
    shortened = staticmethod(shorten)
    vector_size = 0  # bytes that a vector of the other side will take here, if it has any

    def __init__(self, store: PostgresStore, con: Connection | None = None) -> None:
        """With a connection that is inside a transaction everything is read as of one moment."""
        self._store = store
        self._con = con
        self.origin = store.origin
        self._writer = ThreadPoolExecutor(1, "scrubjay-copy")
        self._written: Future[None] | None = None  # of the batch that the writer has

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
            [(count,)] = con.execute(f"SELECT count(*) FROM {_physical(table)} WHERE {_keep_text(table)}")
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
                WHERE {_keep_text(table)} {behind}
                ORDER BY {", ".join(key)}
                """,
                list(after or ()),
                binary=table.name == "vectors",
            )
            for row in found:
                yield list(row[: len(key)]), _plain(table, row[len(key) :])

    def take_in(self, table: Table, rows: Sequence[Row], progress: str) -> None:
        with _without_garbage_collection(), translated_errors():
            write = _made_ready(table, rows, self.vector_size)
        self.settle()
        self._written = self._writer.submit(self._write, write, progress)

    def _write(self, write: Write, progress: str) -> None:
        with self._store._changing() as transaction:
            write(transaction)
            transaction.history.set_fact("copy", progress)

    def settle(self) -> None:
        written, self._written = self._written, None
        if written is not None:
            written.result()

    def finish(self, progress: str) -> None:
        """Words by themselves, beside the rest. What was done to them stays if the rest fails, and is done again."""
        self.settle()
        with self._store._changing() as transaction, ThreadPoolExecutor(1, "scrubjay-copy") as beside:
            words = beside.submit(self._finish_words)
            con = transaction._con
            con.execute(f"{LONG_WORK}; SET LOCAL idle_in_transaction_session_timeout = 0")  # it may wait for words
            _count_on(con, "'arrivals'", "SELECT max(seq) FROM memories")
            for table in NUMBERED:
                _count_on(con, f"pg_get_serial_sequence('{table}', 'number')", f"SELECT max(number) FROM {table}")
            con.execute(
                """
                UPDATE memories SET packed_bytes = archives.bytes
                FROM archives
                WHERE archives.space = memories.space AND archives.memory = memories.seq
                """
            )
            postgres_signatures.sign_all(con)
            measure_vectors(transaction)
            for definition in _put_aside(con):
                if _table_of(definition) not in BESIDE:
                    con.execute(definition)
            con.execute(f"ANALYZE {', '.join(name for name in INDEXED if name not in BESIDE)}")
            words.result()
            con.execute("DELETE FROM facts WHERE key = 'copy_indexes'")
            transaction.history.set_fact("copy", progress)

    def _finish_words(self) -> None:
        with self._store._connections.apart() as con, con.transaction():
            con.execute(LONG_WORK)
            postgres_words.count_anew(con)
            definitions = _put_aside(con)
            for definition in definitions:
                if _table_of(definition) in BESIDE:
                    con.execute(definition)
            left = [definition for definition in definitions if _table_of(definition) not in BESIDE]
            con.execute("UPDATE facts SET value = %s WHERE key = 'copy_indexes'", (json.dumps(left),))
            con.execute(f"ANALYZE {', '.join(BESIDE)}")


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
def _without_garbage_collection() -> Iterator[None]:
    """For one batch: of what it makes nothing refers to itself, and looking for what does takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _made_ready(table: Table, rows: Sequence[Row], vector_size: int) -> Write:
    """What writes these rows. All that takes long here is done before."""
    match table.name:
        case "spaces" | "facts" | "clock" | "archived_words":
            return partial(ONE_BY_ONE[table.name], rows)
        case "memories":
            return _memories(dict(zip(table.columns, zip(*rows, strict=True), strict=True)), vector_size)
        case "vectors":
            sent = _send_vectors([blob for *_, blob in rows])
            vectors = copied_vectors((*place, vector) for (*place, _), vector in zip(rows, sent, strict=True))
            return lambda transaction: copy_in(transaction._con, "vectors", table.columns, vectors, binary=True)
        case name:
            lines = copied_lines(_booleans(table, rows))
            return lambda transaction: copy_in(transaction._con, name, table.columns, lines)


def _spaces(rows: Sequence[Row], transaction: PostgresTransaction) -> None:
    _put_indexes_aside(transaction)  # they are the first of all
    transaction._con.cursor().executemany(
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


def _facts(rows: Sequence[Row], transaction: PostgresTransaction) -> None:
    for key, value in rows:
        transaction.history.set_fact(key, value)


def _clock(rows: Sequence[Row], transaction: PostgresTransaction) -> None:
    transaction._con.execute("UPDATE counters SET clock = greatest(clock, %s)", rows[0])


def _archived_words(rows: Sequence[Row], transaction: PostgresTransaction) -> None:
    for (space, seq), passages in groupby(rows, key=itemgetter(0, 1)):
        transaction.write_words(
            space,
            seq,
            [Passage(place, stems_of_text(stems, length)) for _, _, place, length, stems in passages],
        )


ONE_BY_ONE: Mapping[str, Callable[[Sequence[Row], PostgresTransaction], None]] = {
    "spaces": _spaces,
    "facts": _facts,
    "clock": _clock,
    "archived_words": _archived_words,
}


def _send_vectors(blobs: Sequence[bytes]) -> Iterable[VectorBytes]:
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


def _put_aside(con: Connection) -> list[str]:
    """How the indexes are made that are still to be."""
    row = con.execute("SELECT value FROM facts WHERE key = 'copy_indexes'").fetchone()
    return [] if row is None else list(json.loads(row[0]))


def _count_on(con: Connection, sequence: str, last: str) -> None:
    """Let a sequence go on after the last number; in two statements: Citus has them in two places."""
    [(number,)] = con.execute(last)
    con.execute(f"SELECT setval({sequence}, %s)", (number or 1,))


def _table_of(definition: str) -> str:
    return definition.partition(" USING ")[0].rpartition(".")[2]


def _memories(columns: dict[str, Sequence[Any]], vector_size: int) -> Write:
    """Memories, with their tags and words. Nothing else of them is needed, so none is made of a row."""
    columns["vector_bytes"] = [parts * vector_size for parts in columns["parts"]]  # as most have; see `measure_vectors`
    columns["audience"] = [
        audience_of(AccessLevel(level), user)
        for level, user in zip(columns["access_level"], columns["user_id"], strict=True)
    ]
    rows = copied_lines(zip(*columns.values(), strict=True))
    tags: list[Row] = []
    words: list[Row] = []
    carried = zip(*(columns[name] for name in CARRIED), strict=True)
    for told, beside in zip(zip(*(columns[name] for name in TOLD), strict=True), carried, strict=True):
        space, seq, state, content, length, detail, topic, title, path, given, added, also = told
        if state == State.PURGED:
            continue
        given = strings(given)
        tags += [(space, seq, tag) for tag in {*given, *strings(added)}]
        if put_away(content, length):
            continue
        text = content if detail == "{}" else text_of(content, json.loads(detail))
        for passage in passages_in(found_by_parts(text, topic or title, path, given, "; ".join(strings(also)))):
            words.append((space, seq, passage.place, passage.length, passage.terms(space), *beside))
    tag_lines, word_lines = copied_lines(tags), copied_lines(words)

    def write(transaction: PostgresTransaction) -> None:
        con = transaction._con
        copy_in(con, "memories", list(columns), rows)
        copy_in(con, "tags", ("space", "memory", "tag"), tag_lines)
        with _without_counting(con):
            copy_in(con, "words", ("space", "memory", "place", "length", "terms", *CARRIED), word_lines)

    return write


@contextmanager
def _without_counting(con: Connection) -> Iterator[None]:
    """Words come without being counted by audience, which would take ten times as long: `count_anew` does that."""
    con.execute("ALTER TABLE words DISABLE TRIGGER words_came")
    yield
    con.execute("ALTER TABLE words ENABLE TRIGGER words_came")


def _physical(table: Table) -> str:
    return {"clock": "counters", "archived_words": ARCHIVED_WORDS}.get(table.name, table.name)


def _keep_text(table: Table) -> str:
    return f"key NOT IN {KEPT_BACK}" if table.name == "facts" else "TRUE"


def _read(table: Table, name: str) -> str:
    if name == "vector":
        return "vector_send(vector)"
    return f"{name}::INTEGER" if (table.name, name) in BOOLEANS else name


def _plain(table: Table, row: Row) -> Row:
    if table.name == "vectors":
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
