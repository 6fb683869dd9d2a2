"""Vectors in memory, with what filters and ranking ask of their memories: of a small store all, of a large one some."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.stores.promises.memories import OPENING
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.filters import Kept, Restriction, kept, of_dimension
from scrubjay.stores.sqlite.postings import distinct, numbers_in
from scrubjay.stores.sqlite.vectors.blobs import read_into
from scrubjay.stores.sqlite.vectors.near import Ints, Near, Scores, front_of
from scrubjay.stores.sqlite.words import Found, Weighed
from scrubjay.stores.tables.sql import View
from scrubjay.text.words import DECIMALS
from scrubjay.values.memory import Category, Sketch
from scrubjay.values.search import Glimpses
from scrubjay.values.times import moment

CHUNK = 512  # rows; what is only read on the way takes room, in every window of an editor
FEW_PAGES = -1024  # KiB that SQLite keeps of what is read once, as vectors are
NEVER = np.iinfo(np.int64).max
UNREAD, NO_VECTOR = -1, -2  # instead of a row
NUMBERS = (
    "memory", "space", "audience", "user", "state", "created", "expires", "conversation", "length", "plain", "kind",
    "category",
)  # fmt: skip
# And what hardly any memory has.
TEXTS = ("id", "valid_from", "valid_until", "superseded_by", "opening")
FEW_VALUES = 8  # that are compared one by one
AS_DEAR = 20  # times: to look something up for one memory, and to read it for one of all

Row = tuple[Any, ...]
Mask = NDArray[np.bool_]
Whole = TypeVar("Whole", bound=np.signedinteger[Any])


class Columns(NamedTuple):
    """What is read of a vector: first whose it is, and in which row."""

    names: str
    joined: str = ""


VECTOR = Columns("vectors.memory, vectors.id, vectors.vector")
ALL = Columns(
    f"""
    vectors.memory, vectors.id, space, audience, user_id, state, created_at, coalesce(expires_at, {NEVER}),
    coalesce(conversation_id, 0), content_length, detail = '{{}}', kind, category, importance, memories.id, valid_from,
    valid_until, superseded_by, substr(content, 1, {OPENING}), vectors.vector
    """,
    "CROSS JOIN memories ON memories.seq = vectors.memory AND memories.state < 4",
)


class RowIds:
    """In which row of the file a memory's vector is, if it has one only. Looking for it takes as long as reading it.

    A vector may have moved since, and another come to its place: whoever reads a row sees whose it is.
    """

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._ids = np.zeros(1, np.int64)  # by memory; 0: not known; the last stands for all beyond
        self._looked_for = 0

    def of(self, memories: Ints) -> Ints:
        return self._ids.take(memories, mode="clip")

    def note(self, con: apsw.Connection, rows: Sequence[Row]) -> None:
        """All rows of some memories were looked for, which begin with the memory and the id. After some time it would
        have been cheaper to read where every vector is; then that is done."""
        self._keep(np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64))
        self._looked_for += len(rows)
        if AS_DEAR * self._looked_for >= len(self._ids):
            self._looked_for = 0
            [(memories, ids)] = con.execute(
                # the unique index of vectors has both
                f"SELECT group_concat(memory), group_concat(id) FROM {self._kept.table} WHERE {self._kept.condition}",
                self._kept.values,
            )
            self._keep(numbers_in(memories), numbers_in(ids))

    def forget(self, memories: Ints) -> None:
        self._ids[memories[memories < len(self._ids)]] = 0

    def _keep(self, memories: Ints, ids: Ints) -> None:
        each, firsts, counts = np.unique(memories, return_index=True, return_counts=True)
        self._ids = with_room(self._ids, each, 0)
        self._ids[each] = np.where(counts == 1, ids[firsts], 0)


class Cache:
    """Vectors of a store, all or some, with what filters and ranking ask of their memories, as arrays; row i of each
    belongs together."""

    def __init__(self, dimension: int, capacity: int, model: str | None) -> None:
        self.dimension = dimension
        self._kept = kept(model)
        self._row_ids = RowIds(self._kept)
        self.change = 0  # the transaction up to which it is complete
        self._capacity = capacity
        self._count = 0
        self._vectors: Vector = np.empty((capacity, dimension), np.float32)  # takes memory as it is filled
        self._all_numbers = np.empty((len(NUMBERS), capacity), np.int64)  # written at once, read by their names
        self._numbers = dict(zip(NUMBERS, self._all_numbers, strict=True))
        self._importance = np.empty(capacity, np.float64)
        self._all_texts = np.empty((len(TEXTS), capacity), np.object_)
        self._texts = dict(zip(TEXTS, self._all_texts, strict=True))
        self._codes: dict[str, int] = {}  # kinds and categories as numbers, of this cache only
        self._row_of: dict[str, int] = {}  # one of each memory's rows, by its id
        self._place = np.full(1, UNREAD, np.int64)  # by memory, one of its rows; the last stands for all beyond
        self._several = np.zeros(capacity, np.bool_)  # whether a row's memory has others …
        self._parts: dict[int, list[int]] = {}  # … and which all are

    def refresh(self, con: apsw.Connection, change: int) -> bool:
        """Read what was changed since; False if it does not fit."""
        self.forget_changed(con, self.change)
        rows = con.execute(
            # memories_by_change, then the unique index of vectors
            f"""
            SELECT {ALL.names}
            FROM memories
            CROSS JOIN {self._kept.table} ON vectors.memory = memories.seq
            WHERE memories.change > ?
            AND memories.state < 4
            AND {of_dimension(self.dimension)}
            AND {self._kept.condition}
            """,
            (self.change, *self._kept.values),
        )
        usual = con.pragma("cache_size")
        con.pragma("cache_size", usual if self._count else FEW_PAGES)
        try:
            fits = all(map(self._append, chunks(rows)))
        finally:
            con.pragma("cache_size", usual)
        self.change = change
        return fits

    def forget_changed(self, con: apsw.Connection, change: int) -> Ints:
        """Take out what was changed since, and say which memories that are."""
        changed = con.execute("SELECT seq FROM memories WHERE change > ?", (change,))  # memories_by_change
        memories = np.fromiter((seq for (seq,) in changed), np.int64)
        self._row_ids.forget(memories)
        self._remove(memories)
        return memories

    def load(self, con: apsw.Connection, memories: Ints) -> bool:
        """Read those of these memories, each given once, that are not here; False if they do not fit."""
        missing = np.sort(memories[self._is_unread(memories)])  # as they are in the file
        if not len(missing):
            return True
        if self._count + len(missing) > self._capacity:
            self._clear()
            missing = memories
        for start in range(0, len(missing), CHUNK):
            if not self._append(self._read(con, ALL, missing[start : start + CHUNK])):
                self._clear()
                return False
        self._place = with_room(self._place, missing, UNREAD)
        self._place[missing[self._place[missing] == UNREAD]] = NO_VECTOR
        return True

    def nearest_of(self, con: apsw.Connection, vector: Vector, memories: Ints, limit: int) -> Ints:
        """The nearest of these memories, given in order, whatever else they are; more if some are as near as the last.
        Of what is not here only vectors are read."""
        scores = self.cosines_of(vector, memories)
        unread = self._is_unread(memories).nonzero()[0]
        if rows := self._read(con, VECTOR, memories[unread]):
            vectors = self._vectors[self._count : self._count + len(rows)]  # free rows, whose memory is at hand
            if len(vectors) < len(rows):
                vectors = np.empty((len(rows), self.dimension), np.float32)
            read_into(vectors, [row[2] for row in rows])
            places = unread[memories[unread].searchsorted([row[0] for row in rows])]
            np.fmax.at(scores, places, np.vecdot(vectors, vector))
        with_vectors = ~np.isnan(scores)
        memories, scores = memories[with_vectors], scores[with_vectors]
        return memories[front_of(scores.astype(np.float32), limit)]

    def _is_unread(self, memories: Ints) -> Mask:
        unread: Mask = self._place.take(memories, mode="clip") == UNREAD
        return unread

    def _read(self, con: apsw.Connection, columns: Columns, memories: Ints) -> list[Row]:
        """What the file has of these memories, a row for each of their vectors."""
        ids = self._row_ids.of(memories)
        rows, left = list[Row](), dict(zip(memories.tolist(), ids.tolist(), strict=True))
        if ids.any():
            found = self._select(con, columns, "id", distinct(ids[ids > 0]))  # one may have come where another was
            rows = [row for row in found if left.get(row[0]) == row[1]]  # the others have moved
            for row in rows:
                del left[row[0]]
        if left:
            found = self._select(con, columns, "memory", np.array([*left], np.int64))
            self._row_ids.note(con, found)
            rows += found
        return rows

    def _select(self, con: apsw.Connection, columns: Columns, key: str, wanted: Ints) -> list[Row]:
        rows: list[Any] = con.execute(
            # primary keys, or the unique index of vectors
            f"""
            SELECT {columns.names}
            FROM carray(?) AS wanted
            CROSS JOIN {self._kept.table} ON vectors.{key} = wanted.value
            {columns.joined}
            WHERE {of_dimension(self.dimension)}
            AND {self._kept.condition}
            """,
            (apsw.carray(wanted), *self._kept.values),
        ).fetchall()
        return rows

    def nearest(
        self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int
    ) -> tuple[Near, Callable[[Ints], Scores]]:
        """The nearest that the restriction admits, best first, and the cosines of any memories."""
        used = self._vectors[: self._count]
        rows = self._admitted(con, restriction).nonzero()[0]
        # vecdot takes one core and each row by itself; BLAS would start threads that wait for each other under load.
        few = 2 * len(rows) <= self._count
        every = None if few else np.vecdot(used, vector)
        scores = np.vecdot(used[rows], vector) if every is None else every
        if len(rows) < len(scores):
            scores = scores[rows]
        return self._best(rows, scores, limit), partial(self.cosines_of, vector, every=every)

    def among(self, vector: Vector, memories: Ints, limit: int, restriction: Restriction | None = None) -> Near:
        """The nearest of these memories, best first, of those that a restriction by numbers admits."""
        rows = self._every_row(memories)
        if restriction is not None:
            rows = rows[self._by_numbers(restriction, rows)]
        return self._best(rows, np.vecdot(self._vectors[rows], vector), limit)

    def admitted(self, con: apsw.Connection, restriction: Restriction, memories: Ints) -> Ints:
        """Those of these memories that a restriction by numbers admits; what is not known here is read."""
        places, rows, _ = self._rows_of(memories)
        known = memories[places[self._by_numbers(restriction, rows)]]
        if len(places) == len(memories):
            return known
        others = sqlite_words.admitted(con, restriction, np.delete(memories, places).tolist())
        return np.concatenate((known, np.fromiter((seq for seq, *_ in others), np.int64)))

    def found(
        self, con: apsw.Connection, restriction: Restriction, weighed: Weighed, asked: Ints, scores: Scores
    ) -> Found:
        """Of the memories that words found those that a restriction by numbers admits; what is not known here is
        read."""
        places, rows, _ = self._rows_of(asked)
        unknown = np.delete(asked, places).tolist() if len(places) < len(asked) else []
        admitted = self._by_numbers(restriction, rows)
        places, rows = places[admitted], rows[admitted]
        seqs, created, ids = asked[places], self._numbers["created"][rows], self._texts["id"][rows]
        if unknown:
            known = zip(seqs.tolist(), created.tolist(), ids.tolist(), strict=True)
            return Found.of(weighed.scores(), [*known, *sqlite_words.admitted(con, restriction, unknown)])
        values = scores[places]
        order = np.lexsort((seqs, created, values))[::-1]
        return Found(values[order], created[order], seqs[order], ids[order])

    def _best(self, rows: Ints, scores: Vector, limit: int) -> Near:
        wanted = max(limit, 1)
        while True:
            front = front_of(scores, wanted)
            best = self._near(rows[front], scores[front]).best(limit)
            if len(best.scores) >= limit or len(front) == len(scores):
                return best
            wanted *= 4  # long memories took several places each

    def glimpses(self, ids: Sequence[str]) -> Glimpses | None:
        """Of these memories, unless one of them is not known here."""
        rows = self._known(ids)
        if rows is None:
            return None
        texts, numbers = self._texts, self._numbers
        return Glimpses(
            memories=ids,
            created_at=numbers["created"][rows],
            valid_from=texts["valid_from"][rows],
            valid_until=texts["valid_until"][rows],
            conversation=numbers["conversation"][rows],
            length=numbers["length"][rows],
            opening=texts["opening"][rows].tolist(),
        )

    def sketches(self, ids: Sequence[str], views: Sequence[View]) -> dict[str, Sketch]:
        """Of those of these memories that are seen; without those of which a part of the text is not here."""
        rows = np.array([row for memory in ids if (row := self._row_of.get(memory)) is not None], np.int64)
        rows = rows[self._seen(views, rows)]
        numbers, texts, names = self._numbers, self._texts, [*map(str, self._codes)]
        columns = [
            *(numbers[name][rows].tolist() for name in ("length", "plain", "category", "created", "memory")),
            *(texts[name][rows].tolist() for name in ("id", "opening", "superseded_by")),
        ]
        return {
            memory: Sketch(memory, text, Category(names[category]), moment(created), seq, superseded_by)
            for length, plain, category, created, seq, memory, text, superseded_by in zip(*columns, strict=True)
            if plain and len(text) == length
        }

    def numbers(self, ids: Sequence[str]) -> dict[int, str] | None:
        """These memories by their number, unless one of them is not known here."""
        rows = self._known(ids)
        return None if rows is None else dict(zip(self._numbers["memory"][rows].tolist(), ids, strict=True))

    def vectors(self, ids: Sequence[str]) -> dict[str, Vector] | None:
        """Of these memories, unless one of them is not known here or has several: which is the first is not kept."""
        rows = self._known(ids)
        if rows is None or self._several[rows].any():
            return None
        return dict(zip(ids, self._vectors[rows], strict=True))  # a copy: rows move

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float] | None:
        """Of these memories, unless one of them is not known here."""
        rows = self._known(ids)
        if rows is None:
            return None
        found = self.cosines_of(vector, self._numbers["memory"][rows])
        return dict(zip(ids, found.tolist(), strict=True))

    def _known(self, ids: Sequence[str]) -> Ints | None:
        """A row of each of these memories, unless one of them is not known here."""
        try:
            return np.fromiter(map(self._row_of.__getitem__, ids), np.int64, len(ids))
        except KeyError:
            return None

    def _near(self, rows: Ints, scores: Vector) -> Near:
        numbers, several = self._numbers, bool(self._parts) and bool(self._several[rows].any())
        return Near(numbers["memory"][rows], numbers["created"][rows], scores, self._texts["id"][rows], several=several)

    def cosines_of(self, vector: Vector, seqs: Ints, every: Vector | None = None) -> Scores:
        """Of each memory's rows the highest cosine; not a number where there is none. `every`: those of all rows."""
        found = np.full(len(seqs), np.nan)
        places, rows, several = self._rows_of(seqs)
        cosines = np.vecdot(self._vectors[rows], vector) if every is None else every[rows]
        found[places] = cosines
        for place in several.nonzero()[0].tolist():
            parts = self._parts[int(seqs[places[place]])]
            found[places[place]] = np.vecdot(self._vectors[parts], vector).max()
        return found

    def _rows_of(self, seqs: Ints) -> tuple[Ints, Ints, Mask]:
        """Which of these memories are known, by their places; one row of each; whether it has several."""
        found = self._place.take(seqs, mode="clip")
        places = (found >= 0).nonzero()[0]
        rows = found[places]
        return places, rows, self._several[rows]

    def _every_row(self, seqs: Ints) -> Ints:
        """All rows of these memories."""
        _, rows, several = self._rows_of(seqs)
        if not several.any():
            return rows
        longer = [part for seq in self._numbers["memory"][rows[several]].tolist() for part in self._parts[seq]]
        return np.concatenate((rows[~several], np.array(longer, rows.dtype)))

    def _admitted(self, con: apsw.Connection, restriction: Restriction) -> Mask:
        if not restriction.by_rows:
            return self._by_numbers(restriction, slice(self._count))
        where, values = restriction.condition()
        seqs = con.execute(f"SELECT memories.seq FROM memories WHERE {where}", values)
        memories = self._numbers["memory"][: self._count]
        return np.isin(memories, np.fromiter((seq for (seq,) in seqs), np.int64))

    def _by_numbers(self, restriction: Restriction, rows: slice | Ints) -> Mask:
        """Which of these rows a restriction admits that asks for nothing else."""
        numbers = self._numbers
        mask = _any_of(numbers["state"][rows], restriction.states)
        mask &= self._seen(restriction.views, rows)
        if restriction.expired is not None:
            mask &= (numbers["expires"][rows] <= restriction.now) == restriction.expired
        if restriction.created_since is not None:
            mask &= numbers["created"][rows] >= restriction.created_since
        if restriction.created_until is not None:
            mask &= numbers["created"][rows] <= restriction.created_until
        if restriction.min_importance is not None:
            mask &= self._importance[rows] >= restriction.min_importance
        if restriction.max_importance is not None:
            mask &= self._importance[rows] <= restriction.max_importance
        if restriction.kinds is not None:
            mask &= _any_of(numbers["kind"][rows], self._coded(restriction.kinds))
        if restriction.categories is not None:
            mask &= _any_of(numbers["category"][rows], self._coded(restriction.categories))
        if restriction.user is not None:
            mask &= numbers["user"][rows] == restriction.user
        if restriction.conversation is not None:
            mask &= numbers["conversation"][rows] == restriction.conversation
        if restriction.without:
            mask &= np.isin(numbers["memory"][rows], restriction.without, invert=True)
        return mask

    def _seen(self, views: Sequence[View], rows: slice | Ints) -> Mask:
        seen: Mask | None = None
        for view in views:
            within = _any_of(self._numbers["audience"][rows], view.audiences) if view.audiences is not None else None
            if view.space is not None:
                there = self._numbers["space"][rows] == view.space
                within = there if within is None else within & there
            if within is None:  # everything
                within = np.ones(len(self._numbers["state"][rows]), np.bool_)
            seen = within if seen is None else seen | within
        return np.zeros(len(self._numbers["state"][rows]), np.bool_) if seen is None else seen

    def _coded(self, names: Iterable[str]) -> list[int]:
        return [self._codes.setdefault(name, len(self._codes)) for name in names]

    def _append(self, chunk: Sequence[Row]) -> bool:
        """Whether they fit."""
        if not chunk or self._count + len(chunk) > self._capacity:
            return not chunk
        memories, _, *numbers, kinds, categories, importance, ids, since, until, superseded_by, openings, blobs = zip(
            *chunk, strict=True
        )
        place = slice(self._count, self._count + len(chunk))
        self._all_numbers[:, place] = [memories, *numbers, self._coded(kinds), self._coded(categories)]
        for name, column in zip(TEXTS, (ids, since, until, superseded_by, openings), strict=True):
            nothing = column.count(None) == len(column)  # of most; numpy is slow to find that out
            self._texts[name][place] = None if nothing else column
        self._importance[place] = importance
        read_into(self._vectors[place], blobs)
        self._several[place] = False
        rows = range(self._count, self._count + len(chunk))
        self._row_of.update(zip(ids, rows, strict=True))
        self._put(memories, rows)
        self._count += len(chunk)
        return True

    def _put(self, seqs: Sequence[int], rows: range) -> None:
        """Note where these memories' rows are."""
        memories = np.array(seqs, np.int64)
        self._place = with_room(self._place, memories, UNREAD)
        if len(set(seqs)) < len(seqs) or (self._place[memories] >= 0).any():
            for seq, row in zip(seqs, rows, strict=True):
                if (first := int(self._place[seq])) >= 0:
                    parts = self._parts.setdefault(seq, [first])
                    parts.append(row)
                    self._several[parts] = True
                else:
                    self._place[seq] = row
        else:
            self._place[memories] = rows

    def _clear(self) -> None:
        self._all_texts[:, : self._count] = None  # what is gone is not kept
        self._row_of.clear()
        self._parts.clear()
        self._place.fill(UNREAD)
        self._count = 0

    def _remove(self, memories: Ints) -> None:
        """Take out the rows of these memories, each given once; the last rows move into the gaps."""
        gone = np.sort(self._every_row(memories))
        self._place[memories[memories < len(self._place)]] = UNREAD
        if not len(gone):  # they are new
            return
        left = self._count - len(gone)
        gaps = gone[gone < left]
        movers = np.setdiff1d(np.arange(left, self._count), gone, assume_unique=True)
        ids, seqs = self._texts["id"], self._numbers["memory"]
        for memory, seq in zip(ids[gone].tolist(), seqs[gone].tolist(), strict=True):
            self._row_of.pop(memory, None)
            self._parts.pop(seq, None)
        columns: list[NDArray[Any]] = [
            self._vectors, self._importance, self._several, self._all_texts.T, self._all_numbers.T
        ]  # fmt: skip
        for column in columns:
            column[gaps] = column[movers]
        self._row_of.update(zip(ids[gaps].tolist(), gaps.tolist(), strict=True))
        self._place[seqs[gaps]] = gaps
        for old, new in zip(movers.tolist(), gaps.tolist(), strict=True) if self._parts else ():
            if (parts := self._parts.get(int(seqs[new]))) is not None:
                parts[parts.index(old)] = new
        self._all_texts[:, left : self._count] = None  # what is gone is not kept
        self._count = left


def memories_of(weighed: Weighed) -> tuple[Ints, Scores]:
    """The memories that words found, each once, with their scores: what `Weighed.scores` says."""
    rows = np.asarray(weighed.rows, np.int64)
    memories, scores = rows >> 8, (np.asarray(weighed.weights, np.float64) / weighed.best).round(DECIMALS)
    if (rows & 255).any():  # some are long
        memories, firsts = np.unique(memories, return_index=True)
        scores = scores[firsts]
    return memories, scores


def with_room(by_memory: NDArray[Whole], memories: Ints, unknown: int) -> NDArray[Whole]:
    """An array by memory that reaches beyond these."""
    if (top := int(memories.max(initial=0))) + 1 < len(by_memory):
        return by_memory
    longer = np.full(2 + top + top // 8, unknown, by_memory.dtype)
    longer[: len(by_memory)] = by_memory
    return longer


def _any_of(column: Ints, values: Collection[int]) -> Mask:
    """Which of the column are one of these; for a few values much quicker than numpy's own."""
    if len(values) > FEW_VALUES:
        return np.isin(column, list(values))
    first, *others = values or (None,)
    mask: Mask = column == first
    for value in others:
        mask |= column == value
    return mask


def chunks(rows: apsw.Cursor) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, CHUNK)):
        yield chunk
