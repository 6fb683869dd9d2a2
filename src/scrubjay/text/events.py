"""Whether a text tells what happened once, rather than what holds from then on."""

from __future__ import annotations

import re
from functools import lru_cache

from scrubjay.text.tokens import TOKEN, first_clause, word_set

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
