"""What a new memory lies next to: read once, used by everything that compares it with what is already there."""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.frozen import dataclass
from scrubjay.memory import Audience, Category, Filter, Kind, Memory
from scrubjay.stores.base import Reads

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

MOST = 30
NEAR = 0.78  # cosine of two stored texts; any two sentences on one person reach it
RELATED = 0.87  # two texts that are worth a link
RELATED_MOST = 3
VOTERS = 5


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The memories nearest to a vector, nearest first, with their cosines."""

    memories: tuple[Memory, ...] = ()
    cosines: dict[str, float] = field(default_factory=dict)

    def related(self) -> tuple[Memory, ...]:
        """The few that are near enough to be linked."""
        return tuple(one for one in self.memories if self.cosines[one.id] >= RELATED)[:RELATED_MOST]

    def agree_with(self, category: Category) -> bool | None:
        """Whether most of the five nearest are of this category; None if there are too few to ask."""
        voters = self.memories[:VOTERS]
        if len(voters) < VOTERS:
            return None
        [(winner, _)] = Counter(memory.category for memory in voters).most_common(1)
        return winner is category


def neighbours_of(
    vector: Vector | None, reads: Reads, audience: Audience, *, now: datetime, without: str
) -> Neighbours:
    if vector is None:
        return Neighbours()
    matches = reads.nearest(vector, Filter(kinds=frozenset({Kind.MEMORY})), audience, now=now, limit=MOST)
    cosines = {match.memory: match.score for match in matches if match.score >= NEAR and match.memory != without}
    return Neighbours(tuple(reads.get(list(cosines), audience)), cosines)
