"""The port of sync: a place where memories are, that can tell what changed, hand it out and take it in.

    changes    which memories its feed names after a place, and where that ends
    stamps     in what state these memories are, without their text
    parcel     these memories and their links, whole
    take       take a parcel in: each memory joins what is here, in the taker's own transaction

Taking is idempotent and may be repeated, cut off after, or come late: a parcel that brings nothing new changes nothing.
`local.StorePeer` is a store that this process opened: the memory's own, another file, or a database.
`remote.peer.RemotePeer` is another scrubjay, which hears the same questions as a `syncing.Host`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field

from scrubjay.engine.sync.merge import Winner, WinnerPolicy
from scrubjay.stores.promises.sync import Heard, Replica, Stamp
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """A stretch of a feed: the memories that it names, and where it ends."""

    ids: tuple[str, ...]
    heard: Heard
    more: bool
    restarted: bool = False  # the place asked for is not in this feed: the store was put back from a copy


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncBatch:
    """What travels at once."""

    replicas: tuple[Replica, ...] = ()
    links: tuple[Link, ...] = ()
    unreadable: tuple[str, ...] = ()  # archived memories that cannot be read just now: left out
    spaces: Mapping[str, str | None] = field(default_factory=dict)  # that the memories lie in, with their descriptions
    model: str | None = None  # whose vectors come along, beside those of further models


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of one memory of a parcel."""

    memory: str
    change: str | None  # created, updated, deleted; None: it stays as it is here
    conflict: bool = False
    winner: Winner = Winner.INCOMING
    current: Replica | None = None  # the state here, where a person has to decide
    failed: bool = False  # it does not change: its archived part cannot be read, or it is in another space


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOptions:
    """How a parcel is to be taken in."""

    policy: WinnerPolicy
    named: str  # the policy as its caller called it, for the record
    sender: str  # the endpoint's name, for the record
    dry_run: bool = False
    recorded: bool = True  # conflicts, with what was decided


class Peer(ABC):
    @property
    @abstractmethod
    def origin(self) -> str:
        """Names the store among all others."""

    @abstractmethod
    def model(self) -> str | None:
        """The fingerprint of the model whose vectors it keeps."""

    @abstractmethod
    def spaces(self) -> Sequence[str]: ...

    def admits(self, space: str) -> bool:  # noqa: ARG002 -- for those who pick
        """Whether it takes memories of this space from us."""
        return True

    def sealed(self, space: str) -> bool:  # noqa: ARG002 -- for those who have read-only folders
        """Whether it tells of this space but takes nothing into it, since its files are read-only."""
        return False

    @abstractmethod
    def changes(self, space: str, after: Heard, *, limit: int) -> Changes:
        """What its feed says after a place; from the beginning if the feed no longer has that place."""

    @abstractmethod
    def stamps(self, ids: Sequence[str]) -> dict[str, Stamp]: ...

    @abstractmethod
    def links(self, ids: Sequence[str]) -> Sequence[Link]: ...

    @abstractmethod
    def parcel(self, ids: Sequence[str], *, vectors: bool) -> SyncBatch:
        """These memories, without links."""

    @abstractmethod
    def take(self, parcel: SyncBatch, options: TakeOptions) -> Sequence[Taken]: ...

    @abstractmethod
    def mark(self) -> str | None:
        """The mark that was left there: so a store recognises itself."""

    @abstractmethod
    def renew(self) -> None:
        """Take a new origin: it turned out to be a copy of another store."""

    @abstractmethod
    def close(self) -> None:
        """Close it. Calling it twice is fine."""
