"""What must happen by itself: softly deleted memories are erased when their date has come, archived objects removed,
and what earlier programs left behind is mended.

One process at a time does it, under a lease, whichever is alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

from scrubjay.engine import access
from scrubjay.engine.store.history import Ledger
from scrubjay.errors import Error
from scrubjay.stores.promises.memories import Store
from scrubjay.values.memory import random_suffix

LEASE = "purge"
LEASE_SECONDS = 15.0
PAUSE_SECONDS = 60.0
BATCH = 100


class Housekeeper:
    """The background worker of one process."""

    def __init__(
        self,
        store: Store,
        ledger: Callable[[], Ledger],
        now: Callable[[], datetime],
        tidy: Callable[[], None],
        repair: Callable[[], None],
    ) -> None:
        self._store = store
        self._repair = repair
        self._tidy = tidy
        self._ledger = ledger
        self._now = now
        self._holder = random_suffix()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
            self._thread.start()

    def purge(self) -> int:
        """Erase what is due now; how many that were."""
        if not self._store.due_for_purge(self._now(), 1):
            return 0
        if not self._store.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            return 0
        purged = 0
        try:
            while ids := self._store.due_for_purge(self._now(), BATCH):
                for due in ids:
                    self._purge_one(due)
                purged += len(ids)
                if not self._store.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
                    break
        finally:
            self._store.release(LEASE, holder=self._holder)
        return purged

    def close(self) -> None:
        self._closing.set()

    def _purge_one(self, id: str) -> None:
        ledger = self._ledger()
        with self._store.writing() as tx:
            for memory in tx.get([id], access.EVERYTHING):
                ledger.record(tx, memory, "purged", reason="its date had come")
                tx.purge(memory.id, at=self._now(), final=False)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._repair()
                self.purge()
                self._tidy()
            except Error as error:  # the store is busy or away; the next round tries again
                import logging  # rarely needed, and not free

                logging.getLogger(__name__).info("the purge waits: %s", error.message)
            self._closing.wait(PAUSE_SECONDS)
