"""What a text denies.

The user is not allergic to peanuts, but to bees.
                ────── denied ─────
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from scrubjay.text.several import GAINED
from scrubjay.text.tokens import FUNCTION_WORDS, first_clause, stems, word_set

DENIALS = word_set("no not never without none nobody nothing neither nor cannot")
EMPTY = word_set(  # they name no object of a denial
    "any anything anyone anybody anymore more longer all ever every each itself himself herself themselves us me him "
    "them this"
)
BEING = word_set("am is are was were isn't aren't wasn't weren't")
TURNS = word_set("longer anymore more again now yet")


def denies(word: str) -> bool:
    """Whether a word in lower case denies what follows it."""
    return word in DENIALS or word.endswith("n't")


@lru_cache(maxsize=256)
def denied_words(text: str) -> list[str]:
    """The verb that the first clause of a text denies and what follows it; empty if it denies nothing.

    "Has no car" denies having a car, as "does not have a car" does.
    """
    words = first_clause(text)
    place = next((place for place, word in enumerate(words) if denies(word)), None)
    if place is None:
        return []
    has_none = words[place] == "no" and place and words[place + 1 : place + 2] != ["longer"]
    return words[place - 1 if has_none else place + 1 :]


def denied_stems(text: str) -> tuple[str, ...]:
    """The stems of what the first clause of a text denies."""
    return stems_of_things(denied_words(text))


def denies_another_thing(denying: str, affirming: str) -> bool:
    """Whether a text denies of one thing what the other says of another: "is not allergic to peanuts" beside "is
    allergic to penicillin", "has no peanut allergy" beside both, "the lead is not Tom" beside "the lead is Claire",
    "the barn is not in Utrecht" beside "the house is in Utrecht".

    Where one tells of a change ("no longer", "again"), only the subject and what follows the verb count.
    """
    words, others, told = first_clause(denying), first_clause(affirming), denied_words(denying)
    what, said = stems_of_things(told), stems_of_things(others)
    one, other = subject_stems(words), subject_stems(others)
    if one and other and set(one).isdisjoint(said) and set(other).isdisjoint(stems_of_things(words)):
        return True
    plain = TURNS.isdisjoint([*words, *others])
    for place, word in enumerate(told):
        if not (root := stems_of_things([word])):
            continue
        instead = said[said.index(root[0]) + 1 :][:1] if root[0] in said else ()
        beside = stems_of_things(told[place + 1 :])[:1] + (
            stems_of_things(told[place - 1 : place]) if place > 1 else ()
        )
        if instead and instead[0] not in what and not set(beside) <= set(said):
            return True
        if not plain:
            return False
    if not what:
        return False
    if GAINED.isdisjoint(others) and {word[:4] for word in what}.isdisjoint(word[:4] for word in said):
        return True  # "smoker" and "smokes" speak of one thing
    return what[0] not in said and is_something(words) == is_something(others) != ()


def is_something(words: Sequence[str]) -> tuple[str, ...]:
    """The stems of what a clause says, or denies, that it is something; empty if its verb is another."""
    place = next((place for place, word in enumerate(words) if word in BEING), 0)
    return stems_of_things(words[:place])


def subject_stems(words: Sequence[str]) -> tuple[str, ...]:
    """The stems of what a clause speaks of: all before "is", or only the first word if its verb is another."""
    return is_something(words) or stems_of_things(words[: 1 if words and words[0] not in FUNCTION_WORDS else 2])


def denies_just_that(denying: str, affirming: str) -> bool:
    """Whether a text denies exactly what the other says, be it "has a peanut allergy" or "is allergic to peanuts"."""
    said = set(stems_of_things(first_clause(affirming))) - {"have"}
    what = set(denied_stems(denying)) - {"have"}
    return bool(what) and what <= said <= set(stems_of_things(first_clause(denying)))


def affirms_denied_thing(affirming: str, denying: str) -> bool:
    """Whether a text says all that the other denies: "was diagnosed with a peanut allergy" after "is not allergic to
    peanuts"."""
    what = set(denied_stems(denying)) - {"have", "known"}
    return bool(what) and what <= set(stems_of_things(first_clause(affirming)))


def stems_of_things(words: Iterable[str]) -> tuple[str, ...]:
    """The stems of the words that may name what is denied or said."""
    return stems(word for word in words if word not in EMPTY and not denies(word))
