"""One thread watches the store for all who follow it here."""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing

import pytest

from scrubjay.errors import StorageError
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.tables import watching
from scrubjay.stores.tables.watching import Watch
from tests.stores.contract.suite import NOW, an_event

pytestmark = pytest.mark.process

PATIENCE = 60.0


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.02)


@pytest.fixture
def store(tmp_path):
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        yield store


def tell(store, space):
    with store.writing() as tx:
        tx.spaces.create(space, at=NOW)
        tx.history.record(an_event(space=space))


def test_each_is_told_of_its_own_space_only(store, tmp_path):
    here, elsewhere = threading.Semaphore(0), threading.Semaphore(0)
    with ExitStack() as stack:
        stack.enter_context(store.listening("default", here.release))
        assert here.acquire(timeout=PATIENCE)  # who comes first looks once; who comes later has just looked itself
        stack.enter_context(store.listening("elsewhere", elsewhere.release))
        with closing(SqliteStore(tmp_path / "memories.db")) as other:
            tell(other, "elsewhere")
        assert elsewhere.acquire(timeout=PATIENCE)
        tell(store, "default")
        assert here.acquire(timeout=PATIENCE)

        assert not elsewhere.acquire(blocking=False)
        assert not here.acquire(blocking=False)


def test_when_a_store_answers_again_everybody_looks():
    answers = iter([{"default": 1}, {"default": 1}, None, None, {"default": 1}])

    def numbers():
        answer = next(answers, {"default": 1})
        if answer is None:
            raise StorageError
        return answer

    rung = threading.Semaphore(0)
    watch = Watch(numbers)
    with closing(watch), watch.listening("default", rung.release):
        assert rung.acquire(timeout=PATIENCE)

        assert rung.acquire(timeout=PATIENCE)


def test_what_is_announced_is_asked_for_rarely(monkeypatch):
    monkeypatch.setattr(watching, "RARELY_SECONDS", 3600.0)
    asked, announced, looked = [], [True], threading.Semaphore(0)

    def is_announced():
        looked.release()
        return announced[0]

    watch = Watch(lambda: asked.append(1) or {"default": len(asked)}, announced=is_announced)
    rung = threading.Semaphore(0)
    with closing(watch), watch.listening("default", rung.release):
        assert rung.acquire(timeout=PATIENCE)
        for _ in range(5):
            assert looked.acquire(timeout=PATIENCE)
        assert len(asked) == 1

        announced[0] = False

        assert rung.acquire(timeout=PATIENCE)


def test_closing_a_store_ends_the_watching(tmp_path):
    store = SqliteStore(tmp_path / "memories.db")
    with store.listening("default", lambda: None):
        thread = store._watch._thread  # others of this name may still be ending
        assert thread.is_alive()
        store.close()

        thread.join(PATIENCE)
        assert not thread.is_alive()
