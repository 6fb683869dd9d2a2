"""What was archived: read, shown, checked, and removed when it has expired."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.archive.marks import tier_of
from scrubjay.engine.archive.packing import ArchivedText, read_archive
from scrubjay.engine.cursors import pages
from scrubjay.engine.store import intake
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, Error, InvalidInput
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Archive, Memory, State, Status, Tier, Version
from scrubjay.values.search import Filter
from scrubjay.values.store import Job, JobStatus

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

BATCH = 500  # memories at a time
UNCLAIMED = timedelta(hours=1)  # how long an object may be announced before it counts as abandoned
AWAY = Filter(states=frozenset({State.ARCHIVED, State.DELETED}), expired=None)  # what may be archived


class Archives:
    """Archived memories at an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def with_texts(self, memories: Sequence[Memory], *, deep: bool, strict: bool) -> list[Memory]:
        """The memories with the texts of those that are archived. What cannot be read stays without, unless `strict`;
        the deep archive is opened only if asked for."""
        archives = self._engine.records.archives.get([memory.id for memory in memories if is_away(memory)])
        return [
            self._with_text(memory, archives[memory.id], deep=deep, strict=strict) if memory.id in archives else memory
            for memory in memories
        ]

    def _with_text(self, memory: Memory, archive: Archive, *, deep: bool, strict: bool) -> Memory:
        if archive.tier is Tier.DEEP_ARCHIVE and not deep:
            return memory
        try:
            return with_text(memory, self._read_kept(memory.id, archive).memory)
        except Error:
            if strict:
                raise
            return memory

    def history(self, memory: Memory) -> Sequence[Version]:
        """The earlier versions that were archived with a memory."""
        archive = self._engine.records.archives.get([memory.id]).get(memory.id)
        return () if archive is None else self._read_kept(memory.id, archive).versions

    def damaged(self, progress: Callable[[int], None] | None = None) -> Iterator[tuple[str, Error]]:
        """Every archived memory that could not be restored now, and why."""
        engine, looked = self._engine, 0
        for page in pages(engine.records, AWAY, access.EVERYTHING, now=engine.now(), size=BATCH):
            for name, archive in engine.records.archives.get([memory.id for memory in page]).items():
                try:
                    self._unpack(archive)
                except (ArchiveDamaged, ArchiveUnavailable) as error:
                    yield name, error
            looked += len(page)
            if progress:
                progress(looked)

    def remove_due_objects(self) -> int:
        """Remove objects whose memory is purged or restored, or was never written; how many.

        What cannot be removed just now is tried again by the housekeeper.
        """
        engine, removed = self._engine, list[str]()
        if engine.parts.archive is None:
            return 0
        with suppress(Error):
            for name in engine.records.archives.objects_due(engine.now(), BATCH):
                with suppress(Error):
                    engine.parts.archive.remove(name)
                    removed.append(name)
            if removed:
                with engine.records.writing() as tx:
                    tx.archives.objects_removed(removed)
        return len(removed)

    def _announce(self, names: Sequence[str]) -> None:
        """Before objects are written: what is not claimed by then is removed."""
        for tier in {tier_of(name) for name in names}:
            self._engine.parts.objects().set_up(tier)
        with self._engine.records.writing() as tx:
            tx.archives.announce_objects(names, due=self._engine.now() + UNCLAIMED)

    def _read_kept(self, id: str, archive: Archive) -> ArchivedText:
        """What an archive holds, for those who hold no memory: it may be moved to another place meanwhile."""
        try:
            return self._unpack(archive)
        except ArchiveDamaged:
            now = self._engine.records.archives.get([id]).get(id)
            if now is None or now.object == archive.object:
                raise
            return self._unpack(now)

    def _unpack(self, archive: Archive) -> ArchivedText:
        return read_archive(archive, None if archive.object is None else self._engine.parts.objects())

    def _record(self, tx: Transaction, kind: str, prefix: str, result: Mapping[str, Any]) -> Job:
        """Work that was done within its call, kept like other jobs so that its id can be asked about."""
        now = self._engine.now()
        job = self._engine.jobs.new(kind, {}, prefix=prefix)
        job = replace(job, status=JobStatus.COMPLETED, result=result, started_at=now, finished_at=now)
        tx.jobs.put(job)
        return job


def remove_due(engine: Engine) -> None:
    """See whether the archive's place is there; remove objects whose time has come."""
    if engine.parts.archive is None:
        return
    engine.parts.archive.look()
    if engine.records.archives.objects_due(engine.now(), 1):
        Archives(engine).remove_due_objects()


def is_away(memory: Memory) -> bool:
    """Whether a memory as read from the store may have its text elsewhere."""
    return memory.status is not Status.ACTIVE and not memory.content


def with_text(memory: Memory, kept: Memory) -> Memory:
    return replace(
        memory,
        content=kept.content,
        title=kept.title,
        path=kept.path,
        metadata=kept.metadata,
        detail=kept.detail,
    )


def check_count(ids: Sequence[str], most: int) -> None:
    if not 1 <= len(ids) <= most:
        raise InvalidInput(f"Give 1 to {most:,} memories, not {len(ids):,}.", field="memory_ids")
    for name in ids:
        intake.check_id(name)


def spent_ms(begun: float) -> int:
    return max(1, math.ceil((perf_counter() - begun) * 1000))
