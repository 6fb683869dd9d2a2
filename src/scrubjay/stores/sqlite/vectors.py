"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits.

`ExactIndex` is the reference: it compares with every vector of the scope, in memory up to a cap, else read from the
file. In a large store `Vec1Index` asks a table of vec1.py for the likely memories. Vectors are unit length, so a cosine
is a dot product. A memory of several parts counts by its best one.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from math import isqrt
from typing import Any, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.stores.promises.memories import OPENING
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.filters import (
    SMALL,
    Restriction,
    among,
    change_of,
    dimension_of,
    is_small,
    kept,
    looked_up,
    members,
    of_dimension,
    sizes_of,
)
from scrubjay.stores.sqlite.sql import snapshot
from scrubjay.stores.sqlite.words import Found, Weighed
from scrubjay.stores.tables.sql import Condition, View, joined
from scrubjay.values.memory import Candidates, Category, Glimpses, Match, Sketch
from scrubjay.values.times import moment
from scrubjay.values.words import DECIMALS

CACHED_ROWS = 40_000  # 61 MB at 384 dimensions
RECENT_ROWS = 20_000  # of a large store that are kept in memory, those that were asked for lately
CHUNK = 4_096
NEVER = np.iinfo(np.int64).max
LARGE = 1e15  # beyond it a number is none of a vector's, and its square soon infinite
STEPS = np.float32(32_767)  # from nothing to the largest number of a vector
UNREAD, NO_VECTOR = -1, -2  # instead of a row

CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
LOOKED_THROUGH = 5  # times the root of the number of lists; of real questions, three would miss one in twenty
MOST_CANDIDATES = 20_000  # if more were needed, the scope is small enough to be read

NUMBERS = (
    "memory", "space", "audience", "user", "state", "created", "expires", "conversation", "length", "plain", "kind",
    "category",
)  # fmt: skip
# And what hardly any memory has.
TEXTS = ("id", "valid_from", "valid_until", "superseded_by", "opening")
FEW_VALUES = 8  # that are compared one by one
CHANGE = "SELECT change FROM counters"

Row = tuple[Any, ...]
Name = TypeVar("Name", str, int)
Ints = NDArray[np.int64]
Names = NDArray[np.object_]
Scores = NDArray[np.float64]
Mask = NDArray[np.bool_]


class VectorIndex(ABC):
    """Search over the vectors of one store. Safe to call from several threads, each with its own connection.

    All of it sees everything that is committed when it is called.
    """

    model: str | None = None  # a second one, whose vectors these are

    @abstractmethod
    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> Near:
        """The memories whose best part is nearest, each once, best first; equal ones newest first."""

    def scope(self, con: apsw.Connection, dimension: int, restriction: Restriction) -> Ints | None:  # noqa: ARG002
        """All memories that a restriction admits, if they are few in a large store."""
        return None

    def candidates(
        self,
        con: apsw.Connection,
        vector: Vector,
        restriction: Restriction,
        limit: int,
        by_words: Found,
        *,
        within: Ints | None,  # noqa: ARG002
    ) -> Candidates:
        """The nearest, and what words found, best first, with its cosines. `within` is what `scope` gave."""
        near = self.nearest(con, vector, restriction, limit)
        return near.with_words(by_words, partial(cosines_of, con, vector, self.model))

    def found(
        self,
        con: apsw.Connection,
        within: Ints | None,  # noqa: ARG002
        restriction: Restriction,
        weighed: Weighed,
    ) -> Found:
        """Of the memories that words found those that the restriction admits."""
        return sqlite_words.found_by_rows(con, restriction, weighed)

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:  # noqa: ARG002
        """What ranking wants to know of these memories, if it is all at hand."""
        return None

    def sketches(self, con: apsw.Connection, ids: Sequence[str], views: Sequence[View]) -> dict[str, Sketch]:  # noqa: ARG002
        """What a new memory is compared with those of these by that are seen, as far as it is at hand. What they say of
        others to some only is not known here."""
        return {}

    def numbers(self, ids: Sequence[str]) -> dict[int, str] | None:  # noqa: ARG002
        """These memories by their number, which never changes, if they are all at hand."""
        return None

    def vectors(self, con: apsw.Connection, ids: Sequence[str]) -> dict[str, Vector] | None:  # noqa: ARG002
        """The vectors of these memories, if they are all at hand."""
        return None

    def cosines(self, con: apsw.Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:  # noqa: ARG002
        """The cosines of these memories, if they are all at hand."""
        return None


# How a vector lies in the file, little endian:
#
#     short   scale, a float32 | numbers, int16 each, the largest 32767 | a zero byte      2 × dimension + 5 bytes
#     whole   numbers, float32 each, as earlier versions wrote them                        4 × dimension bytes
#
# Five short ones of 384 numbers lie on a page of 4 kB, whole ones two. The odd length tells the two apart, and keeps
# earlier versions that have the file open from taking one for the other. Everywhere else vectors are float32.


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
    [vector] = _from_short(blob, dimension_of(len(blob)))
    return vector  # type: ignore[no-any-return]


def _from_floats(blobs: bytes) -> Vector:
    return np.frombuffer(blobs, "<f4").astype(np.float32, copy=False)


def _from_short(blobs: bytes, dimension: int) -> Vector:
    """One row for each."""
    rows = np.frombuffer(blobs, [("scale", "<f4"), ("numbers", "<i2", (dimension,)), ("end", "u1")])
    vectors: Vector = rows["numbers"].astype(np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # what was written by hand may hold anything
        vectors *= rows["scale"][:, None]
    return vectors


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


def shortened(blob: bytes) -> bytes:
    """What an earlier version wrote, as it is written now; what is unusable stays so, for `doctor` to find."""
    if len(blob) % 2:
        return blob
    vector = from_blob(blob)
    return to_blob(vector) if usable(vector) else _short(np.nan, np.zeros_like(vector))


def usable(vector: Vector) -> bool:
    """Whether cosines can be made of it: what was written by hand may hold anything."""
    return bool(vector.min(initial=0) > -LARGE and vector.max(initial=0) < LARGE)  # of what is not a number neither


def unusable(con: apsw.Connection) -> dict[str, set[int]]:
    """By table, the memories with vectors there of which no cosine can be made."""
    found: dict[str, set[int]] = {}
    for table in ("vectors", "second_vectors"):
        rows = con.execute(f"SELECT memory, vector FROM {table}")
        found[table] = {memory for memory, blob in rows if not _complete(blob) or not usable(from_blob(blob))}
    return found


def _complete(blob: bytes) -> bool:
    """Whether it is as long as a vector can be."""
    return len(blob) % 4 == 0 or (len(blob) % 2 == 1 and len(blob) >= 5)


def best_cosines(vector: Vector, rows: Iterable[tuple[Name, bytes]]) -> dict[Name, float]:
    """Of each name's vectors the highest cosine; vectors of another length (another model's) are passed over."""
    sizes = sizes_of(len(vector))
    fitting = [(name, blob) for name, blob in rows if len(blob) in sizes]
    best: dict[Name, float] = {}
    if fitting:
        names, blobs = zip(*fitting, strict=True)
        scores = np.vecdot(matrix(blobs, len(vector)), vector)
        for name, score in zip(names, scores.tolist(), strict=True):
            best[name] = max(best.get(name, -1.0), score)
    return best


def scan(
    con: apsw.Connection,
    vector: Vector,
    restriction: Restriction,
    limit: int,
    *,
    model: str | None = None,
) -> Near:
    """Read the vectors of the scope from the file, a chunk at a time, and keep the best."""
    where, values = restriction.condition()
    own = kept(model)
    rows = con.execute(
        # Whatever index the conditions have, then the unique index of vectors.
        f"""
        SELECT memories.seq, memories.created_at, vectors.vector
        FROM memories
        CROSS JOIN {own.table} ON vectors.memory = memories.seq
        WHERE {where}
        AND {own.condition}
        AND {of_dimension(len(vector))}
        """,
        (*values, *own.values),
    )
    best = Near.none()
    for chunk in _chunks(rows):
        memories, created, blobs = zip(*chunk, strict=True)
        found = Near(
            np.array(memories, dtype=np.int64),
            np.array(created, dtype=np.int64),
            np.vecdot(matrix(blobs, len(vector)), vector),
        )
        best = best.and_also(found).best(limit)
    return best.named(con)


def cosines_of(con: apsw.Connection, vector: Vector, model: str | None, memories: Ints) -> Scores:
    """Of each memory's vectors the highest cosine; not a number where there is none."""
    own, seqs = kept(model), memories.tolist()
    rows = con.execute(
        f"""
        SELECT vectors.memory, vectors.vector
        FROM json_each(?) AS wanted
        CROSS JOIN {own.table} ON vectors.memory = wanted.value
        WHERE {own.condition}
        """,
        (json.dumps(seqs), *own.values),
    )
    best = best_cosines(vector, rows)
    return np.array([best.get(seq, np.nan) for seq in seqs], np.float64)


class Near:
    """Rows with their scores; several may belong to one memory."""

    def __init__(
        self, memories: Ints, created: Ints, scores: Vector, ids: Names | None = None, *, several: bool = True
    ) -> None:
        self.memories, self.created, self.scores = memories, created, scores
        self.ids = ids  # where they are at hand
        self.several = several  # rows may belong to one memory

    @classmethod
    def none(cls) -> Near:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.object_))

    def and_also(self, other: Near) -> Near:
        return Near(
            np.concatenate((self.memories, other.memories)),
            np.concatenate((self.created, other.created)),
            np.concatenate((self.scores, other.scores)),
        )

    def best(self, limit: int) -> Near:
        """The best row of each of the best memories, best first; equal ones newest first."""
        wanted = max(limit, 1)
        while True:
            front = front_of(self.scores, wanted)
            order = front[np.lexsort((self.memories[front], self.created[front], self.scores[front]))[::-1]]
            firsts = np.sort(np.unique(self.memories[order], return_index=True)[1]) if self.several else None
            found = len(order) if firsts is None else len(firsts)
            if found >= limit or len(front) == len(self.scores):
                chosen = order[:limit] if firsts is None else order[firsts[:limit]]
                ids = None if self.ids is None else self.ids[chosen]
                return Near(self.memories[chosen], self.created[chosen], self.scores[chosen], ids)
            wanted *= 4  # long memories took several places each

    def named(self, con: apsw.Connection) -> Near:
        """With their ids."""
        seqs = self.memories.tolist()
        where, values = among("seq", seqs)
        known = dict(con.execute(f"SELECT seq, id FROM memories WHERE {where}", values)) if seqs else {}
        ids = np.array([known[seq] for seq in seqs], np.object_)
        return Near(self.memories, self.created, self.scores, ids)

    def matches(self) -> list[Match]:
        """In the order they are in."""
        assert self.ids is not None
        return list(map(Match, self.ids.tolist(), self.scores.tolist()))

    def with_words(self, by_words: Found, cosines: Callable[[Ints], Scores]) -> Candidates:
        """These, each once, and what words found, whose cosines are asked for if they are not known."""
        assert self.ids is not None
        near, seqs = len(self.scores), np.asarray(by_words.seqs, np.int64)
        if near:
            order = self.memories.argsort()
            places = order[np.minimum(self.memories.searchsorted(seqs, sorter=order), near - 1)]
            unknown = self.memories[places] != seqs
        else:
            places, unknown = np.zeros(len(seqs), np.int64), np.ones(len(seqs), np.bool_)
        rows = np.where(unknown, near - 1 + unknown.cumsum(), places)
        further = seqs[unknown]
        word_scores = np.zeros(near + len(further))
        word_scores[rows] = np.minimum(by_words.scores, 1.0)
        both = np.concatenate((self.scores, cosines(further))) if len(further) else self.scores
        return Candidates(
            memories=self.ids.tolist() + np.asarray(by_words.ids, np.object_)[unknown].tolist(),
            word_scores=word_scores,
            cosines=both.astype(np.float64),
            near=near,
            by_words=rows.tolist(),
        )


def front_of(scores: Vector, wanted: int) -> Ints:
    """The rows with the highest scores, and all that equal the lowest of them."""
    if wanted >= len(scores):
        return np.arange(len(scores))
    place = len(scores) - wanted
    front: Ints = (scores >= np.partition(scores, place)[place]).nonzero()[0]
    return front


class ExactIndex(VectorIndex):
    """Compares with every vector of the scope: the reference, and the fastest while all fit into memory."""

    def __init__(self, *, cached_rows: int = CACHED_ROWS, model: str | None = None) -> None:
        self.model = model
        self._cached_rows = cached_rows
        self._lock = threading.Lock()  # searches take turns: one at a time saturates the memory bus already
        self._cache: Cache | None = None

    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> Near:
        with self._lock:
            cache = self._current(con, len(vector))
            if cache is not None:
                return cache.nearest(con, vector, restriction, limit)[0]
        return scan(con, vector, restriction, limit, model=self.model)

    def candidates(
        self,
        con: apsw.Connection,
        vector: Vector,
        restriction: Restriction,
        limit: int,
        by_words: Found,
        *,
        within: Ints | None,
    ) -> Candidates:
        with self._lock:
            cache = self._current(con, len(vector))
            if cache is not None:
                near, cosines = cache.nearest(con, vector, restriction, limit)
                return near.with_words(by_words, cosines)
        return super().candidates(con, vector, restriction, limit, by_words, within=within)

    def found(self, con: apsw.Connection, within: Ints | None, restriction: Restriction, weighed: Weighed) -> Found:
        if self._cache is None or restriction.by_rows:
            return super().found(con, within, restriction, weighed)
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            if cache is not None:
                return cache.found(con, restriction, weighed, *memories_of(weighed))
        return super().found(con, within, restriction, weighed)

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            return None if cache is None else cache.glimpses(ids)

    def sketches(self, con: apsw.Connection, ids: Sequence[str], views: Sequence[View]) -> dict[str, Sketch]:
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            return {} if cache is None else cache.sketches(ids, views)

    def numbers(self, ids: Sequence[str]) -> dict[int, str] | None:
        with self._lock:
            return None if self._cache is None else self._cache.numbers(ids)

    def vectors(self, con: apsw.Connection, ids: Sequence[str]) -> dict[str, Vector] | None:
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            return None if cache is None else cache.vectors(ids)

    def cosines(self, con: apsw.Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        with self._lock:
            cache = None if self._cache is None else self._current(con, len(vector))
            return None if cache is None else cache.cosines(vector, ids)

    def _current(self, con: apsw.Connection, dimension: int) -> Cache | None:
        """The cache as of now; None if the vectors are too many for one."""
        cache = self._cache
        if cache is None or cache.dimension != dimension or cache.change != change_of(con):
            with snapshot(con):
                self._cache = self._refreshed(con, dimension)
        return self._cache

    def _refreshed(self, con: apsw.Connection, dimension: int) -> Cache | None:
        change = con.execute(CHANGE).get
        cache = self._cache
        if cache is None or cache.dimension != dimension or cache.change > change:
            [(rows,)] = con.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {kept(self.model).table} LIMIT ?)", (self._cached_rows + 1,)
            )
            if rows > self._cached_rows:
                return None
            cache = Cache(dimension, self._cached_rows, self.model)
        return cache if cache.refresh(con, change) else None


class Cache:
    """Vectors of a store, all or some, with what filters and ranking ask of their memories, as arrays; row i of each
    belongs together."""

    def __init__(self, dimension: int, capacity: int, model: str | None) -> None:
        self.dimension = dimension
        self._kept = kept(model)
        self.change = 0  # the transaction up to which it is complete
        self._capacity = capacity
        self._count = 0
        self._vectors: Vector = np.empty((capacity, dimension), np.float32)  # takes memory as it is filled
        self._numbers = {name: np.empty(capacity, np.int64) for name in NUMBERS}
        self._importance = np.empty(capacity, np.float64)
        self._texts = {name: np.empty(capacity, np.object_) for name in TEXTS}
        self._codes: dict[str, int] = {}  # kinds and categories as numbers, of this cache only
        self._row_of: dict[str, int] = {}  # one of each memory's rows, by its id
        self._place = np.full(1, UNREAD, np.int64)  # by memory, one of its rows; the last stands for all beyond
        self._several = np.zeros(capacity, np.bool_)  # whether a row's memory has others …
        self._parts: dict[int, list[int]] = {}  # … and which all are

    def refresh(self, con: apsw.Connection, change: int) -> bool:
        """Read what was changed since; False if it does not fit."""
        self.forget_changed(con, self.change)
        fits = self._read(con, "memories", "memories.change > ?1", self.change)  # memories_by_change
        self.change = change
        return fits

    def forget_changed(self, con: apsw.Connection, change: int) -> None:
        """Take out what was changed since."""
        changed = con.execute("SELECT seq FROM memories WHERE change > ?", (change,))  # memories_by_change
        self._remove(np.fromiter((seq for (seq,) in changed), np.int64))

    def load(self, con: apsw.Connection, memories: Ints) -> bool:
        """Read those of these memories, each given once, that are not here; False if they do not fit."""
        missing = np.sort(memories[self._place.take(memories, mode="clip") == UNREAD])  # as they are in the file
        if not len(missing):
            return True
        if self._count + len(missing) > self._capacity:
            self._clear()
            missing = memories
        wanted = "carray(?1) AS wanted CROSS JOIN memories"
        if not self._read(con, wanted, "memories.seq = wanted.value", apsw.carray(missing)):
            self._clear()
            return False
        self._make_room(missing)
        self._place[missing[self._place[missing] == UNREAD]] = NO_VECTOR
        return True

    def _read(self, con: apsw.Connection, source: str, where: str, value: Any) -> bool:
        rows = con.execute(
            # whatever finds the memories, then the unique index of vectors
            f"""
            SELECT seq, space, audience, user, state, created_at, coalesce(expires_at, ?2), coalesce(conversation, 0),
                content_length, detail = '{{}}', kind, category, importance, memories.id, valid_from, valid_until,
                superseded_by, substr(content, 1, ?3), vectors.vector
            FROM {source}
            CROSS JOIN {self._kept.table} ON vectors.memory = memories.seq
            WHERE {where}
            AND memories.state < 4
            AND {of_dimension(self.dimension)}
            AND {self._kept.condition}
            """,
            (value, NEVER, OPENING, *self._kept.values),
        )
        for chunk in _chunks(rows):
            if self._count + len(chunk) > self._capacity:
                return False
            self._append(chunk)
        return True

    def nearest(
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int
    ) -> tuple[Near, Callable[[Ints], Scores]]:
        """The nearest that the restriction admits, best first, and the cosines of any memories."""
        used = self._vectors[: self._count]
        rows = self._admitted(con, restriction).nonzero()[0]
        # vecdot takes one core and each row by itself; BLAS would start threads that wait for each other under load.
        few = 2 * len(rows) <= self._count
        every = None if few else np.vecdot(used, vector)
        scores = np.vecdot(used[rows], vector) if every is None else every[rows]
        return self._best(rows, scores, limit), partial(self.cosines_of, vector, every=every)

    def among(self, vector: Vector, memories: Ints, limit: int, restriction: Restriction | None = None) -> Near:
        """The nearest of these memories, best first, of those that a restriction by numbers admits."""
        rows = self._every_row(memories)
        if restriction is not None:
            rows = rows[self._by_numbers(restriction, rows)]
        return self._best(rows, np.vecdot(self._vectors[rows], vector), limit)

    def admitted(self, con: apsw.Connection, restriction: Restriction, memories: Ints) -> Ints:
        """Those of these memories that a restriction by numbers admits; what is not known here is read."""
        places, rows, _ = self._rows_of(memories)
        known = memories[places[self._by_numbers(restriction, rows)]]
        if len(places) == len(memories):
            return known
        others = sqlite_words.admitted(con, restriction, np.delete(memories, places).tolist())
        return np.concatenate((known, np.fromiter((seq for seq, *_ in others), np.int64)))

    def found(
        self, con: apsw.Connection, restriction: Restriction, weighed: Weighed, asked: Ints, scores: Scores
    ) -> Found:
        """Of the memories that words found those that a restriction by numbers admits; what is not known here is
        read."""
        places, rows, _ = self._rows_of(asked)
        unknown = np.delete(asked, places).tolist() if len(places) < len(asked) else []
        admitted = self._by_numbers(restriction, rows)
        places, rows = places[admitted], rows[admitted]
        seqs, created, ids = asked[places], self._numbers["created"][rows], self._texts["id"][rows]
        if unknown:
            known = zip(seqs.tolist(), created.tolist(), ids.tolist(), strict=True)
            return Found.of(weighed.scores(), [*known, *sqlite_words.admitted(con, restriction, unknown)])
        values = scores[places]
        order = np.lexsort((seqs, created, values))[::-1]
        return Found(values[order], created[order], seqs[order], ids[order])

    def _best(self, rows: Ints, scores: Vector, limit: int) -> Near:
        wanted = max(limit, 1)
        while True:
            front = front_of(scores, wanted)
            best = self._near(rows[front], scores[front]).best(limit)
            if len(best.scores) >= limit or len(front) == len(scores):
                return best
            wanted *= 4  # long memories took several places each

    def glimpses(self, ids: Sequence[str]) -> Glimpses | None:
        """Of these memories, unless one of them is not known here."""
        rows = self._known(ids)
        if rows is None:
            return None
        texts, numbers = self._texts, self._numbers
        return Glimpses(
            memories=ids,
            created_at=numbers["created"][rows].tolist(),
            valid_from=texts["valid_from"][rows].tolist(),
            valid_until=texts["valid_until"][rows].tolist(),
            conversation=numbers["conversation"][rows].tolist(),
            length=numbers["length"][rows].tolist(),
            opening=texts["opening"][rows].tolist(),
        )

    def sketches(self, ids: Sequence[str], views: Sequence[View]) -> dict[str, Sketch]:
        """Of those of these memories that are seen; without those of which a part of the text is not here."""
        rows = np.array([row for memory in ids if (row := self._row_of.get(memory)) is not None], np.int64)
        rows = rows[self._seen(views, rows)]
        numbers, texts, names = self._numbers, self._texts, [*map(str, self._codes)]
        columns = [
            *(numbers[name][rows].tolist() for name in ("length", "plain", "category", "created", "memory")),
            *(texts[name][rows].tolist() for name in ("id", "opening", "superseded_by")),
        ]
        return {
            memory: Sketch(memory, text, Category(names[category]), moment(created), seq, superseded_by)
            for length, plain, category, created, seq, memory, text, superseded_by in zip(*columns, strict=True)
            if plain and len(text) == length
        }

    def numbers(self, ids: Sequence[str]) -> dict[int, str] | None:
        """These memories by their number, unless one of them is not known here."""
        rows = self._known(ids)
        return None if rows is None else dict(zip(self._numbers["memory"][rows].tolist(), ids, strict=True))

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector] | None:
        """Of these memories, unless one of them is not known here or has several: which is the first is not kept."""
        rows = self._known(ids)
        if rows is None or self._several[rows].any():
            return None
        return dict(zip(ids, self._vectors[rows], strict=True))  # a copy: rows move

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        """Of these memories, unless one of them is not known here."""
        rows = self._known(ids)
        if rows is None:
            return None
        found = self.cosines_of(vector, self._numbers["memory"][rows])
        return dict(zip(ids, found.tolist(), strict=True))

    def _known(self, ids: Sequence[str]) -> Ints | None:
        """A row of each of these memories, unless one of them is not known here."""
        rows = [self._row_of.get(memory, -1) for memory in ids]
        return None if -1 in rows else np.array(rows, np.int64)

    def _near(self, rows: Ints, scores: Vector) -> Near:
        numbers, several = self._numbers, bool(self._parts) and bool(self._several[rows].any())
        return Near(numbers["memory"][rows], numbers["created"][rows], scores, self._texts["id"][rows], several=several)

    def cosines_of(self, vector: Vector, seqs: Ints, every: Vector | None = None) -> Scores:
        """Of each memory's rows the highest cosine; not a number where there is none. `every`: those of all rows."""
        found = np.full(len(seqs), np.nan)
        places, rows, several = self._rows_of(seqs)
        cosines = np.vecdot(self._vectors[rows], vector) if every is None else every[rows]
        found[places] = cosines
        for place in several.nonzero()[0].tolist():
            parts = self._parts[int(seqs[places[place]])]
            found[places[place]] = np.vecdot(self._vectors[parts], vector).max()
        return found

    def _rows_of(self, seqs: Ints) -> tuple[Ints, Ints, Mask]:
        """Which of these memories are known, by their places; one row of each; whether it has several."""
        found = self._place.take(seqs, mode="clip")
        places = (found >= 0).nonzero()[0]
        rows = found[places]
        return places, rows, self._several[rows]

    def _every_row(self, seqs: Ints) -> Ints:
        """All rows of these memories."""
        _, rows, several = self._rows_of(seqs)
        if not several.any():
            return rows
        longer = [part for seq in self._numbers["memory"][rows[several]].tolist() for part in self._parts[seq]]
        return np.concatenate((rows[~several], np.array(longer, rows.dtype)))

    def _admitted(self, con: apsw.Connection, restriction: Restriction) -> Mask:
        if not restriction.by_rows:
            return self._by_numbers(restriction, slice(self._count))
        where, values = restriction.condition()
        seqs = con.execute(f"SELECT memories.seq FROM memories WHERE {where}", values)
        memories = self._numbers["memory"][: self._count]
        return np.isin(memories, np.fromiter((seq for (seq,) in seqs), np.int64))

    def _by_numbers(self, restriction: Restriction, rows: slice | Ints) -> Mask:
        """Which of these rows a restriction admits that asks for nothing else."""
        numbers = self._numbers
        mask = _any_of(numbers["state"][rows], restriction.states)
        mask &= self._seen(restriction.views, rows)
        if restriction.expired is not None:
            mask &= (numbers["expires"][rows] <= restriction.now) == restriction.expired
        if restriction.created_since is not None:
            mask &= numbers["created"][rows] >= restriction.created_since
        if restriction.created_until is not None:
            mask &= numbers["created"][rows] <= restriction.created_until
        if restriction.min_importance is not None:
            mask &= self._importance[rows] >= restriction.min_importance
        if restriction.max_importance is not None:
            mask &= self._importance[rows] <= restriction.max_importance
        if restriction.kinds is not None:
            mask &= _any_of(numbers["kind"][rows], self._coded(restriction.kinds))
        if restriction.categories is not None:
            mask &= _any_of(numbers["category"][rows], self._coded(restriction.categories))
        if restriction.user is not None:
            mask &= numbers["user"][rows] == restriction.user
        if restriction.conversation is not None:
            mask &= numbers["conversation"][rows] == restriction.conversation
        if restriction.without:
            mask &= np.isin(numbers["memory"][rows], restriction.without, invert=True)
        return mask

    def _seen(self, views: Sequence[View], rows: slice | Ints) -> Mask:
        seen: Mask | None = None
        for view in views:
            within = _any_of(self._numbers["audience"][rows], view.audiences) if view.audiences is not None else None
            if view.space is not None:
                there = self._numbers["space"][rows] == view.space
                within = there if within is None else within & there
            if within is None:  # everything
                within = np.ones(len(self._numbers["state"][rows]), np.bool_)
            seen = within if seen is None else seen | within
        return np.zeros(len(self._numbers["state"][rows]), np.bool_) if seen is None else seen

    def _coded(self, names: Iterable[str]) -> list[int]:
        return [self._codes.setdefault(name, len(self._codes)) for name in names]

    def _append(self, chunk: list[Row]) -> None:
        *numbers, kinds, categories, importance, ids, valid_from, valid_until, superseded_by, openings, blobs = zip(
            *chunk, strict=True
        )
        place = slice(self._count, self._count + len(chunk))
        for name, column in zip(NUMBERS, [*numbers, self._coded(kinds), self._coded(categories)], strict=True):
            self._numbers[name][place] = column
        for name, column in zip(TEXTS, (ids, valid_from, valid_until, superseded_by, openings), strict=True):
            self._texts[name][place] = column
        self._importance[place] = importance
        self._vectors[place] = matrix(blobs, self.dimension)
        self._several[place] = False
        rows = range(self._count, self._count + len(chunk))
        self._row_of.update(zip(ids, rows, strict=True))
        self._put(numbers[0], rows)
        self._count += len(chunk)

    def _put(self, seqs: Sequence[int], rows: range) -> None:
        """Note where these memories' rows are."""
        memories = np.array(seqs, np.int64)
        self._make_room(memories)
        if len(set(seqs)) < len(seqs) or (self._place[memories] >= 0).any():
            for seq, row in zip(seqs, rows, strict=True):
                if (first := int(self._place[seq])) >= 0:
                    parts = self._parts.setdefault(seq, [first])
                    parts.append(row)
                    self._several[parts] = True
                else:
                    self._place[seq] = row
        else:
            self._place[memories] = rows

    def _make_room(self, memories: Ints) -> None:
        if (top := int(memories.max())) + 1 >= len(self._place):
            longer = np.full(2 * top + 2, UNREAD, np.int64)
            longer[: len(self._place)] = self._place
            self._place = longer

    def _clear(self) -> None:
        for column in self._texts.values():
            column[: self._count] = None  # what is gone is not kept
        self._row_of.clear()
        self._parts.clear()
        self._place.fill(UNREAD)
        self._count = 0

    def _remove(self, memories: Ints) -> None:
        """Take out the rows of these memories; the last rows move into the gaps."""
        gone = np.unique(self._every_row(memories))
        self._place[memories[memories < len(self._place)]] = UNREAD
        left = self._count - len(gone)
        gaps = gone[gone < left]
        movers = np.setdiff1d(np.arange(left, self._count), gone, assume_unique=True)
        ids, seqs = self._texts["id"], self._numbers["memory"]
        for memory, seq in zip(ids[gone].tolist(), seqs[gone].tolist(), strict=True):
            self._row_of.pop(memory, None)
            self._parts.pop(seq, None)
        columns: list[NDArray[Any]] = [
            self._vectors, self._importance, self._several, *self._texts.values(), *self._numbers.values()
        ]  # fmt: skip
        for column in columns:
            column[gaps] = column[movers]
        self._row_of.update(zip(ids[gaps].tolist(), gaps.tolist(), strict=True))
        self._place[seqs[gaps]] = gaps
        for old, new in zip(movers.tolist(), gaps.tolist(), strict=True) if self._parts else ():
            if (parts := self._parts.get(int(seqs[new]))) is not None:
                parts[parts.index(old)] = new
        for column in self._texts.values():
            column[left : self._count] = None  # what is gone is not kept
        self._count = left


def memories_of(weighed: Weighed) -> tuple[Ints, Scores]:
    """The memories that words found, each once, with their scores: what `Weighed.scores` says."""
    rows = np.asarray(weighed.rows, np.int64)
    memories, scores = rows >> 8, np.round(np.asarray(weighed.weights, np.float64) / weighed.best, DECIMALS)
    if (rows & 255).any():  # some are long
        memories, firsts = np.unique(memories, return_index=True)
        scores = scores[firsts]
    return memories, scores


def _any_of(column: Ints, values: Collection[int]) -> Mask:
    """Which of the column are one of these; for a few values much quicker than numpy's own."""
    if len(values) > FEW_VALUES:
        return np.isin(column, list(values))
    first, *others = values or (None,)
    mask: Mask = column == first
    for value in others:
        mask |= column == value
    return mask


def matrix(blobs: Sequence[bytes], dimension: int) -> Vector:
    """One row for each; all zero where the numbers are unusable, which is like nothing at all."""
    short, whole = sizes_of(dimension)
    sizes = set(map(len, blobs))
    if sizes == {short}:
        rows = _from_short(b"".join(blobs), dimension)
    elif sizes == {whole}:
        rows = _from_floats(b"".join(blobs)).reshape(-1, dimension)
    else:  # both, until those of an earlier version are rewritten
        rows = np.stack([from_blob(blob) for blob in blobs])
    return rows if usable(rows) else np.stack([row if usable(row) else np.zeros_like(row) for row in rows])


def _chunks(rows: apsw.Cursor) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk


# --- a large store ---------------------------------------------------------------------------------------------------
#
# A vec1 table names the likely memories, their own vectors decide. The table's numbers filter before the cut, but it is
# derived data: every candidate is checked against its memory's row (who may see it, what the filter says) and scored by
# its full vector. What the table cannot say (tags, paths …) is left to that check, with more candidates until enough of
# them pass. Small scopes are read exactly: that is quicker.


class Recent(ExactIndex):
    """Of a large store those memories that were asked for lately."""

    def __init__(self, *, model: str | None) -> None:
        super().__init__(cached_rows=RECENT_ROWS, model=model)

    def scope(self, con: apsw.Connection, dimension: int, restriction: Restriction) -> Ints | None:
        statement, values = members(restriction)
        key = (statement, *values)
        seqs = looked_up(
            con, key, lambda: np.fromiter((seq for (seq,) in con.execute(statement, values).fetchall()), np.int64)
        )
        with self._lock:
            cache = self._holding(con, dimension, seqs)
            return None if cache is None else cache.admitted(con, restriction, seqs)

    def among(
        self, con: apsw.Connection, vector: Vector, memories: Ints, limit: int, restriction: Restriction | None = None
    ) -> Near | None:
        """The nearest of these memories, best first, of those that a restriction by numbers admits."""
        with self._lock:
            cache = self._holding(con, len(vector), memories)
            return None if cache is None else cache.among(vector, memories, limit, restriction)

    def found(self, con: apsw.Connection, within: Ints | None, restriction: Restriction, weighed: Weighed) -> Found:
        if self._cache is None or (restriction.by_rows and within is None):
            return VectorIndex.found(self, con, within, restriction, weighed)
        memories, scores = memories_of(weighed)
        with self._lock:
            cache = self._holding(con, self._cache.dimension, memories)
            if cache is None:
                return VectorIndex.found(self, con, within, restriction, weighed)
            return cache.found(con, restriction, weighed, memories, scores)

    def cosines_of(self, con: apsw.Connection, vector: Vector, memories: Ints) -> Scores:
        """Of each of these memories' vectors the highest cosine; not a number where there is none."""
        with self._lock:
            cache = self._holding(con, len(vector), memories)
            if cache is not None:
                return cache.cosines_of(vector, memories)
        return cosines_of(con, vector, self.model, memories)

    def _holding(self, con: apsw.Connection, dimension: int, memories: Ints) -> Cache | None:
        """The cache as of now with all of these memories; None if they are too many."""
        cache = self._current(con, dimension)
        return cache if cache is not None and cache.load(con, memories) else None

    def _refreshed(self, con: apsw.Connection, dimension: int) -> Cache | None:
        change = con.execute(CHANGE).get
        cache = self._cache
        if cache is None or cache.dimension != dimension or cache.change > change:
            cache = Cache(dimension, RECENT_ROWS, self.model)
        else:
            cache.forget_changed(con, cache.change)
        cache.change = change
        return cache


class Vec1Index(VectorIndex):
    """Uses the store's vec1 table where there is one of use, else compares exactly."""

    def __init__(self, *, few: int = SMALL, model: str | None = None) -> None:
        self._few = few
        self.model = model
        self._exact = ExactIndex(model=model)
        self._recent = Recent(model=model)
        self._broken: set[int] = set()  # tables that failed; others may still be fine

    def scope(self, con: apsw.Connection, dimension: int, restriction: Restriction) -> Ints | None:
        if not self._few or self._table(con, dimension) is None or not is_small(con, restriction, self._few):
            return None
        return self._recent.scope(con, dimension, restriction)

    def candidates(
        self,
        con: apsw.Connection,
        vector: Vector,
        restriction: Restriction,
        limit: int,
        by_words: Found,
        *,
        within: Ints | None,
    ) -> Candidates:
        if self._table(con, len(vector)) is None:
            return self._exact.candidates(con, vector, restriction, limit, by_words, within=within)
        near = None if within is None else self._recent.among(con, vector, within, limit)
        if near is None:
            near = self._by_table(con, vector, restriction, limit)
        return near.with_words(by_words, partial(self._recent.cosines_of, con, vector))

    def found(self, con: apsw.Connection, within: Ints | None, restriction: Restriction, weighed: Weighed) -> Found:
        index = self._recent if any_tables(con) else self._exact
        return index.found(con, within, restriction, weighed)

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:
        known = self._recent.glimpses(con, ids)
        return self._exact.glimpses(con, ids) if known is None else known

    def sketches(self, con: apsw.Connection, ids: Sequence[str], views: Sequence[View]) -> dict[str, Sketch]:
        return self._recent.sketches(con, ids, views) or self._exact.sketches(con, ids, views)

    def numbers(self, ids: Sequence[str]) -> dict[int, str] | None:
        known = self._recent.numbers(ids)
        return self._exact.numbers(ids) if known is None else known

    def vectors(self, con: apsw.Connection, ids: Sequence[str]) -> dict[str, Vector] | None:
        known = self._recent.vectors(con, ids)
        return self._exact.vectors(con, ids) if known is None else known

    def cosines(self, con: apsw.Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        known = self._recent.cosines(con, vector, ids)
        return self._exact.cosines(con, vector, ids) if known is None else known

    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> Near:
        within = self.scope(con, len(vector), restriction)
        near = None if within is None else self._recent.among(con, vector, within, limit)
        return self._by_table(con, vector, restriction, limit) if near is None else near

    def _by_table(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> Near:
        table = self._table(con, len(vector))
        if table is not None:
            try:
                with snapshot(con):
                    found = near(con, table, vector, restriction, limit, recent=self._recent)
                return scan(con, vector, restriction, limit, model=self.model) if found is None else found
            except vec1.BROKEN as error:
                self._broken.add(table.number)
                import logging  # rarely needed, and not free

                logging.getLogger(__name__).warning("the vector index cannot be used, comparing exactly: %s", error)
        return self._exact.nearest(con, vector, restriction, limit)

    def _table(self, con: apsw.Connection, dimension: int) -> vec1.Table | None:
        if not any_tables(con):  # as in most stores
            return None
        own = (dimension, self.model)
        ready = looked_up(con, "ready", lambda: vec1.tables(con, "ready"))
        fitting = [one for one in ready if (one.dimension, one.model) == own]
        return next((one for one in fitting if one.number not in self._broken and vec1.able(con)), None)


def any_tables(con: apsw.Connection) -> bool:
    return looked_up(con, vec1.ANY, lambda: con.execute(vec1.ANY).get is not None)


def any_expire(con: apsw.Connection) -> bool:
    statement = "SELECT 1 FROM memories WHERE expires_at IS NOT NULL LIMIT 1"  # memories_by_expiry
    return looked_up(con, statement, lambda: con.execute(statement).get is not None)


def near(
    con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction, limit: int, *, recent: Recent
) -> Near | None:
    """The nearest among enough candidates; None if too many would be needed."""
    wanted = max(CANDIDATES, limit + limit // 4)
    depth, lists = wanted, min(table.buckets, LOOKED_THROUGH * isqrt(table.buckets))
    while depth <= MOST_CANDIDATES:
        rowids = candidates(con, table, vector, restriction, depth=depth, lists=lists)
        all_of_them = len(rowids) < depth
        if all_of_them and lists < table.buckets:
            lists = table.buckets  # others may be in those that were passed over
            continue
        memories = np.unique(np.array(rowids, np.int64) // vec1.PARTS)
        if restriction.by_rows:  # the table's numbers do not say all
            passing = sqlite_words.admitted(con, restriction, memories.tolist())
            memories = np.fromiter((seq for seq, *_ in passing), np.int64)
        found = recent.among(con, vector, memories, max(wanted, limit), restriction)
        if found is None:
            return None
        enough = len(found.scores) >= (wanted if restriction.by_rows else limit)
        if all_of_them or enough:
            return found.best(limit)
        passed = max(len(found.scores), 1) / len(rowids)
        depth = max(2 * depth, int(1.2 * wanted / passed))
    return None


def candidates(
    con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction, *, depth: int, lists: int
) -> list[int]:
    """Rows with the nearest codes in so many lists, of all views together.

    Fewer than `depth` are all that there are in these lists.
    """
    if restriction.expired is False and not any_expire(con):  # each condition is compared with every code
        restriction = replace(restriction, expired=None)
    options = json.dumps({"k": depth, "nprobe": lists})  # below 1 it would be a share, 1.0 is one list
    found: dict[int, None] = {}
    for view in restriction.views:  # an OR over two columns would be applied after the cut
        where, values = joined(list(conditions(view, restriction)), "AND")
        rows = con.execute(
            f"SELECT rowid FROM {table.name}(?1, ?2) WHERE {where[1:-1]}", (to_floats(vector), options, *values)
        )
        found |= dict.fromkeys(rowid for (rowid,) in rows)
    return list(found)


def conditions(view: View, restriction: Restriction) -> Iterator[Condition]:
    """What the table's numbers can say, a little too generous where they are rounded."""
    yield among("state", restriction.states)
    if view.space is not None:
        yield "space = ?", [view.space]
    if view.audiences is not None:
        yield among("audience", view.audiences)
    if restriction.expired is not None:
        yield f"expires {'<=' if restriction.expired else '>'} ?", [restriction.now]
    if restriction.created_since is not None:
        yield "created >= ?", [restriction.created_since]
    if restriction.created_until is not None:
        yield "created <= ?", [restriction.created_until]
    if restriction.min_importance is not None:
        yield "importance >= ?", [vec1.thousandths(restriction.min_importance)]
    if restriction.max_importance is not None:
        yield "importance <= ?", [vec1.thousandths(restriction.max_importance)]
    if restriction.kinds is not None:
        yield among("kind", [vec1.code(kind) for kind in restriction.kinds])
    if restriction.categories is not None:
        yield among("category", [vec1.code(category) for category in restriction.categories])
    if restriction.user is not None:
        yield "user = ?", [restriction.user]
    if restriction.conversation is not None:
        yield "conversation = ?", [restriction.conversation]
