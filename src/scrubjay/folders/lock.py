"""One writer of files at a time, in this process and others: otherwise an older text could replace a newer one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrubjay.folders.folder import failures
from scrubjay.machine.locks import try_lock


class FolderLock:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()

    @contextmanager
    def held(self, *, seconds: float) -> Iterator[bool]:
        """Whether the lock was acquired within that many seconds; it is released when the block ends."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            yield False
            return
        try:
            with failures():
                self._path.parent.mkdir(parents=True, exist_ok=True)
                file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                while not (had := try_lock(file)) and time.monotonic() < deadline:
                    time.sleep(0.005)
                yield had
            finally:
                os.close(file)  # and with it the lock
        finally:
            self._threads.release()
