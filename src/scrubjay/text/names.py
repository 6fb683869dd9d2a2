"""Names, numbers and identifiers in a text, and what shows that two texts speak of one thing, or of two of a kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from scrubjay.text.languages import FOREIGN, NAMES
from scrubjay.text.tokens import SAME, root, word_set, words_of
from scrubjay.text.words import CALENDAR, STOP_WORDS, query_words

STEM = 5  # letters of a word that stand for it
IDENTIFIER = re.compile(r"\d|[_.\-]|\w[A-Z]")
TOKEN = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
DIGIT = re.compile(r"\d")
SPEAKER = re.compile(r"\s*[^\W\d_]+:\s")  # Anna: I live …
# Scripts in which words stand without spaces or change at their end: pairs of letters are compared, not words.
UNSPACED = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}|[\uac00-\ud7af]{2,}|[\u0e00-\u0eff]{2,}")
GRAMMAR = re.compile(r"[\u3040-\u309f]+")  # what Japanese writes in hiragana is mostly endings
LITTLE = STOP_WORDS | FOREIGN | NAMES | word_set("now uses use used user")
HEADING = re.compile(r"\s*([^\W\d](?:[\w .-]{0,58}[\w)])?):\s")


def find_rare_words(question: str) -> list[str]:
    """Names, numbers and identifiers of a question. A capital at its beginning says nothing."""
    begins = question.lstrip()
    return [
        word
        for word in query_words(question)
        if word.lower() not in CALENDAR
        and (IDENTIFIER.search(word) or (word[0].isupper() and not begins.startswith(word)))
    ]


def find_figures(text: str) -> frozenset[str]:
    """What has a digit: 1001, db1, 4.2."""
    return frozenset(token for token in TOKEN.findall(text.lower()) if DIGIT.search(token))


def find_names(text: str) -> frozenset[str]:
    """What is written like a name, a capital at the beginning too: Harrow, thumb-worker, db1."""
    tokens = (token for token in TOKEN.findall(text) if token[0].isupper() or IDENTIFIER.search(token))
    return frozenset(token.lower() for token in tokens) - STOP_WORDS


def is_of_another_one(question: str, opening: str) -> bool:
    """The search service, the payment service: a word of both follows a word in each that the other has not."""
    asked, said = words_of(question), words_of(opening)
    wanted = _words_before(asked)
    if not wanted or wanted.keys().isdisjoint(there := {word[:STEM] for word in said}):
        return False
    before = _words_before(said)
    return any(
        word in before and what.isdisjoint(there) and before[word].isdisjoint(one[:STEM] for one in asked)
        for word, what in wanted.items()
    )


def names_another_instead(asked: frozenset[str], opening: str, other: str) -> bool:
    """Where one text has the search service that was asked for, the other has the payment service."""
    there, instead = _words_before(words_of(opening)), _words_before(words_of(other))
    return any(word in instead and not what.isdisjoint(asked) for word, what in there.items())


def _words_before(words: Sequence[str]) -> dict[str, set[str]]:
    """By its stem, what each word follows that says something; both with three letters or more."""
    found: dict[str, set[str]] = {}
    for one, other in pairwise(words):
        if len(one) > 2 < len(other) and one not in STOP_WORDS and other not in STOP_WORDS:
            found.setdefault(other[:STEM], set()).add(one[:STEM])
    return found


def pieces(text: str) -> frozenset[str]:
    """Stems of the words of a text that say something; of scripts without spaces, pairs of neighbouring letters."""
    runs = UNSPACED.findall(text)
    pairs = {run[place : place + 2] for run in runs for place in range(len(run) - 1)}
    words = TOKEN.findall(GRAMMAR.sub(" ", UNSPACED.sub(" ", text)).lower())
    stems = {root(word)[:SAME] for word in words if word not in LITTLE and (len(word) > 1 or word.isdigit())}
    return frozenset(stems | pairs)


def heading(text: str) -> frozenset[str]:
    """What a text names first, before a colon, as what it is about."""
    found = HEADING.match(text)
    return pieces(found[1]) if found else frozenset()
