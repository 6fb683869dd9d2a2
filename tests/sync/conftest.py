"""Two stores side by side: `jay` and the one at the endpoint `drive`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.sync.peer import Peer
from scrubjay.remote.keys import SyncKeys
from scrubjay.stores.promises.sync import Endpoint
from scrubjay.wiring import open_peer
from tests.conftest import sqlite_store


@pytest.fixture
def open_engine(tmp_path: Path, clock) -> Iterator[Callable[..., Engine]]:
    """Engines on files by name, which reach others as the program does."""
    opened: list[Engine] = []
    keys = SyncKeys(tmp_path / "sync_keys.json")

    def connect(endpoint: Endpoint, create: bool) -> Peer:
        return open_peer(endpoint, create=create, user="local", keys=keys, private=True, now=clock)

    def open_one(name: str = "memories.db", embedder: object = "hashing", **options: object) -> Engine:
        chosen = HashingEmbedder() if embedder == "hashing" else embedder
        usual = {"clock": clock, "connect": connect}
        engine = engine_on(sqlite_store(tmp_path / name), chosen, **usual | options)
        opened.append(engine)
        return engine

    yield open_one
    for engine in opened:
        engine.close()


@pytest.fixture
def drive(open_engine) -> Engine:
    return open_engine("drive.db")


@pytest.fixture
def jay(open_engine, drive, tmp_path) -> Engine:
    engine = open_engine()
    engine.sync.add("drive", tmp_path / "drive.db")
    return engine
