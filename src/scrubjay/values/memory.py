"""The nouns: what a memory is, who asks for it, how it is searched for and what comes back.

Frozen values without behaviour beyond their own arithmetic. Times are aware datetimes in UTC; a score is a
similarity from 0 to 1, higher is better. Everything above and below this file uses these terms.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, overload

from scrubjay.values.frozen import dataclass
from scrubjay.values.letters import normalised

MAX_CONTENT = 50_000  # code points, in every dialect
MAX_LIMIT = 1_000  # items of one answer
MAX_PHRASES, MAX_PHRASE = 6, 80  # under which a memory may be looked for; characters of each
MAX_WORDINGS, MAX_WORDING = 4, 200  # the same of a question's other wordings
DEFAULT_SPACE = "default"
LOCAL_USER = "local"


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


class Role(StrEnum):
    OWNER = "owner"  # everything in its spaces
    MEMBER = "member"  # reads its own, shared and public; writes as itself
    READER = "reader"  # reads shared and public


# --- who asks --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. Comes from the credential, or is the local owner; never from a request's body."""

    user: str = LOCAL_USER
    role: Role = Role.OWNER
    spaces: frozenset[str] | None = None  # granted ones; None: every space
    credential: str | None = None  # id of the credential; None: the local owner
    local: bool = True  # may use files, folders, backups and sync endpoints of this machine
    sealed: frozenset[str] = field(default=frozenset(), compare=False)  # spaces that are read-only for everyone


class CredentialKind(StrEnum):
    KEY = "key"  # sent with every request; kept as a hash
    PASSWORD = "password"  # noqa: S105 -- for signing in on the page; kept as an argon2 hash
    TOKEN = "token"  # noqa: S105 -- a subject whose bearer tokens a trusted issuer signs; nothing secret is kept


EVERY_SPACE = "*"  # in a grant: also spaces that do not exist yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """How a caller authenticates, and what that caller may do. Never the secret itself."""

    id: str
    kind: CredentialKind = CredentialKind.KEY
    user: str
    role: Role
    spaces: tuple[str, ...] | None = None  # of those granted to its user; None: all of those
    name: str = ""  # for people
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def good(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A space that a user can access; its credential's role says what it may do there."""

    user: str
    space: str  # or EVERY_SPACE
    at: datetime
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A browser that has signed in. Its cookie is only kept as a hash."""

    credential: str | None  # None: the local owner, by the link that the server printed
    guard: str  # must come with every change, in a header that no foreign page can send
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One line of the audit: who did what, to a memory or to someone's rights."""

    at: datetime
    user: str
    action: str
    space: str | None = None
    memory: str | None = None
    subject: str | None = None  # the credential, user or space whose rights changed
    client: str = ""
    transport: str = ""
    reason: str | None = None
    credential: str | None = None  # with which it was done
    credential_by: str | None = None  # who made that credential, perhaps in another's name


@dataclass(frozen=True, slots=True, kw_only=True)
class ActFilter:
    """Which lines of the audit to show."""

    spaces: frozenset[str] | None = None  # None: every space, and changes of rights that belong to none
    user: str | None = None
    action: str | None = None
    client: str | None = None
    memory: str | None = None
    since: datetime | None = None  # inclusive
    until: datetime | None = None  # inclusive


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """How a memory got here: answers "who wrote this?" when it turns out to be wrong or poisoned."""

    client: str = "library"  # the program that called, by its own name
    caller: str = LOCAL_USER  # the user of the credential
    transport: str = "library"  # library, cli, stdio, http, file, import
    dialect: str | None = None

    @property
    def by_person(self) -> bool:
        """Whether a person is looking, at the page or in a terminal: what they see does not count as used by an agent.

        The page speaks more than its own dialect: conversations are chimera's.
        """
        return self.transport == "cli" or self.dialect == "native" or self.client == "page"


class Sight(IntEnum):
    """How much of a space a caller sees, each including the one before it."""

    PUBLIC = 0
    SHARED = 1
    OWN = 2  # and the caller's private memories
    ALL = 3


@dataclass(frozen=True, slots=True)
class Scope:
    space: str | None  # None: every space
    sight: Sight


@dataclass(frozen=True, slots=True)
class Audience:
    """Which rows a store call may touch at all: the one predicate that every store call takes.

    No scopes: nothing is visible. The order of the scopes breaks ties between equally good hits.
    """

    user: str
    scopes: tuple[Scope, ...]
    reach: tuple[Scope, ...] | None = None  # where a memory's links may lead; None: the same scopes

    @property
    def sees_all(self) -> bool:
        """Whether nothing in the store is hidden from the caller, so that frequencies may come from all of it."""
        reach = self.scopes if self.reach is None else self.reach
        return any(scope.space is None and scope.sight is Sight.ALL for scope in reach)

    @property
    def reaching(self) -> Audience:
        """The same, where it may see what a memory points at."""
        return self if self.reach is None else Audience(self.user, self.reach)


# --- what is remembered ----------------------------------------------------------------------------------------------


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
class Archive:
    """Where an archived memory's text is, and how to check that it is intact."""

    id: str
    tier: Tier
    at: datetime
    size: int  # bytes, packed
    checksum: bytes  # SHA-256 of what is packed
    object: str | None = None  # its name in the archive folder; None: the store has it
    packed: bytes | None = None


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


# --- conversations ---------------------------------------------------------------------------------------------------


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


# --- how it is searched for -------------------------------------------------------------------------------------------


LAST_LETTER = "\U0010ffff"  # comes after whatever a text goes on with


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories to include, besides who may see them. Applied before any limit, so it cannot empty a page."""

    states: frozenset[State] = frozenset({State.ACTIVE})
    expired: bool | None = False  # False: only unexpired ones; True: only expired ones; None: both
    kinds: frozenset[Kind] | None = None
    categories: frozenset[Category] | None = None
    tags: frozenset[str] | None = None  # any of them, given or found
    created_since: datetime | None = None  # inclusive
    created_until: datetime | None = None  # inclusive
    accessed_until: datetime | None = None  # last returned, inclusive; unflushed reads do not count
    min_importance: float | None = None
    max_importance: float | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    belongs_to: str | None = None  # a conversation, as the audience sees it: stored in it, or injected into it
    session_id: str | None = None
    access_levels: frozenset[AccessLevel] | None = None
    source: Source | None = None
    client: str | None = None  # provenance
    caller: str | None = None  # provenance
    transport: str | None = None  # provenance
    flag: str | None = None  # secret, instruction; any: whatever is flagged
    phrased: bool | None = None  # whether it has phrases (`also`)
    topic: str | None = None  # however it is spelt: see `topic_key`
    path_prefix: str | None = None  # a folder: itself and everything below
    ids: frozenset[str] | None = None
    id_prefix: str | None = None  # what an id begins with


class Decay(StrEnum):
    """How a memory's recency falls with its age: 1 when new, half of it after ninety days."""

    LINEAR = "linear"
    EXPONENTIAL = "exponential"
    LOGARITHMIC = "logarithmic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each factor counts in a ranking; the sum is 1."""

    similarity: float = 0.5
    recency: float = 0.2
    importance: float = 0.2
    access: float = 0.1
    decay: Decay = Decay.EXPONENTIAL
    order: bool = True  # results come in the order of the sum; False: in that of a search without weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to memory."""

    text: str
    also: tuple[str, ...] = ()  # other wordings of the question
    limit: int = 10
    offset: int = 0
    filter: Filter = Filter()
    now: datetime | None = None  # when the question is asked; default: the clock
    words_only: bool = False
    explain: bool = False
    weights: Weights | None = None  # say, or rank by, a weighted sum of several factors instead of score alone

    @property
    def joined(self) -> str:
        """The question with its other wordings: what is embedded, and whose words are looked for."""
        return "\n".join((self.text, *self.also))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A question to a language model."""

    system: str
    text: str
    max_tokens: int


class Order(StrEnum):
    """What a list is sorted by; ties by arrival."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    ACCESSES = "access_count"
    LENGTH = "content_length"


# --- what comes back -------------------------------------------------------------------------------------------------


class Match(NamedTuple):
    """What a store found on one side of a search: by words (BM25) or by meaning (cosine)."""

    memory: str
    score: float


Column = Any  # of numbers: an array, or a list


class Candidates(NamedTuple):
    """What a store found for a question, by words or by meaning, as columns: row i of each belongs together."""

    memories: Sequence[str]  # first those that meaning found, best first
    word_scores: Column  # 0 where words did not find it
    cosines: Column  # not a number where it has no vector
    near: int  # how many meaning found
    by_words: Sequence[int]  # rows that words found, best first


NO_CANDIDATES = Candidates((), (), (), 0, ())


class Glimpses(NamedTuple):
    """What ranking needs to know about memories besides how well they match, as columns."""

    memories: Sequence[str]
    created_at: Column  # milliseconds since 1970, as the next two
    valid_from: Column  # None where it has none, as the next one
    valid_until: Column
    conversation: Any  # hashable, the same for those of one; nothing if it is in none. As an array, numbers
    length: Column  # of the content, in characters
    opening: Sequence[str]  # the content's first few hundred characters

    @classmethod
    def of_rows(cls, rows: Iterable[Sequence[Any]]) -> Glimpses:
        return cls(*columns) if (columns := list(zip(*rows, strict=True))) else NO_GLIMPSES


NO_GLIMPSES = Glimpses((), (), (), (), (), (), ())


class Sketch(NamedTuple):
    """What an earlier memory is compared with a new one by."""

    id: str
    text: str
    category: Category
    created_at: datetime
    seq: int
    superseded_by: str | None


class Period(NamedTuple):
    """A period that a question names: from `start` to just before `end`."""

    start: datetime
    end: datetime
    words: str  # as written in the question


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a memory was found."""

    words: tuple[str, ...] = ()  # words of the query and its other wordings that it contains
    wordings: tuple[str, ...] = ()  # those other wordings of which it contains a word
    word_score: float = 0.0  # share of the query's distinctive words found, 0..1
    cosine: float | None = None
    similarity: float = 0.0  # calibrated
    boosts: Mapping[str, float] = field(default_factory=dict)  # what the second look added to the score, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What a weighted ranking saw in a memory, each from 0 to 1, and their weighted sum."""

    similarity: float
    recency: float
    importance: float
    access: float
    combined: float


class Verdict(StrEnum):
    """Whether what was found answers the question."""

    STRONG = "strong"  # it probably does
    WEAK = "weak"  # it may
    NONE = "none"  # nothing here is about that


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    memory: Memory
    score: float  # calibrated: means the same for every query
    verdict: Verdict = Verdict.STRONG
    explanation: Explanation | None = None
    factors: Factors | None = None  # only if weights were given


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The answer to a query, best first; filled even if nothing answers it: see `verdict` and `answers`."""

    hits: tuple[Hit, ...] = ()
    verdict: Verdict = Verdict.NONE  # on the best of all candidates, whatever the page
    total: int = 0  # candidates before paging
    degraded: str | None = None  # why only words were used, for all or many memories, if so
    partly: bool = False  # for many: the others were compared by meaning
    uncompared: tuple[str, ...] = ()  # ids of hits that were not compared with earlier memories yet
    periods: tuple[Period, ...] = ()  # the times that the question names: what is from then comes first

    @property
    def answers(self) -> tuple[Hit, ...]:
        """The hits that may answer the question."""
        return tuple(hit for hit in self.hits if hit.verdict is not Verdict.NONE)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Part of a list."""

    memories: tuple[Memory, ...] = ()
    total: int | None = None  # how many there are in all, if requested
    cursor: str | None = None  # where the next page begins; None on the last one
    links: Mapping[str, int] = field(default_factory=dict)  # how many each memory has, if requested
    lengths: Mapping[str, int] = field(default_factory=dict)  # of archived contents that are not shown
    left_out: int = 0  # that did not fit; the next page begins with them

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


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
class TagCount:
    """A tag, and how many memories have it."""

    tag: str
    memories: int


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
    what: str  # forgotten, superseded, settled, revised
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


def topic_key(topic: str) -> str:
    """The same for spellings that differ only in case, width, or in runs of spaces, `_` and `-`."""
    plain = normalised("NFKC", topic).casefold()
    return " ".join(plain.translate(TOPIC_JOINTS).split()) or plain


TOPIC_JOINTS = dict.fromkeys(map(ord, "_-\u2010\u2013\u2014"), " ")


# --- ids -------------------------------------------------------------------------------------------------------------

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
