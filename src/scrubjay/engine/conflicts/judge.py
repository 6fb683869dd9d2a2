"""Which stored memory may a new one outdate?

Candidates come from the nearest memories and from those that share its names; a small judge over named features
decides: *the same subject, another value*. It advises; it never supersedes anything by itself. What is likely enough is
the one sure hint, what is less likely is left to the reader. Where it has no grammar for a text, it is silent.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine import access
from scrubjay.engine.conflicts.differences import (
    Kinds,
    features,
    is_unsupported,
    other_letter,
    other_number,
    other_one,
    probabilities,
    probability,
    restates,
    told_otherwise,
)
from scrubjay.engine.conflicts.duplicates import NEAR, same_said
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.conflicts.weights import CANDIDATE, SURE
from scrubjay.engine.lifecycle.lifecycle import MAY_OUTDATE
from scrubjay.engine.store import intake
from scrubjay.engine.store import neighbours as around
from scrubjay.engine.store.neighbours import Neighbours, find_neighbours
from scrubjay.stores.promises.memories import Reads
from scrubjay.text.languages import is_english
from scrubjay.text.reading import READ, read
from scrubjay.text.statements import affirms_denied_thing, denies_just_that
from scrubjay.text.tokens import TALKING, words_of
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Kind, LinkKind, Memory, Sketch, State, Stored

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.embedding import Embedding
    from scrubjay.stores.promises.memories import Transaction

MOST = 3  # earlier memories to check, besides the sure hint

FAR_BEHIND = 0.15  # in cosines: if the nearest is this much nearer, nothing else can make up for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    memory: Memory
    score: float
    sure: bool = False
    same: bool = False  # it says the same: nothing is outdated


class Judged(NamedTuple):
    """An earlier memory that a new one may outdate or repeat, as far as its sketch tells."""

    id: str
    score: float = 1.0
    sure: bool = False
    same: bool = False


class Judge:
    """Says what a new memory may outdate. Owns the model's view of kinds of facts."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._attributes: Attributes | None = None

    def judged(
        self, new: Memory, neighbours: Neighbours, reads: Reads, audience: Audience, *, same_words: Collection[str]
    ) -> list[Judged]:
        """Earlier memories that the new one may outdate or repeat: those that say the same, then the likeliest."""
        sketches = neighbours.sketches
        near = [sketches[name] for name in neighbours.promising if name in sketches and name not in same_words]
        known = [sketch for sketch in near if is_earlier(sketch, new)]
        same = [one.id for one in known if neighbours.near(one.id) >= NEAR and same_said(one.text, new.text)]
        others = [sketch for sketch in known if sketch.id not in same] if same else known
        return [
            *(Judged(name, same=True) for name in (*same_words, *same)),
            *self._outdated(new, others, neighbours, reads, audience),
        ]

    def _outdated(
        self, new: Memory, olds: Sequence[Sketch], neighbours: Neighbours, reads: Reads, audience: Audience
    ) -> list[Judged]:
        olds = [old for old in olds if is_english(old.text)] if olds and is_english(new.text) else []
        if not olds:
            return []
        said = read(new.text)
        rarity = reads.rarity(sorted(said.words), audience)
        if new.context.conversation_id is not None and not TALKING.isdisjoint(words_of(new.text[:READ])):
            return judge_turn(new.text, olds, neighbours, rarity)
        olds = nlargest(around.MOST // 2, olds, key=lambda old: neighbours.near(old.id))  # others add no sure hint
        nearest = neighbours.near(olds[0].id)
        seen = [
            features(
                read(old.text),
                said,
                cosine=neighbours.near(old.id),
                behind=nearest - neighbours.near(old.id),
                kinds=neighbours.promising[old.id],
                rarity=rarity,
            )
            for old in olds
        ]
        found = [
            judge_pair(old, new.text, pair, score, neighbours.near(old.id))
            for old, pair, score in zip(olds, seen, probabilities(seen), strict=True)
        ]
        return sorted((one for one in found if one is not None), key=lambda one: -one.score)

    def promising(self, vector: Vector, cosines: Mapping[str, float], reads: Reads) -> dict[str, Kinds]:
        """Those near enough to be judged, with what the vectors say of their kinds; the others need not be read."""
        least = max(cosines.values()) - FAR_BEHIND
        vectors = reads.vectors([one for one, cosine in cosines.items() if cosine >= least])
        return dict(zip(vectors, self._kinds(vector, list(vectors.values())), strict=True))

    def outdates(self, old: str, new: str, old_vector: Vector, new_vector: Vector) -> bool:
        """Whether one sentence, newer than another, very likely makes that one outdated."""
        if not (is_english(old) and is_english(new)):
            return False
        [kinds] = self._kinds(new_vector, [old_vector])
        cosine = float((old_vector * new_vector).sum())
        one, other = read(old), read(new)
        if restates(one, other, cosine):
            return False
        seen = features(one, other, cosine=cosine, behind=0.0, kinds=kinds, rarity={})
        return probability(seen) >= SURE and not is_unsupported(old, new, seen)

    def _kinds(self, vector: Vector, others: Sequence[Vector]) -> list[Kinds]:
        if not others:
            return []
        if self._attributes is None:
            assert self._embedding.embedder is not None
            self._attributes = Attributes(self._embedding.embedder)
        profiles = self._attributes.profiles([vector, *others])
        return same_kinds(profiles[1:], profiles[0])


def judge_pair(old: Sketch, new: str, seen: Mapping[str, float], score: float, cosine: float) -> Judged | None:
    """What the network's score of a pair comes to after the rules that read both texts; nothing if both stay true."""
    told, said = read(old.text), read(new)
    if other_number(told, said) or other_letter(told, said):
        return None
    denied = said.denied and not told.denied and denies_just_that(new, old.text)
    affirmed = told.denied and not said.denied and affirms_denied_thing(new, old.text)
    if not (denied or affirmed) and (score < CANDIDATE or restates(told, said, cosine)):
        return None
    sure = denied or (score >= SURE and not is_unsupported(old.text, new, seen))
    if max(len(old.text), len(new)) > READ or other_one(told, said):  # of an essay only the beginning was read
        sure = False
    return Judged(old.id, max(score, SURE) if sure else score, sure)


def judge_turn(new: str, olds: Sequence[Sketch], neighbours: Neighbours, rarity: Mapping[str, float]) -> list[Judged]:
    """What a turn of a conversation tells otherwise, the likeliest first: of the same words, the nearer."""
    scores = {old.id: told_otherwise(old.text, new, rarity) for old in olds}
    short = {old.id for old in olds if max(len(old.text), len(new)) <= READ}
    likeliest = sorted(scores, key=lambda old: -scores[old] - neighbours.near(old) / 2)
    return [
        Judged(old, min(scores[old], 1.0), scores[old] >= SURE and old in short)
        for old in likeliest
        if scores[old] >= CANDIDATE
    ]


def is_earlier(old: Sketch | Memory, new: Memory) -> bool:
    """Only what still counts as true can be outdated, and only by something newer."""
    # A memory that is just being stored has no arrival number yet.
    earlier = (old.created_at, old.seq) < (new.created_at, new.seq or math.inf)
    return old.id != new.id and old.superseded_by is None and earlier


# --- as a store uses it ----------------------------------------------------------------------------------------------


def find_proposals(
    engine: Engine, memory: Memory, neighbours: Neighbours, audience: Audience, fingerprint: bytes
) -> list[Proposal]:
    """What a memory may outdate, among what its user may see: the sure hint, and what else is worth a reader's look:
    what says the same, the likeliest that the judge proposes, then the nearest."""
    if memory.kind is not Kind.MEMORY:
        return []
    now = engine.now()
    same_words = [
        one.id
        for one in reversed(engine.records.history.same_text(fingerprint, audience))
        if one.kind is Kind.MEMORY and is_worth_asking(one, memory, now)
    ]
    judged = engine.parts.judge.judged(memory, neighbours, engine.records, audience, same_words=same_words)
    hint = newer_of_pair([one for one in judged if one.sure], engine.records)
    wanted = in_order(judged, hint, neighbours.worth_checking)
    found = {one.id: one for one in engine.records.get([*wanted], audience)} if wanted else {}
    there = [one for name, one in wanted.items() if name in found and is_worth_asking(found[name], memory, now)]
    there = [one for one in there if one is hint or one.same or not found[one.id].flags]  # none was asked for
    return [
        Proposal(memory=found[one.id], score=one.score, sure=one is hint, same=one.same)
        for one in there[: MOST + (hint in there)]
    ]


def newer_of_pair(sure: Sequence[Judged], reads: Reads) -> Judged | None:
    """The likeliest, or where that is the older of an open pair, the newer one, which is current."""
    links = reads.history.links([one.id for one in sure], kinds=MAY_OUTDATE) if len(sure) > 1 else ()
    by_id = {one.id: one for one in sure}
    newer = {link.target: by_id[link.source] for link in links if link.state == "open" and link.source in by_id}
    hint = next(iter(sure), None)
    for _ in sure:
        hint = newer.get(hint.id, hint) if hint else None
    return hint


def in_order(judged: Sequence[Judged], hint: Judged | None, near: Mapping[str, float]) -> dict[str, Judged]:
    """What may be proposed, by id, in the order in which it is worth a look."""
    others = [one for one in judged if one is not hint]
    twins, doubted = [one for one in others if one.same], [one for one in others if not one.same]
    nearest = [Judged(name, cosine) for name, cosine in near.items()]
    wanted: dict[str, Judged] = {}
    for one in (*([hint] if hint else []), *twins, *doubted[:1], *nearest, *doubted[1:]):
        wanted.setdefault(one.id, one)
    return wanted


def is_worth_asking(old: Memory, new: Memory, now: datetime) -> bool:
    """Whether an earlier memory still counts as true; it may have changed since it was found."""
    return old.state is State.ACTIVE and not old.expired(now) and is_earlier(old, new)


def sure_hint(proposals: Sequence[Proposal]) -> Proposal | None:
    return next((one for one in proposals if one.sure), None)


def propose(engine: Engine, tx: Transaction, memory: Memory, proposals: Sequence[Proposal]) -> bool:
    """Open a conflict for the sure hint, if there is one."""
    if (hint := sure_hint(proposals)) is not None:
        engine.ledger.link(tx, LinkKind.MAY_OUTDATE, memory, hint.memory, score=hint.score, given=False)
    return hint is not None


def stored_result(
    engine: Engine,
    tx: Transaction,
    memory: Memory,
    proposals: Sequence[Proposal],
    audience: Audience,
    *,
    degraded: str | None,
    links: int,
    compared: bool,
) -> Stored:
    """The answer to a store. It also names what says the same since the proposals were made: another caller may have
    stored or restored it meanwhile."""
    if not any(one.same for one in proposals):
        late = intake.same_words(tx, memory, audience, engine.now())[-1:]
        proposals = [*proposals, *(Proposal(memory=one, score=1.0, same=True) for one in late)]
    return Stored(
        memory=memory,
        similar=tuple(one.memory for one in proposals if one.sure),
        candidates=tuple(one.memory for one in proposals if not one.sure),
        same=tuple(one.memory.id for one in proposals if one.same),
        degraded=degraded,
        links=links,
        compared=compared,
    )


def judge_late(engine: Engine, memory: Memory, vector: Vector) -> None:
    """Judge a memory that had no vector when it was stored: what the machine's owner stored in every space, and of
    others, whose grants are not known here, in its own."""
    audience = access.own_audience(engine.caller, memory, only=memory.provenance.caller != engine.caller.user)
    neighbours = find_neighbours(engine, memory, vector, audience)
    proposals = find_proposals(engine, memory, neighbours, audience, intake.fingerprint(memory))
    hint = sure_hint(proposals)
    if hint is None:
        return
    with engine.records.writing() as tx:
        pair = {memory.id, hint.memory.id}
        links = tx.history.links([memory.id], kinds=MAY_OUTDATE)
        if any({link.source, link.target} == pair for link in links):
            return  # it was proposed before, here or elsewhere, and perhaps settled
        if propose(engine, tx, memory, proposals):  # no other event tells the feed of this link
            engine.ledger.record(tx, memory, "linked")
