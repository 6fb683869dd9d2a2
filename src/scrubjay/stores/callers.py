"""What a store keeps of callers: credentials, grants, sessions and the audit. Part of the promise in `base.py`.

No secret is ever handed to a store: it gets hashes, and gives them back for comparison.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from scrubjay.frozen import dataclass
from scrubjay.memory import Act, Credential, Grant, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class ActFilter:
    """Which lines of the audit are meant."""

    spaces: frozenset[str] | None = None  # None: every space, and changes of rights that belong to none
    user: str | None = None
    action: str | None = None
    client: str | None = None
    memory: str | None = None
    since: datetime | None = None  # inclusive
    until: datetime | None = None  # inclusive


class CallerReads(ABC):
    @abstractmethod
    def credential(self, id: str) -> tuple[Credential, bytes | None] | None:
        """A credential and the hash of its secret, also when it is expired or revoked; None if there is none."""

    @abstractmethod
    def credentials(self, *, user: str | None = None) -> list[Credential]:
        """All credentials, or one user's, oldest first; expired and revoked ones too."""

    @abstractmethod
    def locked(self) -> bool:
        """Whether there is any credential that is not revoked. An expired one counts: time must not open a door."""

    @abstractmethod
    def grants(self, *, user: str | None = None) -> list[Grant]:
        """All grants, or one user's, by user and space."""

    @abstractmethod
    def session(self, secret: bytes) -> Session | None:
        """The session with this hash, also when it is over."""

    @abstractmethod
    def acts(self, filter: ActFilter, *, limit: int) -> list[Act]:
        """What was done, newest first: changes of memories (the events of the spaces) and changes of rights."""


class CallerChanges(CallerReads):
    @abstractmethod
    def add_credential(self, credential: Credential, secret: bytes | None) -> None:
        """:raises Conflict: if its id is taken"""

    @abstractmethod
    def replace_secret(self, id: str, secret: bytes) -> None:
        """Let a credential have another secret; sessions that it opened end."""

    @abstractmethod
    def revoke_credential(self, id: str, *, at: datetime) -> bool:
        """End a credential and the sessions that it opened; False if it has ended before or there is none."""

    @abstractmethod
    def grant(self, grants: Sequence[Grant]) -> None:
        """Let users enter spaces; what is granted already stays as it is."""

    @abstractmethod
    def withdraw(self, user: str, space: str) -> bool:
        """Take a grant back; False if there was none."""

    @abstractmethod
    def open_session(self, session: Session, secret: bytes) -> None:
        """Keep a session; those whose time is over go."""

    @abstractmethod
    def close_session(self, secret: bytes) -> None:
        """End a session; nothing happens if there is none."""

    @abstractmethod
    def note(self, act: Act) -> None:
        """Write a line of the audit about rights."""
