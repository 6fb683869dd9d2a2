"""Searches go to a real replica, and nobody misses what he has written himself."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.values.search import Filter
from tests.postgres import Stores, server
from tests.stores.contract.suite import EVERYTHING, NOW, QUERY, at_cosine, matched, purge, put, some

pytestmark = [pytest.mark.postgres, pytest.mark.process]

SECONDS = 60


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with closing(Stores(server().url, "replicated")) as stores:
        yield stores.empty()


@pytest.fixture(scope="module")
def copy(url: str) -> Iterator[str]:
    """The address of the replica's server."""
    with tempfile.TemporaryDirectory(prefix="scrubjay-replica-", ignore_cleanup_errors=True) as folder:
        yield server().copied(Path(folder))
        server().stop_copy(Path(folder))


@pytest.fixture
def held_up(copy: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A replica that takes over nothing for the time being."""
    with psycopg.connect(copy, autocommit=True) as con:
        con.execute("SELECT pg_wal_replay_pause()")
        deadline = time.monotonic() + SECONDS
        while con.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
            assert time.monotonic() < deadline
        yield con
        con.execute("SELECT pg_wal_replay_resume()")


def with_replica(url: str, copy: str) -> PostgresStore:
    return PostgresStore(url, replica=f"{copy}&schema=replicated")


def test_a_search_is_answered_by_the_replica(
    url: str, copy: str, held_up: psycopg.Connection[tuple[object, ...]]
) -> None:
    """It cannot know yet what somebody else stores now."""
    with closing(PostgresStore(url)) as other, closing(with_replica(url, copy)) as store:
        memory = put(other, some("User lives in Portland"), [at_cosine(0.9)])

        assert matched(store, "portland") == []
        assert matched(other, "portland") == [memory.id]

        held_up.execute("SELECT pg_wal_replay_resume()")
        deadline = time.monotonic() + SECONDS
        while matched(store, "portland") != [memory.id]:
            assert time.monotonic() < deadline


def test_whoever_has_written_finds_it_at_once(
    url: str, copy: str, held_up: psycopg.Connection[tuple[object, ...]]
) -> None:
    with closing(with_replica(url, copy)) as store:
        assert matched(store, "boston") == []

        memory = put(store, some("User lives in Boston"), [QUERY])

        assert matched(store, "boston") == [memory.id]
        assert store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=1)[0].memory == memory.id


def test_what_the_replica_still_finds_is_not_shown_once_it_is_gone(url: str, copy: str) -> None:
    with closing(PostgresStore(url)) as other, closing(with_replica(url, copy)) as store:
        memory = put(other, some("User lives in Denver"))
        deadline = time.monotonic() + SECONDS
        while matched(store, "denver") != [memory.id]:
            assert time.monotonic() < deadline
        with psycopg.connect(copy, autocommit=True) as con:
            con.execute("SELECT pg_wal_replay_pause()")
            purge(other, memory.id)

            assert store.get(matched(store, "denver"), EVERYTHING) == []

            con.execute("SELECT pg_wal_replay_resume()")


def test_without_its_replica_a_store_answers_all_the_same(url: str) -> None:
    with closing(PostgresStore(url, replica="postgresql://127.0.0.1:9/none")) as store:
        memory = put(store, some("User lives in Miami"))

        assert matched(store, "miami") == [memory.id]


def test_a_replica_that_is_no_replica_is_taken_as_it_is(url: str) -> None:
    with closing(PostgresStore(url, replica=url)) as store:
        memory = put(store, some("User lives in Houston"))

        assert matched(store, "houston") == [memory.id]
