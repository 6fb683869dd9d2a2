"""Texts with a word that no other text has."""

from __future__ import annotations

from itertools import count
from random import Random

LETTERS = "bcdfghjklm"  # no vowels and no s: nothing that a stemmer would take off
STRANGE = ["🦜 parrots", "مرحبا", "NUL \0 inside", "line\u2028end\r\n\ttab", "'; DROP TABLE memories; --", "東京", "é"]


class Texts:
    """Makes them; the words tell the texts apart in every process."""

    def __init__(self, random: Random, prefix: str = "") -> None:
        self._random = random
        self._numbers = count()
        self._prefix = prefix

    def next(self, *, length: int = 0) -> str:
        """A text that ends with its word, padded to about a length."""
        start = f"{self._random.choice(STRANGE)} fact {self._random.random()}"
        padding = " ".join(["padding"] * max(0, (length - 80) // 8))
        return f"{start} {padding} {word(self._prefix, next(self._numbers))}"


def word(prefix: str, number: int) -> str:
    return "w" + prefix + "".join(LETTERS[int(digit)] for digit in str(number))


def word_of(text: str) -> str:
    return text.split(" ")[-1]
