"""Rows as values, and back: memories field by field, and what stands beside them by the types of its fields. Every
backend keeps the same things in its columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any, TypeVar, cast

from scrubjay.errors import Conflict
from scrubjay.stores.promises.memories import Change
from scrubjay.stores.promises.sync import Aside
from scrubjay.text.letters import topic_key
from scrubjay.values import codec
from scrubjay.values.callers import CredentialKind, Provenance, Role
from scrubjay.values.frozen import replace
from scrubjay.values.memory import (
    AccessLevel,
    Category,
    Context,
    FormerPhrases,
    Kind,
    LinkKind,
    Memory,
    Sketch,
    Source,
    Status,
    Tier,
    Version,
    text_of,
)
from scrubjay.values.store import Event, Speaker
from scrubjay.values.times import milliseconds, moment

Row = Sequence[Any]
Value = TypeVar("Value")

# What a memory is read from, in the order `memory_of` takes it apart.
FIELDS = (
    "seq", "id", "space", "kind", "content", "title", "path", "topic", "category", "tags", "auto_tags", "importance",
    "confidence", "source", "access_level", "user_id", "conversation_id", "session_id", "metadata", "detail", "flags",
    "also", "client", "caller", "transport", "dialect", "status", "supersedes", "superseded_by", "expires_at",
    "valid_from", "valid_until", "verified_at", "deleted_at", "recoverable_until", "created_at", "updated_at",
    "accessed_at", "access_count", "version", "hlc", "origin",
)  # fmt: skip


def memory_of(row: Row) -> Memory:
    (
        seq, key, space, kind, content, title, path, topic, category, tags, auto_tags, importance, confidence, source,
        access_level, user_id, conversation_id, session_id, metadata, detail, flags, also, client, caller, transport,
        dialect, status, supersedes, superseded_by, expires_at, valid_from, valid_until, verified_at, deleted_at,
        recoverable_until, created_at, updated_at, accessed_at, access_count, version, hlc, origin,
    ) = row  # fmt: skip
    return Memory(
        id=key,
        space=space,
        kind=_kind[kind],
        content=content,
        title=title,
        path=path,
        topic=topic,
        category=_category[category],
        tags=strings(tags),
        auto_tags=strings(auto_tags),
        importance=importance,
        confidence=confidence,
        source=_source[source],
        access_level=_access_level[access_level],
        context=_context(user_id, conversation_id, session_id),
        metadata={} if metadata == "{}" else json.loads(metadata),
        detail={} if detail == "{}" else json.loads(detail),
        flags=strings(flags),
        also=strings(also or "[]"),  # versions from before it have none
        provenance=_provenance(client, caller, transport, dialect),
        status=_status[status],
        supersedes=supersedes,
        superseded_by=superseded_by,
        expires_at=None if expires_at is None else moment(expires_at),
        valid_from=None if valid_from is None else moment(valid_from),
        valid_until=None if valid_until is None else moment(valid_until),
        verified_at=None if verified_at is None else moment(verified_at),
        deleted_at=None if deleted_at is None else moment(deleted_at),
        recoverable_until=None if recoverable_until is None else moment(recoverable_until),
        created_at=moment(created_at),
        updated_at=moment(updated_at),
        accessed_at=moment(accessed_at),
        access_count=access_count,
        version=version,
        hlc=hlc,
        origin=origin,
        seq=seq,
    )


class _Made(dict[str, Value]):
    """What many memories have in common, made once: a look into a dictionary is the quickest of all."""

    def __init__(self, make: Callable[[str], Value]) -> None:
        self._make = make

    def __missing__(self, column: str) -> Value:
        made = self[column] = self._make(column)
        return made


_kind, _category, _source = _Made(Kind), _Made(Category), _Made(Source)
_access_level, _status = _Made(AccessLevel), _Made(Status)


@lru_cache(1_000)
def _context(user_id: str, conversation_id: str | None, session_id: str | None) -> Context:
    return Context(user_id=user_id, conversation_id=conversation_id, session_id=session_id)


@lru_cache(1_000)
def _provenance(client: str, caller: str, transport: str, dialect: str | None) -> Provenance:
    return Provenance(client=client, caller=caller, transport=transport, dialect=dialect)


def columns_of(memory: Memory) -> dict[str, Any]:
    """The columns of `memories` that follow from the memory, but who may see it; spaces and users by name."""
    return {
        "id": memory.id,
        "space": memory.space,
        "user_id": memory.context.user_id,
        "conversation_id": memory.context.conversation_id,
        "session_id": memory.context.session_id,
        "kind": memory.kind,
        "content": memory.content,
        "content_length": len(memory.content),
        "title": memory.title,
        "path": memory.path,
        "topic": memory.topic,
        "topic_key": None if memory.topic is None else topic_key(memory.topic),
        "category": memory.category,
        "tags": as_json(memory.tags),
        "auto_tags": as_json(memory.auto_tags),
        "importance": float(memory.importance),
        "confidence": float(memory.confidence),
        "source": memory.source,
        "access_level": memory.access_level,
        "metadata": as_json(memory.metadata),
        "detail": as_json(memory.detail),
        "flags": as_json(memory.flags),
        "also": as_json(memory.also),
        "client": memory.provenance.client,
        "caller": memory.provenance.caller,
        "transport": memory.provenance.transport,
        "dialect": memory.provenance.dialect,
        "status": memory.status,
        "state": int(memory.state),
        "supersedes": memory.supersedes,
        "superseded_by": memory.superseded_by,
        "expires_at": maybe_milliseconds(memory.expires_at),
        "valid_from": maybe_milliseconds(memory.valid_from),
        "valid_until": maybe_milliseconds(memory.valid_until),
        "verified_at": maybe_milliseconds(memory.verified_at),
        "deleted_at": maybe_milliseconds(memory.deleted_at),
        "recoverable_until": maybe_milliseconds(memory.recoverable_until),
        "created_at": milliseconds(memory.created_at),
        "updated_at": milliseconds(memory.updated_at),
        "version": memory.version,
        "hlc": memory.hlc,
        "origin": memory.origin,
        "content_hash": content_hash(memory),
    }


def first_columns(memory: Memory) -> dict[str, Any]:
    """What only a new memory's row is given: an imported one brings its reads along; later ones are counted here."""
    return {
        "text_version": memory.version,
        "access_count": memory.access_count,
        "accessed_at": milliseconds(memory.accessed_at),
    }


def content_hash(memory: Memory) -> bytes:
    return sha256(memory.text.encode()).digest()


def snapshot_of(row: Row) -> str:
    """A row as it was, by field, so that a later schema still reads it."""
    return as_json(dict(zip(FIELDS, row, strict=True)))


def snapshot_of_memory(memory: Memory) -> str:
    """What `snapshot_of` would have made of this memory's row."""
    columns = columns_of(memory) | {
        "seq": memory.seq,
        "accessed_at": milliseconds(memory.accessed_at),
        "access_count": memory.access_count,
    }
    return snapshot_of([columns[name] for name in FIELDS])


def memory_of_snapshot(snapshot: str) -> Memory:
    fields = json.loads(snapshot)  # stores of 465e9b5 wrote `user` for `user_id`
    return memory_of([fields.get(name, fields.get(name.removesuffix("_id"))) for name in FIELDS])


def version_of(row: Row) -> Version:
    version, snapshot, at, user, reason = row
    return Version(
        id=version,
        memory=memory_of_snapshot(snapshot),
        replaced_at=moment(at),
        replaced_by=user,
        reason=reason,
    )


def former_phrases_of(column: str) -> tuple[FormerPhrases, ...]:
    return tuple(codec.build_value(FormerPhrases, one) for one in json.loads(column))


def rephrase(known: Memory, memory: Memory, change: Change, former: Sequence[FormerPhrases]) -> str:
    """The column of all phrases that a memory had, once it takes those of another state of the same version."""
    last = FormerPhrases(
        also=known.also, replaced_at=change.at, replaced_by=change.user, reason=change.reason, hlc=memory.hlc
    )
    return codec.write_json([*former, last] if known.also != memory.also else former)


def check_next(memory: Memory, version: int, *, purged: bool, same: bool = False) -> None:
    """:raises Conflict: unless a memory is the next version of the one that is stored, or the same one"""
    if memory.version == 1 and not same:
        raise Conflict(f"The id {memory.id!r} is taken.")
    if version != memory.version - (not same) or purged:
        raise Conflict(
            f"Memory {memory.id} has changed since it was read.",
            hint="Read it again and repeat the change.",
            version=version,
        )


SKETCHED = ("id", "content", "detail", "category", "created_at", "seq", "superseded_by")


def sketch_of(row: Row) -> Sketch:
    key, content, detail, category, created_at, seq, superseded_by = row
    text = text_of(content, _object(detail))
    return Sketch(key, text, Category(category), moment(created_at), seq, superseded_by)


def without_asides(memory: Memory, asides: Iterable[Aside]) -> Memory:
    """A memory as its row has it: without what it says of others to some only."""
    named = {(one.role, one.other) for one in asides}
    return replace(
        memory,
        supersedes=None if ("supersedes", memory.supersedes) in named else memory.supersedes,
        superseded_by=None if ("superseded_by", memory.superseded_by) in named else memory.superseded_by,
    )


def event_of(space: str, row: Row) -> Event:
    number, at, action, memory, fields, user, client, caller, transport, dialect, reason = row
    return Event(
        space=space,
        number=number,
        at=moment(at),
        action=action,
        memory=memory,
        fields=strings(fields),
        user=user,
        provenance=Provenance(client=client, caller=caller, transport=transport, dialect=dialect),
        reason=reason,
    )


def maybe_moment(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


def maybe_milliseconds(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)


# By the type of a field: how it is read from its column. What is kept as it is has none.
READ: dict[str, Callable[[Any], Any] | None] = {
    "datetime": moment,
    "datetime | None": maybe_moment,
    "bool": bool,
    "tuple[str, ...] | None": lambda text: None if text is None else tuple(json.loads(text)),
    **dict.fromkeys(("str", "str | None", "int", "float | None", "bytes", "bytes | None")),
    **{kind.__name__: kind for kind in (AccessLevel, CredentialKind, LinkKind, Role, Speaker, Tier)},
}


@cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    return tuple((name, READ[str(field.type)]) for name, field in kind.__dataclass_fields__.items())


def value_of(kind: type[Value], row: Row) -> Value:
    """The value whose fields are these columns, in their order."""
    pairs = zip(_readers(cast("Hashable", kind)), row, strict=True)
    return kind(**{name: column if read is None else read(column) for (name, read), column in pairs})


def columns_of_value(value: Any) -> dict[str, Any]:
    """What to write of a value, by the names of its fields."""
    columns = {name: getattr(value, name) for name in value.__dataclass_fields__}
    for name, field in columns.items():
        if isinstance(field, datetime):
            columns[name] = milliseconds(field)
        elif isinstance(field, tuple):
            columns[name] = as_json(field)
    return columns


def as_json(value: Mapping[str, Any] | Iterable[Any]) -> str:
    if value == ():  # as most are
        return "[]"
    if value == {}:
        return "{}"
    if not isinstance(value, dict | tuple | list | Mapping):  # the first three are recognised fastest
        value = tuple(value)
    return _written(value) if value else "{}" if isinstance(value, dict | Mapping) else "[]"


_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _object(text: str) -> dict[str, Any]:
    return {} if text == "{}" else json.loads(text)


@lru_cache(1_000)  # many memories have the same tags
def strings(text: str) -> tuple[str, ...]:
    return () if text == "[]" else tuple(json.loads(text))


# What leaves the row. The length stays: lists are sorted by it.
EMPTY = {"content": "", "title": "", "path": "", "metadata": "{}", "detail": "{}", "content_hash": None}
KEPT = ("name", "end_given")  # of the detail


def empty_row(memory: Memory) -> dict[str, Any]:
    """What is left of a row whose text is archived: the name by which others speak of it, and whose its end is."""
    return EMPTY | {"detail": as_json({name: memory.detail[name] for name in KEPT if name in memory.detail})}
