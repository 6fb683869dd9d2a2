"""The `tokenizers` package is the oracle: whatever it gives for a word, we give."""

import random

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import Unigram as TheirUnigram

from scrubjay.embedders.base import REMEMBERED_WORDS
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.e5 import E5File
from scrubjay.embedders.unigram import LONGEST_RUN, Unigram

pytestmark = pytest.mark.model

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
SENTENCES = [
    "The deploy key is rotated on the first Monday.",
    "Der Nutzer zog im März von Augsburg nach Lübeck-Travemünde.",
    "L’utilisatrice préfère le thé à la menthe, n’est-ce pas ?",
    "El próximo año cambiaré de operador telefónico.",
    "ユーザーは先月から在宅勤務になりました。",
    "민수 씨가 차를 사서 이제 직접 운전해서 출근한다.",
    "测试库的密码每月更换一次，由运维组负责。",
    "Пользователь больше не ест мясо.",
    "المستخدم يعيش في القاهرة",
    "billing-core@v2.3.1 listens on :8441 (see JIRA-20817)",
    "naïve ½ ﬁ Ⅷ ™ 👩‍👩‍👧‍👦 ＡＢＣ　全角",
]


def unigram(pieces, scores, forms=None):
    raw = [piece.encode() for piece in pieces]
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.uint32)
    return Unigram(b"".join(raw), offsets, np.array(scores, np.float32), forms=forms or {}, start=0, end=2, unknown=3)


@pytest.fixture(scope="module")
def file(multilingual, models):
    return E5File(models / "multilingual-e5-small" / find("multilingual-e5-small").network)


@pytest.fixture(scope="module")
def vocabulary(file):
    return file.pieces


def oracle(pieces, scores):
    tokenizer = Tokenizer(TheirUnigram([*zip(pieces, map(float, scores), strict=True)], unk_id=3))
    return lambda word: tokenizer.encode(word, add_special_tokens=False).ids


def test_random_words_over_random_vocabularies_are_cut_as_the_oracle_cuts_them():
    chance = random.Random(3)
    letters = "abcñ世界ж▁"
    for _ in range(20):
        known = {"".join(chance.choices(letters, k=chance.randint(1, 6))) for _ in range(200)}
        pieces = [*SPECIALS, *sorted(known | set(letters))]  # each letter: two unknown ones in a row become one there
        scores = [0.0] * 4 + [float(np.float32(-chance.uniform(1, 20))) for _ in pieces[4:]]
        ours, theirs = unigram(pieces, scores), oracle(pieces, scores)
        for _ in range(100):
            word = "▁" + "".join(chance.choices(letters, k=chance.randint(0, 30)))

            assert list(ours.pieces(word)) == theirs(word)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_real_sentences_get_the_oracles_pieces(vocabulary, real_oracle, sentence):
    for word in vocabulary.words(sentence):
        assert list(vocabulary.pieces(word)) == real_oracle(word)


@pytest.fixture(scope="module")
def real_oracle(file):
    return oracle(*file.listed())


def test_words_are_what_lies_between_spaces_each_with_a_mark(vocabulary):
    assert list(vocabulary.words("  two\twords \n")) == ["▁two", "▁words"]
    assert list(vocabulary.words("")) == []


def test_characters_take_their_normal_form(vocabulary):
    assert vocabulary("ＡＢＣ　ﬁ") == vocabulary("ABC fi")


def test_a_text_that_spells_a_special_token_is_text(vocabulary):
    assert not {vocabulary.start, vocabulary.end, vocabulary.unknown} & set(vocabulary("<s> </s> <unk> <pad>"))


def test_a_character_in_no_piece_is_unknown():
    vocabulary = unigram([*SPECIALS, "▁", "a"], [0, 0, 0, 0, -1, -2])

    assert vocabulary("aбa") == [4, 5, 3, 5]


def test_half_a_character_does_no_harm(vocabulary):
    assert vocabulary("\ud800")


def test_no_more_pieces_than_asked_for(vocabulary):
    every = vocabulary(SENTENCES[0])

    assert vocabulary(SENTENCES[0], limit=5) == every[:5]


def test_a_run_without_spaces_is_cut_in_bounded_steps(vocabulary):
    assert max(map(len, vocabulary.words("世界" * 5_000))) <= LONGEST_RUN


def test_what_is_remembered_is_bounded():
    vocabulary = unigram([*SPECIALS, "▁", *"0123456789"], [0] * 4 + [-1.0] * 11)
    for number in range(REMEMBERED_WORDS + 10):
        vocabulary(str(number))

    assert vocabulary.pieces.cache_info().currsize <= REMEMBERED_WORDS
