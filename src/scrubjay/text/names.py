"""Names, numbers and identifiers in a text, and whether two texts speak of two things of one kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from scrubjay.text.tokens import words_of
from scrubjay.text.words import CALENDAR, STOP_WORDS, query_words

STEM = 5  # letters of a word that stand for it
IDENTIFIER = re.compile(r"\d|[_.\-]|\w[A-Z]")
TOKEN = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
DIGIT = re.compile(r"\d")
SPEAKER = re.compile(r"\s*[^\W\d_]+:\s")  # Anna: I live …


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
