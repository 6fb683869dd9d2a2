"""What is found by vectors in memory or in a table is what is found in the file, whoever has changed it."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.stores.promises.memories import Reads
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite import vectors as sqlite_vectors
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vec1 import Plan
from scrubjay.stores.sqlite.vectors import VectorIndex, to_floats
from scrubjay.text import words
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import Category, State
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from tests.stores.contract.samples import EVERYTHING

pytestmark = pytest.mark.process

# Stores, changes, moves, archives, forgets and brings back memories, as chance will have it.
ACTS = """
import random, sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Error
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Category
from scrubjay.values.times import utc_now
chance = random.Random(int(sys.argv[2]))
words = "harbour cello rain tea ladder lake winter Anna Brandt key bread".split()
text = lambda: " ".join(chance.choices(words, k=chance.choice((3, 8, 900))))
with engine_on(SqliteStore(Path(sys.argv[1])), HashingEmbedder()) as jay:
    mine = []
    for turn in range(60):
        act = chance.choice(("store", "store", "text", "time", "category", "forget", "recover", "many", "newer"))
        one = chance.choice(mine) if mine else None
        with suppress(Error):
            if act == "many":
                mine += jay.store_many([{"content": text()} for _ in range(5)])
            elif act == "store" or one is None:
                options = {"conversation_id": chance.choice((None, "a", "b")), "importance": chance.random()}
                options["tags"] = chance.choice(((), ("harbour",), ("harbour", "rain")))
                options["valid_until"] = chance.choice((None, utc_now() + timedelta(days=chance.randrange(9))))
                mine.append(jay.store(text(), **options).memory.id)
            elif act == "text":
                jay.update(one, content=text())
            elif act == "time":
                jay.update(one, valid_from=utc_now() - timedelta(days=chance.randrange(9)))
            elif act == "category":
                jay.update(one, category=chance.choice(list(Category)))
            elif act == "newer":
                jay.supersede(old=one, new=chance.choice(mine))
            elif act == "forget":
                jay.forget(one)
            else:
                jay.recover(one)
"""
MEMBER = Audience("ann", (Scope("default", Sight.SHARED),))
FILTERS = (
    Filter(),
    Filter(states=frozenset(State) - {State.PURGED}, expired=None),
    Filter(categories=frozenset({Category.FACT, Category.GOAL})),
    Filter(conversation_id="a"),
    Filter(min_importance=0.4),
    Filter(tags=frozenset({"harbour", "rain"})),
    Filter(tags=frozenset({"rain"}), categories=frozenset({Category.FACT})),
)


def indexed(path: Path, few: int) -> SqliteStore:
    """A store whose vectors are in a table of vec1 from the first one on."""
    store = SqliteStore(path, index=VectorIndex(few_at_most=few), index_from=2**40)
    dimension = HashingEmbedder().dimension
    directions = np.random.default_rng(1).standard_normal((1_000, dimension)).astype(np.float32)
    model = vec1.train([to_floats(one / np.linalg.norm(one)) for one in directions], Plan(dimension, 1, 1_000))
    assert model is not None
    with store._changing() as tx:
        vec1.begin(tx._con, Plan(dimension, 1, 1_000), model)
    while store.tend():
        pass
    return store


OPENED = {
    "all are held": SqliteStore,
    "in the table of a large store": partial(indexed, few=0),
    "in the table of a large store with small scopes": partial(indexed, few=10_000),
}


@pytest.mark.parametrize("kind", OPENED)
def test_what_is_beside_the_vectors_is_what_rows_say_after_any_acts_of_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sqlite_vectors, "CANDIDATES", 10_000)  # none is missed for its code
    if "large" in kind:
        made_large(monkeypatch)
    path = tmp_path / "memories.db"
    with closing(OPENED[kind](path)) as store:
        others = [
            subprocess.Popen([sys.executable, "-c", ACTS, str(path), str(seed)], stderr=subprocess.PIPE)
            for seed in range(3)
        ]
        compared = 0
        while any(other.poll() is None for other in others):
            compared += agrees(store, compared)
        errors = [other.communicate()[1].decode() for other in others]

        assert [other.returncode for other in others] == [0, 0, 0], errors
        assert all(agrees(store, number) for number in range(20))
        assert agrees.largest > 50


def made_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let words be weighed as in a large store."""
    for module in (sqlite_words, words):
        monkeypatch.setattr(module, "SMALL_ROWS", 1)
    for module in (sqlite_words, sqlite_vectors):
        monkeypatch.setattr(module, "MANY", 1)


def agrees(store: SqliteStore, number: int) -> bool:
    """Whether what is cached could be compared with rows: not if they changed meanwhile."""
    chance = random.Random(number)
    question = " ".join(chance.sample(["harbour", "cello", "Anna", "tea", "snow"], 2))
    asked = {"now": utc_now(), "limit": chance.choice((1, 5, 40))}
    arguments = (
        question,
        HashingEmbedder().embed_query(question),
        chance.choice(FILTERS),
        chance.choice((EVERYTHING, MEMBER)),
    )
    before = change_of(store)
    quick = store.candidates(*arguments, **asked)
    cosines = store.cosines(arguments[1], quick.memories)
    near = store.nearest(*arguments[1:], **asked)
    with nothing_held(store):
        slow = Reads.candidates(store, *arguments, **asked)
        compared = store.cosines(arguments[1], quick.memories)
    if change_of(store) != before:
        return False
    agrees.largest = max(agrees.largest, len(quick.memories))
    assert [*quick.memories] == [*slow.memories]
    assert (quick.near, [*quick.by_words]) == (slow.near, [*slow.by_words])
    for ours, theirs in ((quick.word_scores, slow.word_scores), (quick.cosines, slow.cosines)):
        assert all(close(one, other) for one, other in zip(ours, theirs, strict=True))
    assert cosines.keys() == compared.keys()
    assert all(close(cosines[one], compared[one]) for one in cosines)
    assert [match.memory for match in near] == [*quick.memories[: quick.near]]
    return True


@contextmanager
def nothing_held(store: SqliteStore) -> Iterator[None]:
    indexes, store._indexes = store._indexes, {None: VectorIndex(held_rows=0, tables=False)}
    yield
    store._indexes = indexes


agrees.largest = 0  # type: ignore[attr-defined]


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, abs_tol=1e-6) or (math.isnan(one) and math.isnan(other))


def change_of(store: SqliteStore) -> int:
    with store._reading() as con:
        return int(con.execute("SELECT change FROM counters").get)
