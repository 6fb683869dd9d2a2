"""Key phrases: few, telling, and never something that would embarrass."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.engine.store.categories import signs
from scrubjay.engine.store.enrichment import MAX_PHRASE, auto_tags, by_itself
from scrubjay.text.words import STOP_WORDS, _spelt, words_to_index


@pytest.mark.parametrize(
    "text", ["!", "… — !?", "\0\0\0", " ", "🦜🦜", "a", "it is what it is", "42 2024-05-01 17:30", "\u0301"]
)
def test_a_text_that_names_nothing_has_no_phrases(text):
    assert auto_tags(text) == ()


@pytest.mark.parametrize(
    "text", ["東京都に住んでいます", "ผู้ใช้ชอบกาแฟ", "사용자는 커피를 좋아한다", "हिन्दी में लिखो", "မြန်မာ"]
)
def test_scripts_without_spaces_or_with_vowel_signs_give_nothing_rather_than_pieces(text):
    assert auto_tags(text) == ()


def test_latin_names_among_another_script_are_found():
    assert auto_tags("彼は PostgreSQL を使う") == ("postgresql",)


@pytest.mark.parametrize(
    "text",
    [
        "key sk_live_51Habc123def456ghi789 leaked",
        "sha 9f86d081884c7d659a2feaa0c55ad015 leaked",
        "see https://example.org/secret?token=abc leaked",
        "mail jane.doe@example.org leaked",
    ],
)
def test_keys_hashes_links_and_addresses_are_no_tags(text):
    assert not any(len(tag) > 6 for tag in auto_tags(text))


@pytest.mark.parametrize("id", ["mem_4x1k9c0d2m7q", "mem_qwertzuiopas"])  # one id in fifty has no digit
def test_an_id_is_no_tag_whatever_its_letters(id):
    assert auto_tags(f"The harbour rule replaces {id} since the refit") == ("harbour rule replaces", "refit")


@given(st.text(max_size=400))
def test_whatever_the_text_tags_are_short_lower_case_and_clean(text):
    tags = auto_tags(text)

    assert len(tags) == len(set(tags)) <= 5
    assert tags == auto_tags(text)
    for tag in tags:
        assert 2 <= len(tag) <= MAX_PHRASE
        assert 1 <= len(tag.split(" ")) <= 3
        assert tag == tag.lower().strip()
        assert not STOP_WORDS & set(tag.split())
        assert all(unicodedata.category(sign)[0] in "LNMPS" or sign == " " for sign in tag)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("User prefers dark mode in all applications", ("dark mode", "applications")),
        ("User is learning Spanish and wants conversational practice", ("spanish", "conversational practice")),
        ("The API was upgraded to Python 3.12", ("python 3.12", "api")),
        ("The user's sister Anna lives in New York", ("new york", "sister anna")),
        ("Priya reports to Daniel", ("daniel", "priya")),
        ("Machine learning with PyTorch. I teach machine learning.", ("machine learning", "pytorch")),
        ("We write C++ and C#", ("c++", "c#")),
        ("parse_config in loader.py fails", ("parse_config", "loader.py")),
    ],
)
def test_phrases_of_plain_sentences(text, tags):
    assert auto_tags(text) == tags


@pytest.mark.parametrize(
    "text", ["User", "The user's user", "Users do things", "The person is someone", "User moved last year"]
)
def test_generic_words_are_no_tags(text):
    assert auto_tags(text) == ()


def test_the_same_phrase_in_another_form_comes_once():
    assert auto_tags("Code reviews. A code review. The Code Review!") == ("code reviews",)


def test_a_word_of_a_chosen_phrase_is_not_repeated_alone():
    assert auto_tags("Dark mode, and mode again") == ("dark mode",)


def test_what_is_said_often_comes_before_what_is_said_once():
    text = "The garden has a shed. The compost is near the shed. The shed leaks. The pond is deep."

    assert auto_tags(text)[0] == "shed"


def test_an_accent_written_as_a_sign_of_its_own_is_the_same_word():
    assert auto_tags("The cafe\u0301 Ve\u0301ronique") == auto_tags("The café Véronique") == ("café véronique",)


@pytest.mark.parametrize("word", ["builds_on", "debates", "synthesizes", "**Builds_On**", "`debates`"])
@pytest.mark.parametrize("named", ["decision_auth_1732530000_k3x9", "[decision_a_1, mem_4x1k9c0d2m7q]", "the last one"])
def test_how_a_decision_names_others_is_not_what_it_is_about(word, named):
    text = f"Use refresh tokens\n\nSessions expire too soon. {word}: {named}"

    tags = auto_tags(text)

    assert "refresh tokens" in tags
    assert not any(part in tag for tag in tags for part in ("builds", "debates", "synthesizes", "decision_", "mem_"))


def test_a_debate_may_be_what_a_text_is_about():
    assert "debates" in str(auto_tags("The parliament debates are long"))


def test_what_may_be_a_code_is_not_remembered_with_other_words():
    """Words are kept for the next text, and an erased text must not be found in them."""
    code = "Xy7_pQ9zzTop42"
    text = f"the door code is {code}"
    auto_tags(text)
    words_to_index(text)
    signs(text)

    assert not [word for word in _spelt if "pq9zz" in word.lower()]
    before = by_itself.cache_info().currsize
    auto_tags(f"{code}8 {code}9")
    assert by_itself.cache_info().currsize == before
