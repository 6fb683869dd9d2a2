"""Whatever order threads read and write in, what a store keeps in memory gives the answers that its file gives."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Memory
from scrubjay.values.search import Filter
from tests.stores.contract.samples import EVERYTHING, NOW, put, some, unit
from tests.stores.test_under_load import Uncached, answer

pytestmark = pytest.mark.process

QUESTION = "cello harbour rain"
QUESTIONS = (QUESTION, "cello", "rain", "lake harbour")
MEMORIES = 12
Act = Callable[[SqliteStore, list[Memory]], object]


def add(store: SqliteStore, _: list[Memory]) -> None:
    put(store, some("a cello in the rain"), (unit(101),))


def add_two(store: SqliteStore, memories: list[Memory]) -> None:
    add(store, memories)
    put(store, some("a harbour, a cello " * 90), (unit(102), unit(103)))


def change(store: SqliteStore, memories: list[Memory]) -> None:
    former = memories.pop(0)
    memories.append(put(store, replace(former, content="a lake", version=former.version + 1), (unit(104),)))


def erase(store: SqliteStore, memories: list[Memory]) -> None:
    with store.writing() as tx:
        tx.purge(memories.pop().id, at=NOW)


ACTS = (add, add_two, change, erase)


@pytest.fixture
def memories(tmp_path: Path) -> list[Memory]:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        return [put(store, some(f"cello {n} {'harbour' * (n % 2)}"), (unit(n),)) for n in range(MEMORIES)]


@pytest.fixture
def store(tmp_path: Path, memories: list[Memory]) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        answer(store, QUESTION)
        yield store


def in_a_thread(work: Callable[[], object]) -> Any:
    given: list[object] = []
    thread = threading.Thread(target=lambda: given.append(work()))
    thread.start()
    thread.join()
    assert given, "the thread has failed"
    return given[0]


class Turns:
    """Of several threads one runs at a time. Which goes on is drawn whenever one lets another in, so that the same
    number always gives the same order."""

    def __init__(self, order: int) -> None:
        self._chance = random.Random(order)
        self._changed = threading.Condition()
        self._waiting: list[int] = []
        self._turn: int | None = None

    def run(self, works: Sequence[Callable[[], object]]) -> list[BaseException]:
        failures: list[BaseException] = []

        def begun(number: int, work: Callable[[], object]) -> None:
            try:
                self._wait_for(number)
                work()
            except BaseException as error:
                failures.append(error)
            finally:
                self._waiting.remove(number)
                self._let_one_in()

        self._waiting = [*range(len(works))]
        threads = [threading.Thread(target=begun, args=one) for one in enumerate(works)]
        for thread in threads:
            thread.start()
        self._let_one_in()
        for thread in threads:
            thread.join()
        return failures

    def let_another_in(self) -> None:
        own = self._turn
        assert own is not None
        self._let_one_in()
        self._wait_for(own)

    def _let_one_in(self) -> None:
        with self._changed:
            self._turn = self._chance.choice(self._waiting) if self._waiting else None
            self._changed.notify_all()

    def _wait_for(self, number: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == number)


@pytest.mark.parametrize("orders", [range(first, first + 20) for first in range(40, 140, 20)], ids=str)
def test_threads_that_take_turns_between_any_two_statements(
    tmp_path: Path, memories: list[Memory], orders: range
) -> None:
    for order in orders:
        path = tmp_path / f"{order}.db"
        with closing(SqliteStore(path)) as store, closing(Uncached(path)) as uncached:
            known = [put(store, one, (unit(n),)) for n, one in enumerate(memories)]
            assert not failures_in(Turns(order), random.Random(order), store, uncached, known), order
            for question in QUESTIONS:
                assert answer(store, question) == answer(uncached, question), order


def failures_in(
    turns: Turns, chance: random.Random, store: SqliteStore, uncached: Uncached, memories: list[Memory]
) -> list[BaseException]:
    """What goes wrong with four readers, whose questions give way to others before each statement, and a writer."""
    ever = {question: [answer(uncached, question)] for question in QUESTIONS}

    def give_way(_con: object, _sql: str, _values: object) -> bool:
        if not locked(store):  # by this thread, for others that have begun hold no lock
            turns.let_another_in()
        return True

    def read() -> None:
        for question in chance.sample(QUESTIONS, 3):
            with store.one_reader():
                con: apsw.Connection = store._connections._own.reader
                con.exec_trace = give_way
                try:
                    store.rarity([question.split()[0]], EVERYTHING)
                    found = answer(store, question)
                finally:
                    con.exec_trace = None
                assert found in ever[question]

    def write() -> None:
        for act in chance.choices(ACTS, k=6):
            act(store, memories)
            for question, answers in ever.items():
                answers.append(answer(uncached, question))
            turns.let_another_in()

    return turns.run([read, read, read, read, write])


def locked(store: SqliteStore) -> bool:
    index: Any = store._index(None)
    return bool(index._lock.locked())


@pytest.mark.parametrize("filter", [Filter(), Filter(min_importance=0.2)])
@pytest.mark.parametrize("act", ACTS)
def test_a_reader_of_an_older_snapshot_is_answered_from_it_and_spoils_nothing(
    tmp_path: Path, store: SqliteStore, memories: list[Memory], act: Act, filter: Filter
) -> None:
    path = tmp_path / "memories.db"
    with store.one_reader(), store._reading() as con:
        con.execute("BEGIN")
        con.execute("SELECT 1 FROM counters").fetchall()  # the snapshot begins with what is read first
        before = answer(store, QUESTION, filter)

        def write_and_ask() -> object:
            act(store, memories)
            return answer(store, QUESTION, filter)

        for _ in range(3):
            after = in_a_thread(write_and_ask)
            with closing(Uncached(path)) as uncached:
                assert after == answer(uncached, QUESTION, filter)
            kept = age(store)
            assert answer(store, QUESTION, filter) == before
            assert age(store) == kept  # what is kept never goes back
            assert in_a_thread(lambda: answer(store, QUESTION, filter)) == after


def age(store: SqliteStore) -> int:
    index: Any = store._index(None)
    return int(index._held.change)
