"""What happens to a memory after it was stored: superseded, forgotten, recovered, pruned.

Superseded, expired and deleted are three things that never mix. What it means to be superseded: `supersession.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.holding import BATCH
from scrubjay.engine.lifecycle.supersession import (
    PLAIN,
    RELEASED,
    SUPERSEDES,
    newest_predecessor,
    newest_successor,
    own_end,
    plain,
    predecessors,
    said_given,
    settle,
    successors,
)
from scrubjay.engine.store.history import Ledger
from scrubjay.engine.store.names import free_path
from scrubjay.errors import Conflict, InvalidInput, NotFound
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.frozen import replace
from scrubjay.values.memory import AT_HAND, Forgotten, LinkKind, Memory, State, Status, random_suffix
from scrubjay.values.search import Filter

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

MAY_OUTDATE = frozenset({LinkKind.MAY_OUTDATE})
MOST_PRUNED = 100_000  # at once; what is left waits for the next time
UNDONE = "undone"  # the reason of what an undo does, by which the next one goes further back
RETENTION_DAYS = 30  # how long a forgotten memory can be brought back


def supersede(
    ledger: Ledger,
    tx: Transaction,
    old: str,
    new: str,
    *,
    expected_version: int | None = None,
    reason: str | None = None,
) -> tuple[Memory, Memory]:
    """Mark `old`, if it is at the version expected, as outdated by `new`; both stay. Doing it twice changes nothing."""
    outdated, successor = ledger.get_changeable(tx, old), ledger.get_changeable(tx, new)
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
    outdate(ledger, tx, outdated, successor, reason=reason)
    # Before it is settled: its former state, which the history keeps, did not supersede this one yet.
    named = outdated.id if access.as_open(outdated, successor) else plain(tx, successor).supersedes
    ledger.change(tx, replace(successor, supersedes=named), "supersedes", "supersedes")
    settle(tx, plain(tx, successor))
    return ledger.get_visible(tx, outdated.id), ledger.get_visible(tx, successor.id)


def outdate(
    ledger: Ledger, tx: Transaction, outdated: Memory, successor: Memory, *, reason: str | None = None
) -> Memory:
    """Let one memory be outdated by another that already says so, for everyone who may see both."""
    counts_for_all = access.as_open(successor, outdated)
    ended = own_end(tx, outdated)
    for link in tx.history.links([outdated.id], kinds=SUPERSEDES) if counts_for_all else ():
        if link.target == outdated.id and link.state != RELEASED:
            ledger.mark(tx, link, "replaced")
    for link in tx.history.links([outdated.id], kinds=MAY_OUTDATE):
        if (link.source, link.target) == (successor.id, outdated.id) and link.state != "kept":  # that was said before
            ledger.mark(tx, link, "superseded")
    ledger.link(tx, LinkKind.SUPERSEDES, successor, outdated, reason=reason)
    if not counts_for_all:  # for the others nothing has happened: no version, no event, no end of its time
        settle(tx, plain(tx, outdated))
        return ledger.get_visible(tx, outdated.id)
    outdated = said_given(outdated, ended is not None)
    if ended is None and (newer := newest_successor(tx, outdated)[0]) is not None:
        ended = newer.since
    return ledger.change(
        tx,
        replace(outdated, superseded_by=successor.id, valid_until=ended),
        "superseded",
        "superseded_by",
        "valid_until",
    )


def release(
    ledger: Ledger, tx: Transaction, memory: Memory, *, only: str | None = None, reason: str | None = None
) -> Memory:
    """Take back that anything the caller may see, or only this one, outdates a memory; it is true as long as it was
    before, and what was proposed about it is open again."""
    own = plain(tx, memory)
    for link in ledger.visible_links(tx, [memory.id]):
        if only not in (None, link.source):
            continue
        if link.kind is LinkKind.MAY_OUTDATE and link.target == memory.id and link.state == "superseded":
            ledger.mark(tx, link, "open")
        if link.kind is not LinkKind.SUPERSEDES or link.target != memory.id or link.state == RELEASED:
            continue
        ledger.mark(tx, link, RELEASED)
        for successor in tx.get([link.source], PLAIN):
            if successor.supersedes == memory.id:
                before = newest_predecessor(tx, successor)[0]
                ledger.change(tx, replace(successor, supersedes=before), "updated", "supersedes", reason=reason)
            settle(tx, plain(tx, successor))
    newer, _ = newest_successor(tx, own)
    if own.superseded_by != (name := newer.id if newer is not None else None):
        ended = own_end(tx, own) or (newer.since if newer is not None else None)
        ledger.change(
            tx,
            replace(own, superseded_by=name, valid_until=ended),
            "released",
            "superseded_by",
            "valid_until",
            reason=reason,
        )
    else:
        ledger.record(tx, own, "released", reason=reason)
    settle(tx, plain(tx, memory))
    return ledger.get_visible(tx, memory.id)


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
    """Soft-delete, or erase for good; hard works on soft-deleted ones too."""
    memory = ledger.get_changeable(tx, id, deleted=hard)
    check_version(memory, expected_version)
    if hard:
        access.check_erase(ledger.caller, memory)
    links = [link for link in ledger.visible_links(tx, [memory.id]) if link.stands]
    forgotten, back = _forget_one(ledger, tx, memory, hard=hard, reason=reason, days=days)
    related = len(links)
    if cascade:
        may = access.may_erase if hard else access.may_change
        ends = {end for link in links if link.given for end in (link.source, link.target)} - {memory.id}
        others = [
            other
            for other in tx.get(sorted(ends), access.audience_anywhere(ledger.caller))
            if other.status is not Status.DELETED and may(ledger.caller, other)
        ]
        ledger.check_free(tx, [other.id for other in others])
        for other in others:
            _forget_one(ledger, tx, other, hard=hard, reason=reason, days=days)
        related = len(others)
    backup = None
    if not hard:
        backup = f"backup_{random_suffix()}"
        tx.history.alias(backup, memory.id)
    found = tx.get(back, access.audience_anywhere(ledger.caller)) if back else ()
    current = tuple(one.id for one in found if one.state is State.ACTIVE)
    return Forgotten(memory=forgotten, hard=hard, backup=backup, related=related, current_again=current)


def _forget_one(
    ledger: Ledger, tx: Transaction, memory: Memory, *, hard: bool, reason: str | None, days: int
) -> tuple[Memory, list[str]]:
    """The memory as it is then, and what it superseded, if that is superseded by another now or by none."""
    back: list[str] = []
    now = ledger.now()
    if not access.may_erase(ledger.caller, memory):
        days = max(days, RETENTION_DAYS)  # a short time would be erasing it
    if memory.status is not Status.DELETED:
        memory = ledger.change(
            tx,
            replace(memory, status=Status.DELETED, deleted_at=now, recoverable_until=now + timedelta(days=days)),
            "forgotten",
            "status",
            reason=reason,
        )
        back = settle_predecessors(ledger, tx, memory)
    if hard:
        tx.purge(memory.id, at=now)
        ledger.record(tx, memory, "purged", reason=reason)  # reasons from before are erased as well
    return memory, back


def check_version(memory: Memory, expected: int | None) -> None:
    """:raises Conflict: if the memory is not at the version that a change expects"""
    if expected not in (None, memory.version):
        raise changed_meanwhile(memory)


def check_names_one(ids: Collection[str] | None, expected: int | None) -> None:
    """:raises InvalidInput: if a version is expected of several memories, or of those that a filter finds"""
    if expected is not None and (ids is None or len(set(ids)) != 1):
        raise InvalidInput(
            "An expected version (If-Match) needs exactly one memory id.",
            hint="Change one memory at a time, or do not send it.",
            field="If-Match",
        )


def changed_meanwhile(memory: Memory) -> Conflict:
    return Conflict(
        f"Memory {memory.id} has changed meanwhile: it is now at version {memory.version}.",
        hint="Read it again and repeat the change.",
        memory_id=memory.id,
        version=memory.version,
    )


def recover(
    ledger: Ledger, tx: Transaction, id: str, *, expected_version: int | None = None, reason: str | None = None
) -> Memory:
    """Restore a soft-deleted memory while its date has not passed; a path taken meanwhile gets a number."""
    memory = ledger.get_changeable(tx, id, deleted=True)
    check_version(memory, expected_version)
    if memory.status is not Status.DELETED:
        raise Conflict(f"Memory {memory.id} is not deleted.", memory_id=memory.id)
    if memory.recoverable_until is not None and memory.recoverable_until < ledger.now():
        raise NotFound(f"Memory {memory.id} can no longer be recovered.", memory_id=memory.id)
    # What was archived before it was forgotten is archived again.
    away = memory.id in tx.archives.get([memory.id])
    status, path = (Status.ARCHIVED, memory.path) if away else (Status.ACTIVE, free_path(tx, memory))
    memory = ledger.change(
        tx,
        replace(memory, status=status, deleted_at=None, recoverable_until=None, path=path),
        "recovered",
        "status",
        reason=reason,
    )
    settle_predecessors(ledger, tx, memory)
    return memory


def settle_predecessors(ledger: Ledger, tx: Transaction, memory: Memory) -> list[str]:
    """After a memory went or came back: point what it superseded at the newest successor still there, or at none; that
    is then true as long as it was before. The ids of those for which it made a difference."""
    back: list[str] = []
    for outdated in predecessors(tx, [memory.id]):
        if settle(tx, outdated):
            ledger.record(tx, outdated, "superseded", "superseded_by")
            ledger.ask_which_of_two(tx, plain(tx, outdated))
            back.append(outdated.id)
    return back


def prune(engine: Engine, *, dry_run: bool) -> Sequence[Memory]:
    """Soft-delete what has expired in an engine's spaces, a batch at a time."""
    if not dry_run and (kept := engine.earlier_result(tuple[Memory, ...])) is not None:
        return kept
    expired = Filter(states=AT_HAND, expired=True)
    audience, now = access.audience_in(engine.caller, engine.spaces), engine.now()
    found = engine.records.list(expired, audience, now=now, limit=MOST_PRUNED)
    pruned = [memory for memory in found if access.may_change(engine.caller, memory)]
    if dry_run:
        return pruned
    for start in range(0, len(pruned), BATCH):
        still = replace(expired, ids=frozenset(memory.id for memory in pruned[start : start + BATCH]))
        with engine.records.writing() as tx:
            for memory in tx.list(still, audience, now=now, limit=BATCH):
                forget(engine.ledger, tx, memory.id, hard=False, reason="expired")
    return engine.transact(tuple[Memory, ...], lambda _tx: tuple(pruned))
