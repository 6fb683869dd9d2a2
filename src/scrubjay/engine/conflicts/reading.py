"""What a text is about and what it says of it, as far as words show.

    The disk alert on pg-main fires at 80 %.
    ───────── subject ─────── ── predicate ─
    names: pg-main     numbers: 80

Only English has its grammar here; see `is_english`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from scrubjay.engine.conflicts.grammar import ANYONE, DETERMINERS, TALK
from scrubjay.text.denials import DENIALS
from scrubjay.text.events import CHANGED, PAST, PRESENT
from scrubjay.text.tokens import TOKEN, root
from scrubjay.values.languages import word_set
from scrubjay.values.words import CALENDAR

READ = 400  # characters of a text that are read
SUBJECT_AT_MOST = 10  # tokens

START = re.compile(r"\W*", re.UNICODE)
# One set of characters to begin with, which is looked for faster than alternatives are.
NEXT_SENTENCE = re.compile(r"[.!?:;\n](?:(?<=\n)|\s)\W*", re.UNICODE)


AUXILIARIES = word_set(
    "is are was were be been being has have had does do did will would can could may might must should shall isn't "
    "aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't can't cannot couldn't mustn't "
    "shouldn't"
)
PREPOSITIONS = word_set(
    "of in on at by for with from to into since until as after before about per over under between against without "
    "within during through than"
)
NOWADAYS = word_set("now nowadays currently anymore longer lately instead finally again already meanwhile")
NOWADAYS_PHRASES = ("any more", "from now on", "these days", "as of", "after all")
ADDED = word_set("also too another additionally besides addition additional extra both second")
ADDED_PHRASES = ("as well", "on top", "by contrast")
NOT_YET = word_set(
    "still yet pending undecided waiting planned plans planning provisional temporarily temporary draft open "
    "considering expected due tentative currently trial until"
)
CORRECTED = word_set("correction wrong mistake error misread typo slip actually corrected mistaken")
SEASONS = word_set("may spring summer autumn winter")
# Of each row a thing is one: a text on one of them says nothing about another.
ROWS = tuple(
    word_set(row)
    for row in (
        "staging production prod dev development test testing preprod qa",
        "mother mum father dad brother sister wife husband son daughter aunt uncle cousin grandma grandpa grandmother "
        "grandfather niece nephew neighbour neighbor colleague boss",
        "left right",
        "internal external public private",
        "read reads write writes",
        "morning afternoon evening night",
        "first second third fourth fifth",
        "breakfast lunch dinner",
        "frontend backend database",
        "disk cpu memory network",
        "north south east west",
    )
)
IN_A_ROW = frozenset[str]().union(*ROWS)
NUMBER_WORDS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8",
    "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "thirteen": "13", "fourteen": "14", "fifteen": "15",
    "sixteen": "16", "seventeen": "17", "eighteen": "18", "nineteen": "19", "twenty": "20", "thirty": "30",
    "forty": "40", "fifty": "50", "first": "1", "third": "3", "fourth": "4", "fifth": "5", "half": "0.5", "noon": "12",
    "midnight": "0",
}  # fmt: skip
NUMBER_WORDS |= {
    f"{tens}-{one}": NUMBER_WORDS[tens][0] + NUMBER_WORDS[one]
    for tens in ("twenty", "thirty", "forty", "fifty")
    for one in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
}
NOT_THAT = re.compile(r",? not \S+\.?$")
ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
FUNCTION_WORDS = (
    AUXILIARIES | PREPOSITIONS | DETERMINERS | ANYONE | NOWADAYS | word_set("and or but not no who which user")
)
FOREIGN = word_set(
    "der die das und ist nicht mit von für auf ein eine einen den dem des im zum zur wird sind hat haben wir sich nach "
    "le la les et est pas une des du dans pour sur avec nous vous il elle au aux ce cette sont ont que qui "
    "el los las y es una por para con del se su al más como lo está son ya desde "
    "il gli di che non per della nel sono è o um uma os as não com da na em ao foi mais "
    "het een van niet op zijn voor aan och att som på är av inte med til ikke af"
) - FUNCTION_WORDS - word_set("as die per son il a op")  # fmt: skip


NOTHING = frozenset((None,))


class Word(NamedTuple):
    """What a token is by itself, wherever it stands."""

    lower: str  # without a possessive's ending
    number: str  # its digits; "" if it is none
    identifier: bool
    capital: bool  # written like a name: neither an identifier nor a word that is often written so
    day: str  # "" if it is none
    root: str | None  # of a content word


class Reading(NamedTuple):
    """What is compared of a text."""

    order: tuple[str, ...]  # all tokens, lower case
    end: int  # how many of them the subject has
    begins_with_name: bool  # "Anna Berg …", "Anna's …", "ledger-api …"
    tokens: frozenset[str]  # the same, in no order
    words: frozenset[str]  # stems of content words
    subject: frozenset[str]  # stems of the subject's content words
    subject_names: frozenset[str]  # names, identifiers and numbers in the subject
    subject_numbers: frozenset[str]  # of these the numbers
    subject_letters: frozenset[tuple[str, str]]  # things that one letter tells apart: ("room", "A")
    names: frozenset[str]  # names and identifiers, wherever; at the start of a sentence only where they must be one
    maybe: frozenset[str]  # capitalised at the start of a sentence: a name, or any word
    numbers: frozenset[str]
    days: frozenset[str]
    of_rows: Mapping[int, frozenset[str]]  # by the number of one of the ROWS, what the text has of it
    before: Mapping[str, set[str]]  # by content word, what it follows: "alert" -> "disk"
    denied: bool
    now: bool
    since: bool
    adds: bool
    corrects: bool
    not_yet: bool
    past: bool  # only speaks of what was
    changes: int  # words of change
    length: int


@lru_cache(maxsize=2_000)  # of 4.5 kB: what lies near a new memory lies near the next one on the same thing, too
def read(text: str) -> Reading:
    """Look at the first 400 characters: conflicts are between statements, not between essays."""
    text = text[:READ].replace("’", "'")
    written = TOKEN.findall(text)
    words = [*map(looked_up, written)]
    lower, numbers, _, _, days, roots = zip(*words, strict=True) if words else ((),) * len(Word._fields)
    names, maybe = names_in(text, written, words)
    end = predicate(written, lower)
    said, plain = frozenset(lower), text.lower()
    previous = dict[str, set[str]]()
    for one, other in pairwise(roots):
        if one is not None and other is not None:
            previous.setdefault(other, set()).add(one)
    begin = words[:end]
    return Reading(
        order=lower,
        end=end,
        begins_with_name=begins_with_name(written, lower, names, maybe, end),
        tokens=said,
        words=frozenset(roots) - NOTHING,
        subject=frozenset([word.root for word in begin if word.root is not None and word.lower not in ADDED]),
        subject_names=frozenset(
            [word.lower for word in begin if word.number or word.lower in names or word.lower in maybe]
        ),
        subject_numbers=frozenset([word.lower for word in begin if word.number]),
        subject_letters=frozenset(
            [
                (word.lower, letter)
                for word, letter in zip(begin, written[1:end], strict=False)
                if word.root is not None and len(letter) == 1 and letter.isupper() and letter != "I"
            ]
        ),
        names=frozenset(names),
        maybe=frozenset(maybe),
        numbers=frozenset(filter(None, numbers)),
        days=frozenset(filter(None, days)),
        of_rows={} if IN_A_ROW.isdisjoint(said) else {at: row & said for at, row in enumerate(ROWS) if row & said},
        before=previous,
        denied=not DENIALS.isdisjoint(said) or ("n't" in plain and any(word.endswith("n't") for word in lower)),
        now=not NOWADAYS.isdisjoint(said) or any(phrase in plain for phrase in NOWADAYS_PHRASES),
        since="since" in said,
        adds=not ADDED.isdisjoint(said) or any(phrase in plain for phrase in ADDED_PHRASES),
        corrects=not CORRECTED.isdisjoint(said) or (" not " in text and NOT_THAT.search(text) is not None),
        not_yet=not NOT_YET.isdisjoint(said),
        past=said.isdisjoint(PRESENT) and (not said.isdisjoint(PAST) or any(word.endswith("ed") for word in lower)),
        changes=len(said & CHANGED),
        length=len(lower),
    )


@lru_cache(maxsize=4096)  # texts of one store share most of their words
def looked_up(token: str) -> Word:
    lower = token.lower().removesuffix("'s").strip("`")
    day = lower.removesuffix("s") if is_day(lower) else ""
    number, identifier = number_of(lower) if is_number(lower) else "", is_identifier(token)
    often_so = lower in FUNCTION_WORDS or bool(day)
    return Word(
        lower=lower,
        number=number,
        identifier=identifier,
        capital=token[0].isupper() and len(token) > 1 and not (often_so or identifier or number),
        day=day,
        root=root(lower) if is_content(lower) else None,
    )


def names_in(text: str, written: list[str], words: list[Word]) -> tuple[set[str], set[str]]:
    """What can only be names, and what may be one because it begins a sentence."""
    names = {word.lower for word in words if word.identifier and not word.number}
    maybe = set[str]()
    capitals = [at for at, word in enumerate(words) if word.capital]
    beginning = begins_sentence(text, written) if capitals else ()
    for at in capitals:
        lower = words[at].lower
        if at not in beginning:
            names.add(lower)
        elif lower not in TALK and lower not in ADDED:
            maybe.add(lower)
    return names, maybe


def begins_sentence(text: str, written: list[str]) -> Container[int]:
    """Which tokens begin a sentence."""
    first = START.match(text)
    assert first is not None
    starts = {first.end(), *[match.end() for match in NEXT_SENTENCE.finditer(text, first.end())]}
    if len(starts) == 1:
        return (0,) if text.startswith(written[0], first.end()) else ()
    beginning, place = set[int](), 0
    for at, token in enumerate(written):
        place = text.index(token, place)  # between two tokens stands nothing that one could begin with
        if place in starts:
            beginning.add(at)
        place += len(token)
    return beginning


def is_number(word: str) -> bool:
    return word[0].isdigit() or word in NUMBER_WORDS


def number_of(word: str) -> str:
    return NUMBER_WORDS.get(word) or ORDINAL.sub("", word)


def is_day(word: str) -> bool:
    return word in CALENDAR or word in SEASONS or word.removesuffix("s") in CALENDAR


def is_identifier(token: str) -> bool:
    """make smoke-mail, `new_basket`, pg-main, TypeScript, API, docs/adr, TS-402."""
    odd = token[0] in "`#." or "_" in token or "/" in token or any(one.isdigit() for one in token)
    return odd or (len(token) > 2 and any(one.isupper() for one in token[1:])) or ("-" in token and len(token) > 5)


def is_content(word: str) -> bool:
    return (
        word not in TALK and word not in AUXILIARIES and word not in DETERMINERS and word not in PREPOSITIONS
        and not is_number(word)
    )  # fmt: skip


def predicate(written: list[str], lower: Sequence[str]) -> int:
    """Where the subject ends: at the first auxiliary, or the first word that looks like a verb after a name."""
    begun = False
    for place, (token, word) in enumerate(zip(written[:SUBJECT_AT_MOST], lower, strict=False)):
        if word in AUXILIARIES or (begun and token.islower() and is_verb(word, written[place - 1])):
            return place
        begun = begun or (word not in DETERMINERS and word not in PREPOSITIONS)
    return min(3, len(lower))


def begins_with_name(written: list[str], lower: Sequence[str], names: set[str], maybe: set[str], end: int) -> bool:
    """Whether the first word can only be a name: more of it follows, or a verb, or what belongs to it."""
    first = next((place for place, word in enumerate(lower[:end]) if word not in DETERMINERS), None)
    if first is None or not (lower[first] in names or lower[first] in maybe):
        return False
    return written[first].endswith("'s") or first + 1 >= end or lower[first + 1] in names


def is_verb(word: str, after: str) -> bool:
    if word in CHANGED or (word.endswith("ed") and len(word) > 4):
        return True
    third_person = word.endswith("s") and not word.endswith("ss") and len(word) > 3
    return third_person and not after.endswith("'s") and (after[0].isupper() or "-" in after)


@lru_cache(maxsize=2_000)
def is_english(text: str) -> bool:
    """Whether the words that hold a sentence together are English, as far as there are any."""
    text = text[:READ]
    if not text.isascii():
        letters = [one for one in text if one.isalpha()]
        if sum(one.isascii() for one in letters) < 0.9 * len(letters):
            return False
    tokens = [token.lower() for token in TOKEN.findall(text)]
    if FOREIGN.isdisjoint(tokens):
        return True
    return sum(token in FOREIGN for token in tokens) < sum(token in FUNCTION_WORDS for token in tokens)
