"""Noticing what anybody writes: one thread of the process that asks the store for all who follow a feed here.

It asks for the number of every space's last event and rings for those whose number is another one than before. The
thread begins with the first follower and ends with the last one. A store that hears of its news in another way is asked
rarely meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from scrubjay.errors import StorageError

POLL_SECONDS = 0.5
RARELY_SECONDS = 10.0  # for what was not announced, whatever the reason

Ring = Callable[[], None]


class Watch:
    def __init__(
        self, numbers: Callable[[], Mapping[str, int]], *, announced: Callable[[], bool] = lambda: False
    ) -> None:
        """`numbers`: of each space's last event. `announced`: something else announces news just now."""
        self._numbers = numbers
        self._announced = announced
        self._rings: list[tuple[str, Ring]] = []  # each with its space
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def listening(self, space: str, ring: Ring) -> Iterator[None]:
        """Ring, from a thread of its own, when there may be news of a space."""
        with self._changed:
            self._rings.append((space, ring))
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="watching", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed, suppress(ValueError):  # it may have been closed meanwhile
                self._rings.remove((space, ring))
                self._changed.notify_all()

    def close(self) -> None:
        """Forget who listens, and wait for the thread."""
        with self._changed:
            self._rings.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout=5 * POLL_SECONDS)

    def _watch(self) -> None:
        known: Mapping[str, int] | None = None  # nothing yet: then everybody looks once
        asked_at = float("-inf")
        while self._anyone():
            if not self._announced() or time.monotonic() - asked_at >= RARELY_SECONDS:
                asked_at = time.monotonic()
                known = self._looked(known)
            with self._changed:
                self._changed.wait_for(lambda: not self._rings, timeout=POLL_SECONDS)

    def _looked(self, known: Mapping[str, int] | None) -> Mapping[str, int] | None:
        """What there is now; None if the store does not answer: when it does again, everybody looks."""
        try:
            found = self._numbers()
        except StorageError:
            return None
        if found != known:
            self._ring(known, found)
        return found

    def _ring(self, known: Mapping[str, int] | None, found: Mapping[str, int]) -> None:
        with self._changed:
            rings = [ring for space, ring in self._rings if known is None or known.get(space) != found.get(space)]
        for ring in rings:
            ring()

    def _anyone(self) -> bool:
        """Whether anyone listens; if not, the next one starts another thread."""
        with self._changed:
            if not self._rings:
                self._thread = None
            return bool(self._rings)
