"""A request with a key is done once; what is kept of its result tells nobody more than they may see."""

from __future__ import annotations

import pytest

from scrubjay.errors import NotFound, StorageError
from scrubjay.stores.promises.memories import Request
from scrubjay.stores.tables.history import HistoryChanges
from scrubjay.values.callers import Caller, Role

SECRET = "The vault code is 7714"


def bind_request(jay, operation, **caller):
    request = Request(caller="ann", key="k", operation=operation, arguments=b"x")
    return jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, **caller), request=request)


def test_nothing_is_kept_of_the_text_that_was_erased_for_good(jay):
    memory = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER)).store(SECRET, tags=["vault"]).memory
    keyed = bind_request(jay, "forget")

    first = keyed.forget(memory.id, hard=True)
    again = keyed.forget(memory.id, hard=True)

    assert (first.memory.id, first.hard) == (again.memory.id, again.hard) == (memory.id, True)
    assert [again.memory.content, again.memory.title, again.memory.path, again.memory.tags] == ["", "", "", ()]
    with jay.records.writing() as tx:
        kept = tx.history.result_of(keyed.request, now=jay.now())
    assert "7714" not in kept
    assert "vault" not in kept


def test_a_replay_ends_with_the_right_to_see_what_was_changed(jay):
    memory = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER)).store("The pier opens at nine").memory
    changed = bind_request(jay, "update").update(memory.id, content="The pier opens at ten")

    assert bind_request(jay, "update").update(memory.id, content="The pier opens at ten") == changed
    with pytest.raises(NotFound):
        bind_request(jay, "update", spaces=frozenset({"elsewhere"})).update(memory.id, content="The pier opens at ten")


CHANGES = {
    "forgotten": lambda ann, memory: ann.forget(memory),
    "superseded": lambda ann, memory: ann.supersede(old=memory, new=ann.store("The pier opens at eight").memory.id),
    "revised": lambda ann, memory: ann.update(memory, content="The pier opens at ten"),
}


@pytest.mark.parametrize("done", CHANGES)
def test_an_undo_and_what_is_kept_of_it_are_written_together_or_not_at_all(jay, monkeypatch, done):
    """Else a repeated request would undo once more."""
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    memory = ann.store("The pier opens at nine").memory.id
    CHANGES[done](ann, memory)
    before = ann.get(memory, deleted=True)
    with monkeypatch.context() as broken:
        broken.setattr(HistoryChanges, "keep_result", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            bind_request(jay, "undo").curation.undo(memory)

    assert ann.get(memory, deleted=True) == before
    first, again = (bind_request(jay, "undo").curation.undo(memory) for _ in range(2))
    assert first == again
    assert (first.what, first.memory.content) == (done, "The pier opens at nine")


@pytest.mark.parametrize("verb", ["store", "search"])
def test_an_engine_that_is_closed_says_so(open_engine, verb):
    jay = open_engine()
    jay.store("The pier opens at nine")
    jay.search("pier")
    jay.close()

    with pytest.raises(StorageError, match="closed"):
        getattr(jay, verb)("The pier opens at ten")
