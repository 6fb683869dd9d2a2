"""A PostgreSQL server that is killed again and again under eight writers: nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing, suppress

import psycopg
import pytest

from scrubjay.errors import Error, StorageBusy
from scrubjay.stores.contract import EVERYTHING, an_event, put_in, some
from scrubjay.stores.postgres import PostgresStore
from tests.postgres import Server

pytestmark = pytest.mark.postgres

WRITERS = 8


def killed(server: Server) -> None:
    """The postmaster dies without a word, and its children with it; then it is started again."""
    postmaster = server.pid
    os.kill(postmaster, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # its children notice, and let go of the shared memory
        with suppress(Exception):
            server.start()
            with psycopg.connect(server.url, connect_timeout=2):
                assert server.pid != postmaster
                return
        time.sleep(0.2)
    raise AssertionError("The server did not start again.")


@pytest.mark.parametrize(
    ("rounds", "seconds"),
    [pytest.param(1, 1, id="once"), pytest.param(20, 5, id="often", marks=pytest.mark.long)],
)
def test_what_was_acknowledged_survives_a_server_that_is_killed(rounds: int, seconds: float) -> None:
    server = Server()  # with fsync, as servers are
    acknowledged: list[str] = []
    other: list[BaseException] = []
    slowest = [0.0]
    closing_down = threading.Event()
    with closing(PostgresStore(server.url)) as store:

        def work() -> None:
            while not closing_down.is_set():
                began = time.monotonic()
                try:
                    with store.writing() as tx:
                        memory = put_in(tx, some("User lives in Seattle"))
                        tx.record(an_event(memory=memory.id))
                    acknowledged.append(memory.id)
                except StorageBusy:
                    time.sleep(0.05)  # as a client would
                except BaseException as error:
                    other.append(error)
                slowest[0] = max(slowest[0], time.monotonic() - began)

        threads = [threading.Thread(target=work) for _ in range(WRITERS)]
        for thread in threads:
            thread.start()
        recoveries, outages = [], []  # since the server took connections again; since it was killed
        for _ in range(rounds):
            time.sleep(seconds)
            died = time.monotonic()
            killed(server)
            up, before = time.monotonic(), len(acknowledged)
            while len(acknowledged) == before and time.monotonic() < up + 30:
                time.sleep(0.01)
            recoveries.append(time.monotonic() - up)
            outages.append(time.monotonic() - died)
        closing_down.set()
        for thread in threads:
            thread.join(timeout=60)

        there = {memory.id for memory in store.get(acknowledged, EVERYTHING)}
        numbers: list[int] = []
        while events := store.events("default", after=numbers[-1] if numbers else 0):
            numbers += [event.number for event in events]

        assert not other, other[:3]
        assert all(isinstance(error, Error) for error in other)
        assert len(acknowledged) > WRITERS
        assert set(acknowledged) <= there
        assert numbers == list(range(1, len(numbers) + 1))
        assert slowest[0] < 30
        assert max(recoveries) < 30, recoveries
        assert store.check(deep=True).problems == ()
    print(
        f"{rounds} kills, {len(acknowledged)} acknowledged; next write {max(recoveries):.2f} s after the server is back"
        f", {max(outages):.1f} s after the kill; slowest call {slowest[0]:.1f} s"
    )
    server.stop()
