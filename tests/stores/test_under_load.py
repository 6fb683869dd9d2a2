"""Readers and writers in threads and processes, for a minute: no search fails, and every answer that can be compared
equals the one of a store that keeps nothing in memory."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from scrubjay.stores.promises.memories import Store
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import VectorIndex
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Memory
from scrubjay.values.search import Candidates, Filter
from tests.stores.contract.samples import EVERYTHING, NOW, put, some, unit

pytestmark = pytest.mark.process

SECONDS = 60
PROCESSES, READERS, WRITERS = 3, 4, 2
MEMORIES = 150
LIMIT = 10 * MEMORIES  # all: what is cut off may differ where scores do in their last digit
WORDS = ["harbour", "cello", "rain", "tea", "ladder", "lake", "winter", "Anna", "Brandt", "key", "bread"]
MEMBER = Audience("ann", (Scope("default", Sight.OWN),))
FILTERS = (Filter(), Filter(min_importance=0.5), Filter(user_id="local"))
Answer = tuple[list[tuple[str, float]], list[tuple[str, float]]]


class Uncached(SqliteStore):
    """Reads vectors from the file."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, index=VectorIndex(held_rows=0, tables=False), timeout_seconds=SECONDS)


def opened(place: str, *, cached: bool) -> Store:
    if not place.startswith("postgresql://"):
        return SqliteStore(place, timeout_seconds=SECONDS) if cached else Uncached(place)
    from scrubjay.stores.postgres.store import PostgresStore

    store = PostgresStore(place, timeout_seconds=SECONDS)
    if not cached:
        store._extent = lambda *_: (0.0, 0)  # type: ignore[method-assign] -- every vector is compared
    return store


def last_change(store: Any) -> object:
    with store._reading() as con:
        if isinstance(store, SqliteStore):
            return con.execute("SELECT change FROM counters").get
        return con.execute("SELECT pg_current_snapshot()::TEXT").fetchone()


def answer(
    store: Store, question: str, filter: Filter = FILTERS[0], audience: Audience = EVERYTHING, seed: int = 0
) -> Answer:
    """What was found by meaning and by words, in the order of ids."""
    found: Candidates = store.candidates(question, unit(seed), filter, audience, now=NOW, limit=LIMIT)
    near = sorted((found.memories[row], round(float(found.cosines[row]), 4)) for row in range(found.near))
    by_words = sorted((found.memories[row], round(float(found.word_scores[row]), 6)) for row in found.by_words)
    return near, by_words


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "backend", [pytest.param("sqlite", id="sqlite"), pytest.param("postgres", marks=pytest.mark.postgres)]
)
def test_every_answer_under_readers_and_writers_equals_an_uncached_one(
    tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "memories.db") if backend == "sqlite" else request.getfixturevalue("postgres_store")("load")
    with closing(opened(place, cached=False)) as store:
        for number in range(MEMORIES):
            put(store, written(random.Random(number)), (unit(number),))
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=run, args=(place, number, results)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    found = [results.get(timeout=SECONDS + 300) for _ in processes]
    for process in processes:
        process.join()

    asked, compared, failures = (sum(column, type(column[0])()) for column in zip(*found, strict=True))
    print(f"{backend}: {asked} questions, {compared} compared, {len(failures)} wrong")
    assert not failures, failures[:3]
    assert compared > 200


def run(place: str, number: int, results: Any) -> None:
    """One process."""
    until, permits = time.monotonic() + SECONDS, threading.Semaphore(0)
    asked: list[int] = []
    compared: list[int] = []
    failures: list[str] = []

    def guarded(work: Callable[[random.Random], None], seed: int) -> None:
        try:
            work(random.Random(seed))
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")

    with ExitStack() as closed_at_last:
        store = closed_at_last.enter_context(closing(opened(place, cached=True)))
        reference = closed_at_last.enter_context(closing(opened(place, cached=False)))

        def read(chance: random.Random) -> None:
            while time.monotonic() < until and not failures:
                question = " ".join(chance.choices(WORDS, k=chance.choice((1, 2, 4))))
                given = (question, chance.choice(FILTERS), chance.choice((EVERYTHING, MEMBER)), chance.randrange(99))
                before = last_change(reference)
                with store.one_reader():
                    found = answer(store, *given)
                asked.append(1)
                expected = answer(reference, *given)
                if before == last_change(reference):  # else there is nothing that it should equal
                    compared.append(1)
                    if found != expected:
                        failures.append(f"{given}: {differences(found, expected)}")
                permits.release()  # a write for every question, so that stores are at rest now and then

        def write(chance: random.Random) -> None:
            own: list[Memory] = []
            while time.monotonic() < until and not failures:
                if not permits.acquire(timeout=1):
                    continue
                act = chance.choice(("add", "change", "erase")) if len(own) > 3 else "add"
                vectors = [unit(chance.randrange(10_000)) for _ in range(chance.choice((1, 1, 2)))]
                if act == "add":
                    own.append(put(store, written(chance), vectors))
                elif act == "change":
                    former = own.pop(0)
                    own.append(put(store, replace(former, content=text(chance), version=former.version + 1), vectors))
                else:
                    with store.writing() as tx:
                        tx.purge(own.pop(chance.randrange(len(own))).id, at=NOW)

        threads = [
            threading.Thread(target=guarded, args=(work, 1_000 * number + each))
            for each, work in enumerate([read] * READERS + [write] * WRITERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.put((len(asked), len(compared), failures))


def text(chance: random.Random) -> str:
    return " ".join(chance.choices([*WORDS, *(f"w{n}" for n in range(50))], k=chance.choice((4, 4, 4, 900))))


def written(chance: random.Random) -> Memory:
    return some(text(chance), importance=chance.choice((0.2, 0.5, 0.9)))


def differences(found: Answer, expected: Answer) -> str:
    return "; ".join(
        f"by {how}: {sorted(set(one) ^ set(other))[:4]}"
        for how, one, other in zip(("meaning", "words"), found, expected, strict=True)
        if one != other
    )
