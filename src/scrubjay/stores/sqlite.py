"""The store in one SQLite file: rows, words, vectors, history and events, written together or not at all.

    sqlite.py              the store: its verbs that are not a transaction's
    sqlite_reads.py        every question, on whatever connection
    sqlite_transaction.py  every change
    sqlite_connections.py  readers, the writer and its bracket; sqlite_lock.py, sqlite_file.py, sqlite_errors.py below
    sqlite_filters.py      filter and audience as conditions
    sqlite_words.py        finding by words
    vectors.py             finding by meaning
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from scrubjay.errors import StorageError
from scrubjay.memory import Match, Recall
from scrubjay.stores import sqlite_checkup, sqlite_tally
from scrubjay.stores.base import Checkup, List, Store, Transaction
from scrubjay.stores.sqlite_connections import Connections
from scrubjay.stores.sqlite_filters import Restriction
from scrubjay.stores.sqlite_reads import SqliteReads
from scrubjay.stores.sqlite_tally import Tally
from scrubjay.stores.sqlite_transaction import SqliteTransaction

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.vectors import VectorIndex

WRITE_TIMEOUT_SECONDS = 10.0
FLUSH_SECONDS = 5.0  # counted reads wait no longer than this for a write to go along with …
FLUSH_WAITING = 1_000  # … and no more of them than this


class SqliteStore(SqliteReads, Store):
    def __init__(
        self, path: Path, *, timeout_seconds: float = WRITE_TIMEOUT_SECONDS, index: VectorIndex | None = None
    ) -> None:
        """Open the store at a path; it is made, with its folder, if there is nothing.

        :raises StorageDamaged: if there is something else than a store
        :raises StorageTooNew: if a newer scrubjay has written it
        """
        super().__init__(Tally())
        self._connections = Connections(Path(path).resolve(), timeout_seconds=timeout_seconds)
        self._index = index
        self._flush_at = time.monotonic() + FLUSH_SECONDS
        self.origin = self.fact("origin") or ""

    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        return self._connections.reading()

    def _nearest(self, con: apsw.Connection, vector: Vector, restriction: Restriction, limit: int) -> List[Match]:
        if self._index is None:
            from scrubjay.stores.vectors import ExactIndex

            self._index = ExactIndex()
        return self._index.nearest(con, vector, restriction, limit)

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._connections.writing() as con:
            transaction = SqliteTransaction(con, self._tally)
            yield transaction
            batch = self._tally.batch()
            sqlite_tally.write(con, batch)
        self._tally.written(batch)
        if transaction.erased:
            self._connections.truncate_log()

    def count_reads(self, reads: Mapping[str, int], *, at: datetime, recall: Recall | None = None) -> None:
        waiting = self._tally.add(reads, at, recall)
        if waiting >= FLUSH_WAITING or time.monotonic() >= self._flush_at:
            with suppress(StorageError):  # a full disk or a busy writer must not keep anyone from reading
                self.flush_reads()

    def flush_reads(self) -> None:
        self._flush_at = time.monotonic() + FLUSH_SECONDS
        if self._tally.batch() != sqlite_tally.NOTHING:
            with self.writing():
                pass  # a transaction takes along what is counted

    def lease(self, name: str, *, holder: str, seconds: float) -> bool:
        now = time.time_ns() // 1_000_000
        with self._connections.writing() as con:
            con.execute(
                # A lease from the future was taken before the clock was set back; it holds nobody off.
                """
                INSERT INTO leases (name, holder, taken_at, until)
                VALUES (:name, :holder, :now, :until)
                ON CONFLICT (name) DO UPDATE SET
                    holder = excluded.holder, taken_at = excluded.taken_at, until = excluded.until
                WHERE holder = :holder OR until <= :now OR taken_at > :now
                """,
                {"name": name, "holder": holder, "now": now, "until": now + int(seconds * 1000)},
            )
            return con.changes() == 1

    def release(self, name: str, *, holder: str) -> None:
        with self._connections.writing() as con:
            con.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))

    def check(self, *, deep: bool = False) -> Checkup:
        with self._connections.fresh() as con:
            return sqlite_checkup.check(con, self._connections.path, deep=deep, damaged=self._connections.damaged)

    def rebuild(self) -> None:
        with self._connections.writing() as con:
            sqlite_checkup.rebuild(con)

    def close(self) -> None:
        if not self._connections.closed:
            with suppress(StorageError):  # counted reads may be lost, and closing always closes
                self.flush_reads()
            self._connections.close()
