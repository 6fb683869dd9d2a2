"""What may be outdated, and what a person says about it: superseded, or both are true."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.engine.conflicts.weights import SURE
from scrubjay.engine.lifecycle.lifecycle import MAY_OUTDATE, check_version, release, supersede
from scrubjay.engine.lifecycle.supersession import RELEASED
from scrubjay.engine.store.history import Ledger
from scrubjay.errors import Conflict, InvalidInput, NotFound
from scrubjay.stores.promises.memories import Reads, Transaction
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Link, LinkKind, Memory, OpenConflict, Relation, State

SAME = "says the same"


def open_conflicts(
    reads: Reads, audience: Audience, *, now: datetime, limit: int, offset: int
) -> Sequence[OpenConflict]:
    """Unsettled proposals between two memories that the audience sees and that both still count, newest first."""
    return _pairs(reads, audience, reads.history.open_conflicts(audience, now=now, limit=limit, offset=offset))


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


def doubts(reads: Reads, audience: Audience, memories: Sequence[Memory], *, now: datetime) -> dict[str, str]:
    """By the id of an older memory, the newer one that very likely outdates it: unsettled, seen, and still counting."""
    current = {memory.id for memory in memories if memory.state is State.ACTIVE}
    links = [
        link
        for link in (reads.history.links(sorted(current), kinds=MAY_OUTDATE) if current else ())
        if link.target in current and link.state == "open" and (link.score or 0.0) >= SURE
    ]
    found = reads.get([link.source for link in links], audience) if links else ()
    newer = {one.id for one in found if one.state is State.ACTIVE and not one.expired(now)}
    return {link.target: link.source for link in links if link.source in newer}


def settle(
    ledger: Ledger, tx: Transaction, *, old: str, new: str, keep: bool, expected_version: int | None = None
) -> tuple[Memory, Memory]:
    """Say of a proposal that the newer memory supersedes the older, if that is at the version expected, or that both
    are kept."""
    outdated, successor = ledger.changeable(tx, old), ledger.seen(tx, new)
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
    pair = ledger.changeable(tx, old), ledger.seen(tx, new)
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
    outdated, successor = ledger.changeable(tx, old), ledger.seen(tx, new)
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


def unsettle(ledger: Ledger, tx: Transaction, memory: Memory, links: Sequence[Link]) -> None:
    """Let proposals about a memory say what they said before anyone answered them."""
    for link in links:
        before = RELEASED if link.score is None else "open"  # without a score it was only said, never proposed
        if link.state != before:
            ledger.mark(tx, link, before)
            ledger.record(tx, memory, "reopened")
