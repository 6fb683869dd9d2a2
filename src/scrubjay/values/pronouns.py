"""Who speaks to or about another: "I" and "you" in a text, in English, German, French and Spanish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

WORD = re.compile(r"[^\W\d_]+")
SHORT = 400  # characters: a question, or how a memory begins; a search asks for the words of the same ones repeatedly
REMEMBERED = 500  # such texts, 2 MB at most
FULLY = 0.1  # share of a text's words from which on it speaks in a person in full

FIRST_PERSON = frozenset(
    """
    i my me mine myself we our us ich mir mich mein meine meinen meinem meiner wir uns unser unsere je j mon ma mes moi
    nous notre nos yo mi mis nosotros nuestro nuestra
    """.split()  # noqa: SIM905 -- read as words
)
SECOND_PERSON = frozenset(
    """
    you your yours yourself du dich dir dein deine deinen deinem deiner tu te toi ton ta tes vous votre vos tú ti usted
    """.split()  # noqa: SIM905 -- read as words
)


_LETTERS = bytes(ord(sign.lower()) if sign.isascii() and sign.isalpha() else ord(" ") for sign in map(chr, range(256)))


def words_of(text: str) -> Sequence[str]:
    return _words_of_short(text) if len(text) <= SHORT else told_apart(text)


@lru_cache(REMEMBERED)
def _words_of_short(text: str) -> tuple[str, ...]:
    return tuple(told_apart(text))


def told_apart(text: str) -> list[str]:
    """The same of a text that is asked for once."""
    if text.isascii():  # in a sixth of the time, and a search asks it of a hundred new texts
        return text.encode().translate(_LETTERS).decode().split()
    return WORD.findall(text.lower())


def says(person: frozenset[str], text: str) -> bool:
    return not person.isdisjoint(words_of(text))


def speaks(person: frozenset[str], words: Sequence[str]) -> float:
    """How much a text of these words speaks in this person, from 0 to 1."""
    if person.isdisjoint(words):  # as most do; this costs a third of counting
        return 0.0
    return min(1.0, sum(map(person.__contains__, words)) / len(words) / FULLY)
