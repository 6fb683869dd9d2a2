"""What was private stays so when its memory is rewritten and shown to others."""

from __future__ import annotations

import pytest

from scrubjay.errors import NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel
from scrubjay.values.search import Filter

PRIVATE = "Zebulon is to be dismissed in March over the missing ledger"
CLEAN = "The quay is swept on Tuesdays before the market opens"
SECRETS = ("zebulon", "dismissed", "ledger")
TEAM = frozenset({"default"})
BOTH = pytest.mark.parametrize("open_store", ["sqlite", "postgres"], indirect=True)


def person(jay, user: str, role: Role = Role.MEMBER):
    return jay.bound_to(caller=Caller(user=user, role=role, spaces=TEAM))


@pytest.fixture
def ann(jay):
    return person(jay, "ann")


@pytest.fixture
def bob(jay):
    return person(jay, "bob")


def rewritten(ann) -> str:
    """A private memory whose text is now harmless, still private."""
    memory = ann.store(PRIVATE, access_level=AccessLevel.PRIVATE).memory
    ann.update(memory.id, content=CLEAN)
    return memory.id


def ask_all(engine, id: str) -> str:
    """Everything that a caller can get to know about a memory."""
    history = list(engine.history(id))
    known = [engine.get(id), history, list(engine.transfer.export()), engine.feed.events()]
    for version in history:
        known.append(engine.curation.diff(id, old=version.memory.version))
    return repr(known).lower()


def find_leaks(text: str) -> list[str]:
    return [word for word in SECRETS if word in text]


DOORS = {
    "update": lambda ann, it: ann.update(it, access_level="shared"),
    "public": lambda ann, it: ann.update(it, access_level="public"),
    "bulk": lambda ann, it: ann.bulk.update(Filter(ids=frozenset({it})), access_level="shared"),
    "in two steps": lambda ann, it: [ann.update(it, access_level=level) for level in ("shared", "private", "public")],
}


@BOTH
@pytest.mark.parametrize("door", DOORS)
def test_others_learn_nothing_of_the_text_before_a_memory_was_shared(ann, bob, door):
    id = rewritten(ann)

    DOORS[door](ann, id)

    assert bob.get(id).content == CLEAN
    assert find_leaks(ask_all(bob, id)) == []
    assert [hit for word in SECRETS for hit in bob.search(word, words_only=True)] == []
    assert list(bob.list(Filter(tags=frozenset(SECRETS)))) == []
    assert find_leaks(ask_all(ann, id)), "its author still sees what it was"


def test_a_memory_rewritten_and_shared_at_once_keeps_no_word_of_before(ann, bob):
    id = ann.store(PRIVATE, access_level=AccessLevel.PRIVATE).memory.id

    ann.update(id, content=CLEAN, access_level="shared")

    assert find_leaks(ask_all(bob, id)) == []
    assert bob.get(id).auto_tags
    assert bob.get(id).path.startswith("inbox/the-quay-is-swept")


def test_a_version_that_others_may_not_see_is_not_there_for_them(jay, ann, bob):
    id = rewritten(ann)
    ann.update(id, access_level="shared")

    assert bob.history(id) == []
    with pytest.raises(NotFound, match="no version 1"):
        bob.curation.diff(id, old=1)
    with pytest.raises(NotFound, match="no earlier version 1"):
        bob.restore_version(id, 1)
    assert bob.get(id).content == CLEAN
    for sees in (ann, person(jay, "carol", Role.OWNER)):
        assert [one.memory.version for one in sees.history(id)] == [2, 1]


def test_versions_since_it_was_shared_are_everyones(ann, bob):
    id = rewritten(ann)
    ann.update(id, access_level="shared")
    bob.update(id, content="The quay is swept on Wednesdays")

    assert [one.memory.content for one in bob.history(id)] == [CLEAN]
    bob.restore_version(id, 3)
    assert ann.get(id).content == CLEAN


def test_its_author_restores_a_private_version_which_hides_it_again(ann, bob):
    id = rewritten(ann)
    ann.update(id, access_level="shared")

    ann.restore_version(id, 1)

    assert ann.get(id).content == PRIVATE
    with pytest.raises(NotFound):
        bob.history(id)


def test_why_it_was_changed_while_private_is_not_told(ann, bob):
    id = ann.store(PRIVATE, access_level=AccessLevel.PRIVATE).memory.id
    ann.update(id, content=CLEAN, reason="Zebulon must not hear of it")
    ann.update(id, access_level="shared", reason="for the team")

    assert find_leaks(ask_all(bob, id)) == []
    assert find_leaks(repr(ann.feed.events()).lower())


def test_what_a_client_chose_itself_stays(ann, bob):
    """A path, a title and tags that were given are no traces of the text."""
    memory = ann.store(
        PRIVATE, title="Quay notes", tags=["quay"], path="notes/quay", access_level=AccessLevel.PRIVATE
    ).memory
    ann.update(memory.id, content=CLEAN, access_level="shared")

    seen = bob.get(memory.id)
    assert (seen.title, seen.tags, seen.path) == ("Quay notes", ("quay",), "notes/quay")
    assert find_leaks(repr(seen).lower()) == []

    as_before = ann.store(CLEAN, access_level=AccessLevel.PRIVATE).memory  # and what was never rewritten keeps all
    shared = ann.update(as_before.id, access_level="shared")
    assert (shared.path, shared.title, shared.auto_tags) == (as_before.path, as_before.title, as_before.auto_tags)


def test_the_public_of_another_space_does_not_see_what_was_shared_only(jay, ann):
    memory = ann.store(PRIVATE).memory
    ann.update(memory.id, content=CLEAN)
    ann.update(memory.id, access_level="public")
    stranger = jay.bound_to(caller=Caller(user="eve", role=Role.MEMBER, spaces=frozenset({"other"})))

    assert find_leaks(repr([stranger.get(memory.id), stranger.history(memory.id)]).lower()) == []


def test_an_archived_memory_keeps_its_former_texts_to_those_who_might_see_them(ann, bob):
    id = rewritten(ann)
    ann.update(id, access_level="shared")
    ann.cold_storage.archive([id])

    assert find_leaks(repr([bob.get(id), list(bob.history(id))]).lower()) == []
    assert find_leaks(repr(list(ann.history(id))).lower())
