"""The `tokenizers` package is the oracle: whatever it gives, we give."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece as TheirWordPiece

from scrubjay.embedders.base import REMEMBERED_WORDS
from scrubjay.embedders.wordpiece import WordPiece, spans, words

pytestmark = pytest.mark.model

ODD_TEXTS = [
    "",
    " \t\r\n\u00a0\u3000 ",
    "Héllo, WÖRLD! naïve café",
    "don't e-mail me@example.org: $5+tax=100% #1 `x` ^y ~z |w|",
    "世界hello世界 日本語テキスト 𠀀𫝀𫠠豈",
    "한국어 문장입니다",
    "ΑΣ ΣΑΣ ὈΔΥΣΣΕΎΣ İstanbul ǅ ﬁ ß ẞ",
    "zero\u200bwidth soft\u00adhyphen bom\ufeff lost\ufffd nul\0 bell\x07 next\x85line \x1c\x1f \x0b\x0c",
    "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 ☃️ ™ © ½ ² Ⅷ",
    "नमस्ते ไทย العربية עברית ভাষা",
    ";\u037e \u0387 \u1fef \u226f \u2260 \u2000\u2001",
    "[CLS] [SEP] [UNK] [MASK] ##ing [unused1]",
    "x" * 100,
    "x" * 101,
    "é" * 100,
    "é" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "https://example.org/a/b?c=d&e=f#g C:\\Users\\x f(x) = x**2; // done",
]


@pytest.fixture(scope="module")
def ours(vocabulary):
    return WordPiece(vocabulary)


@pytest.fixture(scope="module")
def vocabulary(models):
    return models / "arctic-embed-s" / "vocab.txt"


@pytest.fixture(scope="module")
def theirs(vocabulary):
    numbers = TheirWordPiece.read_file(str(vocabulary))
    tokenizer = Tokenizer(TheirWordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


@pytest.fixture(scope="module")
def younger(ours, theirs):
    """Characters born after the oracle's Unicode (version 8): it takes newer accents and signs for letters."""
    every = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    return {char for char in every if ours(f"a{char}b") != theirs(f"a{char}b")}


def test_a_file_that_is_no_vocabulary_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("just\nwords\n")

    with pytest.raises(ValueError, match="not a BERT vocabulary"):
        WordPiece(tmp_path / "vocab.txt")


@pytest.mark.parametrize("text", ODD_TEXTS, ids=lambda text: ascii(text[:12]))
def test_odd_texts_get_the_oracles_pieces(ours, theirs, text):
    assert ours(text) == theirs(text)


def test_every_character_is_treated_as_the_oracle_does_unless_it_is_younger(younger):
    """Some hundred characters of 196,608; none of them common before 2015."""
    assert len(younger) < 1_000
    assert min(younger) > "\u0600"


def test_thousands_of_random_texts_get_the_oracles_pieces(ours, theirs, younger):
    random_ = random.Random(7)
    every = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000 and chr(code) not in younger]
    common = "aaabcdeeeinorst  ABÉñüß世界한.,'!-Σς\u0301\u200b\t\n"

    for _ in range(5_000):
        text = "".join(
            random_.choice(every if random_.random() < 0.3 else common) for _ in range(random_.randrange(80))
        )

        assert ours(text) == theirs(text), ascii(text)


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.characters(max_codepoint=0x2FFFF, exclude_categories=["Cs", "Cn"]), max_size=200))
@example(text="a\u0345\u0301b")
def test_generated_texts_get_the_oracles_pieces(ours, theirs, younger, text):
    text = "".join(char for char in text if char not in younger)

    assert ours(text) == theirs(text)


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=200))
def test_spans_hold_the_words_in_their_order(text):
    assert [word for start, end in spans(text) for word in words(text[start:end])] == words(text)


def test_half_a_surrogate_pair_is_dropped(ours):
    assert ours("a\ud800b") == ours("ab")


def test_a_limit_cuts_the_end(ours):
    assert ours("one two three four", limit=3) == ours("one two three")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "!" * 200_000,
        "世" * 200_000,
        "e" + "\u0301\u0323\u0315" * 100_000,
        "\U0001d165\u302e" * 100_000,
        "a " * 300_000,
        " ".join(f"{number:0100d}" for number in range(2_000)),
        "".join(map(chr, range(0xE000, 0x50000))),
    ],
    ids=["word", "signs", "ideographs", "accents", "marks", "words", "long words", "all of Unicode"],
)
def test_hostile_texts_take_linear_time(ours, text):
    ours(text)
    sum(1 for _ in spans(text))


def test_the_cache_of_words_is_bounded(ours):
    for number in range(REMEMBERED_WORDS + 5_000):
        ours(f"w{number}")

    assert ours.pieces.cache_info().currsize <= REMEMBERED_WORDS
