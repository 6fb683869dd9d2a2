"""Do two texts say the same in the same words? Retyped, or shortened: twins. Another value: never.

Nothing is refused or merged for being a twin; they are only shown. So precision comes first: one other word, one
number, one name or one "not" and two texts are not twins, however near they are in meaning. Not even misspelt words are
forgiven: "baseball" and "basketball" are as near as two spellings of one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache, lru_cache

from scrubjay.engine.cursors import pages
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Kind, Memory
from scrubjay.values.search import Filter

NEAR = 0.92  # cosine of two stored texts below which their words are not even compared
SIDE_BY_SIDE = 8  # neighbours of each memory that are compared with it
PAGE = 200

# Of ASCII only $ + < = > | ~ are signs that count: thousands of dashes are passed over without looking at each.
WORD = re.compile(r"[^\W_]+(?:['.:,][^\W_]+)*|[^\w\s!-#%-*,-/:;?@\[-^`{}]", re.UNICODE)
SHORTENED = (
    ("can't", "can not"), ("won't", "will not"), ("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"),
    ("'ll", " will"), ("'d", " would"), ("'s", " is"),
)  # fmt: skip
SILENT = frozenset(("a", "an", "the", "that", "some"))
OPENERS = re.compile(
    r"^(?:\W*(?:by the way|btw|oh|also|fyi|note|remember|please note|just so you know|anyway|well)\b)+"
)


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two memories that say the same, the newer one first."""

    newer: Memory
    older: Memory
    cosine: float


def same_said(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order, but for case, punctuation, articles and spaces."""
    left, right = words(one), words(other)
    if not left or numbers(left) != numbers(right):
        return one == other
    return "".join(left) == "".join(right)  # soempowering, so empowering


@lru_cache(maxsize=2)  # a new text is compared with many, one after the other
def words(text: str) -> list[str]:
    """The words, in full and without articles; a currency or an emoji is a word too."""
    plain = OPENERS.sub("", text.lower().replace("’", "'"))
    for short, full in SHORTENED:
        plain = re.sub(rf"{short}\b", full, plain)
    return [word for word in WORD.findall(plain) if word not in SILENT and (word[0].isalnum() or is_sign(word))]


@cache
def is_sign(character: str) -> bool:
    return unicodedata.category(character) in ("Sc", "Sm", "So")


def numbers(words: Iterable[str]) -> list[str]:
    return [word for word in words if word[0].isdigit()]


# --- in a store ------------------------------------------------------------------------------------------------------


def find_duplicates(reads: Reads, audience: Audience, *, now: datetime) -> Iterator[DuplicatePair]:
    """DuplicatePair among the active memories, newest first; each pair once. Only what has a vector is looked at."""
    seen: set[str] = set()
    for memory, neighbours in beside(reads, audience, now=now):
        seen.add(memory.id)
        others = [name for name in neighbours if name not in seen]
        for other in reads.get(others, audience) if others else ():
            if same_said(memory.text, other.text):
                yield DuplicatePair(memory, other, neighbours[other.id])


def beside(reads: Reads, audience: Audience, *, now: datetime) -> Iterator[tuple[Memory, dict[str, float]]]:
    """Each memory with those nearest to it, by their cosines."""
    which = Filter(kinds=frozenset({Kind.MEMORY}))
    for page in pages(reads, which, audience, now=now, size=PAGE):
        vectors = reads.vectors([memory.id for memory in page])
        for memory in page:
            if memory.id in vectors:
                near = reads.nearest(vectors[memory.id], which, audience, now=now, limit=SIDE_BY_SIDE)
                yield memory, {one.memory: one.score for one in near if one.score >= NEAR and one.memory != memory.id}
