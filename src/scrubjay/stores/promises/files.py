"""What a store promises of paths, and of the files that memories are kept in. Part of the promise in `memories.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime

from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Memory, State


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
    name: str  # below the space's folder, with forward slashes; empty until one was chosen
    agreed_path: str  # the memory's, when both sides last agreed
    agreed_version: int  # the memory's, then; 0 before the first time
    hash: bytes | None  # of the file's bytes then; None before the first time
    stamp: str  # what the file system said of the file then; empty if that is not to be believed
    waiting: bool  # the memory has changed since, and its file is to be written


class FileReads(ABC):
    @abstractmethod
    def at_path(self, space: str, path: str, audience: Audience) -> Memory | None:
        """The active memory at a path, as this audience sees it.

        Of several: the private one of the audience's own user, else the one that is shared or public, else the oldest.
        """

    @abstractmethod
    def entries(self, space: str, section: str, audience: Audience) -> list[Entry]:
        """The active memories below a section of a space ("" for all of it), expired ones included, by path."""

    @abstractmethod
    def sections(self, space: str) -> dict[str, str | None]:
        """Sections that were made or described, with their descriptions; others exist by what lies in them."""

    @abstractmethod
    def files(self, space: str, *, waiting: bool = False) -> list[File]:
        """Every memory of a space that is or was kept as a file, by name; purged ones while their file waits.

        `waiting` leaves out those whose file need not be written. For the engine's own bookkeeping: whoever they belong
        to.
        """

    @abstractmethod
    def file_of(self, id: str) -> File | None:
        """The file of one memory; None if it is not kept as one."""

    @abstractmethod
    def file_named(self, space: str, name: str) -> File | None:
        """The file with this name, if an active memory is kept in it."""

    @abstractmethod
    def waiting(self) -> dict[str, int]:
        """How many files wait to be written, by space; spaces where none does are left out."""

    @abstractmethod
    def mirrored(self, space: str) -> bool:
        """Whether every memory of the space is kept as a file."""


class FileChanges(ABC):
    """A change of a memory that is kept as a file (`put`, `purge`, a link) lets the file wait, whoever makes it.

    So does a new memory in a mirrored space.
    """

    @abstractmethod
    def keep_as_file(self, ids: Sequence[str]) -> None:
        """Keep memories as files of their space from now on, and let the files wait to be written."""

    @abstractmethod
    def in_sync(self, id: str, *, name: str, hash: bytes, stamp: str, version: int) -> None:
        """Note that a memory, at a version, and a file say the same; the file waits no longer unless it has changed
        since that version. A deleted memory that had a file of this name before has none any more."""

    @abstractmethod
    def restamp(self, stamps: Mapping[str, str]) -> None:
        """Note what the file system says now of the files of these memories, whose bytes are the same."""

    @abstractmethod
    def withdraw_file(self, id: str, *, version: int) -> None:
        """Note that the file of a memory, at a version, was taken away though the memory stays. The next change of the
        memory lets a file wait again."""

    @abstractmethod
    def drop_files(self, ids: Sequence[str]) -> None:
        """Memories are no longer kept as files, and nothing waits for them."""

    @abstractmethod
    def mirror(self, space: str, *, on: bool) -> None:
        """Keep every memory of a space as a file from now on (those there already wait), or only those that are."""

    @abstractmethod
    def put_section(self, space: str, path: str, *, description: str | None) -> None:
        """Make a section, or change its description."""

    @abstractmethod
    def drop_sections(self, space: str, path: str) -> None:
        """Forget a section and those below it; memories stay."""
