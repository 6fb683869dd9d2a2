"""A replica that takes searches off the primary, as long as it has all that this process has written.

What it finds are ids and scores; the memories themselves are read from the primary. So what was changed, deleted or
closed to the caller meanwhile is never shown as it was; what another process has stored a moment ago may not be found
yet. A replica that is away, behind or of another schema is passed over for a while, and the primary asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from scrubjay.errors import StorageBusy, StorageError
from scrubjay.stores.postgres.connections import Connection, Connections

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
