"""Finding by meaning among some thousands: by signatures first, then the best of them by their vectors.

A signature has two bits for each number of a vector (see `levels_of` in the schema), and stands beside what most
filters ask. The fewer bits differ, the smaller the angle is likely to be; of those that differ least, twice as many as
were asked for are compared exactly. So a scope of up to that many is compared exactly in any case.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any

import psycopg

from scrubjay.stores.postgres.filters import CARRIED, Restriction, source_of
from scrubjay.stores.postgres.values import fetch_rows, vector_bytes

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

Connection = psycopg.Connection[tuple[Any, ...]]

TIMES = 2  # as many as are asked for are compared exactly …
AT_LEAST = 400  # … and never fewer

_SIGNATURES = f"""
    SELECT vectors.space, vectors.memory, vectors.part, {", ".join(CARRIED)}, {{levels}}
    FROM memories
    JOIN vectors ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.model = ''
"""
_ONE_BY_ONE = _SIGNATURES.format(levels="levels_of(vectors.vector)")
# What `levels_of` compares with is made once for each length, which halves the time.
_ALL = f"""
    {_SIGNATURES.format(levels="binary_quantize(vector + edge) || binary_quantize(vector - edge)")}
    JOIN (
        SELECT dimension, array_fill((0.5 / sqrt(dimension))::REAL, ARRAY[dimension])::VECTOR AS edge
        FROM (SELECT DISTINCT vector_dims(vector) AS dimension FROM vectors WHERE model = '') AS dimensions
        OFFSET 0
    ) AS edges ON dimension = vector_dims(vector)
"""
_SIGNING = f"INSERT INTO signatures (space, memory, part, {', '.join(CARRIED)}, levels)"


def sign(con: Connection, memories: Collection[tuple[str, int]]) -> None:
    """Rebuild the signatures of these memories: each a space and a number."""
    columns = [list(column) for column in zip(*memories, strict=True)]
    these = "unnest(%s::TEXT[], %s::BIGINT[]) AS these (space, memory)"
    con.execute(
        f"""
        DELETE FROM signatures
        USING {these}
        WHERE signatures.space = these.space AND signatures.memory = these.memory
        """,
        columns,
    )
    sign_new(con, memories)


def sign_new(con: Connection, memories: Collection[tuple[str, int]]) -> None:
    """Make the signatures of memories that have none."""
    con.execute(
        f"""
        {_SIGNING} {_ONE_BY_ONE}
        JOIN unnest(%s::TEXT[], %s::BIGINT[]) AS these (space, memory)
        ON memories.space = these.space AND memories.seq = these.memory
        """,
        [list(column) for column in zip(*memories, strict=True)],
    )


def sign_all(con: Connection) -> None:
    con.execute("DELETE FROM signatures")
    con.execute(f"{_SIGNING} {_ALL}")


def wrong(con: Connection) -> int:
    """How many signatures are not what they should be."""
    values = [", ".join(f"{table}.{name}" for name in (*CARRIED, "levels")) for table in ("made", "signatures")]
    [(count,)] = con.execute(
        f"""
        SELECT count(*)
        FROM ({_ONE_BY_ONE}) AS made (space, memory, part, {", ".join(CARRIED)}, levels)
        FULL JOIN signatures USING (space, memory, part)
        WHERE ({values[0]}) IS DISTINCT FROM ({values[1]})
        """
    )
    return int(count)


def likely(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> Iterator[list[tuple[Any, ...]]]:
    """The nearest of the likely ones, each time of more of them, until there are no more: the id and the distance
    of each memory's nearest part, nearest first."""
    where, values = restriction.condition(tagged_first=True)
    tables, signatures = source_of("signatures", where)
    most = max(AT_LEAST, TIMES * limit)
    levels = _levels_of(vector)
    asked = vector_bytes(vector)
    while True:
        rows = fetch_rows(
            con,
            # The index of signatures that the conditions have; then the primary key of vectors. OFFSET lets the bits be
            # compared before anything is sorted, and only those of the same length.
            f"""
            WITH likely AS MATERIALIZED (
                SELECT *
                FROM (
                    SELECT memories.space, memories.seq, {signatures}.part, memories.id, memories.created_at,
                        CASE
                            WHEN length({signatures}.levels) = %s THEN {signatures}.levels <~> %s::BIT VARYING
                        END AS differing
                    FROM {tables}
                    WHERE {where}
                    OFFSET 0
                ) AS compared
                WHERE differing IS NOT NULL
                ORDER BY differing
                LIMIT %s
            )
            SELECT any_value(id), min(distance), (SELECT count(*) FROM likely)
            FROM (
                SELECT likely.id, likely.created_at, likely.seq, vectors.vector <#> %s AS distance
                FROM likely
                JOIN vectors
                ON vectors.space = likely.space AND vectors.memory = likely.seq AND vectors.part = likely.part
                AND vectors.model = ''
                OFFSET 0
            ) AS weighed
            GROUP BY seq
            ORDER BY 2, any_value(created_at) DESC, seq DESC
            LIMIT %s
            """,
            (len(levels), levels, *values, most, asked, limit),
            binary=True,
        )
        yield rows
        if not rows or rows[0][2] < most:
            return
        most *= 4


def _levels_of(vector: Vector) -> str:
    """As the server's function does it; what the last bit of a sum makes of a number at the edge hardly matters."""
    numbers, half = vector.tolist(), 0.5 / sqrt(len(vector))
    return "".join(["01"[number > edge] for edge in (-half, half) for number in numbers])
