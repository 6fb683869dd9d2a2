"""How much a restriction admits, told without reading it: small scopes are searched another way than large ones."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import apsw

from scrubjay.stores.sqlite.filters import Restriction, among, joined, seen

FEW = 1_000  # memories whose vectors are read sooner than all codes are compared
COUNTED_ROWS = 300  # of totals that are added up to know
NEVER = 2**62


def small(con: apsw.Connection, restriction: Restriction, few: int = FEW) -> bool:
    """Whether few memories are meant and an index finds them."""
    return restriction.few or _few_by_totals(con, restriction, few) or _few_by_time(con, restriction, few)


def memories(restriction: Restriction) -> str:
    """The table to read a small scope from, with the index that the planner would not take by itself."""
    by_user = restriction.user is not None and not restriction.few
    return "memories INDEXED BY memories_by_user" if by_user else "memories"


def _few_by_totals(con: apsw.Connection, restriction: Restriction, few: int) -> bool:
    part = "" if restriction.user is None else f"user:{restriction.user}"
    where, values = joined([seen(restriction.views, "totals"), among("state", restriction.states)], "AND")
    rows = con.execute(f"SELECT memories FROM totals WHERE part = ? AND {where} LIMIT {COUNTED_ROWS}", (part, *values))
    counts = [count for (count,) in rows]
    return len(counts) < COUNTED_ROWS and sum(counts) <= few


def _few_by_time(con: apsw.Connection, restriction: Restriction, few: int) -> bool:
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
