"""Who calls, with which rights, and which memories these let a call touch."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import IntEnum, StrEnum

from scrubjay.values.frozen import dataclass

DEFAULT_SPACE = "default"
LOCAL_USER = "local"


class Role(StrEnum):
    OWNER = "owner"  # everything in its spaces
    MEMBER = "member"  # reads its own, shared and public; writes as itself
    READER = "reader"  # reads shared and public


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls. It comes from the credential, or is the local owner; never from a request's body."""

    user: str = LOCAL_USER
    role: Role = Role.OWNER
    spaces: frozenset[str] | None = None  # granted ones; None: every space
    credential: str | None = None  # id of the credential; None: the local owner
    home: str | None = field(default=None, compare=False)  # granted before all others
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
