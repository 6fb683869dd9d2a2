"""What may be outdated, and what a person says about it: superseded, or both are true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.lifecycle.lifecycle import MAY_OUTDATE, check_version, release, supersede
from scrubjay.engine.lifecycle.supersession import RELEASED
from scrubjay.engine.store import intake
from scrubjay.engine.store.history import Ledger
from scrubjay.errors import Conflict, InvalidInput, NotFound, StorageError
from scrubjay.lazy import modules
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Link, LinkKind, Memory, OpenConflict, Relation, State
from scrubjay.values.search import Filter

if TYPE_CHECKING:
    from scrubjay.engine.conflicts import duplicates
    from scrubjay.engine.engine import Engine
else:
    [duplicates] = modules("scrubjay.engine.conflicts", "duplicates")

SAME = "says the same"


class Conflicts:
    """Memories that a newer one may outdate, and what a person says about them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[OpenConflict]:
        """Pairs of which the newer memory may outdate the older, and which are not resolved yet; newest first."""
        intake.check_limit(limit, offset)
        audience = self._engine.audience(Filter())
        reads, now = self._engine.records, self._engine.now()
        return _pairs(reads, audience, reads.history.open_conflicts(audience, now=now, limit=limit, offset=offset))

    def count(self) -> int:
        """How many memories a newer one may outdate, not resolved yet."""
        reads = self._engine.records
        return reads.history.count_open_conflicts(self._engine.audience(Filter()), now=self._engine.now())

    def doubts(self, memories: Sequence[Memory]) -> dict[str, str]:
        """The open pairs that any of these is in: the older ones, each with the newer that very likely outdates it.
        Also those of which a call that named a space reads only one."""
        reads, now = self._engine.records, self._engine.now()
        reader = self._engine.bound_to(only=False) if self._engine.narrowed else self._engine
        links = reads.history.links(sorted({memory.id for memory in memories}), kinds=MAY_OUTDATE) if memories else ()
        links = [link for link in links if link.state == "open" and (link.score or 0.0) >= SURE]
        ends = sorted({end for link in links for end in (link.source, link.target)})
        found = reads.get(ends, reader.audience(Filter())) if ends else ()
        counting = {one.id for one in found if one.state is State.ACTIVE and not one.expired(now)}
        return {link.target: link.source for link in links if {link.source, link.target} <= counting}

    def settle(self, *, old: str, new: str, keep: bool = False) -> tuple[Memory, Memory]:
        """Say of a pair that the newer supersedes the older, or that both are kept. Saying it twice is fine.

        :raises NotFound: if it was not proposed
        """
        expected = self._engine.expected_version
        return self._engine.transact(
            tuple[Memory, Memory],
            lambda tx: settle(self._engine.ledger, tx, old=old, new=new, keep=keep, expected_version=expected),
        )

    def relate(self, *, old: str, new: str, relation: Relation) -> tuple[Memory, Memory]:
        """Say how an older and a newer memory relate, whether or not that was proposed. Saying it twice is fine."""
        expected = self._engine.expected_version
        return self._engine.transact(
            tuple[Memory, Memory],
            lambda tx: relate(self._engine.ledger, tx, old=old, new=new, relation=relation, expected_version=expected),
        )

    def reopen(self, *, old: str, new: str) -> tuple[Memory, Memory]:
        """Take back what was said about a pair: the conflict is open again."""
        expected = self._engine.expected_version
        return self._engine.transact(
            tuple[Memory, Memory],
            lambda tx: reopen(self._engine.ledger, tx, old=old, new=new, expected_version=expected),
        )

    def same_as(self, *ids: str) -> dict[str, Sequence[str]]:
        """Of these memories those that say word for word what others say; the ids of those that the caller may see."""
        found = [
            one
            for one in self._engine.records.get(ids, access.audience_anywhere(self._engine.caller))
            if one.state is State.ACTIVE
        ]
        same = {
            one.id: intake.same_words(
                self._engine.records, one, access.own_audience(self._engine.caller, one), self._engine.now()
            )
            for one in found
        }
        return {name: [other.id for other in others] for name, others in same.items() if others}

    def duplicates(self) -> Iterator[duplicates.DuplicatePair]:
        """Pairs of memories that say the same in the same words, articles aside; a stream, newest first."""
        return duplicates.find_duplicates(self._engine.records, self._engine.audience(Filter()), now=self._engine.now())


def take_owed(engine: Engine) -> Sequence[OpenConflict]:
    """The open pairs that comparing the memories owed to this client brought, given once."""
    audience = access.audience_anywhere(engine.caller)
    try:
        with engine.records.writing() as tx:
            ids = tx.history.owed(user=engine.identity.user, client=engine.provenance.client)
            seen = tx.get(ids, audience)
            tx.history.end_owing(*(memory.id for memory in seen))
            return pairs_of(tx, audience, seen, now=engine.now())
    except StorageError:  # the answer itself does not fail because nothing can be written now
        return ()


def pairs_of(reads: Reads, audience: Audience, newer: Sequence[Memory], *, now: datetime) -> Sequence[OpenConflict]:
    """Unsettled proposals of which these are the newer ones, if the audience sees the older and both still count."""
    ids = {memory.id for memory in newer}
    links = reads.history.links(sorted(ids), kinds=MAY_OUTDATE) if ids else ()
    pairs = _pairs(reads, audience, [link for link in links if link.source in ids and link.state == "open"])
    return [
        pair
        for pair in pairs
        if all(one.state is State.ACTIVE and not one.expired(now) for one in (pair.old, pair.new))
    ]


def _pairs(reads: Reads, audience: Audience, links: Sequence[Link]) -> list[OpenConflict]:
    ends = dict.fromkeys(end for link in links for end in (link.source, link.target))
    seen = {memory.id: memory for memory in reads.get(list(ends), audience)} if ends else {}
    return [
        OpenConflict(
            new=seen[link.source], old=seen[link.target], score=link.score or 0.0, sure=(link.score or 0.0) >= SURE
        )
        for link in links
        if link.source in seen and link.target in seen  # it may have gone meanwhile
    ]


def settle(
    ledger: Ledger, tx: Transaction, *, old: str, new: str, keep: bool, expected_version: int | None = None
) -> tuple[Memory, Memory]:
    """Say of a proposal that the newer memory supersedes the older, if that is at the version expected, or that both
    are kept."""
    outdated, successor = ledger.get_changeable(tx, old), ledger.get_visible(tx, new)
    check_version(outdated, expected_version)
    links = tx.history.links([outdated.id], kinds=MAY_OUTDATE)
    proposed = next((link for link in links if (link.source, link.target) == (successor.id, outdated.id)), None)
    if proposed is None:
        raise NotFound(
            f"No open proposal that {successor.id} outdates {outdated.id}.",
            hint="`scrubjay conflicts` lists open proposals; `scrubjay supersede` needs none.",
            memory_id=outdated.id,
        )
    if not keep:
        return supersede(ledger, tx, outdated.id, successor.id)
    if proposed.state == "superseded" or outdated.superseded_by == successor.id:
        raise Conflict(f"{outdated.id} is already superseded by {successor.id}.", memory_id=outdated.id)
    if proposed.state != "kept":
        ledger.mark(tx, proposed, "kept")
        ledger.record(tx, outdated, "kept")
    return outdated, successor


def relate(
    ledger: Ledger, tx: Transaction, *, old: str, new: str, relation: Relation, expected_version: int | None = None
) -> tuple[Memory, Memory]:
    """Say how two memories relate, if the older is at the version expected. That both are true closes what was proposed
    about them, in either direction."""
    if relation is not Relation.BOTH_TRUE:
        reason = SAME if relation is Relation.SAME else None
        return supersede(ledger, tx, old, new, expected_version=expected_version, reason=reason)
    pair = ledger.get_changeable(tx, old), ledger.get_visible(tx, new)
    check_version(pair[0], expected_version)
    ids = {memory.id for memory in pair}
    if len(ids) == 1:
        raise InvalidInput(f"{old} and {new} are the same memory.", hint="Name two.", field="new")
    for memory, other in (pair, pair[::-1]):
        if memory.superseded_by == other.id:
            hint = "Undo that first."
            raise Conflict(f"{memory.id} is already superseded by {other.id}.", hint=hint, memory_id=memory.id)
    links = [link for link in tx.history.links([pair[0].id], kinds=MAY_OUTDATE) if {link.source, link.target} == ids]
    for link in links:
        if link.state != "kept":
            ledger.mark(tx, link, "kept")
            ledger.record(tx, pair[0], "kept")
    if not links:  # said before anything was proposed: what is judged later must not ask again
        older, newer = sorted(pair, key=lambda memory: (memory.created_at, memory.id))
        ledger.link(tx, LinkKind.MAY_OUTDATE, newer, older, given=False, state="kept")
        ledger.record(tx, pair[0], "kept")
    return pair


def reopen(
    ledger: Ledger, tx: Transaction, *, old: str, new: str, expected_version: int | None = None
) -> tuple[Memory, Memory]:
    """Take back what was said about a pair, so that it is proposed again, if it ever was."""
    outdated, successor = ledger.get_changeable(tx, old), ledger.get_visible(tx, new)
    check_version(outdated, expected_version)
    links = [
        link
        for link in tx.history.links([outdated.id], kinds=MAY_OUTDATE)
        if (link.source, link.target) == (successor.id, outdated.id)
    ]
    if not links:
        told = f"It was never proposed that {successor.id} outdates {outdated.id}."
        raise NotFound(told, memory_id=outdated.id)
    if outdated.superseded_by == successor.id:
        outdated = release(ledger, tx, outdated)
    unsettle(ledger, tx, outdated, links)
    return outdated, successor


def unsettle(
    ledger: Ledger, tx: Transaction, memory: Memory, links: Sequence[Link], *, reason: str | None = None
) -> None:
    """Let proposals about a memory say what they said before anyone answered them."""
    for link in links:
        before = RELEASED if link.score is None else "open"  # without a score it was only said, never proposed
        if link.state != before:
            ledger.mark(tx, link, before)
            ledger.record(tx, memory, "reopened", reason=reason)
