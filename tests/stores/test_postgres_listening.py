"""What one process writes is heard by those who follow it in another, at once; and asked for where it is not."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress

import httpx
import psycopg
import pytest

from scrubjay.dialects.table import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.app import build_app
from scrubjay.stores.postgres import listening as postgres_listening
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.tables import watching
from tests.postgres import Stores, server_url
from tests.servers.sites import running
from tests.stores.contract.suite import NOW, an_event

pytestmark = [pytest.mark.postgres, pytest.mark.process]

PATIENCE = 60.0  # seconds; what is waited for comes in a fraction of one


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "listening")) as stores:
        yield stores


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.empty()


@pytest.fixture
def here(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


@pytest.fixture
def there(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_listening, "AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(postgres_listening, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(postgres_listening, "SIGN_SECONDS", 5 * PATIENCE)  # whoever is late on a busy machine is there
    monkeypatch.setattr(watching, "RARELY_SECONDS", 5 * PATIENCE)


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def listeners(url: str) -> list[int]:
    """The connections that listen, as the server knows them."""
    with psycopg.connect(server_url()) as con:
        return [
            pid for (pid,) in con.execute("SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_notify(%%'", ())
        ]


def tell(store: PostgresStore, space: str = "default") -> None:
    with store.writing() as tx:
        tx.spaces.create(space, at=NOW)
        tx.history.record(an_event(space=space))


@contextmanager
def heard(store: PostgresStore) -> Iterator[threading.Event]:
    """What is rung; the block begins once announcements arrive."""
    begun, rung = threading.Semaphore(0), threading.Event()
    first = not store._listener.live
    with store.listening("default", begun.release):
        for _ in range(2 * first):  # who comes first is rung when somebody watches, and when announcements arrive
            assert begun.acquire(timeout=PATIENCE)
        with store.listening("default", rung.set):
            yield rung


def test_what_another_store_writes_is_heard(here, there):
    with heard(here) as rung:
        tell(there)

        assert rung.wait(PATIENCE)


def test_what_happens_in_another_space_is_not(here, there):
    with heard(here) as rung:
        tell(there, "elsewhere")
        tell(there, "default")

        assert rung.wait(PATIENCE)
        rung.clear()
        tell(there, "elsewhere")
        assert not rung.wait(0.3)


def test_what_is_undone_is_not_heard(here, there):
    with heard(here) as rung:
        with suppress(ZeroDivisionError), there.writing() as tx:
            tx.history.record(an_event())
            tx.write_deferred()
            raise ZeroDivisionError

        assert not rung.wait(0.3)


def test_a_lost_connection_is_replaced_and_whoever_listens_is_told_to_ask(here, there, url):
    with heard(here) as rung:
        [pid] = listeners(url)
        with psycopg.connect(server_url(), autocommit=True) as con:
            con.execute("SELECT pg_terminate_backend(%s)", (pid,))

        assert rung.wait(PATIENCE)
        wait_until(lambda: here._listener.live and listeners(url) not in ([], [pid]))
        rung.clear()
        tell(there)
        assert rung.wait(PATIENCE)


class Pooled:
    """Every statement on another connection, as behind a pooler that hands them on."""

    listened = 0

    def execute(self, statement, values=()):
        with psycopg.connect(server_url(), autocommit=True) as con:
            con.execute(statement, values)
        self.listened += isinstance(statement, psycopg.sql.Composed)

    def notifies(self, timeout):
        with psycopg.connect(server_url(), autocommit=True) as con:
            yield from con.notifies(timeout=timeout)


def test_where_signs_do_not_come_back_nobody_relies_on_it(monkeypatch):
    monkeypatch.setattr(postgres_listening, "SIGN_SECONDS", 0.05)
    pooled = Pooled()
    listener = postgres_listening.Listener(lambda: nullcontext(pooled), "listening")
    with listener.listening("default", lambda: None):
        wait_until(lambda: listener.live or pooled.listened == 3)

        assert not listener.live
    listener.close()


def test_however_many_listen_it_is_one_connection_and_none_when_they_have_left(here, there, url):
    with heard(here), heard(here) as rung, heard(there):
        assert len(listeners(url)) == 2
        tell(there)
        assert rung.wait(PATIENCE)

    wait_until(lambda: not listeners(url))
    with heard(here):
        assert len(listeners(url)) == 1


def test_closing_the_store_ends_it(url):
    store = PostgresStore(url)
    with heard(store):
        store.close()

        wait_until(lambda: not listeners(url))
        wait_until(lambda: not {"listening", "watching"} & {thread.name for thread in threading.enumerate()})


@pytest.mark.parametrize("lost", [False, True])
def test_a_stream_tells_what_another_server_wrote_long_before_it_would_ask(here, there, url, lost):
    jay = engine_on(here, HashingEmbedder())
    with running(build_app(jay, [find("memento")], only_rest=[find("native")])) as address:
        other = engine_on(there, HashingEmbedder())
        with httpx.stream("GET", f"{address}/api/v1/events", timeout=PATIENCE) as reply:
            lines = reply.iter_lines()
            wait_until(lambda: here._listener.live)
            time.sleep(2 * watching.POLL_SECONDS)  # by now it waits, and nobody asks
            if lost:
                with psycopg.connect(server_url(), autocommit=True) as con:
                    con.execute("SELECT pg_terminate_backend(%s)", tuple(listeners(url)))
            until = time.monotonic() + PATIENCE
            stored = other.store("The harbour freezes in January.")
            told = next(json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))

        assert told["memory"] == stored.memory.id
        assert time.monotonic() < until
    wait_until(lambda: not listeners(url))
