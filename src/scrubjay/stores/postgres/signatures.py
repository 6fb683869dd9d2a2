"""Finding by meaning among some thousands: by signatures first, then the best of them by their vectors.

A signature has two bits for each number of a vector (see 0019_levels.sql), and stands beside what most filters ask. The
fewer bits differ, the smaller the angle is likely to be; of those that differ least, twice as many as were asked for
are compared exactly. So a scope of up to that many is compared exactly in any case. The one bit for each number that it
also has is what servers of the version before compare.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Collection, Iterator
from math import sqrt
from typing import TYPE_CHECKING, Any

import psycopg

from scrubjay.lazy import numpy as np
from scrubjay.stores.postgres.filters import CARRIED, Restriction, looked_at
from scrubjay.stores.postgres.values import fetched, vector_bytes

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

Connection = psycopg.Connection[tuple[Any, ...]]

TIMES = 2  # as many as are asked for are compared exactly …
AT_LEAST = 400  # … and never fewer
SAMPLE = 5_000  # vectors that tell how all lie
LOOKED_AT = 8  # times as many as are asked for, of signatures in memory, are compared in all of their bits

_SIGNATURES = f"""
    SELECT vectors.space, vectors.memory, vectors.part, {", ".join(CARRIED)}, binary_quantize(vectors.vector),
        {{levels}}
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
_SIGNING = f"INSERT INTO signatures (space, memory, part, {', '.join(CARRIED)}, bits, levels)"


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
    values = [", ".join(f"{table}.{name}" for name in (*CARRIED, "bits", "levels")) for table in ("made", "signatures")]
    [(count,)] = con.execute(
        f"""
        SELECT count(*)
        FROM ({_ONE_BY_ONE}) AS made (space, memory, part, {", ".join(CARRIED)}, bits, levels)
        FULL JOIN signatures USING (space, memory, part)
        WHERE ({values[0]}) IS DISTINCT FROM ({values[1]})
        """
    )
    return int(count)


def likely(con: Connection, vector: Vector, restriction: Restriction, limit: int) -> Iterator[list[tuple[Any, ...]]]:
    """The nearest of the likely ones, each time of more of them, until there are no more: the id and the distance
    of each memory's nearest part, nearest first."""
    where, values = restriction.condition(tagged_first=True)
    tables, signatures = looked_at("signatures", where)
    most = max(AT_LEAST, TIMES * limit)
    levels = _levels_of(vector)
    asked = vector_bytes(vector)
    while True:
        rows = fetched(
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


class Levels:
    """Signatures in memory, of the rows of an array of vectors. They lie in columns: a question is compared with
    100,000 of them in a millisecond or two, which takes three times as long if each lies by itself. The edges between
    levels are around the mean, where vectors that lie in a narrow cone differ."""

    def __init__(self, vectors: Vector, rows: int) -> None:
        """Of vectors that tell how all of them lie, with room for so many rows."""
        some = vectors[:: max(1, len(vectors) // SAMPLE)]
        self.made_of = len(vectors)
        self._mean = some.mean(axis=0)
        self._edge = np.float32(0.5 * np.sqrt(np.square(some - self._mean).mean()))
        self._columns = np.zeros((-(-2 * vectors.shape[1] // 64), rows), np.uint64)
        for first in range(0, len(vectors), SAMPLE):  # so that there is not all of it once more
            self.put(first, vectors[first : first + SAMPLE])

    def put(self, first: int, vectors: Vector) -> None:
        """In place of the rows from there on."""
        self._columns[:, first : first + len(vectors)] = self._signed(vectors)

    def grow(self, rows: int) -> None:
        self._columns = widened(self._columns, rows)

    def likely(self, vector: Vector, count: int, rows: int, left_out: Any) -> Any:
        """Of the first so many rows those that differ least from a vector, at least `count` if there are, in their
        order. Half of the bits say which are looked at with the other half."""
        asked = self._signed(vector[None])
        differing = _differing(rows, self._columns[::2, :rows], asked[::2])
        differing[left_out] = self._bits + 1
        near = self._least(differing, LOOKED_AT * count)
        differing = differing[near] + _differing(
            len(near), [column[near] for column in self._columns[1::2]], asked[1::2]
        )
        return near[self._least(differing, count)]

    def _least(self, differing: Any, count: int) -> Any:
        last = int(np.partition(differing, count - 1)[count - 1]) if count <= len(differing) else self._bits
        return np.flatnonzero(differing <= min(last, self._bits))

    def _signed(self, vectors: Vector) -> Any:
        """The bits of each row, 64 in a number, a row a column."""
        off = vectors - self._mean
        bits = np.packbits(np.concatenate((off > -self._edge, off > self._edge), axis=1), axis=1)
        if lacking := -bits.shape[1] % 8:
            bits = np.pad(bits, ((0, 0), (0, lacking)))
        return np.ascontiguousarray(bits.view(np.uint64).T)

    @property
    def _bits(self) -> int:
        return 64 * len(self._columns)


def _differing(rows: int, columns: Any, asked: Any) -> Any:
    """In how many bits each row differs."""
    # In the same memory for each column: to touch new pages takes as long as to count.
    differing, other, counted = np.zeros(rows, np.uint16), np.empty(rows, np.uint64), np.empty(rows, np.uint8)
    for column, [bits] in zip(columns, asked, strict=True):
        differing += np.bitwise_count(np.bitwise_xor(column, bits, out=other), out=counted)
    return differing


def widened(columns: Any, rows: int) -> Any:
    """With room for so many rows in each column."""
    return np.pad(columns, ((0, 0), (0, rows - columns.shape[1])))


def _levels_of(vector: Vector) -> str:
    """As the server's function does it; what the last bit of a sum makes of a number at the edge hardly matters."""
    numbers, half = vector.tolist(), 0.5 / sqrt(len(vector))
    return "".join(["01"[number > edge] for edge in (-half, half) for number in numbers])
