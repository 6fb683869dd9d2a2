"""What a store holds beside memories: spaces, events, conversations, jobs, the recall log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any

from scrubjay.values.callers import Caller, Provenance
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import AccessLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change: who did what to which memory. Ids and field names only, never content."""

    space: str
    number: int = 0  # counts per space, without gaps; assigned by the store
    at: datetime
    action: str  # stored, updated, superseded, forgotten, purged, restored, pruned …
    memory: str | None = None
    fields: tuple[str, ...] = ()
    user: str
    provenance: Provenance = Provenance()
    reason: str | None = None
    credential: str | None = None  # with which it was done, for the audit; feeds leave it out


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    name: str
    title: str | None = None  # for people, if it is more than the name
    description: str | None = None
    created_at: datetime
    memories: int = 0  # active ones that the caller can see, as a plain list shows them
    superseded: int = 0  # that it can see as well, which some lists include


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What decisions were made about."""

    name: str  # as the newest decision spells it
    decisions: int
    latest_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Who received which memories: one row of the recall log."""

    at: datetime
    space: str
    user: str
    client: str
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOperation:
    """A bulk operation: a change to many memories at once, which can be undone at once."""

    id: str
    action: str
    user: str
    at: datetime
    reason: str | None = None
    memories: tuple[str, ...] = ()


class JobStatus(StrEnum):
    WAITING = "waiting"  # for a running server to pick it up, for the first time or again
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work that outlives the call that started it. Has ids and numbers, never a memory's text."""

    id: str
    kind: str
    caller: Caller  # who it runs for, with exactly their rights
    spaces: tuple[str, ...]
    provenance: Provenance = Provenance()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)  # what is needed to resume it
    status: JobStatus = JobStatus.WAITING
    done: int = 0
    total: int | None = None  # None: not known
    note: str = ""  # what it is doing
    cancelling: bool = False  # it was asked to stop
    attempts: int = 0  # how often it was started
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None  # code, message, hint, details
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def finished(self) -> bool:
        return self.status not in (JobStatus.WAITING, JobStatus.RUNNING)


class Speaker(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation in a space. Ids are per space: another space may have one with the same id."""

    id: str
    space: str
    title: str | None = None
    system_prompt: str | None = None
    created_at: datetime
    updated_at: datetime
    messages: int = 0
    user_id: str | None = None  # who started it; None: not known
    access_level: AccessLevel = AccessLevel.SHARED


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: str
    role: Speaker
    content: str
    reply_to: str | None = None  # the message that this one answers
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A memory that was injected into a conversation, active or paused."""

    memory: str
    active: bool = True
    injected_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A question to a language model."""

    system: str
    text: str
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag, and how many memories have it."""

    tag: str
    memories: int
