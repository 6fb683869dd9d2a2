"""What all tests share: a clock that stands still until it is moved, and engines on temporary files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scrubjay.embedders.catalogue import find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.settings import load
from scrubjay.stores.base import Store
from scrubjay.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from tests.postgres import Stores


class Clock:
    """Time under the test's control."""

    def __init__(self) -> None:
        self.time = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_store(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    """Opens this test's store: a file, or with SCRUBJAY_TEST_STORE=postgres a schema of a real server."""
    if os.environ.get("SCRUBJAY_TEST_STORE") != "postgres":
        return lambda: SqliteStore(tmp_path / "memories.db")
    from scrubjay.stores.postgres import PostgresStore

    url = request.getfixturevalue("postgres_stores").empty()
    return lambda: PostgresStore(url)


@pytest.fixture(scope="session")
def postgres_stores() -> Iterator[Stores]:
    from tests.postgres import Stores, server_url

    with closing(Stores(server_url(), "engines")) as stores:
        yield stores


@pytest.fixture
def open_engine(open_store: Callable[[], Store], clock: Clock) -> Iterator[Callable[..., Engine]]:
    """Engines on one store, closed after the test."""
    opened: list[Engine] = []

    def open_one(embedder: object = "hashing", **options: object) -> Engine:
        chosen = HashingEmbedder() if embedder == "hashing" else embedder
        engine = Engine(open_store(), chosen, **{"clock": clock, **options})
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture
def jay(open_engine: Callable[..., Engine]) -> Engine:
    """An engine with the embedder that only tests use."""
    return open_engine()


@pytest.fixture(scope="session")
def model() -> Iterator[LocalEmbedder]:
    """The real model; `make test` has fetched it."""
    embedder = LocalEmbedder(find("arctic-embed-s"), load().models)
    embedder.load()
    yield embedder
    embedder.close()


class Shared:
    """The real model for one engine: closing the engine leaves it loaded for the next test."""

    def __init__(self, embedder: LocalEmbedder) -> None:
        self._embedder = embedder

    def __getattr__(self, name: str) -> object:
        return getattr(self._embedder, name)

    def close(self) -> None:
        pass


@pytest.fixture
def real_jay(open_engine: Callable[..., Engine], model: LocalEmbedder) -> Engine:
    """An engine with the real model."""
    return open_engine(Shared(model))
