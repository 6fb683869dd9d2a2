"""Several memories become one, which knows where it came from.

hold ─> are they alike? ─> write the text ─> embed it ─> pack the originals ─> one transaction:
the new memory, its links, the originals archived or forgotten
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from enum import StrEnum
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.engine import access
from scrubjay.engine.archive.archiving import Terms
from scrubjay.engine.holding import holding
from scrubjay.engine.lifecycle import lifecycle, supersession, synthesis
from scrubjay.engine.store import embedding, intake
from scrubjay.engine.store.enrichment import enrich
from scrubjay.errors import InvalidInput, NotFound, ProviderError, SynthesisFailed, TooDissimilar, Unprocessable
from scrubjay.stores.promises.memories import Transaction
from scrubjay.text.reading import read
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import (
    MAX_CONTENT,
    AccessLevel,
    Kind,
    LinkKind,
    Memory,
    NewMemory,
    Source,
    Status,
    all_phrases,
    new_id,
)

if TYPE_CHECKING:
    from scrubjay.engine.archive.archiving import Prepared
    from scrubjay.engine.engine import Engine

LEAST, MOST = 2, 50  # memories of one consolidation
CARRIED = frozenset(
    {LinkKind.RELATED, LinkKind.BUILDS_ON, LinkKind.DEBATES, LinkKind.SYNTHESIZES, LinkKind.MAY_OUTDATE}
)


class Strategy(StrEnum):
    MERGE_ALL = "merge_all"  # all texts, one below the other
    KEEP_PRIMARY = "keep_primary"  # one of them takes the others in, its text unchanged
    AI_SYNTHESIS = "ai_synthesis"  # one text that says it all once


class Writer(StrEnum):
    """Who wrote a synthesis."""

    ENDPOINT = "endpoint"  # the configured language model
    CLIENT = "client"  # the language model of the client that asked
    LOCAL = "local"  # rules of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationPlan:
    """What to make of which memories."""

    ids: tuple[str, ...]
    strategy: Strategy
    primary: str | None = None
    instructions: str | None = None  # for a language model
    earliest_time: bool = True
    highest_importance: bool = True
    all_tags: bool = True
    all_links: bool = True
    keep_originals: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Consolidated:
    """The answer to a consolidation."""

    memory: Memory
    sources: tuple[str, ...]
    strategy: Strategy
    at: datetime
    writer: Writer | None = None  # of a synthesis
    archives: tuple[str, ...] = ()  # of the originals, where they were kept
    notes: tuple[str, ...] = ()


class ConsolidationChange(NamedTuple):
    """What a consolidation does to memories that exist."""

    plan: ConsolidationPlan
    named: tuple[str, ...]  # the sources in the order in which they were named
    sources: Sequence[Memory]  # oldest first
    primary: Memory

    @property
    def leaving(self) -> Sequence[Memory]:
        """The sources whose place the result takes, in the order in which they were named."""
        stays = self.primary.id if self.plan.strategy is Strategy.KEEP_PRIMARY else None
        return [memory for name in self.named for memory in self.sources if memory.id == name != stays]


class Consolidation:
    """Merging at an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def merge(self, plan: ConsolidationPlan) -> Consolidated:
        """Make one memory of several.

        :raises TooDissimilar: with their similarity; never for `keep_primary`
        :raises Unprocessable: if one is superseded, expired or archived, or they do not belong together
        :raises SynthesisFailed: if the configured language model gives no usable answer; nothing has changed then
        """
        engine = self._engine
        self._check(plan)
        if (kept := engine.earlier_result(Consolidated)) is not None:
            return kept
        names = [engine.ledger.get_changeable(engine.records, name).id for name in plan.ids]
        if len(set(names)) < LEAST:
            raise InvalidInput("Give at least two different memories.", field="memory_ids")
        with holding(engine, names) as held:
            sources = self._sources(held, names)
            change = ConsolidationChange(plan, tuple(dict.fromkeys(names)), sources, self._primary(plan, sources))
            if plan.strategy is Strategy.KEEP_PRIMARY:
                return self._take_in(held, change)
            self._check_alike(sources)
            return self._make(held, change)

    # --- what may be merged ------------------------------------------------------------------------------------------

    def _check(self, plan: ConsolidationPlan) -> None:
        if not LEAST <= len(plan.ids) <= MOST:
            raise InvalidInput(f"Give {LEAST} to {MOST} memories, not {len(plan.ids)}.", field="memory_ids")
        if plan.strategy is Strategy.KEEP_PRIMARY and plan.primary is None:
            raise InvalidInput("keep_primary needs primary_memory_id.", field="primary_memory_id")

    def _sources(self, held: Engine, names: Sequence[str]) -> list[Memory]:
        """The memories as they are now, oldest first."""
        now = self._engine.now()
        found = [held.ledger.get_changeable(held.records, name) for name in dict.fromkeys(names)]
        for memory in found:
            if (why := unfit(memory, now)) is not None:
                raise Unprocessable(f"Memory {memory.id} is {why}.", memory_id=memory.id)
        if len({memory.space for memory in found}) > 1:
            raise Unprocessable("The memories are in different spaces.", hint="Consolidate each space separately.")
        owners = {memory.context.user_id for memory in found}
        if len(owners) > 1 and any(memory.access_level is AccessLevel.PRIVATE for memory in found):
            raise Unprocessable("Private memories of different users cannot be consolidated.")
        return sorted(found, key=lambda memory: (memory.created_at, memory.seq))

    def _primary(self, plan: ConsolidationPlan, sources: Sequence[Memory]) -> Memory:
        """The named one, else the newest."""
        if plan.primary is None:
            return sources[-1]
        with suppress(NotFound):  # what is nowhere is not among them either
            wanted = self._engine.ledger.get_visible(self._engine.records, plan.primary)
            for memory in sources:
                if memory.id == wanted.id:
                    return memory
        raise Unprocessable("primary_memory_id is not among memory_ids.", memory_id=plan.primary)

    def _check_alike(self, sources: Sequence[Memory]) -> None:
        similarity = self._similarity(sources)
        if similarity < self._engine.parts.least_similarity:
            raise TooDissimilar(
                f"The memories are too dissimilar to consolidate ({similarity:.2f}).",
                hint="Leave out memories that do not belong, or use keep_primary.",
                similarity=round(similarity, 4),
                needed=self._engine.parts.least_similarity,
            )

    def _similarity(self, sources: Sequence[Memory]) -> float:
        """Of all pairs on average: what a search for the one would score the other, or shared words where a vector is
        missing. Two stored vectors cannot be compared like that: those of unrelated texts are too near."""
        vectors = self._engine.records.vectors([memory.id for memory in sources])
        asked = {memory.id: embedding.embed_query(self._engine, memory.text)[0] for memory in sources}
        words = {memory.id: read(memory.text).words for memory in sources}

        def alike(one: str, other: str) -> float:
            question = asked[one]
            if question is None or other not in vectors:
                return len(words[one] & words[other]) / max(1, min(len(words[one]), len(words[other])))
            return self._engine.parts.embedding.calibrate(float((question * vectors[other]).sum()))

        pairs = [alike(one.id, other.id) for one, other in permutations(sources, 2)]
        return sum(pairs) / len(pairs)

    # --- the text ----------------------------------------------------------------------------------------------------

    def _write_text(
        self, plan: ConsolidationPlan, sources: Sequence[Memory]
    ) -> tuple[str, Writer | None, tuple[str, ...]]:
        if plan.strategy is Strategy.MERGE_ALL:
            return "\n\n".join(one.text for one in synthesis.once(sources, lambda memory: memory.text)), None, ()
        engine = self._engine
        asked = synthesis.prompt(sources, plan.instructions)
        if engine.parts.model is not None:
            engine.progress(0, None, "asking the language model")
            try:
                return engine.parts.model(asked), Writer.ENDPOINT, ()
            except ProviderError as error:
                raise SynthesisFailed(error.message) from error
        refused: tuple[str, ...] = ()
        if engine.client_model is not None:
            try:
                return engine.client_model(asked), Writer.CLIENT, ()
            except SynthesisFailed as error:
                refused = (error.message,)
        unused = ("synthesis_instructions need a language model and were not used.",) if plan.instructions else ()
        text = synthesis.synthesise(sources, engine.parts.embedding, lambda: engine.parts.judge)
        return text, Writer.LOCAL, (*refused, *unused)

    # --- the result --------------------------------------------------------------------------------------------------

    def _make(self, held: Engine, change: ConsolidationChange) -> Consolidated:
        """A new memory in the place of all."""
        plan, sources, primary = change.plan, change.sources, change.primary
        text, writer, notes = self._write_text(plan, sources)
        if len(text) > MAX_CONTENT:
            raise Unprocessable(
                f"Together the memories are too long: {len(text):,} characters (maximum {MAX_CONTENT:,}).",
                hint="Consolidate fewer at a time.",
            )
        fields, more = self._preserve_fields(plan, sources, primary)
        new = NewMemory(
            content=text,
            category=common_category(sources),
            source=Source.EXPLICIT if any(one.source is Source.EXPLICIT for one in sources) else Source.EXTRACTED,
            access_level=min((one.access_level for one in sources), key=access.OPENNESS.index),
            conversation_id=common([one.context.conversation_id for one in sources]),
            session_id=common([one.context.session_id for one in sources]),
            metadata={name: value for one in sources for name, value in one.metadata.items()},
            confidence=min(one.confidence for one in sources),
            expires_at=latest([one.expires_at for one in sources]),
            **fields,
        )
        admitted = intake.check_trust(
            held,
            intake.build_memory(
                new,
                id=new_id(),
                space=primary.space,
                user=primary.context.user_id,
                provenance=held.provenance,
                now=held.now(),
                held=True,
            ),
        )
        embedded, _ = embedding.embed(held, admitted)
        memory = enrich(held, admitted, new, embedded.first)

        def write(tx: Transaction) -> Memory:
            return held.ledger.add(tx, memory, embedded, judged=True)

        done = self._replace(held, change, write, writer=writer, notes=(*notes, *more))
        if not embedded.complete:
            held.parts.backlog.wake()
        return done

    def _take_in(self, held: Engine, change: ConsolidationChange) -> Consolidated:
        """The primary memory in the place of all: its own words, the others' time, importance, tags, phrases and
        links."""
        fields, notes = self._preserve_fields(change.plan, change.sources, change.primary)
        more = fields["also"] != change.primary.also
        text = embedding.embed(held, replace(change.primary, **fields))[0] if more else None

        def write(tx: Transaction) -> Memory:
            current = held.ledger.get_changeable(tx, change.primary.id)
            return held.ledger.change(tx, replace(current, **fields), "consolidated", *fields, text=text)

        done = self._replace(held, change, write, notes=notes)
        if text is not None:
            held.parts.backlog.wake()
        return done

    def _preserve_fields(
        self, plan: ConsolidationPlan, sources: Sequence[Memory], primary: Memory
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Time, importance, tags and phrases of the result."""
        importances = [memory.importance for memory in sources]
        counted = Counter(tag for memory in sources for tag in memory.tags)
        tags = tuple(counted) if plan.all_tags else primary.tags
        notes: tuple[str, ...] = ()
        if len(tags) > intake.MAX_TAGS:
            notes = (f"{len(tags) - intake.MAX_TAGS} of {len(tags)} tags were left out, those of the fewest memories.",)
            tags = tuple(tag for tag, _ in counted.most_common(intake.MAX_TAGS))
        mean = round(sum(importances) / len(importances), 4)
        return {
            "created_at": sources[0].created_at if plan.earliest_time else self._engine.now(),
            "importance": max(importances) if plan.highest_importance else mean,
            "tags": tags,
            "also": all_phrases(primary, *sources),
        }, notes

    def _replace(
        self,
        held: Engine,
        change: ConsolidationChange,
        write: Callable[[Transaction], Memory],
        *,
        writer: Writer | None = None,
        notes: tuple[str, ...] = (),
    ) -> Consolidated:
        """Write the result, and archive or forget what it replaces, in one transaction."""
        plan, leaving = change.plan, change.leaving
        cold, terms = held.cold_storage, Terms(reason="consolidated")
        ready = cold.ready([memory.id for memory in leaving], terms) if plan.keep_originals else nullcontext(())

        def consolidate(tx: Transaction, prepared: Sequence[Prepared]) -> Consolidated:
            check_unchanged(held, tx, change.sources)
            result = write(tx)
            move_links(held, tx, result, leaving, only=None if plan.all_links else change.primary.id)
            for memory in leaving:
                held.ledger.link(tx, LinkKind.CONSOLIDATED_FROM, result, memory, given=False)
            told = all(access.as_open(result, memory) for memory in leaving)  # who sees them may see its name
            why = f"consolidated into {result.id}" if told else "consolidated"
            put_away = cold.put_away(tx, prepared, replace(terms, reason=why))
            for memory in () if plan.keep_originals else leaving:
                lifecycle.forget(held.ledger, tx, memory.id, hard=False, reason=why)
            lifecycle.settle_predecessors(held.ledger, tx, result)
            tx.statistics.count_consolidation(result.id, sources=len(change.sources), at=held.now())
            return Consolidated(
                memory=next(iter(tx.get([result.id], access.EVERYTHING))),
                sources=change.named,
                strategy=plan.strategy,
                at=held.now(),
                writer=writer,
                archives=tuple(one.archive for one in put_away if one.archive is not None),
                notes=notes,
            )

        with ready as prepared:
            return held.transact(Consolidated, lambda tx: consolidate(tx, prepared))


def unfit(memory: Memory, now: datetime) -> str | None:
    """What a memory is that keeps it from being consolidated."""
    if memory.kind is not Kind.MEMORY:
        return f"a {memory.kind}, whose text must not change"
    if memory.status is Status.ARCHIVED:
        return "archived"
    if memory.superseded_by is not None:
        return "superseded"
    return "expired" if memory.expired(now) else None


def check_unchanged(held: Engine, tx: Transaction, sources: Sequence[Memory]) -> None:
    for memory in sources:
        current = held.ledger.get_changeable(tx, memory.id)
        if current.version != memory.version:
            raise lifecycle.changed_meanwhile(current)


def move_links(held: Engine, tx: Transaction, result: Memory, leaving: Sequence[Memory], *, only: str | None) -> None:
    """Let the result stand where the memories that leave stood, or one of them only; for links that say what replaced
    what, always."""
    own = {memory.id for memory in leaving}
    for link in tx.history.links(sorted(own)):
        if {link.source, link.target} <= own | {result.id}:
            if link.kind is LinkKind.MAY_OUTDATE:
                held.ledger.mark(tx, link, "superseded")
            continue
        outgoing = link.source in own
        replaces = link.kind is LinkKind.SUPERSEDES and outgoing and link.state != supersession.RELEASED
        if replaces or (link.kind in CARRIED and only in (None, link.source if outgoing else link.target)):
            held.ledger.mark(tx, link, "replaced")  # first: of two links the one with the later stamp counts
            moved = replace(link, **tx.clock.stamp(held.now()))
            tx.history.relate(replace(moved, source=result.id) if outgoing else replace(moved, target=result.id))


def common_category(sources: Sequence[Memory]) -> Any:
    """What most of them are; of equals what the newest of those is."""
    counted = Counter(memory.category for memory in reversed(sources))
    return counted.most_common(1)[0][0]


def common(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def latest(times: Sequence[datetime | None]) -> datetime | None:
    """The last of all; never, if one of them never comes."""
    known = [time for time in times if time is not None]
    return max(known) if len(known) == len(times) else None
