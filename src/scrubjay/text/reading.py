"""What a text is about and what it says of it, as far as words show.

    The disk alert on pg-main fires at 80 %.
    ───────── subject ─────── ── predicate ─
    names: pg-main     numbers: 80

Only English has its grammar here; see `languages.is_english`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from scrubjay.text.statements import CHANGED, PAST, PRESENT, denies
from scrubjay.text.tokens import TOKEN, root, word_set
from scrubjay.text.words import CALENDAR, STOP_WORDS

READ = 400  # characters of a text that are read
SUBJECT_AT_MOST = 10  # tokens

START = re.compile(r"\W*", re.UNICODE)
# One set of characters to begin with, which is looked for faster than alternatives are.
NEXT_SENTENCE = re.compile(r"[.!?:;\n](?:(?<=\n)|\s)\W*", re.UNICODE)


DETERMINERS = word_set("a an the this that these those our my your their his her")
ANYONE = word_set("i we it they he she you there")
# Talk around what is said: words that two turns of any chat share.
TALK = (
    STOP_WORDS
    | DETERMINERS
    | ANYONE
    | word_set(
        "would also anymore longer never currently s really way think thinking looking trying help thank thanks great "
        "know want make sure new get got like us mine"
    )
)
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
OFTEN_CAPITAL = (  # without being a name
    AUXILIARIES | PREPOSITIONS | DETERMINERS | ANYONE | NOWADAYS | word_set("and or but not no who which user")
)
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


class Word(NamedTuple):
    """What a token is by itself, wherever it stands."""

    lower: str  # without a possessive's ending
    number: str  # its digits; "" if it is none
    identifier: bool
    capital: bool  # written like a name: neither an identifier nor a word that is often written so
    day: str  # "" if it is none
    root: str | None  # of a content word


class Text:
    """The beginning of a text, with what shows in its words; each property is found out when it is first asked for."""

    def __init__(self, text: str) -> None:
        self.text = text[:READ].replace("’", "'")

    @cached_property
    def written(self) -> list[str]:
        """The tokens as they are written."""
        return TOKEN.findall(self.text)

    @cached_property
    def looked_up(self) -> list[Word]:
        return [*map(looked_up, self.written)]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The tokens in lower case."""
        return tuple([word.lower for word in self.looked_up])

    @cached_property
    def length(self) -> int:
        return len(self.written)

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The tokens in lower case, in no order."""
        return frozenset(self.order)

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the words that say something."""
        return frozenset([word.root for word in self.looked_up if word.root is not None])

    @cached_property
    def before(self) -> Mapping[str, set[str]]:
        """By the stem of a word that says something, what it follows: "alert" -> "disk"."""
        previous = dict[str, set[str]]()
        for one, other in pairwise(self.looked_up):
            if one.root is not None and other.root is not None:
                previous.setdefault(other.root, set()).add(one.root)
        return previous

    # --- names and numbers ---

    @cached_property
    def _capitals(self) -> tuple[frozenset[str], frozenset[str]]:
        """What can only be names, and what may be one because it begins a sentence."""
        names = {word.lower for word in self.looked_up if word.identifier and not word.number}
        maybe = set[str]()
        capitals = [at for at, word in enumerate(self.looked_up) if word.capital]
        beginning = begins_sentence(self.text, self.written) if capitals else ()
        for at in capitals:
            lower = self.looked_up[at].lower
            if at not in beginning:
                names.add(lower)
            elif lower not in TALK and lower not in ADDED:
                maybe.add(lower)
        return frozenset(names), frozenset(maybe)

    @property
    def names(self) -> frozenset[str]:
        """Names and identifiers; at the beginning of a sentence only where they can be nothing else."""
        return self._capitals[0]

    @property
    def maybe(self) -> frozenset[str]:
        """What has a capital at the beginning of a sentence: a name, or any word."""
        return self._capitals[1]

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset([word.number for word in self.looked_up if word.number])

    @cached_property
    def days(self) -> frozenset[str]:
        return frozenset([word.day for word in self.looked_up if word.day])

    @property
    def specifics(self) -> frozenset[str]:
        """Everything that is written like a name or a number."""
        return self.names | self.maybe | self.numbers | self.days

    @cached_property
    def of_rows(self) -> Mapping[int, frozenset[str]]:
        """By the number of one of the ROWS, what the text has of it."""
        said = self.tokens
        return {} if IN_A_ROW.isdisjoint(said) else {at: row & said for at, row in enumerate(ROWS) if row & said}

    # --- what it is about ---

    @cached_property
    def end(self) -> int:
        """Where the subject ends: at the first auxiliary, or the first word that looks like a verb after a name."""
        begun = False
        for place, (token, word) in enumerate(zip(self.written[:SUBJECT_AT_MOST], self.order, strict=False)):
            if word in AUXILIARIES or (begun and token.islower() and is_verb(word, self.written[place - 1])):
                return place
            begun = begun or (word not in DETERMINERS and word not in PREPOSITIONS)
        return min(3, self.length)

    @property
    def _beginning(self) -> list[Word]:
        return self.looked_up[: self.end]

    @cached_property
    def begins_with_name(self) -> bool:
        """Whether the first word can only be a name ("Anna Berg …", "Anna's …", "ledger-api …"): more of it follows, or
        a verb, or what belongs to it."""
        first = next((place for place, word in enumerate(self.order[: self.end]) if word not in DETERMINERS), None)
        if first is None or not (self.order[first] in self.names or self.order[first] in self.maybe):
            return False
        return self.written[first].endswith("'s") or first + 1 >= self.end or self.order[first + 1] in self.names

    @cached_property
    def subject(self) -> frozenset[str]:
        """Stems of the words of the subject that say something."""
        return frozenset([word.root for word in self._beginning if word.root is not None and word.lower not in ADDED])

    @cached_property
    def subject_names(self) -> frozenset[str]:
        """Names, identifiers and numbers in the subject."""
        named = self.names | self.maybe
        return frozenset([word.lower for word in self._beginning if word.number or word.lower in named])

    @cached_property
    def subject_numbers(self) -> frozenset[str]:
        return frozenset([word.lower for word in self._beginning if word.number])

    @cached_property
    def subject_letters(self) -> frozenset[tuple[str, str]]:
        """Things that one letter tells apart: ("room", "A")."""
        pairs = zip(self._beginning, self.written[1 : self.end], strict=False)
        return frozenset(
            [
                (word.lower, letter)
                for word, letter in pairs
                if word.root is not None and len(letter) == 1 and letter.isupper() and letter != "I"
            ]
        )

    # --- what it says ---

    @cached_property
    def denied(self) -> bool:
        return any(map(denies, self.order))

    @cached_property
    def now(self) -> bool:
        """Whether it says "now", "no longer", "again": as if something had changed."""
        plain = self.text.lower()
        return not NOWADAYS.isdisjoint(self.tokens) or any(phrase in plain for phrase in NOWADAYS_PHRASES)

    @property
    def since(self) -> bool:
        return "since" in self.tokens

    @cached_property
    def adds(self) -> bool:
        plain = self.text.lower()
        return not ADDED.isdisjoint(self.tokens) or any(phrase in plain for phrase in ADDED_PHRASES)

    @cached_property
    def corrects(self) -> bool:
        return not CORRECTED.isdisjoint(self.tokens) or NOT_THAT.search(self.text) is not None

    @cached_property
    def not_yet(self) -> bool:
        return not NOT_YET.isdisjoint(self.tokens)

    @cached_property
    def past(self) -> bool:
        """Whether it only speaks of what was."""
        in_past = not self.tokens.isdisjoint(PAST) or any(word.endswith("ed") for word in self.order)
        return in_past and self.tokens.isdisjoint(PRESENT)

    @cached_property
    def changes(self) -> int:
        """How many words of change it has."""
        return len(self.tokens & CHANGED)


@lru_cache(maxsize=2_000)  # what is near a new memory is near the next one on the same thing, too
def read(text: str) -> Text:
    """Look at the first 400 characters: conflicts are between statements, not between essays."""
    return Text(text)


@lru_cache(maxsize=4096)  # texts of one store share most of their words
def looked_up(token: str) -> Word:
    lower = token.lower().removesuffix("'s").strip("`")
    day = lower.removesuffix("s") if is_day(lower) else ""
    number, identifier = number_of(lower) if is_number(lower) else "", is_identifier(token)
    often_so = lower in OFTEN_CAPITAL or bool(day)
    return Word(
        lower=lower,
        number=number,
        identifier=identifier,
        capital=token[0].isupper() and len(token) > 1 and not (often_so or identifier or number),
        day=day,
        root=root(lower) if is_content(lower) else None,
    )


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


def is_verb(word: str, after: str) -> bool:
    if word in CHANGED or (word.endswith("ed") and len(word) > 4):
        return True
    third_person = word.endswith("s") and not word.endswith("ss") and len(word) > 3
    return third_person and not after.endswith("'s") and (after[0].isupper() or "-" in after)
