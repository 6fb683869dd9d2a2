"""Who or what a sentence is about, and the values it names: the little grammar that vectors do not see.

No list of verbs: only determiners, pronouns, the possessive, capitals and digits.
"""

from __future__ import annotations

import re

from scrubjay.frozen import dataclass

WORD = re.compile(r"[^\W_]+(?:[-'’.:][^\W_]+)*", re.UNICODE)
DETERMINERS = frozenset(
    ("a", "an", "the", "this", "that", "these", "those", "our", "my", "your", "their", "his", "her")
)
ATTRIBUTES = frozenset(("new", "old", "current", "former", "own", "main"))
ANYONE = frozenset(("i", "we", "it", "they", "he", "she", "you", "there"))
LITTLE = DETERMINERS | ANYONE | frozenset(
    ("is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "will", "would", "can", "of",
     "to", "in", "on", "at", "by", "for", "with", "from", "as", "and", "or", "but", "over", "into", "now", "also",
     "again", "anymore", "longer", "no", "not", "never", "currently", "s")
)  # fmt: skip
DENIALS = frozenset(("no", "not", "never", "without", "stopped", "quit", "cannot", "nobody", "nothing"))
NUMBER_WORDS = frozenset(
    ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the judge wants to know of a text."""

    subject: tuple[str, ...]  # ("user",), ("user", "sister"); empty when the text starts with a pronoun
    words: frozenset[str]  # content words, lower case
    names: frozenset[str]  # capitalised words after the first, lower case
    numbers: frozenset[str]
    denied: bool

    @property
    def told(self) -> frozenset[str]:
        return self.words | frozenset(self.subject)


def read(text: str) -> Sentence:
    """Look at the first 400 characters: conflicts are between statements, not between essays."""
    tokens = WORD.findall(text[:400].replace("’", "'"))
    lower = [token.lower() for token in tokens]
    plain = [word.removesuffix("'s") for word in lower]
    return Sentence(
        subject=subject_of(lower),
        words=frozenset(stem(word) for word in plain if word not in LITTLE),
        names=frozenset(
            token.lower().removesuffix("'s") for token in tokens[1:] if token[0].isupper() and len(token) > 1
        ),
        numbers=frozenset(word for word in plain if word[0].isdigit() or word in NUMBER_WORDS),
        denied=any(word in DENIALS or word.endswith("n't") for word in lower),
    )


def subject_of(words: list[str]) -> tuple[str, ...]:
    """The first content word, and what it possesses: "The user's dog is …" is about the dog."""
    rest = [word for word in words if word not in DETERMINERS and word not in ATTRIBUTES]
    if not rest or rest[0] in ANYONE:
        return ()
    length = next((place for place, word in enumerate(rest) if not word.endswith("'s")), len(rest) - 1) + 1
    return tuple(stem(word) for word in rest[:length])


def stem(word: str) -> str:
    """Enough for "doctors" and "doctor's" to be the doctor."""
    word = word.removesuffix("'s")
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def same_subject(old: Sentence, new: Sentence) -> bool:
    """Whether the new sentence speaks of what the old one is about, and of nothing that belongs to it instead."""
    return set(old.subject) <= new.told and (len(new.subject) < 2 or set(new.subject) <= old.told)
