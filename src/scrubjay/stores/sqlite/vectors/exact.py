"""Finding by meaning: the cosine of a query's vector with the vectors of the rows that a filter admits.

`ExactIndex` is the reference: it compares with every vector of the scope, in memory up to a cap (cache.py), else
read from the file. In a large store large.py asks a table of vec1.py for the likely memories. Vectors are unit
length, so a cosine is a dot product. A memory of several parts counts by its best one.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeVar

import apsw
import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.filters import Restriction, change_of, kept, of_dimension, sizes_of
from scrubjay.stores.sqlite.scopes import Scopes
from scrubjay.stores.sqlite.sql import snapshot
from scrubjay.stores.sqlite.vectors.blobs import matrix
from scrubjay.stores.sqlite.vectors.cache import Cache, chunks, memories_of
from scrubjay.stores.sqlite.vectors.near import Ints, Near, Scores
from scrubjay.stores.sqlite.words import Found, Weighed
from scrubjay.stores.tables.sql import View
from scrubjay.values.memory import Sketch
from scrubjay.values.search import Candidates, Glimpses

CACHED_ROWS = 40_000  # 61 MB at 384 dimensions

Name = TypeVar("Name", str, int)


class VectorIndex(ABC):
    """Search over the vectors of one store. Safe to call from several threads, each with its own connection.

    All of it sees everything that is committed when it is called.
    """

    def __init__(self, *, model: str | None = None) -> None:
        """`model` is a further one, whose vectors these are."""
        self.model = model
        self.scopes = Scopes()

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
    for chunk in chunks(rows):
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


class ExactIndex(VectorIndex):
    """Compares with every vector of the scope: the reference, and the fastest while all fit into memory."""

    def __init__(self, *, cached_rows: int = CACHED_ROWS, model: str | None = None) -> None:
        super().__init__(model=model)
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
        """The cache as this connection sees the store; None if the vectors are too many for one, or if the connection
        reads from a snapshot that is older than the cache, which never goes back."""
        cache = self._cache
        if cache is None or cache.dimension != dimension or cache.change != change_of(con):
            with snapshot(con):
                change = change_of(con)
                if cache is not None and cache.change > change:
                    return None
                self._cache = self._refreshed(con, dimension, change)
        return self._cache

    def _refreshed(self, con: apsw.Connection, dimension: int, change: int) -> Cache | None:
        cache = self._cache
        if cache is None or cache.dimension != dimension:
            [(rows,)] = con.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {kept(self.model).table} LIMIT ?)", (self._cached_rows + 1,)
            )
            if rows > self._cached_rows:
                return None
            cache = Cache(dimension, self._cached_rows, self.model)
        return cache if cache.refresh(con, change) else None
