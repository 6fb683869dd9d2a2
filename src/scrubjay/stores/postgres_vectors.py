"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits.

Small scopes are compared one by one, exactly. In a large store there is an HNSW index besides, over half precision, and
large scopes are looked for there: the filter is asked on the way, and the scan goes on until enough are admitted. What
it finds is weighed again by the exact vectors; if it gives up before there are enough, the exact way is taken. The
planner is never asked: for a filter that admits one row in a hundred it would take the index and lose most answers.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import psycopg

from scrubjay.memory import Match
from scrubjay.stores.postgres_filters import Restriction
from scrubjay.stores.postgres_values import vector_bytes, vector_of

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

Connection = psycopg.Connection[tuple[Any, ...]]


INDEX_FROM = 20_000  # vectors; fewer are compared as quickly, and a store costs a tenth of what it does with an index
EXACT_UP_TO = 10_000  # memories in scope
MAX_INDEXED = 4_000  # dimensions that pgvector's index takes in half precision


def index_name(dimension: int) -> str:
    return f"vectors_by_meaning_{dimension}"


def nearest(con: Connection, vector: Vector, restriction: Restriction, limit: int, *, indexed: bool) -> list[Match]:
    if indexed and limit and _many(con, restriction):
        found = _by_index(con, vector, restriction, limit)
        if len(found) >= limit:
            return found
    return _exactly(con, vector, restriction, limit)


def missing_index(con: Connection) -> int | None:
    """The length of the store's vectors, if they are many and have no index."""
    row = con.execute("SELECT vector_dims(vector) FROM vectors LIMIT 1").fetchone()
    if row is None or row[0] > MAX_INDEXED:
        return None
    [(size,)] = con.execute("SELECT coalesce(sum(vector_bytes), 0)::BIGINT FROM totals WHERE part = ''")
    return row[0] if size >= INDEX_FROM * 4 * row[0] and not has_index(con, row[0]) else None


def has_index(con: Connection, dimension: int) -> bool:
    row = con.execute(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", (index_name(dimension),)
    ).fetchone()
    return row == (True,)


def make_index(con: Connection, dimension: int) -> None:
    """Others read and write meanwhile. What an attempt that was cut off left is removed first."""
    name = index_name(dimension)
    con.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    con.execute("SET maintenance_work_mem = '512MB'")
    con.execute(
        f"""
        CREATE INDEX CONCURRENTLY {name}
        ON vectors USING hnsw ((vector::HALFVEC({dimension})) halfvec_ip_ops)
        WHERE vector_dims(vector) = {dimension}
        """
    )
    con.execute("ANALYZE vectors, memories, words, tags")


def drop_indexes(con: Connection) -> None:
    names = con.execute(
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE 'vectors_by_meaning_%'"
    )
    for (name,) in names.fetchall():
        con.execute(f"DROP INDEX IF EXISTS {name}")


def _many(con: Connection, restriction: Restriction) -> bool:
    """By the planner's estimate: counting costs more than a small scope does, and either way gives right answers."""
    where, values = restriction.condition()
    [([explained],)] = con.execute(f"EXPLAIN (FORMAT JSON) SELECT 1 FROM memories WHERE {where}", values)
    return float(explained["Plan"]["Plan Rows"]) > EXACT_UP_TO


def _by_index(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
    """What the index finds, weighed exactly; fewer than asked for if it gave up."""
    where, values = restriction.condition()
    depth = limit + limit // 4
    asked = vector_bytes(vector)
    while True:
        rows = con.execute(
            # The index of this length; OFFSET keeps the memories behind it, each by its primary key.
            f"""
            SELECT admitted.id, vectors.vector <#> %s, -admitted.created_at, -vectors.memory
            FROM vectors
            CROSS JOIN LATERAL (
                SELECT memories.id, memories.created_at
                FROM memories
                WHERE memories.space = vectors.space
                AND memories.seq = vectors.memory
                AND {where}
                OFFSET 0
            ) AS admitted
            WHERE vector_dims(vectors.vector) = {len(vector)}
            ORDER BY vectors.vector::HALFVEC({len(vector)}) <#> %s::HALFVEC({len(vector)})
            LIMIT %s
            """,
            (asked, *values, asked, depth),
        ).fetchall()
        best: dict[str, tuple[float, int, int]] = {}
        for memory, *place in rows:
            best[memory] = min(best.get(memory, (1e9, 0, 0)), tuple(place))
        if len(best) >= limit or len(rows) < depth:
            order = sorted(best.items(), key=lambda one: one[1])
            return [Match(memory, -float(place[0])) for memory, place in order[:limit]]
        depth *= 4  # long memories took several places each


def _exactly(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
    where, values = restriction.condition()
    rows = con.execute(
        # Whatever index the conditions have, then the primary key of vectors. OFFSET lets the distance be taken first:
        # what is grouped and sorted then carries no vector along.
        f"""
        SELECT id, -min(distance)
        FROM (
            SELECT memories.seq, memories.id, memories.created_at, vectors.vector <#> %s AS distance
            FROM memories
            JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
            WHERE vector_dims(vectors.vector) = %s
            AND {where}
            OFFSET 0
        ) AS compared
        GROUP BY seq, id, created_at
        ORDER BY 2 DESC, created_at DESC, seq DESC
        LIMIT %s
        """,
        (vector_bytes(vector), len(vector), *values, limit),
    )
    return [Match(memory, float(cosine)) for memory, cosine in rows]


def cosines(con: Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
    rows = con.execute(
        # memories_by_id, then the primary key of vectors
        """
        SELECT memories.id, -min(vectors.vector <#> %s)
        FROM memories
        JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
        WHERE memories.id = ANY(%s)
        AND vector_dims(vectors.vector) = %s
        GROUP BY memories.id
        """,
        (vector_bytes(vector), list(ids), len(vector)),
    )
    return {memory: float(cosine) for memory, cosine in rows}


def vectors(con: Connection, ids: Sequence[str]) -> dict[str, Vector]:
    rows = con.execute(
        # memories_by_id, then the primary key of vectors
        """
        SELECT memories.id, vector_send(vectors.vector)
        FROM memories
        JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.part = 0
        WHERE memories.id = ANY(%s)
        """,
        (list(ids),),
        binary=True,
    )
    return {memory: vector_of(sent) for memory, sent in rows}
