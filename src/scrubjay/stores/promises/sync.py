"""What a store promises to sync: memories as they travel, what of another store's feed was heard, conflicts.

A memory's state is told from every other by its stamp: the clock value (`hlc`) and the store (`origin`) of the change
that made it. `seen` says which other changes went into it, as the last clock value of each store; so of two states one
includes the other, or they are apart and somebody has to decide. A memory that was erased travels as a tombstone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Memory

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.promises.memories import Change


MAX_CLOCK = 2**63 - 1  # what a store's column holds


class Erased(IntEnum):
    """Whether only a tombstone is left, and how it came to that."""

    NO = 0
    IN_TIME = 1  # the date of its deletion had come: it has the deletion's stamp, and a recovery elsewhere undoes it
    FINAL = 2  # somebody wished it: it wins over every other state


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What tells two states of a memory apart without reading them."""

    hlc: int
    origin: str
    version: int
    erased: Erased = Erased.NO
    seen: Mapping[str, int] = field(default_factory=dict)  # by other stores' origins
    aliases: int = 0  # how many other ids it has


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A memory with everything that travels along."""

    memory: Memory
    erased: Erased = Erased.NO
    seen: Mapping[str, int] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    vectors: tuple[Any, ...] = ()  # of its first parts, if they were asked for
    parts: int = 0  # how many vectors its text should have; none if they were given up
    archive: str | None = None  # the id by which it was put away; the engine fills the text in before it travels

    @property
    def stamp(self) -> Stamp:
        memory = self.memory
        return Stamp(
            hlc=memory.hlc,
            origin=memory.origin,
            version=memory.version,
            erased=self.erased,
            seen=self.seen,
            aliases=len(self.aliases),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Another place where memories are, by a name of one's own."""

    name: str
    url: str
    spaces: tuple[str, ...] | None = None  # None: all of them
    added_at: datetime | None = None  # None: named in the settings
    synced_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """How far a feed was heard: the last event's number, and what tells it from another of the same number."""

    number: int = 0
    proof: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncConflict:
    """Two states of a memory that did not know of each other."""

    number: int = 0  # the store gives it
    memory: str
    endpoint: str
    policy: str
    at: datetime
    outcome: str | None = None  # which was kept; None: waits for somebody to decide
    settled_at: datetime | None = None
    ours: str | None = None  # JSON; none once the memory is erased
    theirs: str | None = None


class Aside(NamedTuple):
    """What a memory says of another only to those who may see that one too."""

    role: str  # supersedes, superseded_by
    other: str
    hlc: int  # of the link that it follows from


class ReplicaReads(ABC):
    @abstractmethod
    def asides(self, id: str) -> list[Aside]:
        """What a memory says of others to some only, by name."""

    @abstractmethod
    def stamps(self, ids: Sequence[str], audience: Audience) -> dict[str, Stamp]:
        """The stamps of the visible memories with these ids, tombstones included; unknown ones are left out."""

    @abstractmethod
    def replicas(self, ids: Sequence[str], audience: Audience, *, vectors: bool = False) -> list[Replica]:
        """The visible memories with these ids as they travel, tombstones included, in the order asked."""

    @abstractmethod
    def described_spaces(self) -> dict[str, str | None]:
        """The spaces by name, with their descriptions; counts nothing."""

    @abstractmethod
    def clock(self) -> int:
        """The store's hybrid logical clock: the last value that it gave or saw."""

    @abstractmethod
    def endpoints(self) -> list[Endpoint]:
        """All that were added, by name."""

    @abstractmethod
    def heard(self, speaker: str, listener: str, space: str) -> Heard:
        """How far one store (by its origin) has heard another's feed of a space; from the beginning if never."""

    @abstractmethod
    def sync_conflicts(
        self, *, open: bool | None = None, endpoint: str | None = None, memory: str | None = None, limit: int = 1000
    ) -> list[SyncConflict]:
        """Conflicts, newest first: those that wait, those that are settled, or both."""


class ReplicaWrites(ABC):
    @abstractmethod
    def observe(self, hlc: int) -> None:
        """Let the store's clock be past this value of another's, so that a change here is later than what it saw."""

    @abstractmethod
    def mend_clock(self, *, now: int, latest: int) -> int:
        """Set a clock back that was lifted past `latest`; how many stamps were.

        Those stamps, of memories, links and what memories have seen, come to lie right behind `now` and every other
        stamp, in the order that they had.
        """

    @abstractmethod
    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        """Write a memory as it is elsewhere: its stamp and version as they are, whatever is here.

        What is here joins the history (a tombstone has none); other stores' changes that either state had seen are
        seen by the result; aliases are added, those that belong to another memory are left out. A tombstone erases as
        `purge` does. `vectors=None` keeps those that are here. Where the stamp is the same only version, seen and
        aliases are written.

        :raises Conflict: if its path is taken by another active memory of the same space
        :raises SpaceNotFound: if its space was never created
        """

    @abstractmethod
    def point(
        self, id: str, *, supersedes: str | None, superseded_by: str | None, asides: Sequence[Aside] = ()
    ) -> None:
        """Write what follows from the links between memories. Changes neither version nor stamp.

        The pointers are for everyone who may see the memory. Where there is none, those who may see what an aside
        names read that instead, the newest first, and for them it decides the state: `get`, `list` and all that takes
        a filter tell each audience its own.
        """

    @abstractmethod
    def move_alias(self, alias: str, id: str) -> None:
        """Let an alias belong to this memory from now on, whoever had it."""

    @abstractmethod
    def note_checkpoint(self, space: str, number: int) -> None:
        """Let checkpoints of a space be numbered past this one from now on: it came from another store."""

    @abstractmethod
    def set_access_count(self, id: str, count: int) -> None:
        """Write how often a memory was handed out. Changes neither version nor stamp."""

    @abstractmethod
    def put_endpoint(self, endpoint: Endpoint) -> None:
        """Write an endpoint; one of the same name is replaced."""

    @abstractmethod
    def remove_endpoint(self, name: str) -> bool:
        """Forget an endpoint and the conflicts that wait for it; False if there is none."""

    @abstractmethod
    def hear(self, speaker: str, listener: str, space: str, heard: Heard) -> None:
        """Remember how far a feed was heard."""

    @abstractmethod
    def note_conflict(self, conflict: SyncConflict) -> SyncConflict:
        """Write a conflict; one with the same endpoint and memory that still waits is replaced."""

    @abstractmethod
    def settle_conflict(self, number: int, outcome: str, *, at: datetime) -> None:
        """Note what became of a conflict that waited."""

    @abstractmethod
    def renew_origin(self, *, late: bool = False) -> str:
        """Give the store a new origin, which is returned: it was put back from a copy, or is one.

        `late` says that changes may have been made since: what it made so far is taken to be its own, and may prove
        to be apart from what the store it was copied from made under the same origin.
        """
