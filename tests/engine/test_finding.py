"""What a search puts first, beside words and meaning."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scrubjay.engine.search import ranking
from scrubjay.engine.search.ranking import Candidate
from scrubjay.values.memory import Link, LinkKind
from scrubjay.values.search import Filter, Query, Weights
from tests.engine.columns import Glimpse, fresh_first, second_look

TRAINING = Path(__file__).parents[2] / "training"
NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


def candidate(name, score, cosine=0.6):
    return Candidate(name, score, 0.0, cosine, 0.5)


def glimpse(opening="Something was said", *, days=0, talk=None, length=ranking.OPENING_LENGTH):
    return Glimpse(NOW - timedelta(days=days), None, None, talk, length, opening)


def order(candidates):
    return [one.memory for one in candidates]


def look_again(candidates, glimpses, question="What was said?", periods=()):
    return order(second_look(candidates, glimpses, question, periods))


# --- strange questions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        "a", "the of and", "🙂🙂", "?", "   x   ", "word " * 1_000, "def f(x):\n    return x['a']", "SELECT 1; --",
        "on 31 February 2026", "yesterday yesterday yesterday", "before the the the", "\u202etxet", "a\0b", "1", "…",
        "in 0000", "last last last year",
    ],
)  # fmt: skip
def test_any_question_gets_the_same_answer_twice_and_no_error(jay, question):
    for text in ("User lives in Seattle", "User likes tea", "Alles war gestern anders", "def f(x): return x"):
        jay.store(text)

    first, second = (jay.search(question, explain=True) for _ in range(2))

    assert [(hit.memory.id, hit.score) for hit in first] == [(hit.memory.id, hit.score) for hit in second]
    assert all(0 <= hit.score <= 1 for hit in first)


def test_memories_with_the_same_text_and_time_keep_one_order(jay, clock):
    jay.store_many([{"content": "User likes tea", "created_at": clock()} for _ in range(12)])

    pages = [[hit.memory.id for hit in jay.search("tea", limit=12)] for _ in range(3)]

    assert pages[0] == pages[1] == pages[2]
    assert len(set(pages[0])) == 12


def test_pages_of_a_search_neither_overlap_nor_leave_anything_out(jay):
    jay.store_many({"content": f"User drank tea number {number}", "conversation_id": "c"} for number in range(150))

    paged = [hit.memory.id for start in range(0, 150, 25) for hit in jay.search("tea", limit=25, offset=start)]

    assert len(paged) == len(set(paged)) == 150


# --- time ------------------------------------------------------------------------------------------------------------


def test_what_is_from_the_named_time_comes_first_and_nothing_is_hidden(jay, clock):
    for days in (40, 8, 1):
        jay.store(f"User went swimming at the lake, time {days}", created_at=clock() - timedelta(days=days))

    hits = jay.search("When did the user go swimming at the lake last week?", explain=True)

    assert hits[0].memory.content.endswith("8")
    assert len(hits) == 3
    assert hits[0].explanation.boosts["time"] > 0
    assert [period.words for period in hits.periods] == ["last week"]


def test_without_a_time_in_the_question_none_is_preferred(jay, clock):
    jay.store("User went swimming", created_at=clock() - timedelta(days=8))

    hits = jay.search("Where does the user go swimming?", explain=True)

    assert hits.periods == ()
    assert "time" not in hits[0].explanation.boosts


def test_now_says_what_last_week_is(jay, clock):
    for days in (40, 8):
        jay.store(f"User went swimming, time {days}", created_at=clock() - timedelta(days=days))

    hits = jay.search("Who went swimming last week?", now=clock() - timedelta(days=32))

    assert hits[0].memory.content.endswith("40")


def test_an_asked_for_window_hides_what_lies_outside(jay, clock):
    for days in (40, 8):
        jay.store(f"User went swimming, time {days}", created_at=clock() - timedelta(days=days))
    recent = Filter(created_since=clock() - timedelta(days=10))

    hits = jay.search(Query(text="swimming in May 2020", filter=recent))

    assert [hit.memory.content[-1] for hit in hits] == ["8"]


def test_a_memory_suits_the_time_it_was_true_not_the_time_it_was_written(jay, clock):
    year = timedelta(days=365)
    jay.store("User had a flat in Ghent, time B", created_at=clock())
    true_then = jay.store(
        "User had a flat in Ghent, time A", valid_from=clock() - 3 * year, valid_until=clock() - 2 * year
    ).memory

    hits = jay.search(f"Where did the user have a flat in {clock().year - 3}?")

    assert hits[0].memory.id == true_then.id


def test_before_an_event_is_before_the_memory_of_it(real_jay, clock):
    real_jay.store("User rented a flat with a garden in Ghent", created_at=clock() - timedelta(days=300))
    real_jay.store("The move to Antwerp: we moved house", created_at=clock() - timedelta(days=100))
    real_jay.store("User rented a flat with a garden in Antwerp", created_at=clock() - timedelta(days=10))

    hits = real_jay.search("Where did the user rent a flat before the move to Antwerp?", explain=True)

    assert hits.periods[0].words == "before the move to Antwerp"
    assert hits.periods[0].end == clock() - timedelta(days=100)


# --- the second look -------------------------------------------------------------------------------------------------


def test_of_two_equally_near_the_shorter_comes_first():
    pair = [candidate("long", 0.6), candidate("short", 0.6)]

    assert look_again(pair, {"long": glimpse(length=4_000), "short": glimpse()}) == ["short", "long"]


def test_length_costs_no_more_the_longer_it_gets():
    pair = [candidate("long", 0.6), candidate("longest", 0.6)]

    scores = [
        one.score
        for one in second_look(pair, {"long": glimpse(length=4_000), "longest": glimpse(length=50_000)}, "?", ())
    ]

    assert scores[0] == scores[1]


def test_length_costs_less_outside_of_a_conversation():
    pair = [candidate("said", 0.6), candidate("noted", 0.6)]

    assert look_again(pair, {"said": glimpse(length=4_000, talk="c"), "noted": glimpse(length=4_000)}) == [
        "noted",
        "said",
    ]


def test_a_long_note_is_as_good_as_its_best_passage():
    pair = [Candidate("short", 0.3, 0.4, 0.6, 0.3), Candidate("long", 0.2, 0.1, 0.6, 0.2)]
    glimpses = {"short": glimpse(), "long": glimpse(length=4_000)}

    assert order(second_look(pair, glimpses, "?", ())) == ["short", "long"]
    assert order(second_look(pair, glimpses, "?", (), {"long": 1.0})) == ["long", "short"]


@pytest.mark.parametrize(
    ("words", "text", "held"),
    [
        (("kumquat",), "We saw two kumquats. " + "It rained. " * 200, 1.0),
        (("spore", "test"), "It failed its spore tests. " + "It rained. " * 200, 1.0),
        (("spore", "test"), "Spores. " + "It rained. " * 200 + "A test.", 0.5),  # not in one passage
        (("CI",), "The city council. " * 100, 0.0),
        (("nr_hugepages",), "set vm.nr_hugepages = 13312 " * 50, 1.0),
        (("東京", "京都"), "昨日は東京都で。" * 100, 1.0),
        ((), "It rained. " * 200, 0.0),
    ],
)
def test_a_passage_holds_words_that_stand_together(words, text, held):
    assert ranking.best_passage(text, dict.fromkeys(words, 0.7)) == pytest.approx(held)


def test_a_long_diary_among_short_notes_is_found_by_what_it_alone_says(real_jay):
    world = json.loads((TRAINING / "everyday" / "home.json").read_text(encoding="utf-8"))
    diary = (TRAINING / "long" / "home.txt").read_text(encoding="utf-8").partition("\n? ")[0]
    real_jay.store_many([{"content": one["text"]} for one in world["memories"]])
    long = real_jay.store(diary).memory.id

    for question in ("kumquat", "honesty box", "the gull that took a sausage out of Owen's hand", "marmalade organist"):
        hits = real_jay.search(question)
        assert (question, hits[0].memory.id) == (question, long)
        assert hits.verdict != "none"


def test_in_a_short_note_meaning_counts_more_than_a_shared_word_and_in_a_conversation_it_does_not():
    meant, worded = Candidate("meant", 0.44, 0.0, 0.7, 0.7), Candidate("worded", 0.45, 0.5, 0.6, 0.42)
    short = {"meant": glimpse(length=50), "worded": glimpse(length=50)}
    said = {"meant": glimpse(length=50, talk="c"), "worded": glimpse(length=50, talk="d")}
    long = {"meant": glimpse(length=400), "worded": glimpse(length=400)}

    assert look_again([worded, meant], short) == ["meant", "worded"]
    assert look_again([worded, meant], said) == look_again([worded, meant], long) == ["worded", "meant"]


def test_with_other_wordings_of_the_question_a_shared_word_counts_in_a_short_note_too():
    meant, worded = Candidate("meant", 0.44, 0.0, 0.7, 0.7), Candidate("worded", 0.45, 0.5, 0.6, 0.42)
    short = {"meant": glimpse(length=50), "worded": glimpse(length=50)}

    found = second_look([worded, meant], short, "What was said?", (), also=("what was meant?",))

    assert order(found) == ["worded", "meant"]


def test_in_a_conversation_what_the_named_person_said_comes_first():
    pair = [candidate("Tom", 0.6), candidate("Ann", 0.6)]
    said = {"Tom": glimpse("Tom: the lake", talk="c"), "Ann": glimpse("Ann: the lake", talk="c")}

    assert look_again(pair, said, "Where did Ann go?") == ["Ann", "Tom"]


def test_a_question_about_oneself_is_answered_by_what_people_said_of_themselves():
    pair = [candidate("advice", 0.65), candidate("told", 0.6)]
    said = {"advice": glimpse("Try a shorter route", talk="c"), "told": glimpse("I ran my best time", talk="d")}
    noted = {"advice": glimpse("Try a shorter route"), "told": glimpse("I ran my best time")}

    assert look_again(pair, said, "What is my best time?") == ["told", "advice"]
    assert look_again(pair, said, "What is the best time?") == ["advice", "told"]
    assert look_again(pair, noted, "What is my best time?") == ["advice", "told"]


def test_a_memory_is_drawn_towards_the_best_of_its_conversation():
    some = [candidate("answer", 0.8), candidate("elsewhere", 0.5), candidate("around it", 0.48)]
    seen = {"answer": glimpse(talk="c"), "elsewhere": glimpse(talk="d"), "around it": glimpse(talk="c")}

    assert look_again(some, seen) == ["answer", "around it", "elsewhere"]


def test_what_is_alone_in_its_conversation_and_what_was_not_looked_at_keep_their_scores():
    [alone] = second_look([candidate("alone", 0.5)], {"alone": glimpse(talk="c")}, "?", ())

    assert alone.score == 0.5
    assert second_look([candidate("it", 0.5)], {}, "Did I?", ()) == [candidate("it", 0.5)]


def test_a_search_by_words_looks_only_once(jay):
    jay.store("I went swimming")

    [hit] = jay.search("Did I go swimming yesterday?", words_only=True, explain=True)

    assert hit.explanation.boosts == {}


# --- fresh before stale ----------------------------------------------------------------------------------------------


def link(newer, older, kind=LinkKind.MAY_OUTDATE, state="open"):
    return Link(kind=kind, source=newer, target=older, state=state, score=0.9, created_at=NOW)


def test_the_newer_of_a_pair_takes_the_place_of_the_older_and_keeps_its_own_score():
    some = [candidate("best", 0.9), candidate("old", 0.8), candidate("new", 0.75), candidate("other", 0.7)]

    moved = fresh_first(some, [link("new", "old")])

    assert [(one.memory, one.score) for one in moved] == [("best", 0.9), ("new", 0.75), ("old", 0.8), ("other", 0.7)]


def test_a_superseded_chain_ends_up_newest_first():
    pairs = [("2", "1"), ("3", "2"), ("3", "1")]

    swapped = fresh_first(
        [candidate("1", 0.8), candidate("2", 0.75), candidate("3", 0.7)],
        [link(*pair, kind=LinkKind.SUPERSEDES) for pair in pairs],
    )

    assert order(swapped) == ["3", "2", "1"]


@pytest.mark.parametrize(
    ("score", "state"),
    [(0.7, "kept"), (0.7, "superseded"), (0.4, "open")],
    ids=["both are kept", "it is settled", "the newer one hardly answers"],
)
def test_a_pair_stays_as_it_is(score, state):
    pair = [candidate("old", 0.8), candidate("new", score)]

    assert fresh_first(pair, [link("new", "old", state=state)]) == pair


def test_links_in_a_circle_come_to_an_end():
    pair = [candidate("a", 0.8), candidate("b", 0.7)]

    assert sorted(order(fresh_first(pair, [link("a", "b"), link("b", "a")]))) == ["a", "b"]


def test_search_shows_the_fresh_one_first(real_jay):
    real_jay.store("User lives in Seattle")
    real_jay.store("User moved to Austin")

    first, second = real_jay.search("Which place does the user live in?", explain=True)

    assert (first.memory.content, second.memory.content) == ("User moved to Austin", "User lives in Seattle")
    assert first.score < second.score  # the place says that it is newer, the score how well it answers
    assert {"newer", "current"} & first.explanation.boosts.keys()


def test_a_superseded_one_that_is_asked_for_comes_behind_its_successor(jay):
    old = jay.store("User drinks tea in the morning, black tea").memory
    new = jay.store("User drinks coffee in the morning").memory
    jay.supersede(old=old.id, new=new.id)
    both = Filter(states=frozenset({old.state, jay.get(old.id).state}))

    found = [hit.memory.id for hit in jay.search(Query(text="User drinks black tea in the morning", filter=both))]

    assert found == [new.id, old.id]


def test_who_asks_about_a_time_gets_what_was_true_then(real_jay, clock):
    real_jay.store("User lives in Seattle", created_at=clock() - timedelta(days=400))
    real_jay.store("User moved to Austin", created_at=clock() - timedelta(days=3))

    assert (
        real_jay.search(f"Where did the user live in {clock().year - 1}?")[0].memory.content == "User lives in Seattle"
    )


def test_a_weighted_sum_stays_a_plain_one(real_jay):
    real_jay.store("User lives in Seattle")
    real_jay.store("User moved to Austin")

    hits = real_jay.search(
        Query(
            text="Which place does the user live in?",
            weights=Weights(similarity=1.0, recency=0, importance=0, access=0),
        )
    )

    assert hits[0].memory.content == "User lives in Seattle"


def test_scores_mean_the_same_whatever_else_is_there(real_jay):
    real_jay.store("User lives in Seattle")
    [alone] = real_jay.search("Where does the user live?")
    real_jay.store_many(
        [{"content": text} for text in ("The harbour is called Vik", "Tea is hot", "A cello has four strings")]
    )

    in_company = real_jay.search("Where does the user live?")[0]

    assert in_company.memory.id == alone.memory.id
    assert in_company.score == pytest.approx(alone.score, abs=0.1)  # words are rarer among more texts


def test_the_second_look_is_at_no_more_than_a_hundred(jay):
    jay.store_many({"content": f"User drank tea {number}"} for number in range(180))

    hits = jay.search("Which tea did I drink?", limit=180, explain=True)

    assert sum(bool(hit.explanation.boosts) for hit in hits) <= ranking.MOST_LOOKED_AT
