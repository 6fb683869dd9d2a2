"""Whether a text is English."""

from __future__ import annotations

from scrubjay.values.pronouns import words_of
from scrubjay.values.words import STOP_WORDS


def looks_english(text: str) -> bool:
    """Whether a text looks like English; a few words without any sign of another language do."""
    words = words_of(text)
    if not text.isascii() and 10 * sum(not word.isascii() for word in words) > len(words):
        return False
    return len(words) < 5 or not STOP_WORDS.isdisjoint(words)
