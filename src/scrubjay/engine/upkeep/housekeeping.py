"""What must happen by itself: soft-deleted memories are erased when their date has come, archived objects removed, and
the index that finds by meaning in a large store is made and renewed.

One process at a time does each, under a lease, whichever is alive; what one leaves unfinished the next goes on with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.holding import BATCH, LEASE_SECONDS
from scrubjay.errors import Error
from scrubjay.lazy import logging
from scrubjay.stores.promises.memories import Store
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

PAUSE_SECONDS = 60.0  # between looks whether there is something to do


class Worker:
    """A thread of this process that does what is due, again and again."""

    task: str  # the name of the thread and of the lease

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = random_suffix()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.task, daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closing.set()

    def work(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.work()
            except Error as error:  # the store is busy or away; the next round tries again
                logging.getLogger(__name__).info("%s could not run: %s", self.task, error.message)
            self._closing.wait(PAUSE_SECONDS)

    def _lease(self) -> bool:
        return self._store.upkeep.lease(self.task, holder=self._holder, seconds=LEASE_SECONDS)

    def _release(self) -> None:
        self._store.upkeep.release(self.task, holder=self._holder)


class Housekeeper(Worker):
    task = "purge"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine.records)
        self._engine = engine

    def purge(self) -> int:
        """Erase what is due now; how many that were."""
        if not self._store.upkeep.due_for_purge(self._engine.now(), 1) or not self._lease():
            return 0
        purged = 0
        try:
            while ids := self._store.upkeep.due_for_purge(self._engine.now(), BATCH):
                for due in ids:
                    self._purge_one(due)
                purged += len(ids)
                if not self._lease():
                    break
        finally:
            self._release()
        return purged

    def work(self) -> None:
        from scrubjay.engine.archive.archives import remove_due  # not for a search

        self.purge()
        remove_due(self._engine)
        self._engine.write_files()  # what a full disk or another process kept from being written
        self._engine.parts.rest()

    def _purge_one(self, id: str) -> None:
        ledger = self._engine.ledger
        with self._store.writing() as tx:
            for memory in tx.get([id], access.EVERYTHING):
                tx.purge(memory.id, at=self._engine.now(), final=False)
                tx.files.forget_name(memory.id)
                ledger.record(tx, memory, "purged", reason="its date had come")


class Indexer(Worker):
    task = "indexing"

    def finish(self, progress: Callable[[int, None], None] | None = None) -> None:
        """Do all that there is to do now, unless another process is at it; how many steps that takes is not known."""

        def tell(steps: int) -> None:
            if progress:
                progress(steps, None)

        if not self._store.needs_tending() or not self._lease():
            return
        steps = 0
        tell(steps)
        try:
            while not self._closing.is_set() and self._store.tend() and self._lease():
                steps += 1
                tell(steps)
                self._closing.wait(0.02)  # others write, too
        finally:
            self._release()

    def work(self) -> None:
        self.finish()

    def close(self) -> None:
        super().close()
        if self._thread is not None:
            self._thread.join(timeout=5)
