"""Asks a server that is running on the same memory, if there is one: it has the model loaded, or can borrow it."""

from __future__ import annotations

import time

from scrubjay.machine.local_sockets import exchange, sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def ask(home: Path, question: dict[str, Any], *, seconds: float) -> dict[str, Any] | None:
    """The first server's answer; None if there is none in time."""
    until = time.monotonic() + seconds
    for path in sockets(home):
        left = until - time.monotonic()
        if left <= 0:
            return None
        try:
            reply = exchange(path, question, left)
        except (OSError, ValueError):  # too late, gone meanwhile, or of another store
            continue
        if isinstance(reply.get("text"), str):
            return {**reply, "how": "server"}
    return None
