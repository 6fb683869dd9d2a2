"""Importance: a sum that anybody can redo by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine.store import intake
from scrubjay.engine.store.enrichment import CATEGORY, enrich, enrich_all, importance, parts
from scrubjay.values.memory import Category, NewMemory, Source


def worth(text="The library closes at six", category=Category.FACT, source=Source.EXTRACTED, confidence=1.0):
    return importance(text, category=category, source=source, confidence=confidence)


@pytest.mark.parametrize(
    "text", ["!", "\0", "🦜", "東京都に住む", "x" * 50_000, "never " * 8_000, "def f(x): return x"]
)
def test_odd_texts_have_an_importance_too(text):
    assert 0 <= worth(text) <= 1


@given(st.text(max_size=300), st.sampled_from(Category), st.sampled_from(Source), st.floats(min_value=0, max_value=1))
def test_it_lies_within_0_and_1_and_has_two_places(text, category, source, confidence):
    value = worth(text, category, source, confidence)

    assert 0 <= value <= 1
    assert value == round(value, 2) == worth(text, category, source, confidence)


def test_every_category_has_a_worth_of_its_own():
    assert set(CATEGORY) == set(Category)


def test_a_plain_fact_is_worth_about_a_half():
    assert worth("The library closes at six") == 0.48
    assert worth("User lives in Seattle") == 0.53


def test_the_parts_add_up():
    found = parts("User prefers dark mode in all applications", category=Category.PREFERENCE, source=Source.EXPLICIT)

    assert {name: value for name, value in found.items() if value} == {
        "category": 0.65, "explicit": 0.10, "personal": 0.05, "sweeping": 0.05,
    }  # fmt: skip
    assert worth("User prefers dark mode in all applications", Category.PREFERENCE) == 0.75


def test_doubt_of_the_caller_lowers_it_and_none_halves_it():
    values = [worth(confidence=confidence) for confidence in (1.0, 0.7, 0.3, 0.0)]

    assert values == sorted(values, reverse=True)
    assert values[-1] == values[0] / 2


def test_names_and_numbers_count_up_to_three():
    texts = ["It is there", "It is in Oslo", "It is in Oslo since 2019", "It is in Oslo since 2019, says Ines",
             "It is in Oslo since 2019, say Ines, Olaf, Tom and Eve"]  # fmt: skip

    values = [worth(text) for text in texts]

    assert values == [0.45, 0.48, 0.51, 0.54, 0.54]


@pytest.mark.parametrize(
    ("weaker", "stronger"),
    [
        ("The gate is closed", "Important: the gate is closed"),
        ("Eve eats nuts", "Eve is allergic to nuts"),
        ("The gate is closed at night", "The gate is always closed at night"),
        ("Perhaps the gate is closed", "The gate is closed"),
        ("The gate is closed", "My gate is closed"),
    ],
)
def test_what_matters_more(weaker, stronger):
    assert worth(weaker) < worth(stronger)


def test_an_instruction_a_fact_and_what_is_going_on_come_in_this_order_and_what_was_asked_for_counts_more():
    assert worth(category=Category.INSTRUCTION) > worth(category=Category.FACT) > worth(category=Category.CONTEXT)
    assert worth(source=Source.EXPLICIT) > worth(source=Source.EXTRACTED)


def test_only_the_beginning_is_looked_at():
    assert worth("The gate is closed. " * 100 + "Important!") == worth("The gate is closed. " * 100)


def test_many_are_enriched_like_each_by_itself(jay):
    news = [NewMemory(content="Anna prefers tea"), NewMemory(content="We met in Oslo", category=Category.GOAL),
            NewMemory(content="Always answer in German", importance=0.1)]  # fmt: skip
    memories = [intake.admit(jay, new) for new in news]
    vectors = jay.parts.embedding.texts([memory.text for memory in memories])

    each = [enrich(jay, *one) for one in zip(memories, news, vectors, strict=True)]

    assert enrich_all(jay, memories, news, vectors) == each
    assert [each[1].category, each[2].importance] == [Category.GOAL, 0.1]
