"""What a store promises about vectors of a second model, as tests. Part of `suite.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.stores.promises.memories import Store
from scrubjay.values.memory import Audience, Filter, Memory, Scope, Sight, Status
from tests.stores.contract.samples import (
    CLOSE,
    EVERY_STATE,
    EVERYTHING,
    NOTHING,
    NOW,
    QUERY,
    at_cosine,
    changed,
    create_spaces,
    ids,
    ids_of,
    nearest,
    purge,
    put,
    put_away,
    some,
    take,
)

SECOND = "second-1"


def add_second(store: Store, memory: Memory, *vectors: Vector, model: str = SECOND) -> bool:
    with store.writing() as tx:
        return tx.add_vectors(
            memory.id, version=memory.version, first_part=0, vectors=vectors, parts=len(vectors), model=model
        )


def second_nearest(store: Store, filter: Filter = Filter(), *, model: str = SECOND) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.nearest(QUERY, filter, EVERYTHING, now=NOW, limit=100, model=model))


def both(store: Store, *, first: float = 0.1, second: Sequence[float] = (0.9,), **fields: object) -> Memory:
    """A memory with vectors of both models, at these cosines to `QUERY`."""
    memory = put(store, some(**fields), [at_cosine(first)])
    assert add_second(store, memory, *map(at_cosine, second))
    return memory


class SecondVectorsContract:
    def test_each_model_finds_by_its_own_vectors(self, store: Store) -> None:
        near = both(store, first=0.1, second=[0.9])
        far = both(store, first=0.9, second=[0.1])

        assert second_nearest(store) == [near.id, far.id]
        assert nearest(store) == [far.id, near.id]
        assert store.cosines(QUERY, [near.id, far.id], model=SECOND) == {
            near.id: pytest.approx(0.9, abs=CLOSE),
            far.id: pytest.approx(0.1, abs=CLOSE),
        }

    def test_a_memory_without_them_is_left_out(self, store: Store) -> None:
        plain = put(store, some())
        near = both(store)

        assert second_nearest(store) == [near.id]
        assert store.cosines(QUERY, [plain.id], model=SECOND) == {}
        assert store.cosines(QUERY, [], model=SECOND) == {}

    def test_those_of_another_model_are_never_compared(self, store: Store) -> None:
        memory = both(store)

        assert second_nearest(store, model="second-2") == []
        assert store.cosines(QUERY, [memory.id], model="second-2") == {}

    def test_a_memory_counts_by_its_best_part(self, store: Store) -> None:
        long, short = both(store, second=[0.1, 0.8, 0.2]), both(store, second=[0.5])

        assert second_nearest(store) == [long.id, short.id]
        assert store.cosines(QUERY, [long.id], model=SECOND) == {long.id: pytest.approx(0.8, abs=CLOSE)}

    def test_filter_and_audience_apply_before_the_limit(self, store: Store) -> None:
        create_spaces(store, "work")
        for _ in range(5):
            both(store, second=[0.99])
        there = both(store, second=[0.5], space="work", tags=("tea",))
        seen = Audience("ann", (Scope("work", Sight.ALL),))

        found = store.nearest(QUERY, Filter(), seen, now=NOW, limit=2, model=SECOND)
        tagged = store.nearest(QUERY, Filter(tags=frozenset({"tea"})), EVERYTHING, now=NOW, limit=2, model=SECOND)

        assert ids(found) == ids(tagged) == [there.id]
        assert store.nearest(QUERY, Filter(), NOTHING, now=NOW, limit=2, model=SECOND) == []

    def test_a_changed_text_has_none_until_they_are_made_again(self, store: Store) -> None:
        memory = both(store)

        put(store, replace(memory, content="Something else", version=2), [QUERY])

        assert second_nearest(store) == []
        assert ids_of(store.upkeep.lacking_second(SECOND, limit=9)) == [memory.id]

    def test_other_changes_leave_them(self, store: Store) -> None:
        memory = both(store)

        changed(store, memory, importance=0.9)

        assert second_nearest(store) == [memory.id]

    def test_vectors_of_a_former_text_are_not_written(self, store: Store) -> None:
        memory = put(store, some("Before"))
        put(store, replace(memory, content="After", version=2), [QUERY])

        assert not add_second(store, memory, QUERY)
        assert second_nearest(store) == []

    def test_written_twice_they_are_those_of_the_second_time(self, store: Store) -> None:
        memory = both(store, second=[0.9, 0.8])

        add_second(store, memory, at_cosine(0.2), model="second-2")

        assert second_nearest(store) == []
        assert store.cosines(QUERY, [memory.id], model="second-2") == {memory.id: pytest.approx(0.2, abs=CLOSE)}

    def test_they_are_erased_with_their_memory(self, store: Store) -> None:
        memory = both(store)

        purge(store, memory.id)

        assert second_nearest(store, Filter(states=EVERY_STATE)) == []
        assert not add_second(store, memory, QUERY)

    @pytest.mark.parametrize("kept", [True, False])
    def test_an_archived_memory_keeps_them_if_it_keeps_its_vectors(self, store: Store, kept: bool) -> None:
        memory = both(store, status=Status.ARCHIVED)

        put_away(store, memory, keep_vectors=kept)

        assert second_nearest(store, Filter(states=EVERY_STATE)) == [memory.id] * kept
        assert store.upkeep.lacking_second(SECOND, limit=9) == []

    def test_those_that_lack_them_come_in_order_of_arrival(self, store: Store) -> None:
        first, _, third = put(store, some()), both(store), put(store, some("Another"))
        put(store, some("Gone", status=Status.DELETED))

        assert ids_of(store.upkeep.lacking_second(SECOND, limit=9)) == [first.id, third.id]
        assert ids_of(store.upkeep.lacking_second(SECOND, limit=1)) == [first.id]
        assert ids_of(store.upkeep.lacking_second(SECOND, after=first.seq, limit=9)) == [third.id]
        assert store.upkeep.count_lacking_second(SECOND) == 2
        assert store.upkeep.count_lacking_second("second-2") == 3

    def test_they_travel_if_they_are_asked_for(self, store: Store) -> None:
        memory = both(store, second=[0.9, 0.2])

        [told] = store.sync.replicas([memory.id], EVERYTHING, vectors=True, second=SECOND)
        [other] = store.sync.replicas([memory.id], EVERYTHING, vectors=True, second="second-2")

        assert np.allclose(np.array(told.second), [at_cosine(0.9), at_cosine(0.2)], atol=CLOSE)
        assert len(told.vectors) == 1
        assert other.second == ()

    def test_a_replica_with_another_text_has_none(self, store: Store) -> None:
        memory = both(store)
        [replica] = store.sync.replicas([memory.id], EVERYTHING)
        moved = replace(memory, content="Changed elsewhere", version=2, hlc=memory.hlc + 1, origin="elsewhere")

        take(store, replace(replica, memory=moved), [QUERY])

        assert second_nearest(store) == []

    def test_a_transaction_sees_what_it_wrote(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, model=SECOND)

            assert ids(tx.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9, model=SECOND)) == [memory.id]
