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
from functools import cached_property
from typing import Any

import apsw

from scrubjay.stores.sqlite.filters import Restriction, is_small, members

DEPTH = 50  # memories that are scored at least
MANY = 5_000  # rows to score; of fewer it is not worth the trouble to list those that pass
MOST_ADMITTED = 5_000  # memories whose rows are looked at; if more had to be, those that pass are listed first

Within = Sequence[int] | None  # the numbers of the only memories that are meant
Scores = tuple[Mapping[int, float], bool]  # by the memory's number; whether these are all that there are
Found = tuple[
    float, int, int, str
]  # score, time and order of arrival, id: as compared, of equal ones the newest is first
Score = Callable[[int, Within], Scores]  # how many of the best are listed


class Passing:
    """What a restriction admits."""

    def __init__(self, con: apsw.Connection, restriction: Restriction) -> None:
        self.con, self.restriction = con, restriction

    def of(self, scores: Mapping[int, float]) -> list[Found]:
        """Which of these memories are admitted."""
        if not scores:
            return []
        where, values = self.restriction.condition()
        rows = self.con.execute(
            # CROSS JOIN keeps the order: each memory by its primary key.
            f"""
            SELECT memories.seq, memories.created_at, memories.id
            FROM carray(?) AS wanted
            CROSS JOIN memories ON memories.seq = wanted.value
            WHERE {where}
            """,
            (numbers(scores), *values),
        )
        return [(scores[seq], created, seq, memory) for seq, created, memory in rows]

    @cached_property
    def listed(self) -> list[int]:
        """All, and perhaps some that are not admitted."""
        statement, values = members(self.restriction)
        return [int(seq) for (seq,) in self.con.execute(statement, values)]

    def best(self, limit: int, score: Score, *, few: int) -> list[Found]:
        """The best, best first; at most `few` count as few."""
        within = self.listed if is_small(self.con, self.restriction, few) else None
        depth = max(DEPTH, limit + limit // 8)
        while within is None or within:
            scores, complete = score(depth, within)
            found = self.of(scores)
            if complete or len(found) >= limit:
                return sorted(found, reverse=True)[:limit]
            deeper = max(4 * depth, int(1.2 * limit * len(scores) / max(len(found), 1)))
            if within is None and deeper > MOST_ADMITTED:
                within = self.listed
            else:
                depth = deeper
        return []


def numbers(memories: Collection[int]) -> Any:
    """As SQLite reads them; there is at least one."""
    return apsw.carray(array("q", memories))


def by_number(con: apsw.Connection, ids: Collection[str]) -> dict[int, str]:
    """Memories by their number in this store, which never changes."""
    rows = con.execute(
        # the unique index of ids
        "SELECT seq, memories.id FROM json_each(?) AS wanted CROSS JOIN memories ON memories.id = wanted.value",
        (json.dumps([*ids]),),
    )
    return dict(rows)
