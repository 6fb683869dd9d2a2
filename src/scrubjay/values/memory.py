"""What a memory is, what is linked with it and what it was before; and what comes back from a change.

Frozen values without behaviour beyond their own arithmetic, as in all of `values`. Times are aware datetimes in UTC.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

from scrubjay.values.callers import LOCAL_USER, Provenance
from scrubjay.values.frozen import dataclass

MAX_CONTENT = 50_000  # code points, in every dialect
MAX_PHRASES, MAX_PHRASE = 6, 80  # under which a memory may be looked for; characters of each


class Kind(StrEnum):
    MEMORY = "memory"
    DECISION = "decision"
    CHECKPOINT = "checkpoint"


class Outcome(StrEnum):
    """What became of a decision."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"


class Category(StrEnum):
    FACT = "fact"
    PREFERENCE = "preference"
    INSTRUCTION = "instruction"
    CONTEXT = "context"
    RELATIONSHIP = "relationship"
    SKILL = "skill"
    GOAL = "goal"
    EVENT = "event"
    CUSTOM = "custom"


class Source(StrEnum):
    EXPLICIT = "explicit"  # someone asked for it to be remembered
    EXTRACTED = "extracted"  # a model thought it worth remembering


class AccessLevel(StrEnum):
    PRIVATE = "private"  # its user and owners
    SHARED = "shared"  # everyone granted the space
    PUBLIC = "public"  # also authenticated callers without a grant, read-only


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    DELETED = "deleted"


class State(IntEnum):
    """Status and supersession as one number: what filters look at. Numbers are stored; never renumber."""

    ACTIVE = 0
    SUPERSEDED = 1
    ARCHIVED = 2
    DELETED = 3
    PURGED = 4  # erased for good; only a tombstone remains


AT_HAND = frozenset({State.ACTIVE, State.SUPERSEDED})  # of what is neither archived nor deleted


class Tier(StrEnum):
    """Where an archived memory's text is, from near to far."""

    COLD = "cold"  # in the store itself, packed
    GLACIER = "glacier"  # an object in the archive folder; still shown by lists
    DEEP_ARCHIVE = "deep_archive"  # likewise, but only opened by a restore


class LinkKind(StrEnum):
    RELATED = "related"
    SUPERSEDES = "supersedes"
    MAY_OUTDATE = "may_outdate"
    BUILDS_ON = "builds_on"
    DEBATES = "debates"
    SYNTHESIZES = "synthesizes"
    CONSOLIDATED_FROM = "consolidated_from"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where a memory was created."""

    user_id: str = LOCAL_USER  # whose memory it is
    conversation_id: str | None = None
    session_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """What a caller hands in. Everything but the content may be left out; intake fills the rest."""

    content: str
    kind: Kind = Kind.MEMORY
    title: str | None = None
    path: str | None = None
    topic: str | None = None
    category: Category | None = None
    tags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # phrases under which someone may look for it
    importance: float | None = None
    confidence: float = 1.0
    source: Source = Source.EXTRACTED
    access_level: AccessLevel = AccessLevel.SHARED
    user_id: str | None = None
    conversation_id: str | None = None
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    related: tuple[str, ...] = ()  # memories to link it to
    find_related: bool = False  # link it to the nearest ones too
    unique: bool = False  # refuse it if its user already has the same text
    as_file: bool = False  # keep it as a file too, where its space has a folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One remembered thing, as it is now."""

    id: str
    space: str
    kind: Kind = Kind.MEMORY
    content: str
    title: str
    path: str
    topic: str | None = None
    category: Category
    tags: tuple[str, ...] = ()  # what a client gave
    auto_tags: tuple[str, ...] = ()  # what intake found
    also: tuple[str, ...] = ()  # phrases under which someone may look for it; never shown as its text
    importance: float
    confidence: float = 1.0
    source: Source = Source.EXTRACTED
    access_level: AccessLevel = AccessLevel.SHARED
    context: Context = Context()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)  # decision: reasoning …; checkpoint: next_steps …
    flags: tuple[str, ...] = ()  # what reads like a secret or an instruction
    provenance: Provenance = Provenance()

    status: Status = Status.ACTIVE
    supersedes: str | None = None  # the one replaced most recently
    superseded_by: str | None = None  # the newest successor that is not deleted
    expires_at: datetime | None = None
    valid_from: datetime | None = None  # when it was true in the world, not when it was written
    valid_until: datetime | None = None
    verified_at: datetime | None = None
    deleted_at: datetime | None = None
    recoverable_until: datetime | None = None

    created_at: datetime
    updated_at: datetime
    accessed_at: datetime
    access_count: int = 0

    version: int = 1
    hlc: int = 0  # hybrid logical clock of the last change
    origin: str = ""  # the store that made the last change
    seq: int = 0  # order of arrival in this store; breaks ties of created_at

    @property
    def state(self) -> State:
        if self.status is Status.DELETED:
            return State.DELETED
        if self.status is Status.ARCHIVED:
            return State.ARCHIVED
        return State.SUPERSEDED if self.superseded_by else State.ACTIVE

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    @property
    def text(self) -> str:
        """What other dialects show, and what is embedded and indexed: a decision includes its reasoning."""
        return text_of(self.content, self.detail) if self.detail else self.content

    @property
    def shown_text(self) -> str:
        """What a reader is shown: the text and, for a decision, its outcome. A failed one is not a plain fact."""
        outcome, reason = self.detail.get("outcome"), self.detail.get("reason")
        if self.kind is not Kind.DECISION or not outcome:
            return self.text
        return f"{self.text}\n\n(decision; {outcome}: {reason})" if reason else f"{self.text}\n\n(decision; {outcome})"

    @property
    def phrases(self) -> str:
        """The phrases of `also` as the line that is embedded and indexed below the text."""
        return "; ".join(self.also)

    @property
    def embeddable(self) -> str:
        """What is embedded: a decision's topic says what it is about, and the phrases how it may be asked for."""
        text = f"{self.topic}\n{self.text}" if self.topic else self.text
        return f"{text}\n{self.phrases}" if self.also else text

    @property
    def name(self) -> str:
        """What its own dialect calls it: decisions and checkpoints have an id that people can read."""
        return str(self.detail.get("name") or self.id)


def all_phrases(*memories: Memory) -> tuple[str, ...]:
    """The phrases of memories that become one: as many as a memory can have, those of the first one first."""
    return tuple(dict.fromkeys(phrase for memory in memories for phrase in memory.also))[:MAX_PHRASES]


def text_of(content: str, detail: Mapping[str, Any]) -> str:
    more = detail.get("reasoning") or detail.get("next_steps")
    return f"{content}\n\n{more}" if more else content


# The fields of a memory that are times.
TIMES = ("created_at", "updated_at", "accessed_at", "expires_at", "valid_from", "valid_until", "verified_at",
         "deleted_at", "recoverable_until")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A typed edge: `source` supersedes, builds on, may outdate … `target`."""

    kind: LinkKind
    source: str
    target: str
    score: float | None = None
    state: str = "open"  # may_outdate: also kept, superseded; supersedes: also released; moved elsewhere: replaced
    given: bool = True  # by a client, not found by us
    reason: str | None = None
    created_at: datetime
    hlc: int = 0
    origin: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it this link and no other."""
        return (self.kind, self.source, self.target)

    @property
    def stands(self) -> bool:
        """Whether it is still valid: neither replaced nor withdrawn."""
        return self.state not in ("replaced", "released")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """An earlier state of a memory, kept before a change."""

    id: str
    memory: Memory
    replaced_at: datetime
    replaced_by: str  # the user whose change it was
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerPhrases:
    """The phrases that a memory had before they alone were changed, which makes no version."""

    also: tuple[str, ...]
    replaced_at: datetime
    replaced_by: str  # the user whose change it was
    reason: str | None = None
    hlc: int  # of the change


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Where an archived memory's text is, and how to check that it is intact."""

    id: str
    tier: Tier
    at: datetime
    size: int  # bytes, packed
    checksum: bytes  # SHA-256 of what is packed
    object: str | None = None  # its name in the archive folder; None: the store has it
    packed: bytes | None = None


class Sketch(NamedTuple):
    """What an earlier memory is compared with a new one by."""

    id: str
    text: str
    category: Category
    created_at: datetime
    seq: int
    superseded_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The answer to a store: the memory, and earlier ones that it may outdate or repeat."""

    memory: Memory
    similar: tuple[Memory, ...] = ()  # the sure hint: what it very likely outdates; one at most
    candidates: tuple[Memory, ...] = ()  # further ones, for a reader to judge: three at most, the likeliest first
    same: tuple[str, ...] = ()  # ids of those candidates that say the same as the new one
    degraded: str | None = None  # why it is found by words only for now, if so
    links: int = 0  # made with it, given and found
    compared: bool = True  # False: there was no time to compare it with earlier ones, so it is done in the background


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """The answer to a change: the memory as it is now, and where its earlier version is kept."""

    memory: Memory
    fields: tuple[str, ...]  # that differ from before
    previous: str | None  # id of the previous version; None if only links changed, or nothing at all
    embedded: bool  # whether its text got new vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenConflict:
    """Two memories of which the newer may outdate the older; not yet resolved."""

    new: Memory
    old: Memory
    score: float  # how likely that is, 0..1
    sure: bool = True  # likely enough to be named when the newer one was stored


class Relation(StrEnum):
    """How a newer memory relates to an older one."""

    REPLACES = "replaces"  # the older one is outdated
    BOTH_TRUE = "both_true"
    SAME = "same"  # they say the same; the newer one is shown from now on


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The answer to an undo: the memory as it is again, and what was taken back."""

    memory: Memory
    what: str  # stored, forgotten, superseded, settled, revised
    other: str | None = None  # the memory that it was superseded by or settled with
    before: Memory | None = None  # of a revision: what it was until now
    fields: tuple[str, ...] = ()  # in which the two differ


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """The answer to a forget."""

    memory: Memory
    hard: bool
    backup: str | None  # an id to restore it by
    related: int  # memories forgotten with it, or links that now lead nowhere
    current_again: tuple[str, ...] = ()  # what it alone had superseded


_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"
_LETTERS = (_ALPHABET * 8)[:256]
_LEFT_OVER = bytes(range(256 // 36 * 36, 256))  # bytes that would make the first letters likelier than the others


def random_suffix(length: int = 12) -> str:
    """62 bits at the default length: ids never come from a clock, so a frozen one cannot make them collide."""
    letters = b""
    while len(letters) < length:
        letters += os.urandom(length + 4).translate(_LETTERS, _LEFT_OVER)
    return letters[:length].decode()


def new_id() -> str:
    return f"mem_{random_suffix()}"
