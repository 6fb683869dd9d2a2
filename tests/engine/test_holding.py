"""Memories that long work holds can be read, and not be changed by others."""

from __future__ import annotations

import pytest

from scrubjay.engine.holding import holding
from scrubjay.errors import Locked


@pytest.fixture
def held(jay):
    memory = jay.store("User lives in Seattle").memory
    with holding(jay, [memory.id]) as engine:
        yield memory, engine


@pytest.mark.parametrize(
    "change",
    [
        lambda jay, it: jay.update(it, importance=0.9),
        lambda jay, it: jay.forget(it),
        lambda jay, it: jay.forget(it, hard=True),
        lambda jay, it: jay.forget(jay.store("User likes rain", related=(it,)).memory.id, cascade=True),
        lambda jay, it: jay.supersede(old=it, new=jay.store("User lives in Austin").memory.id),
        lambda jay, it: jay.supersede(old=jay.store("User lives in Austin").memory.id, new=it),
    ],
)
def test_a_change_by_another_is_refused(jay, held, change):
    memory, _ = held

    with pytest.raises(Locked) as refused:
        change(jay, memory.id)

    assert refused.value.details["memory_id"] == memory.id
    assert jay.get(memory.id) == memory


def test_the_holder_may_change_it_and_everybody_read_it(jay, held):
    memory, engine = held

    assert engine.update(memory.id, importance=0.9).importance == 0.9
    assert [hit.memory.id for hit in jay.search("Seattle")] == [memory.id]


def test_two_cannot_hold_it(jay, held):
    memory, _ = held

    with pytest.raises(Locked), holding(jay, [jay.store("other").memory.id, memory.id]):
        pass


def test_the_end_of_the_work_lets_go_also_after_an_error(jay):
    memory = jay.store("User lives in Seattle").memory
    with pytest.raises(ZeroDivisionError), holding(jay, [memory.id]):
        raise ZeroDivisionError

    assert jay.update(memory.id, importance=0.9).importance == 0.9
