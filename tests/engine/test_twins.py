"""The same words stored and restored at once: whoever comes second names the other."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)
TEXT = "The spare key lies under the blue pot"
ROUNDS = 6


@contextmanager
def meanwhile(monkeypatch, engine, act):
    """Within the block something is done between what a call reads and what it writes."""
    kind, waits = type(engine.records), [act]
    writing = kind.writing

    def after(store):
        if waits:
            waits.pop()()
        return writing(store)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "writing", after)
        yield
    assert not waits, "nothing was written"


@BOTH
@pytest.mark.parametrize("how", ["restored", "stored"])
def test_a_store_names_the_twin_that_came_meanwhile(open_engine, monkeypatch, how):
    jay, other = open_engine(), open_engine()
    first = jay.store(TEXT).memory
    jay.forget(first.id)
    act = {"restored": lambda: other.recover(first.id), "stored": lambda: other.store(TEXT)}[how]

    with meanwhile(monkeypatch, jay, act):
        stored = jay.store(TEXT)

    [twin] = [one for one in jay.list() if one.id != stored.memory.id]
    assert stored.same == (twin.id,)
    assert [one.id for one in stored.candidates] == [twin.id]


@BOTH
def test_of_a_store_and_a_restore_at_once_one_tells_of_the_other(open_engine):
    jay, other = open_engine(), open_engine()
    for number in range(ROUNDS):
        text, ready, done = f"{TEXT}, number {number}", threading.Barrier(2), []
        first = jay.store(text).memory
        jay.forget(first.id)

        def store(text=text, ready=ready, done=done):
            ready.wait(60)
            done.append(jay.store(text))

        thread = threading.Thread(target=store)
        thread.start()
        ready.wait(60)
        other.recover(first.id)
        thread.join(60)

        [stored] = done
        opened = {one.new.id for one in jay.conflicts.list()} | {one.old.id for one in jay.conflicts.list()}
        assert first.id in stored.same or {first.id, stored.memory.id} <= opened
