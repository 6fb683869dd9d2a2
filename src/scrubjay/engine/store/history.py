"""How a change is written: seen by its caller, allowed, stamped, kept in the history and announced in the feed.

A ledger belongs to one caller. Its verbs run inside a transaction that the caller opened and will close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.holding import locked_error
from scrubjay.engine.lifecycle import supersession
from scrubjay.engine.store import intake, names
from scrubjay.errors import NotFound
from scrubjay.stores.promises.memories import OWN_MODEL, Addition, Change, Reads, Transaction
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import (
    AT_HAND,
    Forgotten,
    FormerPhrases,
    Kind,
    Link,
    LinkKind,
    Memory,
    Revised,
    Sketch,
    State,
    Status,
    Version,
)
from scrubjay.values.store import Event

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector


MOST_REPHRASED = 20  # changes of phrases that can be taken back


@dataclass(frozen=True, slots=True, kw_only=True)
class TextVectors:
    """A memory's text as vectors: those of its first parts, and how many parts there are."""

    vectors: Sequence[Vector]
    parts: int
    further: Mapping[str, Sequence[Vector]] = field(default_factory=dict)  # of all parts, by further models
    further_wait: bool = False  # whether some of those are still to be made

    @property
    def first(self) -> Vector | None:
        return self.vectors[0] if self.vectors else None

    @property
    def complete(self) -> bool:
        return len(self.vectors) >= self.parts and not self.further_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    caller: Caller
    provenance: Provenance
    spaces: tuple[str, ...]  # that the caller works in; where names that count per space are looked up
    model: str | None  # whose vectors may be written as the store's own
    now: Callable[[], datetime]
    holder: str = ""  # in whose name memories may be held

    def get_visible(self, reads: Reads, id: str, *, deleted: bool = False, elsewhere: bool = False) -> Memory:
        """Get a memory in the spaces granted to the caller; `elsewhere`, for reading, also a public one in spaces it
        names.

        :raises NotFound: if there is no such memory, or none that the caller may see
        """
        intake.check_id(id)
        audience = access.audience_anywhere(self.caller, self.spaces if elsewhere else ())
        found = reads.get(names.ids_for(id, self.spaces), audience)
        memory = next((one for one in found if names.stands_for(id, one)), None)
        if memory is None or (memory.status is Status.DELETED and not deleted):
            raise NotFound(f"Memory with ID {id} not found", memory_id=id)
        return memory

    def get_changeable(self, reads: Reads, id: str, *, deleted: bool = False) -> Memory:
        """:raises NotFound: as :meth:`get_visible` :raises Forbidden: if it is not the caller's to change
        :raises Locked: while long work holds it"""
        memory = self.get_visible(reads, id, deleted=deleted, elsewhere=True)
        access.check_change(self.caller, memory)
        self.check_free(reads, [memory.id])
        return memory

    def visible_links(self, reads: Reads, ids: Sequence[str]) -> list[Link]:
        """Read the links between these memories and others that the caller may see; other links are not even
        counted."""
        links = reads.history.links(ids)
        ends = sorted({end for link in links for end in (link.source, link.target)})
        seen = {memory.id for memory in reads.get(ends, access.audience_anywhere(self.caller))} if ends else set()
        return [link for link in links if {link.source, link.target} <= seen]

    def count_links(self, reads: Reads, memories: Sequence[Memory]) -> dict[str, int]:
        """Count the links of each memory that stand and lead to memories that the caller may see."""
        counts = dict.fromkeys((memory.id for memory in memories), 0)
        for link in self.visible_links(reads, list(counts)):
            for end in {link.source, link.target} & counts.keys() if link.stands else ():
                counts[end] += 1
        return counts

    def visible_versions(self, reads: Reads, versions: Sequence[Version]) -> list[Version]:
        """Keep the former states that the caller could have seen, without the ids of memories that it may not see."""
        audience = access.audience_anywhere(self.caller, self.spaces)
        shown = [one for one in versions if access.sees(audience, one.memory)]
        ends = {end for one in shown for end in (one.memory.supersedes, one.memory.superseded_by) if end}
        known = {memory.id for memory in reads.get(sorted(ends), audience)} if ends else set()
        return [replace(one, memory=_keep_known_pointers(one.memory, known)) for one in shown]

    def check_free(self, reads: Reads, ids: Sequence[str]) -> None:
        """:raises Locked: if long work holds one of these memories"""
        for held in reads.jobs.held_by_others(ids, but=self.holder):
            raise locked_error(held)

    def add(
        self,
        tx: Transaction,
        memory: Memory,
        text: TextVectors,
        *,
        judged: bool,
        fingerprint: bytes | None = None,
        agreed: bool | None = None,
    ) -> Memory:
        """Write a new memory; its fingerprint, if that is known already, and whether its neighbours agree with its
        category."""
        tx.spaces.create(memory.space, at=memory.updated_at)
        if memory.kind is not Kind.MEMORY:
            memory = names.name_decision(tx, memory)
        memory = replace(memory, **tx.clock.stamp(self.now()))
        change = Change(user=self.caller.user, at=memory.updated_at)
        stored = self._put(tx, memory, text, change, fingerprint=fingerprint, agreed=agreed)
        if memory.kind is not Kind.MEMORY and (alias := names.alias_of(stored)) is not None:
            tx.history.alias(alias, stored.id)
        waits = len(text.vectors) < text.parts
        if judged and waits:
            tx.upkeep.put_off(stored.id, judged=True)
        elif not judged and text.vectors and not waits:
            tx.upkeep.await_judgement(stored.id)
        self.record(tx, stored, "stored")
        return stored

    def add_all(self, tx: Transaction, memories: Sequence[Memory], texts: Sequence[TextVectors]) -> None:
        """Write new plain memories of one space, which are compared with earlier ones later."""
        if not memories:
            return
        tx.spaces.create(memories[0].space, at=memories[0].updated_at)
        now = self.now()
        stamped = [replace(memory, **tx.clock.stamp(now)) for memory in memories]
        tx.put_new(
            [
                Addition(
                    memory=memory,
                    fingerprint=intake.fingerprint(memory),
                    vectors=self._writable(tx, text.vectors),
                    parts=text.parts,
                )
                for memory, text in zip(stamped, texts, strict=True)
            ]
        )
        for memory, text in zip(stamped, texts, strict=True):
            self._add_further(tx, memory, text)
        whole = [one.id for one, text in zip(memories, texts, strict=True) if 0 < text.parts <= len(text.vectors)]
        if whole:
            tx.upkeep.await_judgement(*whole)
        tx.history.record_each(
            Event(
                space=memories[0].space,
                at=self.now(),
                action="stored",
                user=self.caller.user,
                provenance=self.provenance,
                credential=self.caller.credential,
            ),
            [memory.id for memory in memories],
        )

    def change(
        self,
        tx: Transaction,
        memory: Memory,
        action: str,
        *fields: str,
        reason: str | None = None,
        text: TextVectors | None = None,
        touched: bool = True,
    ) -> Memory:
        """Write a changed memory as its next version; without a text, words and vectors stay as they are.

        What only changes its place (`touched=False`) leaves the time of its last update alone.
        """
        if "content" in fields and memory.verified_at is not None and self.caller.role is not Role.OWNER:
            memory, fields = replace(memory, verified_at=None), (*fields, "verified_at")  # it was said of another text
        if {"access_level", "space"} & set(fields):
            memory, fields = self._publish(tx, memory, fields)
        now = max(self.now(), memory.updated_at)  # a clock set back must not make a version older than the last
        updated = now if touched else memory.updated_at
        # Not by `now`: the time that another machine wrote there must not carry our clock along.
        stamp = tx.clock.stamp(self.now())
        memory = replace(memory, version=memory.version + 1, updated_at=updated, **stamp)
        changed = self._put(tx, memory, text, Change(user=self.caller.user, at=now, reason=reason))
        if text is not None and len(text.vectors) >= text.parts:
            self.judge_later(tx, changed)  # a text that is still to be embedded waits for both
        self.record(tx, changed, action, *fields, reason=reason)
        if {"access_level", "space"} & set(fields):
            self._settle_around(tx, changed)
        if {"content", "space", "status", "superseded_by"} & set(fields):
            self.ask_which_of_two(tx, changed)
        return changed

    def ask_which_of_two(self, tx: Transaction, memory: Memory) -> None:
        """Open a conflict where a memory came back, or was changed, and now says word for word what another says."""
        if memory.kind is not Kind.MEMORY or memory.state is not State.ACTIVE:
            return
        others = intake.same_words(tx, memory, access.own_audience(self.caller, memory), self.now())
        if not others:
            return
        older, newer = sorted((memory, others[-1]), key=lambda one: (one.created_at, one.seq))
        links = tx.history.links([memory.id], kinds=frozenset({LinkKind.MAY_OUTDATE}))
        if not any({link.source, link.target} == {older.id, newer.id} for link in links):
            self.link(tx, LinkKind.MAY_OUTDATE, newer, older, score=1.0, given=False, reason="says the same")

    def judge_later(self, tx: Transaction, memory: Memory) -> None:
        """Let a memory whose text has come here wait for being compared with earlier ones."""
        if memory.kind is Kind.MEMORY and memory.status is Status.ACTIVE:
            tx.upkeep.await_judgement(memory.id)

    def revise(
        self,
        tx: Transaction,
        known: Memory,
        memory: Memory,
        fields: Iterable[str],
        *,
        reason: str | None,
        text: TextVectors | None,
    ) -> Revised:
        """Write a change that a caller asked for, and say where the former state is kept; none if nothing differs."""
        access.check_verifies(self.caller, known, memory)
        memory = supersession.with_given_end(tx, known, memory)
        names = tuple(name for name in fields if getattr(memory, name) != getattr(known, name))
        if memory == known:
            return Revised(memory=known, fields=(), previous=None, embedded=False)
        if names == ("also",):
            return self.rephrase(tx, known, memory, reason=reason, text=text)
        changed = self.change(tx, memory, "updated", *names, reason=reason, text=text)
        changed = self._settle_times(tx, changed, names)
        return Revised(
            memory=changed,
            fields=names,
            previous=tx.history.versions(changed.id)[0].id,
            embedded=bool(text is not None and text.vectors),
        )

    def rephrase(
        self,
        tx: Transaction,
        known: Memory,
        memory: Memory,
        *,
        reason: str | None,
        text: TextVectors | None,
        undo: bool = False,
    ) -> Revised:
        """Write other phrases, or again those before the last ones: the version stays, former phrases are kept."""
        now = max(self.now(), memory.updated_at)
        memory = replace(memory, updated_at=now, **tx.clock.stamp(self.now()))
        change = Change(user=self.caller.user, at=now, reason=reason)
        last = FormerPhrases(
            also=known.also, replaced_at=now, replaced_by=self.caller.user, reason=reason, hlc=memory.hlc
        )
        former = tx.history.former_phrases(known.id)
        former = former[:-1] if undo else (*former, last)[-MOST_REPHRASED:]
        changed = self._put(tx, memory, text, change, former_phrases=former)
        if text is not None and len(text.vectors) >= text.parts:
            self.judge_later(tx, changed)
        self.record(tx, changed, "updated", "also", reason=reason)
        return Revised(
            memory=changed, fields=("also",), previous=None, embedded=bool(text is not None and text.vectors)
        )

    def record(self, tx: Transaction, memory: Memory, action: str, *fields: str, reason: str | None = None) -> None:
        """Tell the space's feed: ids and names of fields, never content."""
        tx.history.record(
            Event(
                space=memory.space,
                at=self.now(),
                action=action,
                memory=memory.id,
                fields=fields,
                user=self.caller.user,
                provenance=self.provenance,
                reason=reason,
                credential=self.caller.credential,
            )
        )

    def link(
        self,
        tx: Transaction,
        kind: LinkKind,
        source: Memory,
        target: Memory | Sketch,
        *,
        score: float | None = None,
        given: bool = True,
        reason: str | None = None,
        state: str = "open",
    ) -> None:
        now = self.now()
        tx.history.relate(
            Link(
                kind=kind,
                source=source.id,
                target=target.id,
                score=score,
                given=given,
                reason=reason,
                state=state,
                created_at=now,
                **tx.clock.stamp(now),
            )
        )

    def mark(self, tx: Transaction, link: Link, state: str) -> None:
        """Let a link say something else; what it already says is not a change."""
        if link.state != state:
            tx.clock.observe(link.hlc)  # of two stamps of a link the later one stands
            tx.history.relate(replace(link, state=state, **tx.clock.stamp(self.now())))

    def _publish(self, tx: Transaction, memory: Memory, fields: tuple[str, ...]) -> tuple[Memory, tuple[str, ...]]:
        """On a path that is free for its new audience; if people see it who did not before, with no trace of what it
        said to others."""
        from scrubjay.engine.lifecycle import publishing

        [before] = tx.get([memory.id], access.EVERYTHING)
        access.check_levels(self.caller, before, memory)
        clean = memory
        if not access.as_open(before, memory):
            former = publishing.hidden_from_some(
                [before, *(one.memory for one in tx.history.versions(memory.id))], memory
            )
            clean = publishing.remade(memory, former)
            tx.amend(memory.id, {"former_also": "[]"})
        if clean.state in AT_HAND:
            clean = replace(clean, path=names.free_path(tx, clean))
        return clean, tuple(dict.fromkeys((*fields, *publishing.made_fields(memory, clean))))

    def _settle_around(self, tx: Transaction, memory: Memory) -> None:
        """Others may see a memory now, or no longer: so what it supersedes may count for more people, or for fewer."""
        for one in supersession.neighbours(tx, memory):
            if supersession.settle(tx, one):
                self.record(tx, one, "superseded", "superseded_by")

    def _settle_times(self, tx: Transaction, memory: Memory, names: Iterable[str]) -> Memory:
        """A memory that says another time: what it supersedes was true until then, and it was itself true until its
        own successor was, if it has no end. As it is then."""
        if "valid_from" in names:
            for one in supersession.predecessors(tx, [memory.id]):
                supersession.settle(tx, one)
        if "valid_until" not in names:
            return memory
        own = supersession.plain(tx, memory)
        supersession.settle(tx, own)
        return replace(memory, valid_until=supersession.plain(tx, own).valid_until)

    def _put(
        self,
        tx: Transaction,
        memory: Memory,
        text: TextVectors | None,
        change: Change,
        *,
        fingerprint: bytes | None = None,
        agreed: bool | None = None,
        former_phrases: Sequence[FormerPhrases] | None = None,
    ) -> Memory:
        stored = tx.put(
            memory,
            fingerprint=fingerprint or intake.fingerprint(memory),
            vectors=None if text is None else self._writable(tx, text.vectors),
            parts=0 if text is None else text.parts,
            change=change,
            agreed=agreed,
            former_phrases=former_phrases,
        )
        if text is not None:
            self._add_further(tx, stored, text)
        return stored

    def _add_further(self, tx: Transaction, memory: Memory, text: TextVectors) -> None:
        for model, vectors in text.further.items():
            tx.add_vectors(
                memory.id,
                version=memory.version,
                first_part=0,
                vectors=vectors,
                parts=len(vectors),
                also=memory.also,
                model=model,
            )

    def _writable(self, tx: Transaction, vectors: Sequence[Vector]) -> Sequence[Vector]:
        """Vectors of two models never meet: the first model to write is the store's, others' texts wait."""
        if not vectors or self.model is None:
            return ()
        kept = tx.history.fact(OWN_MODEL)
        if kept is None:
            tx.history.set_fact(OWN_MODEL, self.model)
        return vectors if kept in (None, self.model) else ()


def _keep_known_pointers(memory: Memory, known: set[str]) -> Memory:
    older = memory.supersedes if memory.supersedes in known else None
    newer = memory.superseded_by if memory.superseded_by in known else None
    return replace(memory, supersedes=older, superseded_by=newer)


def without_erased_text(result: Any) -> Any:
    """Cut from a result every word of a memory that was erased for good, so that it may be kept."""
    if not isinstance(result, Forgotten) or not result.hard:
        return result
    bare = replace(result.memory, content="", title="", path="", topic=None, tags=(), auto_tags=(), also=())
    return replace(result, memory=replace(bare, metadata={}, detail={}))
