"""Lets hooks ask a server that is running: a socket in the home that only its owner can open.

One line of JSON in, one out, one after the other: a hook that has to wait looks by words instead.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from scrubjay.engine.engine import Engine
from scrubjay.hooks.answers import answer
from scrubjay.hooks.asking import address, received, sockets
from scrubjay.settings import Settings

log = logging.getLogger(__name__)
READ_SECONDS = 0.5  # what a hook gets to send its line, and to take the answer


def listen(settings: Settings, engine: Callable[[], Engine]) -> Callable[[], None]:
    """Answer hooks from now on, in a thread; the result ends it. Without sockets of this kind nothing happens."""
    if not hasattr(socket, "AF_UNIX"):
        return lambda: None
    path = settings.home / "run" / f"{os.getpid()}.sock"
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        for folder in (settings.home, path.parent):  # with PostgreSQL there may be no home so far
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        clean(settings)
        # By this name hooks find it, and remove it if no one listens there: so it gets its name when someone does.
        begun = path.with_suffix(".begun")
        begun.unlink(missing_ok=True)
        with address(begun) as name:
            line.bind(name)
        begun.chmod(0o600)
        line.listen(8)
        begun.rename(path)
    except OSError as error:
        line.close()
        log.warning("Hooks cannot ask this server: %s", error.strerror)
        return lambda: None
    threading.Thread(target=serve, args=(line, settings.store, engine), daemon=True).start()

    def close() -> None:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        line.close()

    return close


def clean(settings: Settings) -> None:
    """Remove what servers left that were killed; our own number may be one of theirs."""
    for path in sockets(settings.home):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, address(path) as name:
            try:
                line.settimeout(0.1)
                line.connect(name)
            except ConnectionRefusedError:
                path.unlink()


def serve(line: socket.socket, store: str, engine: Callable[[], Engine]) -> None:
    while True:
        try:
            caller, _ = line.accept()
        except OSError:  # closed
            return
        with caller, suppress(Exception):
            question = json.loads(received(caller, time.monotonic() + READ_SECONDS))
            caller.settimeout(READ_SECONDS)
            if question["store"] == store:  # else another memory in the same home
                caller.sendall(json.dumps(answer(engine(), question)).encode() + b"\n")
