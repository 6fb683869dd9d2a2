"""Lets other processes of this user ask a server that is running, on a socket in the home that only its owner can open.

    one line of JSON in ──> "lend": a text's vector, by the model that is loaded here (`embedders/lending.py`)
                            else: what a hook gives, for the memory that it names
                        ──> one line of JSON out

Each caller has a thread of its own, so that one that stalls keeps no other waiting. Hooks are answered one after the
other: one that has to wait looks by words instead.
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
from scrubjay.machine.local_sockets import BEGUN, address, caller, receive_line, remove_dead
from scrubjay.settings import Settings

log = logging.getLogger(__name__)
READ_SECONDS = 0.5  # what a caller gets to send its line, and to take the answer
ASKERS = 64  # at once; the system lets as many again wait
AGAIN_SECONDS = 0.1  # where no more files may be opened, or threads started


def listen(settings: Settings, engine: Engine, client: Callable[[], str] = lambda: "unknown") -> Callable[[], None]:
    """Answer others from now on, in threads; the result ends it. Without sockets of this kind nothing happens.

    `client` says which program this server runs for.
    """
    if not hasattr(socket, "AF_UNIX"):
        return lambda: None
    path = settings.home / "run" / f"{os.getpid()}.sock"
    lending = engine.parts.lending
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        for folder in (settings.home, path.parent):  # with PostgreSQL there may be no home so far
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_dead(settings.home)
        # By this name others find it, and remove it if no one listens there: so it gets its name when someone does.
        begun = path.with_suffix(BEGUN)
        begun.unlink(missing_ok=True)
        with address(begun) as name:
            line.bind(name)
        begun.chmod(0o600)
        line.listen(128)
        begun.rename(path)
    except OSError as error:
        line.close()
        log.warning("Hooks cannot ask this server: %s", error.strerror or error)
        return lambda: None
    lending.listens(path, client)
    hooks, room, closed = threading.Lock(), threading.BoundedSemaphore(ASKERS), threading.Event()

    def answered(asker: socket.socket) -> None:
        with room, asker, suppress(Exception):
            process = caller(asker)
            question = json.loads(receive_line(asker, time.monotonic() + READ_SECONDS))
            if "lend" in question:
                reply = lending.answer(question, process)
            elif question["store"] == settings.store:  # else another memory in the same home
                with hooks:
                    reply = answer(engine, question)
            asker.settimeout(READ_SECONDS)
            asker.sendall(json.dumps(reply).encode() + b"\n")

    def serve() -> None:
        while not closed.is_set():
            with room:  # someone leaves soon
                pass
            try:
                asker, _ = line.accept()
                threading.Thread(target=answered, args=(asker,), daemon=True).start()
            except (OSError, RuntimeError):
                closed.wait(AGAIN_SECONDS)

    def close() -> None:
        closed.set()
        lending.stop()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)
        line.close()

    threading.Thread(target=serve, daemon=True).start()
    return close
