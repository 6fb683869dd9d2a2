"""Asks a server that is running on the same memory, if there is one: it has the model loaded.

Every server listens on a socket in the folder `run` of its home, named after its process (`listening.py`). One line of
JSON goes there, one comes back. A socket that no one listens on any more is removed.
"""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

LARGEST = 1_000_000  # bytes of a line
LONGEST = 90  # letters of a path that every system takes as an address


def sockets(home: Path) -> list[Path]:
    """The newest first: the session that a hook belongs to has probably just begun."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(home / "run"):
            if entry.name.endswith(".sock"):
                with suppress(OSError):  # it has just gone, or leads nowhere; the others are still there
                    found.append((entry.stat().st_mtime, entry.name))
    return [home / "run" / name for _, name in sorted(found, reverse=True)]


def ask(home: Path, question: dict[str, Any], *, seconds: float) -> dict[str, Any] | None:
    """The first server's answer; None if there is none in time."""
    until = time.monotonic() + seconds
    for path in sockets(home):
        left = until - time.monotonic()
        if left <= 0:
            return None
        try:
            return {**exchanged(path, question, left), "how": "server"}
        except ConnectionRefusedError:
            with suppress(OSError):
                path.unlink()
        except (OSError, ValueError, AttributeError):  # too late, gone meanwhile, or of another store
            continue
    return None


def exchanged(path: Path, question: dict[str, Any], seconds: float) -> dict[str, Any]:
    until = time.monotonic() + seconds
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, address(path) as name:
        line.settimeout(seconds)
        line.connect(name)
        line.sendall(json.dumps(question).encode() + b"\n")
        reply: dict[str, Any] = json.loads(received(line, until))
    if not isinstance(reply.get("text"), str):
        raise ValueError("not an answer")
    return reply


def received(line: socket.socket, until: float) -> bytes:
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
