"""What must happen by itself: soft-deleted memories are erased when their date has come, archived objects removed,
and what earlier versions left behind is repaired.

One process at a time does it, under a lease, whichever is alive.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.errors import Error
from scrubjay.lazy import logging
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

LEASE = "purge"
LEASE_SECONDS = 15.0
PAUSE_SECONDS = 60.0
BATCH = 100


class Housekeeper:
    """The background worker of one process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.records
        self._holder = random_suffix()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
            self._thread.start()

    def purge(self) -> int:
        """Erase what is due now; how many that were."""
        if not self._store.upkeep.due_for_purge(self._engine.now(), 1):
            return 0
        if not self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            return 0
        purged = 0
        try:
            while ids := self._store.upkeep.due_for_purge(self._engine.now(), BATCH):
                for due in ids:
                    self._purge_one(due)
                purged += len(ids)
                if not self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
                    break
        finally:
            self._store.upkeep.release(LEASE, holder=self._holder)
        return purged

    def close(self) -> None:
        self._closing.set()

    def _purge_one(self, id: str) -> None:
        ledger = self._engine.ledger
        with self._store.writing() as tx:
            for memory in tx.get([id], access.EVERYTHING):
                tx.purge(memory.id, at=self._engine.now(), final=False)
                ledger.record(tx, memory, "purged", reason="its date had come")

    def _run(self) -> None:
        from scrubjay.engine.archive.archives import remove_due  # neither is for a search
        from scrubjay.engine.upkeep.repairs import Repairs

        while not self._closing.is_set():
            try:
                Repairs(self._engine).run()
                self.purge()
                remove_due(self._engine)
                self._engine.write_files()  # what a full disk or another process kept from being written
                self._engine.parts.rest()
            except Error as error:  # the store is busy or away; the next round tries again
                logging.getLogger(__name__).info("the purge could not run: %s", error.message)
            self._closing.wait(PAUSE_SECONDS)
