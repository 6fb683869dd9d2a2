"""The nearest neighbours of a new memory, queried once and used by everything that compares it with earlier ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from time import monotonic
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput, NotFound
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Category, Kind, LinkKind, Memory, NewMemory, Sketch
from scrubjay.values.search import Filter

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.conflicts.differences import Kinds
    from scrubjay.engine.engine import Engine
    from scrubjay.stores.promises.memories import Transaction

MEMORIES_ONLY = Filter(kinds=frozenset({Kind.MEMORY}))
MOST = 16
NEAR = 0.72  # cosine of two stored texts; two turns of a chat on one thing reach it
# From which cosine of two texts on a new memory is worth checking against the older one, by model: nine in ten of what
# is outdated lie above it, and few stores name more than the three that are shown.
WORTH_CHECKING = {"arctic-embed-s": 0.765, "multilingual-e5-small": 0.852}
RELATED = 0.87  # two texts that are worth a link
RELATED_MOST = 3
VOTERS = 5
NAMES = "related_memory_ids"  # the field that callers name the memories in that one is linked with


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The nearest memories, nearest first: all by their cosines, those that matter with their texts."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    sketches: Mapping[str, Sketch] = field(default_factory=dict)
    promising: Mapping[str, Kinds] = field(default_factory=dict)  # what the new memory may outdate, by vectors alone
    found_by_name: Mapping[str, float] = field(default_factory=dict)  # cosines of memories that only its names led to
    worth_checking: Mapping[str, float] = field(default_factory=dict)  # cosines of the nearest, whatever the judge says
    judged: bool = True  # False if there was no time to look at what it may outdate

    def near(self, id: str) -> float:
        return self.cosines.get(id) or self.found_by_name.get(id, 0.0)

    def related(self) -> tuple[Sketch, ...]:
        """Choose the neighbours that are near enough to be linked."""
        return tuple(self.sketches[one] for one in related_ids(self.cosines) if one in self.sketches)

    def agree_with(self, category: Category) -> bool | None:
        """Whether most of the five nearest are of this category; None if there are too few to ask."""
        voters = [self.sketches[one] for one in voter_ids(self.cosines) if one in self.sketches]
        if len(voters) < VOTERS:
            return None
        [(winner, _)] = Counter(voter.category for voter in voters).most_common(1)
        return winner is category


def find_neighbours(
    engine: Engine,
    memory: Memory,
    vector: Vector | None,
    audience: Audience,
    *,
    further: Mapping[str, Sequence[Vector]] | None = None,
    wait_seconds: float = math.inf,
) -> Neighbours:
    """Look around a vector. Texts are read only where they may matter: vectors alone rule out most neighbours.

    `further` are the text's vectors by further models: a model for its language knows better what is near. What a
    memory may outdate is not looked for once `wait_seconds` have passed.
    """
    if vector is None:
        return Neighbours()
    reads, deadline = engine.records, monotonic() + wait_seconds
    matches = reads.nearest(vector, MEMORIES_ONLY, audience, now=engine.now(), limit=MOST)
    cosines = {match.memory: match.score for match in matches if match.score >= NEAR and match.memory != memory.id}
    worth_checking = find_worth_checking(engine, memory, cosines, audience, further or {})
    if not cosines:
        return Neighbours(worth_checking=worth_checking)
    named_alike: dict[str, float] = {}
    told = memory.kind is Kind.MEMORY and memory.context.conversation_id is not None
    if told and len(matches) == MOST and monotonic() < deadline:
        named_alike = find_named_alike(engine, memory, vector, audience, known=cosines)
    in_time = monotonic() < deadline
    judged = engine.parts.judge.promising(vector, {**cosines, **named_alike}, reads) if in_time else {}
    wanted = dict.fromkeys((*voter_ids(cosines), *related_ids(cosines), *judged))
    sketches = {sketch.id: sketch for sketch in reads.sketches(list(wanted), audience)}
    return Neighbours(cosines, sketches, judged, named_alike, worth_checking, judged=in_time)


def find_worth_checking(
    engine: Engine,
    memory: Memory,
    cosines: Mapping[str, float],
    audience: Audience,
    further: Mapping[str, Sequence[Vector]],
) -> dict[str, float]:
    """Find the nearest by the model that is best for the text, as far as they are worth a reader's look."""
    near, model = cosines, engine.parts.embedding.embedder
    if further and (best := engine.parts.models.best_for(memory.content)) and (own := further.get(best.model)):
        found = engine.records.nearest(own[0], MEMORIES_ONLY, audience, now=engine.now(), limit=MOST, model=best.model)
        near, model = {one.memory: one.score for one in found if one.memory != memory.id}, best.embedding.embedder
    line = WORTH_CHECKING.get(model.name, NEAR) if model is not None else NEAR
    return {one: cosine for one, cosine in near.items() if cosine >= line}


def find_named_alike(
    engine: Engine, memory: Memory, vector: Vector, audience: Audience, *, known: Mapping[str, float]
) -> dict[str, float]:
    """Find other near memories that have the text's names, with their cosines."""
    if not (names := names_to_look_for(memory.text)):
        return {}
    reads = engine.records
    sharing = reads.match(names, MEMORIES_ONLY, audience, now=engine.now(), limit=MOST)
    others = [one.memory for one in sharing if one.memory not in known and one.memory != memory.id]
    return {one: cosine for one, cosine in reads.cosines(vector, others).items() if cosine >= NEAR}


def names_to_look_for(text: str) -> str:
    """Find the names and identifiers of a text, to search for memories that hold them too."""
    from scrubjay.text.reading import read

    return " ".join(sorted(read(text).names | read(text).subject_names))


def related_ids(cosines: Mapping[str, float]) -> list[str]:
    return [one for one, cosine in cosines.items() if cosine >= RELATED][:RELATED_MOST]


def voter_ids(cosines: Mapping[str, float]) -> list[str]:
    return list(cosines)[:VOTERS]


def link_related(engine: Engine, tx: Transaction, memory: Memory, new: NewMemory, neighbours: Neighbours) -> int:
    """Link a new memory with those that its caller named, and if asked with the nearest; return how many."""
    named = [_find_named(engine, tx, name) for name in dict.fromkeys(new.related)]
    given = {one.id for one in named}
    found = [one for one in neighbours.related() if one.id not in given] if new.find_related else []
    for other in named:
        engine.ledger.link(tx, LinkKind.RELATED, memory, other)
    for one in found:
        engine.ledger.link(tx, LinkKind.RELATED, memory, one, score=neighbours.cosines[one.id], given=False)
    return len(named) + len(found)


def relink(engine: Engine, tx: Transaction, memory: Memory, related: Sequence[str]) -> bool:
    """Replace the links that callers gave a memory by links with these; return whether that changes anything."""
    named = {other.id: other for other in (_find_named(engine, tx, name) for name in dict.fromkeys(related))}
    links = tx.history.links([memory.id], kinds=frozenset({LinkKind.RELATED}))
    there = {link.target: link for link in links if link.source == memory.id and link.given and link.stands}
    for gone in there.keys() - named.keys():
        tx.history.relate(replace(there[gone], state="released", **tx.clock.stamp(engine.now())))
    for new in named.keys() - there.keys():
        engine.ledger.link(tx, LinkKind.RELATED, memory, named[new])
    return there.keys() != named.keys()


def _find_named(engine: Engine, tx: Transaction, id: str) -> Memory:
    try:
        return engine.ledger.get_visible(tx, id)
    except NotFound:
        raise InvalidInput(f"Related memory {id[:100]} not found.", field=NAMES, memory_id=id) from None
