"""Scopes that are asked about again and again, with their vectors in memory: there a search by meaning reads no page.

A scope is what a filter and an audience admit: a user's memories, those with a tag, a space. Once it was asked about
often enough, its vectors are read into an array, and a question is compared with all of them, exactly. Before each
answer the server is asked which memories have changed since (`changed_memories`, noted by triggers), and those are read
again: so whatever is committed is seen, whoever has written it. What needs no write to change is decided each time:
whether a memory has expired, and what others supersede for this audience.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Restriction, looked_at
from scrubjay.stores.postgres.values import Numbers, fetched, numbers_of
from scrubjay.values.memory import Match

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

MOST_BYTES = 32_000_000  # that all vectors in memory take: 20,000 of 384 numbers
IDLE_SECONDS = 600.0  # a scope that nobody asks about is forgotten
PAID_BACK = 2_500  # memories: reading so many costs about what one question saves by it
MOST_ASKED = 1_000  # scopes of which it is known how often they were asked about
MOST_MISSED = 1_000  # changed memories that are read by themselves
NAMED = 10_000  # changes that the server has at least, and triggers that note them (0021_changed_memories.sql) …
TRIGGERS = 6  # … which a database that spreads its tables may not have
NEVER = 2**63 - 1


class Scopes:
    """Those of one store. Safe to call from several threads, each with its own connection."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Scope] = {}  # the one that was asked about last comes last, as in the next one
        self._asked: dict[Hashable, int] = {}

    def current(
        self, con: Connection, asked: Hashable, restriction: Restriction, *, dimension: int, size: float
    ) -> Current | None:
        """A scope as it stands, if it is in memory or worth reading; `size` is about how many memories it has."""
        key = (asked, dimension)
        scope = self._scope(key, restriction, size)
        if scope is None:
            return None
        with scope.lock:
            current = scope.current(con, restriction)
        if current is None:
            with self._lock:
                self._kept.pop(key, None)
        self._make_room()
        return current

    def _scope(self, key: tuple[Hashable, int], restriction: Restriction, size: float) -> Scope | None:
        with self._lock:
            scope = self._kept.pop(key, None)
            if scope is None and self._worth_it(key, restriction, size):
                del self._asked[key]
                scope = Scope(key[1])
            if scope is not None:
                scope.asked_at = time.monotonic()
                self._kept[key] = scope
            return scope

    def _worth_it(self, key: tuple[Hashable, int], restriction: Restriction, size: float) -> bool:
        if size > most_rows(key[1]) or not restriction.follows_changes:
            return False
        asked = self._asked.pop(key, 0) + 1
        if len(self._asked) >= MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        self._asked[key] = asked
        return asked > 1 and asked * PAID_BACK >= size

    def _make_room(self) -> None:
        with self._lock:
            idle, size = time.monotonic() - IDLE_SECONDS, sum(scope.bytes for scope in self._kept.values())
            for key, scope in [*self._kept.items()][:-1]:
                if size > MOST_BYTES or scope.asked_at < idle:
                    del self._kept[key]
                    size -= scope.bytes


class Scope:
    """The vectors of one scope, a part of a memory a row. Everything happens under its lock."""

    def __init__(self, dimension: int) -> None:
        import numpy as np

        self.lock = threading.Lock()
        self.asked_at = 0.0
        self._upto = -1  # the last change that it knows of; below 0: nothing was read yet
        self._count = 0
        self._ids: list[str] = []
        self._rows: dict[str, list[int]] = {}
        self._numbers = np.zeros(
            (0, 3), np.int64
        )  # of the memory, when it was made, when it expires; with room for more
        self._vectors = np.zeros((0, dimension), np.float32)

    @property
    def bytes(self) -> int:
        return self._vectors.nbytes

    def current(self, con: Connection, restriction: Restriction) -> Current | None:
        """With all that was committed before; None if there is too much of it."""
        changes = _changes(con, self._upto, restriction)
        dimension = self._vectors.shape[1]
        missed = list[int]() if self._upto < 0 else changes.since(self._upto)
        if missed is None or (self._upto < 0 and not _are_noted(con)):
            return None
        if missed or self._upto < 0:
            found = _read(con, restriction, dimension, missed or None)
            if self._count + len(found) > most_rows(dimension):
                return None
            self._replace(missed, found)
        self._upto = changes.last
        return Current(self, restriction.unexpired_at, frozenset(changes.outdated))

    def compared(
        self, vector: Vector, limit: int, *, unexpired_at: int | None, outdated: Collection[str], also: Sequence[str]
    ) -> tuple[list[Match], dict[str, float]]:
        """The nearest, best first, equal ones newest first; and the cosines of what else is asked for and in it."""
        import numpy as np

        cosines = np.vecdot(self._vectors[: self._count], vector)  # one thread: those of BLAS cost more than they save
        known = {
            memory: max(cosines[row].item() for row in self._rows[memory]) for memory in also if memory in self._rows
        }
        if unexpired_at is not None:
            cosines[self._numbers[: self._count, 2] <= unexpired_at] = -np.inf
        for memory in outdated:
            cosines[self._rows.get(memory, [])] = -np.inf
        return self._best(cosines, limit), known

    def _best(self, cosines: Any, limit: int) -> list[Match]:
        import numpy as np

        depth = limit + limit // 4
        while True:
            rows = np.argpartition(-cosines, depth)[:depth] if depth < len(cosines) else np.arange(len(cosines))
            number, created = self._numbers[rows, 0], self._numbers[rows, 1]
            rows = rows[np.lexsort((-number, -created, -cosines[rows]))]
            best: dict[str, float] = {}
            for row, cosine in zip(rows.tolist(), cosines[rows].tolist(), strict=True):
                if cosine > -np.inf:
                    best.setdefault(self._ids[row], cosine)
            if len(best) >= limit or depth >= len(cosines):
                return [Match(memory, cosine) for memory, cosine in [*best.items()][:limit]]
            depth *= 4  # long memories took several places each

    def _replace(self, gone: Collection[int], found: Sequence[tuple[Any, ...]]) -> None:
        """Take the memories with these numbers out, and rows in."""
        import numpy as np

        for row in np.flatnonzero(np.isin(self._numbers[: self._count, 0], [*gone]))[::-1].tolist():
            self._remove(row)
        if not found:
            return
        first, self._count = self._count, self._count + len(found)
        if self._count > len(self._vectors):
            room = self._count + self._count // 8 if gone else self._count
            self._numbers, self._vectors = (_grown(column, room) for column in (self._numbers, self._vectors))
        numbers, ids, created, expires, vectors = zip(*found, strict=True)
        expires = tuple(NEVER if at is None else at for at in expires)
        self._numbers[first : self._count] = np.array((numbers, created, expires), np.int64).T
        self._vectors[first : self._count] = numbers_of(vectors)
        self._ids += ids
        for row, memory in enumerate(ids, first):
            self._rows.setdefault(memory, []).append(row)

    def _remove(self, row: int) -> None:
        """The last row comes into its place."""
        self._count = last = self._count - 1
        memory, moved = self._ids[row], self._ids[last]
        self._rows[moved].remove(last)
        if row != last:
            self._rows[memory].remove(row)
            self._rows[moved].append(row)
            self._ids[row], self._numbers[row], self._vectors[row] = moved, self._numbers[last], self._vectors[last]
        if not self._rows[memory]:
            del self._rows[memory]
        self._vectors[last] = 0  # nothing stays of what was erased
        self._ids.pop()


class Current(NamedTuple):
    """A scope as it stood a moment ago."""

    scope: Scope
    unexpired_at: int | None
    outdated: frozenset[str]

    def compared(self, vector: Vector, limit: int, also: Sequence[str] = ()) -> tuple[list[Match], dict[str, float]]:
        from scrubjay.stores.sqlite.vectors import check

        check(vector)
        with self.scope.lock:
            return self.scope.compared(vector, limit, unexpired_at=self.unexpired_at, outdated=self.outdated, also=also)


class Changes(NamedTuple):
    """What the server tells of those behind a number."""

    last: int
    memories: Sequence[int | None]  # none: more than are worth naming
    outdated: Sequence[str]  # memories that are superseded for an audience

    def since(self, number: int) -> list[int] | None:
        """The memories that have changed; None if not all of them are known."""
        known = [memory for memory in self.memories if memory is not None]
        # What is not there any more is of another past: a server that was restored.
        all_told = number <= self.last <= number + NAMED and len(known) == len(self.memories) <= MOST_MISSED
        return known if all_told else None


def most_rows(dimension: int) -> int:
    return MOST_BYTES // (4 * dimension)


def _changes(con: Connection, behind: int, restriction: Restriction) -> Changes:
    outdated, values = restriction.outdated or ("ARRAY[]::TEXT[]", [])
    [row] = con.execute(
        # the primary key of changed_memories
        f"""
        SELECT
            (SELECT coalesce(max(number), 0) FROM changed_memories),
            ARRAY(SELECT DISTINCT memory FROM changed_memories WHERE number > %s LIMIT %s),
            {outdated}
        """,
        (NEVER if behind < 0 else behind, MOST_MISSED + 1, *values),
    )
    return Changes(*row)


def _are_noted(con: Connection) -> bool:
    [(noted,)] = con.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgfoid = to_regproc('note_changes') AND tgenabled = 'O'"
    )
    return bool(noted == TRIGGERS)


def _read(
    con: Connection, restriction: Restriction, dimension: int, memories: Collection[int] | None
) -> list[tuple[Any, ...]]:
    """What is in the scope, of all memories or of some: a memory's number, id and times, and a vector."""
    where, values = restriction.lasting(tagged_first=True)
    tables, signatures = looked_at("signatures", where)
    among, these = ("TRUE", []) if memories is None else ("memories.seq = ANY(%s)", [Numbers(memories)])
    return fetched(
        con,
        # As in signatures.py: the index that the conditions have, then the primary key of vectors.
        f"""
        SELECT memories.seq, memories.id, memories.created_at, memories.expires_at, vector_send(vectors.vector)
        FROM {tables}
        JOIN vectors
        ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.part = {signatures}.part
        WHERE {where}
        AND vector_dims(vectors.vector) = %s
        AND {among}
        LIMIT %s
        """,
        (*values, dimension, *these, most_rows(dimension) + 1),
        binary=True,
    )


def _grown(column: Any, rows: int) -> Any:
    import numpy as np

    grown = np.zeros((rows, column.shape[1]), column.dtype)
    grown[: len(column)] = column
    return grown
