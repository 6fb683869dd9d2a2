"""What a verb reads while it writes, it reads in its transaction: another connection would not see what it wrote."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.transaction import SqliteTransaction


class Watched(SqliteStore):
    """Knows whether a reader's connection was borrowed by a thread that has a transaction open."""

    def __init__(self, path: Path) -> None:
        self.here = threading.local()
        self.beside: list[str] = []
        super().__init__(path)

    def _reading(self) -> Any:
        if getattr(self.here, "writing", False):
            self.beside.append("read beside the transaction")
        return super()._reading()

    @contextmanager
    def _changing(self, timeout_seconds: float | None = None) -> Iterator[SqliteTransaction]:
        with super()._changing(timeout_seconds) as transaction:
            self.here.writing = True
            try:
                yield transaction
            finally:
                self.here.writing = False


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "memories.db")


@pytest.fixture
def jay(store: Watched) -> Iterator[Engine]:
    with engine_on(store, HashingEmbedder()) as engine:
        yield engine


def test_nothing_is_read_beside_an_open_transaction(store: Watched, jay: Engine) -> None:
    old = jay.store("The harbour closes at six.").memory
    new = jay.store("The harbour closes at seven now.").memory
    jay.update(new.id, content="The harbour closes at eight now.")
    jay.supersede(old=old.id, new=new.id)
    jay.search("when does the harbour close")
    jay.forget(old.id)

    assert store.beside == []


def test_facts_and_the_clock_are_read_once_a_transaction(store: Watched) -> None:
    asked: list[str] = []

    with store.writing() as tx, tx._reading() as con:
        con.set_exec_trace(lambda _, sql, __: asked.append(sql) or True)
        try:
            assert tx.origin == tx.origin == tx.history.fact("origin")
        finally:
            con.set_exec_trace(None)

    assert len([sql for sql in asked if "facts" in sql]) == 1
