"""Words and meaning become one order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.search import freshness
from scrubjay.engine.search.freshness import newer_first
from scrubjay.engine.search.ranking import Candidate
from scrubjay.values.memory import Link, LinkKind
from scrubjay.values.search import Match, Verdict
from tests.engine.columns import Glimpse, fresh_first, fuse, glimpses_of, rank_candidates
from tests.engine.language_facts import FACTS

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def ids(candidates):
    return [one.memory for one in candidates]


def test_a_memory_found_both_ways_outranks_one_found_once():
    """Agreement between words and meaning is worth more than either alone."""
    words = [Match("tea", 0.6), Match("both", 0.6)]
    meaning = [Match("milk", 0.6), Match("both", 0.6)]

    fused = fuse(words, meaning, {"tea": 0.3})

    assert ids(fused)[0] == "both"


def test_nothing_is_dropped_for_being_far():
    fused = fuse([Match("some-word", 0.01)], [Match("unrelated", 0.0)], {"some-word": 0.0})

    assert ids(fused) == ["some-word", "unrelated"]


def test_further_models_are_heard_by_their_weights():
    near = [Match("first", 0.6), Match("second", 0.5)]
    fused = fuse([], near, {}, ({"first": 0.1, "second": 0.9}, 0.5))
    by_three = fuse([], near, {}, ({"first": 0.1, "second": 0.9}, 0.5), ({"first": 0.75}, 0.2))

    assert ids(fused) == ["second", "first"]
    assert fused[0].similarity == pytest.approx(0.7)
    assert by_three[0] == fused[0]
    assert by_three[1].similarity == pytest.approx(0.43)


def test_scores_stay_between_nothing_and_one_and_words_speak_alone_where_there_is_no_vector():
    assert fuse([], [], {}) == []
    assert [one.score for one in fuse([Match("best", 1.0)], [Match("best", 1.0)], {})] == [1.0]
    assert [(one.memory, one.score) for one in fuse([Match("waits", 0.1)], [], {})] == [("waits", 0.1)]


def test_the_same_evidence_gives_the_same_score_whatever_else_was_found():
    alone = fuse([Match("it", 0.5)], [Match("it", 0.7)], {})
    in_company = fuse([Match("other", 1.0), Match("it", 0.5)], [Match("other", 0.9), Match("it", 0.7)], {})

    assert alone[0].score == next(one.score for one in in_company if one.memory == "it")


def test_each_memory_appears_once():
    fused = fuse([Match("a", 0.9), Match("b", 0.5)], [Match("b", 0.8), Match("a", 0.7)], {})

    assert sorted(ids(fused)) == ["a", "b"]


def test_a_memory_without_a_vector_does_not_outrank_one_that_is_near_by_both():
    """An archived memory that holds all the words once got 1.0, and an active one with the same words 0.67."""
    words = [Match("archived", 1.0), Match("active", 1.0)]

    found = fuse(words, [Match("active", 0.5)], {})

    assert [one.memory for one in found] == ["active", "archived"]
    assert found[1].score == found[0].score


# --- what outdates what ----------------------------------------------------------------------------------------------


def candidates_in_order(*names):
    return [Candidate(name, 0.9 - number / 20, 0.0, 0.5, 0.5) for number, name in enumerate(names)]


def link(newer, older, *, score=1.0, kind=LinkKind.MAY_OUTDATE):
    return Link(kind=kind, source=newer, target=older, score=score, created_at=datetime(2026, 11, 17, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "hint", "after"),
    [
        (("old", "new", "other"), {}, ["new", "old", "other"]),
        (("old", "other", "new"), {}, ["old", "other", "new"]),
        (("old", "new"), {"score": SURE - 0.01}, ["old", "new"]),
        (("old", "other", "new"), {"kind": LinkKind.SUPERSEDES}, ["new", "old", "other"]),
    ],
    ids=["an unsettled hint moves by one place", "and no further", "an unsure one moves nothing",
         "what somebody settled comes first from anywhere"],
)  # fmt: skip
def test_the_newer_of_a_pair_comes_before_the_older(before, hint, after):
    assert ids(fresh_first(candidates_in_order(*before), [link("new", "old", **hint)])) == after


def test_many_unsettled_hints_do_not_add_up():
    chain = [link("new", "middle"), link("new", "old"), link("middle", "old")]

    moved = ids(fresh_first(candidates_in_order("old", "middle", "new"), chain))

    assert all(abs(moved.index(name) - place) <= 1 for place, name in enumerate(("old", "middle", "new")))


# --- words that must count -------------------------------------------------------------------------------------------


def test_a_ticket_number_in_a_long_text_comes_before_short_texts_without_it(jay):
    for number in range(20):
        jay.store(f"Ticket {4100 + number} was closed")
    long = jay.store("Minutes. " + "We spoke about many things at length. " * 40 + "See OPS-7731 for the rest.").memory

    assert jay.search("OPS-7731")[0].memory.id == long.id


@pytest.mark.parametrize("letter", ["A", "B"])
@pytest.mark.parametrize("question", ["Room {}", "How many people fit into Room {}?"])
def test_a_room_is_found_by_its_letter_even_if_that_is_an_article(jay, question, letter):
    rooms = {
        one: jay.store(text).memory.id
        for one, text in {"A": "Room A seats twelve and has a projector", "B": "Room B seats thirty"}.items()
    }
    jay.store("The canteen is on the second floor")

    assert jay.search(question.format(letter))[0].memory.id == rooms[letter]


def test_tags_and_paths_are_searched_as_words(jay):
    jay.store("Rotate it twice a year", tags=["kubernetes"])
    jay.store("Water the plants")

    assert jay.search("kubernetes", words_only=True)[0].memory.tags == ("kubernetes",)


# --- newer before older, where both speak of one thing ----------------------------------------------------------------

OLD, NEW = "Gil edits in Premiere", "Gil has switched to Resolve"


def order_of(question, old=OLD, new=NEW, *, conversation=None, cosine=0.9, days=30, also="[]"):
    """In which order a question finds an older memory that has its words and a newer one on the same thing."""
    found = [Candidate("old", 0.6, 0.5, 0.6, 0.5), Candidate("new", 0.5, 0.2, 0.6, 0.5)]
    times = {"old": NOW - timedelta(days=days), "new": NOW}
    texts = {"old": old, "new": new}
    glimpses = {one: Glimpse(times[one], None, None, conversation, len(texts[one]), texts[one], also) for one in texts}
    vectors = {"old": np.array([1.0, 0.0]), "new": np.array([cosine, (1 - cosine**2) ** 0.5])}
    ordered, _ = newer_first(
        rank_candidates(found), glimpses_of(glimpses), question, lambda names: {name: vectors[name] for name in names}
    )
    return ids(ordered)


def test_a_newer_fact_on_the_same_thing_comes_before_an_older_one():
    assert order_of("what does Gil use?") == ["new", "old"]
    assert order_of("what does Gil use?", conversation="talk") == ["new", "old"]  # a fact that was told in it


@pytest.mark.parametrize(
    "different",
    [
        {"days": -30},
        {"cosine": 0.6},
        {"old": f"Ada: {OLD}", "new": f"Ada: {NEW}"},
        {"old": "I edit in Premiere", "new": "I switched to Resolve"},
        {"new": "Teun has switched to Resolve"},
    ],
    ids=[
        "not newer",
        "another thing",
        "who speaks",
        "first person",
        "another name",
    ],
)
def test_otherwise_what_has_the_words_of_the_question_stays_first(different):
    assert order_of("what does Gil use?", **different) == ["old", "new"]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Is invoice 1001 paid?", "Invoice 1001 is paid", "Invoice 1002 is not paid"),
        ("When does the backup of db1 run?", "The backup of db1 runs at 2", "The backup of db2 now runs at 4"),
        ("What is the main branch called?", "The main branch is called trunk",
         "The main branch of the docs repository is called docs-main"),
        ("When is mum's birthday?", "Mum's birthday is on 3 May", "Mum's sister has her birthday on 7 June"),
        ("anna phone", "Anna's phone number is 0171 553", "Anna moved to Berlin and lives in Mill Street now"),
        ("who owns the shipping service?", "The shipping service is owned by Kite", "The auth service is Kite's now"),
        ("when does the cat get medicine?", "The cat gets pills at 7", "The dog gets pills at 9 now"),
        ("猫の薬はいつ？", "猫の薬は朝にあげる", "犬の薬は今は夜にあげる"),
        ("где работает сестра?", "Сестра работает в Яндексе", "Брат теперь работает в Озоне"),
        ("what did Gil use previously?", OLD, NEW),
    ],
    ids=["another invoice", "another database", "a narrower thing", "somebody's sister", "the older one has all words",
         "another service", "another pet", "another pet, in one letter", "a brother", "who asks what was"],
)  # fmt: skip
def test_a_change_of_something_else_stays_behind(question, old, new):
    assert order_of(question, old, new) == ["old", "new"]


def test_a_short_newer_fact_does_not_pass_a_long_note_of_which_only_the_opening_is_known():
    long = f"{OLD}. " + "Much else was said at that meeting. " * 20

    assert order_of("what does Gil use?") == ["new", "old"]
    assert order_of("what does Gil use?", old=long) == ["old", "new"]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("Who owns the payment service?", "Maria owns the payment service", "Jonas owns the payment service now"),
        ("where do the dailies take place, are they uploaded?", "Dailies are uploaded to Framebox by 20:00",
         "The Framebox contract ended; dailies now take place in Kollektor"),
        ("which cell does the sensor need", "The sensor runs on one CR123", "Battery: the sensor now has two AA cells"),
    ],
    ids=["who does it now", "a word of the question is gone, others are there", "a heading is no speaker"],
)  # fmt: skip
def test_a_change_that_is_told_in_other_words_comes_first(question, old, new):
    assert order_of(question, old, new) == ["new", "old"]


def test_phrases_show_that_two_memories_are_about_one_thing():
    told_otherwise = "The cutting room has gone over to Resolve"

    assert order_of("which program cuts the films?", new=told_otherwise) == ["old", "new"]
    assert order_of("which program cuts the films?", new=told_otherwise, also='["editing program"]') == ["new", "old"]


@pytest.mark.parametrize(
    ("question", "right", "newer"),
    [
        ("Which toner does the printer on floor two need?", "The printer on floor two needs toner TN-2420",
         "The printer on floor three was exchanged and needs toner CF259A"),
        ("What does line one make?", "Line one of the factory makes bottles",
         "Line two was refitted and makes cans now"),
        ("Which Node version does the shipping service run on?",
         "The shipping service runs on Node 20 and is deployed to Render",
         "Node 18 reached its end of life; checkout is on Node 22 since last week"),
        ("Which version of Node is shipping on?", "The shipping service runs on Node 20",
         "Checkout was upgraded to Node 22"),
        ("Into which languages is the marketing site translated?",
         "The marketing site is translated into French and German",
         "The app was translated into Spanish and Polish, French was dropped"),
        ("What interest do we pay on the house?", "The mortgage rate is 1.9 percent until 2031",
         "The car loan was refinanced at 4.2 percent"),
        ("Which system is the billing service on?", "The billing service is on Linux",
         "The ledger service is on Windows now"),
        ("anna's diet", "Anna now eats no meat", "Yuki now eats no meat, only fish"),
        ("演示服务器用哪个端口", "演示服务器运行在8080端口。", "生产服务器现在运行在9090端口。"),
    ],
    ids=["floor", "line", "shipping and checkout", "a short one", "site", "mortgage", "service", "person", "demo"],
)  # fmt: skip
def test_a_change_of_its_sibling_does_not_come_before_what_was_asked_for(real_jay, clock, question, right, newer):
    real_jay.store(right)
    clock.move(days=30)
    real_jay.store(newer)

    assert real_jay.search(question)[0].memory.content == right


# --- evidence that both speak of one thing ----------------------------------------------------------------------------


@pytest.mark.parametrize("language", FACTS)
def test_facts_on_other_things_do_not_come_before_the_answer_for_being_newer(real_jay, clock, language, monkeypatch):
    """Where a model knows little of a language, any two texts are near for it."""
    for fact, _ in FACTS[language]:
        real_jay.store(fact)
        clock.move(days=20)

    with_the_rule = answers_among(real_jay, language)
    monkeypatch.setattr(freshness, "COMPARED", 0)

    assert with_the_rule[FIVE] >= answers_among(real_jay, language)[FIVE]
    assert with_the_rule[0] >= answers_among(real_jay, language)[0] - 1


FIVE = 4


def answers_among(jay, language):
    """For each number of hits, how many of the questions have their answer among so many."""
    places = []
    for fact, question in FACTS[language]:
        found = [hit.memory.content for hit in jay.search(question, limit=10)]
        places.append(found.index(fact) if fact in found else len(found))
    return [sum(place <= most for place in places) for most in range(10)]


def test_decisions_on_other_topics_do_not_come_before_the_one_that_was_asked_for(real_jay, clock):
    topics = {
        "queue": "Use RabbitMQ",
        "cache": "Use Redis",
        "storage": "Use MinIO",
        "search": "Use OpenSearch",
        "proxy": "Use Caddy",
    }
    for topic, decision in topics.items():
        real_jay.decisions.save(topic, decision)
        clock.move(days=3)

    assert real_jay.search("message broker")[0].memory.content == "Use RabbitMQ"


def test_a_newer_one_that_is_put_first_is_as_likely_as_the_outdated_one_was(real_jay, clock, monkeypatch):
    for text in ("Maria owns the payment service", "Jonas owns the payment service now", "The office is in Ghent"):
        real_jay.store(text)
        clock.move(days=30)

    ordered = real_jay.search("Who owns the payment service?")
    monkeypatch.setattr(freshness, "COMPARED", 0)
    monkeypatch.setattr(freshness, "SURE", 2.0)
    plain = {hit.memory.content: hit for hit in real_jay.search("Who owns the payment service?")}

    new, old, other = ordered
    assert (new.memory.content, old.memory.content) == (
        "Jonas owns the payment service now",
        "Maria owns the payment service",
    )
    assert next(iter(plain)) == old.memory.content
    assert new.score >= 0.8 * plain[old.memory.content].score
    assert other.score == plain[other.memory.content].score
    assert old.verdict is Verdict.WEAK
    assert plain[old.memory.content].verdict is Verdict.STRONG
