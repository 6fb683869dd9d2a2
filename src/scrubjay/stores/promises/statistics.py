"""What a store counts: what there is, and what happened when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Category, State


class Of(StrEnum):
    ALL = "all"
    USER = "user"
    CONVERSATION = "conversation"
    CATEGORY = "category"


@dataclass(frozen=True, slots=True)
class Part:
    """Which memories a statistic is about, beside who may see them."""

    of: Of = Of.ALL
    name: str = ""  # of the user, conversation or category


class Level(StrEnum):
    """How important a memory is, in three words."""

    HIGH = "high"  # 0.7 and above
    MEDIUM = "medium"
    LOW = "low"  # below 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What there is, tombstones included. Groups without a memory are left out."""

    states: Mapping[State, int] = field(default_factory=dict)
    categories: Mapping[Category, int] = field(default_factory=dict)
    levels: Mapping[Level, int] = field(default_factory=dict)
    expired: int = 0  # of the active and superseded ones
    text_bytes: Mapping[State, int] = field(default_factory=dict)  # content, metadata and detail, in UTF-8
    vector_bytes: Mapping[State, int] = field(default_factory=dict)
    reads: int = 0  # how often memories were handed out
    squared_reads: int = 0  # the squares of the memories' own counts, added up
    read_memories: int = 0  # how many were handed out at least once
    judged: int = 0  # how many had their category compared with their neighbours' …
    agreed: int = 0  # … and how many of those agreed
    repeats: int = 0  # neither deleted nor the first of their text (by fingerprint) that is not
    since: datetime | None = None  # the hour in which the first was created

    @property
    def memories(self) -> int:
        return sum(self.states.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What happened in a stretch of time."""

    reads: Mapping[tuple[int, int], int] = field(default_factory=dict)  # by weekday (Monday 0) and hour of the day, UTC
    deleted: int = 0  # deleted in that time and still gone, soft-deleted or for good
    consolidations: int = 0
    consolidated: int = 0  # memories that went into them


class Group(NamedTuple):
    """Memories that are neither archived, deleted nor expired and alike in all this; what is not superseded is current:
    as many as `list` gives."""

    superseded: bool
    category: Category
    level: Level
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceCounts:
    """How many memories of a space are neither archived, deleted nor expired: as many as `list` would give."""

    active: int = 0
    superseded: int = 0
