"""The engine's verbs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound
from scrubjay.stores.promises.memories import Request
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import AccessLevel, LinkKind, State
from scrubjay.values.search import Filter, Query
from tests.conftest import sqlite_store

TEAM = frozenset({"team"})


def contents(found):
    return [getattr(one, "memory", one).content for one in found]


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["get", "history", "links", "forget", "recover"])
@pytest.mark.parametrize("id", ["mem_unknown", "nonsense", "'; drop table memories; --", "../../etc/passwd"])
def test_an_unknown_id_is_not_found_by_any_verb(jay, verb, id):
    with pytest.raises(NotFound):
        getattr(jay, verb)(id)


@pytest.mark.parametrize("id", ["", "  ", "x" * 257, "a\x00b", None, 7])
def test_an_impossible_id_is_refused(jay, id):
    with pytest.raises(InvalidInput):
        jay.get(id)


def test_a_batch_with_one_bad_memory_keeps_none_of_it(jay):
    with pytest.raises(InvalidInput):
        jay.store_many([{"content": "fine"}, {"content": "  "}])

    assert jay.list(counted=True).total == 0


@pytest.mark.parametrize("query", ["", "   ", "x" * 50_001, "half \ud83d"])
def test_an_impossible_query_is_refused(jay, query):
    with pytest.raises(InvalidInput):
        jay.search(query)


def test_a_change_against_an_old_version_is_a_conflict(jay):
    memory = jay.store("User lives in Seattle").memory
    jay.update(memory.id, importance=0.9)

    with pytest.raises(Conflict, match="version 2"):
        jay.update(memory.id, importance=0.1, expected_version=1)


# --- storing and finding ---------------------------------------------------------------------------------------------


def test_ids_are_random_and_never_collide_under_a_frozen_clock(jay):
    ids = jay.store_many({"content": f"memory {number}"} for number in range(500))

    assert len(set(ids)) == 500
    assert [memory.content for memory in jay.list(limit=2)] == ["memory 499", "memory 498"]


def test_a_stored_memory_is_found_at_once_by_another_process_on_the_same_file(jay, open_engine):
    other = open_engine()
    stored = jay.store("The ferry to Vlieland leaves at nine").memory

    assert other.get(stored.id).content == stored.content
    assert contents(other.search("ferry Vlieland")) == [stored.content]


def test_what_one_space_holds_another_does_not_find_if_it_is_kept_to_its_own(jay):
    jay.bound_to(spaces=("work",)).store("The deploy key is in the vault")

    assert contents(jay.bound_to(only=True).search("deploy key vault")) == []
    for engine in (jay, jay.bound_to(spaces=("work",), only=True)):
        assert contents(engine.search("deploy key vault")) == ["The deploy key is in the vault"]


def test_several_spaces_are_searched_together_and_written_to_the_first(jay):
    jay.store("The general ledger is blue")
    both = jay.bound_to(spaces=("work", "default"))
    both.store("The work ledger is blue")

    assert sorted(hit.memory.space for hit in both.search("blue ledger")) == ["default", "work"]
    assert {space.name: space.memories for space in jay.known_spaces.list()} == {"default": 1, "work": 1}


def test_a_filter_never_empties_a_page_that_has_answers(jay):
    jay.store_many({"content": f"The lamp in room {n} is broken"} for n in range(400))
    jay.store("The lamp in the attic is broken", tags=["attic"])

    for words_only in (True, False):
        hits = jay.search(
            Query(text="broken lamp", limit=1, filter=Filter(tags=frozenset({"attic"})), words_only=words_only)
        )
        assert contents(hits) == ["The lamp in the attic is broken"]


def test_a_hit_says_why_it_was_found(jay):
    jay.store("The spare key hangs behind the boiler")

    [hit] = jay.search("where is the spare key", explain=True)

    assert hit.explanation.words == ("spare", "key")
    assert hit.explanation.word_score > 0
    assert hit.explanation.cosine is not None


def test_a_fact_at_the_end_of_a_very_long_memory_is_found(real_jay):
    filler = "The meeting went on about budgets, rooms and the weather without any result. " * 640
    memory = real_jay.store(filler[:49_900] + " Ottilie keeps bees on the roof of the town hall.").memory
    real_jay.store_many({"content": f"Somebody grows tomatoes on balcony {number}"} for number in range(50))
    real_jay.parts.backlog.drain()

    for words_only in (True, False):
        hits = real_jay.search("Where does Ottilie keep her bees?", words_only=words_only)
        assert hits[0].memory.id == memory.id


@pytest.mark.parametrize(
    "text",
    [
        '"quoted" AND OR NOT',
        "NEAR(a b)",
        "col:value",
        "a* ^b -c",
        "'; DROP TABLE memories; --",
        "(((",
        "<b>x</b>",
        "\x00",
    ],
)
def test_search_syntax_in_a_query_is_only_text(jay, text):
    jay.store(f"literal {text} inside")

    assert len(jay.search(f"literal {text}")) == 1


def test_reads_change_neither_version_nor_updated_at(jay, clock):
    memory = jay.store("User lives in Seattle").memory
    clock.move(days=1)

    jay.search("Seattle")
    jay.search("Seattle")

    after = jay.get(memory.id)
    assert (after.version, after.updated_at, after.access_count) == (1, memory.updated_at, 2)


def test_who_was_shown_a_memory_is_remembered(jay):
    memory = jay.store("User lives in Seattle").memory
    jay.bound_to(provenance=Provenance(client="editor")).search("Seattle")

    [recall] = jay.records.history.recalls(memory.id)

    assert (recall.client, recall.memories) == ("editor", (memory.id,))


def test_every_write_says_where_it_came_from(jay):
    bound = jay.bound_to(provenance=Provenance(client="editor", transport="stdio", dialect="memento"))

    memory = bound.store("x").memory

    assert jay.get(memory.id).provenance == Provenance(
        client="editor", caller="local", transport="stdio", dialect="memento"
    )


# --- changing --------------------------------------------------------------------------------------------------------


def test_a_topic_is_embedded_with_its_text_however_the_text_came(jay):
    """Stored, changed, and embedded late are three ways to one vector: parts of a long text must fit together."""
    memory = jay.store("They rise in March", topic="harbour fees").memory
    changed = jay.update(memory.id, content="They rise in April")

    [expected] = HashingEmbedder().embed([changed.embeddable])

    assert changed.embeddable.startswith("harbour fees")
    kept = jay.records.vectors([memory.id])[memory.id]
    assert abs(kept - expected).max() < 1e-4  # a store may round them


def test_all_that_expired_is_pruned_by_a_request_that_is_done_once(jay, clock):
    ids = {jay.store(f"Permit {n}", expires_at=clock() + timedelta(days=1)).memory.id for n in range(3)}
    clock.move(days=2)
    keyed = jay.bound_to(request=Request(caller="local", key="k", operation="native.prune", arguments=b"x"))

    assert {memory.id for memory in keyed.prune()} == ids
    assert {memory.id for memory in jay.list(Filter(states=frozenset({State.DELETED}), expired=None))} == ids
    jay.recover(min(ids))
    assert {memory.id for memory in keyed.prune()} == ids, "sent again it is answered alike"
    assert jay.get(min(ids)).state is State.ACTIVE, "and nothing is done"


def test_a_change_sent_again_is_answered_alike_whatever_became_of_the_memory(jay):
    memory = jay.store("The crane is red").memory
    keyed = jay.bound_to(request=Request(caller="local", key="k", operation="native.update", arguments=b"x"))
    answer = keyed.revise(memory.id, content="The crane is green")

    jay.forget(memory.id)

    assert keyed.revise(memory.id, content="The crane is green") == answer


def test_found_tags_are_those_of_the_text_as_it_is_now(jay):
    memory = jay.store("The billing service runs on Kubernetes").memory
    assert "kubernetes" in memory.auto_tags

    assert jay.update(memory.id, content="The billing service runs on Nomad").auto_tags == (
        jay.store("The billing service runs on Nomad").memory.auto_tags
    )
    assert "kubernetes" not in jay.get(memory.id).auto_tags


def test_an_update_keeps_the_former_state(jay, clock):
    memory = jay.store("User lives in Seattle", tags=["home"]).memory
    clock.move(hours=1)

    changed = jay.update(memory.id, content="User lives in Austin", reason="moved")

    assert (changed.version, changed.updated_at, changed.title) == (2, clock(), "User lives in Austin")
    [former] = jay.history(memory.id)
    assert (former.memory.content, former.memory.tags, former.reason) == ("User lives in Seattle", ("home",), "moved")
    assert contents(jay.search("Seattle", words_only=True)) == []
    assert contents(jay.search("Austin")) == ["User lives in Austin"]


def test_a_former_state_can_be_made_the_current_one(jay):
    memory = jay.store("User lives in Seattle").memory
    jay.update(memory.id, content="User lives in Austin", tags=["wrong"])

    restored = jay.restore_version(memory.id, 1)

    assert (restored.version, restored.content, restored.tags) == (3, "User lives in Seattle", ())
    assert contents(jay.search("Seattle")) == ["User lives in Seattle"]


def test_versions_stay_in_order_when_the_clock_goes_back(jay, clock):
    memory = jay.store("one").memory
    clock.move(hours=-1)

    changed = jay.update(memory.id, content="two")

    assert changed.updated_at >= memory.updated_at
    assert changed.hlc > memory.hlc


def test_every_change_is_told_in_the_feed_without_its_text(jay):
    memory = jay.store("a secret text").memory
    jay.update(memory.id, content="another secret text")
    jay.forget(memory.id, reason="tidy")

    events = jay.records.history.events("default")

    assert [(event.number, event.action) for event in events] == [(1, "stored"), (2, "updated"), (3, "forgotten")]
    assert "secret" not in repr(events)


# --- forgetting ------------------------------------------------------------------------------------------------------


def test_a_forgotten_memory_is_gone_and_can_be_brought_back(jay):
    memory = jay.store("User lives in Seattle").memory

    jay.forget(memory.id)

    assert contents(jay.search("Seattle")) == []
    with pytest.raises(NotFound):
        jay.get(memory.id)
    assert jay.recover(memory.id).content == "User lives in Seattle"
    assert contents(jay.search("Seattle")) == ["User lives in Seattle"]


def test_past_its_date_a_forgotten_memory_cannot_be_brought_back(jay, clock):
    memory = jay.store("x").memory
    jay.forget(memory.id, days=30)
    clock.move(days=31)

    with pytest.raises(NotFound, match="no longer"):
        jay.recover(memory.id)


def test_a_hard_forgotten_memory_leaves_no_text_behind(jay, tmp_path):
    memory = jay.store("the xylophone is under the stairs").memory
    jay.update(memory.id, content="the xylophone is in the attic", reason="nobody plays the xylophone")

    jay.forget(memory.id, hard=True)
    jay.close()

    for file in tmp_path.iterdir():
        assert b"xylophone" not in file.read_bytes(), file.name


@pytest.mark.parametrize("softly_before", [False, True])
def test_why_a_memory_was_erased_stays_known(jay, softly_before):
    memory = jay.store("the xylophone is under the stairs").memory
    if softly_before:
        jay.forget(memory.id, reason="the xylophone is gone")

    jay.forget(memory.id, hard=True, reason="ticket 12")

    reasons = {event.action: event.reason for event in jay.records.history.events("default")}
    assert (reasons["forgotten"], reasons["purged"]) == (None, "ticket 12")


@pytest.mark.parametrize("hard", [False, True])
def test_deleting_one_in_the_middle_of_a_chain_brings_nothing_back(jay, hard):
    first, second, third = (jay.store(f"User lives in {city}").memory.id for city in ("Seattle", "Austin", "Boston"))
    jay.supersede(old=first, new=second)
    jay.supersede(old=second, new=third)

    jay.forget(second, hard=hard)
    assert contents(jay.search("where does the user live")) == ["User lives in Boston"]
    assert jay.get(first).superseded_by == third

    jay.forget(third)
    assert contents(jay.search("where does the user live")) == ["User lives in Seattle"]

    jay.recover(third)
    assert contents(jay.search("where does the user live")) == ["User lives in Boston"]


def test_expired_memories_are_hidden_until_pruned_and_then_deleted(jay, clock):
    jay.store("The parking permit is valid", expires_at=clock() + timedelta(hours=1))
    jay.store("The parking lot is behind the house")
    clock.move(hours=1)  # equal counts as expired

    assert contents(jay.search("parking")) == ["The parking lot is behind the house"]
    assert contents(jay.prune(dry_run=True)) == contents(jay.prune()) == ["The parking permit is valid"]
    assert not jay.prune()
    assert contents(jay.list(Filter(states=frozenset({State.DELETED}), expired=None))) == [
        "The parking permit is valid"
    ]


# --- callers ---------------------------------------------------------------------------------------------------------


def member(user, spaces=TEAM):
    return Caller(user=user, role=Role.MEMBER, spaces=spaces)


@pytest.fixture
def ann(jay):
    return jay.bound_to(caller=member("ann"), spaces=("team",))


@pytest.fixture
def bob(jay):
    return jay.bound_to(caller=member("bob"), spaces=("team",))


def test_a_private_memory_of_another_does_not_exist(ann, bob):
    secret = ann.store("Ann plans to resign", access_level="private").memory

    assert contents(bob.search("who plans to resign")) == []
    assert bob.list(counted=True).total == 0
    for verb in (bob.get, bob.forget, bob.history, bob.links):
        with pytest.raises(NotFound):
            verb(secret.id)


def test_a_shared_memory_is_everybodys_to_read_and_members_to_change(jay, ann, bob):
    reader = jay.bound_to(caller=Caller(user="rae", role=Role.READER, spaces=TEAM), spaces=("team",))
    shared = ann.store("The standup is at ten").memory

    assert contents(reader.search("standup")) == ["The standup is at ten"]
    with pytest.raises(Forbidden):
        reader.forget(shared.id)
    assert bob.update(shared.id, tags=["daily"]).tags == ("daily",)


def test_a_public_memory_is_read_by_outsiders_who_name_the_space_and_changed_by_none_of_them(jay, ann):
    outsider = jay.bound_to(caller=member("eve", frozenset()), spaces=("team",))
    public = ann.store("The office opens at eight", access_level="public").memory
    ann.store("The alarm code is on the fridge", access_level="shared")

    assert contents(outsider.search("office alarm code")) == ["The office opens at eight"]
    with pytest.raises((NotFound, Forbidden)):
        outsider.forget(public.id)
    with pytest.raises(Forbidden):
        outsider.store("graffiti")


def test_naming_another_user_is_forbidden_for_members(bob):
    with pytest.raises(Forbidden):
        bob.store("x", user_id="ann")
    with pytest.raises(Forbidden):
        bob.search(Query(text="x", filter=Filter(user_id="ann")))


@settings(max_examples=25, deadline=None, suppress_health_check=[*HealthCheck])
@given(
    writes=st.lists(
        st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from(["a", "b"]), st.sampled_from(list(AccessLevel))),
        min_size=1,
        max_size=12,
    )
)
def test_no_call_ever_returns_what_its_caller_may_not_see(tmp_path_factory, writes):
    folder = tmp_path_factory.mktemp("tenants")
    with engine_on(sqlite_store(folder / "m.db"), HashingEmbedder()) as jay:
        grants = {"ann": frozenset({"a"}), "bob": frozenset({"b"})}
        for number, (user, space, level) in enumerate(writes):
            owner = jay.bound_to(caller=Caller(user=user), spaces=(space,))
            owner.store(f"mark {user} {space} {level} {number}", access_level=level)
        for user, granted in grants.items():
            for space in ("a", "b"):
                bound = jay.bound_to(caller=member(user, granted), spaces=(space,))
                narrow = bound.bound_to(only=True)
                here = [*contents(narrow.search("mark", limit=100)), *contents(narrow.list(limit=100))]
                here += [line.get("content", "mark") for line in bound.transfer.export() if line["type"] == "memory"]
                shown = [*here, *contents(bound.search("mark", limit=100)), *contents(bound.list(limit=100))]
                assert {content.split()[2] for content in here} <= {space}
                for content in shown:
                    _, whose, where, level, _ = content.split()
                    assert where in granted | {space}
                    assert level == "public" or (where in granted and (level == "shared" or whose == user))


# --- paths -----------------------------------------------------------------------------------------------------------


def test_publishing_onto_a_taken_path_appends_a_number(jay):
    jay.store("For all", path="a/b")
    secret = jay.store("Mine", path="a/b", access_level="private").memory

    published = jay.revise(secret.id, access_level="shared").memory

    assert published.path == "a/b-2"
    assert jay.revise(secret.id, access_level="public").memory.path == "a/b-2"


def test_a_memory_made_private_gets_a_number_where_its_user_has_that_path(jay):
    jay.store("Mine", path="a/b", access_level="private")
    shared = jay.store("For all", path="a/b").memory

    assert jay.revise(shared.id, access_level="private").memory.path == "a/b-2"


# --- erasing ---------------------------------------------------------------------------------------------------------


def test_only_its_author_or_an_owner_erases_a_shared_memory(jay, ann, bob):
    first, second = (ann.store(text).memory.id for text in ("One", "Two"))

    with pytest.raises(Forbidden, match="author or an owner"):
        bob.forget(first, hard=True)
    bob.forget(first)
    with pytest.raises(Forbidden):
        bob.forget(first, hard=True)
    assert ann.recover(first).content == "One"
    ann.forget(first, hard=True)
    jay.forget(second, hard=True)
    assert jay.records.get([first, second], EVERYTHING) == []


def test_who_may_not_erase_a_memory_cannot_let_its_time_run_out_either(ann, bob, clock):
    hers, his = ann.store("Hers").memory.id, bob.store("His").memory.id

    forgotten = [bob.forget(one, days=0).memory for one in (hers, his)]

    assert [one.recoverable_until - clock() for one in forgotten] == [timedelta(days=30), timedelta(0)]
    clock.move(days=29)
    assert ann.recover(hers).content == "Hers"


def test_erasing_with_what_is_linked_leaves_what_belongs_to_others(ann, bob):
    hers, his = ann.store("Hers").memory, bob.store("His").memory
    with bob.records.writing() as tx:
        bob.ledger.link(tx, LinkKind.RELATED, his, hers)

    assert bob.forget(his.id, hard=True, cascade=True).related == 0
    assert ann.get(hers.id).content == "Hers"


def test_an_engine_bound_to_spaces_reads_nothing_else_unless_it_is_told_to(jay):
    jay.store("The deploy key is in the vault")
    work = jay.bound_to(spaces=("work",))

    assert list(work.list()) == []
    assert [memory.content for memory in work.bound_to(only=False).list()] == ["The deploy key is in the vault"]
    assert work.store("Work starts at nine").memory.space == "work"
