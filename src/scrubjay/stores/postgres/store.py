"""The store in a PostgreSQL database with pgvector: the same promises, for many machines at once.

store.py          the store: its verbs that are not a transaction's
transaction.py    every change of memories; additions.py many new ones at once; replication.py another store's
reads.py          finding memories
words.py          finding by words, vectors.py by meaning, with signatures.py
sql.py            the port for what stands beside memories, which is written once, in `stores/tables`; their columns
filters.py        filter and audience as conditions
values.py         how values cross the wire
checkup.py        what doctor asks, and what is rebuilt
copying.py        this store as the source or target of a copy
connections.py    connections, the turns of writers, and a replica for searches; schema.py, errors.py below
listening.py      hears what others write
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.errors import CopyUnfinished, StorageError
from scrubjay.stores.postgres import checkup as postgres_checkup
from scrubjay.stores.postgres import schema as postgres_schema
from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.connections import POOL_SIZE, STATEMENT_SECONDS, Connection, Connections, Replica
from scrubjay.stores.postgres.filters import Restriction, restrict
from scrubjay.stores.postgres.listening import Listener
from scrubjay.stores.postgres.reads import PostgresReads, T
from scrubjay.stores.postgres.sql import PostgresSql, clock
from scrubjay.stores.postgres.transaction import PostgresTransaction
from scrubjay.stores.promises.memories import Checkup, Store, Transaction
from scrubjay.stores.tables.parts import attach_tables
from scrubjay.stores.tables.tally import Tally
from scrubjay.stores.tables.watching import Watch
from scrubjay.values.callers import Audience
from scrubjay.values.search import NO_CANDIDATES, Candidates, Filter

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

WRITE_TIMEOUT_SECONDS = 10.0
KNOWN_SECONDS = 30.0  # an index is made rarely, and a scope grows slowly
MANY = 64  # memories at once, from which on a store may have become another one
MOST_KNOWN = 1_000


class PostgresStore(PostgresReads, Store):
    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = WRITE_TIMEOUT_SECONDS,
        pool_size: int = POOL_SIZE,
        statement_seconds: float = STATEMENT_SECONDS,
        replica: str | None = None,
        unfinished: bool = False,
    ) -> None:
        """Open the store at a `postgresql://` address; its schema is made if there is none.

        Searches go to the replica, if one is named and it has what was written here. `unfinished` also opens a copy
        that is not finished, to go on with it, and makes a new store as one.

        :raises CopyUnfinished: without it
        :raises StorageError: saying what is wrong with the address, the server or the rights
        :raises StorageTooNew: if a newer scrubjay has written it
        """
        super().__init__(Tally(self.flush_reads))
        sql = PostgresSql(self._reading, self.tally)
        attach_tables(self, sql, sql)
        connect = partial(
            Connections, timeout_seconds=timeout_seconds, pool_size=pool_size, statement_seconds=statement_seconds
        )
        self._connections = connect(url, for_copy=unfinished)
        self._replica = Replica(partial(connect, replica)) if replica else None
        self._listener = Listener(self._connections.apart, self._connections.schema)
        self._watch = Watch(self.history.last_events, announced=lambda: self._listener.live)
        self._aside = ThreadPoolExecutor(pool_size, "scrubjay-search")  # threads are made as they are needed
        self._extents: dict[Hashable, tuple[float, float]] = {}  # of scopes and indexes, and until when they are known
        if not unfinished and self.unfinished:
            self.close()
            raise CopyUnfinished

    def _reading(self) -> AbstractContextManager[Connection]:
        return self._connections.reading()

    def _searched(self, search: Callable[[Connection], T]) -> T:
        if self._replica is not None:
            with suppress(StorageError), self._replica.reading(self._connections.written) as con:
                return search(con)
        return super()._searched(search)

    def _extent(
        self,
        con: Connection,
        restriction: Restriction,
        asked: tuple[Filter, Audience],
        dimension: int,
        model: str | None,
    ) -> tuple[float, int]:
        """As of half a minute ago: it decides how memories are looked for, and either way finds the right ones."""
        return (
            self._known(asked, lambda: postgres_vectors.scope(con, restriction)),
            int(self._known((dimension, model), lambda: postgres_vectors.count_indexed(con, dimension, model))),
        )

    def _known(self, of: Hashable, count: Callable[[], float]) -> float:
        known, until = self._extents.get(of, (0.0, 0.0))
        if time.monotonic() >= until:
            if len(self._extents) >= MOST_KNOWN:
                self._extents.clear()
            known = count()
            self._extents[of] = known, time.monotonic() + KNOWN_SECONDS
        return known

    def candidates(
        self, text: str, vector: Vector, filter: Filter, audience: Audience, *, now: datetime, limit: int
    ) -> Candidates:
        """On two connections: the server works on both at once, and whoever asks waits for the longer one only."""
        restriction = restrict(filter, audience, now=now)
        if restriction is None:
            return NO_CANDIDATES
        nearest = self._aside.submit(
            self._searched, lambda con: self._near(con, vector, restriction, (filter, audience), limit=limit)
        )
        try:
            found = self._searched(lambda con: postgres_words.compare_words(con, text, restriction, limit, vector))
        finally:
            wait([nearest])
        cosines = {memory: cosine for memory, _, cosine in found if cosine is not None}
        return Candidates.of([row[:2] for row in found], nearest.result(), cosines)

    def needs_tending(self) -> bool:
        with self._connections.reading() as con:
            return postgres_vectors.missing_index(con) is not None

    def tend(self) -> bool:
        with self._connections.apart() as con:
            missing = postgres_vectors.missing_index(con)
            if missing is None or not postgres_schema.alone(con, self._connections.schema):
                return False
            model, dimension = missing
            postgres_vectors.make_index(con, dimension, model)
            self._extents.clear()
        return self.needs_tending()

    def one_reader(self) -> AbstractContextManager[None]:
        return self._connections.one_reader()

    def writing(self, *, timeout_seconds: float | None = None) -> AbstractContextManager[Transaction]:
        return self._changing(timeout_seconds)

    @contextmanager
    def _changing(self, timeout_seconds: float | None = None) -> Iterator[PostgresTransaction]:
        """A transaction; it takes along what reads were counted, so that they cost no write of their own."""
        with ExitStack() as until_committed, self._connections.writing(timeout_seconds) as con:
            transaction = PostgresTransaction(con, self.tally)
            yield transaction
            transaction.statistics.write_reads(until_committed.enter_context(self.tally.claim_batch()))
            transaction.write_deferred()
        if transaction.arrived >= MANY:
            self._take_stock(transaction.arrived)

    def _take_stock(self, arrived: int) -> None:
        """Let the server count what it has, if that was never done or as many have come as there were. Else it plans
        for a store as small as it was, and looks for each new path among all memories of a space: an import into a new
        store took the longer the more it had brought. The server does it by itself as well, but a minute later."""
        with suppress(StorageError):  # what came is stored, whatever happens here
            with self._reading() as con:
                [(known,)] = con.execute("SELECT reltuples FROM pg_class WHERE oid = 'memories'::REGCLASS")
            if known < arrived:
                with self._connections.apart() as con:
                    con.execute("ANALYZE memories, words, tags")

    @contextmanager
    def listening(self, space: str, ring: Callable[[], None]) -> Iterator[None]:
        with self._listener.listening(space, ring), self._watch.listening(space, ring):
            yield

    def count_call(self, key: str, *, seconds: float, amount: int = 1) -> tuple[int, float] | None:
        with self._connections.reading() as con:
            now = clock(con)
            end = now + timedelta(seconds=seconds)
            [(calls, until)] = con.execute(
                # An unlogged table, and no wait for the disk: a count is worth neither.
                """
                INSERT INTO rates (key, calls, until) VALUES (%(key)s, greatest(0, %(amount)s), %(end)s)
                ON CONFLICT (key) DO UPDATE SET
                    calls = greatest(0, %(amount)s + CASE WHEN rates.until <= %(now)s THEN 0 ELSE rates.calls END),
                    until = CASE WHEN rates.until <= %(now)s THEN excluded.until ELSE rates.until END
                RETURNING calls, until
                """,
                {"key": key, "now": now, "end": end, "amount": amount},
            )
            if until == end:  # a new count has begun
                con.execute("DELETE FROM rates WHERE until < %s", (now - timedelta(minutes=5),))
            return int(calls), (until - now).total_seconds()

    def check(self, *, deep: bool = False) -> Checkup:
        with self._connections.apart() as con:
            return postgres_checkup.check(con, self._connections.schema, deep=deep)

    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """A backup is a store of its own, in SQLite: it needs no server to be read. See postgres/copying.py."""
        from scrubjay.stores.postgres.copying import backup

        return backup(self, Path(path).absolute(), progress)

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> None:
        with self._changing() as transaction:
            transaction.rebuild(progress)

    def close(self) -> None:
        self._listener.close()
        self._watch.close()
        self.tally.close()
        self._aside.shutdown()
        if not self._connections.closed:
            with suppress(StorageError):  # counted reads may be lost; closing always closes
                self.flush_reads(timeout_seconds=1.0)
        self._connections.close()
        if self._replica is not None:
            self._replica.close()
