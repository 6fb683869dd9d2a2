"""What happens to a memory after it was stored: superseded, forgotten, recovered, pruned.

Superseded, expired and deleted are three things that never mix. A memory is superseded while at least one of its
successors is not deleted, through any number of steps: deleting the last of a chain brings the one before it back,
recovering it hides that again, and deleting one in between changes nothing for those before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta

from scrubjay.engine import access
from scrubjay.engine.ledger import Ledger
from scrubjay.engine.names import free_path
from scrubjay.errors import Conflict, InvalidInput, NotFound
from scrubjay.memory import Forgotten, LinkKind, Memory, Status, random_suffix
from scrubjay.stores.base import Reads, Transaction

SUPERSEDES = frozenset({LinkKind.SUPERSEDES})
MAY_OUTDATE = frozenset({LinkKind.MAY_OUTDATE})
RELEASED = "released"  # of a link: it once said that one memory supersedes another
RETENTION_DAYS = 30  # how long a forgotten memory can be brought back


def supersede(
    ledger: Ledger, tx: Transaction, old: str, new: str, *, expected_version: int | None = None
) -> tuple[Memory, Memory]:
    """Mark `old`, if it is at the version expected, as outdated by `new`; both stay. Doing it twice changes nothing."""
    outdated, successor = ledger.changeable(tx, old), ledger.changeable(tx, new)
    check_version(outdated, expected_version)
    if outdated.id == successor.id:
        raise InvalidInput("A memory cannot supersede itself.", field="new_memory_id")
    if outdated.superseded_by == successor.id:
        return outdated, successor
    if outdated.id in successors(tx, successor):
        raise InvalidInput(
            f"Memory {successor.id} is already superseded by {outdated.id}, directly or through others.",
            field="new_memory_id",
        )
    outdated = outdate(ledger, tx, outdated, successor)
    successor = ledger.change(tx, replace(successor, supersedes=outdated.id), "supersedes", "supersedes")
    return outdated, successor


def outdate(
    ledger: Ledger, tx: Transaction, outdated: Memory, successor: Memory, *, reason: str | None = None
) -> Memory:
    """Let one memory be outdated by another that already says so."""
    for link in tx.links([outdated.id], kinds=SUPERSEDES):
        if link.target == outdated.id and link.state != RELEASED:
            ledger.mark(tx, link, "replaced")
    for link in tx.links([outdated.id], kinds=MAY_OUTDATE):
        if (link.source, link.target) == (successor.id, outdated.id):
            ledger.mark(tx, link, "superseded")
    ledger.link(tx, LinkKind.SUPERSEDES, successor, outdated, reason=reason)
    ended = outdated.valid_until or successor.valid_from or ledger.now()
    return ledger.change(
        tx,
        replace(outdated, superseded_by=successor.id, valid_until=ended),
        "superseded",
        "superseded_by",
        "valid_until",
    )


def release(ledger: Ledger, tx: Transaction, memory: Memory) -> Memory:
    """Take back that anything outdates a memory; it is true as long as it was before."""
    for link in tx.links([memory.id], kinds=SUPERSEDES):
        if link.target != memory.id or link.state == RELEASED:
            continue
        ledger.mark(tx, link, RELEASED)
        for successor in tx.get([link.source], access.EVERYTHING):
            if successor.supersedes == memory.id:
                before = newest_predecessor(tx, successor)
                ledger.change(tx, replace(successor, supersedes=before), "updated", "supersedes")
    former = next((one.memory for one in tx.versions(memory.id) if one.memory.superseded_by is None), memory)
    return ledger.change(
        tx,
        replace(memory, superseded_by=None, valid_until=former.valid_until),
        "released",
        "superseded_by",
        "valid_until",
    )


def successors(reads: Reads, memory: Memory) -> set[str]:
    """Everything that supersedes this memory, through any number of steps."""
    found: set[str] = set()
    front = [memory.id]
    while front:
        links = reads.links(front, kinds=SUPERSEDES)
        front = [
            link.source
            for link in links
            if link.target in front and link.source not in found and link.state != RELEASED
        ]
        found.update(front)
    return found


def forget(
    ledger: Ledger,
    tx: Transaction,
    id: str,
    *,
    hard: bool,
    reason: str | None,
    days: int = RETENTION_DAYS,
    cascade: bool = False,
    expected_version: int | None = None,
) -> Forgotten:
    """Delete softly, or erase for good; hard works on softly deleted ones too."""
    memory = ledger.changeable(tx, id, deleted=hard)
    check_version(memory, expected_version)
    links = [link for link in ledger.links_seen(tx, [memory.id]) if link.stands]
    forgotten = _forget_one(ledger, tx, memory, hard=hard, reason=reason, days=days)
    related = len(links)
    if cascade:
        ends = {end for link in links if link.given for end in (link.source, link.target)} - {memory.id}
        others = [
            other
            for other in tx.get(sorted(ends), access.audience_anywhere(ledger.caller))
            if other.status is not Status.DELETED and access.may_change(ledger.caller, other)
        ]
        ledger.check_free(tx, [other.id for other in others])
        for other in others:
            _forget_one(ledger, tx, other, hard=hard, reason=reason, days=days)
        related = len(others)
    backup = None
    if not hard:
        backup = f"backup_{random_suffix()}"
        tx.alias(backup, memory.id)
    return Forgotten(memory=forgotten, hard=hard, backup=backup, related=related)


def _forget_one(
    ledger: Ledger, tx: Transaction, memory: Memory, *, hard: bool, reason: str | None, days: int
) -> Memory:
    now = ledger.now()
    if memory.status is not Status.DELETED:
        memory = ledger.change(
            tx,
            replace(memory, status=Status.DELETED, deleted_at=now, recoverable_until=now + timedelta(days=days)),
            "forgotten",
            "status",
            reason=reason,
        )
        settle_predecessors(ledger, tx, memory)
    if hard:
        tx.purge(memory.id, at=now)
        ledger.record(tx, memory, "purged")
    return memory


def check_version(memory: Memory, expected: int | None) -> None:
    """:raises Conflict: if the memory is not at the version that a change expects"""
    if expected not in (None, memory.version):
        raise changed_meanwhile(memory)


def changed_meanwhile(memory: Memory) -> Conflict:
    return Conflict(
        f"Memory {memory.id} has changed meanwhile; it is at version {memory.version}.",
        hint="Read it again and repeat the change.",
        memory_id=memory.id,
        version=memory.version,
    )


def recover(ledger: Ledger, tx: Transaction, id: str) -> Memory:
    """Bring a softly deleted memory back while its date has not passed; a path taken meanwhile gets a number."""
    memory = ledger.changeable(tx, id, deleted=True)
    if memory.status is not Status.DELETED:
        raise Conflict(f"Memory {memory.id} is not deleted.", memory_id=memory.id)
    if memory.recoverable_until is not None and memory.recoverable_until < ledger.now():
        raise NotFound(f"Memory {memory.id} can no longer be recovered.", memory_id=memory.id)
    # What was put away before it was forgotten is archived again.
    away = memory.id in tx.archives([memory.id])
    status, path = (Status.ARCHIVED, memory.path) if away else (Status.ACTIVE, free_path(tx, memory))
    memory = ledger.change(
        tx,
        replace(memory, status=status, deleted_at=None, recoverable_until=None, path=path),
        "recovered",
        "status",
    )
    settle_predecessors(ledger, tx, memory)
    return memory


def settle_predecessors(ledger: Ledger, tx: Transaction, memory: Memory) -> None:
    """After a memory went or came back: point what it superseded at the newest successor still there, or at none."""
    for outdated in predecessors(tx, [memory.id]):
        if settle(tx, outdated):
            ledger.record(tx, outdated, "superseded", "superseded_by")


def predecessors(reads: Reads, ids: Iterable[str]) -> Iterator[Memory]:
    """What these supersede and, where that is deleted, what it had superseded in turn."""
    found = set(ids)
    front = found
    while front:
        links = reads.links(sorted(front), kinds=SUPERSEDES)
        front = {link.target for link in links if link.source in front} - found
        found |= front
        memories = reads.get(sorted(front), access.EVERYTHING)
        yield from memories
        front -= {memory.id for memory in memories if memory.status is not Status.DELETED}


def settle(tx: Transaction, memory: Memory) -> bool:
    """Let a memory say what its links say: whom it supersedes and by whom it is superseded; whether that was news.

    It follows from links and what they lead to, so it is no change of the memory: no version, no stamp, and no edit
    made in another store meanwhile loses to it.
    """
    found = (newest_predecessor(tx, memory), newest_successor(tx, memory))
    if found == (memory.supersedes, memory.superseded_by):
        return False
    tx.point(memory.id, supersedes=found[0], superseded_by=found[1])
    return True


def newest_predecessor(reads: Reads, memory: Memory) -> str | None:
    links = [
        link
        for link in reads.links([memory.id], kinds=SUPERSEDES)
        if link.source == memory.id and link.state != RELEASED
    ]
    return max(links, key=lambda link: (link.hlc, link.origin)).target if links else None


def newest_successor(reads: Reads, outdated: Memory) -> str | None:
    """The newest that supersedes a memory; in the place of those that are deleted stand their own successors."""
    found = {outdated.id}
    front = found
    while front:
        links = [
            link
            for link in reads.links(sorted(front), kinds=SUPERSEDES)
            if link.target in front and link.source not in found and link.state != RELEASED
        ]
        front = {link.source for link in links}
        found |= front
        alive = {
            memory.id
            for memory in reads.get(sorted(front), access.EVERYTHING)
            if memory.status is not Status.DELETED
        }
        if alive:
            links = [link for link in links if link.source in alive]
            return max(links, key=lambda link: (link.hlc, link.origin)).source
    return None
