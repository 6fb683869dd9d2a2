"""Finding by meaning in a large store: vec1 names the likely memories, their own vectors decide.

The table's numbers filter before the cut, but it is derived data: every candidate is checked against its memory's row
(who may see it, what the filter says) and scored by its full vector. What the table cannot say (tags, paths …) is left
to that check, with more candidates until enough of them pass. Small scopes are read exactly: that is quicker.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw
import numpy as np

from scrubjay.embedders.base import Vector
from scrubjay.memory import Match
from scrubjay.stores.sqlite_filters import Condition, Restriction, View, among, joined, seen
from scrubjay.stores.vec1_tables import BROKEN, NEVER, PARTS, Table, able, code, tables, thousandths
from scrubjay.stores.vectors import Candidates, ExactIndex, VectorIndex, matrix, scan, snapshot, to_blob

FEW = 1_000  # memories whose vectors are read sooner than all codes are compared
CANDIDATES = 200  # the least that are scored: with them the best ten are hardly ever missed
MOST_CANDIDATES = 20_000  # if more were needed, the scope is small enough to be read
COUNTED_ROWS = 300  # of totals that are added up to know a scope's size


class Vec1Index(VectorIndex):
    """Uses the store's vec1 table where there is one of use, else compares exactly."""

    def __init__(self, *, few: int = FEW) -> None:
        self._few = few
        self._exact = ExactIndex()
        self._broken: set[int] = set()  # tables that failed; others may still be fine

    def nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> list[Match]:
        table = self._table(con, len(vector))
        if table is not None:
            if self._few and small(con, restriction, self._few):
                index = "memories_by_user" if restriction.user is not None and not restriction.few else ""
                return scan(con, vector, restriction, limit, index=index)
            try:
                with snapshot(con):
                    found = near(con, table, vector, restriction, limit)
                return scan(con, vector, restriction, limit) if found is None else found
            except BROKEN as error:
                self._broken.add(table.number)
                import logging  # rarely needed, and not free

                logging.getLogger(__name__).warning("the vector index is of no use, comparing exactly: %s", error)
        return self._exact.nearest(con, vector, restriction, limit)

    def _table(self, con: apsw.Connection, dimension: int) -> Table | None:
        for table in tables(con, "ready"):
            if table.dimension == dimension and table.number not in self._broken and able(con):
                return table
        return None


def small(con: apsw.Connection, restriction: Restriction, few: int) -> bool:
    """Whether few memories are meant and an index finds them."""
    return restriction.few or few_by_totals(con, restriction, few) or few_by_time(con, restriction, few)


def few_by_totals(con: apsw.Connection, restriction: Restriction, few: int) -> bool:
    part = "" if restriction.user is None else f"user:{restriction.user}"
    where, values = joined([seen(restriction.views, "totals"), among("state", restriction.states)], "AND")
    rows = con.execute(f"SELECT memories FROM totals WHERE part = ? AND {where} LIMIT {COUNTED_ROWS}", (part, *values))
    counts = [memories for (memories,) in rows]
    return len(counts) < COUNTED_ROWS and sum(counts) <= few


def few_by_time(con: apsw.Connection, restriction: Restriction, few: int) -> bool:
    if restriction.created_since is None and restriction.created_until is None:
        return False
    where, values = joined([seen(restriction.views), among("state", restriction.states)], "AND")
    since, until = restriction.created_since or 0, restriction.created_until
    [(rows,)] = con.execute(
        # memories_by_created
        f"""
        SELECT count(*)
        FROM (SELECT 1 FROM memories WHERE {where} AND created_at BETWEEN ? AND ? LIMIT {few + 1})
        """,
        (*values, since, NEVER if until is None else until),
    )
    return int(rows) <= few


def near(
    con: apsw.Connection, table: Table, vector: Vector, restriction: Restriction, limit: int
) -> list[Match] | None:
    """The nearest among enough candidates; None if too many would be needed."""
    wanted = max(CANDIDATES, limit + limit // 2)
    depth = wanted
    while depth <= MOST_CANDIDATES:
        rowids, all_of_them = candidates(con, table, vector, restriction, depth)
        found = scored(con, rowids, vector, restriction)
        enough = len(found.scores) >= wanted and len(set(found.memories.tolist())) >= limit
        if enough or all_of_them:
            return found.best(limit).matches(con)
        passed = max(len(found.scores), 1) / len(rowids)
        depth = max(2 * depth, int(1.2 * wanted / passed))
    return None


def candidates(
    con: apsw.Connection, table: Table, vector: Vector, restriction: Restriction, depth: int
) -> tuple[list[int], bool]:
    """Rows with the nearest codes, of each view, and whether those are all that there are."""
    options = json.dumps({"k": depth, "nprobe": 0.2})
    found: dict[int, None] = {}
    all_of_them = True
    for view in restriction.views:  # an OR over two columns would be applied after the cut
        where, values = joined(list(conditions(view, restriction)), "AND")
        rows: list[Any] = con.execute(
            f"SELECT rowid FROM {table.name}(?, ?) WHERE {where[1:-1]}", (to_blob(vector), options, *values)
        ).fetchall()
        found |= {rowid: None for (rowid,) in rows}
        all_of_them &= len(rows) < depth
    return list(found), all_of_them


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
