"""A PostgreSQL server that is killed again and again under eight clients: nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from statistics import median

import httpx
import psycopg
import pytest

from scrubjay.stores.postgres.connections import POOL_SIZE
from scrubjay.stores.postgres.store import PostgresStore
from tests.postgres import Server
from tests.servers.test_http import real_server
from tests.stores.contract.suite import EVERYTHING

pytestmark = [pytest.mark.postgres, pytest.mark.process]

CLIENTS = 8
PATIENCE = 60.0  # seconds


def kill(server: Server) -> None:
    """The postmaster dies without a word, and is started again as soon as its children have followed it."""
    postmaster, children = server.pid, list[str]()
    with suppress(OSError):  # where the system tells: an attempt beside them would fail, and cost half a second
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    os.kill(postmaster, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, children)))

    def started() -> bool:
        with suppress(subprocess.SubprocessError, psycopg.Error, OSError, IndexError):
            server.start()
            with psycopg.connect(server.url, connect_timeout=2):
                return server.pid != postmaster
        return False

    wait_until(started)


def alive(process: str) -> bool:
    with suppress(OSError):
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    return False


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def connections(server: Server) -> int:
    with psycopg.connect(server.url) as con:
        [(count,)] = con.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'scrubjay'")
        return int(count)


class Client(threading.Thread):
    """Stores one memory after the other, and tries again when it is told to."""

    def __init__(self, address: str, number: int, stop: threading.Event) -> None:
        super().__init__(name=f"client {number}")
        self.acknowledged: list[str] = []
        self.refused = 0
        self.unexpected: list[object] = []
        self.slowest = 0.0
        self._address = address
        self._stop_now = stop

    def run(self) -> None:
        with httpx.Client(base_url=self._address, timeout=PATIENCE) as http:
            while not self._stop_now.is_set():
                began = time.monotonic()
                try:
                    reply = http.post("/api/v1/memories", json={"content": "User lives in Seattle"})
                    self._note(reply)
                except httpx.HTTPError as error:
                    self.unexpected.append(error)
                self.slowest = max(self.slowest, time.monotonic() - began)

    def _note(self, reply: httpx.Response) -> None:
        if reply.status_code == 201:
            self.acknowledged.append(reply.json()["memory"]["id"])
        elif reply.status_code == 503 and "retry-after" in reply.headers:
            self.refused += 1
            time.sleep(0.2)  # a client that is in a hurry
        else:
            self.unexpected.append((reply.status_code, reply.text))


@pytest.mark.parametrize(
    ("rounds", "seconds"),
    [pytest.param(1, 1, id="once"), pytest.param(50, 5, id="often", marks=pytest.mark.long)],
)
def test_what_was_acknowledged_survives_a_server_that_is_killed(tmp_path, rounds, seconds):
    server = Server()  # with fsync, as servers are
    with real_server(tmp_path, SCRUBJAY_STORE=server.url) as (address, process):
        stop = threading.Event()
        clients = [Client(address, number, stop) for number in range(CLIENTS)]

        def told() -> int:
            return sum(len(client.acknowledged) for client in clients)

        for client in clients:
            client.start()
        outages, recoveries = [], []  # until the next acknowledged write: since the kill, since the server was back
        try:
            wait_until(lambda: told() > CLIENTS)
            for _ in range(rounds):
                time.sleep(seconds)
                died = time.monotonic()
                kill(server)
                back, before = time.monotonic(), told()
                wait_until(lambda before=before: told() > before)
                outages.append(time.monotonic() - died)
                recoveries.append(time.monotonic() - back)
        finally:
            stop.set()
            for client in clients:
                client.join(PATIENCE)
        at_rest = connections(server)
        process.terminate()
        process.wait(PATIENCE)
        wait_until(lambda: connections(server) == 0)

    acknowledged = {memory for client in clients for memory in client.acknowledged}
    with closing(PostgresStore(server.url)) as store:
        there = {memory.id for memory in store.get(sorted(acknowledged), EVERYTHING)}
        numbers: list[int] = []
        while events := store.history.events("default", after=numbers[-1] if numbers else 0):
            numbers += [event.number for event in events]
        problems = store.check(deep=True).problems
    server.stop()

    slowest, refused = max(client.slowest for client in clients), sum(client.refused for client in clients)
    print(
        f"{rounds} kills: {len(acknowledged)} acknowledged, {refused} told to try again; the next write "
        f"{median(outages):.2f} s after a kill, at most {max(outages):.2f}; {median(recoveries):.2f} s after the "
        f"server was back, at most {max(recoveries):.2f}; slowest request {slowest:.1f} s; {at_rest} connections"
    )
    assert [one for client in clients for one in client.unexpected] == []
    assert acknowledged == there
    assert numbers == list(range(1, len(numbers) + 1))
    assert problems == ()
    assert at_rest <= POOL_SIZE
