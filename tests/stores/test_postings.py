"""What a store keeps of its words weighs as FTS5 does, whoever asks and whatever is committed meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scrubjay.stores.sqlite import postings, words
from scrubjay.stores.sqlite.reads import SqliteReads
from scrubjay.stores.sqlite.sql import snapshot
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Context, Memory
from scrubjay.values.search import Candidates, Filter
from tests.stores.contract.samples import EVERYTHING, NOW, put, put_in, some

MEMORIES = 5_200  # from 5,000 rows on common words are left out …
FEW = 90  # … and below 1,000 there is another formula
WORDS = ["harbour", "cello", "rain", "tea", "ladder", "lake", "winter", "Anna", "Brandt", "key", "bread"]
VECTOR = np.ones(16, np.float32) / 4
MEMBER = Audience("ann", (Scope("default", Sight.OWN),))
FILTERS = (Filter(), Filter(user_id="bob"), Filter(min_importance=0.9), Filter(created_until=NOW))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    with filled(tmp_path_factory.mktemp("large"), MEMORIES) as made:
        yield made


@contextmanager
def filled(folder: Path, memories: int) -> Iterator[SqliteStore]:
    chance = random.Random(7)
    with closing(SqliteStore(folder / "memories.db")) as made:
        with made.writing() as tx:
            for number in range(memories):
                length = 900 if number % 500 == 0 else 4
                text = " ".join(chance.choices([*WORDS, *(f"w{n}" for n in range(300))], k=length))
                hidden = number % 7 == 0
                whose = "bob" if hidden or number % 90 == 0 else "ann"
                level = AccessLevel.PRIVATE if hidden else AccessLevel.SHARED
                put_in(
                    tx,
                    some(
                        f"{text} {number}",
                        importance=number % 100 / 100,
                        access_level=level,
                        context=Context(user_id=whose),
                    ),
                    (),
                )
        yield made


@pytest.mark.parametrize("audience", [EVERYTHING, MEMBER])
@pytest.mark.parametrize("filter", FILTERS)
def test_the_same_memories_with_the_same_scores_as_by_fts5(
    store: SqliteStore, filter: Filter, audience: Audience
) -> None:
    same_as_by_fts5(store, filter, audience)


@pytest.mark.parametrize("audience", [EVERYTHING, MEMBER])
def test_so_it_is_in_a_small_store(tmp_path: Path, audience: Audience) -> None:
    with filled(tmp_path, FEW) as store:
        for filter in FILTERS:
            same_as_by_fts5(store, filter, audience)
        for number in range(3):
            put(store, some(f"cello {WORDS[number]} tea"))
            same_as_by_fts5(store, Filter(), audience)


def test_what_is_committed_while_words_are_looked_up_leaves_nothing_wrong_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, FEW) as store:
        totals, coming = words._totals, [some(f"{WORDS[0]} and much else, {number}") for number in range(40)]
        counted = totals(next(iter(store._connections._idle)), words.HOT)

        def just_before_and_after_a_commit(con, index):
            if len(coming) == 40:
                coming.pop()
                return counted
            while coming:
                put(store, coming.pop())
            return totals(con, index)

        monkeypatch.setattr(words, "_totals", just_before_and_after_a_commit)
        by_words(store, " ".join(WORDS), Filter(), EVERYTHING, 5)

        same_as_by_fts5(store, Filter(), EVERYTHING)


@pytest.mark.parametrize("by_meaning_too", [True, False])
def test_the_first_memory_may_come_while_words_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_meaning_too: bool
) -> None:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        seen = words._seen

        def before_the_first(*given, **named):
            counted = seen(*given, **named)
            put(store, some("the harbour"))
            return counted

        monkeypatch.setattr(words, "_seen", before_the_first)

        if by_meaning_too:
            assert by_words(store, "harbour", Filter(), EVERYTHING, 5) == []
        else:
            assert SqliteReads.match(store, "harbour", Filter(), EVERYTHING, now=NOW, limit=5) == []
        monkeypatch.undo()
        assert len(by_words(store, "harbour", Filter(), EVERYTHING, 5)) == 1


def same_as_by_fts5(store: SqliteStore, filter: Filter, audience: Audience) -> None:
    chance = random.Random(3)
    for _ in range(12):
        question = " ".join(chance.choices([*WORDS, "w7", "w11", "5000", "absent"], k=chance.choice((1, 2, 5))))
        limit = chance.choice((5, 40, 200))
        expected = SqliteReads.match(store, question, filter, audience, now=NOW, limit=limit)

        assert by_words(store, question, filter, audience, limit) == expected


def test_a_new_word_of_a_small_store_is_read_and_not_counted_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with filled(tmp_path, FEW) as store:
        expected = SqliteReads.match(store, "cello rain", Filter(), EVERYTHING, now=NOW, limit=40)

        def never(*_given: object) -> None:
            raise AssertionError("counted before it was read")

        monkeypatch.setattr(postings, "vocabulary", never)

        assert by_words(store, "cello rain", Filter(), EVERYTHING, 40) == expected


def test_nor_is_it_in_a_large_one_where_all_its_rows_will_be_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_given: object) -> None:
        raise AssertionError("counted before it was read")

    with filled(tmp_path, FEW) as store:
        with monkeypatch.context() as patched:
            patched.setattr(words, "READ_AT_ONCE", 0)
            patched.setattr(postings, "vocabulary", never)
            found = by_words(store, "cello rain", Filter(), EVERYTHING, 40)

        assert found == SqliteReads.match(store, "cello rain", Filter(), EVERYTHING, now=NOW, limit=40)


def test_a_word_that_was_read_is_counted_on_when_more_come(tmp_path: Path) -> None:
    with filled(tmp_path, FEW) as store:
        by_words(store, "cello rain", Filter(), EVERYTHING, 40)
        for number in range(30):
            put(store, some(f"cello {number}"))
            put(store, some(f"ladder {number}"))

            same_as_by_fts5(store, Filter(), EVERYTHING)


def test_what_is_committed_is_found_by_the_next_question(store: SqliteStore) -> None:
    assert not by_words(store, "zebra harbour", Filter(ids=frozenset({"x"})), EVERYTHING, 5)
    by_words(store, "cello zebra", Filter(), EVERYTHING, 5)

    with closing(SqliteStore(store._connections.path)) as other:
        memory = put(other, some("a zebra with a cello"))

    assert by_words(store, "cello zebra", Filter(), EVERYTHING, 5)[0][0] == memory.id


def test_the_rows_of_a_word_are_read_once_until_a_row_comes_or_is_changed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = put(store, some("nothing like it"))
    with counted(monkeypatch) as read:
        for _ in range(3):
            by_words(store, "lake winter", Filter(), EVERYTHING, 5)
        assert sorted(read) == ["lake", "winter"]
        put(store, some("nothing like that"))
        by_words(store, "lake", Filter(), EVERYTHING, 5)
        assert sorted(read) == ["lake", "lake", "winter"]
        put(store, replace(known, content="a lake", version=2))
        by_words(store, "lake", Filter(), EVERYTHING, 5)
        assert sorted(read) == ["lake", "lake", "lake", "winter"]


@pytest.mark.parametrize("audience", [EVERYTHING, MEMBER])
def test_what_is_added_or_changed_is_weighed_as_by_fts5(store: SqliteStore, audience: Audience) -> None:
    chance = random.Random(5)
    earlier: list[Memory] = []

    with closing(SqliteStore(store._connections.path)) as other:
        for number in range(60):
            writer = chance.choice((store, other))
            text = " ".join(chance.choices([*WORDS, "w7", "heron heron"], k=chance.choice((3, 900))))
            act = chance.choice(("add", "add", "add", "change", "erase", "rebuild")) if earlier else "add"
            if act == "add":
                level = chance.choice((AccessLevel.PRIVATE, AccessLevel.SHARED))
                new = some(f"{text} {audience.user} {number}", access_level=level, context=Context(user_id="bob"))
                earlier.append(put(writer, new))
            elif act == "change":
                known = earlier.pop()
                earlier.append(put(writer, replace(known, content=f"{text} {number}", version=known.version + 1)))
            elif act == "erase":
                with writer.writing() as tx:
                    tx.purge(earlier.pop(0).id, at=NOW)
            elif number % 9 == 0:
                writer.rebuild()
            question = " ".join(chance.choices([*WORDS, "heron", "w7"], k=chance.choice((1, 2))))
            expected = SqliteReads.match(store, question, Filter(), audience, now=NOW, limit=30)

            assert by_words(store, question, Filter(), audience, 30) == expected
            assert store.match(question, Filter(), audience, now=NOW, limit=30) == expected


def test_words_and_lengths_are_counted_as_fts5_counts_them(store: SqliteStore) -> None:
    chance, kept = random.Random(8), store._postings_at_hand()
    stems = ["lake", "winter", "kingfish", "w7", "absent"]

    with closing(SqliteStore(store._connections.path)) as other:
        for number in range(40):
            text = " ".join(
                chance.choices(["lake", "winter", "kingfisher kingfisher", "w7"], k=chance.choice((2, 700)))
            )
            memory = put(chance.choice((store, other)), some(f"{text} {number}"))
            if number % 10 == 9:
                put(other, replace(memory, content="nothing of it", version=2))
            with store._reading() as con, snapshot(con):
                _, _, version = words._totals(con, words.HOT)
                expected = words.vocabulary(con, words.HOT, stems)
                assert kept.counted(con, version, stems) == expected
                assert kept._lengths.catch_up(con, version)
                lengths = dict(con.execute("SELECT id, length FROM passages WHERE id > ?", (256 * memory.seq - 2_000,)))
            known = kept._lengths.of(np.array([*lengths], np.int64), -1.0)
            assert known.tolist() == [*lengths.values()]
    assert expected["kingfish"] > 20


def test_which_memories_hold_a_word_is_known_without_a_look(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "key 4500 lake unheard"
    ids = [memory.id for memory in store.list(Filter(), EVERYTHING, now=NOW, limit=700)]
    with store._reading() as con:
        expected = words.words_held(con, text, words.numbers_of(con, ids))
    by_words(store, "key lake", Filter(), EVERYTHING, 5)
    looked: list[str] = []
    monkeypatch.setattr(words, "_memories_with", lambda _, word, *__, **___: looked.append(word) or ())

    known = store.matched_words(text, ids)

    assert looked == ["4500"]
    assert known == {
        one: rest for one, held in expected.items() if (rest := tuple(word for word in held if word != "4500"))
    }


def test_no_more_rows_are_kept_than_there_is_room_for(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MOST_KEPT", 3_000)
    put(store, some("yet another"))
    for word in WORDS:
        by_words(store, word, Filter(), EVERYTHING, 5)
        kept = store._postings_at_hand()
        assert sum(len(one.rows) for one in kept._kept.values()) == kept._rows <= 3_000
    assert kept._kept


def by_words(
    store: SqliteStore, question: str, filter: Filter, audience: Audience, limit: int
) -> list[tuple[str, float]]:
    found: Candidates = store.candidates(question, VECTOR, filter, audience, now=NOW, limit=limit)
    return [(found.memories[row], float(found.word_scores[row])) for row in found.by_words]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    read: list[str] = []
    reading = postings._read
    monkeypatch.setattr(postings, "_read", lambda con, stems, *rest: read.extend(stems) or reading(con, stems, *rest))
    yield read
