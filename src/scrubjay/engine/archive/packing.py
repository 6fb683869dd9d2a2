"""A memory with its history as compressed bytes, and back.

    scrubjay-archive 1\\n  zstd frame of JSON {"memory": {…}, "versions": [{…}, …]}     an object elsewhere
    1                     zstd frame of the same, made with DICTIONARY                 a row of the store

An object that is found without a store can still be read: cut off the first line, then `zstd -d`.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrubjay.engine.lifecycle import publishing
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable
from scrubjay.values import codec
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Archive, Memory, Tier, Version

if TYPE_CHECKING:
    from scrubjay.archives.base import Objects

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
