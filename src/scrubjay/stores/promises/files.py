"""Memories as lists of paths show them, and the files that they are kept in."""

from __future__ import annotations

from datetime import datetime

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A memory as a list of paths shows it: without its text."""

    id: str
    path: str
    title: str
    length: int  # of the text, in code points
    updated_at: datetime
    expires_at: datetime | None = None
    superseded_by: str | None = None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The file that a memory is kept in, and what both sides last agreed on."""

    memory: str
    path: str  # the memory's; empty once it is purged
    state: State  # the memory's; DELETED also if it has left the file's space
    version: int  # the memory's
    name: str = ""  # below the space's folder, with forward slashes; empty until one was chosen
    agreed_path: str = ""  # the memory's, when both sides last agreed
    agreed_version: int = 0  # the memory's, then; 0 before the first time
    hash: bytes | None = None  # of the file's bytes then; None before the first time
    stamp: str = ""  # what the file system said of the file then; empty if that is not to be believed
    waiting: bool = False  # the memory has changed since, and its file is to be written
