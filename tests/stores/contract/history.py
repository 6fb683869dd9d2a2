"""What a store promises about former states, links and events, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Provenance
from scrubjay.values.memory import LinkKind, State, Status
from scrubjay.values.search import Filter
from tests.stores.contract.samples import (
    CLOSE,
    QUERY,
    a_link,
    an_event,
    at_cosine,
    changed,
    create_spaces,
    got,
    later,
    listed,
    matched,
    nearest,
    purge,
    put,
    relate,
    some,
)


class HistoryContract:
    # --- versions ---

    def test_a_higher_version_replaces_the_one_before_it(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))

        newer = put(store, replace(memory, content="User lives in Austin", version=2))

        assert got(store, memory.id) == newer
        assert newer.seq == memory.seq
        assert listed(store) == [memory.id]

    def test_a_former_state_is_kept_with_who_changed_it_and_why(self, store: Store) -> None:
        first = put(store, some(tags=("a",), metadata={"x": 1}))
        second = put(store, replace(first, content="two", updated_at=later(1), version=2))
        put(store, replace(second, content="three", updated_at=later(2), version=3))

        newest, oldest = store.history.versions(first.id)

        assert (newest.memory, oldest.memory) == (second, first)
        assert (newest.replaced_at, newest.replaced_by, newest.reason) == (later(2), "ann", "because")
        assert newest.id != oldest.id

    def test_what_is_owed_is_due_once_it_is_compared_and_goes_with_an_erased_memory(self, store: Store) -> None:
        waits, ready, erased = put(store, some(), (), parts=1), put(store, some()), put(store, some())
        with store.writing() as tx:
            for memory in (waits, ready, erased):
                tx.history.owe(memory.id, user="ann", client="editor")

        assert store.history.owed(user="ann", client="editor") == [ready.id, erased.id]
        assert store.history.owed(user="ann", client="agent") == store.history.owed(user="bob", client="editor") == []

        with store.writing() as tx:
            tx.upkeep.put_off(waits.id, judged=True)
            tx.history.end_owing(ready.id)
        purge(store, erased.id)
        assert store.history.owed(user="ann", client="editor") == [waits.id]

    @pytest.mark.parametrize("version", [1, 2, 4, 9])
    def test_a_version_that_does_not_follow_is_a_conflict(self, store: Store, version: int) -> None:
        memory = changed(store, put(store, some()))

        with pytest.raises(Conflict):
            put(store, replace(memory, content="other", version=version))

        assert got(store, memory.id) == memory

    def test_a_memory_of_another_store_arrives_with_its_version(self, store: Store) -> None:
        memory = put(store, some(version=7))

        assert got(store, memory.id).version == 7
        assert store.history.versions(memory.id) == []
        assert put(store, replace(memory, content="changed here", version=8)).version == 8

    def test_two_who_change_the_same_version_do_not_overwrite_each_other(self, store: Store) -> None:
        memory = put(store, some())
        put(store, replace(memory, content="mine", version=2))

        with pytest.raises(Conflict):
            put(store, replace(memory, content="yours", version=2))

        assert got(store, memory.id).content == "mine"

    def test_a_new_text_is_found_and_the_old_one_is_not(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"), [at_cosine(0.9)])

        put(store, replace(memory, content="User lives in Austin", title="Austin", version=2), [at_cosine(0.1)])

        assert matched(store, "austin") == [memory.id]
        assert matched(store, "seattle") == []
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.1, abs=CLOSE)

    def test_without_new_vectors_words_and_vectors_stay(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"), [at_cosine(0.9), at_cosine(0.5)])

        changed(store, memory, importance=0.9, tags=("new",))

        assert matched(store, "seattle") == nearest(store) == listed(store, Filter(tags=frozenset({"new"})))
        assert store.upkeep.pending(limit=9) == []

    def test_the_state_that_filters_see_follows_the_memory(self, store: Store) -> None:
        memory = put(store, some())
        states = []
        for change in (
            {"superseded_by": "other"},
            {"status": Status.ARCHIVED},
            {"status": Status.DELETED},
            {"status": Status.ACTIVE, "superseded_by": None},
        ):
            memory = changed(store, memory, **change)
            states += [state for state in State if listed(store, Filter(states=frozenset({state})))]

        assert states == [State.SUPERSEDED, State.ARCHIVED, State.DELETED, State.ACTIVE]

    # --- links ---

    def test_links_are_found_from_both_sides_oldest_first(self, store: Store) -> None:
        early = a_link("a", "b", kind=LinkKind.SUPERSEDES, score=0.5, given=False, reason="r", hlc=7, origin="o")
        late = a_link("c", "a", created_at=later(1))
        relate(store, late, early, a_link("x", "y"))

        assert store.history.links(["a"]) == [early, late]
        assert store.history.links(["b", "c"]) == [early, late]
        assert store.history.links(["a"], kinds=frozenset({LinkKind.RELATED})) == [late]
        assert store.history.links([]) == store.history.links(["a"], kinds=frozenset()) == []

    def test_links_within_some_memories_have_both_ends_there(self, store: Store) -> None:
        one, later_one = a_link("a", "b"), a_link("c", "a", created_at=later(1))
        relate(store, one, a_link("a", "x"), a_link("x", "y"))
        with store.one_reader():
            assert store.history.links(["a"], within=["a", "b", "c"]) == [one]
            assert store.history.links(["a", "c"], within=["a", "c"]) == []
        relate(store, later_one)
        with store.one_reader():
            assert store.history.links(["a"], within=["a", "b", "c"]) == [one, later_one]
        assert store.history.links(["c"], within=["a", "b", "c"]) == [later_one]

    def test_a_link_of_the_same_kind_replaces_the_other(self, store: Store) -> None:
        relate(store, a_link("a", "b", state="open"))
        newer = a_link("a", "b", state="kept", reason="asked")
        other = a_link("a", "b", kind=LinkKind.DEBATES)
        relate(store, newer, other)

        assert store.history.links(["a"]) == [newer, other]

    # --- events ---

    def test_events_are_numbered_per_space_without_holes(self, store: Store) -> None:
        create_spaces(store, "work")
        for space in ("default", "work", "default"):
            with store.writing() as tx:
                tx.history.record(an_event(space=space))
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- a number that is given back
            tx.history.record(an_event())
            raise ZeroDivisionError
        with store.writing() as tx:
            assert [tx.history.record(an_event()).number, tx.history.record(an_event()).number] == [3, 4]

        assert [event.number for event in store.history.events("default")] == [1, 2, 3, 4]
        assert [event.number for event in store.history.events("work")] == [1]

    def test_an_event_comes_back_as_it_was(self, store: Store) -> None:
        event = an_event(
            memory="m",
            action="updated",
            fields=("tags", "title"),
            reason="why",
            provenance=Provenance(client="c", caller="k", transport="http", dialect="mama"),
        )

        with store.writing() as tx:
            recorded = tx.history.record(event)

        assert store.history.events("default") == [recorded] == [replace(event, number=1)]

    def test_events_go_on_behind_a_number(self, store: Store) -> None:
        with store.writing() as tx:
            for _ in range(5):
                tx.history.record(an_event())

        assert [event.number for event in store.history.events("default", after=2, limit=2)] == [3, 4]
        assert store.history.events("nowhere") == []

    def test_an_event_belongs_to_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.history.record(an_event(space="nowhere"))
