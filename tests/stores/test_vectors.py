"""The exact index agrees with comparing everything by hand, whichever way it reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.errors import EmbeddingError
from scrubjay.stores.promises.memories import Reads
from scrubjay.stores.sqlite.file import SETTINGS
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import CHUNK, VectorIndex
from scrubjay.values.callers import Audience, Provenance, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Kind, Memory, Source, State, Status
from scrubjay.values.search import Filter, Match
from tests.stores.contract.samples import CLOSE
from tests.stores.contract.suite import (
    EVERYTHING,
    NOW,
    at_cosine,
    changed,
    create_spaces,
    ids,
    later,
    nearest,
    put,
    put_in,
    some,
    unit,
)

pytestmark = pytest.mark.process

FILTERS = {
    "none": Filter(),
    "states": Filter(states=frozenset({State.ACTIVE, State.ARCHIVED, State.DELETED})),
    "superseded": Filter(states=frozenset({State.SUPERSEDED})),
    "expired": Filter(expired=True),
    "expired or not": Filter(expired=None),
    "kinds": Filter(kinds=frozenset({Kind.DECISION})),
    "categories": Filter(categories=frozenset({Category.GOAL, Category.EVENT})),
    "tags": Filter(tags=frozenset({"red", "blue"})),
    "created": Filter(created_since=later(10), created_until=later(60)),
    "importance": Filter(min_importance=0.3, max_importance=0.7),
    "user": Filter(user_id="ann"),
    "conversation": Filter(conversation_id="c1"),
    "session": Filter(session_id="s1"),
    "access levels": Filter(access_levels=frozenset({AccessLevel.PUBLIC, AccessLevel.PRIVATE})),
    "source": Filter(source=Source.EXPLICIT),
    "client": Filter(client="editor"),
    "flag": Filter(flag="secret"),
    "topic": Filter(topic="auth"),
    "folder": Filter(path_prefix="work"),
    "ids": Filter(ids=frozenset(f"mem_{n}" for n in range(0, 150, 7))),
    "several": Filter(user_id="ann", tags=frozenset({"red"}), min_importance=0.2, expired=None),
}
AUDIENCES = {
    "owner": EVERYTHING,
    "member": Audience("ann", (Scope("default", Sight.OWN),)),
    "reader of two": Audience("ann", (Scope("work", Sight.SHARED), Scope("default", Sight.PUBLIC))),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture(scope="module")
def memories(folder: Path) -> list[tuple[Memory, list[Vector]]]:
    """150 memories that differ in everything, of one to four parts."""
    store = SqliteStore(folder / "memories.db")
    create_spaces(store, "work")
    chance = random.Random(7)
    with store.writing() as tx:
        written = []
        for n in range(150):
            vectors = [unit(1000 * n + part) for part in range(chance.randint(1, 4))]
            written.append((put_in(tx, _random_memory(n, chance), vectors), vectors))
    store.close()
    return written


@pytest.fixture(scope="module")
def cached(folder: Path, memories: object) -> Iterator[SqliteStore]:
    store = SqliteStore(folder / "memories.db")
    yield store
    store.close()


@pytest.fixture(scope="module")
def streamed(folder: Path, memories: object) -> Iterator[SqliteStore]:
    store = SqliteStore(folder / "memories.db", index=VectorIndex(held_rows=10))
    yield store
    store.close()


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("way", ["cached", "streamed", "in a transaction"])
def test_every_filter_agrees_with_the_reference(
    memories: list[tuple[Memory, list[Vector]]],
    cached: SqliteStore,
    streamed: SqliteStore,
    way: str,
    filter: str,
    audience: str,
) -> None:
    query = unit(42)
    expected = reference(memories, query, FILTERS[filter], AUDIENCES[audience])

    with cached.writing() as tx:
        reads: Reads = {"cached": cached, "streamed": streamed, "in a transaction": tx}[way]
        for limit in (1, 7, 500):
            found = reads.nearest(query, FILTERS[filter], AUDIENCES[audience], now=NOW, limit=limit)

            assert ids(found) == ids(expected[:limit])
            assert [m.score for m in found] == pytest.approx([m.score for m in expected[:limit]], abs=CLOSE)


def test_the_reference_finds_something_for_most_filters(memories: list[tuple[Memory, list[Vector]]]) -> None:
    found = {name: reference(memories, unit(42), filter, EVERYTHING) for name, filter in FILTERS.items()}

    assert all(found.values())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memories.db")
    yield store
    store.close()


@pytest.fixture
def other(store: SqliteStore, tmp_path: Path) -> Iterator[SqliteStore]:
    """Another holder of the same file, as another process would be."""
    other = SqliteStore(tmp_path / "memories.db")
    yield other
    other.close()


def test_what_another_holder_writes_is_found_at_once(store: SqliteStore, other: SqliteStore) -> None:
    first = put(store, some(), [at_cosine(0.5)])
    assert nearest(store) == nearest(other) == [first.id]

    second = put(other, some(), [at_cosine(0.9)])
    assert nearest(store) == nearest(other) == [second.id, first.id]

    changed(other, first, status=Status.DELETED)
    assert nearest(store) == nearest(other) == [second.id]

    put(other, replace(second, content="new text", version=2), [at_cosine(0.1), at_cosine(0.2)])
    assert [match.score for match in store.nearest(at_cosine(1), Filter(), EVERYTHING, now=NOW, limit=9)] == (
        pytest.approx([0.2], abs=CLOSE)
    )

    with other.writing() as tx:
        tx.drop_vectors()
    assert nearest(store) == nearest(other) == []


def test_rows_come_and_go_in_any_order(store: SqliteStore, other: SqliteStore) -> None:
    """The cache moves its last rows into gaps; whatever it moved must still be found."""
    chance = random.Random(3)
    alive: dict[str, tuple[Memory, list[Vector]]] = {}
    for step in range(60):
        vectors = [unit(100 * step + part) for part in range(chance.randint(1, 3))]
        if alive and chance.random() < 0.5:
            memory, _ = chance.choice(list(alive.values()))
            if chance.random() < 0.5:
                with other.writing() as tx:
                    tx.purge(memory.id, at=NOW)
                del alive[memory.id]
            else:
                newer = put(other, replace(memory, content=f"step {step}", version=memory.version + 1), vectors)
                alive[memory.id] = newer, vectors
        else:
            memory = put(other, some(f"step {step}"), vectors)
            alive[memory.id] = memory, vectors

        found = store.nearest(unit(1), Filter(), EVERYTHING, now=NOW, limit=99)
        assert ids(found) == ids(reference(list(alive.values()), unit(1), Filter(), EVERYTHING))


def test_a_cache_that_overflows_reads_from_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memories.db", index=VectorIndex(held_rows=3))
    written = []
    for n in range(6):
        written.append(put(store, some(), [at_cosine(n / 10)]))

        assert nearest(store) == ids(reversed(written))
    store.close()


def test_what_is_read_once_takes_no_room_for_good(tmp_path: Path) -> None:
    """Every window of an editor reads all vectors once, and has them in memory then."""
    store = SqliteStore(tmp_path / "memories.db")
    with store.writing() as tx:
        for n in range(1_000):
            put_in(tx, some(content=f"{n} {'long ' * 700}"), [unit(n)])
    store.close()
    store = SqliteStore(tmp_path / "memories.db")

    nearest(store)

    with store._reading() as con:
        held, _ = con.status(apsw.SQLITE_DBSTATUS_CACHE_USED)
        assert con.pragma("cache_size") == SETTINGS["cache_size"]
    store.close()
    assert (tmp_path / "memories.db").stat().st_size > 5_000_000
    assert held < 2_000_000


def test_a_scan_of_several_chunks_keeps_the_best_of_all(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memories.db", index=VectorIndex(held_rows=0))
    with store.writing() as tx:
        long = [put_in(tx, some(), [at_cosine(-0.5)] * (CHUNK // 2)) for _ in range(3)]
        best = put_in(tx, some(), [at_cosine(0.9)])
        put_in(tx, some(), [at_cosine(0.1)] * 10)

    assert nearest(store)[0] == best.id
    assert set(nearest(store)) >= set(ids(long))
    assert len(nearest(store)) == 5
    store.close()


def test_two_models_vectors_do_not_meet(store: SqliteStore) -> None:
    put(store, some(id="old"), [at_cosine(0.9)])
    longer = np.ones(64, np.float32) / 8
    put(store, some(id="new"), [longer])

    for _ in range(2):
        assert nearest(store) == ["old"]
        assert ids(store.nearest(longer, Filter(), EVERYTHING, now=NOW, limit=9)) == ["new"]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_without_usable_numbers_is_refused(store: SqliteStore, value: float) -> None:
    with pytest.raises(EmbeddingError):
        put(store, some(), [np.full(16, value, np.float32)])

    assert nearest(store) == []


def reference(
    memories: list[tuple[Memory, list[Vector]]], query: Vector, filter: Filter, audience: Audience
) -> list[Match]:
    scored = [
        (max(float(vector @ query) for vector in vectors), memory)
        for memory, vectors in memories
        if admits(filter, memory) and sees(audience, memory)
    ]
    scored.sort(key=lambda pair: (pair[0], pair[1].created_at, pair[1].seq), reverse=True)
    return [Match(memory.id, score) for score, memory in scored]


def admits(filter: Filter, memory: Memory) -> bool:
    expired = memory.expires_at is not None and memory.expires_at <= NOW
    folder = filter.path_prefix
    return all(
        (
            memory.state in filter.states,
            filter.expired is None or filter.expired == expired,
            filter.kinds is None or memory.kind in filter.kinds,
            filter.categories is None or memory.category in filter.categories,
            filter.tags is None or filter.tags & {*memory.tags, *memory.auto_tags},
            filter.created_since is None or memory.created_at >= filter.created_since,
            filter.created_until is None or memory.created_at <= filter.created_until,
            filter.min_importance is None or memory.importance >= filter.min_importance,
            filter.max_importance is None or memory.importance <= filter.max_importance,
            filter.user_id in (None, memory.context.user_id),
            filter.conversation_id in (None, memory.context.conversation_id),
            filter.session_id in (None, memory.context.session_id),
            filter.access_levels is None or memory.access_level in filter.access_levels,
            filter.source in (None, memory.source),
            filter.client in (None, memory.provenance.client),
            filter.flag is None or filter.flag in memory.flags,
            filter.topic in (None, memory.topic),
            folder is None or memory.path == folder or memory.path.startswith(f"{folder}/"),
            filter.ids is None or memory.id in filter.ids,
        )
    )


def sees(audience: Audience, memory: Memory) -> bool:
    private = memory.access_level is AccessLevel.PRIVATE
    own = private and memory.context.user_id == audience.user
    least = Sight.OWN if own else Sight.ALL if private else Sight.SHARED
    if memory.access_level is AccessLevel.PUBLIC:
        least = Sight.PUBLIC
    return any(scope.space in (None, memory.space) and scope.sight >= least for scope in audience.scopes)


def _random_memory(n: int, chance: random.Random) -> Memory:
    fields: dict[str, Any] = {
        "id": f"mem_{n}",
        "space": chance.choice(["default", "work"]),
        "path": f"{chance.choice(['work', 'worker', 'home'])}/{n}",
        "kind": chance.choice(list(Kind)),
        "category": chance.choice(list(Category)),
        "tags": tuple(chance.sample(["red", "blue", "green"], chance.randint(0, 2))),
        "auto_tags": tuple(chance.sample(["red", "grey"], chance.randint(0, 1))),
        "created_at": later(chance.randint(0, 90)),
        "expires_at": chance.choice([None, None, later(-1), later(1), NOW]),
        "importance": chance.randint(0, 10) / 10,
        "context": Context(
            user_id=chance.choice(["ann", "bob"]),
            conversation_id=chance.choice([None, "c1", "c2"]),
            session_id=chance.choice([None, "s1"]),
        ),
        "access_level": chance.choice(list(AccessLevel)),
        "source": chance.choice(list(Source)),
        "provenance": Provenance(client=chance.choice(["editor", "cli"])),
        "flags": chance.choice([(), ("secret",)]),
        "topic": chance.choice([None, "auth", "db"]),
        "status": chance.choice([Status.ACTIVE] * 4 + list(Status)),
        "superseded_by": chance.choice([None, None, "mem_0"]),
    }
    return some(f"memory {n}", **fields)
