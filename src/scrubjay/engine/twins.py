"""Do two texts say the same in the same words? Typed anew, shortened, misspelt: twins. Another value: never.

Nothing is refused or merged for being a twin; they are only shown. So precision comes first: one word that differs in
more than its spelling, one number, one name or one "not" and two texts are no twins, however near they are in meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from difflib import SequenceMatcher

from scrubjay.frozen import dataclass
from scrubjay.memory import Audience, Filter, Kind, Memory, Order
from scrubjay.stores.base import Position, Reads

NEAR = 0.92  # cosine of two stored texts below which their words are not even compared
SIDE_BY_SIDE = 8  # neighbours of each memory that are compared with it
PAGE = 200
SPELT = 0.75  # how alike two spellings of one word are …
SPELT_FROM = 4  # … if it has so many letters

WORD = re.compile(r"[^\W_]+(?:['.:,][^\W_]+)*|[^\w\s]", re.UNICODE)
SHORTENED = (
    ("can't", "can not"), ("won't", "will not"), ("n't", " not"), ("'m", " am"), ("'re", " are"), ("'ve", " have"),
    ("'ll", " will"), ("'d", " would"), ("'s", " is"),
)  # fmt: skip
SILENT = frozenset(("a", "an", "the", "that"))
OPENERS = re.compile(
    r"^(?:\W*(?:by the way|btw|oh|also|fyi|note|remember|please note|just so you know|anyway|well)\b)+"
)


@dataclass(frozen=True, slots=True)
class Twins:
    """Two memories that say the same, the newer one first."""

    newer: Memory
    older: Memory
    cosine: float


def same_said(one: str, other: str) -> bool:
    """Whether two texts have the same words in the same order, but for spelling, case, punctuation and articles."""
    left, right = words(one), words(other)
    if left == right:
        return True
    if abs(len(left) - len(right)) > 2 + len(left) // 10:
        return False
    names = capitalised(one) | capitalised(other)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for kind, from_left, to_left, from_right, to_right in matcher.get_opcodes():
        if kind == "equal":
            continue
        gone, come = left[from_left:to_left], right[from_right:to_right]
        if "".join(gone) == "".join(come):
            continue  # soempowering, so empowering
        if len(gone) != len(come) or not all(respelt(*pair, names) for pair in zip(gone, come, strict=True)):
            return False
    return True


def words(text: str) -> list[str]:
    plain = OPENERS.sub("", text.lower().replace("’", "'"))
    for short, full in SHORTENED:
        plain = re.sub(rf"{short}\b", full, plain)
    return [word for word in WORD.findall(plain) if word[0].isalnum() and word not in SILENT]


def capitalised(text: str) -> set[str]:
    """Words that are names as far as one can see: with a capital, and not first in a sentence."""
    return {found[1].lower() for found in re.finditer(r"(?<![.!?:…\"“])\s([A-Z][\w]+)", text)}


def respelt(one: str, other: str, names: set[str]) -> bool:
    """Whether two words are the same one, misspelt; numbers and names are never."""
    if min(len(one), len(other)) < SPELT_FROM or not (one.isalpha() and other.isalpha()) or {one, other} & names:
        return False
    return one[0] == other[0] and SequenceMatcher(None, one, other).ratio() >= SPELT


# --- in a store ------------------------------------------------------------------------------------------------------


def found(reads: Reads, audience: Audience, *, now: datetime) -> Iterator[Twins]:
    """Twins among the active memories, newest first; each pair once. Only what has a vector is looked at."""
    seen: set[str] = set()
    for memory, neighbours in beside(reads, audience, now=now):
        seen.add(memory.id)
        others = [name for name in neighbours if name not in seen]
        for other in reads.get(others, audience) if others else ():
            if same_said(memory.text, other.text):
                yield Twins(memory, other, neighbours[other.id])


def beside(reads: Reads, audience: Audience, *, now: datetime) -> Iterator[tuple[Memory, dict[str, float]]]:
    """Each memory with those that lie next to it, by their cosines."""
    which, after = Filter(kinds=frozenset({Kind.MEMORY})), None
    while page := reads.list(which, audience, now=now, limit=PAGE, after=after):
        vectors = reads.vectors([memory.id for memory in page])
        for memory in page:
            if memory.id in vectors:
                near = reads.nearest(vectors[memory.id], which, audience, now=now, limit=SIDE_BY_SIDE)
                yield memory, {one.memory: one.score for one in near if one.score >= NEAR and one.memory != memory.id}
        after = Position.of(page[-1], Order.CREATED)
