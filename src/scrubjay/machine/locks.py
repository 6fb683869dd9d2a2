"""A file lock that keeps other processes out, on every platform."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: int) -> bool:
        """Take the lock; False if another process holds it."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def unlock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def try_lock(file: int) -> bool:
        """Take the lock; False if another process holds it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
