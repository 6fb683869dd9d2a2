"""Words and meaning become one order."""

from __future__ import annotations

from scrubjay.engine.search.ranking import DISTINCTIVE, FLOOR, fuse
from scrubjay.values.memory import Match


def identity(cosine: float) -> float:
    return cosine


def ids(candidates):
    return [one.memory for one in candidates]


def test_nothing_found_is_an_empty_list():
    assert fuse([], [], {}, identity) == []


def test_a_memory_found_both_ways_outranks_one_found_once():
    """Agreement between words and meaning is worth more than either alone."""
    words = [Match("tea", 0.6), Match("both", 0.6)]
    meaning = [Match("milk", 0.6), Match("both", 0.6)]

    fused = fuse(words, meaning, {"tea": 0.3}, identity)

    assert ids(fused)[0] == "both"


def test_meaning_below_the_floor_without_a_distinctive_word_is_dropped():
    weak = FLOOR - 0.01

    fused = fuse([Match("some-word", DISTINCTIVE - 0.01)], [Match("unrelated", weak)], {"some-word": weak}, identity)

    assert fused == []


def test_a_distinctive_word_keeps_a_memory_that_meaning_would_drop():
    fused = fuse([Match("named", DISTINCTIVE)], [], {"named": 0.0}, identity)

    assert ids(fused) == ["named"]


def test_a_memory_without_a_vector_is_found_by_its_words_alone():
    fused = fuse([Match("not-embedded-yet", 0.1)], [], {}, identity)

    assert ids(fused) == ["not-embedded-yet"]
    assert fused[0].score == 0.1


def test_scores_stay_between_nothing_and_one():
    fused = fuse([Match("best", 1.0)], [Match("best", 1.0)], {}, identity)

    assert fused[0].score == 1.0


def test_the_same_evidence_gives_the_same_score_whatever_else_was_found():
    alone = fuse([Match("it", 0.5)], [Match("it", 0.7)], {}, identity)
    in_company = fuse([Match("other", 1.0), Match("it", 0.5)], [Match("other", 0.9), Match("it", 0.7)], {}, identity)

    assert alone[0].score == next(one.score for one in in_company if one.memory == "it")


def test_each_memory_appears_once():
    fused = fuse([Match("a", 0.9), Match("b", 0.5)], [Match("b", 0.8), Match("a", 0.7)], {}, identity)

    assert sorted(ids(fused)) == ["a", "b"]


def test_a_memory_without_a_vector_does_not_outrank_one_that_is_near_by_both():
    """An archived memory that holds all the words once got 1.0, and an active one with the same words 0.67."""
    words = [Match("archived", 1.0), Match("active", 1.0)]

    found = fuse(words, [Match("active", 0.5)], {}, calibrate=lambda cosine: cosine)

    assert [one.memory for one in found] == ["active", "archived"]
    assert found[1].score < 0.5


def test_without_any_vectors_words_speak_alone():
    found = fuse([Match("tea", 0.8)], [], {}, calibrate=lambda cosine: cosine)

    assert [one.score for one in found] == [0.8]
