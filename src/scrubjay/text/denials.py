"""What a text denies.

The user is not allergic to peanuts, but to bees.
                ────── denied ─────
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from scrubjay.text.tokens import first_clause, stems
from scrubjay.values.languages import word_set

DENIALS = word_set("no not never without none nobody nothing neither nor cannot")
EMPTY = word_set(  # they name no object of a denial
    "any anything anyone anybody anymore more longer all ever every each itself himself herself themselves us me him "
    "them this"
)


def denies(word: str) -> bool:
    """Whether a word in lower case denies what follows it."""
    return word in DENIALS or word.endswith("n't")


@lru_cache(maxsize=256)
def denied(text: str) -> tuple[str, ...]:
    """The stems of the verb that the first clause of a text denies and of what follows it; empty if it denies nothing.

    "Has no car" denies having a car, as "does not have a car" does.
    """
    words = first_clause(text)
    place = next((place for place, word in enumerate(words) if denies(word)), None)
    if place is None:
        return ()
    begins = place - 1 if words[place] == "no" and place and words[place + 1 : place + 2] != ["longer"] else place + 1
    return named(words[begins:])


def denies_another_thing(denying: str, affirming: str) -> bool:
    """Whether a text denies of one thing what the other says of another: "is not allergic to peanuts" beside "is
    allergic to penicillin"."""
    what, said = denied(denying), named(first_clause(affirming))
    if len(what) < 2 or what[0] not in said:
        return False
    instead = said[said.index(what[0]) + 1 :][:1]
    return what[1] not in said and bool(instead) and instead[0] not in what


def denies_just_that(denying: str, affirming: str) -> bool:
    """Whether a text denies exactly what the other says."""
    said = set(named(first_clause(affirming)))
    return bool(denied(denying)) and set(denied(denying)) <= said <= set(named(first_clause(denying)))


def affirms_what_is_denied(affirming: str, denying: str) -> bool:
    """Whether a text says all that the other denies: "was diagnosed with a peanut allergy" after "is not allergic to
    peanuts"."""
    what = set(denied(denying))
    return bool(what) and what <= set(named(first_clause(affirming)))


def named(words: Iterable[str]) -> tuple[str, ...]:
    """The stems of the words that may name what is denied or said."""
    return stems(word for word in words if word not in EMPTY and not denies(word))
