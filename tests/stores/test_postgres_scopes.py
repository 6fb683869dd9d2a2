"""What is kept in memory of a scope is what the server has, whoever has changed it."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Error
from scrubjay.stores.postgres import vectors as postgres_vectors
from scrubjay.stores.postgres import words as postgres_words
from scrubjay.stores.postgres.filters import Restriction, restricted
from scrubjay.stores.postgres.in_memory import postings, scopes
from scrubjay.stores.postgres.in_memory.scopes import Scopes
from scrubjay.stores.postgres.reads import PostgresReads
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.postgres.values import vector_bytes
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Audience, Candidates, Category, Filter, Match, Scope, Sight, State
from scrubjay.values.times import utc_now
from tests.postgres import Stores, server_url
from tests.stores.contract.samples import changed, got, put_away
from tests.stores.contract.suite import EVERYTHING, NOW, QUERY, at_cosine, create_spaces, put, put_all, some

pytestmark = pytest.mark.postgres

WORDS = ("harbour", "cello", "rain", "tea", "ladder", "lake", "winter", "Anna", "Brandt", "key", "bread")
MEMBER = Audience("ann", (Scope("default", Sight.SHARED),))
FILTERS = (
    Filter(),
    Filter(states=frozenset(State) - {State.PURGED}, expired=None),
    Filter(states=frozenset({State.SUPERSEDED})),
    Filter(categories=frozenset({Category.FACT, Category.GOAL})),
    Filter(conversation_id="a"),
    Filter(min_importance=0.4),
    Filter(tags=frozenset({"harbour", "rain"})),
)


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    with closing(Stores(server_url(), "scopes")) as stores:
        yield stores


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be read while nobody waits is waited for."""
    monkeypatch.setattr(PostgresStore, "_soon", PostgresStore._searched)


@pytest.fixture
def url(stores: Stores) -> str:
    return stores.empty()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url)) as store:
        yield store


@pytest.fixture
def words_read(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The words whose passages were read, each time that some were."""
    words: list[set[str]] = []
    read = postings.read

    def noted(con: Any, restriction: Restriction, stems: Any) -> Any:
        words.append({*stems})
        return read(con, restriction, stems)

    monkeypatch.setattr(postings, "read", noted)
    return words


def match(store: PostgresStore, question: str, filter: Filter = Filter()) -> list[str]:  # noqa: B008 -- frozen
    found = store.candidates(question, QUERY, filter, EVERYTHING, now=NOW, limit=9)
    alike = store.match(question, filter, EVERYTHING, now=NOW, limit=9)
    assert by_words(found) == alike
    return [one.memory for one in alike]


def test_a_words_passages_are_read_once(url: str, store: PostgresStore, words_read: list[set[str]]) -> None:
    put(store, some("harbour at night", id="m"))
    put(store, some("harbour harbour by day", id="n"))
    for _ in range(2):
        near(store)
    assert sorted(match(store, "harbour night")) == ["m", "n"]
    with closing(PostgresStore(url)) as other:
        put(other, some("a lake at night", id="o"), [])  # without vectors
        assert sorted(match(store, "night day")) == ["m", "n", "o"]
        with other._changing() as transaction:
            transaction._con.execute("UPDATE memories SET state = 1 WHERE id = 'm'")
            transaction._con.execute("UPDATE words SET state = 1 WHERE id = 'm'")
    assert match(store, "harbour night lake") == ["o", "n"]
    assert match(store, "harbour night day") == ["n", "o"]

    assert words_read == [{"harbour", "night"}, {"dai"}, {"lake"}]


def test_words_that_were_not_asked_for_lately_make_room(
    store: PostgresStore, words_read: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MOST_HELD", 5)
    put_all(store, (some(f"lake {word} {number}", id=f"{word}{number}") for word in WORDS[:4] for number in range(2)))
    for _ in range(2):
        near(store)
    for word in (*WORDS[:3], "lake"):
        assert len(match(store, word)) == (8 if word == "lake" else 2)
        [scope] = store._scopes._kept.values()
        assert scope._postings.bytes <= 5 * 24
    match(store, WORDS[2])
    match(store, WORDS[2])

    assert words_read == [{"harbour"}, {"cello"}, {"rain"}, {"lake"}, {"rain"}]


def test_many_changes_are_put_into_all_words(
    store: PostgresStore, words_read: list[set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "MOST_NOTED", 3)
    put(store, some("harbour and lake", id="m"))
    for _ in range(2):
        near(store)
    for word in ("harbour", "lake"):
        match(store, word)
    for number in range(5):
        put(store, some("harbour and lake" if number % 2 else "harbour", id=f"m{number}"))
        match(store, "harbour")
    [scope] = store._scopes._kept.values()

    assert sorted(match(store, "lake")) == ["m", "m1", "m3"]
    assert len(scope._postings._noted) <= 3
    assert words_read == [{"harbour"}, {"lake"}]


def test_what_is_changed_while_words_are_read_is_not_missed(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread notes the change meanwhile: what was read before it is not kept."""
    put(store, some("harbour at night", id="m"))
    for _ in range(2):
        near(store)
    read, done = postings.read, list[str]()

    def slowly(*given: Any) -> Any:
        columns = read(*given)
        if not done:
            done.append("n")
            put(store, some("harbour by day", id="n"))
            near(store)
        return columns

    monkeypatch.setattr(postings, "read", slowly)
    found = store.candidates("harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=9)
    assert [one.memory for one in by_words(found)] == ["m"]

    assert sorted(match(store, "harbour")) == ["m", "n"]


def test_how_rare_words_are_is_asked_once_until_something_changes(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []

    def noted(con: Any, restriction: Restriction, stems: set[str]) -> Any:
        asked.append({*stems})
        return postgres_words.statistics(con, restriction, stems)

    monkeypatch.setattr(scopes, "statistics", noted)
    put(store, some("harbour at night", id="m"))
    for _ in range(2):
        near(store)
    for question in ("harbour", "harbour night", "night harbour"):
        match(store, question)
    assert asked == [{"harbour"}, {"night"}]
    with closing(PostgresStore(url)) as other:
        put(other, some("harbour by day", id="n"))
    match(store, "harbour night")
    assert asked[2:] == [{"harbour", "night"}]

    monkeypatch.setattr(scopes, "MOST_COUNTED", 1)
    for question in ("harbour", "night", "harbour"):
        match(store, question)
    [scope] = store._scopes._kept.values()
    assert scope._counted is not None
    assert [*scope._counted[1].frequencies] == ["harbour"]


@pytest.fixture
def glimpsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of how many memories the server was asked how they begin, each time."""
    counts: list[int] = []
    glimpses = PostgresReads.glimpses

    def counted(reads: PostgresReads, ids: Any) -> Any:
        counts.append(len(ids))
        return glimpses(reads, ids)

    monkeypatch.setattr(PostgresReads, "glimpses", counted)
    return counts


def openings(store: PostgresStore, filter: Filter = Filter()) -> list[str]:  # noqa: B008 -- frozen
    with store.one_reader():
        found = store.candidates("harbour", QUERY, filter, EVERYTHING, now=NOW, limit=9)
        return [*store.glimpses(found.memories).opening]


def test_how_memories_begin_is_kept_with_their_vectors(url: str, store: PostgresStore, glimpsed: list[int]) -> None:
    first = put(store, some("harbour at night", id="m"))
    put(store, some("a lake", id="n"), [])  # has no vectors
    put(store, some("long " * 200, id="o"), [at_cosine(0.5), at_cosine(0.4)])
    for _ in range(2):
        near(store)
    assert sorted(openings(store)) == ["harbour at night", "long " * 60]
    with closing(PostgresStore(url)) as other:
        put(other, replace(first, content="harbour by day", version=2), None)
        assert sorted(openings(store)) == ["harbour by day", "long " * 60]
        with other.writing() as transaction:
            transaction.purge("o", at=NOW)
        assert openings(store) == ["harbour by day"]
        assert glimpsed == []
        changed(other, got(other, "m"), valid_until=NOW)
        glimpsed_alike(store, "harbour", QUERY, Filter(), EVERYTHING)
    [scope] = store._scopes._kept.values()
    assert scope.bytes == scope._vectors.strides[0] + sys.getsizeof("harbour by day") + scope._postings.bytes


def test_vectors_and_words_of_what_was_found_are_told_from_memory(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, some("harbour at night", id="m"), [at_cosine(0.5)])
    put(store, some("harbour by day", id="n"), [at_cosine(0.6)])
    put(store, some("long harbour", id="o"), [at_cosine(0.4), at_cosine(0.3)])
    for _ in range(2):
        near(store)
    asked: list[str] = []
    for name in ("vectors", "matched_words"):
        told = getattr(PostgresReads, name)
        monkeypatch.setattr(
            PostgresReads, name, lambda *given, name=name, told=told: (asked.append(name), told(*given))[1]
        )
    with store.one_reader():
        store.candidates("harbour nowhere night", QUERY, Filter(), EVERYTHING, now=NOW, limit=9)
        assert {name: one.tolist() for name, one in store.vectors(["m", "n"]).items()} == {
            "m": at_cosine(0.5).tolist(),
            "n": at_cosine(0.6).tolist(),
        }
        assert store.matched_words("night Harbour nowhere", ["n", "m"]) == {
            "n": ("Harbour",),
            "m": ("night", "Harbour"),
        }
        assert asked == []
        assert store.vectors(["o"])["o"].tolist() == at_cosine(0.4).tolist()  # of several parts the first
        assert store.matched_words("day", ["n"]) == {"n": ("day",)}  # which the question did not have
        assert asked == ["vectors", "matched_words"]


def test_how_memories_begin_is_remembered_for_one_reader_alone(store: PostgresStore, glimpsed: list[int]) -> None:
    """What was found is up to date for as long as a search takes, and only for who has found it."""
    put(store, some("harbour", id="m"))
    for _ in range(2):
        near(store)
    openings(store)
    assert glimpsed == []
    store.glimpses(["m"])
    store.candidates("harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=9)
    store.glimpses(["m"])
    with store.one_reader():
        store.glimpses(["m"])
        store.candidates("harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=9)
        other = threading.Thread(target=store.glimpses, args=(["m"],))
        other.start()
        other.join()
        store.glimpses(["m", "of no one"])
    assert glimpsed == [1, 1, 1, 1, 2]


def test_how_archived_memories_begin_is_always_asked(store: PostgresStore, glimpsed: list[int]) -> None:
    """What a program of before takes out of them is noted nowhere."""
    archived = Filter(states=frozenset({State.ACTIVE, State.ARCHIVED}))
    memory = put(store, some("harbour", id="m"))
    for _ in range(2):
        near(store, archived)
    assert openings(store, archived) == ["harbour"]
    put_away(store, memory, keep_vectors=True)
    assert openings(store, archived) == [""]
    assert glimpsed == [1, 1]


def test_how_active_memories_begin_follows_what_is_put_away(store: PostgresStore) -> None:
    memory = put(store, some("harbour", id="m"))
    for _ in range(2):
        near(store)
    assert openings(store) == ["harbour"]
    put_away(store, memory, keep_vectors=True)
    assert openings(store) == [""]


def test_how_memories_begin_is_not_kept_where_there_is_no_room(
    store: PostgresStore, glimpsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, some("harbour", id="m"))
    for _ in range(2):
        near(store)
    monkeypatch.setattr(scopes, "MOST_BYTES", 3 * 4 * len(QUERY))
    for number in range(2):
        put(store, some("harbour", id=f"m{number}"))
        assert len(openings(store)) == 2 + number
    assert glimpsed == [2, 3]
    assert len(store._scopes._kept) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 255, 300])
def test_how_often_a_word_stands_in_a_passage_counts_alike(store: PostgresStore, count: int) -> None:
    put(store, some("harbour " * count + "lake", id="m"))
    put(store, some("harbour lake", id="n"))
    for _ in range(2):
        near(store)
    match(store, "harbour lake")  # as it was read
    put(store, some("lake " * count + "harbour", id="o"))
    match(store, "harbour lake")  # as it came


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were read each time that something was."""
    counts: list[int] = []
    found = scopes._found

    def counted(*given: Any) -> scopes.Found:
        rows = found(*given)
        counts.append(len(rows.ids))
        return rows

    monkeypatch.setattr(scopes, "_found", counted)
    return counts


def near(store: PostgresStore, filter: Filter = Filter()) -> list[str]:  # noqa: B008 -- frozen
    return [match.memory for match in store.nearest(QUERY, filter, EVERYTHING, now=NOW, limit=9)]


def act(jay: Engine, mine: list[str], chance: random.Random) -> None:
    """Store, change, supersede, forget or bring back a memory, as chance will have it."""
    text = " ".join(chance.choices(WORDS, k=chance.choice((3, 8, 900))))
    kind = chance.choice(
        ("store", "store", "text", "tags", "category", "valid", "forget", "recover", "many", "newer", "purge")
    )
    one = chance.choice(mine) if mine else None
    if kind == "many":
        mine += jay.store_many([{"content": f"{text} {number}"} for number in range(5)])
    elif kind == "store" or one is None:
        expires = chance.choice((None, None, utc_now() + timedelta(milliseconds=chance.randrange(400))))
        new = jay.store(
            text,
            conversation_id=chance.choice((None, "a", "b")),
            importance=chance.random(),
            tags=chance.choice(((), ("harbour",), ("harbour", "rain"))),
            expires_at=expires,
        )
        mine.append(new.memory.id)
    elif kind == "text":
        jay.update(one, content=text)
    elif kind == "tags":
        jay.update(one, tags=chance.choice(((), ("rain",), ("tea",))))
    elif kind == "category":
        jay.update(one, category=chance.choice(list(Category)))
    elif kind == "valid":
        jay.update(one, valid_until=chance.choice((None, utc_now() + timedelta(days=1))))
    elif kind == "newer":
        jay.supersede(old=one, new=chance.choice(mine))
    elif kind == "recover":
        jay.recover(one)
    else:
        jay.forget(one, hard=kind == "purge")


def exactly(store: PostgresStore, vector: Vector, restriction: Restriction) -> list[Match]:
    with store._reading() as con:
        return postgres_vectors._exactly(con, vector, restriction, 1_000)


def found_alike(store: PostgresStore, question: str) -> None:
    """What is kept finds what comparing every vector on the server does."""
    [vector] = HashingEmbedder().embed([question])
    for filter in FILTERS:
        for audience in (EVERYTHING, MEMBER):
            now = utc_now()
            restriction = restricted(filter, audience, now=now)
            assert restriction is not None
            while True:
                exact = exactly(store, vector, restriction)
                kept = store.nearest(vector, filter, audience, now=now, limit=1_000)
                if exactly(store, vector, restriction) == exact:  # parts of long texts get their vectors meanwhile
                    break
            assert dict(kept) == pytest.approx(dict(exact), abs=1e-6)
            assert [score for _, score in kept] == sorted((score for _, score in kept), reverse=True)
            while True:
                by_server = store.match(question, filter, audience, now=now, limit=1_000)
                found = store.candidates(question, vector, filter, audience, now=now, limit=1_000)
                if store.match(question, filter, audience, now=now, limit=1_000) == by_server:
                    break
            assert by_words(found) == by_server
            glimpsed_alike(store, question, vector, filter, audience)


def glimpsed_alike(
    store: PostgresStore, question: str, vector: Vector, filter: Filter, audience: Audience, limit: int = 1_000
) -> list[str]:
    """What a second look sees of what was found is what the server has; how those begin."""
    with store.one_reader():
        while True:
            found = store.candidates(question, vector, filter, audience, now=utc_now(), limit=limit)
            before = {row[0]: row[1:] for row in zip(*PostgresReads.glimpses(store, found.memories), strict=True)}
            seen = store.glimpses(found.memories)
            told = PostgresReads.glimpses(store, found.memories)
            held, vectors = store.matched_words(question, found.memories), store.vectors(found.memories)
            words_told = PostgresReads.matched_words(store, question, found.memories)
            vectors_told = PostgresReads.vectors(store, found.memories)
            if before == {row[0]: row[1:] for row in zip(*told, strict=True)}:
                break
    assert held == words_told
    assert {name: one.tolist() for name, one in vectors.items()} == {
        name: one.tolist() for name, one in vectors_told.items()
    }
    known = dict(zip(told.memories, zip(*told[1:], strict=True), strict=True))
    talks: dict[Any, Any] = {}
    for memory, created_at, valid_from, valid_until, talk, length, opening in zip(*seen, strict=True):
        its_talk = known[memory][3]
        assert (created_at, valid_from, valid_until, its_talk, length, opening) == known[memory]
        assert bool(talk) == bool(its_talk)
        assert talks.setdefault(its_talk or None, talk) == talk  # the same for those of one
    assert len({*talks.values()}) == len(talks)
    return [*seen.opening]


def by_words(found: Candidates) -> list[Match]:
    return [Match(found.memories[row], found.word_scores[row]) for row in found.by_words]


@pytest.mark.parametrize("compared", [scopes.ALL_COMPARED, 3], ids=["all", "likely"])
def test_what_two_others_change_is_found_as_it_is(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch, compared: int
) -> None:
    """Each in turn, one of them through a connection of its own."""
    monkeypatch.setattr(scopes, "ALL_COMPARED", compared)
    chance, mine = random.Random(7), list[str]()
    with (
        engine_on(PostgresStore(url), HashingEmbedder()) as jay,
        engine_on(PostgresStore(url), HashingEmbedder()) as kay,
    ):
        for turn in range(120):
            with suppress(Error):
                act(chance.choice((jay, kay)), mine, chance)
            if turn % 4 == 3:
                found_alike(store, " ".join(chance.choices(WORDS, k=3)))

    assert len(store._scopes._kept) == 2 * (len(FILTERS) - 1)  # all but the one that depends on what others say
    assert all(scope._postings for scope in store._scopes._kept.values())
    everything = next(iter(store._scopes._kept.values()))
    assert everything.bytes > 0
    assert (everything._levels is None) == (compared > 3)


def test_the_nearest_of_many_are_found_by_their_signatures() -> None:
    """Among vectors that lie in a cone, as those of a model do, also after some have gone and others came."""
    numbers = np.random.default_rng(5)
    topics = numbers.standard_normal((40, 100)) + 2 * numbers.standard_normal(100)
    vectors = topics[numbers.integers(0, 40, 16_000)] + numbers.standard_normal((16_000, 100))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    scope = scopes.Scope(100)
    for first in range(0, 16_000, 4_000):
        scope._replace([*range(max(0, first - 500), first)], rows_of(vectors, range(first, first + 4_000)))
    there = [row for row in range(16_000) if row % 4_000 < 3_500 or row >= 12_000]
    assert scope._levels is not None

    for question in vectors[::800]:
        best = sorted(there, key=lambda row: -float(vectors[row] @ question))
        found, _ = scope.compared(question, 20, unexpired_at=0, outdated=[f"m{best[0]}"], also=())
        assert [match.memory for match in found][:10] == [f"m{row}" for row in best[1:11]]
        assert [match.score for match in found[:10]] == pytest.approx([vectors[row] @ question for row in best[1:11]])


def test_later_memories_that_lie_elsewhere_and_closer_are_found_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "ALL_COMPARED", 500)
    monkeypatch.setattr(scopes, "LEAST_LIKELY", 100)
    numbers = np.random.default_rng(6)
    groups = []
    for count, spread in ((1_000, 1.0), (3_000, 0.4)):
        topics = 2 * numbers.standard_normal(100) + spread * numbers.standard_normal((40, 100))
        groups.append(topics[numbers.integers(0, 40, count)] + spread * 0.6 * numbers.standard_normal((count, 100)))
    vectors = np.concatenate(groups)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    scope, right = scopes.Scope(100), 0
    for first in range(0, 4_000, 500):
        scope._replace([], rows_of(vectors, range(first, first + 500)))

    for question in vectors[1_000::100]:
        found, _ = scope.compared(question, 10, unexpired_at=0, outdated=(), also=())
        right += len({f"m{row}" for row in np.argsort(-(vectors @ question))[:10]} & {match.memory for match in found})

    assert right >= 295  # of 300; 251 by the edges of the first ones


def rows_of(vectors: Vector, rows: range) -> scopes.Found:
    sent = b"".join(vector_bytes(vectors[row]) for row in rows)
    return scopes.Found([*rows], [f"m{row}" for row in rows], [0] * len(rows), [scopes.NEVER] * len(rows), sent)


def test_long_memories_do_not_take_the_places_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "ALL_COMPARED", 100)
    monkeypatch.setattr(scopes, "LEAST_LIKELY", 10)
    vectors = np.stack([at_cosine(1 - row / 1_000) for row in range(400)])
    scope, rows = scopes.Scope(vectors.shape[1]), rows_of(vectors, range(400))
    rows = rows._replace(memories=[0] * 390 + [*range(1, 11)], ids=["long"] * 390 + [f"m{row}" for row in range(10)])
    scope._replace([], rows)

    found, _ = scope.compared(QUERY, 9, unexpired_at=0, outdated=(), also=())

    assert [match.memory for match in found] == ["long", *(f"m{row}" for row in range(8))]


def test_a_large_scope_is_read_in_turn(store: PostgresStore, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "READ_AT_ONCE", 4)
    monkeypatch.setattr(postgres_vectors, "scope", lambda *_: 10.0)
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(10)))
    for _ in range(3):
        assert len(near(store)) == 9

    assert len(reads) == 3
    assert sum(reads) == 10


def test_what_is_changed_while_a_scope_is_read_is_read_again(
    url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of it was read already, and some was not yet."""
    monkeypatch.setattr(scopes, "READ_AT_ONCE", 4)
    monkeypatch.setattr(postgres_vectors, "scope", lambda *_: 10.0)
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(10)))
    found, changed = scopes._found, list[str]()

    def changing(*given: Any) -> scopes.Found:
        rows = found(*given)
        if not changed:
            changed.extend(("m0", "m9"))
            with closing(PostgresStore(url)) as other, other._changing() as transaction:
                for table in ("memories", "signatures"):
                    transaction._con.execute(f"UPDATE {table} SET state = 1 WHERE id = ANY(%s)", (changed,))
        return rows

    monkeypatch.setattr(scopes, "_found", changing)
    for _ in range(2):
        near(store)
    [scope] = store._scopes._kept.values()
    assert scope.read
    assert sorted(near(store)) == [f"m{number}" for number in range(1, 9)]
    assert changed


def test_nothing_is_missed_while_several_write(url: str, store: PostgresStore) -> None:
    def write(seed: int) -> None:
        chance, mine = random.Random(seed), list[str]()
        with engine_on(PostgresStore(url), HashingEmbedder()) as jay:
            for _ in range(40):
                with suppress(Error):
                    act(jay, mine, chance)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    [vector] = HashingEmbedder().embed(["harbour rain"])
    while any(writer.is_alive() for writer in writers):
        for filter in FILTERS:
            store.nearest(vector, filter, EVERYTHING, now=utc_now(), limit=50)
    for writer in writers:
        writer.join()

    found_alike(store, "harbour rain")


def test_a_scope_is_read_when_it_was_asked_about_before(store: PostgresStore, reads: list[int]) -> None:
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(5)))
    near(store)
    assert reads == []
    near(store)
    near(store)
    assert reads == [5]
    near(store, Filter(ids=frozenset({"m1"})))
    assert reads == [5]


def test_only_what_has_changed_is_read_again(url: str, store: PostgresStore, reads: list[int]) -> None:
    put_all(store, (some(f"text {number}", id=f"m{number}", tags=("t",)) for number in range(5)))
    for _ in range(2):
        near(store, Filter(tags=frozenset({"t"})))
    with closing(PostgresStore(url)) as other:
        put(other, some("sixth", id="m5", tags=("t",)), [at_cosine(0.5)])
        put(other, some("seventh", id="m6"))
        other.flush_reads()
    assert near(store, Filter(tags=frozenset({"t"})))[-1] == "m5"
    assert near(store, Filter(tags=frozenset({"t"})))[-1] == "m5"

    assert reads == [5, 1]


@pytest.mark.parametrize(("name", "few"), [("MOST_MISSED", 3), ("NAMED", 3), ("MOST_BYTES", 64)])
def test_a_scope_that_missed_or_holds_too_much_is_left_to_the_server(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, name: str, few: int
) -> None:
    put(store, some("text", id="m"))
    for _ in range(2):
        near(store)
    monkeypatch.setattr(scopes, name, few)
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(5)))

    assert len(near(store)) == 6
    assert not store._scopes._kept


def test_what_a_restored_server_does_not_know_is_forgotten(store: PostgresStore, reads: list[int]) -> None:
    """Its changes may have the numbers of others that were seen before."""
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(5)))
    for _ in range(2):
        near(store)
    with store._changing() as transaction:
        con = transaction._con
        con.execute("ALTER TABLE signatures DISABLE TRIGGER USER")
        for table in ("signatures", "vectors"):
            con.execute(f"DELETE FROM {table} WHERE memory = (SELECT seq FROM memories WHERE id = 'm0')")
        con.execute("ALTER TABLE signatures ENABLE TRIGGER USER")
        con.execute("UPDATE changed_memories SET mark = gen_random_uuid()")
    put(store, some("text 5", id="m5"))

    for _ in range(3):
        assert sorted(near(store)) == ["m1", "m2", "m3", "m4", "m5"]
    assert reads == [5, 5]


def test_scopes_that_grow_make_room(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [Filter(tags=frozenset({tag})) for tag in ("a", "b", "c")]
    put_all(store, (some(f"text {number}", id=f"m{number}", tags=("a", "b", "c")) for number in range(3)))
    for filter in asked * 2:
        near(store, filter)
    assert len(store._scopes._kept) == 3
    monkeypatch.setattr(scopes, "MOST_BYTES", 4 * len(QUERY) * 10)

    for number in range(3, 7):
        put(store, some(f"text {number}", id=f"m{number}", tags=("a", "b", "c")))
        for filter in asked:
            near(store, filter)
    near(store, asked[2])

    assert sum(scope.bytes for scope in store._scopes._kept.values()) <= scopes.MOST_BYTES


def test_reading_that_has_failed_is_tried_again(
    store: PostgresStore, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, some("text", id="m"))
    monkeypatch.setattr(scopes, "READ_AGAIN_SECONDS", 0)
    soon, store._scopes._soon = store._scopes._soon, lambda work: None  # as if there was no connection for it
    for _ in range(3):
        near(store)
    assert reads == []
    store._scopes._soon = soon

    near(store)

    assert reads == [1]


def test_many_changed_at_once_are_not_named(store: PostgresStore, reads: list[int]) -> None:
    for _ in range(2):
        near(store)
    store.rebuild()
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(150)))
    store.rebuild()
    with store._reading() as con:
        assert con.execute("SELECT count(*) FROM changed_memories WHERE memory IS NULL").fetchone() != (0,)

    assert len(near(store)) == 9
    assert not store._scopes._kept


def test_changes_that_everyone_has_seen_are_forgotten(store: PostgresStore) -> None:
    with store._changing() as transaction:
        transaction._con.execute(
            "INSERT INTO tags (space, memory, tag) SELECT 'default', 1, one::TEXT FROM generate_series(1, 50) AS one"
        )
        transaction._con.execute("SELECT setval(pg_get_serial_sequence('changed_memories', 'number'), 12999)")
        transaction._con.execute("DELETE FROM tags WHERE tag = '7'")
        [(first, last)] = transaction._con.execute("SELECT min(number), max(number) FROM changed_memories")

    assert (first, last) == (13_000, 13_000)


def test_changes_of_words_are_forgotten_too(store: PostgresStore) -> None:
    put(store, some("text", id="m"))
    with store._changing() as transaction:
        transaction._con.execute("SELECT setval(pg_get_serial_sequence('changed_memories', 'number'), 38999)")
        transaction._con.execute("UPDATE words SET length = length")
        [(first, last)] = transaction._con.execute("SELECT min(number), max(number) FROM changed_memories")

    assert (first, last) == (39_000, 39_000)


def test_what_has_expired_meanwhile_is_left_out(store: PostgresStore) -> None:
    put(store, some("text", id="m", expires_at=NOW + timedelta(seconds=30)))
    put(store, some("text two", id="n"))
    for _ in range(2):
        near(store)

    assert {*near(store)} == {"m", "n"}
    after = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW + timedelta(seconds=60), limit=9)
    assert [match.memory for match in after] == ["n"]


def test_servers_of_the_version_before_find_the_triggers_that_they_know(store: PostgresStore) -> None:
    """They count them by their function, and keep nothing if they find any other number."""
    with store._reading() as con:
        counted = con.execute("SELECT count(*) FROM pg_trigger WHERE tgfoid = to_regproc('note_changes')").fetchone()

    assert counted == (6,)


@pytest.mark.parametrize(("table", "trigger"), [("tags", "tags_went"), ("words", "words_noted_gone")])
def test_without_the_triggers_nothing_is_kept(store: PostgresStore, reads: list[int], table: str, trigger: str) -> None:
    put(store, some("text", id="m"))
    with store._connections.apart() as con:
        con.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    try:
        assert [near(store) for _ in range(4)] == [["m"]] * 4
        assert reads == []
    finally:
        with store._connections.apart() as con:
            con.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")


def test_scopes_that_nobody_asks_about_make_room(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put_all(store, (some(f"text {number}", id=f"m{number}", tags=(f"t{number}",)) for number in range(4)))
    for number in (0, 1, 2, 2, 1, 0, 3, 3):
        near(store, Filter(tags=frozenset({f"t{number}"})))
    assert len(store._scopes._kept) == 4
    monkeypatch.setattr(scopes, "MOST_BYTES", 2 * (64 + sys.getsizeof("text 0")))
    near(store, Filter(tags=frozenset({"t0"})))
    store._scopes._make_room()
    assert kept_tags(store._scopes) == ["t3", "t0"]
    for _ in range(5):  # it is not read again for every question
        near(store, Filter(tags=frozenset({"t1"})))
    assert kept_tags(store._scopes) == ["t3", "t0"]
    monkeypatch.setattr(scopes, "IDLE_SECONDS", -1.0)
    store._scopes._make_room()
    assert kept_tags(store._scopes) == ["t0"]


def kept_tags(kept: Scopes) -> list[str]:
    return [tag for ((filter, _), _) in kept._kept for tag in filter.tags]  # type: ignore[misc, has-type]


def test_what_is_read_soon_is_waited_for_by_nobody(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = list[Callable[[], object]]()
    monkeypatch.setattr(PostgresStore, "_soon", lambda self, work: later.append(lambda: self._searched(work)))
    with closing(PostgresStore(url)) as store:
        put(store, some("text", id="m"))
        assert [near(store) for _ in range(3)] == [["m"]] * 3
        [read] = later
        put(store, some("text two", id="n"), [at_cosine(0.5)])
        assert near(store) == ["m", "n"]
        read()
        put(store, some("text three", id="o"), [at_cosine(0.25)])
        assert near(store) == ["m", "n", "o"]
        [scope] = store._scopes._kept.values()
        assert scope.read


def test_a_scope_that_cannot_be_read_is_not_tried_again_soon(store: PostgresStore, reads: list[int]) -> None:
    put_all(store, (some(f"text {number}", id=f"m{number}") for number in range(5)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scopes, "MOST_BYTES", 4 * 64)
        patched.setattr(postgres_vectors, "scope", lambda *_: 3.0)  # the planner may be wrong
        for _ in range(6):
            assert len(near(store)) == 5

    assert reads == [5]


def test_ids_of_any_text_are_read(store: PostgresStore) -> None:
    put(store, some("text", id='a"\\,{}\0\ufdd0'))

    assert [near(store) for _ in range(3)] == [['a"\\,{}\0\ufdd0']] * 3
    assert store.get(['a"\\,{}\0\ufdd0', "b"], EVERYTHING)


def test_a_search_takes_cosines_of_what_words_find_from_memory(store: PostgresStore) -> None:
    create_spaces(store, "work")
    put(store, some("harbour at night", id="m"), [at_cosine(0.25), at_cosine(0.5)], parts=2)
    put(store, some("harbour by day", id="n"), [])
    ask: Callable[[], object] = lambda: store.candidates(  # noqa: E731
        "harbour", QUERY, Filter(), EVERYTHING, now=NOW, limit=9
    )
    by_server = ask()
    again = ask()

    assert len(store._scopes._kept) == 1
    assert repr(again) == repr(by_server)
