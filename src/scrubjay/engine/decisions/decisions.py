"""Decisions and checkpoints: how a choice came about, what became of it, and where work was left.

A new decision on a topic outdates the one before it; so a topic's decisions form a chain, newest first. Patterns in the
reasoning (`mentions.py`) link decisions across topics. A search finds by relevance, then shows the chain of what it
found and one step along its links: a model sees not only what was decided but what that replaced, and what failed.

    saved 1 <── saved 2 <── saved 3            one topic: only the last is current
                   └── builds_on ──> decided on another topic
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.decisions import mentions
from scrubjay.engine.decisions.mentions import ID
from scrubjay.engine.lifecycle import lifecycle, supersession
from scrubjay.engine.lifecycle.curation import follow_links
from scrubjay.engine.search import ranking
from scrubjay.engine.search.candidates import find
from scrubjay.engine.store import embedding, intake
from scrubjay.engine.store.enrichment import enrich
from scrubjay.engine.store.history import TextVectors
from scrubjay.errors import Conflict, InvalidInput, NotFound
from scrubjay.stores.promises.memories import Transaction
from scrubjay.text.letters import topic_key
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, Kind, Link, LinkKind, Memory, NewMemory, Outcome, State, Status, Stored
from scrubjay.values.search import Filter, Hit, Query
from scrubjay.values.store import Topic

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine

NAMED = frozenset({LinkKind.BUILDS_ON, LinkKind.DEBATES, LinkKind.SYNTHESIZES})
EDGES = NAMED | {LinkKind.SUPERSEDES}
DECISIONS = frozenset({Kind.DECISION})

SIMILAR_MOST = 3
SIMILAR = 0.948  # calibrated, of two stored texts: worth a look
ALIKE = 0.968  # nearly the same text on another topic
SCRIPT_READ = 2_000  # characters that are looked at to tell a text's script
LAST_LATIN = "\u024f"
LINKED_MOST = 5  # decisions shown for one that links to them
MAX_REASON = 2_000
SAME_TOPIC = "a newer decision on the same topic"
SAID_TWICE = timedelta(minutes=1)  # within which the same save is one that was sent again
AROUND = timedelta(hours=1)  # decisions that belong to a checkpoint
AROUND_MOST = 10


SAID = ("content", "confidence", "access_level")  # of two saves that are the same
SPELT = {"failure": Outcome.FAILED, **{str(one): one for one in Outcome}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A decision that a reasoning names, and whether there is one."""

    kind: LinkKind
    id: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The answer to a save."""

    memory: Memory
    depth: int = 1  # how many decisions its topic has seen, this one included
    similar: tuple[Hit, ...] = ()  # decisions on other topics that read much like it
    named: tuple[Named, ...] = ()  # in its reasoning
    degraded: str | None = None

    @property
    def links(self) -> int:
        return sum(one.known for one in self.named)

    @property
    def stored(self) -> Stored:
        return Stored(memory=self.memory, degraded=self.degraded, links=self.links)

    @property
    def alike(self) -> Hit | None:
        """A decision on another topic that is nearly the same."""
        return next((hit for hit in self.similar if hit.score >= ALIKE), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEdge:
    """A link as one of its ends sees it."""

    kind: LinkKind
    other: str  # the other end's name
    outgoing: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of an answer: a decision, checkpoint or memory with its place among others."""

    memory: Memory
    score: float | None = None  # None: it was not searched for
    edges: tuple[NamedEdge, ...] = ()  # named in a reasoning first
    supersedes: str | None = None  # names
    superseded_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsFound:
    rows: tuple[Row, ...] = ()
    degraded: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """Where work was left: the newest checkpoint, what is still to do, and the decisions made around it or since."""

    checkpoint: Memory
    steps: tuple[str, ...] = ()
    decisions: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionGraph:
    """Decisions and how they hang together, oldest first."""

    memories: tuple[Memory, ...] = ()
    links: tuple[Link, ...] = field(default=())


class Decisions:
    """The part of an engine that keeps decisions and checkpoints."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- saving ------------------------------------------------------------------------------------------------------

    def save(
        self, topic: str, decision: str, *, reasoning: str | None = None, confidence: float = 0.5, **fields: Any
    ) -> Saved:
        """Keep a decision; it outdates the current one on its topic. `fields` are those of a new memory."""
        if reasoning is not None:
            intake.check_text(reasoning, "reasoning")
        return self.keep(
            intake.new_memory(
                decision,
                {
                    "kind": Kind.DECISION,
                    "topic": topic,
                    "confidence": confidence,
                    "detail": {} if reasoning is None else {"reasoning": reasoning},
                    **fields,
                },
            )
        )

    def checkpoint(
        self, summary: str, *, next_steps: str | None = None, open_files: Sequence[str] = (), **fields: Any
    ) -> Saved:
        """Keep where work stands."""
        detail = {"next_steps": next_steps, "open_files": list(open_files)}
        given = {name: value for name, value in detail.items() if value}
        return self.keep(intake.new_memory(summary, {"kind": Kind.CHECKPOINT, "detail": given, **fields}))

    def keep(self, given: NewMemory) -> Saved:
        """Keep a decision or a checkpoint."""
        engine = self._engine
        if given.kind is Kind.DECISION and given.topic is None:
            raise InvalidInput("A decision needs a topic.", field="topic")
        detail = {name: value for name, value in given.detail.items() if name != "name"}  # names are ours to give
        given = replace(given, detail=detail)
        admitted = intake.admit(engine, given)
        text, degraded = embedding.embed(engine, admitted)
        memory = enrich(engine, admitted, given, text.first)
        with engine.records.one_reader():
            degraded = degraded or embedding.check_model(engine)
            embedding.check_degraded(engine, degraded)
            similar = self._similar(memory, None if degraded else text.first)

        def write(tx: Transaction) -> Saved:
            intake.check_quota(engine, tx, memory)
            if given.unique:
                intake.check_unique(engine, tx, intake.fingerprint(memory))
            if memory.kind is Kind.CHECKPOINT:
                return Saved(memory=engine.ledger.add(tx, memory, text, judged=True), degraded=degraded)
            if (same := self._sent_again(tx, memory)) is not None:
                edges = self._find_named(tx, same)
                named = tuple(Named(kind=edge.kind, id=edge.target, known=target is not None) for edge, target in edges)
                return Saved(memory=same, depth=self._depth(tx, same), similar=similar, named=named, degraded=degraded)
            stored, named = self.add(tx, memory, text)
            depth = self._depth(tx, stored)
            return Saved(memory=stored, depth=depth, similar=similar, named=named, degraded=degraded)

        saved = engine.transact(Saved, write)
        if not text.complete:
            engine.parts.backlog.wake()
        return saved

    def _depth(self, tx: Transaction, memory: Memory) -> int:
        engine = self._engine
        return tx.count(self._on(memory), access.audience_in(engine.caller, (memory.space,)), now=engine.now())

    def _sent_again(self, tx: Transaction, memory: Memory) -> Memory | None:
        """The decision that the same caller saved a moment ago in the same words, and nothing has replaced since."""
        audience = access.own_audience(self._engine.caller, memory)
        for same in reversed(tx.history.same_text(intake.fingerprint(memory), audience)):
            if (
                same.kind is Kind.DECISION
                and same.superseded_by is None
                and abs(memory.created_at - same.created_at) <= SAID_TWICE
                and all(getattr(same, name) == getattr(memory, name) for name in SAID)
                and topic_key(same.topic or "") == topic_key(memory.topic or "")
                and {**same.detail, "name": None} == {**memory.detail, "name": None}
            ):
                return same
        return None

    def add(
        self, tx: Transaction, memory: Memory, text: TextVectors, *, imported: bool = False
    ) -> tuple[Memory, tuple[Named, ...]]:
        """Write a decision, let it outdate its topic's current one, and link what its reasoning names.

        An imported one that was made before the current one is outdated by it instead.
        """
        ledger = self._engine.ledger
        heads = self._heads(tx, memory)
        newer = [head for head in heads if imported and head.created_at > memory.created_at]
        older = [head for head in heads if head not in newer]
        decision = ledger.add(
            tx, replace(memory, supersedes=older[0].id if older else memory.supersedes), text, judged=True
        )
        for head in older:
            lifecycle.outdate(ledger, tx, head, decision, reason=SAME_TOPIC)
        for head in newer[-1:]:
            decision = lifecycle.outdate(ledger, tx, decision, head, reason=SAME_TOPIC)
            supersession.settle(tx, supersession.plain(tx, head))
        if not all(access.as_open(head, decision) for head in older):  # its row names what everyone may see
            supersession.settle(tx, supersession.plain(tx, decision))
        return decision, tuple(self._link_named(tx, decision))

    def _link_named(self, tx: Transaction, decision: Memory) -> Iterator[Named]:
        """Link a decision with what its reasoning names, as far as its author may see it."""
        for edge, target in self._find_named(tx, decision):
            if target is not None:
                self._engine.ledger.link(tx, edge.kind, decision, target, reason=f"{edge.kind}: named in the reasoning")
            yield Named(kind=edge.kind, id=edge.target, known=target is not None)

    def _find_named(self, tx: Transaction, decision: Memory) -> Iterator[tuple[mentions.Edge, Memory | None]]:
        """What a reasoning names, each with the memory that its author may see, if there is one."""
        seen = access.audience_anywhere(self._engine.caller)
        for edge in mentions.edges_in(decision.detail.get("reasoning")):
            there = (one for one in tx.get([edge.target], seen) if one.status is not Status.DELETED)
            yield edge, next((one for one in there if one.id != decision.id), None)

    def mark(self, id: str, outcome: str, *, reason: str | None = None) -> Memory:
        """Say what became of a decision: success, failed or partial, and why.

        :raises NotFound: if there is no such decision
        """
        engine = self._engine
        result = SPELT.get(outcome.strip().lower()) if isinstance(outcome, str) else None
        if result is None:
            raise InvalidInput(
                f"outcome must be one of {', '.join(SPELT)}, in any case.",
                field="outcome",
            )
        if reason is not None:
            intake.check_text(reason, "reason", maximum=MAX_REASON)

        def write(tx: Transaction) -> Memory:
            try:
                decision = engine.ledger.get_changeable(tx, id)
            except NotFound:
                raise NotFound(f"Decision not found: {id}", memory_id=id) from None
            if decision.kind is not Kind.DECISION:
                raise InvalidInput(f"{id} is a {decision.kind}, not a decision.", field="id")
            if decision.status is Status.ARCHIVED:
                raise Conflict(f"{id} is archived.", hint="Restore it first.", memory_id=decision.id)
            lifecycle.check_version(decision, engine.expected_version)
            detail = {**decision.detail, "outcome": str(result), "reason": reason}
            return engine.ledger.change(tx, replace(decision, detail=detail), "updated", "outcome")

        return engine.transact(Memory, write)

    # --- finding -----------------------------------------------------------------------------------------------------

    def search(
        self, question: str, *, also: tuple[str, ...] = (), kinds: Iterable[Kind] = tuple(Kind), limit: int = 10
    ) -> DecisionsFound:
        """Find by words and meaning, best first; beside each decision its topic's chain and what it is linked with."""
        engine = self._engine
        wanted = Filter(states=AT_HAND, kinds=frozenset(kinds))
        query = intake.query(Query(text=question, also=also, limit=limit, filter=wanted), {})
        now, audience = engine.now(), engine.audience(wanted)
        found = find(engine, query, audience, now)
        scores = {one: chance for one, chance in found.chances(0, None).items() if chance >= ranking.WEAK}
        named = self._by_id(question, wanted)
        hits = [*named, *engine.records.get([*scores][:limit], audience)]
        page = self._unfold(hits, wanted, limit)
        engine.count_reads(page)
        scores |= self._scores_of([memory.id for memory in page if memory.id not in scores], found.vector)
        return DecisionsFound(rows=tuple(self._rows(page, scores)), degraded=found.degraded)

    def _by_id(self, question: str, wanted: Filter) -> Sequence[Memory]:
        """The decision or memory whose id is the whole question."""
        if not ID.fullmatch(question.strip()):
            return ()
        found = self._engine.records.get([question.strip().lower()], access.audience_anywhere(self._engine.caller))
        return [memory for memory in found if fits(memory, wanted, self._engine)]

    def recent(self, *, kinds: Iterable[Kind] = (Kind.DECISION, Kind.CHECKPOINT), limit: int = 10) -> DecisionsFound:
        """The newest ones, outdated ones included."""
        page = self._engine.list(Filter(states=AT_HAND, kinds=frozenset(kinds)), limit=limit)
        return DecisionsFound(rows=tuple(self._rows(page.memories, {})))

    def resume(self) -> Resumed | None:
        """What a fresh session needs to go on; None if nothing was ever left."""
        engine = self._engine
        here = access.audience_in(engine.caller, engine.spaces[:1])
        newest = Filter(kinds=frozenset({Kind.CHECKPOINT}))
        for checkpoint in engine.records.list(newest, here, now=engine.now(), limit=1):
            around = Filter(states=AT_HAND, kinds=DECISIONS, created_since=checkpoint.created_at - AROUND)
            decisions = engine.records.list(around, here, now=engine.now(), limit=AROUND_MOST)
            engine.count_reads([checkpoint])
            return Resumed(
                checkpoint=checkpoint,
                steps=tuple(open_steps(checkpoint.detail.get("next_steps"))),
                decisions=tuple(self._rows(decisions, {})),
            )
        return None

    def chain(self, topic: str, *, limit: int = 1_000) -> Sequence[Memory]:
        """How a topic's decision evolved, newest first: in the current space, or else where it was decided on last.

        :raises NotFound: if nothing was decided on it
        """
        engine = self._engine
        wanted = Filter(states=AT_HAND, kinds=DECISIONS, topic=topic)
        chain: Sequence[Memory] = ()
        for space in (engine.spaces[0], *(one.space for one in self._newest(wanted))):
            here = access.audience_in(engine.caller, (space,))
            if chain := engine.records.list(wanted, here, now=engine.now(), limit=limit):
                break
        if not chain:
            raise NotFound(f"No decisions on {topic[:100]!r}.", hint="`scrubjay decisions` lists the topics.")
        return chain

    def _newest(self, wanted: Filter) -> Sequence[Memory]:
        engine = self._engine
        return engine.records.list(wanted, engine.audience(wanted), now=engine.now(), limit=1)

    def topics(self, *, limit: int = 1_000) -> Sequence[Topic]:
        """What decisions were made about, newest first."""
        engine = self._engine
        return engine.records.topics(engine.audience(Filter()), now=engine.now(), limit=limit)

    def graph(self, topic: str | None = None, *, steps: int = 1, limit: int = 1_000) -> DecisionGraph:
        """A topic's decisions and those linked with them within this many steps; or all decisions."""
        if topic is None:
            steps, found = 0, list(self._engine.list(Filter(states=AT_HAND, kinds=DECISIONS), limit=limit))
        else:
            found = list(self.chain(topic, limit=limit))
        known = {memory.id: memory for memory in found}
        links = follow_links(self._engine, known, steps=steps, limit=limit, states=AT_HAND, kinds=EDGES)
        memories = sorted(known.values(), key=lambda memory: (memory.created_at, memory.seq))
        return DecisionGraph(memories=tuple(memories), links=tuple(link for link in links if link.state == "open"))

    # --- steps -------------------------------------------------------------------------------------------------------

    def _on(self, decision: Memory) -> Filter:
        """All decisions on this one's topic that are still there."""
        states = frozenset({*AT_HAND, State.ARCHIVED})
        return Filter(states=states, expired=None, kinds=DECISIONS, topic=decision.topic)

    def _heads(self, tx: Transaction, memory: Memory) -> list[Memory]:
        """The topic's decisions that nothing outdates yet and that the new one's author may change, newest first."""
        heads = Filter(
            states=frozenset({State.ACTIVE, State.ARCHIVED}), expired=None, kinds=DECISIONS, topic=memory.topic
        )
        found = tx.list(heads, access.own_audience(self._engine.caller, memory), now=self._engine.now(), limit=100)
        return [one for one in found if one.superseded_by is None and access.may_change(self._engine.caller, one)]

    def _similar(self, memory: Memory, vector: Vector | None) -> tuple[Hit, ...]:
        engine = self._engine
        if vector is None or memory.kind is not Kind.DECISION or not in_latin_script(memory.embeddable):
            return ()
        audience = access.own_audience(engine.caller, memory, only=engine.only)
        nearest = engine.records.nearest(
            vector, Filter(kinds=DECISIONS), audience, now=engine.now(), limit=2 * SIMILAR_MOST
        )
        near = {match.memory: engine.parts.embedding.calibrate(match.score) for match in nearest}
        others = [
            Hit(memory=other, score=near[other.id])
            for other in engine.records.get([one for one in near if near[one] >= SIMILAR], audience)
            if topic_key(other.topic or "") != topic_key(memory.topic or "")
        ]
        return tuple(others[:SIMILAR_MOST])

    def _unfold(self, hits: Sequence[Memory], wanted: Filter, limit: int) -> list[Memory]:
        """The hits, each decision in its topic's chain and followed by what it is linked with; at most `limit`."""
        linked = self._find_linked(hits, wanted)
        page: dict[str, Memory] = {}
        for hit in hits:
            if len(page) >= limit:
                break
            if hit.id in page:
                continue
            chain = self._chain_around(hit, hits, limit, limit - len(page)) if hit.kind is Kind.DECISION else [hit]
            for memory in chain:
                page[memory.id] = memory
            for memory in chain:
                for other in linked.get(memory.id, ())[:LINKED_MOST]:
                    page.setdefault(other.id, other)
        return list(page.values())[:limit]

    def _chain_around(self, hit: Memory, hits: Sequence[Memory], limit: int, room: int) -> list[Memory]:
        """The hits on this one's topic and, where there is room, its newest decisions; newest first."""
        engine = self._engine
        wanted = Filter(states=AT_HAND, kinds=DECISIONS, topic=hit.topic)
        here = access.audience_in(engine.caller, (hit.space,))
        newest = engine.records.list(wanted, here, now=engine.now(), limit=max(3, limit // 2))
        key = topic_key(hit.topic or "")
        alike = [one for one in hits if one.topic and one.space == hit.space and topic_key(one.topic) == key]
        chain = list({memory.id: memory for memory in (*alike, *newest)}.values())[:room]
        return sorted(chain, key=lambda memory: (memory.created_at, memory.seq), reverse=True)

    def _find_linked(self, hits: Sequence[Memory], wanted: Filter) -> dict[str, list[Memory]]:
        """What the hits build on, debate or synthesize, and what does so with them."""
        engine, ids = self._engine, {memory.id for memory in hits}
        links = engine.records.history.links(sorted(ids), kinds=NAMED)
        ends = dict.fromkeys(end for link in links for end in (link.target, link.source) if end not in ids)
        found = engine.records.get(list(ends), access.audience_anywhere(engine.caller))
        others = {one.id: one for one in (*hits, *found) if fits(one, wanted, engine)}
        result: dict[str, list[Memory]] = {}
        for link in links:
            for end, other in ((link.source, link.target), (link.target, link.source)):
                if end in ids and other in others:
                    result.setdefault(end, []).append(others[other])
        return result

    def _scores_of(self, ids: Sequence[str], vector: Vector | None) -> dict[str, float]:
        """How near those are that only a chain or a link brought in."""
        engine = self._engine
        near = {} if vector is None or not ids else engine.records.cosines(vector, ids)
        return {
            one: ranking.MEANING * engine.parts.embedding.calibrate(near[one]) if one in near else 0.0 for one in ids
        }

    def _rows(self, page: Sequence[Memory], scores: dict[str, float]) -> Iterator[Row]:
        engine, known = self._engine, {memory.id: memory for memory in page}
        links = engine.records.history.links(list(known), kinds=EDGES)
        ends = {end for link in links for end in (link.source, link.target)}
        ends |= {end for one in page for end in (one.supersedes, one.superseded_by) if end}
        others = engine.records.get(sorted(ends - known.keys()), access.audience_anywhere(engine.caller))
        names = {one.id: one.name for one in (*page, *others) if one.status is not Status.DELETED}
        edges: dict[str, list[NamedEdge]] = {}
        for link in links:
            if link.source in names and link.target in names and link.state == "open":
                for end, other, outgoing in ((link.source, link.target, True), (link.target, link.source, False)):
                    edges.setdefault(end, []).append(
                        NamedEdge(kind=link.kind, other=names[other], outgoing=outgoing, reason=link.reason)
                    )
        for memory in page:
            yield Row(
                memory=memory,
                score=scores.get(memory.id),
                edges=tuple(sorted(edges.get(memory.id, ()), key=lambda edge: edge.kind is LinkKind.SUPERSEDES)),
                supersedes=names.get(memory.supersedes or ""),
                superseded_by=names.get(memory.superseded_by or ""),
            )


def in_latin_script(text: str) -> bool:
    """Whether most letters are those that the embedding model was made for: of other scripts it takes any two texts for
    much the same, so what it says of their likeness does not justify a warning."""
    letters = [letter for letter in text[:SCRIPT_READ] if letter.isalpha()]
    return 2 * sum(letter <= LAST_LATIN for letter in letters) >= len(letters)


def fits(memory: Memory, wanted: Filter, engine: Engine) -> bool:
    """Whether something that a link leads to may be shown here."""
    meant = memory.state in wanted.states and (wanted.kinds is None or memory.kind in wanted.kinds)
    return meant and not memory.expired(engine.now())


# A bullet, a number, a box, in any combination that people write: "- [ ] 1. text", "2) text", "[x] text".
STEP = re.compile(r"(?:[-*+•]\s+)?(?:\d{1,3}[.)]\s+)?(?:\[(?P<box>[ xX✓])\]\s*)?(?:\d{1,3}[.)]\s+)?(?P<text>.*\S)")


def open_steps(next_steps: str | None) -> Iterator[str]:
    """The steps of a text, one per line, without their marks; those ticked off are left out."""
    for line in (next_steps or "").splitlines():
        found = STEP.fullmatch(line.strip())
        if found and (found["box"] or " ") == " ":
            yield found["text"]
