"""How a change is written: seen by its caller, allowed, stamped, kept in the history and told in the feed.

A ledger belongs to one caller. Its verbs run inside a transaction that somebody else opened and will close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.engine import access, intake, names
from scrubjay.engine.holding import locked
from scrubjay.errors import NotFound
from scrubjay.frozen import dataclass
from scrubjay.memory import Caller, Event, Link, LinkKind, Memory, Provenance, Revised, Status
from scrubjay.stores.base import Change, Reads, Transaction

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A memory's text as vectors: those of its first parts, and how many parts there are."""

    vectors: Sequence[Vector]
    parts: int

    @property
    def first(self) -> Vector | None:
        return self.vectors[0] if self.vectors else None

    @property
    def whole(self) -> bool:
        return len(self.vectors) >= self.parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    caller: Caller
    provenance: Provenance
    spaces: tuple[str, ...]  # that the caller works in; where names that count per space are looked up
    origin: str  # of the store
    model: str | None  # whose vectors may be written
    now: Callable[[], datetime]
    holder: str = ""  # in whose name memories may be held

    def seen(self, reads: Reads, id: str, *, deleted: bool = False, elsewhere: bool = False) -> Memory:
        """A memory in the spaces granted to the caller; `elsewhere`, for reading, also a public one in those it names.

        :raises NotFound: if there is no such memory, or none that the caller may see
        """
        intake.check_id(id)
        audience = access.audience_anywhere(self.caller, self.spaces if elsewhere else ())
        memory = next(iter(reads.get(names.ids_for(id, self.spaces), audience)), None)
        if memory is None or (memory.status is Status.DELETED and not deleted):
            raise NotFound(f"Memory with ID {id} not found", memory_id=id)
        return memory

    def changeable(self, reads: Reads, id: str, *, deleted: bool = False) -> Memory:
        """:raises NotFound: as :meth:`seen` :raises Forbidden: if it is not the caller's to change
        :raises Locked: while long work holds it"""
        memory = self.seen(reads, id, deleted=deleted, elsewhere=True)
        access.check_change(self.caller, memory)
        self.check_free(reads, [memory.id])
        return memory

    def links_seen(self, reads: Reads, ids: Sequence[str]) -> list[Link]:
        """The links between these memories and what the caller may see: the others are not even counted for it."""
        links = reads.links(ids)
        ends = sorted({end for link in links for end in (link.source, link.target)})
        seen = {memory.id for memory in reads.get(ends, access.audience_anywhere(self.caller))} if ends else set()
        return [link for link in links if {link.source, link.target} <= seen]

    def check_free(self, reads: Reads, ids: Sequence[str]) -> None:
        """:raises Locked: if long work holds one of these memories"""
        for held in reads.held(ids, but=self.holder):
            raise locked(held)

    def add(self, tx: Transaction, memory: Memory, text: Text, *, judged: bool) -> Memory:
        """Write a new memory."""
        tx.create_space(memory.space, at=memory.updated_at)
        memory = names.named(tx, memory)
        stored = self._put(tx, replace(memory, hlc=tx.tick(memory.updated_at), origin=self.origin), text, None)
        if (alias := names.alias_of(stored)) is not None:
            tx.alias(alias, stored.id)
        if judged and not text.whole:
            tx.put_off(stored.id, judged=True)
        self.record(tx, stored, "stored")
        return stored

    def change(
        self,
        tx: Transaction,
        memory: Memory,
        action: str,
        *fields: str,
        reason: str | None = None,
        text: Text | None = None,
        touched: bool = True,
    ) -> Memory:
        """Write a changed memory as its next version; without a text, words and vectors stay as they are.

        What only changes its place (`touched=False`) leaves the time of its last update alone.
        """
        now = max(self.now(), memory.updated_at)  # a clock set back must not make a version older than the last
        updated = now if touched else memory.updated_at
        memory = replace(memory, version=memory.version + 1, updated_at=updated, hlc=tx.tick(now), origin=self.origin)
        changed = self._put(tx, memory, text, reason, at=now)
        self.record(tx, changed, action, *fields, reason=reason)
        return changed

    def revise(
        self, tx: Transaction, memory: Memory, fields: Iterable[str], *, reason: str | None, text: Text | None
    ) -> Revised:
        """Write a change that somebody asked for, and say where the former state is kept."""
        names = tuple(fields)
        changed = self.change(tx, memory, "updated", *names, reason=reason, text=text)
        return Revised(
            memory=changed,
            fields=names,
            previous=tx.versions(changed.id)[0].id,
            embedded=bool(text is not None and text.vectors),
        )

    def record(self, tx: Transaction, memory: Memory, action: str, *fields: str, reason: str | None = None) -> None:
        """Tell the space's feed: ids and names of fields, never content."""
        tx.record(
            Event(
                space=memory.space,
                at=self.now(),
                action=action,
                memory=memory.id,
                fields=fields,
                user=self.caller.user,
                provenance=self.provenance,
                reason=reason,
            )
        )

    def link(
        self,
        tx: Transaction,
        kind: LinkKind,
        source: Memory,
        target: Memory,
        *,
        score: float | None = None,
        given: bool = True,
        reason: str | None = None,
    ) -> None:
        now = self.now()
        tx.relate(
            Link(
                kind=kind,
                source=source.id,
                target=target.id,
                score=score,
                given=given,
                reason=reason,
                created_at=now,
                hlc=tx.tick(now),
                origin=self.origin,
            )
        )

    def mark(self, tx: Transaction, link: Link, state: str) -> None:
        """Let a link say something else; what it says already is no change."""
        if link.state != state:
            tx.relate(replace(link, state=state, hlc=tx.tick(self.now()), origin=self.origin))

    def _put(
        self, tx: Transaction, memory: Memory, text: Text | None, reason: str | None, *, at: datetime | None = None
    ) -> Memory:
        return tx.put(
            memory,
            fingerprint=intake.fingerprint(memory),
            vectors=None if text is None else self._writable(tx, text.vectors),
            parts=0 if text is None else text.parts,
            change=Change(user=self.caller.user, at=at or memory.updated_at, reason=reason),
        )

    def _writable(self, tx: Transaction, vectors: Sequence[Vector]) -> Sequence[Vector]:
        """Vectors of two models never meet: the first model to write is the store's, others' texts wait."""
        if not vectors or self.model is None:
            return ()
        kept = tx.fact("model")
        if kept is None:
            tx.set_fact("model", self.model)
        return vectors if kept in (None, self.model) else ()
