"""Several memories become one: what is kept of them, what becomes of them, what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.engine.holding import holding
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy, Writer
from scrubjay.engine.statistics import StatsQuery
from scrubjay.errors import (
    Forbidden,
    InvalidInput,
    Locked,
    NotFound,
    SynthesisFailed,
    TooDissimilar,
    Unprocessable,
)
from scrubjay.stores.promises.memories import Request
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel, LinkKind, Status

SPANISH = [
    "User is learning Spanish",
    "User is learning Spanish with a teacher",
    "User is learning Spanish every evening",
]


@pytest.fixture
def three(jay, clock):
    """Oldest first, with different importances and tags."""
    memories = []
    for number, content in enumerate(SPANISH):
        clock.move(days=1)
        fields = {"importance": (5 + number) / 10, "tags": ["language", f"t{number}"], "created_at": clock()}
        memories.append(jay.store(content, **fields).memory)
    clock.move(days=1)
    return memories


def ids(memories):
    return tuple(memory.id for memory in memories)


def plan(memories, strategy=Strategy.MERGE_ALL, **more):
    return ConsolidationPlan(ids=ids(memories), strategy=strategy, **more)


def links_of(jay, memory, kind):
    return {(link.source, link.target) for link in jay.records.history.links([memory]) if link.kind is kind}


def test_all_texts_become_one_with_the_earliest_time_the_highest_importance_and_all_tags(jay, three):
    done = jay.consolidation.merge(plan(three))

    assert done.memory.content == "\n\n".join(SPANISH)
    assert done.memory.created_at == three[0].created_at
    assert done.memory.importance == 0.7
    assert done.memory.tags == ("language", "t0", "t1", "t2")
    assert done.sources == ids(three)
    assert done.writer is None


@pytest.mark.parametrize("strategy", [Strategy.MERGE_ALL, Strategy.KEEP_PRIMARY])
def test_what_they_become_is_found_by_the_phrases_of_all(jay, three, strategy):
    for number, memory in enumerate(three):
        jay.update(memory.id, also=[f"castellano {number}", "idioma", f"course {number}"])

    primary = three[0].id if strategy is Strategy.KEEP_PRIMARY else None
    done = jay.consolidation.merge(plan(three, strategy, primary=primary))

    phrases = [f"castellano {number}" for number in range(3)]
    assert (len(done.memory.also), set(phrases) & set(done.memory.also) >= set(phrases[:1])) == (6, True)
    assert jay.search("castellano", words_only=True)[0].memory.id == done.memory.id
    [expected] = jay.parts.embedding.texts([done.memory.embeddable])
    assert jay.records.cosines(expected, [done.memory.id])[done.memory.id] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("primary", "tag"), [(None, "t2"), (0, "t0")])
def test_what_is_not_to_be_preserved_is_now_the_mean_and_the_newests_or_the_primarys(jay, three, clock, primary, tag):
    more = {} if primary is None else {"primary": three[primary].id}
    done = jay.consolidation.merge(plan(three, earliest_time=False, highest_importance=False, all_tags=False, **more))

    assert done.memory.created_at == clock()
    assert done.memory.importance == pytest.approx(0.6)
    assert done.memory.tags == ("language", tag)


def test_the_originals_are_archived_and_point_at_what_they_became(jay, three):
    done = jay.consolidation.merge(plan(three))

    assert {jay.get(one.id).status for one in three} == {Status.ARCHIVED}
    assert len(done.archives) == 3
    assert jay.get(done.archives[0]).id == three[0].id
    links = links_of(jay, done.memory.id, LinkKind.CONSOLIDATED_FROM)
    assert links == {(done.memory.id, one.id) for one in three}
    jay.cold_storage.restore([three[0].id])
    assert jay.get(three[0].id).content == SPANISH[0]


def test_or_they_are_forgotten_and_can_be_brought_back(jay, three):
    done = jay.consolidation.merge(plan(three, keep_originals=False))

    assert done.archives == ()
    assert {jay.get(one.id, deleted=True).status for one in three} == {Status.DELETED}
    assert jay.recover(three[0].id).content == SPANISH[0]


def test_forgetting_the_result_leaves_the_originals(jay, three):
    done = jay.consolidation.merge(plan(three))
    jay.forget(done.memory.id, cascade=True)

    assert {jay.get(one.id).status for one in three} == {Status.ARCHIVED}


def test_keeping_the_primary_takes_the_others_in(jay, three):
    done = jay.consolidation.merge(plan(three, Strategy.KEEP_PRIMARY, primary=three[1].id))

    assert done.memory.id == three[1].id
    assert (done.memory.content, done.memory.version) == (SPANISH[1], three[1].version + 1)
    assert done.memory.created_at == three[0].created_at
    assert done.memory.importance == 0.7
    assert done.memory.tags == ("language", "t0", "t1", "t2")
    assert len(done.archives) == 2
    assert jay.get(three[1].id).status is Status.ACTIVE
    assert {jay.get(one.id).status for one in (three[0], three[2])} == {Status.ARCHIVED}


def test_the_primary_of_unlike_memories_is_kept(jay):
    one, other = jay.store("User likes tea").memory, jay.store("Quarterly revenue grew").memory

    assert jay.consolidation.merge(plan([one, other], Strategy.KEEP_PRIMARY, primary=one.id)).memory.id == one.id


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [True, False])
def test_links_of_all_or_of_the_newest_only_move_to_the_result(jay, three, every):
    teacher = jay.store("The teacher is called Inés", related=(three[0].id,)).memory
    newer = jay.store("User reads Spanish novels", related=(three[2].id,)).memory
    done = jay.consolidation.merge(plan(three, all_links=every))

    moved = {(newer.id, done.memory.id)} | ({(teacher.id, done.memory.id)} if every else set())
    assert links_of(jay, done.memory.id, LinkKind.RELATED) == moved


@pytest.mark.parametrize("keep", [True, False])
def test_what_an_original_had_superseded_stays_superseded(jay, three, keep):
    old, released = (jay.store(f"User {verb} to learn Spanish").memory for verb in ("wants", "hopes"))
    for one in (old, released):
        jay.supersede(old=one.id, new=three[0].id)
    jay.curation.release(released.id)
    done = jay.consolidation.merge(plan([jay.get(one.id) for one in three], keep_originals=keep, all_links=False))

    assert jay.get(old.id).superseded_by == done.memory.id
    assert jay.get(released.id).superseded_by is None


def test_an_open_conflict_between_the_originals_is_settled(real_jay, clock):
    old = real_jay.store("User lives in Seattle").memory
    clock.move(days=1)
    stored = real_jay.store("User moved to Austin")
    assert [one.id for one in stored.similar] == [old.id]
    real_jay.consolidation.merge(plan([old, stored.memory]))

    [link] = [link for link in real_jay.records.history.links([old.id]) if link.kind is LinkKind.MAY_OUTDATE]
    assert link.state == "superseded"


# --- who writes ------------------------------------------------------------------------------------------------------


def test_rules_write_where_there_is_no_model_and_say_what_they_cannot_do(jay, three):
    done = jay.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS, instructions="Be short."))

    assert done.writer is Writer.LOCAL
    assert "instructions" in done.notes[0]


def test_a_configured_model_is_asked_before_the_clients(open_engine, three):
    asked = []
    jay = open_engine(model=lambda prompt: asked.append(prompt) or "User learns Spanish.")
    bound = jay.bound_to(client_model=lambda _: pytest.fail("the client was asked"))

    done = bound.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS, instructions="Be short."))

    assert (done.memory.content, done.writer) == ("User learns Spanish.", Writer.ENDPOINT)
    assert all(text in asked[0].text for text in (*SPANISH, "Be short."))


def test_the_clients_model_is_asked_where_none_is_configured(jay, three):
    bound = jay.bound_to(client_model=lambda _: "User learns Spanish.")

    assert bound.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS)).writer is Writer.CLIENT


def failing(_prompt):
    raise SynthesisFailed("It is tired.")


def test_a_configured_model_that_fails_changes_nothing(open_engine, three):
    jay = open_engine(model=failing)
    with pytest.raises(SynthesisFailed):
        jay.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS))

    assert {jay.get(one.id).status for one in three} == {Status.ACTIVE}
    jay.update(three[0].id, importance=0.9)  # nothing is held


def test_a_client_that_declines_leaves_it_to_the_rules(jay, three):
    done = jay.bound_to(client_model=failing).consolidation.merge(plan(three, Strategy.AI_SYNTHESIS))

    assert (done.writer, done.notes) == (Writer.LOCAL, ("It is tired.",))


@pytest.mark.parametrize("answer", ["x" * 50_001, "half \ud800"])
def test_an_answer_that_cannot_be_kept_is_refused(open_engine, three, answer):
    jay = open_engine(model=lambda _: answer)

    with pytest.raises((Unprocessable, InvalidInput)):
        jay.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS))
    assert jay.get(three[0].id).status is Status.ACTIVE


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["hashing", None])
def test_unlike_memories_are_refused_with_their_similarity(open_engine, embedder):
    jay = open_engine(embedder)
    one, other = jay.store("User likes tea").memory, jay.store("Quarterly revenue grew by a tenth").memory

    with pytest.raises(TooDissimilar) as refused:
        jay.consolidation.merge(plan([one, other]))

    assert refused.value.details["similarity"] < 0.3
    assert jay.get(one.id).status is Status.ACTIVE


@pytest.mark.parametrize("condition", ["superseded", "expired", "archived"])
def test_only_current_memories_are_merged(jay, three, clock, condition):
    if condition == "superseded":
        jay.supersede(old=three[0].id, new=jay.store("User speaks Spanish").memory.id)
    elif condition == "expired":
        jay.update(three[0].id, expires_at=clock() + timedelta(hours=1))
        clock.move(hours=2)
    else:
        jay.cold_storage.archive([three[0].id])

    with pytest.raises(Unprocessable, match=condition):
        jay.consolidation.merge(plan(three))


def test_a_forgotten_or_unknown_memory_is_not_found(jay, three):
    jay.forget(three[0].id)

    with pytest.raises(NotFound):
        jay.consolidation.merge(plan(three))
    with pytest.raises(NotFound):
        jay.consolidation.merge(ConsolidationPlan(ids=(three[1].id, "mem_unknown"), strategy=Strategy.MERGE_ALL))


def test_one_memory_under_two_names_is_one(jay, three):
    with pytest.raises(InvalidInput):
        jay.consolidation.merge(ConsolidationPlan(ids=(three[0].id, three[0].id), strategy=Strategy.MERGE_ALL))


def test_a_decision_keeps_its_own_words(jay, three):
    decision = jay.store("Use Spanish", kind="decision", topic="language").memory

    with pytest.raises(Unprocessable):
        jay.consolidation.merge(plan([three[0], decision]))


def test_memories_of_two_spaces_and_private_ones_of_two_users_stay_apart(jay, three):
    elsewhere = jay.bound_to(spaces=("work",)).store(SPANISH[0]).memory
    private = jay.store(SPANISH[0], user_id="bob", access_level=AccessLevel.PRIVATE).memory

    for other in (elsewhere, private):
        with pytest.raises(Unprocessable):
            jay.consolidation.merge(plan([three[0], other]))


def test_the_result_is_seen_by_no_more_people_than_each_original(jay, three):
    jay.update(three[0].id, access_level="private")
    jay.update(three[1].id, access_level="public")

    assert jay.consolidation.merge(plan(three)).memory.access_level is AccessLevel.PRIVATE


def test_all_must_be_the_callers_to_change(jay, three):
    reader = jay.bound_to(caller=Caller(user="ann", role=Role.READER))

    with pytest.raises(Forbidden):
        reader.consolidation.merge(plan(three))


def test_a_held_memory_is_not_merged(jay, three):
    with holding(jay, [three[2].id]), pytest.raises(Locked):
        jay.consolidation.merge(plan(three))


def test_while_a_model_thinks_others_changes_are_refused(open_engine, three):
    def think(_prompt):
        with pytest.raises(Locked):
            jay.update(three[0].id, importance=0.1)
        return "User learns Spanish."

    jay = open_engine(model=think)

    assert jay.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS)).memory.content == "User learns Spanish."


def test_too_much_text_is_refused(jay):
    memories = [jay.store(f"{n} " + "Spanish lesson " * 1800).memory for n in range(2)]

    with pytest.raises(Unprocessable, match="50,000"):
        jay.consolidation.merge(plan(memories))


def test_more_tags_than_a_memory_may_have_are_cut_and_that_is_said(jay, three):
    for number, memory in enumerate(three):
        jay.update(memory.id, tags=["language", *(f"{number}-{n}" for n in range(15))])
    done = jay.consolidation.merge(plan(three))

    assert len(done.memory.tags) == 20
    assert "language" in done.memory.tags
    assert "26 of 46 tags" in done.notes[0]


# --- counted, and once -----------------------------------------------------------------------------------------------


def test_consolidations_are_counted(jay, three):
    jay.consolidation.merge(plan(three))
    rate = jay.statistics(StatsQuery()).consolidation_rate

    assert (rate.memories_consolidated, rate.consolidation_ratio) == (3, 0.75)
    assert rate.consolidations_per_week > 0


def test_a_repeated_request_is_answered_alike_and_asks_no_model_again(open_engine, three):
    asked = []
    jay = open_engine(model=lambda _: asked.append(1) or "User learns Spanish.")
    bound = jay.bound_to(request=Request(caller="local", key="k", operation="merge", arguments=b"x"))

    first = bound.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS))

    assert bound.consolidation.merge(plan(three, Strategy.AI_SYNTHESIS)) == first
    assert asked == [1]
