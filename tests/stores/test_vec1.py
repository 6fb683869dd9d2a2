"""The index for large stores keeps every promise of the exact one; where it cannot, the exact one answers."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.errors import Conflict
from scrubjay.stores.sqlite import checkup as sqlite_checkup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite import vectors as sqlite_vectors
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vec1 import Plan, Table
from scrubjay.stores.sqlite.vectors import VectorIndex, as_floats, to_blob, to_floats
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Memory, State, Status
from scrubjay.values.search import Filter
from tests.conftest import sqlite_store
from tests.reliability.rounds import wait_until
from tests.stores.contract.further_vectors import FURTHER
from tests.stores.contract.suite import (
    DIMENSION,
    EVERYTHING,
    NOW,
    StoreContract,
    at_cosine,
    changed,
    create_spaces,
    ids,
    nearest,
    put,
    put_in,
    some,
    unit,
)
from tests.stores.test_vectors import AUDIENCES, FILTERS, _random_memory, reference

pytestmark = pytest.mark.process


@cache
def model() -> bytes:
    """Trained once, for tests that are about everything else."""
    learnt = vec1.train([to_floats(unit(n)) for n in range(1_000)], Plan(DIMENSION, 1, 1_000))
    assert learnt is not None
    return learnt


@cache
def empty_indexed() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "memories.db"
        with closing(SqliteStore(file, index_from=2**40)) as store:
            with store.writing() as tx:
                tx.upkeep.keep_models([FURTHER])
            for whose in (FURTHER, None):
                with store._changing() as tx:
                    vec1.begin(tx._con, Plan(DIMENSION, 1, 1_000, whose), model())
                while store.tend():
                    pass
            assert [(table.state, table.model) for table in every_table(store)] == [("ready", FURTHER), ("ready", None)]
        return file.read_bytes()


def indexed(path: Path) -> SqliteStore:
    """A store whose every search by meaning goes through a vec1 table, however few memories there are."""
    path.touch(mode=0o600)
    path.write_bytes(empty_indexed())
    store = SqliteStore(path, index=VectorIndex(few_at_most=0), index_from=2**40)
    store._indexes[FURTHER] = VectorIndex(FURTHER, few_at_most=0)
    return store


def every_table(store: SqliteStore) -> list[Table]:
    with store._reading() as con:
        return vec1.tables(con, "filling", "ready", "retired")


def known(store: SqliteStore) -> list[Table]:
    """Those of the store's own model."""
    return [table for table in every_table(store) if table.model is None]


def states(store: SqliteStore) -> list[str]:
    return [table.state for table in known(store)]


def rows(store: SqliteStore, table: Table | None = None) -> dict[int, bytes]:
    """The vectors that a table has codes of, by number of memory and part. Its own copies of them are blank."""
    table = table or known(store)[-1]
    with closing(apsw.Connection(str(store._connections.path))) as con:
        con.create_scalar_function("as_floats", as_floats)
        con.execute("BEGIN IMMEDIATE")  # ended by closing: nothing of it stays
        assert con.execute(f"SELECT count(vector) FROM {table.name}_base").get == 0
        con.execute(
            f"""
            UPDATE {table.name}_base
            SET vector = (
                SELECT as_floats(own.vector)
                FROM vectors AS own
                WHERE own.memory = {table.name}_base.id / 4096 AND own.part = {table.name}_base.id % 4096
                AND own.model = ?
            )
            """,
            (table.model or "",),
        )
        assert vec1.able(con)
        assert con.execute(f"PRAGMA integrity_check({table.name})").fetchall() == [("ok",)]  # each code is its vector's
        return dict(con.execute(f"SELECT rowid, vector FROM {table.name}"))


def expected_rows(store: SqliteStore) -> dict[int, bytes]:
    with store._reading() as con:
        found = con.execute("SELECT memory * 4096 + part, vector FROM vectors")
        return {rowid: as_floats(blob) for rowid, blob in found}


class TestVec1Store(StoreContract):
    """Every promise of a store, with the index in place from the first memory on."""

    vector_size = 2 * DIMENSION + 5

    @pytest.fixture
    def store(self, path: Path) -> Iterator[SqliteStore]:
        with closing(indexed(path)) as store:
            yield store

    @pytest.fixture
    def reopen(self, store: SqliteStore, path: Path) -> Iterator[Callable[[], SqliteStore]]:
        opened = [store]

        def again() -> SqliteStore:
            opened[-1].close()
            opened.append(SqliteStore(path, index=VectorIndex(few_at_most=0)))
            return opened[-1]

        yield again
        opened[-1].close()

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "memories.db"


# --- filters ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteStore, list[tuple[Memory, list[Vector]]]]]:
    chance = random.Random(7)
    with closing(indexed(tmp_path_factory.mktemp("vec1") / "memories.db")) as store:
        create_spaces(store, "work")
        written = []
        with store.writing() as tx:
            for n in range(150):
                vectors = [unit(1000 * n + part) for part in range(chance.randint(1, 4))]
                written.append((put_in(tx, _random_memory(n, chance), vectors), vectors))
        yield store, written


@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("filter", FILTERS)
def test_every_filter_agrees_with_the_reference(varied, filter, audience):
    store, written = varied
    expected = reference(written, unit(42), FILTERS[filter], AUDIENCES[audience])

    for limit in (1, 7, 500):
        found = store.nearest(unit(42), FILTERS[filter], AUDIENCES[audience], now=NOW, limit=limit)

        assert ids(found) == ids(expected[:limit])


# --- recall ----------------------------------------------------------------------------------------------------------

MEMORIES = 6_000
QUERIES = 200
WIDE = 384
DAY = timedelta(days=1)

KINDS_OF_FILTER: dict[str, tuple[Filter, Audience, Callable[[int], bool]]] = {
    "none": (Filter(), EVERYTHING, lambda n: n % 10 != 9),
    "space": (Filter(), Audience("ann", (Scope("work", Sight.ALL),)), lambda n: n % 3 == 0 and n % 10 != 9),
    "audience": (
        Filter(),
        Audience("user1", (Scope("default", Sight.OWN), Scope("work", Sight.SHARED))),
        lambda n: n % 10 != 9 and (n % 4 < 2 or (n % 4 == 2 and n % 20 == 1 and n % 3 != 0)),
    ),
    "status": (Filter(states=frozenset({State.ARCHIVED})), EVERYTHING, lambda n: n % 10 == 9),
    "category": (Filter(categories=frozenset({Category.GOAL, Category.FACT})), EVERYTHING, lambda n: False),
    "tags": (Filter(tags=frozenset({"tag3"})), EVERYTHING, lambda n: n % 30 == 3 and n % 10 != 9),
    "dates": (
        Filter(created_since=NOW + 100 * DAY, created_until=NOW + 160 * DAY),
        EVERYTHING,
        lambda n: 100 <= n % 365 <= 160 and n % 10 != 9,
    ),
    "importance": (
        Filter(min_importance=0.8, max_importance=0.9),
        EVERYTHING,
        lambda n: 80 <= n % 101 <= 90 and n % 10 != 9,
    ),
    "conversation": (Filter(conversation_id="c7"), EVERYTHING, lambda n: n % 50 == 7 and n % 10 != 9),
    "user": (Filter(user_id="user4"), EVERYTHING, lambda n: n % 20 == 4 and n % 10 != 9),
    "several": (
        Filter(tags=frozenset({"tag3", "tag4"}), min_importance=0.3, created_since=NOW + 30 * DAY),
        Audience("user3", (Scope("default", Sight.OWN), Scope("work", Sight.ALL))),
        lambda n: (
            n % 30 in (3, 4)
            and n % 101 >= 30
            and n % 365 >= 30
            and n % 10 != 9
            and (n % 3 == 0 or n % 4 < 2 or (n % 4 == 2 and n % 20 == 3))
        ),
    ),
}
_CATEGORIES = list(Category)


def admitted(kind: str, n: int) -> bool:
    if kind == "category":
        return _CATEGORIES[n % 9] in (Category.GOAL, Category.FACT) and n % 10 != 9
    return KINDS_OF_FILTER[kind][2](n)


def by_topic(count: int, seed: int) -> Vector:
    """Vectors in clusters, some near each other and some alone, as texts are."""
    chance = np.random.default_rng(seed)
    topics = np.random.default_rng(11).standard_normal((60, WIDE)).astype(np.float32)
    chosen = topics[chance.zipf(1.3, count) % 60]
    spread = chance.uniform(0.5, 1.2, (count, 1)).astype(np.float32)
    vectors = 1.0 + chosen + spread * chance.standard_normal((count, WIDE)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def numbered(n: int) -> Memory:
    levels = [AccessLevel.PUBLIC, AccessLevel.SHARED, AccessLevel.PRIVATE, AccessLevel.PRIVATE]
    return some(
        f"memory {n}",
        id=f"mem_{n}",
        space="work" if n % 3 == 0 else "default",
        category=_CATEGORIES[n % 9],
        tags=(f"tag{n % 30}",),
        importance=(n % 101) / 100,
        created_at=NOW + (n % 365) * DAY,
        status=Status.ARCHIVED if n % 10 == 9 else Status.ACTIVE,
        access_level=levels[n % 4],
        context=Context(user_id=f"user{n % 20}", conversation_id=f"c{n % 50}"),
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Vector]]:
    path = tmp_path_factory.mktemp("many") / "memories.db"
    vectors = by_topic(MEMORIES, seed=1)
    with closing(SqliteStore(path, index_from=2_000)) as store:
        create_spaces(store, "work")
        for start in range(0, MEMORIES, 2_000):
            with store.writing() as tx:
                for n in range(start, start + 2_000):
                    put_in(tx, numbered(n), [vectors[n]])
            while store.tend():  # trained on the first two thousand, the others come later
                pass
        assert states(store) == ["ready"]
    return path, vectors


@pytest.mark.parametrize("few", [0, 1_000], ids=["by the index alone", "as it is used"])
@pytest.mark.parametrize("kind", KINDS_OF_FILTER)
def test_of_the_ten_nearest_at_least_98_in_a_hundred_are_found(many, kind, few):
    path, vectors = many
    filter, audience, _ = KINDS_OF_FILTER[kind]
    scope = np.array([n for n in range(MEMORIES) if admitted(kind, n)])
    assert len(scope) > 10
    found = 0
    with closing(SqliteStore(path, index=VectorIndex(few_at_most=few))) as store:
        for query in by_topic(QUERIES, seed=2):
            best = scope[np.argsort(-np.vecdot(vectors[scope], query))[:10]]
            near = store.nearest(query, filter, audience, now=NOW, limit=10)
            found += len({f"mem_{n}" for n in best} & {match.memory for match in near})

    recall = found / (10 * QUERIES)
    print(f"{kind}: recall@10 {recall:.4f} over {len(scope)} memories")
    assert recall >= 0.98


# --- the life of a table ---------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    sqlite_store(tmp_path / "memories.db").close()
    with closing(SqliteStore(tmp_path / "memories.db", index=VectorIndex(few_at_most=0), index_from=1_000)) as store:
        yield store


def fill(store: SqliteStore, count: int, *, first: int = 0) -> list[Memory]:
    with store.writing() as tx:
        return [put_in(tx, some(f"text {n}", id=f"mem_{n}"), [unit(n)]) for n in range(first, first + count)]


def tend(store: SqliteStore) -> int:
    steps = 0
    while store.tend():
        steps += 1
    return steps


def hide(store: SqliteStore, one: Memory) -> None:
    changed(store, one, access_level=AccessLevel.PRIVATE, context=Context(user_id="bob"))


def put_elsewhere(store: SqliteStore, one: Memory) -> None:
    changed(store, one, space="work")


def archive(store: SqliteStore, one: Memory) -> None:
    changed(store, one, status=Status.ARCHIVED)


def erase(store: SqliteStore, one: Memory) -> None:
    with store.writing() as tx:
        tx.purge(one.id, at=NOW)


def let_expire(store: SqliteStore, one: Memory) -> None:
    changed(store, one, expires_at=NOW - timedelta(days=1))


def make_longer(store: SqliteStore, one: Memory) -> None:
    put(store, replace(one, content="other words", version=one.version + 1), [unit(7_000), unit(int(one.id[4:]))])


def make_the_last_longer(store: SqliteStore, one: Memory) -> None:
    """The first of its parts comes to lie where its only one was."""
    last = put(store, some("the last", id=f"last_{one.id}"), [unit(int(one.id[4:]))])
    for _ in range(3):
        assert ids(store.nearest(unit(int(one.id[4:])), Filter(), EVERYTHING, now=NOW, limit=9))[:2] == [
            last.id,
            one.id,
        ]
    put(store, replace(last, content="more", version=2), [unit(7_000), unit(int(one.id[4:]))])


def add_another(store: SqliteStore, one: Memory) -> None:
    put(store, some("another", id=f"new_{one.id}"), [unit(int(one.id[4:]))])


def exchange_rows(store: SqliteStore, one: Memory) -> None:
    """As rewriting vectors does: it moves them and is no change of a memory."""
    with closing(apsw.Connection(str(store._connections.path))) as con:
        con.set_busy_timeout(5_000)
        mine = con.execute("SELECT id FROM vectors WHERE memory = ?", (one.seq,)).get
        for before, after in ((mine, 10**6), (1, mine), (10**6, 1)):
            con.execute("UPDATE vectors SET id = ? WHERE id = ?", (after, before))


ACTS = (hide, put_elsewhere, archive, erase, make_longer, make_the_last_longer, add_another, exchange_rows)


def test_the_few_nearest_are_those_of_an_exact_search_whatever_has_changed(store, monkeypatch):
    monkeypatch.setattr(sqlite_vectors, "LOOKED_THROUGH", 100)  # all lists, so that none is missed
    create_spaces(store, "work")
    memories = fill(store, 1_100)
    tend(store)
    asked = {"now": NOW, "limit": 9}
    exactly = VectorIndex(held_rows=0, tables=False)

    for turn in range(42):
        one: Memory | None = memories[20 * turn + 5]
        for _ in range(2):
            wanted = unit(20 * turn + 5), Filter(), Audience("ann", (Scope("default", Sight.SHARED),))
            quick = store.nearest(*wanted, **asked)
            known, store._indexes = store._indexes, {None: exactly}

            assert quick == store.nearest(*wanted, **asked)

            store._indexes = known
            if one is not None:
                (ACTS[turn % len(ACTS)] if turn != 30 else let_expire)(store, one)
                one = None


def test_a_small_store_needs_no_index(store):
    fill(store, 999)

    assert not store.tend()
    assert known(store) == []


def test_an_index_is_made_of_enough_vectors_and_holds_them_all(store):
    fill(store, 1_200)

    tend(store)

    assert states(store) == ["ready"]
    assert rows(store) == expected_rows(store)
    assert ids(store.nearest(unit(700), Filter(), EVERYTHING, now=NOW, limit=1)) == ["mem_700"]


def test_rows_of_an_index_leave_no_gaps_where_their_vectors_were(store):
    vectors = np.random.default_rng(5).standard_normal((1_200, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with store.writing() as tx:
        for n, vector in enumerate(vectors):
            put_in(tx, some(f"text {n}", id=f"mem_{n}"), [vector])

    tend(store)

    table = known(store)[-1]
    with store._reading() as con:
        share = con.execute(
            "SELECT sum(unused) * 1.0 / sum(pgsize) FROM dbstat WHERE name = ?", (f"{table.name}_base",)
        ).get
    assert share < 0.15
    assert rows(store) == expected_rows(store)


def test_a_connection_has_room_for_the_codes_of_its_file(store):
    fill(store, 1_200)
    tend(store)
    store.nearest(unit(7), Filter(), EVERYTHING, now=NOW, limit=1)

    with store._reading() as con:
        pages = con.pragma("page_count") * con.pragma("page_size")
        room = sqlite_file.SETTINGS["cache_size"] - con.pragma("cache_size")
    assert room == pytest.approx(pages / 20 / 1024, rel=0.2)


def test_what_is_written_while_an_index_is_filled_is_in_it(store):
    """New, changed and erased memories, before and behind the place that filling has reached."""
    memories = fill(store, 1_600)
    while not known(store) or known(store)[0].filled < 500:
        assert store.tend()
    for place in (100, 1_500):
        newer = replace(memories[place], content="other words", version=2)
        put(store, newer, [unit(5_000 + place), unit(9_000 + place)])
        with store.writing() as tx:
            tx.purge(memories[place + 1].id, at=NOW)
        changed(store, memories[place + 2], status=Status.ARCHIVED)
    fill(store, 1, first=3_000)

    tend(store)

    assert states(store) == ["ready"]
    assert rows(store) == expected_rows(store)
    assert ids(store.nearest(unit(9_100), Filter(), EVERYTHING, now=NOW, limit=1)) == ["mem_100"]
    archived = Filter(states=frozenset({State.ARCHIVED}))
    assert set(ids(store.nearest(unit(1), archived, EVERYTHING, now=NOW, limit=9))) == {"mem_102", "mem_1502"}


def test_searches_stay_right_at_every_step_of_a_retraining(store):
    fill(store, 1_000)
    tend(store)
    first = known(store)[0]
    fill(store, 3_100, first=1_000)
    seen = set()

    while store.tend():
        seen.add(tuple(states(store)))
        place = len(seen) * 97
        assert ids(store.nearest(unit(place), Filter(), EVERYTHING, now=NOW, limit=1)) == [f"mem_{place}"]

    assert seen >= {("ready", "filling"), ("retired", "ready"), ("ready",)}
    assert known(store)[0].number > first.number
    assert rows(store) == expected_rows(store)


def test_a_retired_table_leaves_nothing_behind(store):
    fill(store, 1_000)
    tend(store)
    old = known(store)[0].name
    store.rebuild()
    tend(store)

    with store._reading() as con:
        left = [name for (name,) in con.execute("SELECT name FROM sqlite_schema WHERE name GLOB ?", (f"{old}*",))]
    assert left == []
    assert states(store) == ["ready"]


def test_a_filling_that_was_broken_off_goes_on_in_another_process(store, tmp_path):
    fill(store, 2_000)
    while not known(store) or known(store)[0].filled < 500:
        store.tend()
    reached = known(store)[0].filled

    with closing(SqliteStore(tmp_path / "memories.db", index_from=1_000)) as other:
        other.tend()
        assert known(other)[0].filled > reached
        tend(other)

    assert rows(store) == expected_rows(store)


def test_an_erased_memory_leaves_no_vector_in_the_file(tmp_path):
    path = tmp_path / "memories.db"
    secret = unit(77)
    with closing(indexed(path)) as store:
        kept = put(store, some(), [unit(1)])
        erased = put(store, some(), [secret])
        with store.writing() as tx:
            tx.purge(erased.id, at=NOW)
        assert rows(store) == {kept.seq * 4096: as_floats(to_blob(unit(1)))}

    left = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert to_blob(unit(1)) in left
    for blob in (to_blob(secret), to_floats(secret), as_floats(to_blob(secret))):
        assert blob not in left


def test_dropped_vectors_take_the_index_along(tmp_path):
    with closing(indexed(tmp_path / "memories.db")) as store:
        memory = put(store, some(), [at_cosine(0.9)])
        with store.writing() as tx:
            tx.drop_vectors()

        assert states(store) == ["retired"]
        assert nearest(store) == []
        with store.writing() as tx:
            tx.add_vectors(memory.id, version=1, first_part=0, vectors=[at_cosine(0.8)], parts=1)
        assert nearest(store) == [memory.id]


# --- worse days ------------------------------------------------------------------------------------------------------


def test_codes_follow_their_vectors_through_many_changes(tmp_path):
    """Also where one transaction changes a memory several times, and where nothing but its numbers change."""
    chance = random.Random(11)
    with closing(indexed(tmp_path / "memories.db")) as store:
        alive = [put(store, some(), [unit(n)]) for n in range(30)]
        for turn in range(60):
            with store.writing() as tx:
                for _ in range(chance.randint(1, 4)):
                    place = chance.randrange(len(alive))
                    memory, act = alive[place], chance.choice(("new text", "archived", "purged", "new"))
                    if act == "new text":
                        longer = [unit(100 * turn + part) for part in range(chance.randint(1, 3))]
                        newer = replace(memory, content=f"turn {turn}", version=memory.version + 1)
                        alive[place] = put_in(tx, newer, longer)
                    elif act == "archived":
                        newer = replace(memory, importance=chance.random(), version=memory.version + 1)
                        alive[place] = put_in(tx, newer, None)
                    elif act == "purged" and len(alive) > 20:
                        tx.purge(memory.id, at=NOW)
                        del alive[place]
                    else:
                        alive.append(put_in(tx, some(), [unit(7_000 + turn)]))

            assert rows(store) == expected_rows(store)
        assert states(store) == ["ready"]
        assert store.check(deep=True).facts["vector index"] == "ready"
        with store._reading() as con:
            assert con.execute("SELECT count(*) FROM former_vectors").get == 0


def test_an_index_of_an_earlier_version_is_made_anew_without_copies_and_the_file_shrinks(store, tmp_path):
    fill(store, 1_200)
    tend(store)
    with store._changing() as tx:
        [table] = known(store)
        tx._con.execute("UPDATE vector_indexes SET lean = 0")
        tx._con.execute(f"UPDATE {table.name}_base SET vector = zeroblob(8000)")
    with store._reading() as con:
        before = con.pragma("page_count")
    tend(store)

    [anew] = known(store)
    with store._reading() as con:
        assert con.pragma("page_count") < before / 2
    assert (anew.number > table.number, anew.lean, anew.state) == (True, 1, "ready")
    assert rows(store) == expected_rows(store)


EARLIER = (  # what an earlier version does: it counts on the copies
    "SELECT vec1_l2_distance(zeroblob({1}), vector) FROM {0} WHERE rowid = 4096",
    "DELETE FROM {0} WHERE rowid = 4096",
    "UPDATE {0} SET vector = zeroblob({1}) WHERE rowid = 4096",
)


@pytest.mark.parametrize("statement", EARLIER)
def test_an_earlier_version_is_refused_by_an_index_without_copies(statement, tmp_path):
    """Then it compares exactly, or retires the index: both cost time only."""
    with closing(indexed(tmp_path / "memories.db")) as store:
        put(store, some(), [unit(1)])
        with store._reading() as con, pytest.raises(vec1.BROKEN):
            con.execute(statement.format(known(store)[-1].name, 4 * DIMENSION)).fetchall()


def test_a_transaction_that_is_undone_leaves_the_index_as_it_was(tmp_path):
    with closing(indexed(tmp_path / "memories.db")) as store:
        put(store, some(), [at_cosine(0.5)])
        before = rows(store)
        with pytest.raises(Conflict):
            put_twice(store)

        assert rows(store) == before == expected_rows(store)


def put_twice(store: SqliteStore) -> None:
    with store.writing() as tx:
        put_in(tx, some(id="mem_one"), [at_cosine(0.9)])
        put_in(tx, some(id="mem_one"), [at_cosine(0.8)])


DAMAGES = {
    "codes are garbage": "UPDATE {0}_idx SET val = randomblob(length(val))",
    "codes are cut": "UPDATE {0}_idx SET val = substr(val, 1, length(val) / 2)",
    "codes are missing": "DELETE FROM {0}_idx",
    "numbers are garbage": "UPDATE {0}_meta SET val = randomblob(length(val))",
    "numbers are missing": "DELETE FROM {0}_meta",
    "the model is garbage": "UPDATE {0}_model SET val = randomblob(length(val))",
    "the model is missing": "DELETE FROM {0}_model",
    "vectors are missing": "DELETE FROM {0}_base",
    "a piece is missing": "DROP TABLE {0}_idx",
    "everything is missing": "DROP TABLE {0}",
}

SURVIVOR = """
import sys
from contextlib import closing
from pathlib import Path
from scrubjay.values.search import Filter
from tests.stores.contract.suite import EVERYTHING, NOW, put, some, unit
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import VectorIndex
with closing(SqliteStore(Path(sys.argv[1]), index=VectorIndex(few_at_most=0), index_from=1_000)) as store:
    def found():
        return [match.memory for match in store.nearest(unit(7), Filter(), EVERYTHING, now=NOW, limit=3)]
    found()
    store.check(deep=True)
    put(store, some("one more", id="mem_more"), [unit(8_888)])
    store.rebuild()
    while store.tend():
        pass
    assert found()[0] == "mem_7", found()
    assert "mem_more" in [m.memory for m in store.nearest(unit(8_888), Filter(), EVERYTHING, now=NOW, limit=1)]
    assert store.check(deep=True).problems == (), store.check(deep=True).problems
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with an index, closed, and the name of the index."""
    path = tmp_path_factory.mktemp("sound") / "memories.db"
    with closing(SqliteStore(path, index=VectorIndex(few_at_most=0), index_from=1_000)) as store:
        fill(store, 1_100)
        tend(store)
        [table] = known(store)
    return path, table.name


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_survived_and_made_anew_by_a_rebuild(sound, tmp_path, damage):
    """In a process of its own: the extension is young, and reads what it finds in the file."""
    path, table = sound
    shutil.copy(path, tmp_path)
    with closing(apsw.Connection(str(tmp_path / "memories.db"))) as con:
        vec1.able(con)
        con.execute(DAMAGES[damage].format(table))

    done = subprocess.run(
        [sys.executable, "-c", SURVIVOR, str(tmp_path / "memories.db")],
        capture_output=True,
        timeout=240,
        check=False,
        env={**os.environ},
    )

    assert done.returncode == 0, done.stderr.decode()[-2_000:]


def written(store: SqliteStore) -> None:
    put(store, some(), [at_cosine(0.9)])


def dropped(store: SqliteStore) -> None:
    with store._changing() as tx:
        for table in vec1.tables(tx._con, "ready"):
            vec1.drop(tx._con, table)


@pytest.mark.parametrize("act", [written, dropped])
def test_an_index_that_changes_while_it_is_checked_is_not_called_damaged(tmp_path, act):
    """The other one acts when the vectors that should be in it are known, and it has not been asked yet."""
    path = tmp_path / "memories.db"
    acts = [act]
    with closing(indexed(path)) as store, closing(sqlite_file.connect(path)) as con:
        put(store, some(), [at_cosine(0.5)])
        sqlite_words.register(con)
        [table] = known(store)

        def before(_: object, statement: str, __: object) -> bool:
            if acts and f"FROM {table.name}(" in statement:
                acts.pop()(store)
            return True

        con.exec_trace = before
        checkup = sqlite_checkup.check(con, path, deep=False, damaged=False)

        assert acts == []
        assert checkup.problems == ()
        assert checkup.facts["vector index"] == "ready"


def test_where_the_extension_is_missing_answers_are_exact_and_writes_retire_the_index(tmp_path, monkeypatch):
    path = tmp_path / "memories.db"
    with closing(indexed(path)) as store:
        first = put(store, some(), [at_cosine(0.5)])
    monkeypatch.setattr("apsw.sqlite_extra.load", _not_here)

    with closing(SqliteStore(path, index=VectorIndex(few_at_most=0), index_from=0)) as store:
        assert nearest(store) == [first.id]
        second = put(store, some(), [at_cosine(0.9)])
        assert nearest(store) == [second.id, first.id]
        assert states(store) == ["retired"]
        assert not store.tend()


def _not_here(*_: object) -> None:
    raise ValueError("not in this wheel")


def test_writers_in_other_processes_find_the_index_and_keep_it_in_step(store, tmp_path):
    """Started before the index was there."""
    code = (
        "import sys; from pathlib import Path; from tests.stores.contract.suite import *;"
        "from scrubjay.stores.sqlite.store import SqliteStore;"
        "store = SqliteStore(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.readline();"
        "[put(store, some(f'late {n}', id=f'mem_late{n}'), [unit(20_000 + n)]) for n in range(20)]; store.close()"
    )
    fill(store, 1_000)
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "memories.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"ready\n"
        tend(store)
        child.communicate(b"go\n", timeout=60)
    wait_until(lambda: child.poll() is not None)

    assert child.returncode == 0
    assert rows(store) == expected_rows(store)
    assert ids(store.nearest(unit(20_007), Filter(), EVERYTHING, now=NOW, limit=1)) == ["mem_late7"]


@pytest.mark.parametrize(("count", "lists"), [(20_000, 141), (100_000, 316), (1_000_000, 1_000)])
def test_vectors_are_spread_over_as_many_lists_as_the_root_of_their_number(count: int, lists: int) -> None:
    assert vec1._plan(384, count, None).buckets == lists
