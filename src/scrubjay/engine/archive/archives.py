"""What was archived: read, shown, checked, and removed when it has expired. A memory with its history is packed as

    scrubjay-archive 1\\n  zstd frame of JSON {"memory": {…}, "versions": [{…}, …]}     an object elsewhere
    1                     zstd frame of the same, made with DICTIONARY                 a row of the store

An object that is found without a store can still be read: cut off the first line, then `zstd -d`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache
from hashlib import sha256
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.archive.marks import tier_of
from scrubjay.engine.cursors import pages
from scrubjay.engine.holding import PAGE
from scrubjay.engine.lifecycle import publishing
from scrubjay.engine.store import intake
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, Error, InvalidInput
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values import codec
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Archive, Memory, State, Status, Tier, Version
from scrubjay.values.search import Filter
from scrubjay.values.store import Job, JobStatus

if TYPE_CHECKING:
    from scrubjay.archives.base import Objects
    from scrubjay.engine.engine import Engine

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
        for page in pages(engine.records, AWAY, access.EVERYTHING, now=engine.now(), size=PAGE):
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
            for name in engine.records.archives.objects_due(engine.now(), PAGE):
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


HEADER = b"scrubjay-archive 1\n"
ROW = b"1"
LEVELS = {Tier.COLD: 9, Tier.GLACIER: 15, Tier.DEEP_ARCHIVE: 19}
MAX_BYTES = 1_000_000_000  # unpacked; what claims more is damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedText:
    """Everything of a memory that leaves the hot tables, and enough besides to read it without a store."""

    memory: Memory
    versions: tuple[Version, ...] = ()


def pack(kept: ArchivedText, tier: Tier) -> bytes:
    zstd = _zstd()
    text = json.dumps(codec.plain(kept), ensure_ascii=False, separators=(",", ":")).encode()
    if tier is Tier.COLD:
        return ROW + bytes(zstd.compress(text, LEVELS[tier], zstd_dict=_dictionary()))
    return HEADER + bytes(zstd.compress(text, LEVELS[tier]))


def unpack(data: bytes, *, checksum: bytes) -> ArchivedText:
    """:raises ArchiveDamaged: if it is not what was packed"""
    zstd = _zstd()
    if sha256(data).digest() != checksum:
        raise ArchiveDamaged("The archived copy is damaged.")
    try:
        if data.startswith(HEADER):
            frame, reader = data[len(HEADER) :], zstd.ZstdDecompressor()
        else:
            frame, reader = data[len(ROW) :], zstd.ZstdDecompressor(zstd_dict=_dictionary())
        text = reader.decompress(frame, MAX_BYTES).decode()
        if not reader.eof:
            raise ValueError("The frame is cut off, or holds more than any archive may")
        return codec.read(ArchivedText, text)
    except (zstd.ZstdError, EOFError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise ArchiveDamaged("This scrubjay cannot read the archived copy.") from error


def read_archive(archive: Archive, objects: Objects | None) -> ArchivedText:
    """What an archive holds, be it in the store or in a place for objects.

    :raises ArchiveUnavailable: if there is no such place, or it cannot be reached
    :raises ArchiveDamaged: as :func:`unpacked`
    """
    data = archive.packed
    if archive.object is not None:
        if objects is None:
            raise ArchiveUnavailable
        data = objects.read(archive.object)
    kept = unpack(data or b"", checksum=archive.checksum)
    # What was packed by an earlier program may have been published with traces of what it said before.
    memory, *former = publishing.clean_versions([kept.memory, *(one.memory for one in kept.versions)])
    versions = tuple(replace(one, memory=state) for one, state in zip(kept.versions, former, strict=True))
    return ArchivedText(memory=memory, versions=versions)


def _zstd() -> Any:
    """Part of Python from 3.14 on. Imported only for what is archived."""
    try:
        return import_module("compression.zstd")
    except ImportError:
        return import_module("backports.zstd")


@cache
def _dictionary() -> Any:
    return _zstd().ZstdDict(DICTIONARY.encode(), is_raw=True)


# What every packed memory says as well: a short one takes less than half of the room for it. Never to be changed, or
# nothing that was packed with it can be read.
DICTIONARY = (
    '{"versions":[{"id":"ver_","memory":{"id":"mem_a1b2c3d4e5f6","space":"default","kind":"memory","conte'
    'nt":"User is learning Spanish and wants conversational practice in the evening, mostly on weekdays; '
    'she prefers podcasts to grammar books.","title":"User is learning Spanish and wants conversational .'
    '..","path":"inbox/user-is-learning-spanish-and-d4e5f6","category":"preference","tags":["language","l'
    'earning"],"auto_tags":["spanish","podcasts"],"importance":0.62,"confidence":1.0,"source":"extracted"'
    ',"access_level":"shared","context":{"user_id":"local"},"metadata":{},"detail":{},"flags":[],"provena'
    'nce":{"client":"library","caller":"local","transport":"library"},"status":"active","created_at":"202'
    '6-11-15T10:00:00.123Z","updated_at":"2026-11-15T10:00:00.123Z","accessed_at":"2026-11-15T10:00:00.12'
    '3Z","access_count":0,"version":1,"hlc":117000000000000000,"origin":"a1b2c3d4e5f60718","seq":12345},"'
    'replaced_at":"2026-11-15T10:00:00.123Z","replaced_by":"local"}]}'
)
