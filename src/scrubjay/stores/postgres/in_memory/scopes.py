"""Scopes that are asked about again and again, with their vectors in memory: there a search by meaning reads no page.

A scope is what a filter and an audience admit: a user's memories, those with a tag, a space. Once it was asked about
often enough, its vectors are read into an array, and a question is compared with all of them, exactly; in a large scope
with those whose signatures are most like its own (`Levels`). Before each answer the server is asked which memories have
changed since (`changed_memories`, noted by triggers), and those are read again: so whatever is committed is seen,
whoever has written it. What needs no write to change is decided each time: whether a memory has expired, and what
others supersede for this audience. Which passages hold the words that were asked for is kept as well (postings.py).
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.lazy import numpy as np
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Restriction, looked_at
from scrubjay.stores.postgres.in_memory import glimpses as postgres_glimpses
from scrubjay.stores.postgres.in_memory import postings as postgres_postings
from scrubjay.stores.postgres.in_memory.glimpses import Openings, Seen
from scrubjay.stores.postgres.in_memory.postings import Held, Postings, heaviest
from scrubjay.stores.postgres.signatures import Levels, widened
from scrubjay.stores.postgres.values import Numbers, fetched, numbers_of
from scrubjay.stores.postgres.words import Statistics, asked, statistics
from scrubjay.stores.tables.sql import Condition
from scrubjay.stores.tables.stems import stems
from scrubjay.values.memory import Glimpses
from scrubjay.values.words import query_words

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

MOST_BYTES = 192_000_000  # that vectors and words in memory take: 125,000 of 384 numbers
ALL_COMPARED = 10_000  # vectors, in 1.5 ms; of more than these the likely ones …
LIKELY = 10  # … times as many as are asked for: of 100,000 they hold all of the best ten, 99 % of the best 200 …
LEAST_LIKELY = 2_000  # … and never fewer
AT_ONCE = 256  # vectors are compared
READ_AT_ONCE = 5_000  # memories: neither side has all of a large scope twice
IDLE_SECONDS = 600.0  # an unused scope is forgotten after this
FROM_QUESTION = 2  # about a scope, it may be read; many programs ask only once …
PAID_BACK = 1_000  # … and reading so many memories costs about twice what one question saves by it
NOT_SOON = -20  # questions to go before one that had to make room is read again …
NOT_AGAIN = -1_000  # … or one that could not be kept
MOST_KNOWN = 1_000  # scopes that are kept, and of which it is known how often they were asked about
MOST_MISSED = 1_000  # changed memories that are read by themselves
NAMED = 10_000  # changes that the server has at least, and triggers that note them (0021_changed_memories.sql, 0022) …
TRIGGERS = 9  # … which a database that spreads its tables may not have
NEVER = 2**63 - 1
MOST_COUNTED = 2_000  # words of which it is known how rare they are
READ_AGAIN_SECONDS = 60.0  # after which reading one that was not read is tried again


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
        key = (asked, dimension)
        if size > most_rows(dimension):
            self._forget(key)  # it may have been smaller
            return None
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
            scope = Scope(key[1], int(size)) if known is None and self._worth_it(key, restriction, size) else known
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

    def __init__(self, dimension: int, size: int = 0) -> None:
        """`size` is about how many memories it has."""
        self.lock = threading.Lock()
        self.asked_at = 0.0
        self.read_from = 0.0  # not before; what was begun may still go on
        self._upto = -1  # the last change that it knows of; below 0: nothing was read yet …
        self._mark = ""  # … and what tells it from one with this number in another past
        self._count = 0
        self._ids: list[str] = []
        self._rows: dict[int, list[int]] = {}  # by the memory's number
        # With room for more: the memory's number, when it was made and when it expires; and the vectors.
        # … and what `Seen.numbers` has.
        self._numbers = np.zeros((5, 0), np.int64)
        self._vectors = np.zeros((0, dimension), np.float32)
        self._levels: Levels | None = None  # of a large one
        self._size = size
        self._postings = Postings()
        self._openings = Openings()
        self._first_expiry = NEVER  # of those that are or were in it
        self._counted: tuple[tuple[int, str], Statistics] | None = None  # how rare words are, as of which state

    @property
    def read(self) -> bool:
        return self._upto >= 0

    @property
    def bytes(self) -> int:
        vectors = self._count * self._vectors.strides[0]  # room that was never used takes none
        return vectors + self._postings.bytes + self._openings.bytes

    @property
    def state(self) -> tuple[int, str]:
        """What it knows of changes."""
        return self._upto, self._mark

    def current(self, con: Connection, restriction: Restriction) -> Current | None:
        """With all that was committed before; None if there is too much of it."""
        changes = _changes(con, self._upto, self._mark, restriction)
        dimension = self._vectors.shape[1]
        missed = changes.since(self._upto) if self.read else list[int]()
        if missed is None or not (self.read or _are_noted(con)):
            return None
        if missed or not self.read:
            for among in [_named(missed)] if self.read else self._all(con):
                found = _found(con, restriction, dimension, among)
                if self._count + len(found.ids) > most_rows(dimension):
                    return None
                self._replace(missed, found)
        if missed and self._postings:
            self._postings.note(missed, postgres_postings.passages_of(con, restriction, _named(missed)))
        self._upto, self._mark = changes.last, changes.mark
        return Current(self, self.state, restriction.unexpired_at, frozenset(changes.outdated))

    def statistics(self, con: Connection, restriction: Restriction, current: Current, stems: set[str]) -> Statistics:
        """How rare words are. Whatever changes that has changed words, which is noted: until then the server is asked
        once about each."""
        with self.lock:
            known = self._counted[1] if self._counted and self._counted[0] == current.state else None
        frequencies = {} if known is None or len(known.frequencies) > MOST_COUNTED else known.frequencies
        if known is None or not stems <= frequencies.keys():
            told = statistics(con, restriction, stems - frequencies.keys())
            known = told._replace(frequencies={**frequencies, **told.frequencies})
            with self.lock:
                if self.state == current.state:
                    self._counted = current.state, known
        return known._replace(frequencies={stem: known.frequencies[stem] for stem in sorted(stems)})

    def held(
        self, con: Connection, stems: Iterable[str], restriction: Restriction, current: Current
    ) -> dict[str, Held]:
        """The passages that hold these words. What is not known of them yet is asked without the lock, by a connection
        that has seen the scope's last change, and kept if there was no other meanwhile."""
        with self.lock:
            kept = {stem: self._postings.held(stem) for stem in stems}
        held = {stem: one for stem, one in kept.items() if one is not None}
        if missing := [stem for stem in kept if stem not in held]:
            read = postgres_postings.read(con, restriction, missing)
            with self.lock:
                for stem, one in zip(missing, read, strict=True):
                    held[stem] = self._postings.newest(one)
                    if self.state == current.state:
                        self._postings.keep(stem, held[stem])
        return {stem: held[stem] for stem in kept}  # in the order that was asked for

    def names(self, memories: Iterable[int]) -> dict[int, str]:
        """The ids of those that are in it."""
        return {memory: self._ids[rows[0]] for memory in memories if (rows := self._rows.get(memory))}

    def glimpses(self, memories: Mapping[str, int]) -> Glimpses | None:
        """Of memories, each with its number; None if one of them is not known here."""
        rows = [rows[0] for number in memories.values() if (rows := self._rows.get(number))]
        texts = self._openings.texts(rows) if len(rows) == len(memories) else None
        if texts is None:
            return None
        _, created_at, _, conversation, length = self._numbers[:, rows]
        valid_from, valid_until = self._openings.valid([*memories.values()])
        return Glimpses([*memories], created_at, valid_from, valid_until, conversation, length, texts)

    def vectors(self, memories: Mapping[str, int]) -> dict[str, Vector] | None:
        """The first part's, of memories with their numbers; None if one is not known here, or has several parts: which
        of its rows is the first one's is not kept."""
        rows = [row for number in memories.values() for row in self._rows.get(number, ())]
        alone = len(rows) == len(memories) == len({*self._numbers[0, rows].tolist()})
        return dict(zip(memories, self._vectors[rows], strict=True)) if alone else None

    def compared(
        self, vector: Vector, limit: int, *, unexpired_at: int | None, outdated: Collection[str], also: Sequence[int]
    ) -> tuple[list[Matched], dict[str, float]]:
        """The nearest, best first, equal ones newest first; and the cosines of what else is asked for and in it."""
        rows = [row for memory in also for row in self._rows.get(memory, ())]
        known: dict[str, float] = {}
        for row, cosine in zip(rows, self._cosines(rows, vector).tolist(), strict=True):
            memory = self._ids[row]
            known[memory] = max(known.get(memory, cosine), cosine)
        expired: Any = []
        if unexpired_at is not None and self._first_expiry <= unexpired_at:
            expired = np.flatnonzero(self._numbers[2, : self._count] <= unexpired_at)
        return self._nearest(vector, limit, expired, outdated), known

    def _nearest(self, vector: Vector, limit: int, left_out: Any, outdated: Collection[str]) -> list[Matched]:
        if self._levels is None:
            cosines = np.vecdot(self._vectors[: self._count], vector)  # by one thread: those of BLAS cost more
            cosines[left_out] = -np.inf
            return self._best(np.arange(self._count), cosines, limit, outdated)
        likely = max(LEAST_LIKELY, LIKELY * limit)
        while True:
            rows = self._levels.likely(vector, likely, self._count, left_out)
            best = self._best(rows, self._cosines(rows, vector), limit, outdated)
            if len(best) >= limit or len(rows) < likely:
                return best
            likely *= 4  # long memories took several places each

    def _cosines(self, rows: Any, vector: Vector) -> Any:
        """Of some rows, a few hundred at a time in the same memory, which so stays in the processor's cache."""
        rows, cosines = np.asarray(rows, np.intp), np.empty(len(rows), np.float32)
        some = np.empty((min(AT_ONCE, len(rows)), len(vector)), np.float32)
        for at in range(0, len(rows), AT_ONCE):
            part = rows[at : at + AT_ONCE]
            vectors = self._vectors.take(part, axis=0, out=some[: len(part)], mode="clip")  # others copy once more
            np.vecdot(vectors, vector, out=cosines[at : at + len(part)])
        return cosines

    def _best(self, rows: Any, cosines: Any, limit: int, outdated: Collection[str]) -> list[Matched]:
        """Of these rows, each with its cosine."""
        depth = limit + limit // 4
        while True:
            # With all that are as near as the last one: which of them come first is decided by their age.
            last = -np.partition(-cosines, depth)[depth] if depth < len(cosines) else -np.inf
            front = (cosines >= last) & (cosines > -np.inf)
            near, close = rows[front], cosines[front]
            memories, created_at = self._numbers[0, near], self._numbers[1, near]
            order = np.lexsort((-memories, -created_at, -close))
            order = order[_first_of_each(memories[order])]
            if outdated:
                order = order[[self._ids[row] not in outdated for row in near[order].tolist()]]
            if len(order) >= limit or depth >= len(cosines):
                order = order[:limit]  # ids lie about in memory: none is looked at that is not needed
                names = map(self._ids.__getitem__, near[order].tolist())
                return [*map(Matched, memories[order].tolist(), names, close[order].tolist())]
            depth *= 4  # long memories took several places each, or what is outdated did

    def _all(self, con: Connection) -> Iterator[Condition]:
        """What to read next until everything was, from the beginning: an attempt before may have failed."""
        self._count, self._ids, self._rows, self._levels = 0, [], {}, None
        self._postings, self._openings = Postings(), Openings()
        return _in_turn(con, self._size)

    def _replace(self, gone: Collection[int], found: Found) -> None:
        """Take the memories with these numbers out, and rows in."""
        for row in np.flatnonzero(np.isin(self._numbers[0, : self._count], [*gone]))[::-1].tolist():
            self._remove(row)
        vectors = numbers_of(found.vectors, self._vectors.shape[1])
        first, count = self._count, self._count + len(found.ids)
        self._make_room(count)
        self._numbers[:, first:count], self._vectors[first:count] = found.numbers(), vectors
        if self._levels is not None and count < 2 * self._levels.made_of:
            self._levels.put(first, vectors)
        elif count > ALL_COMPARED:  # and again when it has doubled: later ones may lie elsewhere
            self._levels = Levels(self._vectors[:count], len(self._vectors))
        self._first_expiry = min((self._first_expiry, *found.expires_at))
        self._ids += found.ids
        self._openings.add(found.memories, found.seen)
        if count * self._vectors.strides[0] + self._openings.bytes > MOST_BYTES:
            self._openings.forget()  # they are worth less than what they would push out
        for row, memory in enumerate(found.memories, first):
            self._rows.setdefault(memory, []).append(row)
        self._count = count

    def _make_room(self, count: int) -> None:
        if count > len(self._vectors):
            room = count if self._count else max(count, self._size)  # at once: growing takes what it has once more
            room += room // 8
            self._numbers, self._vectors = widened(self._numbers, room), _grown(self._vectors, room)
            if self._levels is not None:
                self._levels.grow(room)

    def _remove(self, row: int) -> None:
        """The last row comes into its place."""
        self._count = last = self._count - 1
        memory, moved = int(self._numbers[0, row]), int(self._numbers[0, last])
        self._rows[moved].remove(last)
        if row != last:
            self._rows[memory].remove(row)
            self._rows[moved].append(row)
            self._ids[row], self._vectors[row] = self._ids[last], self._vectors[last]
            self._numbers[:, row] = self._numbers[:, last]
            if self._levels is not None:
                self._levels.put(row, self._vectors[last : last + 1])
        self._openings.remove(row, memory, its_last=not self._rows[memory])
        if not self._rows[memory]:
            del self._rows[memory]
        self._vectors[last] = 0  # nothing stays of what was erased
        if self._levels is not None:
            self._levels.put(last, self._vectors[last : last + 1])
        self._ids.pop()


class Current(NamedTuple):
    """A scope as it stood a moment ago."""

    scope: Scope
    state: tuple[int, str]  # what was known of changes
    unexpired_at: int | None
    outdated: frozenset[str]

    def matched(
        self, con: Connection, text: str, restriction: Restriction, limit: int
    ) -> tuple[list[Matched], dict[str, Held | None]]:
        """What words find, best first, by the connection that the scope was asked about with; and where each word
        stands."""
        worth = asked(text, partial(self.scope.statistics, con, restriction, self))
        if worth is None:
            return [], {}
        held = self.scope.held(con, worth.weights, restriction, self)
        found = heaviest(held, worth, limit + len(self.outdated), unexpired_at=self.unexpired_at)
        names = self.names(con, found.memories)
        ranked = [
            (share, created_at, memory)
            for share, created_at, memory in zip(worth.shares(found.scores), *found[1:], strict=True)
            if memory in names and names[memory] not in self.outdated
        ][:limit]
        ranked.sort(reverse=True)
        matches = [Matched(memory, names[memory], min(score, 1.0)) for score, _, memory in ranked]
        return matches, {**held, **dict.fromkeys(worth.held_nowhere)}

    def names(self, con: Connection, memories: Sequence[int]) -> dict[int, str]:
        with self.scope.lock:
            known = self.scope.names(memories)
        if others := [memory for memory in memories if memory not in known]:  # they have no vectors
            where, values = _named(others)
            rows = fetched(con, f"SELECT seq, id FROM memories WHERE {where}", values)  # the primary key
            known |= dict(rows)
        return known

    def compared(self, vector: Vector, limit: int, also: Sequence[int] = ()) -> tuple[list[Matched], dict[str, float]]:
        from scrubjay.stores.sqlite.vectors.blobs import check

        check(vector)
        with self.scope.lock:
            return self.scope.compared(vector, limit, unexpired_at=self.unexpired_at, outdated=self.outdated, also=also)


class Answered(NamedTuple):
    """What was found in a scope a moment ago. What else is asked about it is told from memory; None: ask the server."""

    scope: Scope
    numbers: Mapping[str, int]  # of the memories
    words: Mapping[str, Held | None]  # of the question, by their stems

    def glimpses(self, ids: Sequence[str]) -> Glimpses | None:
        if (numbers := self._numbered(ids)) is None:
            return None
        with self.scope.lock:
            return self.scope.glimpses(numbers)

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector] | None:
        if (numbers := self._numbered(ids)) is None:
            return None
        with self.scope.lock:
            return self.scope.vectors(numbers)

    def matched_words(self, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
        numbers, words = self._numbered(ids), stems(query_words(text))
        if numbers is None or not self.words.keys() >= {*words.values()}:
            return None
        found: dict[str, tuple[str, ...]] = {}
        for word, stem in words.items():
            held = self.words[stem]
            holds = [] if held is None else postgres_postings.holders(held, [*numbers.values()])
            for memory in compress(numbers, holds):
                found[memory] = (*found.get(memory, ()), word)
        return found

    def _numbered(self, ids: Sequence[str]) -> dict[str, int] | None:
        """None unless all of them were found."""
        return {memory: self.numbers[memory] for memory in ids} if self.numbers.keys() >= {*ids} else None


class Matched(NamedTuple):
    """What was found by words, or by meaning."""

    number: int
    memory: str
    score: float


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
        """
        SELECT count(*)
        FROM pg_trigger
        WHERE tgfoid IN (to_regproc('note_changes'), to_regproc('note_changed_words'))
        AND tgenabled = 'O'
        """
    )
    return bool(noted == TRIGGERS)


class Found(NamedTuple):
    """Rows of a scope, as columns."""

    memories: Sequence[int]
    ids: Sequence[str]
    created_at: Sequence[int]
    expires_at: Sequence[int]
    vectors: bytes  # one behind the other, as pgvector sends them
    seen: Seen = Seen()

    def numbers(self) -> Any:
        numbers = (self.memories, self.created_at, self.expires_at, *self.seen.numbers(len(self.memories)))
        return np.array(numbers, np.int64)


def _named(memories: Collection[int]) -> Condition:
    """Within all spaces, if no other condition says which: the primary key begins with them."""
    within = "memories.space = ANY(ARRAY(SELECT name FROM spaces))"
    return f"{within} AND memories.seq = ANY(%s)", [Numbers(memories)]


def _in_turn(con: Connection, size: int) -> Iterator[Condition]:
    """Which memories to read next, until all were, if a scope has about so many. What is changed in between has a later
    number than the last change before."""
    [(last,)] = con.execute("SELECT last_value FROM arrivals")
    step = max(1, last * READ_AT_ONCE // max(size, READ_AT_ONCE))
    for behind in range(0, last, step):
        upto = behind + step if behind + step < last else NEVER
        yield "memories.seq > %s AND memories.seq <= %s", [behind, upto]


def _found(con: Connection, restriction: Restriction, dimension: int, among: Condition) -> Found:
    """What is in the scope, of some memories."""
    where, values = restriction.lasting(tagged_first=True)
    tables, signatures = looked_at("signatures", where)
    these, named = among
    seen = postgres_glimpses.COLUMNS if postgres_glimpses.kept(restriction) else {}
    texts = "JOIN memories AS texts ON texts.space = memories.space AND texts.seq = memories.seq" if seen else ""
    [row] = fetched(
        con,
        # As in signatures.py: the index that the conditions have, then the primary keys of vectors and memories. In
        # columns thousands of rows take a fifth of the time.
        f"""
        SELECT
            coalesce(array_agg(seq), ARRAY[]::BIGINT[]), coalesce(array_agg(id), ARRAY[]::TEXT[]),
            coalesce(array_agg(created_at), ARRAY[]::BIGINT[]), coalesce(array_agg(expires_at), ARRAY[]::BIGINT[]),
            coalesce(string_agg(vector_send(vector), ''), '')
            {"".join(f", coalesce(array_agg({name}), ARRAY[]::{kind}[])" for name, (kind, _) in seen.items())}
        FROM (
            SELECT memories.seq, memories.id, memories.created_at, coalesce(memories.expires_at, %s) AS expires_at,
                vectors.vector{"".join(f", {column} AS {name}" for name, (_, column) in seen.items())}
            FROM {tables}
            JOIN vectors
            ON vectors.space = memories.space AND vectors.memory = memories.seq AND vectors.part = {signatures}.part
            AND vectors.model = ''
            {texts}
            WHERE {where}
            AND vector_dims(vectors.vector) = %s
            AND {these}
            LIMIT %s
        ) AS found
        """,
        (NEVER, *values, dimension, *named, most_rows(dimension) + 1),
        binary=True,
    )
    return Found(*row[:5])._replace(seen=Seen(*row[5:]))


def _first_of_each(values: Any) -> Any:
    """Where each of these stands first."""
    firsts = np.unique(values, return_index=True)[1]
    return slice(None) if len(firsts) == len(values) else np.sort(firsts)


def _grown(vectors: Any, rows: int) -> Any:
    grown = np.zeros((rows, vectors.shape[1]), vectors.dtype)  # takes memory only where it is written to
    grown[: len(vectors)] = vectors
    return grown
