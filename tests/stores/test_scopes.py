"""Which memories a filter admits is remembered, and stays what the rows say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite import scopes
from scrubjay.stores.sqlite.filters import restricted
from scrubjay.stores.sqlite.scopes import Scopes
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from tests.stores.contract.samples import EVERYTHING, put, some

MEMBER = Audience("ann", (Scope("default", Sight.OWN),))
GOALS = Filter(categories=frozenset({Category.GOAL}))
FILTERS = (
    GOALS,
    Filter(min_importance=0.6),
    Filter(conversation_id="talk"),
    Filter(categories=frozenset({Category.GOAL, Category.FACT}), max_importance=0.5),
    Filter(tags=frozenset({"rain"})),
)


@contextmanager
def two_at_work(path: Path) -> Iterator[tuple[Engine, Engine]]:
    with (
        engine_on(SqliteStore(path), HashingEmbedder()) as one,
        engine_on(SqliteStore(path), HashingEmbedder()) as other,
    ):
        yield one, other


def members(store: SqliteStore, known: Scopes, filter: Filter, audience: Audience = EVERYTHING) -> list[int]:
    with store._reading() as con:
        restriction = restricted(con, filter, audience, now=utc_now())
        return [] if restriction is None else sorted(known.members(con, restriction).tolist())


def rows(store: SqliteStore, filter: Filter, audience: Audience = EVERYTHING) -> list[int]:
    """What the same look into the store gives when nothing is remembered."""
    return members(store, Scopes(), filter, audience)


def test_members_are_those_that_rows_say_after_any_acts_of_several_stores(tmp_path: Path) -> None:
    chance, known, ids = random.Random(5), Scopes(), list[str]()
    with two_at_work(tmp_path / "memories.db") as jays, closing(SqliteStore(tmp_path / "memories.db")) as reader:
        for turn in range(120):
            jay, act = chance.choice(jays), chance.choice(("store", "store", "category", "importance", "forget", "tag"))
            one = chance.choice(ids) if ids else None
            if act == "store" or one is None:
                level = chance.choice((AccessLevel.SHARED, AccessLevel.PRIVATE))
                talk = chance.choice((None, "talk"))
                kept = jay.store(
                    f"harbour {turn}", access_level=level, conversation_id=talk, tags=("rain",) * (turn % 2)
                )
                ids.append(kept.memory.id)
            elif act == "category":
                jay.update(one, category=chance.choice((Category.GOAL, Category.FACT, Category.PREFERENCE)))
            elif act == "importance":
                jay.update(one, importance=chance.random())
            elif act == "tag":
                jay.update(one, tags=chance.choice(((), ("rain",))))
            else:
                jay.forget(one)
                ids.remove(one)
            for filter in FILTERS:
                for audience in (EVERYTHING, MEMBER):
                    assert members(reader, known, filter, audience) == rows(reader, filter, audience), (turn, filter)
        assert len(rows(reader, GOALS)) > 2


def test_what_expires_stays_a_member_and_is_not_found(tmp_path: Path) -> None:
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
        soon = utc_now() + timedelta(milliseconds=1)
        jay.store("The harbour opens at noon", category=Category.GOAL, expires_at=soon)

        assert len(members(jay.records, Scopes(), GOALS)) == 1
        assert not jay.search("harbour", filter=GOALS).hits


def test_a_filter_is_looked_up_once_and_what_changed_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_on(SqliteStore(tmp_path / "memories.db"), HashingEmbedder()) as jay:
        known, store = Scopes(), jay.records
        for number in range(5):
            jay.store(f"harbour {number}", category=Category.GOAL)
        first, asked, found = members(store, known, GOALS), list[str](), scopes._found
        monkeypatch.setattr(scopes, "_found", lambda con, those, *rest: asked.append(those) or found(con, those, *rest))

        assert members(store, known, GOALS) == first
        assert not asked
        jay.store("harbour 6", category=Category.GOAL)
        assert len(members(store, known, GOALS)) == 6
        assert all("memories_by_change" in those for those in asked)
        monkeypatch.setattr(scopes, "MOST_CHANGED", 1)
        jay.store_many([{"content": f"harbour {number}", "category": Category.GOAL} for number in range(7, 10)])
        assert len(members(store, known, GOALS)) == 9


def test_an_older_store_in_its_place_is_read_again(tmp_path: Path) -> None:
    known = Scopes()
    for name, count in (("new", 5), ("old", 2)):
        with engine_on(SqliteStore(tmp_path / name), HashingEmbedder()) as jay:
            for number in range(count):
                jay.store(f"harbour {number}", category=Category.GOAL)
            assert len(members(jay.records, known, GOALS)) == count


def test_no_more_is_kept_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scopes, "MOST_KEPT", 10)
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        for number in range(8):
            put(store, some(f"harbour {number}", importance=number / 10))
        known = Scopes()
        for least in np.arange(0, 0.8, 0.1):
            assert members(store, known, Filter(min_importance=float(least))) == rows(
                store, Filter(min_importance=float(least))
            )
            assert sum(len(one.memories) for one in known._kept.values()) == known._memories <= 10
        assert members(store, known, Filter(min_importance=0.0)) == rows(store, Filter(min_importance=0.0))


def test_filters_of_ever_other_times_are_not_kept_for_ever(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        known = Scopes()
        for number in range(3 * scopes.MOST_SCOPES):
            members(store, known, Filter(created_since=utc_now() + timedelta(seconds=number)))

        assert len(known._kept) == scopes.MOST_SCOPES


@pytest.mark.parametrize("filter", [Filter(belongs_to="talk"), Filter(accessed_until=utc_now())])
def test_what_changes_without_the_memory_is_not_remembered(tmp_path: Path, filter: Filter) -> None:
    """Injecting a memory into a conversation and reading it leave the memory as it is."""
    with closing(SqliteStore(tmp_path / "memories.db")) as store:
        put(store, some("harbour"))
        known = Scopes()
        members(store, known, filter)

        assert not known._kept
