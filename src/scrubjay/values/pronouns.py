"""The words of a text, in lower case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

WORD = re.compile(r"[^\W\d_]+")
SHORT = 400  # characters: a question, or how a memory begins; a search asks for the words of the same ones repeatedly
REMEMBERED = 500  # such texts, 2 MB at most
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
