"""All vectors of one model of a small store, in memory."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.stores.sqlite.filters import of_dimension
from scrubjay.stores.sqlite.vectors.blobs import matrix, read_into

CHUNK = 512  # rows; what is only read on the way takes room, in every window of an editor
FEW_PAGES = -1024  # KiB that SQLite keeps of what is read once, as vectors are
NOBODY = 0  # whose row it is: no memory's any more

Ints = NDArray[np.int64]
Compared = tuple[Ints, Vector]  # rows: the memories' numbers and the cosines


class Held:
    """Rows of memories, each with a vector, as of one change of the store. A memory that has changed since leaves its
    rows behind and gets new ones."""

    def __init__(self, dimension: int, model: str, room: int) -> None:
        self.dimension, self.model = dimension, model
        self.change = 0  # the transaction up to which it is complete
        self._count = 0
        self._memories = np.zeros(room, np.int64)
        self._vectors: Vector = np.empty((room, dimension), np.float32)  # takes memory as it is filled

    def follow(self, con: apsw.Connection, change: int) -> bool:
        """Read what was changed since; False if it does not fit."""
        changed = con.execute("SELECT seq FROM memories WHERE change > ?", (self.change,))  # memories_by_change
        former = np.isin(self._memories[: self._count], np.fromiter((seq for (seq,) in changed), np.int64)).nonzero()
        self._memories[former], self._vectors[former] = NOBODY, 0
        rows = con.execute(
            # memories_by_change, then the unique index of vectors
            f"""
            SELECT vectors.memory, vectors.vector
            FROM memories
            CROSS JOIN vectors ON vectors.memory = memories.seq
            WHERE memories.change > ?
            AND memories.state < 4
            AND vectors.model = ?
            AND {of_dimension(self.dimension)}
            """,
            (self.change, self.model),
        )
        usual = con.pragma("cache_size")
        con.pragma("cache_size", usual if self._count else FEW_PAGES)
        try:
            fits = all(map(self._append, chunks(rows)))
        finally:
            con.pragma("cache_size", usual)
        self.change = change
        return fits

    def _append(self, chunk: tuple[Sequence[int], Sequence[bytes]]) -> bool:
        """Whether they fit."""
        memories, blobs = chunk
        end = self._count + len(memories)
        if end > len(self._memories):
            return False
        self._memories[self._count : end] = memories
        read_into(self._vectors[self._count : end], blobs)
        self._count = end
        return True

    def compared(self, vector: Vector) -> Compared:
        """All."""
        memories = self._memories[: self._count].copy()
        return memories, np.vecdot(
            self._vectors[: self._count], vector
        )  # BLAS would start threads that wait for others

    def compared_of(self, vector: Vector, memories: Ints) -> Compared:
        """Those of these memories."""
        rows = np.isin(self._memories[: self._count], memories).nonzero()[0]
        return self._memories[rows], np.vecdot(self._vectors[rows], vector)


def compared_in_file(con: apsw.Connection, vector: Vector, model: str) -> Iterator[Compared]:
    """All, read from the file some at a time."""
    rows = con.execute(f"SELECT memory, vector FROM vectors WHERE model = ? AND {of_dimension(len(vector))}", (model,))
    for memories, blobs in chunks(rows):
        yield np.array(memories, np.int64), np.vecdot(matrix(blobs, len(vector)), vector)


def compared_of(con: apsw.Connection, vector: Vector, model: str, memories: Ints) -> Compared:
    """Those of these memories, read from the file."""
    rows: list[Any] = (
        con.execute(
            # the unique index of vectors
            f"""
        SELECT vectors.memory, vectors.vector
        FROM carray(?) AS wanted
        CROSS JOIN vectors ON vectors.memory = wanted.value
        WHERE vectors.model = ?
        AND {of_dimension(len(vector))}
        """,
            (apsw.carray(memories), model),
        ).fetchall()
        if len(memories)
        else []
    )
    if not rows:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    found, blobs = np.array([memory for memory, _ in rows], np.int64), [blob for _, blob in rows]
    return found, np.vecdot(matrix(blobs, len(vector)), vector)


def chunks(rows: apsw.Cursor) -> Iterator[tuple[tuple[int, ...], tuple[bytes, ...]]]:
    while chunk := list(islice(rows, CHUNK)):
        memories, blobs = zip(*chunk, strict=True)
        yield memories, blobs
