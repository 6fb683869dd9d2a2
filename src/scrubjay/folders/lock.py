"""One writer of files at a time, in this process and beside it: else an older text could land on top of a newer one."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrubjay.folders.folder import failures

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FolderLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()

    @contextmanager
    def held(self, *, seconds: float) -> Iterator[bool]:
        """Whether the lock was had within so many seconds; it is given back when the block ends."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            yield False
            return
        try:
            with failures():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                while not (had := _try_lock(file)) and time.monotonic() < deadline:
                    time.sleep(0.005)
                yield had
            finally:
                os.close(file)  # and with it the lock
        finally:
            self._threads.release()
