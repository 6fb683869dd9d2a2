"""What keeps a large store quick: its index for finding by meaning is made and renewed beside everything else.

One process at a time does it, under a lease, whichever is alive; what one leaves unfinished the next goes on with.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from scrubjay.errors import Error
from scrubjay.lazy import logging
from scrubjay.stores.promises.memories import Store
from scrubjay.values.memory import random_suffix

LEASE = "indexing"
LEASE_SECONDS = 15.0
PAUSE_SECONDS = 60.0  # between looks whether there is something to do
BREATH_SECONDS = 0.02  # between steps: others write, too
CLOSING_SECONDS = 5.0


class Indexer:
    """The background worker of one process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = random_suffix()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)
            self._thread.start()

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
                self._closing.wait(BREATH_SECONDS)
        finally:
            self._store.upkeep.release(LEASE, holder=self._holder)

    def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=CLOSING_SECONDS)

    def _lease(self) -> bool:
        return self._store.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.finish()
            except Error as error:  # the store is busy or away; the next round tries again
                logging.getLogger(__name__).info("the index could not be updated: %s", error.message)
            self._closing.wait(PAUSE_SECONDS)
