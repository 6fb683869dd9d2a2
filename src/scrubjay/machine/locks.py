"""A file lock that keeps other processes out, on every platform."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

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


def lock_holder(file: int) -> int:
    """The process that has locked it; 0 where the system does not say."""
    name = f":{os.fstat(file).st_ino} "
    with suppress(OSError), open("/proc/locks") as locks:
        return next((int(line.split()[4]) for line in locks if name in line and "FLOCK" in line), 0)
    return 0
