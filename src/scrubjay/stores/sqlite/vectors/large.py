"""Finding by meaning in a large store.

A vec1 table names the likely memories, their own vectors decide. The table's numbers filter before the cut, but it is
derived data: every candidate is checked against its memory's row (who may see it, what the filter says) and scored by
its full vector. What the table cannot say (tags, paths …) is left to that check, with more candidates until enough of
them pass. Small scopes are read exactly: that is quicker.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any

import apsw
import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.lazy import logging
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.filters import SMALL, Restriction, Value, among, is_small, looked_up, members
from scrubjay.stores.sqlite.postings import numbers_in
from scrubjay.stores.sqlite.sql import snapshot
from scrubjay.stores.sqlite.vectors import vec1
from scrubjay.stores.sqlite.vectors.blobs import to_floats
from scrubjay.stores.sqlite.vectors.cache import AS_DEAR, Cache, memories_of, with_room
from scrubjay.stores.sqlite.vectors.exact import ExactIndex, VectorIndex, cosines_of, scan
from scrubjay.stores.sqlite.vectors.near import Ints, Near, Scores
from scrubjay.stores.sqlite.words import Found, Weighed
from scrubjay.stores.tables.sql import Condition, View, joined
from scrubjay.values.memory import Sketch
from scrubjay.values.search import Candidates, Glimpses

RECENT_ROWS = 20_000  # of a large store that are kept in memory, those that were asked for lately
CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
LOOKED_THROUGH = 5  # times the root of the number of lists; of real questions, three would miss one in twenty
MOST_CANDIDATES = 20_000  # if more were needed, the scope is small enough to be read
SPARE = 16  # of so many candidates one more is asked for where filters are left out
FILTERED = 200  # questions that are filtered by the table after one for which too few have passed
MOST_NOTED = 1_000  # kinds of restriction that are noted …
MOST_PASSING = 8  # … and for which it is remembered who passes
FAR_FEWER = 4  # times as many candidates as memories are wanted, so that only the vectors of most are read


class Passing:
    """Which memories pass a condition on the numbers of a vec1 table, as far as it was asked."""

    def __init__(self, table: vec1.Table, condition: Condition) -> None:
        self._numbers, (self._where, self._values) = vec1.numbers(table), condition
        self._known = np.zeros(1, np.int8)  # by memory: 1, or -1 if it does not; 0: not known; the last for all beyond
        self._looked_for = 0

    def of(self, con: apsw.Connection, rows: Ints) -> Ints:
        """Those of these rows that pass, in their order."""
        memories = rows // vec1.PARTS
        known = self._known.take(memories, mode="clip")
        if not known.all():
            self._look_for(con, rows[known == 0])
            known = self._known[memories]
        return rows[known > 0]

    def forget(self, memories: Ints) -> None:
        self._known[memories[memories < len(self._known)]] = 0

    def _look_for(self, con: apsw.Connection, rows: Ints) -> None:
        """These; or all, once that would have been cheaper."""
        self._known = with_room(self._known, rows // vec1.PARTS, 0)
        self._looked_for += len(rows)
        if AS_DEAR * self._looked_for < len(self._known):
            found: list[Any] = con.execute(
                f"""
                SELECT numbers.id
                FROM carray(?) AS wanted
                CROSS JOIN ({self._numbers}) AS numbers
                WHERE numbers.id = wanted.value
                AND {self._where}
                """,
                (apsw.carray(rows), *self._values),
            ).fetchall()
            passing = np.fromiter((row for (row,) in found), np.int64)
            self._known[rows // vec1.PARTS] = -1
        else:
            self._looked_for = 0
            last = con.execute(f"SELECT max(id) FROM ({self._numbers})").get or 0
            passing = numbers_in(
                con.execute(f"SELECT group_concat(id) FROM ({self._numbers}) WHERE {self._where}", self._values).get
            )
            self._known = with_room(self._known, np.array([last // vec1.PARTS]), 0)
            self._known[: last // vec1.PARTS + 1] = -1
        self._known[passing // vec1.PARTS] = 1


class Recent(ExactIndex):
    """Of a large store those memories that were asked for lately."""

    def __init__(self, *, model: str | None) -> None:
        super().__init__(cached_rows=RECENT_ROWS, model=model)
        self._passing: dict[Hashable, Passing] = {}  # by table and restriction

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

    def few_among(
        self, con: apsw.Connection, vector: Vector, memories: Ints, limit: int, restriction: Restriction
    ) -> Near | None:
        """The same of many, in order, of which nearly all are expected to pass: the rest of a memory is read only of
        those that are near."""
        if FAR_FEWER * limit < len(memories):
            with self._lock:
                cache = self._current(con, len(vector))
                nearest = memories if cache is None else cache.nearest_of(con, vector, memories, limit)
            found = self.among(con, vector, nearest, limit, restriction)
            if found is None or len(found.scores) == limit:
                return found
        return self.among(con, vector, memories, limit, restriction)

    def passing(
        self, con: apsw.Connection, dimension: int, table: vec1.Table, restriction: Restriction, rows: Sequence[int]
    ) -> list[int]:
        """Those of these rows of a table, in their order, that pass by its numbers. They are read behind its back: a
        search that is asked for them as well takes half as long again."""
        if not rows:
            return []
        restriction = _without_expiry(con, restriction)
        [view] = restriction.views
        condition = joined(list(conditions(view, restriction)), "AND")
        which = (table.number, view, restriction.states, restriction.kinds, restriction.expired)
        with self._lock:
            cache = self._current(con, dimension)
            known = None if cache is None else self._passing.pop(which, None)
            known = known or Passing(table, condition)
            if cache is not None and restriction.expired is None:  # else it changes by itself
                self._passing[which] = known
                if len(self._passing) > MOST_PASSING:
                    del self._passing[next(iter(self._passing))]
            passing = known.of(con, np.array(rows, np.int64))
        without = set(restriction.without)
        return [row for row in passing.tolist() if row // vec1.PARTS not in without]

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

    def _refreshed(self, con: apsw.Connection, dimension: int, change: int) -> Cache | None:
        cache = self._cache
        if cache is None or cache.dimension != dimension:
            cache = Cache(dimension, RECENT_ROWS, self.model)
            self._passing.clear()
        else:
            changed = cache.forget_changed(con, cache.change)
            for known in self._passing.values():
                known.forget(changed)
        cache.change = change
        return cache


class Unfiltered:
    """Candidates without the table's filters: each is compared with every code, though of most stores nearly all is
    active and in one space. Some more are asked for and those that do not pass are left out, which gives the same."""

    def __init__(self, recent: Recent) -> None:
        self._recent = recent
        self._filtered: dict[Hashable, int] = {}  # of which too few passed, and for how many questions that is heeded

    def candidates(
        self,
        con: apsw.Connection,
        table: vec1.Table,
        vector: Vector,
        restriction: Restriction,
        *,
        depth: int,
        lists: int,
    ) -> list[int] | None:
        """What the function of this name gives; None if too few pass, which is known only afterwards."""
        which = (restriction.views, restriction.states, restriction.kinds, restriction.expired)
        if restriction.selects or self._is_filtered(which):
            return None
        rows = _rows(con, table, vector, depth=depth + depth // SPARE, lists=lists)
        passed = self._recent.passing(con, len(vector), table, restriction, rows)
        if len(passed) >= depth:
            return passed[:depth]
        if len(self._filtered) >= MOST_NOTED:
            self._filtered.clear()
        self._filtered[which] = FILTERED
        return None

    def _is_filtered(self, which: Hashable) -> bool:
        left = self._filtered.get(which, 0)
        if left:
            self._filtered[which] = left - 1
        return left > 0


class Vec1Index(VectorIndex):
    """Uses the store's vec1 table where there is one of use, else compares exactly."""

    def __init__(self, *, few: int = SMALL, model: str | None = None) -> None:
        super().__init__(model=model)
        self._few = few
        self._exact = ExactIndex(model=model)
        self._recent = Recent(model=model)
        self._unfiltered = Unfiltered(self._recent)
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
                    known = restriction.by_rows and self.scopes.knows(restriction)
                    found = near(
                        con,
                        table,
                        vector,
                        restriction,
                        limit,
                        recent=self._recent,
                        unfiltered=self._unfiltered,
                        scope=self.scopes.members(con, restriction) if known else None,
                    )
                return scan(con, vector, restriction, limit, model=self.model) if found is None else found
            except vec1.BROKEN as error:
                self._broken.add(table.number)

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
    con: apsw.Connection,
    table: vec1.Table,
    vector: Vector,
    restriction: Restriction,
    limit: int,
    *,
    recent: Recent,
    unfiltered: Unfiltered,
    scope: Ints | None,
) -> Near | None:
    """The nearest among enough candidates; None if too many would be needed. `scope` is all that the restriction may
    admit, if that is known."""
    wanted = max(CANDIDATES, limit + limit // 4)
    depth, lists = wanted, min(table.buckets, LOOKED_THROUGH * isqrt(table.buckets))
    if scope is not None:
        depth = max(depth, _deep_enough(wanted, max(len(scope), 1) / _memories(con)))
        if depth > MOST_CANDIDATES:  # few are meant: their own vectors are read sooner
            return recent.among(con, vector, scope, limit, restriction)
    while depth <= MOST_CANDIDATES:
        rowids = unfiltered.candidates(con, table, vector, restriction, depth=depth, lists=lists)
        if rowids is None:
            rowids = candidates(con, table, vector, restriction, depth=depth, lists=lists)
        all_of_them = len(rowids) < depth
        if all_of_them and lists < table.buckets:
            lists = table.buckets  # others may be in those that were passed over
            continue
        memories = np.array(sorted({row // vec1.PARTS for row in rowids}), np.int64)
        if restriction.by_rows:  # the table's numbers do not say all
            if scope is not None:
                memories = memories[np.isin(memories, scope)]
            else:
                passing = sqlite_words.admitted(con, restriction, memories.tolist())
                memories = np.fromiter((seq for seq, *_ in passing), np.int64)
            found = recent.among(con, vector, memories, max(wanted, limit), restriction)
        else:
            found = recent.few_among(con, vector, memories, limit, restriction)
        if found is None:
            return None
        enough = len(found.scores) >= (wanted if restriction.by_rows else limit)
        if all_of_them or enough:
            return found.best(limit)
        depth = max(2 * depth, _deep_enough(wanted, max(len(found.scores), 1) / len(rowids)))
    return None


def _deep_enough(wanted: int, share: float) -> int:
    """How many candidates it takes, if so large a share of them passes."""
    return int(1.2 * wanted / share)


def _memories(con: apsw.Connection) -> int:
    """How many there are at most."""
    statement = "SELECT max(seq) FROM memories"
    return looked_up(con, statement, lambda: int(con.execute(statement).get or 1))


def candidates(
    con: apsw.Connection, table: vec1.Table, vector: Vector, restriction: Restriction, *, depth: int, lists: int
) -> list[int]:
    """Rows with the nearest codes in so many lists, of all views together.

    Fewer than `depth` are all that there are in these lists.
    """
    restriction = _without_expiry(con, restriction)  # each condition is compared with every code
    found: dict[int, None] = {}
    for view in restriction.views:  # an OR over two columns would be applied after the cut
        where, values = joined(list(conditions(view, restriction)), "AND")
        rows = _rows(con, table, vector, depth=depth, lists=lists, where=f"WHERE {where[1:-1]}", values=values)
        found |= dict.fromkeys(rows)
    return list(found)


def _rows(
    con: apsw.Connection,
    table: vec1.Table,
    vector: Vector,
    *,
    depth: int,
    lists: int,
    where: str = "",
    values: Sequence[Value] = (),
) -> list[int]:
    options = json.dumps({"k": depth, "nprobe": lists})  # below 1 it would be a share, 1.0 is one list
    rows: list[Any] = con.execute(
        f"SELECT rowid FROM {table.name}(?1, ?2) {where}", (to_floats(vector), options, *values)
    ).fetchall()
    return [rowid for (rowid,) in rows]


def _without_expiry(con: apsw.Connection, restriction: Restriction) -> Restriction:
    """Without a condition that every memory meets, as in most stores."""
    return replace(restriction, expired=None) if restriction.expired is False and not any_expire(con) else restriction


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
