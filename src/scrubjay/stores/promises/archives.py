"""What a store promises of memories that were put away. Part of the promise in `memories.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from scrubjay.values.memory import Archive, Memory, Version


class ArchiveReads(ABC):
    @abstractmethod
    def archives(self, ids: Sequence[str]) -> dict[str, Archive]:
        """Where the texts of those of these memories are that were put away (`Transaction.put_away`)."""

    @abstractmethod
    def hot_bytes(self, ids: Sequence[str], *, vectors: bool) -> dict[str, int]:
        """What `put_away` would free of each memory; with or without its vectors."""

    @abstractmethod
    def archived_bytes(self) -> int:
        """How much is packed in all, in the store and elsewhere."""

    @abstractmethod
    def objects(self, tier: str, limit: int) -> list[str]:
        """Names of objects of a tier in which texts lie outside the store, longest there first."""

    @abstractmethod
    def objects_due(self, now: datetime, limit: int) -> list[str]:
        """Names of archived objects that are to be removed by now, longest due first."""


class ArchiveChanges(ABC):
    @abstractmethod
    def put_away(self, id: str, archive: Archive, *, keep_vectors: bool) -> None:
        """Take a memory's text out of the hot tables.

        The row stays with what lists are filtered, sorted and counted by, so a memory that is read again has empty
        text, title, path, metadata and detail (but for a `name` in it) and no former versions: the caller has packed
        all of them. Its words are still matched where a filter names `State.ARCHIVED`; its vectors only if they are
        kept. `put` changes everything else of it. Nothing of this changes its version.

        :raises Conflict: if it is put away already
        """

    @abstractmethod
    def bring_back(self, memory: Memory, versions: Sequence[Version], *, at: datetime) -> Memory:
        """Undo `put_away`: the text comes from `memory`, everything else from the row as it is now.

        The archive is forgotten, and its object, if it has one, is due for removal.

        :raises NotFound: if the memory was not put away
        """

    @abstractmethod
    def describe(self, memory: Memory) -> None:
        """Bring title, path, metadata of a memory that was put away back into its row, and leave it put away."""

    @abstractmethod
    def move_archive(self, id: str, archive: Archive, *, at: datetime) -> None:
        """Note that what was packed of a memory lies elsewhere now: in the store (`packed`), or in an `object`, which
        is claimed as by `put_away`. The object where it was is due for removal. Nothing happens if the memory has
        another archive by now, or none."""

    @abstractmethod
    def announce_objects(self, objects: Sequence[str], *, due: datetime) -> None:
        """Note objects that are about to be written: unless `put_away` names them by then, they are to be removed."""

    @abstractmethod
    def objects_removed(self, objects: Sequence[str]) -> None:
        """Note that objects are gone."""
