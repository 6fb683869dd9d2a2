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
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Restriction, looked_at
from scrubjay.stores.postgres.values import Numbers, fetched, numbers_of
from scrubjay.values.memory import Match

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

MOST_BYTES = 32_000_000  # that all vectors in memory take: 20,000 of 384 numbers
IDLE_SECONDS = 600.0  # an unused scope is forgotten after this
FROM_QUESTION = 2  # about a scope, it may be read; many programs ask only once …
PAID_BACK = 1_000  # … and reading so many memories costs about twice what one question saves by it
NOT_SOON = -20  # questions to go before one that had to make room is read again …
NOT_AGAIN = -1_000  # … or one that could not be kept
MOST_KNOWN = 1_000  # scopes that are kept, and of which it is known how often they were asked about
MOST_MISSED = 1_000  # changed memories that are read by themselves
NAMED = 10_000  # changes that the server has at least, and triggers that note them (0021_changed_memories.sql) …
TRIGGERS = 6  # … which a database that spreads its tables may not have
READ_AGAIN_SECONDS = 60.0  # after which reading one that was not read is tried again
NEVER = 2**63 - 1


class Scopes:
    """Those of one store. Safe to call from several threads, each with its own connection."""

    def __init__(self, soon: Callable[[Callable[[Connection], None]], object]) -> None:
        """`soon` does something in the background, with a connection of its own."""
        self._soon = soon
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Scope] = {}  # the one that was asked about last comes last, as in the next one
        self._asked: dict[Hashable, int] = {}

    def current(
        self, con: Connection, asked: Hashable, restriction: Restriction, *, dimension: int, size: float
    ) -> Current | None:
        """A scope as it stands, if it is in memory; `size` is about how many memories it has."""
        self._make_room()  # others may have grown, or be idle
        if size > most_rows(dimension):
            return None
        key = (asked, dimension)
        scope, due = self._scope(key, restriction, size)
        if scope is not None and due:
            self._soon(partial(self._read, key, scope, restriction))
        if scope is None or not scope.read:
            return None
        with scope.lock:
            current = scope.current(con, restriction)
        if current is None:
            self._forget(key)
        return current

    def _scope(self, key: tuple[Hashable, int], restriction: Restriction, size: float) -> tuple[Scope | None, bool]:
        """One that is kept, or a new one if it is worth it; and whether it is to be read."""
        with self._lock:
            known = self._kept.pop(key, None)
            scope = Scope(key[1]) if known is None and self._worth_it(key, restriction, size) else known
            if scope is None:
                return None, False
            scope.asked_at = now = time.monotonic()
            self._kept[key] = scope
            due = not scope.read and now >= scope.read_from
            if due:  # tried again if the server has no connection for it just now
                scope.read_from = now + READ_AGAIN_SECONDS
            return scope, due

    def _worth_it(self, key: tuple[Hashable, int], restriction: Restriction, size: float) -> bool:
        if not restriction.follows_changes:
            return False
        asked = self._asked.get(key, 0) + 1
        self._note(key, asked)
        return asked >= FROM_QUESTION and asked * PAID_BACK >= size

    def _read(self, key: Hashable, scope: Scope, restriction: Restriction, con: Connection) -> None:
        try:
            with scope.lock:
                scope.current(con, restriction)
        finally:
            if not scope.read:
                self._forget(key, asked=NOT_AGAIN)

    def _forget(self, key: Hashable, *, asked: int = 0) -> None:
        with self._lock:
            self._kept.pop(key, None)
            self._note(key, asked)

    def _note(self, key: Hashable, asked: int) -> None:
        self._asked.pop(key, None)
        if len(self._asked) >= MOST_KNOWN:
            del self._asked[next(iter(self._asked))]
        self._asked[key] = asked

    def _make_room(self) -> None:
        with self._lock:
            idle, size = time.monotonic() - IDLE_SECONDS, sum(scope.bytes for scope in self._kept.values())
            for key, scope in [*self._kept.items()][:-1]:
                if size > MOST_BYTES or len(self._kept) > MOST_KNOWN or scope.asked_at < idle:
                    del self._kept[key]
                    self._note(key, NOT_SOON)
                    size -= scope.bytes


class Scope:
    """The vectors of one scope, a part of a memory a row. Everything happens under its lock."""

    def __init__(self, dimension: int) -> None:
        import numpy as np

        self.lock = threading.Lock()
        self.asked_at = 0.0
        self.read_from = 0.0  # not before; what was begun may still go on
        self._upto = -1  # the last change that it knows of; below 0: nothing was read yet …
        self._mark = ""  # … and what tells it from one with this number in another past
        self._count = 0
        self._ids: list[str] = []
        self._rows: dict[str, list[int]] = {}
        # With room for more: the memory's number, when it was made and when it expires; and the vectors.
        self._numbers = np.zeros((0, 3), np.int64)
        self._vectors = np.zeros((0, dimension), np.float32)

    @property
    def read(self) -> bool:
        return self._upto >= 0

    @property
    def bytes(self) -> int:
        return self._vectors.nbytes

    def current(self, con: Connection, restriction: Restriction) -> Current | None:
        """With all that was committed before; None if there is too much of it."""
        changes = _changes(con, self._upto, self._mark, restriction)
        dimension = self._vectors.shape[1]
        missed = changes.since(self._upto) if self.read else list[int]()
        if missed is None or not (self.read or _are_noted(con)):
            return None
        if missed or not self.read:
            found = _found(con, restriction, dimension, missed or None)
            if self._count + len(found.ids) > most_rows(dimension):
                return None
            self._replace(missed, found)
        self._upto, self._mark = changes.last, changes.mark
        return Current(self, restriction.unexpired_at, frozenset(changes.outdated))

    def compared(
        self, vector: Vector, limit: int, *, unexpired_at: int | None, outdated: Collection[str], also: Sequence[str]
    ) -> tuple[list[Match], dict[str, float]]:
        """The nearest, best first, equal ones newest first; and the cosines of what else is asked for and in it."""
        import numpy as np

        cosines = np.vecdot(self._vectors[: self._count], vector)  # one thread: those of BLAS cost more than they save
        parts = [(memory, row) for memory in also for row in self._rows.get(memory, ())]
        known: dict[str, float] = {}
        for (memory, _), cosine in zip(parts, cosines[[row for _, row in parts]].tolist(), strict=True):
            known[memory] = max(known.get(memory, cosine), cosine)
        if unexpired_at is not None:
            cosines[self._numbers[: self._count, 2] <= unexpired_at] = -np.inf
        for memory in outdated:
            cosines[self._rows.get(memory, [])] = -np.inf
        return self._best(cosines, limit), known

    def _best(self, cosines: Any, limit: int) -> list[Match]:
        import numpy as np

        depth = limit + limit // 4
        while True:
            # With all that are as near as the last one: which of them come first is decided by their age.
            last = -np.partition(-cosines, depth)[depth] if depth < len(cosines) else -np.inf
            rows = np.flatnonzero(cosines >= last)
            number, created = self._numbers[rows, 0], self._numbers[rows, 1]
            rows = rows[np.lexsort((-number, -created, -cosines[rows]))]
            best: dict[str, float] = {}
            for row, cosine in zip(rows.tolist(), cosines[rows].tolist(), strict=True):
                if cosine > -np.inf:
                    best.setdefault(self._ids[row], cosine)
            if len(best) >= limit or depth >= len(cosines):
                return [Match(memory, cosine) for memory, cosine in [*best.items()][:limit]]
            depth *= 4  # long memories took several places each

    def _replace(self, gone: Collection[int], found: Found) -> None:
        """Take the memories with these numbers out, and rows in."""
        import numpy as np

        new = found.numbers(), numbers_of(found.vectors, self._vectors.shape[1])
        for row in np.flatnonzero(np.isin(self._numbers[: self._count, 0], [*gone]))[::-1].tolist():
            self._remove(row)
        first, count = self._count, self._count + len(found.ids)
        if not first:
            self._numbers, self._vectors = new
        else:
            if count > len(self._vectors):
                room = count + count // 8
                self._numbers, self._vectors = _grown(self._numbers, room), _grown(self._vectors, room)
            self._numbers[first:count], self._vectors[first:count] = new
        self._ids += found.ids
        for row, memory in enumerate(found.ids, first):
            self._rows.setdefault(memory, []).append(row)
        self._count = count

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
        from scrubjay.stores.sqlite.vectors.blobs import check

        check(vector)
        with self.scope.lock:
            return self.scope.compared(vector, limit, unexpired_at=self.unexpired_at, outdated=self.outdated, also=also)


class Changes(NamedTuple):
    """What the server tells of those behind a number."""

    last: int
    mark: str  # of the last
    same_past: bool  # what was known is still so: else the server was restored, or another one took over
    memories: Sequence[int | None]  # none: more than are worth naming
    outdated: Sequence[str]  # memories that are superseded for an audience

    def since(self, number: int) -> list[int] | None:
        """The memories that have changed; None if not all of them are known."""
        known = [memory for memory in self.memories if memory is not None]
        few = self.last <= number + NAMED and len(known) == len(self.memories) <= MOST_MISSED
        return known if few and self.same_past else None


def most_rows(dimension: int) -> int:
    return MOST_BYTES // (4 * dimension)


def _changes(con: Connection, behind: int, mark: str, restriction: Restriction) -> Changes:
    outdated, values = restriction.outdated or ("ARRAY[]::TEXT[]", [])
    [row] = con.execute(
        # the primary key of changed_memories
        f"""
        SELECT
            coalesce(last.number, 0), coalesce(last.mark::TEXT, ''),
            coalesce((SELECT mark::TEXT FROM changed_memories WHERE number = %s), '') = %s,
            ARRAY(SELECT DISTINCT memory FROM changed_memories WHERE number > %s LIMIT %s),
            {outdated}
        FROM (VALUES (1)) AS one
        LEFT JOIN (SELECT number, mark FROM changed_memories ORDER BY number DESC LIMIT 1) AS last ON TRUE
        """,
        (behind, mark, NEVER if behind < 0 else behind, MOST_MISSED + 1, *values),
    )
    return Changes(*row)


def _are_noted(con: Connection) -> bool:
    [(noted,)] = con.execute(
        "SELECT count(*) FROM pg_trigger WHERE tgfoid = to_regproc('note_changes') AND tgenabled = 'O'"
    )
    return bool(noted == TRIGGERS)


class Found(NamedTuple):
    """Rows of a scope, as columns."""

    memories: Sequence[int]
    ids: Sequence[str]
    created_at: Sequence[int]
    expires_at: Sequence[int]
    vectors: bytes  # one behind the other, as pgvector sends them

    def numbers(self) -> Any:
        import numpy as np

        return np.array((self.memories, self.created_at, self.expires_at), np.int64).T


def _found(con: Connection, restriction: Restriction, dimension: int, memories: Collection[int] | None) -> Found:
    """What is in the scope, of all memories or of some."""
    where, values = restriction.lasting(tagged_first=True)
    tables, signatures = looked_at("signatures", where)
    among, these = ("TRUE", []) if memories is None else ("memories.seq = ANY(%s)", [Numbers(memories)])
    [row] = fetched(
        con,
        # As in signatures.py: the index that the conditions have, then the primary key of vectors. In columns thousands
        # of rows take a fifth of the time.
        f"""
        SELECT
            coalesce(array_agg(seq), ARRAY[]::BIGINT[]), coalesce(array_agg(id), ARRAY[]::TEXT[]),
            coalesce(array_agg(created_at), ARRAY[]::BIGINT[]), coalesce(array_agg(expires_at), ARRAY[]::BIGINT[]),
            coalesce(string_agg(vector_send(vector), ''), '')
        FROM (
            SELECT memories.seq, memories.id, memories.created_at, coalesce(memories.expires_at, %s) AS expires_at,
                vectors.vector
            FROM {tables}
            JOIN vectors
            ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.part = {signatures}.part
            WHERE {where}
            AND vector_dims(vectors.vector) = %s
            AND {among}
            LIMIT %s
        ) AS found
        """,
        (NEVER, *values, dimension, *these, most_rows(dimension) + 1),
        binary=True,
    )
    return Found(*row)


def _grown(column: Any, rows: int) -> Any:
    import numpy as np

    grown = np.zeros((rows, column.shape[1]), column.dtype)
    grown[: len(column)] = column
    return grown
