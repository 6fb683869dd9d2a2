"""Ranking over columns gives the pages that ranking one candidate after another gives."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.engine.search import freshness, ranking
from scrubjay.text.time_expressions import periods as periods_of
from scrubjay.values.memory import Link, LinkKind
from scrubjay.values.search import Match, Query
from tests.engine import columns, one_by_one
from tests.engine.columns import AS_IT_IS, Glimpse

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)
NEARLY = 1e-9  # the two add in another order
QUESTIONS = [
    "Where does Anna live?",
    "What did I tell you about the harbour?",
    "Who was at the lake last week?",
    "my tea",
    "Which tea do you like in May 2026?",
    "Anna Brandt tea",
]
OPENINGS = [
    "Anna lives in Rome",
    "Tea: I like my tea hot, we drink it at four",
    "You told me that your boat is in the harbour",
    "",
    "¿Y tú? Du und deine Katze",
    "What was said at the lake",
    "x" * 300,
]


def make_matches(chance, names):
    """What stores find for a question, and what they say of it, made up."""
    near = [Match(name, chance.choice([0.31, 0.62, chance.random()])) for name in names if chance.random() < 0.5]
    words = [Match(name, chance.choice([0.5, chance.random()])) for name in names if chance.random() < 0.5]
    known = {match.memory for match in near}
    more = {match.memory: chance.random() for match in words if match.memory not in known and chance.random() < 0.8}
    further = [
        ({name: chance.random() for name in names if chance.random() < 0.3}, chance.random())
        for _ in range(chance.choice([0, 0, 1, 2]))
    ]
    return sorted(words, key=lambda one: -one.score), sorted(near, key=lambda one: -one.score), more, further


def make_glimpse(chance):
    opening = chance.choice(OPENINGS)
    times = [NOW - timedelta(minutes=chance.randrange(100_000)) for _ in range(3)]
    since, until = (time if chance.random() < 0.2 else None for time in times[1:])
    return Glimpse(
        times[0],
        since,
        until,
        chance.choice([None, "a", "b", "c"]),
        chance.choice([len(opening), 399, 400, 401, 1_000, 50_000]),
        opening,
    )


def make_links(chance, names):
    return [
        Link(
            kind=chance.choice([LinkKind.MAY_OUTDATE, LinkKind.SUPERSEDES]),
            source=chance.choice(names),
            target=chance.choice(names),
            state=chance.choice(["open", "open", "kept"]),
            score=chance.choice([None, 0.5, 0.9, 0.99]),
            created_at=NOW,
        )
        for _ in range(chance.randrange(4))
    ]


def round_off(candidates):
    """Candidates without what adds nothing, and rounded: equal scores do not depend on how they were added up."""
    return [
        (
            one.memory,
            round(one.score, 9),
            round(one.word_score, 9),
            one.cosine,
            round(one.similarity, 9),
            {name: round(value, 9) for name, value in sorted(one.boosts.items()) if abs(value) > NEARLY},
        )
        for one in candidates
    ]


def in_one_order(candidates):
    """Sorted by what is shown: those that are equal to the ninth digit may stand in either order."""
    return sorted(round_off(candidates), key=lambda one: (-one[1], -one[4], one[0]))


@pytest.mark.parametrize("seed", range(60))
def test_columns_rank_as_one_by_one(seed):
    chance = random.Random(seed)
    names = [f"memory {number}" for number in range(chance.choice([1, 2, 20, 260]))]
    words, near, more, further = make_matches(chance, names)
    question = QUESTIONS[seed % len(QUESTIONS)]
    periods = periods_of(question, NOW)

    slow = one_by_one.fuse(words, near, more, *further)
    quick = ranking.fuse(columns.candidates_of(words, near, more), AS_IT_IS, further)
    assert in_one_order(quick) == in_one_order(slow)

    asked = one_by_one.choose_for_second_look(slow, periods)
    glimpses = {name: make_glimpse(chance) for name in asked if chance.random() < 0.95}
    if set(asked) == set(ranking.choose_for_second_look(quick, periods)):  # else the hundredth and the next are equal
        passages = {name: chance.random() for name in names if chance.random() < 0.3}
        slow = one_by_one.second_look(slow, glimpses, question, periods, passages)
        quick = ranking.second_look(quick, columns.glimpses_of(glimpses), Query(text=question), periods, passages)
        assert in_one_order(quick) == in_one_order(slow)


@pytest.mark.parametrize("seed", range(60))
def test_rows_move_as_candidates_did(seed):
    chance = random.Random(seed)
    names = [f"memory {number}" for number in range(12)]
    words, near, more, _ = make_matches(chance, names)
    slow = one_by_one.fuse(words, near, more)
    quick = columns.rank_candidates(slow)
    links = [link for link in make_links(chance, names) if link.source != link.target]

    slow = one_by_one.fresh_first(slow, links)
    quick = freshness.fresh_first(quick, links)

    assert round_off(quick) == round_off(slow)


def test_without_anything_found_there_is_nothing_to_rank():
    nothing = ranking.fuse(columns.candidates_of([], [], {}), AS_IT_IS)

    ranked = ranking.rank(
        nothing,
        Query(text="tea"),
        (),
        columns.glimpses_of({}),
        passages={},
        links_among=lambda *_: [][0],
        vectors_of=lambda _: {},
    )

    assert list(ranked) == []
