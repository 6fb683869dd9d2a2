"""Who or what a sentence is about, and the values it names: the little grammar that vectors do not see.

No list of verbs: only determiners, pronouns, the possessive, capitals and digits.
"""

from __future__ import annotations

import re
from functools import lru_cache

from scrubjay.text.tokens import root, stem
from scrubjay.values.frozen import dataclass
from scrubjay.values.words import CALENDAR, SENTENCE, STOP_WORDS

WORD = re.compile(r"[^\W_]+(?:[-'’.:][^\W_]+)*", re.UNICODE)
DETERMINERS = frozenset(
    ("a", "an", "the", "this", "that", "these", "those", "our", "my", "your", "their", "his", "her")
)
ATTRIBUTES = frozenset(("new", "old", "current", "former", "own", "main"))
SPEAKER = frozenset(("i", "we"))  # "By the way, I …": about whoever speaks
ANYONE = frozenset(("i", "we", "it", "they", "he", "she", "you", "there"))
LITTLE = DETERMINERS | ANYONE | frozenset(
    ("is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "will", "would", "can", "of",
     "to", "in", "on", "at", "by", "for", "with", "from", "as", "and", "or", "but", "over", "into", "now", "also",
     "again", "anymore", "longer", "no", "not", "never", "currently", "s")
)  # fmt: skip
DENIALS = frozenset(("no", "not", "never", "without", "stopped", "quit", "cannot", "nobody", "nothing"))
NOWADAYS = frozenset(
    ("now", "currently", "actually", "instead", "anymore", "longer", "recently", "lately", "already", "just", "finally",
     "today", "since")
)  # fmt: skip
# Talk around what is said: words that two turns of any chat share.
TALK = STOP_WORDS | LITTLE | frozenset(
    ("really", "way", "think", "thinking", "looking", "trying", "help", "thank", "thanks", "great", "know",
     "want", "make", "sure", "new", "get", "got", "like", "us", "mine")
)  # fmt: skip
CONTRACTION = re.compile(r"'(?:m|ve|d|ll|re)$")
READ = 400  # characters of a single statement
READ_ALL = 2_000  # characters of a text made of several
MOST = 12  # statements of one text
NUMBER_WORDS = frozenset(
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
)
NUMBERS = NUMBER_WORDS | CALENDAR | {f"{name}s" for name in CALENDAR}  # as words


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the judge wants to know of a text."""

    subject: tuple[str, ...]  # ("user",), ("user", "sister"); empty when a pronoun says it
    words: frozenset[str]  # content words, lower case
    names: frozenset[str]  # capitalised words after the first, lower case
    numbers: frozenset[str]  # digits, number words, days and months
    denied: bool
    now: bool = False  # "now", "no longer", "just": as if something had changed
    asks: bool = False

    @property
    def told(self) -> frozenset[str]:
        return self.words | self.about

    @property
    def about(self) -> frozenset[str]:
        return frozenset(map(root, self.subject))


@lru_cache(maxsize=16)  # a statement is compared with several
def read(text: str) -> Sentence:
    """Look at the first 400 characters: conflicts are between statements, not between essays."""
    tokens, lower = words_of(text)
    plain = [word.removesuffix("'s") for word in lower]
    said = set(lower)
    return Sentence(
        subject=subject_of(lower),
        words=frozenset(root(word) for word in plain if word not in TALK and not is_number(word)),
        names=names_in(tokens, lower),
        numbers=numbers_in(plain),
        denied=not DENIALS.isdisjoint(said) or any(word.endswith("n't") for word in lower),
        now=not NOWADAYS.isdisjoint(said),
        asks=text.rstrip().endswith("?"),
    )


def statements(text: str) -> list[Sentence]:
    """The sentences of a text, each read for itself.

    In a chat a fact often stands beside a request: "Can you recommend a book? By the way, I'm on page 220 of …".
    """
    parts = [part for part in SENTENCE.split(text[:READ_ALL]) if part]
    found = [sentence for part in parts if (sentence := read(part)).words or sentence.numbers]
    return found[:MOST] or [read(text)]


def specifics(text: str) -> frozenset[str]:
    """The names and numbers of a statement: all that its importance depends on, in a third of the time of `read`."""
    tokens, lower = words_of(text)
    return names_in(tokens, lower) | numbers_in([word.removesuffix("'s") for word in lower])


def words_of(text: str) -> tuple[list[str], list[str]]:
    """As they are written, and in lower case without contracted verbs."""
    tokens = WORD.findall(text[:READ].replace("’", "'"))
    lower = [token.lower() for token in tokens]
    return tokens, [CONTRACTION.sub("", word) if "'" in word else word for word in lower]


def names_in(tokens: list[str], lower: list[str]) -> frozenset[str]:
    return frozenset(
        [
            token.lower().removesuffix("'s")
            for token, word in zip(tokens[1:], lower[1:], strict=True)
            if token[0].isupper() and len(token) > 1 and word not in ANYONE
        ]
    )


def numbers_in(plain: list[str]) -> frozenset[str]:
    return frozenset([stem(word) for word in plain if is_number(word)])


def is_number(word: str) -> bool:
    return word[0].isdigit() or word in NUMBERS


def subject_of(words: list[str]) -> tuple[str, ...]:
    """The first content word, and what it possesses: "The user's dog is …" is about the dog."""
    rest = [word for word in words if word not in DETERMINERS and word not in ATTRIBUTES]
    if not rest or rest[0] in ANYONE or not SPEAKER.isdisjoint(words):
        return ()
    length = next((place for place, word in enumerate(rest) if not word.endswith("'s")), len(rest) - 1) + 1
    return tuple(stem(word) for word in rest[:length])


def same_subject(old: Sentence, new: Sentence) -> bool:
    """Whether the new sentence speaks of what the old one is about, and of nothing that belongs to it instead."""
    return old.about <= new.told and (len(new.subject) < 2 or new.about <= old.told)
