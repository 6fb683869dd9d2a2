"""The tables of vec1, SQLite's own extension for nearest neighbours: made, filled, kept in step, retired.

A table holds a row per vector: a compressed code, and the numbers that filters ask for. It is derived from `memories`
and `vectors` and may be thrown away at any time.

    rowid = memories.seq × 4096 + part

vec1 keeps a copy of every vector, but searches by codes alone; it needs the vector again only to take its code out. So
the copy is blanked as soon as it is written (`_blank`) and put back for that moment (`_restore`): from `vectors`, or
from `former_vectors` if the transaction has replaced it there. vec1 is given float32: what the file's bytes stand for.

Every transaction brings the tables in step with the memories it has changed (`mirror`), found by their change number,
before it commits; so a table that is being filled is written twice over meanwhile, and is whole when it is switched to.
A process that cannot do so (no extension, a damaged table) retires the table instead of leaving it wrong.
"""

# ruff: noqa: S608 -- names are put together from constants and numbers; values are always parameters

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isqrt
from typing import Any
from weakref import WeakSet
from zlib import crc32

import apsw

from scrubjay.stores.promises.memories import FURTHER_MODELS
from scrubjay.stores.sqlite.filters import dimension_of, further_models, of_dimension
from scrubjay.values.frozen import dataclass

FROM_VECTORS = 20_000  # fewer are compared in memory, exactly and as fast
GROWTH = 4  # times what it was trained on; then another is trained
LISTS = 128  # at least, else the root of their number, over which vectors are spread, by nearness
SAMPLE = 5_000  # vectors to learn from …
SAMPLE_PER_LIST = 20  # … and more for many lists
CODE_BYTES = 48
CODES_SHARE = 20  # of the file are not much more than all codes, and the numbers beside them …
MOST_ROOM = 64 * 1024  # … for which a connection uses at most this many KiB
ANY = "SELECT 1 FROM vector_indexes LIMIT 1"  # whether there is a table
BATCH = 500  # memories per transaction of filling or emptying
PARTS = 4096
NEVER = 2**62  # when a memory without a date expires
COLUMNS = (
    "space", "audience", "user", "state", "kind", "category", "importance", "created", "expires", "conversation"
)  # fmt: skip
BROKEN = (apsw.CorruptError, apsw.SQLError, apsw.ConstraintError, apsw.MismatchError)  # a table that is of no use

Row = tuple[Any, ...]

_able: WeakSet[apsw.Connection] = WeakSet()


@dataclass(frozen=True, slots=True)
class Table:
    number: int
    dimension: int
    state: str
    buckets: int
    trained: int
    filled: int
    model: str | None = None  # a further one, whose vectors it holds
    lean: int = 1  # 0: made by an earlier version, with a copy of every vector

    @property
    def name(self) -> str:
        return f"near_{self.number}"


def able(con: apsw.Connection) -> bool:
    """Whether this connection can use the tables; the extension is loaded when that is first asked."""
    if con not in _able:
        if not _load(con):
            return False
        _make_room(con)
        _able.add(con)
    return True


def _load(con: apsw.Connection) -> bool:
    try:
        from apsw import sqlite_extra  # not for a store without an index

        sqlite_extra.load(con, "vec1")
    except (ImportError, ValueError, FileNotFoundError, apsw.Error):
        return False  # another build of apsw
    return True


def _make_room(con: apsw.Connection) -> None:
    """Let the connection keep the codes in memory. Every search reads a quarter of them, and much else that is not
    needed again but would push them out."""
    file = int(con.pragma("page_count")) * int(con.pragma("page_size"))
    without = int(con.pragma("cache_size"))  # KiB, below zero
    con.pragma("cache_size", without - min(MOST_ROOM, file // CODES_SHARE // 1024))


def tables(con: apsw.Connection, *states: str) -> list[Table]:
    """The tables in these states, oldest first. One of a model that is kept no longer is as good as retired."""
    rows = con.execute(
        """
        SELECT
            number, dimension,
            CASE WHEN model IS NULL OR model IN (
                SELECT listed.value FROM facts CROSS JOIN json_each(facts.value) AS listed WHERE facts.key = ?
            ) THEN state ELSE 'retired' END,
            buckets, trained, filled, model, lean
        FROM vector_indexes
        ORDER BY number
        """,
        (FURTHER_MODELS,),
    )
    return [table for table in (Table(*row) for row in rows) if table.state in states]


def code(name: str) -> int:
    """A kind or category as a number, the same for ever; two with one number would only cost time."""
    return crc32(name.encode())


def thousandths(importance: float) -> int:
    return int(importance * 1000)


# --- keeping in step -------------------------------------------------------------------------------------------------


def mirror(con: apsw.Connection, change: int) -> None:
    """Bring every table in step with the memories that carry this change number, in the transaction that wrote them."""
    _mirror(con, "memories.change = ?", (change,))  # memories_by_change


def _mirror(con: apsw.Connection, where: str, values: Sequence[Any]) -> None:
    for table in tables(con, "filling", "ready"):
        try:
            if not able(con):
                retire(con, table)
                continue
            with con:  # a savepoint
                _sync(con, table, where, values)
        except BROKEN:
            retire(con, table)
    con.execute("DELETE FROM former_vectors WHERE TRUE")  # without a condition a page is written, though it is empty


def retire(con: apsw.Connection, table: Table) -> None:
    """Stop searching it; it is emptied later."""
    con.execute("UPDATE vector_indexes SET state = 'retired' WHERE number = ?", (table.number,))


def retire_all(con: apsw.Connection) -> None:
    con.execute("UPDATE vector_indexes SET state = 'retired'")


def _sync(con: apsw.Connection, table: Table, where: str, values: Sequence[Any]) -> None:
    """Make the rows of some memories what they should be."""
    from scrubjay.stores.sqlite.vectors import as_floats  # numpy is not for a search by words

    wanted: dict[int, dict[int, Row]] = {}
    for (seq,) in con.execute(f"SELECT seq FROM memories WHERE {where}", values):
        wanted[seq] = {}
    former = "SELECT id, vector FROM former_vectors WHERE model = ?"
    replaced = {rowid: as_floats(blob) for rowid, blob in con.execute(former, (table.model or "",))}
    rows = con.execute(
        f"""
        SELECT seq, part, space, audience, user_id, state, kind, category, importance, created_at,
            coalesce(expires_at, ?), coalesce(conversation_id, 0), vectors.vector
        FROM memories
        CROSS JOIN vectors ON vectors.memory = memories.seq
        WHERE {where}
        AND memories.state < 4
        AND vectors.model = ?
        AND {of_dimension(table.dimension)}
        """,
        (NEVER, *values, table.model or ""),
    )
    for seq, part, space, audience, user, state, kind, category, importance, *rest, vector in rows:
        numbers = (space, audience, user, state, code(kind), code(category), thousandths(importance), *rest)
        wanted[seq][part] = (as_floats(vector), *numbers)
    for seq, parts in wanted.items():
        _sync_memory(con, table, seq, parts, replaced)


def _sync_memory(
    con: apsw.Connection, table: Table, seq: int, wanted: dict[int, Row], replaced: Mapping[int, bytes]
) -> None:
    stored_rows = _stored_rows(con, table, seq)
    for part in sorted({*wanted, *stored_rows}):
        rowid, row, stored = seq * PARTS + part, wanted.get(part), stored_rows.get(part)
        if stored is not None:
            known = stored[0] or replaced.get(rowid) or (None if row is None else row[0])
            if row is not None and (known, *stored[1:]) == row:
                continue
            _restore(con, table, rowid, known)
        if row is None:
            con.execute(f"DELETE FROM {table.name} WHERE rowid = ?", (rowid,))
        elif stored is None:
            con.execute(
                f"INSERT INTO {table.name} (rowid, vector, {', '.join(COLUMNS)}) VALUES (?, ?{', ?' * len(COLUMNS)})",
                (rowid, *row),
            )
        else:
            con.execute(
                f"UPDATE {table.name} SET vector = ?, {', '.join(f'{name} = ?' for name in COLUMNS)} WHERE rowid = ?",
                (*row, rowid),
            )
        if row is not None:
            _blank(con, table, rowid)


def _stored_rows(con: apsw.Connection, table: Table, seq: int) -> dict[int, Row]:
    """The rows of a memory, by part. The table behind it says which there are: asking vec1 for one that is not
    there costs ten times as much, and a new memory has none."""
    there: list[Any] = con.execute(
        f"SELECT id FROM {table.name}_base WHERE id BETWEEN ? AND ?", (seq * PARTS, seq * PARTS + PARTS - 1)
    ).fetchall()
    statement = f"SELECT vector, {', '.join(COLUMNS)} FROM {table.name} WHERE rowid = ?"
    rows = [(rowid - seq * PARTS, con.execute(statement, (rowid,)).fetchone()) for (rowid,) in there]
    return {part: row for part, row in rows if row is not None}


def _restore(con: apsw.Connection, table: Table, rowid: int, vector: bytes | None) -> None:
    """Let vec1 find the code of a row by its vector. If that is not known, vec1 will call the row corrupt."""
    con.execute(f"UPDATE {table.name}_base SET vector = ? WHERE id = ?", (vector, rowid))


def _blank(con: apsw.Connection, table: Table, rowid: int) -> None:
    con.execute(f"UPDATE {table.name}_base SET vector = NULL WHERE id = ?", (rowid,))


def _close_up(con: apsw.Connection, table: Table, first: int, last: int) -> None:
    """Write the rows of these memories again, now that their vectors are blank, on as few pages as they need."""
    rows = con.execute(
        f"DELETE FROM {table.name}_base WHERE id BETWEEN ? AND ? RETURNING *",
        (first * PARTS, last * PARTS + PARTS - 1),
    ).fetchall()
    if rows:
        con.executemany(f"INSERT INTO {table.name}_base VALUES ({', '.join('?' * len(rows[0]))})", rows)


# --- making and unmaking ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """A table that should be made."""

    dimension: int
    buckets: int
    vectors: int
    model: str | None = None


def plan(con: apsw.Connection, *, from_vectors: int) -> Plan | None:
    """What is missing: a first table, or one trained on more; None if all is well, or a table is being filled."""
    if tables(con, "filling"):
        return None
    for model in (None, *further_models(con)):
        newest = "SELECT length(vector) FROM vectors WHERE model = ? ORDER BY memory DESC LIMIT 1"
        for (size,) in con.execute(newest, (model or "",)):
            dimension = dimension_of(size)
            enough = _enough(con, dimension, model, from_vectors)
            # No further than there: all of them are counted only when a table is made.
            some = "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE model = ? LIMIT ?)"
            if con.execute(some, (model or "", enough)).get >= enough:
                vectors = con.execute("SELECT count(*) FROM vectors WHERE model = ?", (model or "",)).get
                return _plan(dimension, vectors, model)
    return None


def _enough(con: apsw.Connection, dimension: int, model: str | None, from_vectors: int) -> int:
    """How many vectors there must be for a table, or for another one."""
    ready = [
        table for table in tables(con, "ready") if (table.dimension, table.model, table.lean) == (dimension, model, 1)
    ]
    return max([from_vectors, *(GROWTH * table.trained for table in ready)])


def _plan(dimension: int, vectors: int, model: str | None) -> Plan:
    return Plan(dimension, max(LISTS, isqrt(vectors)), vectors, model)


def sample(con: apsw.Connection, plan: Plan) -> list[bytes]:
    """Vectors from all over the store to learn from."""
    from scrubjay.stores.sqlite.vectors import as_floats  # numpy is not for a search by words

    wanted = max(SAMPLE, SAMPLE_PER_LIST * plan.buckets)
    [(last,)] = con.execute("SELECT max(id) FROM vectors")
    step = max(1, last // wanted)
    rows = con.execute(
        # By the primary key, evenly: ids are given in order of arrival.
        f"""
        WITH RECURSIVE places (id) AS (SELECT 1 UNION ALL SELECT id + ?1 FROM places WHERE id + ?1 <= ?2)
        SELECT vectors.vector
        FROM places
        CROSS JOIN vectors ON vectors.id = places.id
        WHERE {of_dimension(plan.dimension)}
        AND vectors.model = ?
        """,
        (step, last, plan.model or ""),
    )
    return [as_floats(vector) for (vector,) in rows]


def train(vectors: Sequence[bytes], plan: Plan) -> bytes | None:
    """What vec1 learns from a sample, away from the store: it takes seconds. None if it cannot be done here."""
    con = apsw.Connection("")
    try:
        if not _load(con) or len(vectors) < 1_000:
            return None
        con.execute("CREATE TABLE sample (vector)")
        con.executemany("INSERT INTO sample VALUES (?)", ((vector,) for vector in vectors))
        size = next(size for size in range(min(CODE_BYTES, plan.dimension), 0, -1) if plan.dimension % size == 0)
        options = f'{{distance: "cos", codesize: {size}, nbucket: {plan.buckets}}}'
        model: bytes = con.execute("SELECT vec1_train(vector, ?) FROM sample", (options,)).get
        return model
    finally:
        con.close()


def begin(con: apsw.Connection, plan: Plan, model: bytes) -> None:
    """Make an empty table; from now on every write goes there too."""
    if tables(con, "filling") or not able(con):
        return
    [(number,)] = con.execute(
        """
        INSERT INTO vector_indexes (dimension, state, buckets, trained, filled, model, lean)
        VALUES (?, 'filling', ?, ?, 0, ?, 1)
        RETURNING number
        """,
        (plan.dimension, plan.buckets, plan.vectors, plan.model),
    )
    con.execute(f"CREATE VIRTUAL TABLE near_{number} USING vec1 (vector, {', '.join(COLUMNS)})")
    con.execute(f"INSERT INTO near_{number} (cmd, arg) VALUES ('rebuild', ?)", (model,))


def fill(con: apsw.Connection, table: Table) -> None:
    """Take in some more memories; when there is none left, searches use this table."""
    last = con.execute(
        "SELECT max(seq) FROM (SELECT seq FROM memories WHERE seq > ? ORDER BY seq LIMIT ?)", (table.filled, BATCH)
    ).get
    try:
        if last is None:
            con.execute(
                "UPDATE vector_indexes SET state = 'retired' WHERE state = 'ready' AND model IS ?", (table.model,)
            )
            con.execute("UPDATE vector_indexes SET state = 'ready' WHERE number = ?", (table.number,))
            return
        with con:
            _sync(con, table, "memories.seq BETWEEN ? AND ?", (table.filled + 1, last))
            _close_up(con, table, table.filled + 1, last)
        con.execute("UPDATE vector_indexes SET filled = ? WHERE number = ?", (last, table.number))
    except BROKEN:
        retire(con, table)


def empty(con: apsw.Connection, table: Table) -> None:
    """Take some rows out of a retired table, and in the end the table itself.

    Dropping a large one at once would hold the writers off for seconds: every page is overwritten. Its rows are taken
    from the tables that it consists of, for the extension would rebuild a list after each.
    """
    for part, rows in (("base", BATCH), ("idx", BATCH // 10), ("meta", BATCH // 10)):
        name = f"{table.name}_{part}"
        if name in shadows(con, table):
            con.execute(f"DELETE FROM {name} WHERE id IN (SELECT id FROM {name} LIMIT ?)", (rows,))
            if con.changes():
                return
    drop(con, table)


def complete(con: apsw.Connection, table: Table) -> bool:
    """Whether it holds a code for each vector that it should, and nothing else.

    Its own check would miss the vectors (`_blank`); so all that it has is asked for.
    """
    wanted = {
        rowid
        for (rowid,) in con.execute(
            f"""
            SELECT memories.seq * {PARTS} + vectors.part
            FROM vectors
            CROSS JOIN memories ON memories.seq = vectors.memory
            WHERE memories.state < 4
            AND vectors.model = ?
            AND {of_dimension(table.dimension)}
            """,
            (table.model or "",),
        )
    }
    if table.state == "filling":
        wanted = {rowid for rowid in wanted if rowid // PARTS <= table.filled}
    options = f'{{"k": {len(wanted) + BATCH}, "nprobe": {table.buckets}}}'
    anything = b"\0\0\x80\x3f" * table.dimension  # ones
    found = {rowid for (rowid,) in con.execute(f"SELECT rowid FROM {table.name}(?, ?)", (anything, options))}
    return wanted == found if table.state == "ready" else wanted <= found


def drop(con: apsw.Connection, table: Table) -> None:
    """Remove a table, whatever its condition."""
    try:
        con.execute(f"DROP TABLE IF EXISTS {table.name}")
    except BROKEN:  # what stands behind it is gone or garbage: take the pieces out one by one
        for shadow in shadows(con, table):
            con.execute(f'DROP TABLE "{shadow}"')
        _forget(con, table)
    con.execute("DELETE FROM vector_indexes WHERE number = ?", (table.number,))
    con.execute("DELETE FROM former_vectors")  # an earlier version leaves what it replaced


def shadows(con: apsw.Connection, table: Table) -> Iterator[str]:
    """The ordinary tables that a virtual one consists of."""
    names = con.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?", (f"{table.name}_*",))
    yield from [str(name) for (name,) in names.fetchall()]


def _forget(con: apsw.Connection, table: Table) -> None:
    """Take a virtual table that cannot be opened out of the schema."""
    con.pragma("writable_schema", "ON")
    try:
        con.execute("DELETE FROM sqlite_schema WHERE type = 'table' AND name = ?", (table.name,))
        version = con.pragma("schema_version")
        con.pragma("schema_version", version + 1)
    finally:
        con.pragma("writable_schema", "RESET")
