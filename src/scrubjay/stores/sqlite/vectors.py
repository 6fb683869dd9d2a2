"""Finding by meaning: the cosine of a query's vector with the vectors of the memories that a filter admits.

A small store's vectors are held in memory and all compared. In a large store a table of vec1.py names the
likely memories; their own vectors, read from the file, decide. The same is done of all that few memories have, and of
everything where there is neither. Vectors are unit length, so a cosine is a dot product. A memory of several parts
counts by its best one.

A table is derived data: a memory's row says whether it is admitted (filters.py), so an error in a table may cost
recall, never a secret.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from math import isqrt
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.lazy import logging
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite.filters import (
    MANY,
    SMALL,
    Found,
    Members,
    Restriction,
    Score,
    Scores,
    Within,
    among,
    dimension_of,
    further_models,
    last_change,
    look_up,
    of_dimension,
    sizes_of,
)
from scrubjay.stores.tables.sql import Condition, View, bounds, join_conditions

CHUNK = 512  # rows; what is only read on the way takes room, in every window of an editor
FEW_PAGES = -1024  # KiB that SQLite keeps of what is read once, as vectors are
NOBODY = 0  # whose row it is: no memory's any more
HELD_ROWS = 40_000  # 61 MB at 384 dimensions
CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
LOOKED_THROUGH = 5  # times the root of the number of lists; of real questions, three would miss one in twenty

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


class VectorIndex:
    """Search over the vectors of one model. Safe to call from several threads, each with a connection of its own that
    reads from one snapshot."""

    def __init__(
        self, model: str | None = None, *, held_rows: int = HELD_ROWS, tables: bool = True, few_at_most: int = SMALL
    ) -> None:
        """Search the vectors of a further `model`, or the store's own. Without `tables` those of vec1 are not asked;
        where they are, a scope of `few_at_most` memories is compared one by one."""
        self._model = model or ""
        self._held_rows, self._tables, self._few_at_most = held_rows, tables, few_at_most
        self._lock = threading.Lock()  # searches take turns: one at a time saturates the memory bus already
        self._held: Held | None = None
        self._broken: set[int] = set()  # tables that failed; others may still be fine

    def nearest(self, members: Members, vector: Vector, limit: int) -> list[Found]:
        """Find the memories whose best part is nearest, each once, best first; equal ones newest first."""
        con = members.con
        table = self._table(con, len(vector))
        if table is not None:
            self._held = None
            try:
                score = self._by_table(con, table, vector, members.restriction)
                return members.find_best(max(limit, CANDIDATES), score, few_at_most=self._few_at_most)[:limit]
            except vec1.BROKEN as error:
                self._broken.add(table.number)

                logging.getLogger(__name__).warning("the vector index cannot be used, comparing exactly: %s", error)
        with self._lock:
            held = self._current(con, len(vector))
            compared = None if held is None else held.compared(vector)
        few_at_most = SMALL if compared is None or len(compared[0]) >= MANY else 0
        return members.find_best(limit, scoring(con, vector, self._model, compared), few_at_most=few_at_most)

    def cosines(self, con: apsw.Connection, vector: Vector, memories: Sequence[int]) -> dict[int, float]:
        """Compute the highest cosine of each memory's vectors; memories without any are left out."""
        if self._table(con, len(vector)) is None:
            with self._lock:
                held = self._current(con, len(vector))
                if held is not None:
                    return highest(*held.compared_of(vector, np.array(memories, np.int64)))
        return cosines_in_file(con, vector, self._model, memories)

    def _by_table(self, con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction) -> Score:
        def score(depth: int, within: Within) -> Scores:
            if within is not None:
                return front(*compared_of(con, vector, self._model, np.asarray(within)), depth)
            rows, complete = candidates(con, table, vector, restriction, depth)
            memories = np.array(sorted({row // vec1.PARTS for row in rows}), np.int64)
            return highest(*compared_of(con, vector, self._model, memories)), complete

        return score

    def _table(self, con: apsw.Connection, dimension: int) -> vec1.Table | None:
        if not self._tables or not any_tables(con):  # as in most stores
            return None
        own = (dimension, self._model)
        ready = look_up(con, "ready", lambda: vec1.tables(con, "ready"))
        fitting = [one for one in ready if (one.dimension, one.model or "") == own]
        return next((one for one in fitting if one.number not in self._broken and vec1.able(con)), None)

    def _current(self, con: apsw.Connection, dimension: int) -> Held | None:
        """The held rows as this connection sees the store; None if the vectors are too many, or if the connection's
        snapshot is older than the rows, which never go back."""
        if self._model and self._model not in further_models(con):  # its vectors go without a change of their memories
            self._held = None
            return None
        change, held = last_change(con), self._held
        fits = held is not None and held.dimension == dimension
        if held is not None and fits and (held.change >= change or held.follow(con, change)):
            return held if held.change == change else None
        count = f"SELECT count(*) FROM (SELECT 1 FROM vectors WHERE model = ? LIMIT {self._held_rows + 1})"
        self._held = None
        if con.execute(count, (self._model,)).get <= self._held_rows:
            held = Held(dimension, self._model, self._held_rows)
            self._held = held if held.follow(con, change) else None
        return self._held


def cosines_in_file(con: apsw.Connection, vector: Vector, model: str, memories: Sequence[int]) -> dict[int, float]:
    return highest(*compared_of(con, vector, model, np.array(memories, np.int64)))


def scoring(con: apsw.Connection, vector: Vector, model: str, compared: Compared | None = None) -> Score:
    """Make the function that scores every memory: by the cosines of `compared`, or of the vectors in the file."""

    def score(depth: int, within: Within) -> Scores:
        if compared is None:
            if within is not None:
                return front(*compared_of(con, vector, model, np.asarray(within)), depth)
            return front_of_all(compared_in_file(con, vector, model), depth)
        memories, cosines = compared
        if within is not None:
            rows = np.isin(memories, np.asarray(within))
            memories, cosines = memories[rows], cosines[rows]
        return front(memories, cosines, depth)

    return score


def front(memories: Ints, cosines: Vector, depth: int) -> Scores:
    return front_of_all([(memories, cosines)], depth)


def front_of_all(rows: Iterable[Compared], depth: int) -> Scores:
    """The memories with the highest cosines, and all that equal the lowest of them, of rows that come in pieces."""
    memories, cosines, complete = np.empty(0, np.int64), np.empty(0, np.float32), True
    for more, theirs in rows:
        memories, cosines = np.concatenate((memories, more)), np.concatenate((cosines, theirs))
        if depth < len(cosines):
            place = len(cosines) - depth
            high = cosines >= np.partition(cosines, place)[place]
            memories, cosines, complete = memories[high], cosines[high], False
    return highest(memories, cosines), complete


def highest(memories: Ints, cosines: Vector) -> dict[int, float]:
    """Each memory once, with its highest cosine, which comes last."""
    order = cosines.argsort()
    return dict(zip(memories[order].tolist(), cosines[order].tolist(), strict=True))


def any_tables(con: apsw.Connection) -> bool:
    return look_up(con, vec1.ANY, lambda: con.execute(vec1.ANY).get is not None)


def candidates(
    con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction, depth: int
) -> tuple[list[int], bool]:
    """Find the admitted rows with the nearest codes; and whether these are all that there are."""
    lists = min(table.buckets, LOOKED_THROUGH * isqrt(table.buckets))
    while True:
        found: dict[int, None] = {}
        for view in restriction.views:  # an OR over two columns would be applied after the cut
            where, values = join_conditions(list(conditions(view, restriction)), "AND")
            rows: list[Any] = con.execute(
                f"SELECT rowid FROM {table.name}(?1, ?2) WHERE {where[1:-1]}",
                # below 1 a number of lists would be a share, 1.0 is one list
                (to_floats(vector), json.dumps({"k": depth, "nprobe": lists}), *values),
            ).fetchall()
            found |= dict.fromkeys(row for (row,) in rows)
        complete = len(found) < depth
        if not complete or lists == table.buckets:
            return list(found), complete
        lists = table.buckets  # others may be in those that were passed over


def conditions(view: View, restriction: Restriction) -> Iterator[Condition]:
    """What the table's numbers can say, a little too generous where they are rounded."""
    yield among("state", restriction.states)
    if view.space is not None:
        yield "space = ?", [view.space]
    if view.audiences is not None:
        yield among("audience", view.audiences)
    asked = restriction.filter
    if asked.expired is not None:
        yield f"expires {'<=' if asked.expired else '>'} ?", [restriction.now]
    for column, sign, bound in bounds(asked):
        number = vec1.thousandths(bound) if column == "importance" else bound
        yield f"{column.removesuffix('_at')} {sign} ?", [number]
    for column, names in (("kind", asked.kinds), ("category", asked.categories)):
        if names is not None:
            yield among(column, [vec1.code(name) for name in names])
    if restriction.user is not None:
        yield "user = ?", [restriction.user]
    if restriction.conversation is not None:
        yield "conversation = ?", [restriction.conversation]


# How a vector lies in the file, little endian:
#
#     short   scale, a float32 | numbers, int16 each, the largest 32767 | a zero byte      2 × dimension + 5 bytes
#     whole   numbers, float32 each, as earlier versions wrote them                        4 × dimension bytes
#
# Five short ones of 384 numbers lie on a page of 4 kB, whole ones two. The odd length tells the two apart, and keeps
# earlier versions that have the file open from taking one for the other. Everywhere else vectors are float32.


LARGE = 1e15  # beyond it a number is none of a vector's, and its square soon infinite
STEPS = np.float32(32_767)  # from nothing to the largest number of a vector


def to_blob(vector: Vector) -> bytes:
    """As it is written. What is read again gives the same bytes.

    :raises EmbeddingError: if the vector is not made of numbers
    """
    check(vector)
    numbers = vector.astype(np.float32, copy=False)
    with np.errstate(over="ignore"):
        scale = np.abs(numbers).max(initial=0) / STEPS * STEPS / STEPS  # twice: one of 32,768 is not found again
    if scale < np.finfo(np.float32).tiny:  # nothing, or as good as
        return _short(0.0, np.zeros_like(numbers))
    return _short(scale, np.rint(numbers / scale))


def _short(scale: float, numbers: Vector) -> bytes:
    return struct.pack("<f", scale) + numbers.astype("<i2").tobytes() + b"\0"


def from_blob(blob: bytes) -> Vector:
    if len(blob) % 2 == 0:
        return _from_floats(blob)
    vector: Vector = np.empty(dimension_of(len(blob)), np.float32)
    _read_short(blob, vector[None])
    return vector


def _from_floats(blobs: bytes) -> Vector:
    return np.frombuffer(blobs, "<f4").astype(np.float32, copy=False)


def _read_short(blobs: bytes, rows: Vector) -> None:
    """Into these rows, one for each."""
    read = np.frombuffer(blobs, _short_form(rows.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):  # what was written by hand may hold anything
        # Copied first: in a row of an odd length half of the numbers lie askew, which takes twice as long to multiply.
        np.multiply(read["numbers"].copy(), read["scale"][:, None].copy(), out=rows)


@lru_cache(8)
def _short_form(dimension: int) -> np.dtype[np.void]:
    return np.dtype([("scale", "<f4"), ("numbers", "<i2", (dimension,)), ("end", "u1")])


def to_floats(vector: Vector) -> bytes:
    """As vec1 takes it.

    :raises EmbeddingError: if the vector is not made of numbers
    """
    check(vector)
    return vector.astype("<f4", copy=False).tobytes()


def check(vector: Vector) -> None:
    """:raises EmbeddingError: if it is not made of numbers"""
    if not usable(vector):
        raise EmbeddingError("The vector has unusable numbers.")


def as_floats(blob: bytes) -> bytes:
    """A vector of the file as vec1 takes it, whatever its numbers."""
    return blob if len(blob) % 2 == 0 else from_blob(blob).astype("<f4", copy=False).tobytes()


def shorten(blob: bytes) -> bytes:
    """What an earlier version wrote, as it is written now; what is unusable stays so, for `doctor` to find."""
    if len(blob) % 2:
        return blob
    vector = from_blob(blob)
    return to_blob(vector) if usable(vector) else _short(np.nan, np.zeros_like(vector))


def usable(vector: Vector) -> bool:
    """Whether cosines can be made of it: what was written by hand may hold anything."""
    return bool(vector.min(initial=0) > -LARGE and vector.max(initial=0) < LARGE)  # of what is not a number neither


def unusable(con: apsw.Connection) -> dict[str, set[int]]:
    """By model, the memories with vectors of which no cosine can be made."""
    found: dict[str, set[int]] = {}
    for memory, model, blob in con.execute("SELECT memory, model, vector FROM vectors"):
        if not _complete(blob) or not usable(from_blob(blob)):
            found.setdefault(model, set()).add(memory)
    return found


def _complete(blob: bytes) -> bool:
    """Whether it is as long as a vector can be."""
    return len(blob) % 4 == 0 or (len(blob) % 2 == 1 and len(blob) >= 5)


def by_name(rows: Sequence[tuple[str, bytes]]) -> dict[str, Vector]:
    """Vectors by what they are called; those of which no cosine can be made are left out."""
    names, blobs = [name for name, _ in rows], [blob for _, blob in rows]
    if len({*map(len, blobs)}) == 1:
        vectors = matrix(blobs, dimension_of(len(blobs[0])))
        if vectors.any(axis=1).all():
            return dict(zip(names, vectors, strict=True))
    found = zip(names, map(from_blob, blobs), strict=True)
    return {name: vector for name, vector in found if usable(vector)}


def matrix(blobs: Sequence[bytes], dimension: int) -> Vector:
    """One row for each; all zero where the numbers are unusable, which is like nothing at all."""
    rows: Vector = np.empty((len(blobs), dimension), np.float32)
    read_into(rows, blobs)
    return rows


def read_into(rows: Vector, blobs: Sequence[bytes]) -> None:
    """The same, into rows that are there: what is large is written once."""
    short, whole = sizes_of(rows.shape[1])
    sizes = set(map(len, blobs))
    if sizes == {short}:
        _read_short(b"".join(blobs), rows)
    elif sizes == {whole}:
        rows[:] = _from_floats(b"".join(blobs)).reshape(rows.shape)
    else:  # both, until those of an earlier version are rewritten
        np.stack([from_blob(blob) for blob in blobs], out=rows)
    if not usable(rows):
        rows[[not usable(row) for row in rows]] = 0
