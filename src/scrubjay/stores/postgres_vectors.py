"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits."""

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


def nearest(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
    where, values = restriction.condition()
    rows = con.execute(
        # Whatever index the conditions have, then the primary key of vectors.
        f"""
        SELECT memories.id, -min(vectors.vector <#> %s)
        FROM memories
        JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq
        WHERE vector_dims(vectors.vector) = %s
        AND {where}
        GROUP BY memories.space, memories.seq
        ORDER BY 2 DESC, memories.created_at DESC, memories.seq DESC
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
