"""The parts of a text that can show that two texts speak of one thing, in any script."""

from __future__ import annotations

import re

from scrubjay.text.languages import FOREIGN, NAMES
from scrubjay.text.tokens import SAME, root, word_set
from scrubjay.text.words import STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:[.:/-][^\W_]+)*")
# Scripts in which words stand without spaces or change at their end: pairs of letters are compared, not words.
UNSPACED = re.compile(r"[\u30a0-\u30ff]{2,}|[\u3400-\u9fff]{2,}|[\uac00-\ud7af]{2,}|[\u0e00-\u0eff]{2,}")
GRAMMAR = re.compile(r"[\u3040-\u309f]+")  # what Japanese writes in hiragana is mostly endings
LITTLE = STOP_WORDS | FOREIGN | NAMES | word_set("now uses use used user")
HEADING = re.compile(r"\s*([^\W\d](?:[\w .-]{0,58}[\w)])?):\s")


def pieces(text: str) -> frozenset[str]:
    """Stems of the words of a text that say something; of scripts without spaces, pairs of neighbouring letters."""
    runs = UNSPACED.findall(text)
    pairs = {run[place : place + 2] for run in runs for place in range(len(run) - 1)}
    words = WORD.findall(GRAMMAR.sub(" ", UNSPACED.sub(" ", text)).lower())
    stems = {root(word)[:SAME] for word in words if word not in LITTLE and (len(word) > 1 or word.isdigit())}
    return frozenset(stems | pairs)


def heading(text: str) -> frozenset[str]:
    """What a text names first, before a colon, as what it is about."""
    found = HEADING.match(text)
    return pieces(found[1]) if found else frozenset()
