"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits.

`ExactIndex` is the reference: it compares with every vector of the scope, in memory up to a cap, else read from the
file. In a large store `Vec1Index` asks a table of vec1.py for the likely memories. Vectors are unit length, so a cosine
is a dot product. A memory of several parts counts by its best one.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from scrubjay.stores.sqlite.filters import SMALL, Restriction, among, is_small, kept, small_table
from scrubjay.stores.sqlite.sql import snapshot
from scrubjay.stores.sqlite.words import Admitted, Found
from scrubjay.stores.tables.sql import Condition, View, joined
from scrubjay.values.memory import Candidates, Glimpses, Match

CACHED_ROWS = 40_000  # 61 MB at 384 dimensions
CHUNK = 4_096
NEVER = np.iinfo(np.int64).max
LARGE = 1e15  # beyond it a number is none of a vector's, and its square soon infinite

CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
SPARE = 10  # more are looked up than are asked for: equal scores go by age
LOOKED_THROUGH = 3  # times the root of the number of lists; all of them hold hardly one more in two hundred
MOST_CANDIDATES = 20_000  # if more were needed, the scope is small enough to be read

NUMBERS = (
    "memory", "space", "audience", "user", "state", "created", "expires", "conversation", "length", "kind", "category"
)  # fmt: skip
TEXTS = ("id", "valid_from", "valid_until", "opening")  # and times that hardly any memory has
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

    def candidates(
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int, by_words: list[Found]
    ) -> Candidates:
        """The nearest, and what words found, best first, with its cosines."""
        near = self.nearest(con, vector, restriction, limit)
        return near.with_words(by_words, partial(cosines_of, con, vector, self.model))

    def admitted(self, con: apsw.Connection, restriction: Restriction, seqs: Sequence[int]) -> list[Admitted]:
        """Those of these memories that the restriction admits."""
        return sqlite_words.admitted(con, restriction, seqs)

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:  # noqa: ARG002
        """What ranking wants to know of these memories, if it is all at hand."""
        return None

    def vectors(self, con: apsw.Connection, ids: Sequence[str]) -> dict[str, Vector] | None:  # noqa: ARG002
        """The vectors of these memories, if they are all at hand."""
        return None

    def cosines(self, con: apsw.Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:  # noqa: ARG002
        """The cosines of these memories, if they are all at hand."""
        return None


def to_blob(vector: Vector) -> bytes:
    """:raises EmbeddingError: if the vector is not made of numbers"""
    if not np.isfinite(vector).all():
        raise EmbeddingError("The vector has unusable numbers.")
    return vector.astype("<f4", copy=False).tobytes()


def from_blob(blob: bytes) -> Vector:
    return np.frombuffer(blob, dtype="<f4").astype(np.float32, copy=False)


def usable(vector: Vector) -> bool:
    """Whether cosines can be made of it: what was written by hand may hold anything."""
    return bool(vector.min(initial=0) > -LARGE and vector.max(initial=0) < LARGE)  # of what is not a number neither


def unusable(con: apsw.Connection) -> dict[str, set[int]]:
    """By table, the memories with vectors there of which no cosine can be made."""
    found: dict[str, set[int]] = {}
    for table in ("vectors", "second_vectors"):
        rows = con.execute(f"SELECT memory, vector FROM {table}")
        found[table] = {memory for memory, blob in rows if len(blob) % 4 or not usable(from_blob(blob))}
    return found


def best_cosines(vector: Vector, rows: Iterable[tuple[Name, bytes]]) -> dict[Name, float]:
    """Of each name's vectors the highest cosine; vectors of another length (another model's) are passed over."""
    fitting = [(name, blob) for name, blob in rows if len(blob) == 4 * len(vector)]
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
    table: str = "memories",
    model: str | None = None,
) -> Near:
    """Read the vectors of the scope from the file, a chunk at a time, and keep the best.

    `table` may name the index that finds the memories, where the planner would not take it.
    """
    where, values = restriction.condition()
    own = kept(model)
    rows = con.execute(
        # Whatever index the conditions have, then the unique index of vectors.
        f"""
        SELECT memories.seq, memories.created_at, vectors.vector
        FROM {table}
        CROSS JOIN {own.table} ON vectors.memory = memories.seq
        WHERE {where}
        AND {own.condition}
        AND length(vectors.vector) = ?
        """,
        (*values, *own.values, 4 * len(vector)),
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


def cosines_of(con: apsw.Connection, vector: Vector, model: str | None, seqs: Sequence[int]) -> Scores:
    """Of each memory's vectors the highest cosine; not a number where there is none."""
    own = kept(model)
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

    def __init__(self, memories: Ints, created: Ints, scores: Vector, ids: Names | None = None) -> None:
        self.memories, self.created, self.scores = memories, created, scores
        self.ids = ids  # where they are at hand

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
            order = front[np.lexsort((-self.memories[front], -self.created[front], -self.scores[front]))]
            _, firsts = np.unique(self.memories[order], return_index=True)
            if len(firsts) >= limit or len(front) == len(self.scores):
                chosen = order[np.sort(firsts)[:limit]]
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

    def with_words(self, by_words: list[Found], cosines: Callable[[Sequence[int]], Scores]) -> Candidates:
        """These, each once, and what words found, whose cosines are asked for if they are not known."""
        assert self.ids is not None
        near = len(self.scores)
        row_of = {seq: row for row, seq in enumerate(self.memories.tolist())}
        rows = [row_of.setdefault(seq, len(row_of)) for _, _, seq, _ in by_words]
        further = [*row_of][near:]
        ids = self.ids.tolist()
        named = {seq: memory for _, _, seq, memory in by_words}
        ids += [named[seq] for seq in further]
        word_scores = np.zeros(len(ids))
        if rows:
            word_scores[rows] = np.minimum([score for score, *_ in by_words], 1.0)
        both = np.concatenate((self.scores, cosines(further))) if further else self.scores
        return Candidates(
            memories=ids, word_scores=word_scores, cosines=both.astype(np.float64), near=near, by_words=rows
        )


def front_of(scores: Vector, wanted: int) -> Ints:
    """The rows with the highest scores, and all that equal the lowest of them."""
    if wanted >= len(scores):
        return np.arange(len(scores))
    place = len(scores) - wanted
    return np.flatnonzero(scores >= np.partition(scores, place)[place])


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
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int, by_words: list[Found]
    ) -> Candidates:
        with self._lock:
            cache = self._current(con, len(vector))
            if cache is not None:
                near, cosines = cache.nearest(con, vector, restriction, limit)
                return near.with_words(by_words, cosines)
        return super().candidates(con, vector, restriction, limit, by_words)

    def admitted(self, con: apsw.Connection, restriction: Restriction, seqs: Sequence[int]) -> list[Admitted]:
        if self._cache is None or restriction.by_rows:
            return super().admitted(con, restriction, seqs)
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            found, unknown = ([], seqs) if cache is None else cache.admitted(restriction, seqs)
        return [*found, *super().admitted(con, restriction, unknown)] if unknown else found

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:
        with self._lock:
            cache = None if self._cache is None else self._current(con, self._cache.dimension)
            return None if cache is None else cache.glimpses(ids)

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
        if cache is None or cache.dimension != dimension or cache.change != con.execute(CHANGE).get:
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
    """All vectors of a store with what filters and ranking ask of their memories, as arrays; row i of each belongs
    together."""

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
        self._sorted: tuple[Ints, Ints] | None = None  # memories in order, and their rows

    def refresh(self, con: apsw.Connection, change: int) -> bool:
        """Read what was changed since; False if it does not fit."""
        changed = con.execute("SELECT seq FROM memories WHERE change > ?", (self.change,))  # memories_by_change
        self._remove(np.fromiter((seq for (seq,) in changed), np.int64))
        rows = con.execute(
            # memories_by_change, then the unique index of vectors
            f"""
            SELECT seq, space, audience, user, state, created_at, coalesce(expires_at, ?), coalesce(conversation, 0),
                content_length, kind, category, importance, memories.id, valid_from, valid_until,
                substr(content, 1, ?), vectors.vector
            FROM memories
            CROSS JOIN {self._kept.table} ON vectors.memory = memories.seq
            WHERE memories.change > ?
            AND memories.state < 4
            AND {self._kept.condition}
            AND length(vectors.vector) = ?
            """,
            (NEVER, OPENING, self.change, *self._kept.values, 4 * self.dimension),
        )
        for chunk in _chunks(rows):
            if self._count + len(chunk) > self._capacity:
                return False
            self._append(chunk)
        self.change = change
        return True

    def nearest(
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int
    ) -> tuple[Near, Callable[[Sequence[int]], Scores]]:
        """The nearest that the restriction admits, best first, and the cosines of any memories."""
        used = self._vectors[: self._count]
        rows = np.flatnonzero(self._admitted(con, restriction))
        # vecdot takes one core and each row by itself; BLAS would start threads that wait for each other under load.
        few = 2 * len(rows) <= self._count
        every = None if few else np.vecdot(used, vector)
        scores = np.vecdot(used[rows], vector) if every is None else every[rows]
        wanted = max(limit, 1)
        while True:
            front = front_of(scores, wanted)
            best = self._near(rows[front], scores[front]).best(limit)
            if len(best.scores) >= limit or len(front) == len(scores):
                return best, partial(self._cosines, vector, every)
            wanted *= 4  # long memories took several places each

    def admitted(self, restriction: Restriction, seqs: Sequence[int]) -> tuple[list[Admitted], list[int]]:
        """Those of these memories that a restriction by numbers admits, and those that are not known here."""
        asked = np.array(seqs, np.int64)
        places, rows, _ = self._rows_of(asked)
        those = rows[self._by_numbers(restriction, rows)]
        columns = (self._numbers["memory"][those], self._numbers["created"][those], self._texts["id"][those])
        unknown = np.delete(asked, places).tolist() if len(places) < len(asked) else []
        return list(zip(*(column.tolist() for column in columns), strict=True)), unknown

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

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector] | None:
        """Of these memories, unless one of them is not known here or has several: which is the first is not kept."""
        rows = self._known(ids)
        if rows is None or self._rows_of(self._numbers["memory"][rows])[2].any():
            return None
        return dict(zip(ids, self._vectors[rows], strict=True))  # a copy: rows move

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        """Of these memories, unless one of them is not known here."""
        rows = self._known(ids)
        if rows is None:
            return None
        found = self._cosines(vector, None, self._numbers["memory"][rows].tolist())
        return dict(zip(ids, found.tolist(), strict=True))

    def _known(self, ids: Sequence[str]) -> list[int] | None:
        """A row of each of these memories, unless one of them is not known here."""
        rows = [self._row_of.get(memory, -1) for memory in ids]
        return None if -1 in rows else rows

    def _near(self, rows: Ints, scores: Vector) -> Near:
        return Near(self._numbers["memory"][rows], self._numbers["created"][rows], scores, self._texts["id"][rows])

    def _cosines(self, vector: Vector, every: Vector | None, seqs: Sequence[int]) -> Scores:
        """Of each memory's rows the highest cosine; not a number where there is none. `every`: those of all rows."""
        found = np.full(len(seqs), np.nan)
        places, rows, several = self._rows_of(np.array(seqs, np.int64))
        cosines = np.vecdot(self._vectors[rows], vector) if every is None else every[rows]
        found[places] = cosines
        for place in np.flatnonzero(several).tolist():
            parts = self._parts(seqs[places[place]])
            found[places[place]] = np.vecdot(self._vectors[parts], vector).max()
        return found

    def _rows_of(self, seqs: Ints) -> tuple[Ints, Ints, Mask]:
        """Which of these memories are known, by their places; one row of each; whether it has several."""
        memories, rows = self._in_order()
        first = np.searchsorted(memories, seqs)
        last = np.searchsorted(memories, seqs, side="right")
        places = np.flatnonzero(last > first)
        return places, rows[first[places]], (last - first)[places] > 1

    def _parts(self, seq: int) -> Ints:
        """All rows of a memory."""
        memories, rows = self._in_order()
        return rows[np.searchsorted(memories, seq) : np.searchsorted(memories, seq, side="right")]

    def _in_order(self) -> tuple[Ints, Ints]:
        if self._sorted is None:
            memories = self._numbers["memory"][: self._count]
            rows = np.argsort(memories, kind="stable")
            self._sorted = memories[rows], rows
        return self._sorted

    def _admitted(self, con: apsw.Connection, restriction: Restriction) -> Mask:
        if not restriction.by_rows:
            return self._by_numbers(restriction, slice(self._count))
        where, values = restriction.condition()
        seqs = con.execute(f"SELECT memories.seq FROM memories WHERE {where}", values)
        memories = self._numbers["memory"][: self._count]
        return np.isin(memories, np.fromiter((seq for (seq,) in seqs), np.int64))

    def _by_numbers(self, restriction: Restriction, rows: slice | Ints) -> Mask:
        """Which of these rows a restriction admits that asks for nothing else."""
        numbers = {name: column[rows] for name, column in self._numbers.items()}
        importance = self._importance[rows]
        mask = _any_of(numbers["state"], restriction.states)
        mask &= _seen(numbers, restriction)
        if restriction.expired is not None:
            mask &= (numbers["expires"] <= restriction.now) == restriction.expired
        if restriction.created_since is not None:
            mask &= numbers["created"] >= restriction.created_since
        if restriction.created_until is not None:
            mask &= numbers["created"] <= restriction.created_until
        if restriction.min_importance is not None:
            mask &= importance >= restriction.min_importance
        if restriction.max_importance is not None:
            mask &= importance <= restriction.max_importance
        if restriction.kinds is not None:
            mask &= _any_of(numbers["kind"], self._coded(restriction.kinds))
        if restriction.categories is not None:
            mask &= _any_of(numbers["category"], self._coded(restriction.categories))
        if restriction.user is not None:
            mask &= numbers["user"] == restriction.user
        if restriction.conversation is not None:
            mask &= numbers["conversation"] == restriction.conversation
        if restriction.without:
            mask &= np.isin(numbers["memory"], restriction.without, invert=True)
        return mask

    def _coded(self, names: Iterable[str]) -> list[int]:
        return [self._codes.setdefault(name, len(self._codes)) for name in names]

    def _append(self, chunk: list[Row]) -> None:
        *numbers, kinds, categories, importance, ids, valid_from, valid_until, openings, blobs = zip(
            *chunk, strict=True
        )
        place = slice(self._count, self._count + len(chunk))
        for name, column in zip(NUMBERS, [*numbers, self._coded(kinds), self._coded(categories)], strict=True):
            self._numbers[name][place] = column
        for name, column in zip(TEXTS, (ids, valid_from, valid_until, openings), strict=True):
            self._texts[name][place] = column
        self._importance[place] = importance
        self._vectors[place] = matrix(blobs, self.dimension)
        self._row_of.update(zip(ids, range(self._count, self._count + len(chunk)), strict=True))
        self._count += len(chunk)
        self._sorted = None

    def _remove(self, memories: Ints) -> None:
        """Take out the rows of these memories; the last rows move into the gaps."""
        gone = np.isin(self._numbers["memory"][: self._count], memories)
        left = self._count - int(gone.sum())
        gaps = np.flatnonzero(gone[:left])
        movers = left + np.flatnonzero(~gone[left:])
        ids = self._texts["id"]
        for memory in ids[: self._count][gone].tolist():
            self._row_of.pop(memory, None)
        columns: list[NDArray[Any]] = [
            self._vectors, self._importance, *self._texts.values(), *self._numbers.values()
        ]  # fmt: skip
        for column in columns:
            column[gaps] = column[movers]
        self._row_of.update(zip(ids[gaps].tolist(), gaps.tolist(), strict=True))
        for column in self._texts.values():
            column[left : self._count] = None  # what is gone is not kept
        self._count = left
        self._sorted = None


def _seen(numbers: Mapping[str, Ints], restriction: Restriction) -> Mask:
    mask = np.zeros(len(numbers["space"]), np.bool_)
    for view in restriction.views:
        within = np.ones(len(mask), np.bool_)
        if view.space is not None:
            within &= numbers["space"] == view.space
        if view.audiences is not None:
            within &= _any_of(numbers["audience"], view.audiences)
        mask |= within
    return mask


def _any_of(column: Ints, values: Collection[int]) -> Mask:
    """Which of the column are one of these; for a few values much quicker than numpy's own."""
    if len(values) > FEW_VALUES:
        return np.isin(column, list(values))
    mask = np.zeros(len(column), np.bool_)
    for value in values:
        mask |= column == value
    return mask


def matrix(blobs: Iterable[bytes], dimension: int) -> Vector:
    """One row for each; all zero where the numbers are unusable, which is like nothing at all."""
    rows = from_blob(b"".join(blobs)).reshape(-1, dimension)
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


class Vec1Index(VectorIndex):
    """Uses the store's vec1 table where there is one of use, else compares exactly."""

    def __init__(self, *, few: int = SMALL, model: str | None = None) -> None:
        self._few = few
        self.model = model
        self._exact = ExactIndex(model=model)
        self._broken: set[int] = set()  # tables that failed; others may still be fine

    def candidates(
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int, by_words: list[Found]
    ) -> Candidates:
        if self._table(con, len(vector)) is None:
            return self._exact.candidates(con, vector, restriction, limit, by_words)
        return super().candidates(con, vector, restriction, limit, by_words)

    def admitted(self, con: apsw.Connection, restriction: Restriction, seqs: Sequence[int]) -> list[Admitted]:
        return self._exact.admitted(con, restriction, seqs)

    def glimpses(self, con: apsw.Connection, ids: Sequence[str]) -> Glimpses | None:
        return self._exact.glimpses(con, ids)

    def vectors(self, con: apsw.Connection, ids: Sequence[str]) -> dict[str, Vector] | None:
        return self._exact.vectors(con, ids)

    def cosines(self, con: apsw.Connection, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        return self._exact.cosines(con, vector, ids)

    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> Near:
        table = self._table(con, len(vector))
        if table is not None:
            if self._few and is_small(con, restriction, self._few):
                return scan(con, vector, restriction, limit, table=small_table(restriction), model=self.model)
            try:
                with snapshot(con):
                    found = near(con, table, vector, restriction, limit)
                return scan(con, vector, restriction, limit, model=self.model) if found is None else found
            except vec1.BROKEN as error:
                self._broken.add(table.number)
                import logging  # rarely needed, and not free

                logging.getLogger(__name__).warning("the vector index cannot be used, comparing exactly: %s", error)
        return self._exact.nearest(con, vector, restriction, limit)

    def _table(self, con: apsw.Connection, dimension: int) -> vec1.Table | None:
        if con.execute(vec1.ANY).get is None:  # as in most stores
            return None
        own = (dimension, self.model)
        fitting = [one for one in vec1.tables(con, "ready") if (one.dimension, one.model) == own]
        return next((one for one in fitting if one.number not in self._broken and vec1.able(con)), None)


def near(con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction, limit: int) -> Near | None:
    """The nearest among enough candidates; None if too many would be needed."""
    wanted = max(CANDIDATES, limit + limit // 4)
    depth, lists = wanted, min(table.buckets, LOOKED_THROUGH * isqrt(table.buckets))
    while depth <= MOST_CANDIDATES:
        rowids = candidates(con, table, vector, restriction, depth=depth, lists=lists)
        all_of_them = len(rowids) < depth
        if all_of_them and lists < table.buckets:
            lists = table.buckets  # others may be in those that were passed over
            continue
        # Where the table's numbers say all, nearly every candidate passes: score them first, and look up the best
        # ones' memories. Else first see which ones pass.
        if restriction.by_rows:
            found = scored(con, rowids, vector, restriction, model=table.model)
        else:
            found = admitted(con, cosines(con, rowids, vector, model=table.model), restriction, limit)
        enough = len(found.scores) >= (wanted if restriction.by_rows else limit)
        if all_of_them or (enough and len(set(found.memories.tolist())) >= limit):
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
    options = json.dumps({"k": depth, "nprobe": lists})  # below 1 it would be a share, 1.0 is one list
    found: dict[int, None] = {}
    for view in restriction.views:  # an OR over two columns would be applied after the cut
        where, values = joined(list(conditions(view, restriction)), "AND")
        rows = con.execute(
            f"SELECT rowid FROM {table.name}(?1, ?2) WHERE {where[1:-1]}", (to_blob(vector), options, *values)
        )
        found |= dict.fromkeys(rowid for (rowid,) in rows)
    return list(found)


def cosines(con: apsw.Connection, rowids: list[int], vector: Vector, *, model: str | None) -> dict[int, float]:
    """Rows of a table with the cosines of their full vectors, best first."""
    own = kept(model)
    rows = con.execute(
        f"""
        SELECT wanted.value, vectors.vector
        FROM json_each(?) AS wanted
        CROSS JOIN {own.table}
        ON vectors.memory = wanted.value / {vec1.PARTS} AND vectors.part = wanted.value % {vec1.PARTS}
        WHERE {own.condition}
        AND length(vectors.vector) = ?
        """,
        (json.dumps(rowids), *own.values, 4 * len(vector)),
    ).fetchall()
    if not rows:
        return {}
    found, blobs = zip(*rows, strict=True)
    scores = np.vecdot(matrix(blobs, len(vector)), vector)
    order = np.argsort(-scores)
    return dict(zip(np.array(found)[order].tolist(), scores[order].tolist(), strict=True))


def admitted(con: apsw.Connection, best: Mapping[int, float], restriction: Restriction, limit: int) -> Near:
    """Those of the best rows that the restriction really admits; no more memories are looked up than are needed."""
    by_memory: dict[int, float] = {}
    for rowid, score in best.items():
        by_memory.setdefault(rowid // vec1.PARTS, score)
        if len(by_memory) > limit + SPARE:
            break
    where, values = restriction.condition()
    rows = con.execute(
        f"""
        SELECT memories.seq, memories.created_at, memories.id
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value
        WHERE {where}
        """,
        (json.dumps(list(by_memory)), *values),
    ).fetchall()
    if not rows:
        return Near.none()
    seqs, created, ids = zip(*rows, strict=True)
    return Near(
        np.array(seqs, np.int64),
        np.array(created, np.int64),
        np.array([by_memory[seq] for seq in seqs], np.float32),
        np.array(ids, np.object_),
    )


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


def scored(
    con: apsw.Connection, rowids: list[int], vector: Vector, restriction: Restriction, *, model: str | None = None
) -> Near:
    """Those that the restriction really admits, with the cosines of their full vectors."""
    where, values = restriction.condition()
    own = kept(model)
    rows = con.execute(
        # CROSS JOIN keeps the order: each memory by its primary key, then its vector, of those that pass.
        f"""
        SELECT memories.seq, memories.created_at, memories.id, vectors.vector
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value / {vec1.PARTS}
        CROSS JOIN {own.table} ON vectors.memory = memories.seq AND vectors.part = wanted.value % {vec1.PARTS}
        WHERE {where}
        AND {own.condition}
        AND length(vectors.vector) = ?
        """,
        (json.dumps(rowids), *values, *own.values, 4 * len(vector)),
    ).fetchall()
    if not rows:
        return Near.none()
    seqs, created, ids, blobs = zip(*rows, strict=True)
    return Near(
        np.array(seqs, np.int64),
        np.array(created, np.int64),
        np.vecdot(matrix(blobs, len(vector)), vector),
        np.array(ids, np.object_),
    )
