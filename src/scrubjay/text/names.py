"""Names, numbers and identifiers in a text, and the pieces by which two texts are compared."""

from __future__ import annotations

import re

from scrubjay.text.languages import FOREIGN, NAMES
from scrubjay.text.tokens import SAME, root, word_set
from scrubjay.text.words import CALENDAR, STOP_WORDS, query_words

STEM = 5  # letters of a word that stand for it
IDENTIFIER = re.compile(r"\d|[_.\-]|\w[A-Z]")
TOKEN = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
SPEAKER = re.compile(r"\s*[^\W\d_]+:\s")  # Anna: I live …
# Scripts in which words stand without spaces or change at their end: pairs of letters are compared, not words.
UNSPACED = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}|[\uac00-\ud7af]{2,}|[\u0e00-\u0eff]{2,}")
GRAMMAR = re.compile(r"[\u3040-\u309f]+")  # what Japanese writes in hiragana is mostly endings
LITTLE = STOP_WORDS | FOREIGN | NAMES | word_set("now uses use used user")


def find_rare_words(question: str) -> list[str]:
    """Names, numbers and identifiers of a question. A capital at its beginning says nothing."""
    begins = question.lstrip()
    return [
        word
        for word in query_words(question)
        if word.lower() not in CALENDAR
        and (IDENTIFIER.search(word) or (word[0].isupper() and not begins.startswith(word)))
    ]


def pieces(text: str) -> frozenset[str]:
    """Stems of the words of a text that say something; of scripts without spaces, pairs of neighbouring letters."""
    runs = UNSPACED.findall(text)
    pairs = {run[place : place + 2] for run in runs for place in range(len(run) - 1)}
    words = TOKEN.findall(GRAMMAR.sub(" ", UNSPACED.sub(" ", text)).lower())
    telling = (word for word in words if len(word) > 1 or word.isdigit() or word > "\u3000")  # 猫 is a whole word
    stems = {root(word)[:SAME] for word in telling if word not in LITTLE}
    return frozenset(stems | pairs)
