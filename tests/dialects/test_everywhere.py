"""Reads look in every space the caller may see, the current one first, and say where a memory is from."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import find
from scrubjay.engine.lifecycle.bulk import Bulk
from scrubjay.engine.reminder import remind
from scrubjay.errors import NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.search import Filter, Query, Verdict

FACT = "The demo runs on port 8080"
QUESTION = "Which port does the demo run on?"


def ok(engine, dialect, tool, /, **arguments):
    reply = find(dialect).call(engine, tool, arguments)
    assert not reply.failed, reply.text
    return reply


@pytest.fixture
def here(jay):
    """Bound to the project acme, where the fact is stored; `jay` itself works in the default space."""
    here = jay.bound_to(spaces=("acme",), only=False)
    here.store(FACT)
    return here


def contents(found):
    return [one.memory.content if hasattr(one, "memory") else one.content for one in found]


# --- every dialect ---------------------------------------------------------------------------------------------------


def test_the_default_tools_find_it_and_say_which_space_it_is_from(jay, here):
    for reply in (ok(jay, "scrubjay", "recall", question=QUESTION), ok(jay, "scrubjay", "recent")):
        assert FACT in reply.text
        assert "from space acme" in reply.text
        assert reply.body["memories"][0]["space"] == "acme"

    assert "from space" not in ok(here, "scrubjay", "recall", question=QUESTION).text


@pytest.mark.parametrize(
    ("dialect", "tool", "arguments"),
    [
        ("memento", "search_memories", {"query": QUESTION}),
        ("memento", "list_recent_memories", {}),
        ("system", "recall_memories", {"query": QUESTION}),
        ("system", "list_memories", {}),
        ("mama", "search", {"query": QUESTION}),
        ("native", "search", {"query": QUESTION}),
        ("native", "list_memories", {}),
    ],
)
def test_a_dialect_that_names_no_scope_finds_it(jay, here, dialect, tool, arguments):
    assert FACT in ok(jay, dialect, tool, **arguments).text


def test_a_workspace_is_a_scope(jay, here):
    """Chimera's paper: without one it is the default workspace, and nothing of others is in a search."""
    assert FACT not in ok(jay, "chimera", "search", query=QUESTION).text
    assert FACT in ok(jay, "chimera", "search", query=QUESTION, workspace_id="workspace-acme").text


def test_a_checkpoint_is_that_of_the_project_and_a_search_finds_all(jay, here):
    here.decisions.checkpoint("The parser is done")
    jay.decisions.save("cache", "Use Redis", reasoning="It is there")
    here.decisions.save("cache", "Use an LRU", reasoning="No server")

    assert ok(jay, "mama", "load_checkpoint").body["checkpoint"] is None
    assert ok(here, "mama", "load_checkpoint").body["checkpoint"]["summary"] == "The parser is done"
    assert contents(here.decisions.chain("cache")) == ["Use an LRU"]
    assert {
        one["decision"] for one in ok(jay, "mama", "search", query="cache").body["results"] if "decision" in one
    } >= {
        "Use Redis",
        "Use an LRU",
    }


def test_a_topic_of_another_space_is_shown_where_this_one_has_none(jay, here):
    here.decisions.save("cache", "Use an LRU", reasoning="No server")

    assert contents(jay.decisions.chain("cache")) == ["Use an LRU"]


# --- order -----------------------------------------------------------------------------------------------------------


def test_equally_good_memories_of_this_space_come_first(jay, here):
    jay.store(FACT)

    first, second = jay.search(QUESTION).hits[:2]
    other, own = here.search(QUESTION).hits[:2][::-1]

    assert (first.memory.space, second.memory.space) == ("default", "acme")
    assert (own.memory.space, other.memory.space) == ("acme", "default")


def test_a_strong_one_elsewhere_comes_before_a_weak_one_here(real_jay):
    there, here = real_jay.bound_to(spaces=("acme",), only=False), real_jay
    there.store("The demo of the shop runs on port 8080")
    here.store("The demo on Thursday was a success")

    found = here.search("Which port does the demo of the shop run on?")

    labels = [(hit.memory.space, hit.verdict) for hit in found]
    assert labels[0] == ("acme", Verdict.STRONG)
    assert labels[1][0] == "default"
    assert labels[1][1] is not Verdict.STRONG
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_question_answered_here_does_not_fill_the_page_with_other_projects(real_jay):
    here = real_jay.bound_to(spaces=("acme",), only=False)
    here.store("The demo runs on port 8080")
    for number, topic in enumerate(("intranet", "wiki", "archive", "logo"), 1):
        real_jay.bound_to(spaces=(f"project-{number}",), only=False).store(f"The {topic} was presented in a demo")

    found = here.search("Which port does the demo run on?")

    assert found.hits[0].memory.space == "acme"
    assert found.total <= 2


def test_pages_follow_each_other_over_all_spaces(jay):
    for number in range(12):
        jay.bound_to(spaces=(f"project-{number % 3}",), only=False).store(f"Crate {number} stands on a shelf")

    pages = [jay.search(Query(text="crate shelf", limit=5, offset=start)) for start in (0, 5, 10)]
    shown = [hit.memory.id for page in pages for hit in page]

    assert len(shown) == len(set(shown)) == 12
    assert {page.total for page in pages} == {12}


# --- counts, briefs, hooks -------------------------------------------------------------------------------------------


def test_counts_tags_and_topics_are_those_of_every_space(jay, here):
    here.store("The staging host is blue", tags=("staging",))

    assert jay.statistics().count.total == 2
    assert [one.tag for one in jay.tags()] == ["staging"]
    assert jay.list(counted=True).total == 2
    assert jay.bound_to(only=True).statistics().count.total == 0


def test_a_brief_names_other_spaces_with_their_counts_and_tells_nothing_of_them(jay, here):
    brief = jay.brief()

    assert "acme (1)" in brief.text
    assert FACT not in brief.text
    assert [space.name for space in brief.elsewhere] == ["acme"]
    assert brief.tokens <= brief.budget


def test_a_brief_of_a_project_tells_what_is_personal(jay, here):
    jay.store("The user writes British English")
    jay.bound_to(spaces=("other",), only=False).store("The other build takes an hour")

    brief = here.brief()

    assert [section.title for section in brief.sections] == ["Project acme", "Personal: default"]
    assert "other (1)" in brief.text
    assert "takes an hour" not in brief.text


@pytest.mark.parametrize("budget", [100, 1_500])
def test_many_spaces_do_not_burst_a_brief(jay, budget):
    for number in range(30):
        jay.bound_to(spaces=(f"a-project-with-quite-a-long-name-{number}",), only=False).store("Use make")

    assert jay.brief(budget=budget).tokens <= budget


def test_a_reminder_gives_strong_ones_from_anywhere_and_says_from_where(jay, here):
    found = remind(jay, "demo port 8080", words_only=True)

    assert FACT in found.text
    assert "from space acme" in found.text


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_correction_from_another_space_gets_its_hint_and_can_be_settled(real_jay):
    acme = real_jay.bound_to(spaces=("acme",), only=False)
    old = acme.store(FACT).memory.id

    reply = ok(real_jay, "scrubjay", "remember", facts=["The demo runs on port 9090"])
    [one] = reply.body["remembered"]
    new = one["memory"]["id"]

    assert [(each["memory"]["id"], each["likely"]) for each in one["may_outdate"]] == [(old, "replaces")]
    assert "from space acme" in reply.text
    assert one["memory"]["space"] == "default"
    assert [pair.old.id for pair in acme.conflicts.list()] == [old]

    ok(real_jay, "scrubjay", "settle", old=old, new=new, relation="replaces")

    for engine in (real_jay, acme):
        assert contents(engine.search(QUESTION)) == ["The demo runs on port 9090"]


def test_what_is_personal_goes_to_the_default_space(jay, here):
    facts = [{"content": "The user is a nurse", "personal": True}, {"content": "Use make"}]

    stored = ok(here, "scrubjay", "remember", facts=facts).body["remembered"]
    narrow = ok(here.bound_to(only=True), "scrubjay", "remember", facts=facts).body["remembered"]

    assert [one["memory"]["space"] for one in stored] == ["default", "acme"]
    assert [one["memory"]["space"] for one in narrow] == ["acme", "acme"]


def test_changes_to_whatever_a_filter_matches_stay_in_the_space(jay, here, clock):
    here.store("It expires", expires_at=clock().replace(year=2027), tags=("old",))
    jay.store("It stays", tags=("old",))
    clock.move(days=800)

    assert jay.prune() == ()
    assert [memory.space for memory in here.prune()] == ["acme"]
    assert Bulk(here).preview(Filter(tags=frozenset({"old"}))).total == 0
    assert Bulk(jay).forget(Filter(tags=frozenset({"old"}))).count == 1


def test_memories_that_are_named_are_changed_wherever_they_are(jay, here):
    [memory] = jay.list()

    assert Bulk(jay).forget(Filter(ids=frozenset({memory.id}))).count == 1


@pytest.mark.parametrize("dialect", ["scrubjay", "memento", "system", "native"])
def test_a_space_created_meanwhile_does_not_spoil_a_replay(jay, dialect):
    tool, arguments = {
        "scrubjay": ("remember", {"facts": ["Tea is at four"]}),
        "native": ("store_memory", {"content": "Tea is at four"}),
    }.get(dialect, ("store_memory", {"content": "Tea is at four"}))

    first = find(dialect).call(jay, tool, arguments, key="k1")
    jay.known_spaces.create("made-meanwhile")
    again = find(dialect).call(jay, tool, arguments, key="k1")

    assert (again.failed, again.text) == (False, first.text)
    assert jay.list(counted=True).total == 1


# --- narrowed --------------------------------------------------------------------------------------------------------


def test_only_keeps_reads_to_the_space(jay, here):
    narrow = jay.bound_to(only=True)

    assert "Memory does not know" in ok(narrow, "scrubjay", "recall", question=QUESTION).text
    assert ok(narrow, "scrubjay", "recent").body["memories"] == []
    assert "acme" not in ok(narrow, "scrubjay", "brief").text
    assert not narrow.store("The demo runs on port 8080!").same


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def four(jay):
    """Four spaces with a secret each, and a member of two of them."""
    for space in ("alpha", "beta", "gamma", "delta"):
        jay.bound_to(spaces=(space,), only=False).store(f"The vault code of {space} is 4711")
    return jay.bound_to(caller=Caller(user="alice", role=Role.MEMBER, spaces=frozenset({"alpha", "beta"})))


OTHERS = ("gamma", "delta")


@pytest.mark.parametrize("current", ["alpha", "default", "gamma"])
def test_a_key_sees_the_spaces_granted_to_it_and_nothing_of_others(four, current):
    alice = four.bound_to(spaces=(current,), only=False)
    found = alice.search("vault code")

    replies = [
        ok(alice, "scrubjay", "recall", question="What is the vault code?"),
        ok(alice, "scrubjay", "recent"),
        ok(alice, "scrubjay", "brief"),
        ok(alice, "memento", "search_memories", query="vault code"),
        ok(alice, "memento", "list_recent_memories"),
        ok(alice, "system", "recall_memories", query="vault code"),
        ok(alice, "native", "list_memories"),
        ok(alice, "native", "brief"),
    ]

    assert {hit.memory.space for hit in found} == {"alpha", "beta"}
    assert found.total == 2
    assert alice.list(counted=True).total == 2
    assert alice.statistics().count.total == 2
    for reply in replies:
        told = reply.text.replace(f"space {current}", "").replace("Space gamma", "")
        assert not any(f"of {space}" in told or f"{space} (" in told for space in OTHERS), told


def test_a_member_is_hinted_at_its_own_spaces_only(jay, model):
    for space in ("alpha", "gamma"):
        jay.bound_to(spaces=(space,), only=False).store(FACT)
    alice = jay.bound_to(
        caller=Caller(user="alice", role=Role.MEMBER, spaces=frozenset({"alpha", "beta"})),
        spaces=("beta",),
        only=False,
    )

    stored = alice.store(FACT)

    assert {one.space for one in stored.candidates} == {"alpha"}


def test_a_memory_of_another_space_is_none_to_whom_it_was_not_granted(jay, four):
    [secret] = jay.bound_to(spaces=("gamma",), only=True).list()

    with pytest.raises(NotFound):
        four.get(secret.id)
