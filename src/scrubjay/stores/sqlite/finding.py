"""What is found best, and passes: the same for words and for vectors.

Whoever finds names memories with their scores, best first, whatever they are; then the memories' rows say which of them
the restriction admits. Of a few memories, or where hardly any pass, those that pass are listed first and only they are
scored.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from scrubjay.stores.sqlite.filters import Restriction, is_small, members

DEPTH = 50  # memories that are scored at least
MANY = 5_000  # rows to score; of fewer it is not worth the trouble to list those that pass
MOST_ADMITTED = 5_000  # memories whose rows are looked at; if more had to be, those that pass are listed first

Within = Sequence[int] | None  # the numbers of the only memories that are meant
Scores = tuple[Mapping[int, float], bool]  # by the memory's number; whether these are all that there are
Score = Callable[[int, Within], Scores]  # so many of the best


class Found(NamedTuple):
    """A memory that was found. They are compared by what they begin with: of equal ones the newest comes first."""

    score: float
    created: int
    seq: int
    id: str


def best(con: apsw.Connection, restriction: Restriction, limit: int, score: Score, *, few: int) -> list[Found]:
    """The best that the restriction admits, best first. So many are `few`."""
    within = _listed(con, restriction) if is_small(con, restriction, few) else None
    depth = max(DEPTH, limit + limit // 4)
    while within is None or len(within):
        scores, complete = score(depth, within)
        found = admitted(con, restriction, scores)
        if complete or len(found) >= limit:
            return sorted(found, reverse=True)[:limit]
        deeper = max(4 * depth, int(1.2 * limit * len(scores) / max(len(found), 1)))
        if within is None and deeper > MOST_ADMITTED:
            within = _listed(con, restriction)
        else:
            depth = deeper
    return []


def _listed(con: apsw.Connection, restriction: Restriction) -> list[int]:
    statement, values = members(restriction)
    return [int(seq) for (seq,) in con.execute(statement, values)]


def numbers(memories: Collection[int]) -> Any:
    """As SQLite reads them; there is at least one."""
    return apsw.carray(array("q", memories))


def admitted(con: apsw.Connection, restriction: Restriction, scores: Mapping[int, float]) -> list[Found]:
    """Those of these memories that the restriction admits."""
    if not scores:
        return []
    where, values = restriction.condition()
    rows = con.execute(
        # CROSS JOIN keeps the order: each memory by its primary key.
        f"""
        SELECT memories.seq, memories.created_at, memories.id
        FROM carray(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value
        WHERE {where}
        """,
        (numbers(scores), *values),
    )
    return [Found(scores[seq], created, seq, memory) for seq, created, memory in rows]


def by_number(con: apsw.Connection, ids: Collection[str]) -> dict[int, str]:
    """Memories by their number in this store, which never changes."""
    rows = con.execute(
        # the unique index of ids
        "SELECT seq, memories.id FROM json_each(?) AS wanted CROSS JOIN memories ON memories.id = wanted.value",
        (json.dumps([*ids]),),
    )
    return dict(rows)
