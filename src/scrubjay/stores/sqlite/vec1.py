"""Finding by meaning in a large store: vec1 names the likely memories, their own vectors decide.

The table's numbers filter before the cut, but it is derived data: every candidate is checked against its memory's row
(who may see it, what the filter says) and scored by its full vector. What the table cannot say (tags, paths …) is left
to that check, with more candidates until enough of them pass. Small scopes are read exactly: that is quicker.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import isqrt
from operator import itemgetter
from typing import Any

import apsw
import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.stores.sqlite import filters as sqlite_filters
from scrubjay.stores.sqlite.filters import Condition, Restriction, View, among, joined
from scrubjay.stores.sqlite.vec1_tables import BROKEN, PARTS, Table, able, code, tables, thousandths
from scrubjay.stores.sqlite.vectors import Candidates, ExactIndex, VectorIndex, matrix, scan, snapshot, to_blob
from scrubjay.values.memory import Match

CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
SPARE = 10  # more are looked up than are asked for: equal scores go by age
LOOKED_THROUGH = 3  # times the root of the number of lists; all of them hold hardly one more in two hundred
MOST_CANDIDATES = 20_000  # if more were needed, the scope is small enough to be read


class Vec1Index(VectorIndex):
    """Uses the store's vec1 table where there is one of use, else compares exactly."""

    def __init__(self, *, few: int = sqlite_filters.SMALL) -> None:
        self._few = few
        self._exact = ExactIndex()
        self._broken: set[int] = set()  # tables that failed; others may still be fine

    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
        table = self._table(con, len(vector))
        if table is not None:
            if self._few and sqlite_filters.is_small(con, restriction, self._few):
                return scan(con, vector, restriction, limit, table=sqlite_filters.small_table(restriction))
            try:
                with snapshot(con):
                    found = near(con, table, vector, restriction, limit)
                return scan(con, vector, restriction, limit) if found is None else found
            except BROKEN as error:
                self._broken.add(table.number)
                import logging  # rarely needed, and not free

                logging.getLogger(__name__).warning("the vector index cannot be used, comparing exactly: %s", error)
        return self._exact.nearest(con, vector, restriction, limit)

    def _table(self, con: apsw.Connection, dimension: int) -> Table | None:
        for table in tables(con, "ready"):
            if table.dimension == dimension and table.number not in self._broken and able(con):
                return table
        return None


def near(
    con: apsw.Connection, table: Table, vector: Vector, restriction: Restriction, limit: int
) -> list[Match] | None:
    """The nearest among enough candidates; None if too many would be needed."""
    wanted = max(CANDIDATES, limit + limit // 4)
    depth, lists = wanted, min(table.buckets, LOOKED_THROUGH * isqrt(table.buckets))
    while depth <= MOST_CANDIDATES:
        # Where the table's numbers say all, nearly every candidate passes: score them by the table's own vectors, in
        # one go. Else first see which ones pass.
        rowids, scores = candidates(
            con, table, vector, restriction, depth=depth, lists=lists, scored=not restriction.by_rows
        )
        all_of_them = len(rowids) < depth
        if all_of_them and lists < table.buckets:
            lists = table.buckets  # others may be in those that were passed over
            continue
        if scores is None:
            found = scored(con, rowids, vector, restriction)
        else:
            found = admitted(con, dict(zip(rowids, scores, strict=True)), restriction, limit)
        enough = len(found.scores) >= limit and (scores is not None or len(found.scores) >= wanted)
        if all_of_them or (enough and len(set(found.memories.tolist())) >= limit):
            return found.best(limit).matches(con)
        passed = max(len(found.scores), 1) / len(rowids)
        depth = max(2 * depth, int(1.2 * wanted / passed))
    return None


def candidates(
    con: apsw.Connection,
    table: Table,
    vector: Vector,
    restriction: Restriction,
    *,
    depth: int,
    lists: int,
    scored: bool,
) -> tuple[list[int], list[float] | None]:
    """Rows with the nearest codes in so many lists, of all views together; if wanted, with their cosines and best
    first.

    Fewer than `depth` are all that there are in these lists.
    """
    options = json.dumps({"k": depth, "nprobe": lists})  # below 1 it would be a share, 1.0 is one list
    # Vectors have length 1. What vec1 calls the cosine distance has changed between versions, this has not.
    score = "1.0 - vec1_l2_distance(?1, vector) / 2.0" if scored else "0"
    found: dict[int, float] = {}
    for view in restriction.views:  # an OR over two columns would be applied after the cut
        where, values = joined(list(conditions(view, restriction)), "AND")
        rows: list[Any] = con.execute(
            f"SELECT rowid, {score} FROM {table.name}(?1, ?2) WHERE {where[1:-1]}", (to_blob(vector), options, *values)
        ).fetchall()
        found |= dict(rows)
    if not scored:
        return list(found), None
    best = sorted(found.items(), key=itemgetter(1), reverse=True)
    return [rowid for rowid, _ in best], [cosine for _, cosine in best]


def admitted(con: apsw.Connection, best: Mapping[int, float], restriction: Restriction, limit: int) -> Candidates:
    """Those of the best rows that the restriction really admits; no more memories are looked up than are needed."""
    by_memory: dict[int, float] = {}
    for rowid, score in best.items():
        by_memory.setdefault(rowid // PARTS, score)
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
        return Candidates.none()
    seqs, created, ids = zip(*rows, strict=True)
    return Candidates(
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
        yield "importance >= ?", [thousandths(restriction.min_importance)]
    if restriction.max_importance is not None:
        yield "importance <= ?", [thousandths(restriction.max_importance)]
    if restriction.kinds is not None:
        yield among("kind", [code(kind) for kind in restriction.kinds])
    if restriction.categories is not None:
        yield among("category", [code(category) for category in restriction.categories])
    if restriction.user is not None:
        yield "user = ?", [restriction.user]
    if restriction.conversation is not None:
        yield "conversation = ?", [restriction.conversation]


def scored(con: apsw.Connection, rowids: list[int], vector: Vector, restriction: Restriction) -> Candidates:
    """Those that the restriction really admits, with the cosines of their full vectors."""
    where, values = restriction.condition()
    rows = con.execute(
        # CROSS JOIN keeps the order: each memory by its primary key, then its vector, of those that pass.
        f"""
        SELECT memories.seq, memories.created_at, memories.id, vectors.vector
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value / {PARTS}
        CROSS JOIN vectors ON vectors.memory = memories.seq AND vectors.part = wanted.value % {PARTS}
        WHERE {where}
        AND length(vectors.vector) = ?
        """,
        (json.dumps(rowids), *values, 4 * len(vector)),
    ).fetchall()
    if not rows:
        return Candidates.none()
    seqs, created, ids, blobs = zip(*rows, strict=True)
    return Candidates(
        np.array(seqs, np.int64),
        np.array(created, np.int64),
        np.vecdot(matrix(blobs, len(vector)), vector),
        np.array(ids, np.object_),
    )
