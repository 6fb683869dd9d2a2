"""`scrubjay serve --workers N`: several processes on one port, each a whole server with its own model.

    scrubjay serve ──starts, replaces, stops──> worker 0 … N-1: the same command, with --worker
                    └── a line of JSON on standard input says what all share; its end says: stop

The system gives each new connection to one of them. What several servers on one store share anyway (limits, jobs,
events, keys to do a write once), they share through the store. Three things are in a folder of their own: what each
counts, that the link to sign in was used, and a socket for each, by which a request reaches the worker that holds its
MCP session.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput
from scrubjay.machine.local_sockets import LONGEST
from scrubjay.values.frozen import dataclass, replace

if TYPE_CHECKING:
    from scrubjay.settings import Settings

LOOK_SECONDS = 0.1  # between looks whether a worker has ended
AGAIN_SECONDS = 2.0  # between starts of one worker: a database, or room for a process, may be away for a while
STOP_SECONDS = 12.0  # what workers get to end after a signal, a little more than each needs
LINK_SECONDS = 600
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One of several processes, and what all of them share."""

    number: int
    port: int
    folder: str  # only this user can open it
    secret: str  # by which they know each other
    link: str  # the word that signs the owner in …
    link_until: float  # … by the clock that only goes forward, which all share
    announces: bool  # says on standard error that the server is ready

    def socket_of(self, number: int) -> str:
        return f"{self.folder}/{number}.sock"

    def take_link(self) -> bool:
        """Whether no worker has let anyone sign in by the link so far."""
        try:
            os.close(os.open(f"{self.folder}/signed-in", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def internal(self) -> socket.socket:
        """Where the other workers reach this one."""
        path = Path(self.socket_of(self.number))
        path.unlink(missing_ok=True)  # of one that this one replaces
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.bind(str(path))
        line.listen(128)
        return line


# --- the process that keeps the workers ------------------------------------------------------------------------------


def count_of(text: str) -> int:
    """How many processes a setting means.

    :raises InvalidInput: if that cannot be
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if text != "auto" and not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 64):
        raise InvalidInput("workers must be a number from 1 to 64, or auto.", field="workers")
    count = cores if text == "auto" else int(text)
    if count > 1 and not hasattr(socket, "SO_REUSEPORT"):
        raise InvalidInput("This system lets no two processes listen on one port.", field="workers")
    return count


def bind_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that listens there; others may listen beside it, if it is shared.

    :raises InvalidInput: if the port is in use
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(
            ("127.0.0.1" if host == "localhost" else host, port), family=family, reuse_port=shared
        )
    except (OSError, OverflowError):
        raise InvalidInput(
            f"Port {port} of this address cannot be used; perhaps another server is using it.",
            hint="Choose another with --port or SCRUBJAY_PORT.",
            field="port",
        ) from None


def keep_workers(settings: Settings, count: int) -> int:
    """Serve with this many processes until a signal; the result is the exit status.

    :raises InvalidInput: if the address is in use
    """
    with bind_socket(settings.host, settings.port) as free:  # another server's port is not shared
        port = free.getsockname()[1]
    place = tempfile.gettempdir()  # with room for the name of a folder and of a socket in it
    folder = tempfile.mkdtemp(prefix="scrubjay-", dir=place if len(place) + 30 <= LONGEST else "/tmp")  # noqa: S108
    shared = Worker(
        number=0,
        port=port,
        folder=folder,
        secret=secrets.token_urlsafe(32),
        link=secrets.token_urlsafe(32),
        link_until=time.monotonic() + LINK_SECONDS,
        announces=True,
    )
    for one in SIGNALS:
        signal.signal(one, signal.default_int_handler)
    workers: dict[int, subprocess.Popen[bytes]] = {}
    try:
        for number in range(count):
            workers[number] = start_worker(replace(shared, number=number, announces=number == 0))
        return replace_dead(workers, shared)
    except KeyboardInterrupt:
        return 0
    finally:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        end(workers.values())
        shutil.rmtree(folder, ignore_errors=True)


def start_worker(worker: Worker) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "scrubjay", *sys.argv[1:], "--worker"],
        stdin=subprocess.PIPE,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": worker.folder},
    )
    assert process.stdin is not None
    values = {name: getattr(worker, name) for name in Worker.__slots__}
    process.stdin.write(json.dumps(values).encode() + b"\n")
    process.stdin.flush()  # and left open: its end is how a worker hears that this process was killed
    return process


def replace_dead(workers: dict[int, subprocess.Popen[bytes]], shared: Worker) -> int:
    """Put another in the place of each that ends; the status of one that cannot even begin."""
    begun, well = dict.fromkeys(workers, time.monotonic()), False
    while True:
        time.sleep(LOOK_SECONDS)
        well = well or all(os.path.exists(shared.socket_of(number)) for number in workers)
        for number, process in workers.items():
            if (status := process.poll()) is None:
                continue
            if not well and status > 0:  # it has said why
                return status
            if time.monotonic() - begun[number] >= AGAIN_SECONDS:
                begun[number] = time.monotonic()
                with suppress(OSError):  # no room for a process just now, or it was killed at once
                    workers[number] = start_worker(replace(shared, number=number, announces=False))


def end(workers: Iterable[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + STOP_SECONDS
    for process in workers:
        process.terminate()
    for process in workers:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin is not None:
            process.stdin.close()


# --- a worker --------------------------------------------------------------------------------------------------------


def read_worker() -> Worker:
    """This worker's instructions, from standard input. When that ends, its parent process is gone, and it ends too."""
    told = sys.stdin.buffer.readline()
    worker = Worker(**json.loads(told))

    def wait() -> None:
        sys.stdin.buffer.read()
        shutil.rmtree(worker.folder, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
    return worker
