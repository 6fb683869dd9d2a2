"""A low first score says that there is probably no answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scrubjay.engine.search.answerability import FIRST, SIGN
from scrubjay.engine.search.ranking import Candidate, lower_if_unanswered
from scrubjay.values.memory import Glimpse, Query, Weights

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def scores(question, *openings):
    """The scores of memories that begin so, each 0.8 before."""
    found = [Candidate(str(number), 0.8, 0.0, 0.6, 0.5) for number in range(len(openings))]
    glimpses = {str(number): Glimpse(NOW, None, None, None, len(text), text) for number, text in enumerate(openings)}
    return [one.score for one in lower_if_unanswered(found, glimpses, question)]


def test_nothing_found_stays_nothing():
    assert lower_if_unanswered([], {}, "Where does Anna live?") == []


def test_what_was_not_looked_at_is_not_doubted():
    found = [Candidate("it", 0.8, 0.0, 0.6, 0.5)]

    assert lower_if_unanswered(found, {}, "Where does Anna live?") == found


@pytest.mark.parametrize("opening", ["", "?", "   ", "🙂", "::", "Anna"])
def test_any_memory_can_be_looked_at(opening):
    [score] = scores("Where does Anna live?", opening)

    assert 0 < score <= 0.8


@pytest.mark.parametrize(
    ("question", "opening"),
    [
        ("Where does Anna live?", "Anna lives in Rome"),
        ("Where does Anna live?", "Anna: I live in Rome"),
        ("Where does Anna live?", "User's sister Anna lives in Rome"),
        ("Where do I live?", "User lives in Rome"),
        ("What is due on Friday?", "The report is due on Friday"),  # a day is nobody
        ("Where do you live?", "You live in Rome"),
    ],
)
def test_what_looks_like_an_answer_is_not_doubted(question, opening):
    assert scores(question, opening) == [0.8]


@pytest.mark.parametrize(
    "opening",
    [
        "Anna: Where do you live?",  # asks, and is told to somebody
        "Anna: Your house in Rome is great",
        "Tom: I live in Rome",  # is another
        "Tom lives in Rome",
    ],
)
def test_what_asks_or_tells_of_another_is_doubted(opening):
    [score] = scores("Where does Anna live?", opening)

    assert score < 0.8


def test_signs_add_up():
    [one] = scores("Where does Anna live?", "Tom: I live in Rome")
    [two] = scores("Where does Anna live?", "Tom: Does she live in Rome?")

    assert one == pytest.approx(0.8 * (1 - SIGN))
    assert two == pytest.approx(0.8 * (1 - 2 * SIGN))


def test_one_that_looks_like_an_answer_speaks_for_the_list():
    assert scores("Where does Anna live?", "Tom: I live in Rome", "Anna: I live in Oslo") == [0.8, 0.8]


def test_an_answer_far_behind_speaks_for_nothing():
    others = ["Tom: I live in Rome"] * FIRST

    assert scores("Where does Anna live?", *others, "Anna: I live in Oslo")[0] < 0.8


def test_the_order_stays_and_the_explanation_adds_up(jay):
    for text in ("Tom: I live in Rome by the sea", "Tom: the sea in Rome is warm", "Tom: Do you like the sea?"):
        jay.store(text)

    hits = jay.search("Which sea does Anna live by in Rome?", explain=True)

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.explanation.boosts["doubt"] < 0 for hit in hits)


def test_a_weighted_sum_is_not_doubted(jay):
    jay.store("Tom: I live in Rome by the sea")
    question = "Which sea does Anna live by in Rome?"

    [plain] = jay.search(question)
    [weighed] = jay.search(Query(text=question, weights=Weights(similarity=1, recency=0, importance=0, access=0)))

    assert weighed.score > plain.score
