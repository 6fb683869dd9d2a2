"""No text costs much more than another of its length: neither stored, nor asked, nor given to a model.

What counts is the processor time of the calling thread, so the embedding, which has threads of its own, is left out.
It is compared with what plain prose takes on the same machine at the same load.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from time import thread_time
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.engine.conflicts.duplicates import words
from scrubjay.engine.conversations.fence import neutral
from scrubjay.engine.decisions.decisions import open_steps
from scrubjay.engine.decisions.mentions import edges_in
from scrubjay.engine.engine import Engine
from scrubjay.engine.lifecycle.synthesis import pieces
from scrubjay.engine.search.ranking import best_passage
from scrubjay.text.letters import LONGEST_RUN, normalise, slug

pytestmark = pytest.mark.process

LENGTH = 49_900  # characters; the most is 50,000
PROMISED = 0.3  # seconds
PROSE = "The harbour opens at six, and Anna's boat leaves for Oslo on Tuesday. "

SHAPES = {
    "signs": ["#", "=", "-", "_", ".", "*", "`", "<", "[", "'", "/", ":", "@", "\\"],
    "white space": ["---\n", "x\n", "\r\n", "\n#", "\n- ", "```\n", "x\u3000"],
    "marks": ["\u0316\u0301", "\u0f73", "a\u0316\u0301\u05b0", "\uff9e\u0301", "\u200d", "\u202e", "\U000e0020"],
    "scripts": ["東", "가", "ب", "ก", "🦜", "👩\u200d👩\u200d👧", "ﷺ", "㌖"],
    "joints": ["a.", "a_", "a'", "1:", "aB", "a@b.", "$1", "[[a]]"],
    "words": ["use ", "ai ", "run ", "you must ", "password is ", "when the user asks ", "12:30 "],
    "tokens": ["eyJa.", "sk-", "a://b:", "xapp-1-A-", "4-4 ", "-----BEGIN PRIVATE KEY-----", "recovery code ", "key="],
    "orders": ["ignore all ", "you must always ", "send passwords to ", "password=", "AKIA", "[MASK", "x" * 40 + "."],
    "phrases": ["a", "a b ", "ab cd ", "ab. ", "a@", "x://", "1a", "+", "a-.", "𝒳", "\0", "the dark mode "],
    "signs of a category": ["is ", "a,", "by the next ", "(", "more ", "goal for ", "half-", "ed "],
}
EVERY = [piece for some in SHAPES.values() for piece in some]


def repeat(piece: str) -> str:
    return (piece * (LENGTH // len(piece) + 1))[:LENGTH]


def cost(act: Callable[[str], object], text: str) -> float:
    begun = thread_time()
    act(text)
    return thread_time() - begun


def check(act: Callable[[str], object], text: str, *, prose: float) -> None:
    bound = max(PROMISED, 8 * prose)
    costs = [cost(act, text)]
    while costs[-1] > bound and len(costs) < 3:  # another process may have had the caches
        costs.append(cost(act, text))

    assert min(costs) <= bound, repr(text[:40])


def measure_prose(engine: Engine) -> Callable[[str], None]:
    """Checks a text that is stored and asked for."""
    engine.store("Warm up")
    engine.search("Warm up")
    prose = cost(engine.store, repeat(PROSE))

    def both(text: str) -> None:
        check(engine.store, text, prose=prose)
        check(engine.search, text, prose=prose)

    return both


@pytest.fixture
def used_with_vectors(jay):
    return measure_prose(jay)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_of_one_thing_costs_little_to_store_and_to_ask(open_engine, shape):
    cheap = measure_prose(open_engine(None))
    for piece in SHAPES[shape]:
        cheap(f"x{repeat(piece)}")


@given(st.lists(st.tuples(st.sampled_from(EVERY), st.integers(1, 40)), min_size=1, max_size=4), st.booleans())
@settings(max_examples=10, deadline=None, suppress_health_check=[*HealthCheck])
def test_a_text_of_several_things_costs_little_to_store_and_to_ask(used_with_vectors, drawn, in_turn):
    """Either the same few over and over, or a long stretch of each."""
    text = repeat("".join(piece * times for piece, times in drawn))
    if not in_turn:
        text = "".join(piece * (LENGTH // len(drawn) // len(piece)) for piece, _ in drawn)

    used_with_vectors(f"x{text}")


EDGES = [  # in which a reasoning might name other decisions
    "builds_on:", "synthesizes: [          ", "synthesizes: decision_a ,, ", f"synthesizes: decision_{'a' * 50} , ",
    "**builds_on****:**", "decision_a,", "builds_on: decision_a and ", "builds_on:\n- decision_a\n- ",
    "builds_on```:```", "builds_on ([[<((", "builds_on decision_a )]>) ", "builds_on decision_a + ", "builds_on ",
    "builds_on:\n1. decision_a\n11111. ",
]  # fmt: skip
OTHER_READERS = {
    "the fence around what a model is given": neutral,
    "the edges of a decision": edges_in,
    "the steps of a checkpoint": lambda text: list(open_steps(text)),
    "the sentences to be merged": lambda text: list(pieces(text, 0)),
    "the words that twins share": words,
    "the name of a space": slug,
}
HOLLOW = [
    " " * LENGTH,
    "synthesizes:" + " " * LENGTH,
    "- " + " " * LENGTH,
    "==" * (LENGTH // 2),
    "```\n" + "x\n" * 20_000,
]


@pytest.mark.parametrize("reader", OTHER_READERS)
def test_whatever_else_reads_a_text_reads_it_quickly(reader):
    read = OTHER_READERS[reader]

    for text in (*HOLLOW, *map(repeat, SHAPES["marks"]), *map(repeat, SHAPES["signs"])):
        check(read, text, prose=0.0)


@pytest.mark.parametrize("piece", EDGES)
def test_what_may_name_other_decisions_is_read_quickly(piece):
    check(edges_in, f"synthesizes: [{repeat(piece)}", prose=0.0)


def test_a_long_note_made_of_the_words_of_the_question_is_read_quickly():
    words = ["".join(letters) for letters in product("abcdefghijklmnop", repeat=3)]
    read = partial(best_passage, rarity=dict.fromkeys(words, 1.0))

    check(read, repeat(" ".join(words) + " "), prose=0.0)


@given(
    st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("a \u0301\u0316\u0f71\u0f73\uff9e각")))
)
@settings(max_examples=200, deadline=None)
def test_a_normal_form_is_that_of_unicode(text):
    around = f"{'é' * 300}{text}{'ö' * 300}"

    assert all(normalise(form, around) == normalize(form, around) for form in ("NFC", "NFD", "NFKC", "NFKD"))


def test_as_many_marks_as_any_letter_bears_are_put_in_order():
    text = "z" * 100 + "a" + "\u0301\u0316" * (LONGEST_RUN // 2) + "z" * 100

    assert normalise("NFKD", text) == normalize("NFKD", text) != text
