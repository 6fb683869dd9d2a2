"""The connections of one store to its database: as many as work at once, and the bracket around a writer.

A connection is borrowed for one call. Readers see what is committed. Writers take turns, as they do in SQLite: first
the threads of this process, then the processes, by an advisory lock that goes with the transaction. So what is read in
a transaction stays true until it ends, counters have no holes, and ids that no key could keep single stay single.

A turn ends with a commit that is not yet on the disk; only then does the writer wait for the disk, together with those
who came after it. Nothing is acknowledged before, but no one waits for another's disk.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.types import TypeInfo

from scrubjay.errors import StorageBusy, StorageError
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres import values as postgres_values
from scrubjay.stores.postgres.errors import translate, translated_errors

Connection = psycopg.Connection[tuple[Any, ...]]

POOL_SIZE = 10
STATEMENT_SECONDS = 20.0
CONNECT_SECONDS = 5


class Connections:
    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        pool_size: int = POOL_SIZE,
        statement_seconds: float = STATEMENT_SECONDS,
        for_copy: bool = False,
    ) -> None:
        """Reach the database, and make the store in it or bring it up to date; `for_copy` marks a new one as a copy
        that is not finished.

        :raises StorageError: saying what is wrong with the address, the server or the rights
        :raises StorageTooNew: if a newer scrubjay has written the store
        """
        self.closed = False
        self.written = 0  # the place in the database's log behind what was last written here
        self.pool_size = pool_size
        self._timeout_seconds = timeout_seconds
        self._statement_seconds = statement_seconds
        self._address, self.schema = postgres_schema.address(url)
        self._idle: list[Connection] = []
        self._own = threading.local()  # the connection that a thread reads through for a while
        self._free = threading.BoundedSemaphore(pool_size)
        self._borrowed = 0
        self._returned = threading.Condition()
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._vector: TypeInfo | None = None
        with translated_errors():
            con = self._connect()
            try:
                self._vector = postgres_schema.make_sure(con, self.schema, for_copy=for_copy)
                postgres_values.register(con, self._vector)
            except BaseException:
                con.close()
                raise
            self._idle.append(con)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Borrow a connection; each statement sees what is committed when it begins."""
        kept = getattr(self._own, "reader", None)
        if kept is not None and not kept.closed:
            with translated_errors():
                yield kept
            return
        con = self._borrow(time.monotonic() + self._timeout_seconds)
        try:
            with translated_errors():
                yield con
        finally:
            self._give_back(con)

    @contextmanager
    def one_reader(self) -> Iterator[None]:
        """Within the block this thread reads through one connection, which is borrowed once."""
        if getattr(self._own, "reader", None) is not None:
            yield
            return
        self._own.reader = con = self._borrow(time.monotonic() + self._timeout_seconds)
        try:
            yield
        finally:
            self._own.reader = None
            self._give_back(con)

    @contextmanager
    def writing(self, timeout_seconds: float | None = None) -> Iterator[Connection]:
        """A turn and a transaction, committed when the block ends and undone when it raises.

        :raises StorageBusy: if another writer held the store for too long
        """
        deadline = time.monotonic() + (self._timeout_seconds if timeout_seconds is None else timeout_seconds)
        self._check_open()
        if not self._turn.acquire(timeout=max(deadline - time.monotonic(), 0)):
            raise StorageBusy()
        mine = True
        try:
            with translated_errors():
                con = self._begin(deadline)
                try:
                    yield con
                    con.execute("COMMIT")
                    self._turn.release()
                    mine = False
                    # A commit waits for the disk, and with it for everything that was written before.
                    [(place,)] = con.execute("SELECT (pg_logical_emit_message(TRUE, 'scrubjay', '') - '0/0')::BIGINT")
                    self.written = max(self.written, place)
                finally:
                    self._give_back(con)
        finally:
            if mine:
                self._turn.release()

    @contextmanager
    def apart(self) -> Iterator[Connection]:
        """A connection of its own, for what takes long or waits: it counts to no pool and has no time limit."""
        self._check_open()
        with translated_errors(), self._connect() as con:
            postgres_values.register(con, self._vector)
            con.execute("SET statement_timeout = 0")
            yield con

    def close(self) -> None:
        """Wait for those who are reading or writing, then close."""
        with self._returned:
            self.closed = True
            self._returned.wait_for(lambda: not self._borrowed, timeout=self._timeout_seconds)
            idle, self._idle = self._idle, []
        if os.getpid() == self._process:
            for con in idle:
                con.close()

    def _begin(self, deadline: float) -> Connection:
        """A connection inside a transaction that holds the writers' lock; a broken one is replaced once."""
        for last in (False, True):
            con = self._borrow(deadline)
            try:
                wait = max(1, int((deadline - time.monotonic()) * 1000))
                con.execute(
                    f"BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = {wait};"
                    f"SELECT pg_advisory_xact_lock({postgres_schema.WRITERS}, hashtext('{self.schema}'));"
                    "SET LOCAL lock_timeout = 0"
                )
                return con
            except psycopg.OperationalError:
                broken = con.broken or con.closed
                self._give_back(con)
                if last or not broken:
                    raise
            except BaseException:
                self._give_back(con)
                raise
        raise AssertionError("unreachable")

    def _borrow(self, deadline: float) -> Connection:
        self._check_open()
        if not self._free.acquire(timeout=max(deadline - time.monotonic(), 0.001)):
            raise StorageBusy(
                f"All {self.pool_size} connections to the database are in use.",
                hint="Try again; if it persists, raise SCRUBJAY_POOL_SIZE.",
            )
        with self._returned:
            self._borrowed += 1
        try:
            while (con := self._waiting()) is not None:
                if _alive(con):
                    return con
                con.close()
            with translated_errors():
                con = self._connect()
                postgres_values.register(con, self._vector)
                return con
        except BaseException:
            self._count_out()
            raise

    def _waiting(self) -> Connection | None:
        with self._returned:
            return self._idle.pop() if self._idle else None

    def _give_back(self, con: Connection) -> None:
        with suppress(psycopg.Error):
            if not con.closed and con.info.transaction_status != TransactionStatus.IDLE:
                con.rollback()
        if con.closed or con.info.transaction_status != TransactionStatus.IDLE:
            con.close()
        else:
            with self._returned:
                if not self.closed:
                    self._idle.append(con)
                else:
                    con.close()
        self._count_out()

    def _count_out(self) -> None:
        with self._returned:
            self._borrowed -= 1
            self._returned.notify_all()
        self._free.release()

    def _check_open(self) -> None:
        if self.closed:
            raise StorageError("The store is closed.")
        if os.getpid() != self._process:  # a connection is one conversation: two processes cannot share it
            raise StorageError("The store was opened in another process.", hint="Open it again in this one.")

    def _connect(self) -> Connection:
        try:
            con = psycopg.connect(
                self._address,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                application_name="scrubjay",
                client_encoding="utf8",
                keepalives_idle=30,
                tcp_user_timeout=10_000,
            )
        except psycopg.Error as error:
            raise translate(error) from None  # its words may hold the password
        try:
            con.execute(
                sql.SQL(
                    "SET search_path = {}, public, extensions; SET statement_timeout = {};"
                    "SET idle_in_transaction_session_timeout = 60000; SET jit = off;"
                    "SET max_parallel_workers_per_gather = 0;"  # many search at once, each on one core
                    # What a search by the index of vectors visits, see postgres/vectors.py: with fewer than it needs,
                    # which are some more than the candidates asked for, it begins a second time.
                    "SET hnsw.ef_search = 300; SET hnsw.iterative_scan = relaxed_order;"
                    "SET hnsw.max_scan_tuples = 20000"
                ).format(sql.Identifier(self.schema), int(self._statement_seconds * 1000))
            )
        except BaseException:
            con.close()
            raise
        return con


def _alive(con: Connection) -> bool:
    """Whether the connection is still open: an idle one has nothing to say."""
    if con.closed or con.broken:
        return False
    try:
        ready, _, _ = select.select([con.pgconn.socket], [], [], 0)
        if ready:
            con.pgconn.consume_input()
            con.execute("")
        return True
    except (psycopg.Error, OSError, ValueError):
        return False


# A replica that takes searches off the primary, as long as it has all that this process has written.
#
# What it finds are ids and scores; the memories themselves are read from the primary. So what was changed, deleted or
# closed to the caller meanwhile is never shown as it was; what another process has stored a moment ago may not be found
# yet. A replica that is away, behind or of another schema is passed over for a while, and the primary asked.


PAUSE_SECONDS = 30.0  # before one that failed is asked again


class Replica:
    def __init__(self, connect: Callable[[], Connections]) -> None:
        """Nothing is connected before the first search."""
        self._connect = connect
        self._connections: Connections | None = None
        self._opening = threading.Lock()
        self._reached = 0  # where in the primary's log it is known to have come
        self._again_at = 0.0

    @contextmanager
    def reading(self, written: int) -> Iterator[Connection]:
        """A connection that sees the primary's log up to there.

        :raises StorageError: if the primary should be asked instead
        """
        if time.monotonic() < self._again_at:
            raise StorageBusy()
        try:
            with self._opened().reading() as con:
                behind = self._reached < written and not self._has_come(con, written)
                if not behind:
                    yield con
        except StorageError:
            self._again_at = time.monotonic() + PAUSE_SECONDS
            raise
        if behind:
            raise StorageBusy("The replica is behind.")

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()

    def _opened(self) -> Connections:
        with self._opening:
            if self._connections is None:
                self._connections = self._connect()
            return self._connections

    def _has_come(self, con: Connection, written: int) -> bool:
        [(replayed,)] = con.execute("SELECT (pg_last_wal_replay_lsn() - '0/0')::BIGINT")
        self._reached = max(self._reached, written if replayed is None else replayed)  # None: it is not a replica
        return self._reached >= written
