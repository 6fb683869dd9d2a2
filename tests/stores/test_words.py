"""What a word is, for every backend."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.text.words import MAX_QUERY_WORDS, STOP_WORDS, query_words, term, weights_of, words_to_index

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("User lives in Seattle", "User lives in Seattle"),
        ("東京都", "東 京 都 東京 京都"),
        ("京", "京"),
        ("서울에", "서 울 에 서울 울에"),
        ("กิน", "ก น กิ ิน"),
        ("Python3を使う", "Python 3 Python3 を 使 う を使 使う"),
        ("parseHttpURL", "parse Http URL parseHttpURL"),
        ("snake_case", "snake case snakecase"),
        ("kebab-case", "kebab case kebabcase"),
        ("os.path", "os path ospath"),
        ("utf8", "utf 8 utf8"),
        ("User's don't", "User don"),
        ("C'est l’été", "C est l été"),
        ("ＡＢＣ ﾃｽﾄ", "ABC テ ス ト テス スト"),
        ("cafe\u0301", "café"),
        ("दिल्ली में।", "दिल्ली में"),
        ("كَتَبَ", "كتب"),
        ("well 🚀🚀!", "well 🚀 🚀"),
        ("Überraschung2024", "Überraschung 2024 Überraschung2024"),
        ("a\0b", "a b"),
        ("__init__", "init"),
        ("…?! ", ""),
        ("", ""),
    ],
)
def test_a_text_is_indexed_by_its_words_and_their_parts(text: str, words: str) -> None:
    assert words_to_index(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Where does the user live?", ["user", "live"]),
        ("what is the", ["what", "is", "the"]),
        ("tea Tea TEA coffee", ["tea", "coffee"]),
        ("東京都", ["東京", "京都"]),
        ("京", ["京"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("parseURL", ["parseURL", "parse", "URL"]),
        ("\ud800 x", ["x"]),
        ("", []),
    ],
)
def test_a_query_asks_for_each_distinctive_word_once(text: str, words: list[str]) -> None:
    assert query_words(text) == words


def test_a_query_has_a_bounded_number_of_words() -> None:
    assert len(query_words(" ".join(f"word{n}" for n in range(500)))) == MAX_QUERY_WORDS
    assert len(query_words(" ".join(sorted(STOP_WORDS) * 3))) == MAX_QUERY_WORDS


@given(st.text(max_size=40))
def test_every_word_of_a_text_is_in_its_index(text: str) -> None:
    """A memory is found by its own text."""
    held = words_to_index(text).lower().split()

    assert {term(word).lower() for word in query_words(text)} <= set(held)


HOSTILE = {
    "one letter": "a" * 100_000,
    "dots": "a." * 50_000,
    "joints": "a-_." * 25_000,
    "underscores": "_" * 100_000,
    "capitals": "A" * 100_000,
    "camels": "Ab1" * 33_333,
    "digits": "1a" * 50_000,
    "apostrophes": "a'" * 50_000,
    "Han": "東" * 33_333,  # three bytes each
    "Thai": "กิ" * 16_666,
    "combining marks": "\u0315\u0316" * 25_000,
    "accents": "e\u0301" * 33_333,
    "jamo": "\u1112\u1161\u11ab" * 11_111,
    "full width": "Ａ" * 33_333,
    "Indic signs": "\u093f" * 33_333,
    "emoji": "🚀" * 25_000,
    "prose": "hello World " * 8_333,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("analyse", [words_to_index, query_words])
def test_four_times_as_much_of_anything_takes_about_four_times_as_long(name: str, analyse: object) -> None:
    """100 kilobytes took 20 ms at most where this was written; a busy machine says little about milliseconds."""
    assert callable(analyse)
    analyse("東 a")  # compiles the patterns
    text = HOSTILE[name]
    quarter = min(_cpu_seconds(analyse, text[: len(text) // 4]) for _ in range(5))
    whole = min(_cpu_seconds(analyse, text) for _ in range(5))

    assert whole < 10 * quarter + 0.02


def _cpu_seconds(analyse: object, text: str) -> float:
    assert callable(analyse)
    start = time.thread_time()
    analyse(text)
    return time.thread_time() - start


def test_a_text_of_signs_that_stand_for_sentences_is_not_spelt_out_many_times_over():
    assert len(words_to_index("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 10_000)) <= 40_000


def test_one_sign_that_stands_for_a_sentence_is_found_by_its_words():
    sign = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"

    assert set(query_words("عليه وسلم")) <= set(words_to_index(f"the prophet {sign} said").split())


def test_a_word_counted_in_more_rows_than_are_left_is_worth_next_to_nothing():
    """Counts are remembered; of rows that all hold a word, one may have gone meanwhile."""
    assert 0 < weights_of({"tea": 1_001}, 1_000)["tea"] < 0.001
