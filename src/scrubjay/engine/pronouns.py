"""Who speaks of whom: "I" and "you" in a text, in English, German, French and Spanish."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W\d_]+")
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


def says(person: frozenset[str], text: str) -> bool:
    return not person.isdisjoint(WORD.findall(text.lower()))


def speaks(person: frozenset[str], text: str) -> float:
    """How much a text speaks in this person, from 0 to 1."""
    words = WORD.findall(text.lower())
    return min(1.0, sum(word in person for word in words) / max(1, len(words)) / FULLY)
