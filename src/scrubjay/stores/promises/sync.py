"""What a store promises to sync: memories as they travel, what of another store's feed was heard, conflicts.

A memory's state differs from every other by its stamp: the clock value (`hlc`) and the store (`origin`) of the change
that made it. `seen` says which other changes went into it, as the last clock value of each store; so of two states one
includes the other, or they are apart and a person has to decide. A memory that was erased travels as a tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import IntEnum
from typing import Any, NamedTuple

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Memory

MAX_CLOCK = 2**63 - 1  # what a store's column holds


class Erased(IntEnum):
    """Whether only a tombstone is left, and how it came to that."""

    NO = 0
    IN_TIME = 1  # the date of its deletion had come: it has the deletion's stamp, and a recovery elsewhere undoes it
    FINAL = 2  # someone asked for it: it wins over every other state


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
    further: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # of all parts, by further models
    parts: int = 0  # how many vectors its text should have; none if they were given up
    archive: str | None = None  # the id by which it was archived; the engine fills the text in before it travels

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
    outcome: str | None = None  # which was kept; None: needs a decision
    settled_at: datetime | None = None
    ours: str | None = None  # JSON; none once the memory is erased
    theirs: str | None = None


class Aside(NamedTuple):
    """What a memory says of another only to those who may see that one too."""

    role: str  # supersedes, superseded_by
    other: str
    hlc: int  # of the link that it follows from
