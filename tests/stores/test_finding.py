"""However it is narrowed down, a filtered search finds what a search of everything finds and the filter admits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from scrubjay.stores.sqlite import filters, words
from scrubjay.stores.sqlite import vectors as sqlite_vectors
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Context
from scrubjay.values.search import Filter
from tests.stores.contract.samples import EVERYTHING, NOW, put_in, some, unit

MEMORIES = 1_200  # from 1,000 rows on FTS5's own formula weighs words, if nothing is hidden
WORDS = ["harbour", "cello", "rain", "tea", "ladder", "lake", "winter", "Anna", "Brandt", "key", "bread"]
MEMBER = Audience("ann", (Scope("default", Sight.OWN),))
FILTERS = {
    "none": Filter(),
    "few of a user": Filter(user_id="bob"),
    "few of a tag": Filter(tags=frozenset({"rare"})),
    "few by importance": Filter(min_importance=0.97),
    "half": Filter(min_importance=0.5),
    "a path": Filter(path_prefix="work"),
    "nothing": Filter(user_id="nobody"),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    chance = random.Random(7)
    with closing(SqliteStore(tmp_path_factory.mktemp("finding") / "memories.db")) as made:
        with made.writing() as tx:
            for number in range(MEMORIES):
                length = 900 if number % 300 == 0 else 4
                one = some(
                    f"{' '.join(chance.choices([*WORDS, *(f'w{n}' for n in range(99))], k=length))} {number}",
                    importance=number % 100 / 100,
                    access_level=AccessLevel.PRIVATE if number % 7 == 0 else AccessLevel.SHARED,
                    context=Context(user_id="bob" if number % 7 == 0 or number % 90 == 0 else "ann"),
                    path=f"{'work' if number % 13 == 0 else 'home'}/{number}",
                    tags=("rare",) if number % 200 == 0 else (),
                )
                put_in(tx, one, [unit(number)])
        yield made


@pytest.mark.parametrize(
    "ways", ["the best first", "those that pass first where they are few", "always those that pass"]
)
@pytest.mark.parametrize("audience", [EVERYTHING, MEMBER])
@pytest.mark.parametrize("filter", FILTERS)
def test_a_filter_leaves_out_and_changes_nothing_else(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, filter: str, audience: Audience, ways: str
) -> None:
    chance, asked = random.Random(3), {"now": NOW, "limit": MEMORIES}
    admitted = {memory.id for memory in store.list(FILTERS[filter], audience, **asked)}
    if ways != "the best first":
        for module in (words, sqlite_vectors):
            monkeypatch.setattr(module, "MANY", 0)
    if ways == "always those that pass":
        monkeypatch.setattr(filters, "MOST_ADMITTED", 0)
    for turn in range(6):
        question = " ".join(chance.choices([*WORDS, "w7", "w11", "absent"], k=chance.choice((1, 2, 5))))
        limit = chance.choice((1, 5, 40))
        expected = (
            store.match(question, Filter(), audience, **asked),
            store.nearest(unit(turn), Filter(), audience, **asked),
        )

        found = (
            store.match(question, FILTERS[filter], audience, now=NOW, limit=limit),
            store.nearest(unit(turn), FILTERS[filter], audience, now=NOW, limit=limit),
        )

        for one, all_of_them in zip(found, expected, strict=True):
            assert one == [match for match in all_of_them if match.memory in admitted][:limit]
