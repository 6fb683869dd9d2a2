"""The SQLite store keeps the contract, and what it promises of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scrubjay.stores.contract import StoreContract
from scrubjay.stores.sqlite import SqliteStore


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(tmp_path / "memories.db")
        yield store
        store.close()

    @pytest.fixture
    def reopen(self, store: SqliteStore, tmp_path: Path) -> Iterator[Callable[[], SqliteStore]]:
        opened = [store]

        def again() -> SqliteStore:
            opened[-1].close()
            opened.append(SqliteStore(tmp_path / "memories.db"))
            return opened[-1]

        yield again
        opened[-1].close()
