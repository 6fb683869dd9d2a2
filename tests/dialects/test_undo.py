"""Undo without an id: the caller's own last change, through the same client, and the reply says what it was."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.values.callers import DEFAULT_SPACE, Caller, Provenance, Role
from scrubjay.values.memory import Status
from scrubjay.values.search import Filter

scrubjay = find("scrubjay")
HERE = frozenset({DEFAULT_SPACE})


def by(engine, client, user=None):
    """A caller's window."""
    bound = engine if user is None else engine.bound_to(caller=Caller(user=user, role=Role.MEMBER, spaces=HERE))

    def ask(tool, /, **arguments):
        reply = scrubjay.call(bound, tool, arguments, provenance=Provenance(client=client, transport="stdio"))
        assert not reply.failed, reply.text
        return reply

    return ask


def test_without_an_id_undo_takes_back_the_callers_own_last_change(jay):
    mine, window, hers = by(jay, "claude"), by(jay, "cursor"), by(jay, "claude", "ann")
    note = mine("remember", facts=["The tide table hangs in the hall"]).body["remembered"][0]["memory"]["id"]
    mine("revise", id=note, content="The tide table hangs in the kitchen", reason="moved")
    mine("forget", id=note)
    for ask, fact in ((window, "The ferry leaves at nine"), (hers, "The harbour master is called Ole")):
        ask("remember", facts=[fact])

    back, text = mine("undo"), mine("undo")

    assert (back.body["undone"], back.body["memory"]["id"]) == ("forgotten", note)
    assert f"{note} is back" in back.text
    assert (text.body["undone"], text.body["memory"]["text"]) == ("revised", "The tide table hangs in the hall")
    assert len(jay.list()) == 3


def test_a_memory_that_was_just_stored_is_forgotten_by_an_undo(jay):
    ask = by(jay, "claude")
    slip = ask("remember", facts=["A slip"]).body["remembered"][0]["memory"]["id"]

    undone = ask("undo")

    assert (undone.body["undone"], undone.body["memory"]["id"]) == ("stored", slip)
    assert undone.text.startswith(f"{slip} was just stored and is forgotten:\n   A slip")
    assert jay.get(slip, deleted=True).status is Status.DELETED
    again = scrubjay.call(jay, "undo", {}, provenance=Provenance(client="claude", transport="stdio"))
    assert again.failed
    assert "nothing more to undo" in again.text
    assert jay.get(slip, deleted=True).status is Status.DELETED


def test_each_further_undo_goes_one_change_further_back(jay):
    """Whatever the changes were, it never takes back an undo."""
    ask = by(jay, "claude")

    def store(text):
        return ask("remember", facts=[text]).body["remembered"][0]["memory"]["id"]

    first = store("The tide table hangs in the hall")
    ask("revise", id=first, content="The tide table hangs in the kitchen", reason="moved")
    second = store("The tide table hangs in the attic")
    ask("settle", old=first, new=second, relation="replaces")
    third = store("The ferry leaves at nine")
    ask("settle", old=second, new=third, relation="both_true")
    ask("forget", id=second)

    told = [ask("undo").body for _ in range(7)]

    assert [(one["undone"], one["memory"]["id"]) for one in told] == [
        ("forgotten", second), ("settled", second), ("stored", third), ("superseded", first), ("stored", second),
        ("revised", first), ("stored", first),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="nothing more to undo"):
        ask("undo")


def test_what_was_brought_back_by_its_id_can_be_undone_again(jay):
    ask = by(jay, "claude")
    slip = ask("remember", facts=["A slip"]).body["remembered"][0]["memory"]["id"]

    told = [ask("undo"), ask("undo", id=slip), ask("undo")]

    assert [one.body["undone"] for one in told] == ["stored", "forgotten", "stored"]


def test_what_followed_by_itself_is_not_the_last_change(jay):
    """A decision that replaces another, and one that is forgotten, change the older one as well."""
    ask = by(jay, "claude")
    old, new = (
        ask("remember", facts=[{"content": one, "kind": "decision", "topic": "database"}]).body["remembered"][0][
            "memory"
        ]["id"]
        for one in ("Use SQLite", "Use PostgreSQL")
    )

    told = [ask("undo").body for _ in range(2)]

    assert [(one["undone"], one["memory"]["id"]) for one in told] == [("stored", new), ("stored", old)]


@pytest.mark.parametrize("other", [("cursor", "ann"), ("claude", "bob")], ids=["program", "user"])
@pytest.mark.parametrize("mine", ["remember", "revise", "forget"])
def test_what_another_changed_since_is_not_taken_back(jay, mine, other):
    """Neither is their text lost with a memory that was just stored."""
    ask, they = by(jay, "claude", "ann"), by(jay, *other)
    note = ask("remember", facts=["The tide table hangs in the hall"]).body["remembered"][0]["memory"]["id"]
    if mine == "revise":
        ask("revise", id=note, content="The tide table hangs in the kitchen", reason="moved")
    elif mine == "forget":
        ask("forget", id=note)
        they("undo", id=note)
    they("revise", id=note, content="The tide table hangs in the attic", reason="moved")
    before = jay.get(note)

    with pytest.raises(AssertionError, match="has been changed since, by another user or program"):
        ask("undo")
    assert jay.get(note) == before

    ask("undo", id=note)
    assert jay.get(note).content != before.content


def test_the_last_change_is_the_last_one_though_the_clock_was_set_back(jay, clock):
    ask = by(jay, "claude")
    kept = ask("remember", facts=["The tide table hangs in the hall"]).body["remembered"][0]["memory"]["id"]
    clock.move(hours=-1)
    slip = ask("remember", facts=["A slip"]).body["remembered"][0]["memory"]["id"]

    assert ask("undo").body["memory"]["id"] == slip
    assert jay.get(kept).status is Status.ACTIVE


def test_who_has_changed_nothing_is_told_so(jay):
    by(jay, "cursor")("remember", facts=["The ferry leaves at nine"])

    reply = scrubjay.call(jay, "undo", {}, provenance=Provenance(client="claude", transport="stdio"))

    assert reply.failed
    assert "Nothing has been changed yet" in reply.text


def test_of_many_changes_at_once_an_undo_names_the_command(jay):
    ask = by(jay, "claude")
    ask("remember", facts=["The ferry leaves at nine", "The ferry leaves at ten"])
    bound = jay.bound_to(provenance=Provenance(client="claude", transport="stdio"))
    deed = bound.bulk.forget(Filter(client="claude"))

    reply = scrubjay.call(jay, "undo", {}, provenance=Provenance(client="claude", transport="stdio"))

    assert f"scrubjay undo {deed.deed}" in reply.text


def test_an_undo_without_an_id_that_is_sent_again_is_done_once(jay):
    ask = by(jay, "claude")
    ask("remember", facts=["The ferry leaves at nine"])
    about = {"key": "once", "provenance": Provenance(client="claude", transport="stdio")}

    first, again = (scrubjay.call(jay, "undo", {}, **about) for _ in range(2))

    assert first.body == again.body
    assert jay.list().memories == ()
