"""What a new memory lies next to: looked for once, used by everything that compares it with what is already there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Category, Filter, Kind, Memory

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.conflicts.judge import Features

MOST = 16
NEAR = 0.72  # cosine of two stored texts; two turns of a chat on one thing reach it
RELATED = 0.87  # two texts that are worth a link
RELATED_MOST = 3
VOTERS = 5


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest memories, nearest first: all by their cosines, those that matter with their texts."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    memories: Mapping[str, Memory] = field(default_factory=dict)
    promising: Mapping[str, Features] = field(default_factory=dict)  # what the new memory may outdate, by vectors alone

    def related(self) -> tuple[Memory, ...]:
        """The few that are near enough to be linked."""
        return tuple(self.memories[one] for one in related_ids(self.cosines) if one in self.memories)

    def agree_with(self, category: Category) -> bool | None:
        """Whether most of the five nearest are of this category; None if there are too few to ask."""
        voters = [self.memories[one] for one in voter_ids(self.cosines) if one in self.memories]
        if len(voters) < VOTERS:
            return None
        [(winner, _)] = Counter(memory.category for memory in voters).most_common(1)
        return winner is category


def neighbours_of(
    vector: Vector,
    reads: Reads,
    audience: Audience,
    *,
    now: datetime,
    without: str,
    promising: Callable[[Vector, Mapping[str, float], Reads], Mapping[str, Features]],
) -> Neighbours:
    """Look around a vector. Texts are read only where they may matter: most neighbours are told apart by vectors."""
    matches = reads.nearest(vector, Filter(kinds=frozenset({Kind.MEMORY})), audience, now=now, limit=MOST)
    cosines = {match.memory: match.score for match in matches if match.score >= NEAR and match.memory != without}
    if not cosines:
        return Neighbours()
    judged = promising(vector, cosines, reads)
    wanted = dict.fromkeys((*voter_ids(cosines), *related_ids(cosines), *judged))
    memories = {memory.id: memory for memory in reads.get(list(wanted), audience)}
    return Neighbours(cosines, memories, judged)


def related_ids(cosines: Mapping[str, float]) -> list[str]:
    return [one for one, cosine in cosines.items() if cosine >= RELATED][:RELATED_MOST]


def voter_ids(cosines: Mapping[str, float]) -> list[str]:
    return list(cosines)[:VOTERS]
