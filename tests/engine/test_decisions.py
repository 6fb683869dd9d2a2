"""Decisions and checkpoints as the library sees them."""

from __future__ import annotations

import pytest

from scrubjay.engine.decisions.decisions import open_steps
from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound, Unprocessable
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import Category, Kind, LinkKind, NewMemory, State
from scrubjay.values.search import Filter


def contents(memories):
    return [memory.content for memory in memories]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", [None, "", "   ", "a\nb", "x" * 501, "half \ud800"])
def test_a_decision_without_a_topic_that_can_be_kept_is_refused(jay, topic):
    for save in (lambda: jay.decisions.save(topic, "Use JWT"), lambda: jay.store("A", kind="decision", topic=topic)):
        with pytest.raises(InvalidInput, match="topic"):
            save()
    assert list(jay.list()) == []


def test_decision_and_reasoning_share_one_maximum(jay):
    with pytest.raises(InvalidInput, match="together"):
        jay.decisions.save("size", "x" * 30_000, reasoning="y" * 30_000)
    jay.decisions.save("size", "가" * 20_000, reasoning="나" * 29_000)


def test_the_text_of_a_decision_is_not_edited(jay):
    decision = jay.decisions.save("auth", "Use JWT").memory
    with pytest.raises(Unprocessable, match="cannot be edited"):
        jay.update(decision.id, content="Use sessions")
    assert jay.update(decision.id, tags=["security"]).tags == ("security",)


def test_a_name_that_a_caller_makes_up_is_not_taken(jay):
    first = jay.decisions.save("auth", "Use JWT").memory
    other = jay.store("Other", kind="decision", topic="b", detail={"name": first.name}).memory
    assert other.name != first.name
    assert jay.get(first.name).id == first.id


# --- chains ----------------------------------------------------------------------------------------------------------


def test_only_the_last_decision_on_a_topic_is_current(jay):
    for text in ("Redis", "Memcached", "A local LRU"):
        jay.decisions.save("caching", text)

    chain = jay.decisions.chain("caching")

    assert contents(chain) == ["A local LRU", "Memcached", "Redis"]
    assert [memory.state for memory in chain] == [State.ACTIVE, State.SUPERSEDED, State.SUPERSEDED]
    assert [memory.superseded_by for memory in chain] == [None, chain[0].id, chain[1].id]


@pytest.mark.parametrize("spelling", ["CACHING", " caching ", "ｃａｃｈｉｎｇ"])
def test_topics_that_differ_in_case_or_spaces_are_one(jay, spelling):
    jay.decisions.save("caching", "Redis")
    second = jay.decisions.save(spelling, "LRU")

    assert second.depth == 2
    assert second.memory.topic == spelling
    assert len(jay.decisions.chain("Caching")) == 2


TOPICS = ["x" * 300, "?!…", "인증 전략", "استراتيجية المصادقة", "🔥", "'; DROP TABLE memories"]


@pytest.mark.parametrize("topic", TOPICS)
def test_any_script_makes_a_topic(jay, topic):
    first, second = jay.decisions.save(topic, "One"), jay.decisions.save(topic, "Two")

    assert first.memory.name.rsplit("_", 2)[0] == second.memory.name.rsplit("_", 2)[0]
    assert "__" not in first.memory.name
    assert first.memory.path.startswith("decisions/")
    assert contents(jay.decisions.chain(topic)) == ["Two", "One"]


def test_topics_of_punctuation_stay_apart(jay):
    jay.decisions.save("?", "One")
    jay.decisions.save("!", "Two")

    assert len(jay.decisions.chain("?")) == len(jay.decisions.chain("!")) == 1


def test_each_space_has_its_own_chain(jay):
    elsewhere = jay.bound_to(spaces=("work",))
    jay.decisions.save("caching", "Redis")
    elsewhere.decisions.save("caching", "LRU")

    assert contents(jay.decisions.chain("caching")) == ["Redis"]
    assert elsewhere.decisions.chain("caching")[0].supersedes is None


def test_a_private_decision_is_not_outdated_by_somebody_who_cannot_see_it(jay):
    mine = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    yours = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER))
    secret = mine.decisions.save("salary", "Ask for more", access_level="private").memory
    yours.decisions.save("salary", "Ask for less")

    assert mine.get(secret.id).superseded_by is None


def test_a_reader_cannot_save(jay):
    reader = jay.bound_to(caller=Caller(user="eve", role=Role.READER))
    with pytest.raises(Forbidden):
        reader.decisions.save("auth", "None at all")


def test_forgetting_the_head_makes_the_one_before_it_current(jay):
    first = jay.decisions.save("caching", "Redis").memory
    second = jay.decisions.save("caching", "LRU").memory
    jay.forget(second.id)
    third = jay.decisions.save("caching", "None").memory
    jay.recover(second.id)
    last = jay.decisions.save("caching", "Both").memory

    current = [memory.id for memory in jay.decisions.chain("caching") if memory.superseded_by is None]
    assert jay.get(first.id).superseded_by == third.id
    assert current == [last.id]


def test_a_decision_saved_by_a_clock_that_was_set_back_is_the_current_one(jay, clock):
    jay.decisions.save("caching", "Redis")
    clock.move(seconds=-60)
    last = jay.decisions.save("caching", "LRU").memory

    current = [memory.id for memory in jay.decisions.chain("caching") if memory.superseded_by is None]
    assert current == [last.id]


def test_decisions_loaded_in_bulk_form_a_chain_too(jay):
    jay.store_many([{"content": f"Choice {n}", "kind": "decision", "topic": "caching"} for n in range(3)])

    assert [memory.superseded_by is None for memory in jay.decisions.chain("caching")] == [True, False, False]


def test_a_decision_saved_twice_with_one_key_is_saved_once(jay):
    from scrubjay.stores.promises.memories import Request

    keyed = jay.bound_to(request=Request(caller="local", key="k", operation="mama.save", arguments=b"x"))
    first, second = keyed.decisions.save("a", "One"), keyed.decisions.save("a", "One")

    assert first == second
    assert len(jay.decisions.chain("a")) == 1


# --- links -----------------------------------------------------------------------------------------------------------


def test_reasoning_links_decisions(jay):
    one = jay.decisions.save("storage", "SQLite").memory
    two = jay.decisions.save("search", "FTS5").memory
    saved = jay.decisions.save("engine", "Both", reasoning=f"synthesizes: [{one.name}, {two.name}, decision_gone_1_x]")

    assert saved.links == 2
    assert {link.target for link in jay.links(saved.memory.id)} == {one.id, two.id}
    assert {link.kind for link in jay.links(saved.memory.id)} == {LinkKind.SYNTHESIZES}


def test_two_hundred_ids_in_one_list(jay):
    names = [jay.decisions.save(f"topic {n}", f"Choice {n}").memory.name for n in range(200)]
    saved = jay.decisions.save("all", "Grand unification", reasoning=f"synthesizes: [{', '.join(names)}]")

    assert saved.links == 200
    [row] = jay.decisions.recent(limit=1).rows
    assert len(row.edges) == 200


def test_a_reference_to_what_one_may_not_see_makes_no_link(jay):
    secret = jay.bound_to(caller=Caller(user="ann")).decisions.save("s", "x", access_level="private").memory
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER))

    assert bob.decisions.save("t", "y", reasoning=f"builds_on: {secret.name}").links == 0


def test_a_cycle_of_links_ends(jay):
    a = jay.decisions.save("a", "A").memory
    b = jay.decisions.save("b", "B", reasoning=f"builds_on: {a.name}").memory
    with jay.records.writing() as tx:
        jay.ledger.link(tx, LinkKind.BUILDS_ON, a, b)
        jay.ledger.link(tx, LinkKind.BUILDS_ON, a, a)

    graph = jay.decisions.graph("a", steps=10)

    assert contents(graph.memories) == ["A", "B"]
    assert len(graph.links) == 3


def test_a_graph_reaches_as_far_as_asked(jay):
    previous = jay.decisions.save("t0", "zero").memory
    for n in range(1, 4):
        previous = jay.decisions.save(f"t{n}", f"step {n}", reasoning=f"builds_on: {previous.name}").memory

    assert [len(jay.decisions.graph("t0", steps=steps).memories) for steps in (0, 1, 2, 9)] == [1, 2, 3, 4]
    assert len(jay.decisions.graph().memories) == 4
    with pytest.raises(NotFound, match="nope"):
        jay.decisions.graph("nope")


def test_topics_are_listed_newest_first(jay, clock):
    jay.decisions.save("old", "One")
    clock.move(days=1)
    jay.decisions.save("new", "One")
    jay.decisions.save("NEW", "Two")

    assert [(one.name, one.decisions) for one in jay.decisions.topics()] == [("NEW", 2), ("old", 1)]


# --- outcomes --------------------------------------------------------------------------------------------------------


def test_an_outcome_is_a_version(jay):
    decision = jay.decisions.save("auth", "Use JWT").memory
    with pytest.raises(Conflict):
        jay.bound_to(expected_version=7).decisions.mark(decision.id, "success")
    jay.decisions.mark(decision.name, "FAILURE", reason="Too slow")

    changed = jay.get(decision.id)
    assert (changed.detail["outcome"], changed.detail["reason"]) == ("failed", "Too slow")
    assert "outcome" not in jay.history(decision.id)[0].memory.detail


@pytest.mark.parametrize("outcome", ["", "pending", None, 3])
def test_another_outcome_is_refused_with_the_ones_there_are(jay, outcome):
    decision = jay.decisions.save("auth", "Use JWT").memory
    with pytest.raises(InvalidInput, match="success, failed, partial"):
        jay.decisions.mark(decision.id, outcome)


# --- checkpoints -----------------------------------------------------------------------------------------------------


def test_checkpoints_count_in_each_space(jay):
    elsewhere = jay.bound_to(spaces=("work",))
    names = [one.decisions.checkpoint("Stopped here").memory.name for one in (jay, elsewhere, jay)]

    assert names == ["checkpoint_1", "checkpoint_1", "checkpoint_2"]
    assert elsewhere.get("checkpoint_1").space == "work"
    assert jay.get("checkpoint_1").space == "default"
    with pytest.raises(NotFound):
        elsewhere.get("checkpoint_2")


def test_a_number_is_not_given_twice(jay):
    first = jay.decisions.checkpoint("One").memory
    jay.forget(first.id, hard=True)

    assert jay.decisions.checkpoint("Two").memory.name == "checkpoint_2"


def test_a_checkpoint_is_context_under_its_own_path_or_the_next_free_one(jay):
    jay.store(NewMemory(content="In the way", path="checkpoints/2"))

    memory, later = (jay.decisions.checkpoint("Half way", next_steps="Test").memory for _ in range(2))

    assert (memory.kind, memory.category, memory.path) == (Kind.CHECKPOINT, Category.CONTEXT, "checkpoints/1")
    assert memory.text == "Half way\n\nTest"
    assert later.path == "checkpoints/2-2"


def test_steps_are_told_apart():
    text = "1. write\n2) test\n- [ ] 3. ship\n[x] plan\n* rest\n\n   \n[ ]  a\nplain 2.5 words"

    assert list(open_steps(text)) == ["write", "test", "ship", "rest", "a", "plain 2.5 words"]


# --- elsewhere -------------------------------------------------------------------------------------------------------


def test_names_survive_export_and_import(jay, open_engine):
    first = jay.decisions.save("auth", "Use JWT").memory
    second = jay.decisions.save("auth", "Use sessions", reasoning=f"debates: {first.name}").memory
    jay.decisions.checkpoint("One")
    jay.decisions.checkpoint("Two")
    other = open_engine(file="other.db")
    other.decisions.checkpoint("Was here first")
    other.transfer.import_from(list(jay.transfer.export()))

    assert other.get(second.name).content == "Use sessions"
    assert contents(other.decisions.chain("auth")) == ["Use sessions", "Use JWT"]
    numbers = {memory.name: memory.content for memory in other.list(Filter(kinds=frozenset({Kind.CHECKPOINT})))}
    assert numbers == {"checkpoint_1": "Was here first", "checkpoint_2": "One", "checkpoint_3": "Two"}


@pytest.mark.parametrize("number", ["999999999", "9999999999", "9" * 18, "9" * 40, "0", "007"])
def test_a_large_number_that_was_imported_does_not_hide_later_checkpoints(jay, number):
    line = {"kind": "checkpoint", "content": "Far ahead", "detail": {"name": f"checkpoint_{number}"}}
    jay.transfer.import_from([line])
    jay.transfer.import_from([{**line, "content": "Twice"}])

    made = jay.decisions.checkpoint("Here").memory

    for memory in jay.list(Filter(kinds=frozenset({Kind.CHECKPOINT}))):
        assert jay.get(memory.name).id == memory.id
    assert jay.get(made.name).content == "Here"


def test_a_memory_that_took_the_name_of_a_checkpoint_is_not_found_under_it(jay):
    """Imports could do that once."""
    jay.transfer.add_all(
        [jay.transfer.build_memory({"content": "Thief", "detail": {"name": "checkpoint_1"}}, id="default/checkpoint_1")]
    )

    with pytest.raises(NotFound):
        jay.get("checkpoint_1")
    made = jay.decisions.checkpoint("Here").memory

    assert made.name == "checkpoint_2"
    assert jay.get("checkpoint_2").id == made.id
    assert jay.get("default/checkpoint_1").content == "Thief", "its own id is still its own"


def test_a_decision_is_found_by_its_topic(jay):
    jay.decisions.save("kubernetes_ingress", "Use the nginx one")

    assert contents(hit.memory for hit in jay.search("kubernetes ingress", words_only=True)) == ["Use the nginx one"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_what_was_found_is_shown_however_long_its_chain(jay, limit):
    found = jay.decisions.save("hosting", "Kubernetes").memory
    later = [jay.decisions.save("hosting", f"Option {n}").memory.id for n in range(4)]

    rows = jay.decisions.search("Kubernetes", limit=limit).rows

    shown = [row.memory.id for row in rows]
    assert found.id in shown
    assert len(shown) == limit
    assert {*shown} <= {found.id, *later}


def test_a_long_chain_does_not_hide_other_topics(jay):
    for n in range(40):
        jay.decisions.save("caching", f"Cache choice number {n}")
    jay.decisions.save("caching policy of the browser", "Cache choice for browsers")

    topics = [row.memory.topic for row in jay.decisions.search("Cache choice for browsers", limit=10).rows]

    assert "caching policy of the browser" in topics
    assert "caching" in topics


@pytest.mark.parametrize(
    ("text", "category"),
    [("Always run the linter before a commit", Category.INSTRUCTION), ("I love PostgreSQL", Category.FACT)],
)
def test_a_decision_is_an_instruction_or_a_fact(jay, text, category):
    assert jay.decisions.save("t", text).memory.category is category
