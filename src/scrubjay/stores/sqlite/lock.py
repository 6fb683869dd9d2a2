"""One writer at a time, in this process and beside it.

SQLite's own lock lets waiting processes try again at growing intervals, so that a busy one starves the others for
seconds. A lock on a file of its own costs microseconds and is fair. A file lock does not hold off a second thread
that shares the descriptor, hence the thread lock before it.

The file also says which change was committed last. SQLite's log is deleted by hand now and then, by people who take it
for a leftover; the store is whole without it, only older, and nothing else would tell. Written after the commit and not
forced to the disk, the number is never ahead of the store, and costs microseconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrubjay.errors import StorageBusy
from scrubjay.machine.locks import try_lock, unlock
from scrubjay.stores.sqlite.errors import translated

NOTE = 8  # where the number stands; the first byte is what Windows locks
DIGITS = 20


class WriteLock:
    """Held by one thread of one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._holder: int | None = None
        self._file: int | None = None

    @contextmanager
    def held(self, timeout_seconds: float) -> Iterator[float]:
        """Hold the lock in the block; gives the time, as of `time.monotonic`, at which all waiting should end.

        :raises StorageBusy: if it could not be had in time
        """
        deadline = time.monotonic() + timeout_seconds
        with self.held_by_thread(timeout_seconds):
            file = self._opened()
            _wait(file, deadline)
            try:
                yield deadline
            finally:
                unlock(file)

    @contextmanager
    def held_by_thread(self, timeout_seconds: float) -> Iterator[None]:
        """Hold off the other threads of this process only."""
        if self._holder == threading.get_ident():
            raise RuntimeError("A transaction is already open in this thread.")
        if not self._threads.acquire(timeout=timeout_seconds):
            raise StorageBusy()
        try:
            self._holder = threading.get_ident()
            yield
        finally:
            self._holder = None
            self._threads.release()

    def note(self, change: int) -> None:
        """Say which change was the last; the caller holds the lock."""
        file = self._opened()
        with suppress(OSError):  # a full disk: the change itself is kept
            os.lseek(file, NOTE, os.SEEK_SET)
            os.write(file, f"{change:{DIGITS}}".encode("ascii"))
            os.lseek(file, 0, os.SEEK_SET)

    def noted(self) -> int:
        """The last change that was said; 0 if none was."""
        with suppress(OSError, ValueError), self._path.open("rb") as file:
            file.seek(NOTE)
            return int(file.read(DIGITS) or 0)
        return 0

    def close(self) -> None:
        """The caller holds the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> int:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError as error:
                raise translated(error) from error
        return self._file


def _wait(file: int, deadline: float) -> None:
    """Try until it works: no system lock can be waited for with a limit. Short pauses keep it fair."""
    pause = 0.0002
    while not try_lock(file):
        if time.monotonic() > deadline:
            raise StorageBusy()
        time.sleep(pause)
        pause = min(pause * 2, 0.001)
