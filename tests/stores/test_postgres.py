"""The PostgreSQL store keeps the contract, and what it promises of its database and of other processes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from scrubjay.engine.parts import engine_on
from scrubjay.errors import StorageError
from scrubjay.stores.postgres import signatures as postgres_signatures
from scrubjay.stores.postgres import store as postgres_store
from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.filters import restrict
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.promises.memories import Addition, Store
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.tables.tally import NOTHING, Batch
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Context
from scrubjay.values.search import Filter
from tests.postgres import Stores, server_url
from tests.stores import citus_rules
from tests.stores.contract.further_vectors import FURTHER
from tests.stores.contract.suite import (
    DIMENSION,
    EVERYTHING,
    NOW,
    QUERY,
    Reopen,
    StoreContract,
    create_spaces,
    got,
    later,
    put,
    put_all,
    put_in,
    some,
    unit,
)

pytestmark = [pytest.mark.postgres, pytest.mark.process]


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "contract")) as stores:
        yield stores


@pytest.fixture(autouse=True)
def only_what_citus_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    citus_rules.watch(monkeypatch)


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.empty()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


class TestPostgresStore(StoreContract):
    """However few memories there are, they are compared by signatures, which follow every change as words do."""

    @pytest.fixture(autouse=True)
    def by_signatures(self, store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", -1)
        yield
        with closing(PostgresStore(url)) as again, again._reading() as con:
            assert postgres_signatures.wrong(con) == 0
            assert postgres_words.wrong(con) == 0

    @pytest.fixture
    def reopen(self, store: PostgresStore, url: str) -> Iterator[Reopen]:
        with ExitStack() as opened:

            def reopen() -> Store:
                store.close()
                return opened.enter_context(closing(PostgresStore(url)))

            yield reopen


def test_a_read_is_written_by_one_of_two_transactions_that_end_together(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, some(id="a"))
    store.tally.count({"a": 2}, at=NOW)
    written = store.tally.drop_written

    def late(batch: Batch) -> None:
        monkeypatch.undo()
        with store.writing() as other:  # of another thread, just after the first was committed
            other.clock.tick(NOW)
        written(batch)

    monkeypatch.setattr(store.tally, "drop_written", late)
    with store.writing() as tx:
        tx.clock.tick(NOW)

    assert got(store, "a").access_count == 2
    store.tally.count({"a": 1}, at=NOW)
    with store.writing() as tx:
        tx.clock.tick(NOW)
    assert (store.tally.batch(), got(store, "a").access_count) == (NOTHING, 3)


def test_calls_are_counted_together_with_other_processes(url: str) -> None:
    with closing(PostgresStore(url)) as one, closing(PostgresStore(url)) as other:
        counts = [store.count_call("ann", seconds=60) for store in (one, other, one)]

        assert [count for count, _ in counts] == [1, 2, 3]
        assert all(0 < left <= 60 for _, left in counts)
        assert one.count_call("bob", seconds=0)[0] == one.count_call("bob", seconds=60)[0] == 1
        amounts = (30, 1, 20, -20, -99)
        assert [one.count_call("cid", seconds=60, amount=one_more)[0] for one_more in amounts] == [
            30,
            31,
            51,
            31,
            0,
        ]


OWNER_AT_WORK = Audience("local", (Scope("work", Sight.ALL),), reach=(Scope(None, Sight.ALL),))
ANN_AT_WORK = Audience("ann", (Scope("work", Sight.OWN),))


@pytest.mark.parametrize("count", [300, 1_100])  # from a thousand rows on FTS5's own formula counts
def test_words_give_the_same_order_as_in_sqlite(store: PostgresStore, tmp_path: Path, count: int) -> None:
    """The same texts and questions: the same memories in the same order, with the same scores."""
    draw = random.Random(3)
    words = [f"{draw.choice('bcdfgklmnprst')}{draw.choice('aeiou')}{draw.choice('bdgkmnrt')}ing" for _ in range(400)]
    memories = [
        some(
            " ".join(word for word in draw.choices(words, k=draw.randint(3, 40)) for _ in range(draw.choice(REPEATED))),
            id=f"m{number}",
            space=draw.choice(("default", "work")),
            access_level=draw.choice((AccessLevel.SHARED, AccessLevel.PRIVATE)),
            context=Context(user_id=draw.choice(("ann", "bob"))),
            created_at=later(draw.randint(0, 3)),
        )
        for number in range(count)
    ]
    with closing(SqliteStore(tmp_path / "other.db")) as other:
        for each in (store, other):
            create_spaces(each, "work")
            put_all(each, memories, [])

        for question in [" ".join(draw.choices(words, k=4)) for _ in range(10)]:
            for audience in (EVERYTHING, OWNER_AT_WORK, ANN_AT_WORK):
                asked = (question, Filter(), audience)
                assert (found := store.match(*asked, now=NOW, limit=50)) == other.match(*asked, now=NOW, limit=50)
                assert found


REPEATED = (1, 1, 1, 1, 1, 2, 3, 4, 5, 9, 90)  # how often a word is said in a row


def test_signatures_tell_apart_vectors_in_a_narrow_cone(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a model's are: most of their numbers have one sign in nearly all of them."""
    monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", -1)
    monkeypatch.setattr(postgres_signatures, "AT_LEAST", 60)
    draw = np.random.default_rng(5)
    cone = draw.standard_normal(64)
    vectors = [cone + 0.8 * draw.standard_normal(64) for _ in range(420)]
    vectors = [(vector / np.linalg.norm(vector)).astype(np.float32) for vector in vectors]
    with store.writing() as tx:
        for number, vector in enumerate(vectors[20:]):
            put_in(tx, some(f"text {number}", id=f"m{number}"), [vector])
    found = 0
    for vector in vectors[:20]:
        nearest = sorted(range(400), key=lambda number: -float(vectors[20 + number] @ vector))[:10]
        near = store.nearest(vector, Filter(), EVERYTHING, now=NOW, limit=30)
        found += len({f"m{number}" for number in nearest} & {match.memory for match in near})

    assert found > 135  # of 200; by the signs alone it is 106


@pytest.mark.parametrize("model", [None, FURTHER])
def test_a_large_scope_is_searched_by_the_index_and_gives_the_same(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, model: str | None
) -> None:
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(300)), [])
    with store.writing() as tx:
        for number in range(300):
            name, vectors = f"m{number}", [unit(number)]
            assert tx.add_vectors(name, version=1, first_part=0, vectors=vectors, parts=1, model=model)
        tx.upkeep.keep_models([FURTHER])
    own = postgres_vectors.vectors_of_model(model)
    exact = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=20, model=model)
    monkeypatch.setattr(postgres_vectors, "INDEX_FROM", 200)

    assert store.needs_tending()
    assert not store.tend()
    assert not store.needs_tending()
    with store._reading() as con:
        assert postgres_vectors.count_indexed(con, DIMENSION, model)
        asked = restrict(Filter(), EVERYTHING, now=NOW)
        assert asked is not None
        found = postgres_vectors._by_index(con, QUERY, asked, 20, own)

    assert len({match.memory for match in found} & {match.memory for match in exact}) >= 19
    monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", -1)
    monkeypatch.setattr(postgres_vectors, "PASSED_OVER", 0)
    monkeypatch.setattr(store, "_extents", {})
    assert store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=20, model=model) == found
    assert store.nearest(QUERY, Filter(ids=frozenset({"m7"})), EVERYTHING, now=NOW, limit=9, model=model) != []
    store.rebuild()
    with store._reading() as con:
        assert not postgres_vectors.count_indexed(con, DIMENSION, model)


def test_signatures_find_what_comparing_every_vector_finds(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 memories about 20 subjects, a filter that admits a third: the best ten are hardly ever others."""
    draw = np.random.default_rng(5)
    subjects = draw.standard_normal((20, 384))
    vectors = [subjects[number % 20] + 1.2 * draw.standard_normal(384) for number in range(2_020)]
    drawn = [(vector / np.linalg.norm(vector)).astype(np.float32) for vector in vectors]
    with store.writing() as tx:
        for number, vector in enumerate(drawn[:2_000]):
            put_in(tx, some("text", id=f"m{number}", importance=(number % 3) / 2, tags=("t",)), [vector])
    monkeypatch.setattr(postgres_signatures, "AT_LEAST", 100)
    for wanted in (Filter(min_importance=0.9), Filter(tags=frozenset({"t"})), Filter(path_prefix="/")):
        shares = []
        for vector in drawn[2_000:]:
            asked = (vector, wanted, EVERYTHING)
            monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", 1e9)
            exact = store.nearest(*asked, now=NOW, limit=10)
            monkeypatch.setattr(postgres_vectors, "EXACT_UP_TO", -1)
            found = store.nearest(*asked, now=NOW, limit=10)
            shares.append(len({*exact} & {*found}) / 10)

        assert sum(shares) / len(shares) >= 0.95, wanted


def test_how_many_memories_are_meant_is_asked_once_in_a_while(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, some("text", id="m"), [QUERY])
    estimates = []
    estimate = postgres_vectors.scope
    monkeypatch.setattr(postgres_vectors, "scope", lambda *given: estimates.append(given) or estimate(*given))
    for wanted in (Filter(), Filter(), Filter(user_id="u7"), Filter()):
        store.nearest(QUERY, wanted, EVERYTHING, now=NOW, limit=9)

    assert len(estimates) == 2
    monkeypatch.setattr(postgres_store, "KNOWN_SECONDS", -1.0)
    store._extents.clear()
    for _ in range(3):
        store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9)

    assert len(estimates) == 5


def test_many_new_memories_are_whole_with_their_words_and_signatures(store: PostgresStore) -> None:
    new = [some(f"Note {number} " + "about the garden " * 40) for number in range(150)]
    with store.writing() as tx:
        tx.put_new(
            [Addition(memory=one, fingerprint=one.id.encode(), vectors=[unit(0), unit(1)], parts=3) for one in new]
        )

    checkup = store.check(deep=True)
    assert (checkup.problems, checkup.with_vectors, checkup.pending) == ((), 0, 150)


def test_after_many_have_come_the_server_knows_how_many_there_are(store: PostgresStore) -> None:
    """Else it would look for each path of the next ones among all memories of the space, and not by its index."""
    jay = engine_on(store, None)
    jay.transfer.import_from({"content": f"Fact number {number}"} for number in range(1_200))

    with store._reading() as con:
        [(known,)] = con.execute("SELECT reltuples FROM pg_class WHERE oid = 'memories'::REGCLASS")
        plan = con.execute(
            """
            EXPLAIN SELECT FROM unnest(%s::TEXT[]) AS these (path)
            CROSS JOIN LATERAL (
                SELECT FROM memories
                WHERE memories.space = 'default' AND memories.path = these.path AND state IN (0, 1) LIMIT 1
            ) AS taken
            """,
            (["inbox/a", "inbox/b"],),
        ).fetchall()

    assert known >= 512
    assert any("memories_by_place" in step for (step,) in plan), plan


def test_a_server_that_goes_away_after_the_commit_does_not_make_it_a_failure(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> NoReturn:
        raise StorageError

    jay = engine_on(store, None)
    stock = store._take_stock

    def without_a_server(arrived: int) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(store, "_reading", gone)
            stock(arrived)

    monkeypatch.setattr(store, "_take_stock", without_a_server)

    assert jay.transfer.import_from({"content": f"Fact number {number}"} for number in range(100)).stored == 100
