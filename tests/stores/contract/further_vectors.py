"""What a store promises about vectors of further models, as tests. Part of `suite.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from scrubjay.embedders.base import Vector
from scrubjay.stores.promises.memories import FURTHER_MODELS, Store
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import Memory, Status
from scrubjay.values.search import Filter
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

FURTHER = "further-1"


def add_further(store: Store, memory: Memory, *vectors: Vector, model: str = FURTHER) -> bool:
    with store.writing() as tx:
        return tx.add_vectors(
            memory.id, version=memory.version, first_part=0, vectors=vectors, parts=len(vectors), model=model
        )


def further_nearest(store: Store, filter: Filter = Filter(), *, model: str = FURTHER) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.nearest(QUERY, filter, EVERYTHING, now=NOW, limit=100, model=model))


def both(store: Store, *, own: float = 0.1, further: Sequence[float] = (0.9,), **fields: object) -> Memory:
    """A memory with vectors of both models, at these cosines to `QUERY`."""
    memory = put(store, some(**fields), [at_cosine(own)])
    assert add_further(store, memory, *map(at_cosine, further))
    return memory


class FurtherVectorsContract:
    def test_each_model_finds_by_its_own_vectors(self, store: Store) -> None:
        near = both(store, own=0.1, further=[0.9])
        far = both(store, own=0.9, further=[0.1])

        assert further_nearest(store) == [near.id, far.id]
        assert nearest(store) == [far.id, near.id]
        assert store.cosines(QUERY, [near.id, far.id], model=FURTHER) == {
            near.id: pytest.approx(0.9, abs=CLOSE),
            far.id: pytest.approx(0.1, abs=CLOSE),
        }

    def test_a_memory_without_them_is_left_out(self, store: Store) -> None:
        plain = put(store, some())
        near = both(store)

        assert further_nearest(store) == [near.id]
        assert store.cosines(QUERY, [plain.id], model=FURTHER) == {}
        assert store.cosines(QUERY, [], model=FURTHER) == {}

    def test_those_of_another_model_are_never_compared(self, store: Store) -> None:
        memory = both(store)

        assert further_nearest(store, model="further-2") == []
        assert store.cosines(QUERY, [memory.id], model="further-2") == {}

    def test_a_memory_counts_by_its_best_part(self, store: Store) -> None:
        long, short = both(store, further=[0.1, 0.8, 0.2]), both(store, further=[0.5])

        assert further_nearest(store) == [long.id, short.id]
        assert store.cosines(QUERY, [long.id], model=FURTHER) == {long.id: pytest.approx(0.8, abs=CLOSE)}

    def test_filter_and_audience_apply_before_the_limit(self, store: Store) -> None:
        create_spaces(store, "work")
        for _ in range(5):
            both(store, further=[0.99])
        there = both(store, further=[0.5], space="work", tags=("tea",))
        seen = Audience("ann", (Scope("work", Sight.ALL),))

        found = store.nearest(QUERY, Filter(), seen, now=NOW, limit=2, model=FURTHER)
        tagged = store.nearest(QUERY, Filter(tags=frozenset({"tea"})), EVERYTHING, now=NOW, limit=2, model=FURTHER)

        assert ids(found) == ids(tagged) == [there.id]
        assert store.nearest(QUERY, Filter(), NOTHING, now=NOW, limit=2, model=FURTHER) == []

    def test_a_changed_text_has_none_until_they_are_made_again(self, store: Store) -> None:
        memory = both(store)

        put(store, replace(memory, content="Something else", version=2), [QUERY])

        assert further_nearest(store) == []
        assert ids_of(store.upkeep.lacking(FURTHER, limit=9)) == [memory.id]

    def test_other_changes_leave_them(self, store: Store) -> None:
        memory = both(store)

        changed(store, memory, importance=0.9)

        assert further_nearest(store) == [memory.id]

    def test_vectors_of_a_former_text_are_not_written(self, store: Store) -> None:
        memory = put(store, some("Before"))
        put(store, replace(memory, content="After", version=2), [QUERY])

        assert not add_further(store, memory, QUERY)
        assert further_nearest(store) == []

    def test_written_twice_they_are_those_of_the_second_time(self, store: Store) -> None:
        memory = both(store, further=[0.9, 0.8])

        add_further(store, memory, at_cosine(0.2))

        assert store.cosines(QUERY, [memory.id], model=FURTHER) == {memory.id: pytest.approx(0.2, abs=CLOSE)}

    def test_those_of_a_third_model_stand_beside_them_until_a_model_is_let_go(self, store: Store) -> None:
        memory = both(store, own=0.5, further=[0.9])
        add_further(store, memory, at_cosine(0.2), at_cosine(0.7), model="further-2")

        assert [store.cosines(QUERY, [memory.id], model=model) for model in (None, FURTHER, "further-2")] == [
            {memory.id: pytest.approx(cosine, abs=CLOSE)} for cosine in (0.5, 0.9, 0.7)
        ]
        with store.writing() as tx:
            tx.upkeep.keep_models(["further-2"])

        assert [*store.cosines(QUERY, [memory.id], model=FURTHER)] == []
        assert [*store.cosines(QUERY, [memory.id], model="further-2")] == [memory.id]
        assert [*store.cosines(QUERY, [memory.id])] == [memory.id]
        assert store.history.fact(FURTHER_MODELS) == '["further-2"]'
        assert store.check(deep=True).problems == ()

    def test_they_are_erased_with_their_memory(self, store: Store) -> None:
        memory = both(store)

        purge(store, memory.id)

        assert further_nearest(store, Filter(states=EVERY_STATE)) == []
        assert not add_further(store, memory, QUERY)

    @pytest.mark.parametrize("kept", [True, False])
    def test_an_archived_memory_keeps_them_if_it_keeps_its_vectors(self, store: Store, kept: bool) -> None:
        memory = both(store, status=Status.ARCHIVED)

        put_away(store, memory, keep_vectors=kept)

        assert further_nearest(store, Filter(states=EVERY_STATE)) == [memory.id] * kept
        assert store.upkeep.lacking(FURTHER, limit=9) == []

    def test_those_that_lack_them_come_in_order_of_arrival(self, store: Store) -> None:
        first, _, third = put(store, some()), both(store), put(store, some("Another"))
        put(store, some("Gone", status=Status.DELETED))

        assert ids_of(store.upkeep.lacking(FURTHER, limit=9)) == [first.id, third.id]
        assert ids_of(store.upkeep.lacking(FURTHER, limit=1)) == [first.id]
        assert ids_of(store.upkeep.lacking(FURTHER, after=first.seq, limit=9)) == [third.id]
        assert store.upkeep.count_lacking(FURTHER) == 2
        assert store.upkeep.count_lacking("further-2") == 3

    def test_they_travel_if_they_are_asked_for(self, store: Store) -> None:
        memory = both(store, further=[0.9, 0.2])

        [told] = store.sync.replicas([memory.id], EVERYTHING, vectors=True, further=[FURTHER])
        [other] = store.sync.replicas([memory.id], EVERYTHING, vectors=True, further=["further-2"])

        assert np.allclose(np.array(told.further[FURTHER]), [at_cosine(0.9), at_cosine(0.2)], atol=CLOSE)
        assert len(told.vectors) == 1
        assert other.further == {}

    def test_a_replica_with_another_text_has_none(self, store: Store) -> None:
        memory = both(store)
        [replica] = store.sync.replicas([memory.id], EVERYTHING)
        moved = replace(memory, content="Changed elsewhere", version=2, hlc=memory.hlc + 1, origin="elsewhere")

        take(store, replace(replica, memory=moved), [QUERY])

        assert further_nearest(store) == []

    def test_a_transaction_sees_what_it_wrote(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1, model=FURTHER)

            assert ids(tx.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9, model=FURTHER)) == [memory.id]
