"""What a statement does: deny, tell of something that happened once, plan, or add to what one can have several of.

The user is not allergic to peanuts, but to bees.
                ────── denied ─────
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from scrubjay.text.tokens import FUNCTION_WORDS, TOKEN, first_clause, stems, word_set

DENIALS = word_set("no not never without none nobody nothing neither nor cannot")
EMPTY = word_set(  # they name no object of a denial
    "any anything anyone anybody anymore more longer all ever every each itself himself herself themselves us me him "
    "them this"
)
BEING = word_set("am is are was were isn't aren't wasn't weren't")
ENDED = word_set("stopped quit left cancelled canceled sold")
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


def denies_or_ends(text: str) -> bool:
    """Whether the first clause of a text denies something, or says that it came to an end."""
    return bool(denied_words(text)) or not ENDED.isdisjoint(first_clause(text))


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


# --- what happened once -----------------------------------------------------------------------------------------------

CHANGED = word_set(
    "moved move moves changed changes change switched switch replaced replaces replace swapped migrated migrate "
    "upgraded upgrade raised raise lowered increased decreased reduced cut dropped drop removed remove cancelled "
    "canceled postponed delayed extended shortened became become turned started stopped quit ended left joined "
    "retired resigned sold bought closed opened reopened finished done lifted abolished banned allowed approved "
    "rejected merged fixed solved renamed relocated converted restored recovered healed broke died born married "
    "divorced passed failed got went gave took reversed reverted adopted gone rose fell grew shrank down up "
    "bumped doubled halved rescheduled brought forward taken handed hired fired promoted"
)
# These alone leave things as they were: she took a taxi, got new glasses, and the server was down for a minute.
LASTING = CHANGED - word_set("got went gave took taken brought broke passed failed rose fell grew down up forward")
LASTING_PHRASE = re.compile(
    r"\b(?:got|went|gave|took|broke|brought|passed) (?:over|up|off|on|out|back|live|rid|down|away|married|engaged|"
    r"divorced|promoted|fired|hired)\b"
)
PRESENT = word_set("is are has have")
PAST = word_set("was were had")
AHEAD = word_set("will until till due by expires expire next plans")
ONCE = re.compile(
    r"(?<!since )(?<!as of )\b(?:yesterday|this morning|the other day|"
    r"\w+ (?:minutes|hours|days|weeks|months|years) ago|"
    r"last (?:night|week|weekend|month|year|spring|summer|autumn|fall|winter|time|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"january|february|march|april|may|june|july|august|september|october|november|december))\b",
    re.IGNORECASE,
)
ORIGIN = re.compile(r"\b(?:born|grew up) (?:in|on|near|to)\b")
IN_A_YEAR = re.compile(r"\b(?:in|of|on) (?:\w+ |\d\d? \w+ )?(?:19|20)\d\d\b", re.IGNORECASE)


@lru_cache(maxsize=256)
def is_past_event(text: str) -> bool:
    """Whether a text only tells what happened on some day or in some year, or where somebody comes from: nothing that
    comes later outdates that."""
    if not (ONCE.search(text) or IN_A_YEAR.search(text) or ORIGIN.search(text)):
        return False
    words = {token.lower() for token in TOKEN.findall(text)}
    return PRESENT.isdisjoint(words) and AHEAD.isdisjoint(words)


@lru_cache(maxsize=256)
def is_passing_event(text: str) -> bool:
    """Whether a text begins by telling what happened once and left things as they were: "was down last night"."""
    clause = first_clause(text)
    plain = " ".join(clause)
    if ORIGIN.search(plain) and PRESENT.isdisjoint(clause):
        return True
    if not ONCE.search(plain) or LASTING_PHRASE.search(plain) or not PRESENT.isdisjoint(clause):
        return False
    return LASTING.isdisjoint(token.lower() for token in TOKEN.findall(text))


# --- what may come ----------------------------------------------------------------------------------------------------

PLAN = re.compile(
    r"\b(?:may|might|could) (?!not\b|only\b|now\b|be\b)\w+|\b(?:maybe|perhaps|possibly|considers?|considering)\b"
    r"|\b(?:thinks?|thinking|dreams?|dreaming) (?:about|of)\b"
    r"|\b(?:plans?|planning|planned|wants?|hopes?|hoping|intends?|intending|would (?:like|love)) to\b"
    r"|\b(?:will|going to|plans?)\b.* next (?:spring|summer|autumn|fall|winter|year)\b"
)
DECIDED = re.compile(r"\b(?:now|again|not|no longer|anymore)\b|n't\b")


@lru_cache(maxsize=256)
def is_plan(text: str) -> bool:
    """Whether a text begins with what a person thinks of doing, or what may happen: nothing has changed yet."""
    plain = " ".join(first_clause(text))
    return PLAN.search(plain) is not None and DECIDED.search(plain) is None


# --- what one can have several of -------------------------------------------------------------------------------------

OF_SEVERAL = word_set(
    "uses offers supports speaks has owns sells likes loves enjoys plays collects volunteers subscribes coaches "
    "includes accepts provides contains takes teaches covers knows member allergic intolerant afraid"
)
SEVERAL = frozenset(stems(OF_SEVERAL))
GAINED = word_set("joined got bought adopted acquired learned learnt added")
JOINED_A_GROUP = re.compile(
    r"\bjoin(?:s|ed)? (?:[\w'’-]+ ){1,4}?(?:club|committee|choir|band|council|board|society|association|union|gym|"
    r"group|party|orchestra|quartet|league|church|network|forum)\b",
    re.IGNORECASE,
)


def holds_beside(old: str, new: str) -> bool:
    """Whether a new text only adds to what one can have several of: it uses Y, too, or joined another club."""
    if JOINED_A_GROUP.search(new):
        return True
    if not (verb := verb_of_several(old)):
        return False
    said = first_clause(new)
    tells_more = set(stems(first_clause(old))) <= set(stems(said))
    return not tells_more and (verb == verb_of_several(new) or not GAINED.isdisjoint(said))


@lru_cache(maxsize=256)
def verb_of_several(text: str) -> str:
    """The stem of the verb of a first clause, if that may have several objects; otherwise an empty string."""
    return next((word for word in stems(first_clause(text))[1:] if word in SEVERAL), "")
