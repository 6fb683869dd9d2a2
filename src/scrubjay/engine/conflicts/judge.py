"""Which stored memories may a new one outdate?

Candidates come from the nearest memories; a small linear judge over named features decides: *same subject, same kind of
fact, other value*, or a restatement. It advises; it never supersedes anything by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.conflicts import grammar
from scrubjay.engine.conflicts.duplicates import same_said
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.conflicts.weights import BIAS, SURE, WEIGHTS
from scrubjay.engine.store import intake
from scrubjay.engine.store.neighbours import Neighbours, find_neighbours
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Kind, LinkKind, Memory, Status, Stored

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.embedding import Embedding
    from scrubjay.stores.promises.memories import Transaction

MOST = 3  # candidates for one memory, besides the sure hint
PROPOSE = 0.5  # the judge's probability from which a memory is named …
PROPOSE_IN_TALK = 0.73  # … where texts have several sentences, some of which have words in common by chance
CLOSE = 1.0  # how far behind the likeliest (in logits) another single statement may lie and still be named

# Cosines: of any two facts on one subject; what two different facts reach, and beyond it nearly the same sentence.
ON_ONE_SUBJECT, SPREAD = 0.85, 0.10
DIFFERENT, TO_THE_SAME = 0.92, 0.06
SOME_WORDS = 2  # rare words in common from which on two statements speak of the same things …
MANY_WORDS = 4  # … and from which on more says no more
A_QUESTION = 0.6  # how much a statement's words count if it, or the other, is a question …
ANOTHER_NUMBER = 1.25  # … or if the two name different numbers

Rarity = Mapping[str, float]  # how much a word tells, 0..1; what is not in it is as rare as can be


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """What the judge sees of an (old, new) pair; each roughly from -1 to 1 or 0 to 1.

    Words are compared between the two statements, one of each text, that share most.
    """

    closeness: float  # how near the two texts are in meaning, 0 at the level of any two facts on one subject
    restated: float  # nearly the same sentence: beyond what two different facts reach
    exclusive: float  # both are of a kind that has one value at a time
    same_kind: float  # both are of the same kind at all
    same_subject: float
    shared: float  # which share of the two statements' words is in both …
    shared_many: float  # … and how many words that are
    number_differs: float  # the same words around another number, version, day or date
    denial_differs: float  # one says no, the other does not
    says_now: float  # the new one says "now", "no longer", "just" about the same things
    asks: float  # one of the statements is a question
    nothing_new: float  # every name and number of the new one is in the old one: rather more detail than a change


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    memory: Memory
    score: float
    features: Features | None  # None if the words are the same: that needs no judge
    in_talk: bool = False  # one of the two texts has several sentences
    same: bool = False  # it says the same: nothing is outdated

    @property
    def sure(self) -> bool:
        return not self.same and self.score >= SURE


class Judge:
    """Proposes what a new memory may outdate. Owns the model's view of kinds of facts."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._attributes: Attributes | None = None

    def proposals(
        self,
        new: Memory,
        neighbours: Neighbours,
        reads: Reads,
        audience: Audience,
        *,
        same_words: Sequence[Memory],
        now: datetime,
    ) -> list[Proposal]:
        """Earlier memories that the new one may outdate or restate, most likely first; those with the same words
        before all others."""
        if new.kind is not Kind.MEMORY:
            return []
        same = [memory for memory in same_words if current(memory, new, now)]
        proposals = [Proposal(memory=memory, score=1.0, features=None, same=True) for memory in reversed(same)]
        known = {memory.id for memory in same}
        olds = [
            memory
            for name in neighbours.promising
            if (memory := neighbours.memories.get(name)) and name not in known and current(memory, new, now)
        ]
        said = grammar.statements(new.text)
        words = sorted({word for sentence in said for word in sentence.words})
        rarity = reads.rarity(words, audience) if olds else {}
        judged = []
        for old in olds:
            told = grammar.statements(old.text)
            features = compared(told, said, neighbours.promising[old.id], rarity)
            score, in_talk = probability(features), max(len(told), len(said)) > 1
            if score >= (PROPOSE_IN_TALK if in_talk else PROPOSE):
                same_text = same_said(old.text, new.text)
                judged.append(Proposal(memory=old, score=score, features=features, in_talk=in_talk, same=same_text))
        return [*proposals, *likeliest(judged)]

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
        best = at_best(cosine, *kind)
        return probability(compared([grammar.read(old)], [grammar.read(new)], best, {})) >= PROPOSE

    def _kinds(self, vector: Vector, others: Sequence[Vector]) -> list[tuple[float, float]]:
        """How far each of the others is of the same kind as the vector, and of an exclusive one."""
        if not others:
            return []
        if self._attributes is None:
            assert self._embedding.embedder is not None
            self._attributes = Attributes(self._embedding.embedder)
        profiles = self._attributes.profiles([vector, *others])
        return same_kinds(profiles[1:], profiles[0])


def likeliest(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Most likely first, without those that are far behind the best: a fact replaces one other, seldom five.

    In talk, where much has words in common by chance, only the best is named.
    """
    ordered = sorted(proposals, key=lambda one: -one.score)
    return ordered[:1] + [
        one for one in ordered[1:] if not one.in_talk and logit(one.score) >= logit(ordered[0].score) - CLOSE
    ]


def logit(probability: float) -> float:
    return math.log(probability / (1 - probability)) if probability < 1 else math.inf


def current(old: Memory, new: Memory, now: datetime) -> bool:
    """Only what still counts as true can be outdated, and only by something newer."""
    alive = old.status is Status.ACTIVE and not old.expired(now)
    # A memory that is just being stored has no arrival number yet.
    earlier = (old.created_at, old.seq) < (new.created_at, new.seq or math.inf)
    return old.id != new.id and old.superseded_by is None and alive and earlier


def compared(
    old: Sequence[grammar.Sentence], new: Sequence[grammar.Sentence], best: Features, rarity: Rarity
) -> Features:
    """What the words of the statements that share most say, on top of what the vectors say at best."""
    one, other = max(product(old, new), key=lambda pair: likeness(pair[0], pair[1], rarity))
    same_subject = grammar.same_subject(one, other)
    common = weight(one.words & other.words, rarity)
    context = min(1.0, common / SOME_WORDS)
    values = (other.names | other.numbers) - set(other.subject)
    return replace(
        best,
        restated=best.restated if same_subject else 0.0,
        same_subject=float(same_subject),
        shared=common / max(0.1, weight(one.words | other.words, rarity)),
        shared_many=min(1.0, common / MANY_WORDS),
        number_differs=context if numbers_differ(one, other) else 0.0,
        denial_differs=context if one.denied != other.denied else 0.0,
        says_now=context if other.now else 0.0,
        asks=float(one.asks or other.asks),
        nothing_new=float(bool(values) and values <= one.names | one.numbers),
    )


def likeness(old: grammar.Sentence, new: grammar.Sentence, rarity: Rarity) -> float:
    """How much two statements have to do with each other: rare words in common, more so around different numbers."""
    doubt = A_QUESTION if old.asks or new.asks else 1.0
    return weight(old.words & new.words, rarity) * doubt * (ANOTHER_NUMBER if numbers_differ(old, new) else 1.0)


def numbers_differ(old: grammar.Sentence, new: grammar.Sentence) -> bool:
    return bool(old.numbers) and bool(new.numbers) and not new.numbers <= old.numbers


def weight(words: Iterable[str], rarity: Rarity) -> float:
    return sum(rarity.get(word, 1.0) for word in words)


def at_best(cosine: float, same_kind: float, exclusive: float) -> Features:
    """What vectors alone say, with the words taken to speak for a change as much as words can."""
    return Features(
        closeness=max(-1.0, min(1.0, (cosine - ON_ONE_SUBJECT) / SPREAD)),
        restated=max(0.0, min(1.0, (cosine - DIFFERENT) / TO_THE_SAME)),
        exclusive=exclusive,
        same_kind=same_kind,
        same_subject=1.0,
        shared=1.0,
        shared_many=1.0,
        number_differs=1.0,
        denial_differs=1.0,
        says_now=1.0,
        asks=0.0,
        nothing_new=0.0,
    )


def probability(features: Features) -> float:
    total = BIAS + sum(weight * getattr(features, name) for name, weight in WEIGHTS.items())
    return 1 / (1 + math.exp(-total))


# --- as a store uses it ----------------------------------------------------------------------------------------------


def find_proposals(
    engine: Engine, memory: Memory, neighbours: Neighbours, audience: Audience, fingerprint: bytes
) -> list[Proposal]:
    """What a memory may outdate, among what its user may see."""
    same_words = [one for one in engine.records.history.same_text(fingerprint, audience) if one.kind is Kind.MEMORY]
    return engine.parts.judge.proposals(
        memory, neighbours, engine.records, audience, same_words=same_words, now=engine.now()
    )


def sure_hint(proposals: Iterable[Proposal]) -> Proposal | None:
    return next((one for one in proposals if one.sure), None)


def propose(engine: Engine, tx: Transaction, memory: Memory, proposals: Sequence[Proposal]) -> bool:
    """Open a conflict for the sure hint, if there is one."""
    if (hint := sure_hint(proposals)) is not None:
        engine.ledger.link(tx, LinkKind.MAY_OUTDATE, memory, hint.memory, score=hint.score, given=False)
    return hint is not None


def told(memory: Memory, proposals: Sequence[Proposal], *, degraded: str | None, links: int) -> Stored:
    """The answer to a store: the sure hint, and what else is worth a reader's look, twins first."""
    hint = sure_hint(proposals)
    rest = sorted((one for one in proposals if one is not hint), key=lambda one: not one.same)[:MOST]
    return Stored(
        memory=memory,
        similar=() if hint is None else (hint.memory,),
        candidates=tuple(one.memory for one in rest),
        same=tuple(one.memory.id for one in rest if one.same),
        degraded=degraded,
        links=links,
    )


def judge_late(engine: Engine, memory: Memory, vector: Vector) -> None:
    """Judge a memory that had no vector when it was stored."""
    audience = access.own_audience(engine.caller, memory)
    neighbours = find_neighbours(engine, memory, vector, audience)
    proposals = find_proposals(engine, memory, neighbours, audience, intake.fingerprint(memory))
    with engine.records.writing() as tx:
        if propose(engine, tx, memory, proposals):  # no other event tells the feed of this link
            engine.ledger.record(tx, memory, "linked")
