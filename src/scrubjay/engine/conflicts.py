"""Which stored memories may a new one outdate?

Candidates come from the nearest memories; a small linear judge over named features decides: *same subject, same kind of
fact, other value*, or a restatement. It advises; it never supersedes anything by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.engine import subjects
from scrubjay.engine.attributes import Attributes, same_kinds
from scrubjay.engine.neighbours import Neighbours
from scrubjay.frozen import dataclass
from scrubjay.memory import Kind, Memory, Status
from scrubjay.stores.base import Reads

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.embedding import Embedding

MOST = 5  # proposals for one memory
PROPOSE = 0.5  # the judge's probability from which a memory is named


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the judge sees of an (old, new) pair; each roughly from -1 to 1 or 0 to 1."""

    closeness: float  # how near the two texts are in meaning, 0 at the level of any two facts on one subject
    restated: float  # nearly the same sentence: beyond what two different facts reach
    exclusive: float  # both are of a kind that has one value at a time
    same_kind: float  # both are of the same kind at all
    same_subject: float
    number_differs: float  # the same words around another number, version or date
    denial_differs: float  # one says no, the other does not
    nothing_new: float  # every name and number of the new one stands in the old one: rather more detail than a change


# Set by hand on sentences of our own (see tests/engine/test_conflicts.py); a later script fits them.
WEIGHTS = Features(
    closeness=2.0,
    restated=6.0,
    exclusive=6.5,
    same_kind=3.0,
    same_subject=5.0,
    number_differs=1.5,
    denial_differs=1.5,
    nothing_new=-2.5,
)
BIAS = -11.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    memory: Memory
    score: float
    features: Features | None  # None for a twin: the same words need no judge


class Judge:
    """Proposes what a new memory may outdate. Owns the model's view of kinds of facts."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._attributes: Attributes | None = None

    def proposals(
        self, new: Memory, neighbours: Neighbours, *, twins: Sequence[Memory], now: datetime
    ) -> list[Proposal]:
        """Earlier memories that the new one may outdate or restate, most likely first; those with the same words
        before all others."""
        if new.kind is not Kind.MEMORY:
            return []
        same = [memory for memory in twins if current(memory, new, now)]
        proposals = [Proposal(memory=memory, score=1.0, features=None) for memory in reversed(same)]
        judged: list[Proposal] = []
        known = {memory.id for memory in same}
        said = subjects.read(new.text)
        for name, best in neighbours.promising.items():
            old = neighbours.memories.get(name)
            if old is None or name in known or not current(old, new, now):
                continue
            features = compared(subjects.read(old.text), said, best)
            score = probability(features)
            if score >= PROPOSE:
                judged.append(Proposal(memory=old, score=score, features=features))
        return [*proposals, *sorted(judged, key=lambda one: -one.score)][:MOST]

    def promising(self, vector: Vector, cosines: Mapping[str, float], reads: Reads) -> dict[str, Features]:
        """Those that would be proposed if their words said what speaks for it most; the others need not be read."""
        vectors = reads.vectors(list(cosines))
        known = [one for one in cosines if one in vectors]
        kinds = self._kinds(vector, [vectors[one] for one in known])
        best = {one: at_best(cosines[one], *kind) for one, kind in zip(known, kinds, strict=True)}
        return {one: features for one, features in best.items() if probability(features) >= PROPOSE}

    def outdates(self, old: str, new: str, old_vector: Vector, new_vector: Vector) -> bool:
        """Whether one sentence, newer than another, makes that one outdated or says it again."""
        cosine = float((old_vector * new_vector).sum())
        [kind] = self._kinds(new_vector, [old_vector])
        return probability(compared(subjects.read(old), subjects.read(new), at_best(cosine, *kind))) >= PROPOSE

    def _kinds(self, vector: Vector, others: Sequence[Vector]) -> list[tuple[float, float]]:
        """How far each of the others is of the same kind as the vector, and of an exclusive one."""
        if not others:
            return []
        if self._attributes is None:
            assert self._embedding.embedder is not None
            self._attributes = Attributes(self._embedding.embedder)
        profiles = self._attributes.profiles([vector, *others])
        return same_kinds(profiles[1:], profiles[0])


def current(old: Memory, new: Memory, now: datetime) -> bool:
    """Only what still counts as true can be outdated, and only by something newer."""
    alive = old.status is Status.ACTIVE and (old.expires_at is None or old.expires_at > now)
    # A memory that is just being stored has no arrival number yet.
    earlier = (old.created_at, old.seq) < (new.created_at, new.seq or math.inf)
    return old.id != new.id and old.superseded_by is None and alive and earlier


def compared(old: subjects.Sentence, new: subjects.Sentence, best: Features) -> Features:
    """What the words say, on top of what the vectors say at best."""
    same_subject = subjects.same_subject(old, new)
    numbers_differ = bool(old.numbers and new.numbers and old.numbers != new.numbers)
    around_old, around_new = old.words - old.numbers, new.words - new.numbers
    words_around = len(around_old & around_new) / max(1, len(around_old | around_new))
    values = (new.names | new.numbers) - set(new.subject)
    return replace(
        best,
        restated=best.restated if same_subject else 0.0,
        same_subject=float(same_subject),
        number_differs=words_around if numbers_differ else 0.0,
        denial_differs=float(old.denied != new.denied),
        nothing_new=float(bool(values) and values <= old.names | old.numbers),
    )


def at_best(cosine: float, same_kind: float, exclusive: float) -> Features:
    """What vectors alone say, with the words taken to speak for a change as much as words can."""
    return Features(
        closeness=max(-1.0, min(1.0, (cosine - 0.85) / 0.10)),
        restated=max(0.0, min(1.0, (cosine - 0.92) / 0.06)),
        exclusive=exclusive,
        same_kind=same_kind,
        same_subject=1.0,
        number_differs=1.0,
        denial_differs=1.0,
        nothing_new=0.0,
    )


def probability(features: Features) -> float:
    total = BIAS + sum(weight * getattr(features, name) for name, weight in TABLE)
    return 1 / (1 + math.exp(-total))


TABLE = [(entry.name, getattr(WEIGHTS, entry.name)) for entry in fields(Features)]
