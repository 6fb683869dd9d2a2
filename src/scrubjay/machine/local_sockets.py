"""Sockets in the folder `run` of a home, by which scrubjay's processes of one user find and ask each other.

Every window and server listens on one, named after its process: `PID.sock`, or `PID.model.sock` while it has an
embedding model to lend. One line of JSON goes there, one comes back. A socket on which no one listens any more is
removed by the first process that notices.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

LARGEST = 1_000_000  # bytes of a line
LONGEST = 90  # letters of a path that every system takes as an address
LENDS = ".model.sock"
BEGUN = ".begun"  # what a socket is called before its process listens there


def sockets(home: Path) -> list[Path]:
    """The sockets of a home: those of lenders first, then the newest first, whose session has probably just begun."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(home / "run"):
            if entry.name.endswith(".sock"):
                with suppress(OSError):  # it has just gone, or leads nowhere; the others are still there
                    found.append((entry.name.endswith(LENDS), entry.stat().st_mtime, entry.name))
    return [home / "run" / name for _, _, name in sorted(found, reverse=True)]


def connect_to(path: Path, seconds: float) -> socket.socket:
    """A line to the process that listens there.

    :raises ConnectionRefusedError: if none does; its socket is removed
    :raises OSError: if it takes no callers now, or another user listens there
    """
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.settimeout(seconds)
        with address(path) as name:
            line.connect(name)
        if is_stopped(caller(line)):
            raise BlockingIOError("stopped")
    except BaseException as error:
        line.close()
        if isinstance(error, ConnectionRefusedError):
            with suppress(OSError):
                path.unlink()
        raise
    return line


def exchange(path: Path, question: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What the process that listens there answers.

    :raises OSError: if it does not answer in time
    :raises ValueError: if it answers anything else
    """
    until = time.monotonic() + seconds
    with connect_to(path, seconds) as line:
        line.sendall(json.dumps(question).encode() + b"\n")
        reply = json.loads(receive_line(line, until))
    if not isinstance(reply, dict):
        raise ValueError("not an answer")
    return reply


def remove_dead(home: Path) -> None:
    """Remove the sockets of processes that were killed; a new process may have the number of one of them."""
    for path in sockets(home):
        with suppress(OSError):
            connect_to(path, 0.0).close()  # without waiting: who listens is alive, even where many wait
    for begun in (home / "run").glob(f"*{BEGUN}"):
        with suppress(OSError, ValueError):
            if is_gone(int(begun.stem)):  # it was killed before it listened
                begun.unlink()


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def is_stopped(process: int) -> bool:
    """Whether it does nothing for now, as everything that belongs to a client does that was suspended (Ctrl-Z). The
    system takes its callers all the same. Not known everywhere."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].startswith(b"T")
    except OSError:
        return False


def caller(line: socket.socket) -> int:
    """The process at the other end; 0 where the system does not say.

    :raises PermissionError: if it is another user's
    """
    if not hasattr(socket, "SO_PEERCRED"):  # there the folder alone keeps others out
        return 0
    size = struct.calcsize("3i")
    process, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if user != os.geteuid():
        raise PermissionError("another user's")
    return int(process)


def receive_line(line: socket.socket, until: float) -> bytes:
    """What the other side sends until the end of a line, all of it by then.

    :raises OSError: if there is no more, or not in time
    """
    got = b""
    while not got.endswith(b"\n") and len(got) < LARGEST:
        line.settimeout(max(0.001, until - time.monotonic()))
        piece = line.recv(65536)
        if not piece:
            raise ConnectionResetError
        got += piece
        if time.monotonic() > until:
            raise TimeoutError
    return got


@contextmanager
def address(path: Path) -> Iterator[str]:
    """A socket's address: its path, or where that is too long for one, the same through an open folder."""
    if len(str(path)) <= LONGEST or not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
