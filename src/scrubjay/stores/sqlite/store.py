"""The store in one SQLite file: rows, words, vectors, history and events, written together or not at all.

store.py          the store: its verbs that are not a transaction's
transaction.py    every change of memories; additions.py many new ones, replication.py takes in another store's
reads.py          finding memories, and pages of lists
sql.py            the port for what stands beside memories, which is written once, in `stores/tables`; their columns
filters.py        filter and audience as conditions, and the best that pass them: words.py, vectors.py, vec1.py
checkup.py        what doctor asks, and what is rebuilt; backup.py copies of a store, salvage.py what is left of one
copying.py        this store as the source or target of a copy
connections.py    readers, the writer and its bracket; file.py, errors.py below
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from scrubjay.errors import CopyUnfinished, StorageDamaged, StorageError
from scrubjay.stores.promises.memories import LOST, Checkup, List, Store, Transaction
from scrubjay.stores.sqlite import checkup as sqlite_checkup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.connections import Connections
from scrubjay.stores.sqlite.filters import Found, Members, restrict
from scrubjay.stores.sqlite.reads import SqliteReads
from scrubjay.stores.sqlite.sql import SqliteSql, snapshot
from scrubjay.stores.sqlite.transaction import SqliteTransaction
from scrubjay.stores.tables.parts import attach_tables
from scrubjay.stores.tables.tally import NOTHING, Tally
from scrubjay.stores.tables.watching import Watch
from scrubjay.values.callers import Audience
from scrubjay.values.search import NO_CANDIDATES, Candidates, Filter

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.sqlite.vectors import VectorIndex

WRITE_TIMEOUT_SECONDS = 10.0


class SqliteStore(SqliteReads, Store):
    def __init__(
        self,
        path: Path,
        *,
        timeout_seconds: float = WRITE_TIMEOUT_SECONDS,
        index: VectorIndex | None = None,
        index_from: int = vec1.FROM_VECTORS,
        unfinished: bool = False,
    ) -> None:
        """Open the store at a path; it is made, with its folder, if there is nothing.

        With `index_from` vectors or more, `tend` makes an index of them. `unfinished` also opens a copy that is not
        finished, to go on with it, and makes a new store as one.

        :raises CopyUnfinished: without it
        :raises StorageDamaged: if there is something else than a store
        :raises StorageTooNew: if a newer scrubjay has written it
        """
        super().__init__(Tally(self.flush_reads))
        attach_tables(self, SqliteSql(self._reading, self.tally), SqliteSql(self._alone, self.tally))
        self._connections = Connections(
            sqlite_file.check_place(Path(path)), timeout_seconds=timeout_seconds, for_copy=unfinished
        )
        # By further model; None: of the store's own.
        self._indexes: dict[str | None, VectorIndex] = {} if index is None else {None: index}
        self._index_from = index_from
        self._watch = Watch(self.history.last_events)
        if not unfinished and self.unfinished:
            self._connections.close()
            raise CopyUnfinished

    @property
    def unfinished(self) -> bool:
        try:
            return super().unfinished
        except StorageDamaged:  # reported at the first use that meets it; what can be read may still be read
            return False

    @property
    def damaged(self) -> bool:
        return self._connections.damaged

    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        return self._connections.reading()

    def _nearest(self, members: Members, vector: Vector, limit: int, model: str | None) -> List[Found]:
        with snapshot(members.con):
            return self._index(model).nearest(members, vector, limit)

    def _cosines(
        self, con: apsw.Connection, vector: Vector, memories: Sequence[int], model: str | None
    ) -> dict[int, float]:
        with snapshot(con):
            return self._index(model).cosines(con, vector, memories)

    def candidates(
        self, text: str, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int
    ) -> Candidates:
        index = self._index(None)
        with self._reading() as con, snapshot(con):
            restriction = restrict(con, filter, audience, now=now)
            if restriction is None:
                return NO_CANDIDATES
            members = Members(con, restriction)
            by_words = sqlite_words.match(members, text, limit)
            near = {seq: (memory, score) for score, _, seq, memory in index.nearest(members, vector, limit)}
            others = {seq: memory for _, _, seq, memory in by_words if seq not in near}
            further = index.cosines(con, vector, [*others])
        return Candidates.of(
            [(memory, min(score, 1.0)) for score, _, _, memory in by_words],
            [*near.values()],
            {others[seq]: cosine for seq, cosine in further.items()},
        )

    def _index(self, model: str | None) -> VectorIndex:
        if (index := self._indexes.get(model)) is None:
            from scrubjay.stores.sqlite.vectors import VectorIndex

            index = self._indexes.setdefault(model, VectorIndex(model))  # another thread may make or drop one meanwhile
        return index

    def rest(self) -> None:
        self._indexes.clear()

    def one_reader(self) -> AbstractContextManager[None]:
        return self._connections.one_reader()

    def writing(self, *, timeout_seconds: float | None = None) -> AbstractContextManager[Transaction]:
        return self._changing(timeout_seconds)

    @contextmanager
    def _changing(self, timeout_seconds: float | None = None) -> Iterator[SqliteTransaction]:
        """A transaction; it takes along what reads were counted, so that they cost no write of their own."""
        with self._connections.writing(timeout_seconds) as con:
            transaction = SqliteTransaction(con, self.tally)
            yield transaction
            transaction.write_deferred()
            if transaction.change is not None and con.execute(vec1.ANY).get:
                vec1.mirror(con, transaction.change)
            batch = self.tally.batch()
            if batch != NOTHING:
                transaction.statistics.write_reads(batch)
            if self._connections.behind:
                transaction.history.set_fact(LOST, datetime.now(UTC).isoformat(timespec="seconds"))
            con.execute("COMMIT")
            self.tally.drop_written(batch)
            if transaction.change is not None or self._connections.behind:
                self._connections.note_change(con, transaction.change)
            if transaction.erased:
                self._connections.erase_log(con)

    @contextmanager
    def _alone(self) -> Iterator[apsw.Connection]:
        """The connection of a transaction of its own."""
        with self._changing() as transaction, transaction._reading() as con:
            yield con

    def listening(self, space: str, ring: Callable[[], None]) -> AbstractContextManager[None]:
        return self._watch.listening(space, ring)

    def check(self, *, deep: bool = False) -> Checkup:
        with self._connections.fresh() as con:
            return sqlite_checkup.check(
                con,
                self._connections.path,
                deep=deep,
                damaged=self._connections.damaged,
                behind=not self._connections.damaged and self._connections.lacks_changes(con),
            )

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> None:
        with self._changing() as transaction:
            sqlite_checkup.rebuild(transaction, progress)
            if transaction.history.fact(LOST):
                transaction.history.set_fact(LOST, "")  # has been told

    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        from scrubjay.stores.sqlite import backup as sqlite_backup

        with self._connections.fresh() as con:
            return sqlite_backup.backup(con, Path(path).absolute(), progress)

    def needs_tending(self) -> bool:
        with self._reading() as con:
            if self._connections.damaged:
                return False
            if sqlite_file.much_is_free(con):
                return True
            unfinished = vec1.tables(con, "filling", "retired")
            wanted = unfinished or vec1.plan(con, from_vectors=self._index_from)
            return bool(wanted) and vec1.able(con)

    def tend(self) -> bool:
        if not self.needs_tending():
            return False
        with self._reading() as con:
            plan = vec1.plan(con, from_vectors=self._index_from)
            sample = vec1.sample(con, plan) if plan is not None else []
        model = vec1.train(sample, plan) if plan is not None else None
        with self._changing() as transaction:
            return sqlite_checkup.tend(transaction, plan, model)

    def close(self) -> None:
        self._watch.close()
        self.tally.close()
        if not self._connections.closed:
            with suppress(StorageError):  # counted reads may be lost; closing always closes
                self.flush_reads(timeout_seconds=1.0)
        self._connections.close()
