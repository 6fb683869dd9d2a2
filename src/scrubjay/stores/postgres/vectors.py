"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits.

There are three ways, and the number of memories in scope decides. Few are compared one by one, exactly. Thousands are
compared by their signatures, and the likely ones exactly (see postgres/signatures.py). In a large store there is an
HNSW index besides, over half precision, and large scopes are looked for there: the filter is asked on the way, and the
scan goes on until enough are admitted. What it finds is weighed again by the exact vectors; if it gives up before there
are enough, signatures are compared. PostgreSQL's planner is asked how many there are, never which way to take: for a
filter that admits one row in a hundred it would take the index and lose most answers.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import psycopg
from psycopg import sql

from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres.filters import Restriction, source_of
from scrubjay.stores.postgres.values import Texts, fetch_rows, vector_bytes, vector_of
from scrubjay.stores.promises.memories import FURTHER_MODELS
from scrubjay.stores.tables.rows import strings
from scrubjay.values.search import Match

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

Connection = psycopg.Connection[tuple[Any, ...]]


INDEX_FROM = 20_000  # vectors; fewer are compared as quickly, and a store costs a tenth of what it does with an index
EXACT_UP_TO = 500  # memories in scope: about as many are compared exactly in any case
# With more than the root of this times the vectors in the index, the index is quicker than signatures: the one has to
# pass over what the filter leaves out, the other looks at all that it admits. Both take as long for 32,000 of 100,000.
PASSED_OVER = 10_000
MAX_INDEXED = 4_000  # dimensions that pgvector's index takes in half precision


class Kept(NamedTuple):
    """Which rows of `vectors` are a model's."""

    condition: str
    values: tuple[str, ...]


OWN = Kept("vectors.model = ''", ())


def vectors_of_model(model: str | None) -> Kept:
    """The vectors of a further model, by its fingerprint; None: of the store's own model."""
    return OWN if model is None else Kept("vectors.model <> '' AND vectors.model = %s", (model,))  # vectors_by_model


def further_models(con: Connection) -> tuple[str, ...]:
    """The fingerprints of the models whose vectors the store has beside its own."""
    row = con.execute("SELECT value FROM facts WHERE key = %s", (FURTHER_MODELS,)).fetchone()
    return () if row is None else strings(row[0])


def index_name(dimension: int, model: str | None) -> str:
    return f"vectors_by_meaning_{dimension}" + ("" if model is None else f"_{crc32(model.encode()):08x}")


def nearest(
    con: Connection,
    vector: Vector,
    restriction: Restriction,
    limit: int,
    *,
    scope: float,
    indexed: int,
    model: str | None = None,
) -> list[Match]:
    """`scope`: about how many memories are meant, 0 if nothing may be missed; `indexed`: how many vectors the index
    holds, 0 if there is none."""
    own = vectors_of_model(model)
    if scope <= EXACT_UP_TO or not limit:
        return _exactly(con, vector, restriction, limit, own)
    if indexed and scope**2 > PASSED_OVER * indexed:
        found = _by_index(con, vector, restriction, limit, own)
        if len(found) >= limit:
            return found
    # Signatures are of the store's own model.
    return (
        _by_signatures(con, vector, restriction, limit)
        if model is None
        else _exactly(con, vector, restriction, limit, own)
    )


def missing_index(con: Connection) -> tuple[str | None, int] | None:
    """The model whose vectors are many and have no index, and their length."""
    for model in (None, *further_models(con)):
        which, values = vectors_of_model(model)
        row = con.execute(f"SELECT vector_dims(vector) FROM vectors WHERE {which} LIMIT 1", values).fetchone()
        if row is not None and row[0] <= MAX_INDEXED and not count_indexed(con, row[0], model):
            some = f"SELECT count(*) FROM (SELECT 1 FROM vectors WHERE {which} LIMIT %s) AS counted"
            [(rows,)] = con.execute(some, (*values, INDEX_FROM))
            if rows >= INDEX_FROM:
                return model, row[0]
    return None


def count_indexed(con: Connection, dimension: int, model: str | None) -> int:
    """How many vectors of this length the model's index holds, as of when it was last looked at; 0: there is none."""
    row = con.execute(
        """
        SELECT greatest(reltuples, 1)::BIGINT
        FROM pg_index
        JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indexrelid = to_regclass(%s)
        AND indisvalid
        """,
        (index_name(dimension, model),),
    ).fetchone()
    return 0 if row is None else int(row[0])


def make_index(con: Connection, dimension: int, model: str | None) -> None:
    """Others read and write meanwhile. What an attempt that was cut off left is removed first."""
    name = index_name(dimension, model)
    con.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    con.execute("SET maintenance_work_mem = '512MB'")
    con.execute(
        f"""
        CREATE INDEX CONCURRENTLY {name}
        ON vectors USING hnsw ((vector::HALFVEC({dimension})) halfvec_ip_ops)
        WHERE model = {sql.Literal(model or "").as_string(con)} AND vector_dims(vector) = {dimension}
        """
    )
    con.execute("ANALYZE vectors, memories, words, tags, signatures")


def drop_indexes(con: Connection) -> None:
    names = con.execute(
        """
        SELECT indexname
        FROM pg_indexes
        WHERE schemaname = current_schema()
        AND indexname LIKE '%vectors_by_meaning_%'
        """
    )
    for (name,) in names.fetchall():
        con.execute(f"DROP INDEX IF EXISTS {name}")


def scope(con: Connection, restriction: Restriction) -> float:
    """About how many memories are meant, as the planner takes it: counting costs more than a small scope does."""
    where, values = restriction.condition()
    [([explained],)] = con.execute(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memories WHERE {where}", values)
    return float(explained["Plan"]["Plan Rows"])


def _by_signatures(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
    found: list[Match] = []
    for rows in postgres_signatures.likely(con, vector, restriction, limit):
        found = [Match(memory, -distance) for memory, distance, *_ in rows]
        if len(found) >= limit:
            break  # otherwise long memories took several places each
    return found


def _best(rows: Iterable[tuple[Any, ...]], limit: int) -> list[Match]:
    """Of each memory its nearest part; nearest first. Rows begin with what orders them and end with the memory."""
    best: dict[str, float] = {}
    for distance, _, _, memory in sorted(rows):
        best.setdefault(memory, distance)
    return [Match(memory, -distance) for memory, distance in islice(best.items(), limit)]


def _by_index(con: Connection, vector: Vector, restriction: Restriction, limit: int, own: Kept = OWN) -> list[Match]:
    """What the index finds, weighed exactly; fewer than asked for if it gave up."""
    where, values = restriction.condition()
    if own is OWN:
        tables, signatures = source_of("signatures", where)
        part = f"{signatures}.part = vectors.part"
    else:
        tables, part = "memories", "TRUE"
    depth = limit + limit // 4
    asked = vector_bytes(vector)
    while True:
        rows = fetch_rows(
            con,
            # The index of this length; OFFSET keeps what is asked of memories behind it, each by its primary key.
            f"""
            SELECT vectors.vector <#> %s, -admitted.created_at, -vectors.memory, admitted.id
            FROM vectors
            CROSS JOIN LATERAL (
                SELECT memories.id, memories.created_at
                FROM {tables}
                WHERE memories.space = vectors.space
                AND memories.seq = vectors.memory
                AND {part}
                AND {where}
                OFFSET 0
            ) AS admitted
            WHERE vector_dims(vectors.vector) = {len(vector)}
            AND {own.condition}
            ORDER BY vectors.vector::HALFVEC({len(vector)}) <#> %s::HALFVEC({len(vector)})
            LIMIT %s
            """,
            (asked, *values, *own.values, asked, depth),
            binary=True,
        )
        found = _best(rows, limit)
        if len(found) >= limit or len(rows) < depth:
            return found
        depth *= 4  # long memories took several places each


def _exactly(con: Connection, vector: Vector, restriction: Restriction, limit: int, own: Kept = OWN) -> list[Match]:
    where, values = restriction.condition()
    rows = fetch_rows(
        con,
        # Whatever index the conditions have, then the primary key of vectors. OFFSET lets the distance be taken first:
        # what is grouped and sorted then carries no vector along.
        f"""
        SELECT id, min(distance)
        FROM (
            SELECT memories.seq, memories.id, memories.created_at, vectors.vector <#> %s AS distance
            FROM memories
            JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
            WHERE vector_dims(vectors.vector) = %s
            AND {own.condition}
            AND {where}
            OFFSET 0
        ) AS compared
        GROUP BY seq, id, created_at
        ORDER BY 2, created_at DESC, seq DESC
        LIMIT %s
        """,
        (vector_bytes(vector), len(vector), *own.values, *values, limit),
        binary=True,
    )
    return [Match(memory, -distance) for memory, distance in rows]


def cosines(con: Connection, vector: Vector, ids: Sequence[str], *, model: str | None = None) -> dict[str, float]:
    own = vectors_of_model(model)
    rows = con.execute(
        # memories_by_id, then the primary key of vectors
        f"""
        SELECT memories.id, -min(vectors.vector <#> %s)
        FROM memories
        JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
        WHERE memories.id = ANY(%s)
        AND vector_dims(vectors.vector) = %s
        AND {own.condition}
        GROUP BY memories.id
        """,
        (vector_bytes(vector), Texts(ids), len(vector), *own.values),
    )
    return {memory: float(cosine) for memory, cosine in rows}


def vectors(con: Connection, ids: Sequence[str]) -> dict[str, Vector]:
    rows = con.execute(
        # memories_by_id, then the primary key of vectors
        """
        SELECT memories.id, vector_send(vectors.vector)
        FROM memories
        JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
        AND vectors.model = '' AND vectors.part = 0
        WHERE memories.id = ANY(%s)
        """,
        (Texts(ids),),
        binary=True,
    )
    return {memory: vector_of(sent) for memory, sent in rows}
