"""What a store promises about lists: who sees what, filters, order, pages, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.stores.promises.memories import Position, Store
from scrubjay.values.callers import Audience, Provenance, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Kind, Memory, Source, State, Status, new_id
from scrubjay.values.search import Filter, Order
from tests.stores.contract.samples import (
    EVERYTHING,
    NOTHING,
    NOW,
    QUERY,
    at_cosine,
    create_spaces,
    ids,
    later,
    listed,
    matched,
    nearest,
    put,
    put_all,
    sees,
    some,
)

# A memory that differs from `some()` in everything a filter can ask for, and each filter that finds it.
SPECIAL: dict[str, Any] = {
    "accessed_at": later(-5),
    "kind": Kind.DECISION,
    "category": Category.GOAL,
    "tags": ("given",),
    "auto_tags": ("found",),
    "created_at": later(10),
    "importance": 0.9,
    "context": Context(user_id="bob", conversation_id="c1", session_id="s1"),
    "access_level": AccessLevel.PUBLIC,
    "source": Source.EXPLICIT,
    "provenance": Provenance(client="editor", caller="eve", transport="http"),
    "flags": ("secret",),
    "also": ("where it rains",),
    "topic": "auth",
    "path": "work/notes/special",
    "id": "mem_special",
}

FILTERS: dict[str, Filter] = {
    "kinds": Filter(kinds=frozenset({Kind.DECISION, Kind.CHECKPOINT})),
    "categories": Filter(categories=frozenset({Category.GOAL})),
    "given tag": Filter(tags=frozenset({"given", "unknown"})),
    "found tag": Filter(tags=frozenset({"found"})),
    "created_since": Filter(created_since=later(10)),
    "created_until": Filter(created_until=later(10), created_since=later(5)),
    "accessed_until": Filter(accessed_until=later(-5)),
    "min_importance": Filter(min_importance=0.9),
    "importance range": Filter(min_importance=0.6, max_importance=0.9),
    "user_id": Filter(user_id="bob"),
    "conversation_id": Filter(conversation_id="c1"),
    "session_id": Filter(session_id="s1"),
    "access_levels": Filter(access_levels=frozenset({AccessLevel.PUBLIC})),
    "source": Filter(source=Source.EXPLICIT),
    "belongs_to": Filter(belongs_to="c1"),
    "client": Filter(client="editor"),
    "caller": Filter(caller="eve"),
    "transport": Filter(transport="http"),
    "flag": Filter(flag="secret"),
    "phrased": Filter(phrased=True),
    "any flag": Filter(flag="any"),
    "topic": Filter(topic="auth"),
    "folder": Filter(path_prefix="work"),
    "folder, slashed": Filter(path_prefix="work/notes/"),
    "path itself": Filter(path_prefix="work/notes/special"),
    "ids": Filter(ids=frozenset({"mem_special", "mem_unknown"})),
    "beginning of an id": Filter(id_prefix="mem_specia"),
    "whole id as a beginning": Filter(id_prefix="mem_special"),
    "many at once": Filter(kinds=frozenset({Kind.DECISION}), tags=frozenset({"given"}), user_id="bob", topic="auth"),
}

MISSES: dict[str, Filter] = {
    "other user": Filter(user_id="nobody"),
    "other conversation": Filter(conversation_id="c2"),
    "other conversation to belong to": Filter(belongs_to="c2"),
    "other caller": Filter(caller="mallory"),
    "other flag": Filter(flag="instruction"),
    "no phrases": Filter(phrased=False),
    "other beginning of an id": Filter(id_prefix="mem_special2"),
    "other folder": Filter(path_prefix="wor"),
    "folder of the same beginning": Filter(path_prefix="work/note"),
    "no kind": Filter(kinds=frozenset()),
    "no tag": Filter(tags=frozenset()),
    "no category": Filter(categories=frozenset()),
    "no access level": Filter(access_levels=frozenset()),
    "no state": Filter(states=frozenset()),
    "no id": Filter(ids=frozenset()),
    "one condition of two": Filter(topic="auth", user_id="local"),
    "too early": Filter(created_until=later(-1)),
    "too unimportant": Filter(max_importance=0.1),
}


class ListsContract:
    # --- audience ---

    def test_an_audience_without_scopes_sees_nothing(self, store: Store) -> None:
        memory = put(store, some(access_level=AccessLevel.PUBLIC))

        assert store.get([memory.id], NOTHING) == store.list(Filter(), NOTHING, now=NOW) == []
        assert store.match("seattle", Filter(), NOTHING, now=NOW, limit=9) == []
        assert store.nearest(QUERY, Filter(), NOTHING, now=NOW, limit=9) == []
        assert store.count(Filter(), NOTHING, now=NOW) == 0

    @pytest.mark.parametrize(
        ("sight", "visible"),
        [
            (Sight.PUBLIC, {"public"}),
            (Sight.SHARED, {"public", "shared"}),
            (Sight.OWN, {"public", "shared", "own"}),
            (Sight.ALL, {"public", "shared", "own", "foreign"}),
        ],
    )
    @pytest.mark.parametrize("space", ["default", None])
    def test_each_sight_shows_its_part(self, store: Store, sight: Sight, space: str | None, visible: set[str]) -> None:
        for name, level, user in (
            ("public", AccessLevel.PUBLIC, "bob"),
            ("shared", AccessLevel.SHARED, "bob"),
            ("own", AccessLevel.PRIVATE, "ann"),
            ("foreign", AccessLevel.PRIVATE, "bob"),
        ):
            put(store, some(name, id=name, access_level=level, context=Context(user_id=user)))

        shown = store.list(Filter(), Audience("ann", (Scope(space, sight),)), now=NOW)

        assert set(ids(shown)) == visible

    def test_a_user_unknown_to_the_store_owns_nothing(self, store: Store) -> None:
        put(store, some(access_level=AccessLevel.PRIVATE))

        assert store.list(Filter(), Audience("stranger", (Scope(None, Sight.OWN),)), now=NOW) == []

    def test_an_unknown_space_shows_nothing(self, store: Store) -> None:
        put(store, some())

        assert store.list(Filter(), Audience("local", (Scope("nowhere", Sight.ALL),)), now=NOW) == []

    def test_each_space_is_seen_with_its_own_sight(self, store: Store) -> None:
        create_spaces(store, "home", "work")
        put_all(store, [some(id="a", space="home"), some(id="b", space="work"), some(id="c")])
        audience = Audience("local", (Scope("home", Sight.ALL), Scope("work", Sight.PUBLIC)))

        assert ids(store.list(Filter(), audience, now=NOW)) == ["a"]

    @given(data=st.data())
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    def test_no_read_ever_shows_what_is_outside_the_audience(self, store: Store, data: st.DataObject) -> None:
        """Random data of two users in two spaces, and every way of reading it."""
        spaces = [f"one-{new_id()}", f"two-{new_id()}"]
        create_spaces(store, *spaces)
        rows = data.draw(
            st.lists(
                st.tuples(st.sampled_from(spaces), st.sampled_from(["ann", "bob"]), st.sampled_from(AccessLevel)),
                min_size=1,
                max_size=8,
            )
        )
        audience = Audience(
            data.draw(st.sampled_from(["ann", "bob", "eve", ""])),
            tuple(data.draw(st.lists(st.builds(Scope, st.sampled_from(spaces), st.sampled_from(Sight)), max_size=3))),
        )
        memories = put_all(
            store,
            (
                some(f"mark {number}", space=space, access_level=level, context=Context(user_id=user))
                for number, (space, user, level) in enumerate(rows)
            ),
        )
        visible = {memory.id for memory in memories if sees(audience, memory)}

        assert set(ids(store.get(ids(memories), audience))) == visible
        assert set(ids(store.list(Filter(), audience, now=NOW))) == visible
        assert store.count(Filter(), audience, now=NOW) == len(visible)
        assert set(ids(store.match("mark", Filter(), audience, now=NOW, limit=99))) == visible
        assert set(ids(store.nearest(QUERY, Filter(), audience, now=NOW, limit=99))) == visible
        twins = {twin.id for memory in memories for twin in store.history.same_text(memory.content.encode(), audience)}
        assert twins & set(ids(memories)) == visible
        with store.writing() as tx:
            assert set(ids(tx.nearest(QUERY, Filter(), audience, now=NOW, limit=99))) == visible

    # --- filters ---

    @pytest.mark.parametrize("name", FILTERS)
    def test_a_filter_admits_what_it_names(self, store: Store, name: str) -> None:
        put(store, some("User lives in Seattle"))
        special = put(store, some("User lives in Seattle", **SPECIAL))

        assert listed(store, FILTERS[name]) == [special.id]
        assert matched(store, "seattle", FILTERS[name]) == [special.id]
        assert nearest(store, FILTERS[name]) == [special.id]
        assert store.count(FILTERS[name], EVERYTHING, now=NOW) == 1

    @pytest.mark.parametrize("name", MISSES)
    def test_a_filter_leaves_out_what_it_does_not_name(self, store: Store, name: str) -> None:
        put(store, some("User lives in Seattle", **SPECIAL))

        assert listed(store, MISSES[name]) == matched(store, "seattle", MISSES[name]) == []
        assert {tuple(listed(store, MISSES[name], order=order)) for order in Order} == {()}
        assert nearest(store, MISSES[name]) == []
        assert store.count(MISSES[name], EVERYTHING, now=NOW) == 0

    def test_every_filter_is_tried_here(self) -> None:
        named = {field.name for field in fields(Filter) for one in FILTERS.values() if _given(one, field.name)}

        assert named | {"states", "expired", "max_importance"} == {field.name for field in fields(Filter)}

    def test_filters_apply_before_the_cut(self, store: Store) -> None:
        """One memory that meets the filter is found behind 500 better ones that do not."""
        put_all(store, (some(f"seattle seattle {number}") for number in range(500)), [at_cosine(0.9)])
        special = put(store, some("User lives in Seattle, a rainy city", **SPECIAL), [at_cosine(0.1)])

        by_words = {name: matched(store, "seattle", wanted, limit=1) for name, wanted in FILTERS.items()}
        by_meaning = {name: nearest(store, wanted, limit=1) for name, wanted in FILTERS.items()}

        assert by_words == by_meaning == {name: [special.id] for name in FILTERS}

    def test_an_audience_applies_before_the_cut(self, store: Store) -> None:
        create_spaces(store, "mine")
        put_all(store, (some(f"seattle seattle {number}") for number in range(500)), [at_cosine(0.9)])
        mine = put(store, some("User lives in Seattle", space="mine"), [at_cosine(0.1)])
        audience = Audience("local", (Scope("mine", Sight.SHARED),))

        assert ids(store.match("seattle", Filter(), audience, now=NOW, limit=1)) == [mine.id]
        assert ids(store.nearest(QUERY, Filter(), audience, now=NOW, limit=1)) == [mine.id]

    @pytest.mark.parametrize(
        ("expired", "found"),
        [
            (False, ["living", "never"]),
            (True, ["expired", "just expired"]),
            (None, ["expired", "just expired", "living", "never"]),
        ],
    )
    def test_expiry_is_told_by_the_given_time(self, store: Store, expired: bool | None, found: list[str]) -> None:
        for name, at in {"never": None, "living": later(1), "just expired": NOW, "expired": later(-1)}.items():
            put(store, some("seattle", id=name, expires_at=at))
        wanted = Filter(expired=expired)

        assert sorted(listed(store, wanted)) == found
        assert sorted(matched(store, "seattle", wanted)) == found
        assert sorted(nearest(store, wanted)) == found

    # --- lists ---

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    def test_a_list_is_in_order_and_equal_ones_by_arrival(self, store: Store, order: Order, descending: bool) -> None:
        memories = put_all(store, _varied())

        found = store.list(Filter(), EVERYTHING, now=NOW, order=order, descending=descending, limit=99)

        expected = sorted(memories, key=lambda memory: _place(memory, order), reverse=descending)
        assert ids(found) == ids(expected)

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    def test_a_list_goes_on_behind_a_position(self, store: Store, order: Order, descending: bool) -> None:
        put_all(store, _varied())
        whole = listed(store, order=order, descending=descending, limit=99)

        pages: list[str] = []
        after = None
        while page := store.list(
            Filter(), EVERYTHING, now=NOW, order=order, descending=descending, limit=4, after=after
        ):
            pages += ids(page)
            after = Position.of(page[-1], order)

        assert pages == whole

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    @pytest.mark.parametrize("flushed", [True, False])
    def test_a_list_over_spaces_and_states_is_one_list(
        self, store: Store, order: Order, descending: bool, flushed: bool
    ) -> None:
        """Spaces seen twice, in part or all at once, states that are merged, reads that are not written yet."""
        create_spaces(store, "work", "far")
        memories = put_all(
            store,
            (
                replace(
                    memory,
                    space=("default", "work", "far")[n % 3],
                    superseded_by="x" if n % 4 == 1 else None,
                    status=Status.ARCHIVED if n % 5 == 4 else Status.ACTIVE,
                    access_level=AccessLevel.PRIVATE if n % 2 else AccessLevel.SHARED,
                )
                for n, memory in enumerate(_varied() * 3)
                for memory in [replace(memory, id=f"mem_{n}", path=f"p/{n}")]
            ),
        )
        store.tally.count({f"mem_{n}": n for n in range(1, 30, 4)}, at=later(20))
        if flushed:
            store.flush_reads()
        here = (Scope("default", Sight.ALL), Scope("work", Sight.PUBLIC), Scope("work", Sight.SHARED))
        states = frozenset({State.ACTIVE, State.SUPERSEDED})
        for scopes in (here, (Scope(None, Sight.SHARED),), (Scope(None, Sight.SHARED), *here)):
            audience = Audience("local", scopes)
            known = store.get(ids(memories), EVERYTHING)
            expected = [memory for memory in known if memory.state in states and sees(audience, memory)]
            expected.sort(key=lambda memory: _place(memory, order), reverse=descending)

            pages: list[str] = []
            after = None
            while page := store.list(
                Filter(states=states), audience, now=NOW, order=order, descending=descending, limit=5, after=after
            ):
                pages += ids(page)
                after = Position.of(page[-1], order)

            assert pages == ids(expected)
            assert store.count(Filter(states=states), audience, now=NOW) == len(expected) > 5

    def test_what_is_stored_meanwhile_neither_shifts_nor_repeats_a_page(self, store: Store) -> None:
        put_all(store, (some(created_at=later(n)) for n in range(6)))
        whole = listed(store)
        first = store.list(Filter(), EVERYTHING, now=NOW, limit=3)

        put(store, some(created_at=later(99)))
        second = listed(store, after=Position.of(first[-1], Order.CREATED), limit=3)

        assert ids(first) + second == whole

    def test_limit_and_offset_cut_a_list(self, store: Store) -> None:
        put_all(store, (some(created_at=later(n)) for n in range(6)))
        whole = listed(store)

        assert listed(store, limit=2, offset=3) == whole[3:5]
        assert listed(store, offset=6) == listed(store, limit=0) == []

    def test_count_is_the_length_of_the_whole_list(self, store: Store) -> None:
        put_all(store, (some(category=Category.GOAL if n % 3 else Category.FACT) for n in range(30)))
        goals = Filter(categories=frozenset({Category.GOAL}))

        assert store.count(goals, EVERYTHING, now=NOW) == len(listed(store, goals, limit=99)) == 20


def _given(filter: Filter, name: str) -> bool:
    return bool(getattr(filter, name) != getattr(Filter(), name))


def _varied() -> list[Memory]:
    """Memories in no order, with ties."""
    return [
        some(
            "x" * (1 + (7 * n) % 4),
            created_at=later((5 * n) % 4),
            updated_at=later((3 * n) % 5),
            accessed_at=later(10 + (7 * n) % 3),
            access_count=(11 * n) % 3,
            importance=((3 * n) % 4) / 10,
        )
        for n in range(11)
    ]


def _place(memory: Memory, order: Order) -> tuple[Any, int]:
    value = len(memory.content) if order is Order.LENGTH else getattr(memory, order)
    return value, memory.seq
