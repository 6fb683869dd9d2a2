"""Bringing memories back, from cold storage or from being forgotten.

hold ─> read ─> check ─> embed ─> one transaction: text into the row, status; then the object goes
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.archive import prices
from scrubjay.engine.archive.archives import ArchivedText, Archives, check_count, spent_ms
from scrubjay.engine.holding import holding
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.store import embedding
from scrubjay.engine.store.history import TextVectors
from scrubjay.engine.store.names import free_path
from scrubjay.errors import AlreadyActive, ArchiveDamaged, NotFound, Unprocessable
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values import codec
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory, Status, Tier
from scrubjay.values.store import Job, JobStatus

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle

MOST = 100  # ids in one call
RESTORE_MS = 10  # what a memory is taken to need, before it was tried


class Mode(StrEnum):
    """How much of a memory a restore brings back."""

    FULL = "full"  # everything, and its vectors within the call
    METADATA_ONLY = "metadata_only"  # title, path and metadata; text and vectors stay away, and it stays archived
    EXPEDITED = "expedited"  # everything; the vectors follow in the background


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtBack:
    """One restored memory."""

    memory: str
    archive: str | None  # none if it was only forgotten
    at: datetime
    embedded: bool
    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAway:
    """A memory that could not be restored, because its archived copy is damaged."""

    memory: str
    archive: str
    code: str  # of the error
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The answer to a restore."""

    job: str
    status: JobStatus
    mode: Mode
    memories: tuple[BroughtBack, ...] = ()
    left_away: tuple[LeftAway, ...] = ()
    cost: float = 0.0
    remaining_ms: int = 0


class Restoring(Archives):
    """The verbs that bring back."""

    def restore(
        self,
        ids: Sequence[str],
        *,
        mode: Mode = Mode.FULL,
        embed: bool = True,
        reason: str | None = None,
        background: bool = False,
    ) -> Restored:
        """Make archived or forgotten memories active again: all of them but those whose archived copy is damaged.

        :raises AlreadyActive: if one is; nothing has changed then
        :raises ArchiveDamaged: if none can be read any more
        :raises ArchiveUnavailable: if the place of one cannot be reached just now
        """
        engine = self._engine
        check_count(ids, MOST)
        if background and (begun := engine.earlier_result(Job)) is not None:
            return restored_by(engine.jobs.get(begun.id), mode, ids)
        if not background and (kept := engine.earlier_result(Restored)) is not None:
            return kept
        lifecycle.check_names_one(ids, engine.expected_version)
        memories = [self._restorable(name, mode) for name in ids]
        for memory in memories:
            lifecycle.check_version(memory, engine.expected_version)
        names = list(dict.fromkeys(memory.id for memory in memories))
        if background:
            return self._restore_later(names, mode, embed=embed, reason=reason)
        with holding(engine, names) as held:
            return self._restore(held, names, mode, embed=embed, reason=reason)

    def _restorable(self, id: str, mode: Mode) -> Memory:
        memory = self._engine.ledger.get_changeable(self._engine.records, id, deleted=True)
        if memory.status is Status.ACTIVE:
            raise AlreadyActive(f"Memory {memory.id} is already active.", memory_id=memory.id)
        if memory.recoverable_until is not None and memory.recoverable_until < self._engine.now():
            raise NotFound(f"Memory {memory.id} can no longer be recovered.", memory_id=memory.id)
        if mode is Mode.METADATA_ONLY and memory.status is Status.DELETED:
            raise Unprocessable(
                f"Memory {memory.id} is forgotten, not archived.", hint="Restore it fully.", memory_id=memory.id
            )
        return memory

    def _restore_later(self, ids: Sequence[str], mode: Mode, *, embed: bool, reason: str | None) -> Restored:
        arguments = {"ids": list(ids), "mode": str(mode), "embed": embed, "reason": reason}
        return restored_by(self._engine.jobs.start("restore", arguments, prefix="restore_job"), mode, ids)

    def _restore(self, held: Engine, ids: Sequence[str], mode: Mode, *, embed: bool, reason: str | None) -> Restored:
        engine = self._engine
        archives = engine.records.archives.get(ids)
        work: list[tuple[str, ArchivedText | None, TextVectors | None, float]] = []
        damaged: list[LeftAway] = []
        for number, name in enumerate(ids):
            begun = perf_counter()
            try:
                kept = self._unpack(archives[name]) if name in archives else None
            except ArchiveDamaged as error:
                damaged.append(LeftAway(memory=name, archive=archives[name].id, code=error.code, why=error.message))
                if len(damaged) == len(ids):
                    names = ", ".join(ids)
                    raise ArchiveDamaged(f"{error.message} Not restored: {names}.", memory_id=ids[0]) from error
                continue
            text = self._text(name, kept, mode, embed=embed)
            work.append((name, kept, text, perf_counter() - begun))
            engine.progress(number + 1, len(ids), "restoring")
        moved = sum(archives[name].size for name, *_ in work if name in archives)
        tier = next((archive.tier for archive in archives.values()), Tier.COLD)

        def write(tx: Transaction) -> Restored:
            done = []
            for name, kept, text, seconds in work:
                begun = perf_counter() - seconds
                bring_back(held, tx, name, kept=kept, text=text, mode=mode, why=reason)
                done.append(
                    BroughtBack(
                        memory=name,
                        archive=archives[name].id if name in archives else None,
                        at=engine.now(),
                        embedded=bool(text is not None and text.vectors),
                        milliseconds=spent_ms(begun),
                    )
                )
            job = self._record(tx, "restore", "restore_job", {"mode": str(mode), "restored": len(done)})
            return Restored(
                job=job.id,
                status=JobStatus.COMPLETED,
                mode=mode,
                memories=tuple(done),
                left_away=tuple(damaged),
                cost=prices.transfer(engine.parts.prices, tier, "out", moved),
            )

        result = engine.transact(Restored, write)
        engine.parts.backlog.wake()
        self.remove_due_objects()
        return result

    def _text(self, id: str, kept: ArchivedText | None, mode: Mode, *, embed: bool) -> TextVectors | None:
        """New vectors for a text that comes back; None if it has kept its own, or stays away."""
        if kept is None or mode is Mode.METADATA_ONLY or self._engine.records.vectors([id]):
            return None
        if not embed:
            return TextVectors(vectors=(), parts=0)
        if mode is Mode.EXPEDITED:
            return TextVectors(vectors=(), parts=len(self._engine.parts.embedding.parts_of(kept.memory)))
        return embedding.embed(self._engine, kept.memory)[0]


def restored_by(job: Job, mode: Mode, ids: Sequence[str]) -> Restored:
    """What can be said while a job does it."""
    remaining = 0 if job.finished else RESTORE_MS * len(set(ids))
    return Restored(job=job.id, status=job.status, mode=mode, remaining_ms=remaining)


def bring_back(
    held: Engine,
    tx: Transaction,
    id: str,
    *,
    kept: ArchivedText | None,
    text: TextVectors | None,
    mode: Mode,
    why: str | None,
) -> None:
    """Write one restored memory, with its archived part and new vectors."""
    ledger = held.ledger
    memory = ledger.get_changeable(tx, id, deleted=True)
    if mode is Mode.METADATA_ONLY:
        if kept is not None:
            tx.describe(kept.memory)
        ledger.record(tx, memory, "restored", "metadata", reason=why)
        return
    if kept is not None:
        memory = tx.bring_back(kept.memory, kept.versions, at=held.now())
    deleted = memory.status is Status.DELETED
    active = replace(memory, status=Status.ACTIVE, deleted_at=None, recoverable_until=None, path=free_path(tx, memory))
    memory = ledger.change(tx, active, "restored", "status", reason=why, text=text)
    if text is None:  # it has kept its vectors
        ledger.judge_later(tx, memory)
    if deleted:
        lifecycle.settle_predecessors(ledger, tx, memory)


def run_restore(engine: Engine, arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    """The job `restore`. Done twice it finds nothing left to do: what is active already was restored by the first."""
    mode, at = Mode(arguments["mode"]), engine.now()
    ids = [
        memory.id
        for memory in engine.records.get(arguments["ids"], access.audience_anywhere(engine.caller))
        if memory.status is not Status.ACTIVE
    ]
    if ids:
        restored = engine.cold_storage.restore(ids, mode=mode, embed=arguments["embed"], reason=arguments["reason"])
    else:
        there = (
            BroughtBack(memory=name, archive=None, at=at, embedded=False, milliseconds=0) for name in arguments["ids"]
        )
        restored = Restored(job=handle.id, status=JobStatus.COMPLETED, mode=mode, memories=tuple(there))
    result: Mapping[str, Any] = codec.plain(replace(restored, job=handle.id))  # what its start was answered with
    return result
