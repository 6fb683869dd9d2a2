"""Hearing at once what other processes write: one connection that listens for all who follow a feed here.

A transaction that writes events announces their spaces (`NOTIFY`, see postgres/transaction.py). The connection is
opened when the first follower comes and closed when the last one leaves. Nothing is promised: watching.py asks for news
whenever `live` is false, and now and then when it is true. A sign that this process sends to itself tells whether
announcements arrive; they do not behind a pooler that hands connections on, or from a replica.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

import psycopg
from psycopg import sql

from scrubjay.errors import StorageError
from scrubjay.stores.postgres.connections import Connection
from scrubjay.values.memory import random_suffix

SIGN_SECONDS = 5.0  # how often, and within what time, a sign must come back
AGAIN_SECONDS = 2.0  # before a lost connection is retried
LOOK_SECONDS = 0.25  # how soon it is noticed that no one listens any more

Ring = Callable[[], None]


class Listener:
    def __init__(self, connect: Callable[[], AbstractContextManager[Connection]], channel: str) -> None:
        """Nothing is connected before someone listens."""
        self.live = False  # announcements arrive
        self._connect = connect
        self._channel = channel
        self._sign = f" {random_suffix()}"  # no space is called that
        self._rings: list[tuple[str, Ring]] = []  # each with its space
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def listening(self, space: str, ring: Ring) -> Iterator[None]:
        """Ring, from a thread of its own, when there may be news of a space, as long as `live`."""
        with self._lock:
            self._rings.append((space, ring))
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="listening", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):  # it may have been closed meanwhile
                self._rings.remove((space, ring))

    def close(self) -> None:
        """Forget who listens, and wait for the thread."""
        with self._lock:
            self._rings.clear()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=10 * LOOK_SECONDS)

    def _listen(self) -> None:
        while self._somebody():
            with suppress(StorageError, psycopg.Error), self._connect() as con:
                self._hear(con)
            self._now_live(False)
            until = time.monotonic() + AGAIN_SECONDS
            while time.monotonic() < until and self._rings:
                time.sleep(LOOK_SECONDS)

    def _hear(self, con: Connection) -> None:
        """Until no one listens any more, or signs do not come back."""
        con.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        came_back = True
        while came_back:
            came_back = False
            con.execute("SELECT pg_notify(%s, %s)", (self._channel, self._sign))
            until = time.monotonic() + SIGN_SECONDS
            while time.monotonic() < until:
                for told in con.notifies(timeout=LOOK_SECONDS):
                    if told.payload == self._sign:
                        came_back = True
                        self._now_live(True)
                    else:
                        self._ring(told.payload)
                if not self._rings:
                    return

    def _now_live(self, live: bool) -> None:
        """Whoever listens asks once when it changes: what was written before may not have been heard."""
        if live != self.live:
            self.live = live
            self._ring(None)

    def _ring(self, space: str | None) -> None:
        with self._lock:
            rings = [ring for where, ring in self._rings if space in (where, None)]
        for ring in rings:
            ring()

    def _somebody(self) -> bool:
        """Whether anyone listens; if not, the next one starts over."""
        with self._lock:
            if not self._rings:
                self._thread = None
            return bool(self._rings)
