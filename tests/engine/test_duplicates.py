"""Memories that say the same are found, never refused; an update is never taken for a twin."""

from __future__ import annotations

import sys

import pytest
from bench.data import DEFAULT, tools

from scrubjay.engine.conflicts.duplicates import same_said
from tests.engine.conflict_pairs import OUTDATED, TRUE_TOGETHER

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("old", "new"), [*OUTDATED, *TRUE_TOGETHER])
def test_another_fact_is_no_twin(old, new):
    assert not same_said(old, new)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User likes tea", "User hates tea"),
        ("User has 3 cats", "User has 4 cats"),
        ("User met Anna", "User met Hanna"),
        ("Tom lives in Austin", "Tom lives in Boston"),
        ("It is hot", "It isn't hot"),
        ("Ann called Bob", "Bob called Ann"),
        ("The meeting is on Monday", "The meeting is on Sunday"),
        ("User likes tea", "User likes tea and coffee"),
        ("version 3.9", "version 3.12"),
        ("Tom plays baseball", "Tom plays basketball"),
        ("Tom runs on the trail", "Tom runs on the trial"),
        ("It costs $400", "It costs €400"),
        ("Lunch was 👍", "Lunch was 👎"),
        ("🙂", "🎉"),
        ("Rooms 1 20", "Rooms 12 0"),
        ("", "User likes tea"),
    ],
)
def test_one_word_that_differs_makes_two_facts(one, other):
    assert not same_said(one, other)
    assert not same_said(other, one)


@pytest.mark.parametrize(
    "other",
    [
        "User doesn't like the noise in Rotterdam, and that's final!",
        "user does not like the noise in rotterdam and that is final",
        "User  does  notlike the noise in Rotterdam, and that’s final.",
        "By the way, user does not like noise in Rotterdam - and that is final",
    ],
)
def test_the_same_typed_anew_is_a_twin(other):
    assert same_said("User does not like the noise in Rotterdam, and that's final.", other)


def test_a_hostile_text_is_compared_all_the_same():
    for text in ("'" * 5_000, "a'" * 2_000, "🙂" * 2_000, "\0"):
        assert same_said(text, text)


def test_a_twin_is_stored_and_both_are_reported(jay):
    older = jay.store("User likes green tea in the morning").memory
    newer = jay.store("user likes green tea in the morning!").memory
    jay.store("User likes black tea in the evening")

    [twins] = jay.conflicts.duplicates()

    assert (twins.newer.id, twins.older.id) == (newer.id, older.id)


def test_what_is_forgotten_is_nobodys_twin_and_what_is_elsewhere_only_to_those_who_look_there(jay):
    gone = jay.store("User likes green tea").memory
    jay.forget(gone.id)
    jay.bound_to(spaces=("elsewhere",)).store("User likes green tea")
    jay.store("User likes green tea")

    assert list(jay.bound_to(only=True).conflicts.duplicates()) == []
    [pair] = jay.conflicts.duplicates()
    assert (pair.older.space, pair.newer.space) == ("elsewhere", "default")


@pytest.mark.long
@pytest.mark.skipif(not (DEFAULT / "tools" / "datasets.py").is_file(), reason="the benchmark data is not here")
def test_no_true_update_of_the_supersede_sets_is_refused_or_taken_for_a_twin(jay):
    datasets, _ = tools(DEFAULT)
    updates = 0
    for name in datasets.SUPERSEDE:
        for number, stream in enumerate(datasets.load_streams(name)):
            texts = {memory.id: memory.text for memory in stream.memories}
            space = jay.bound_to(spaces=(f"{name.replace('_', '-')}-{number}",))
            for update in stream.updates:
                for text in (*(texts[old] for old in update.old), texts[update.new]):
                    assert space.store(text).memory.content == text
                assert not any(same_said(texts[old], texts[update.new]) for old in update.old)
                updates += 1
    assert updates > 1_000


def calls(act) -> int:
    """How many functions an act calls, of Python's own too."""
    count = 0

    def note(_frame, event, _what):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("sign", ["---\n", "...\n", "|-|\n", "===\n"])
def test_a_text_of_signs_takes_no_more_than_a_few_times_as_long_to_compare_as_one_of_words(sign):
    def compare_with_sixteen(unit):
        text = (unit * 50_000)[:49_900]
        for number in range(16):  # as many as are looked at when a memory is stored
            assert not same_said(f"{text}x", f"{text}y{number}")

    assert calls(lambda: compare_with_sixteen(sign)) <= 5 * calls(lambda: compare_with_sixteen("blue chair "))
