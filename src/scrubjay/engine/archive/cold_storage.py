"""Cold storage as an engine offers it: `jay.cold_storage.archive(…)`, `.restore(…)`, and `.move(…)`.

Archived memories are kept where their owner decides: in the store itself, or in the archive folder.

    to the database     read the object, compare its checksum ─> one transaction: bytes into the row, the object is due
                        for removal
    to the folder       announce, write and sync, read back ─> one transaction: its name into the row, bytes out of it

At every moment the text is where its row says. If the work ends at any point, starting it again continues it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256

from scrubjay.engine import access
from scrubjay.engine.archive.archives import AWAY
from scrubjay.engine.archive.archiving import Archiving
from scrubjay.engine.archive.marks import ELSEWHERE
from scrubjay.engine.archive.restoring import Restoring
from scrubjay.engine.cursors import pages
from scrubjay.engine.holding import BATCH, holding
from scrubjay.errors import ArchiveDamaged, Locked
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Archive, Tier


class Place(StrEnum):
    DATABASE = "database"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The answer to a move."""

    memories: int
    bytes: int
    damaged: tuple[str, ...]  # that stay where they are, because they cannot be read
    busy: tuple[str, ...]  # that others hold just now; another run takes them along


class ColdStorage(Archiving, Restoring):
    """Archive memories, look at what is archived, restore it, and choose where it is kept."""

    def accept_folder(self) -> dict[Tier, bool]:
        """Take the archive folder for the right one, and mark it; whether it holds most of what the store knows of.

        :raises ArchiveUnavailable: if there is none
        """
        objects = self._engine.parts.objects()
        for tier in ELSEWHERE:
            objects.accept(tier)
        return {tier: objects.holds_most(tier) for tier in ELSEWHERE}

    def move(self, to: Place) -> Moved:
        """Move what is in glacier and deep_archive to another place, a batch at a time.

        :raises ArchiveUnavailable: if the folder is not there; what was moved before stays moved
        """
        engine = self._engine
        take = self._into_the_store if to is Place.DATABASE else self._into_the_folder
        moved, size, damaged, busy = 0, 0, list[str](), list[str]()
        for names in self._lying_elsewhere(to):
            held = engine.records.jobs.held_by_others(names)
            free = [name for name in names if name not in held]
            busy += held
            try:
                with holding(engine, free):
                    archives = {
                        name: one for name, one in engine.records.archives.get(free).items() if _to_move(one, to)
                    }
                    intact = self._intact(archives)
                    take(intact)
            except Locked:  # another process was faster
                busy += free
                continue
            moved += len(intact)
            size += sum(archive.size for archive in intact.values())
            damaged += [name for name in archives if name not in intact]
            engine.progress(moved, None, "moving")
        self.remove_due_objects()
        return Moved(memories=moved, bytes=size, damaged=tuple(damaged), busy=tuple(busy))

    def _lying_elsewhere(self, to: Place) -> Iterator[Sequence[str]]:
        engine = self._engine
        for page in pages(engine.records, AWAY, access.EVERYTHING, now=engine.now(), size=BATCH):
            found = engine.records.archives.get([memory.id for memory in page])
            if names := [name for name, archive in found.items() if _to_move(archive, to)]:
                yield names

    def _intact(self, archives: Mapping[str, Archive]) -> dict[str, Archive]:
        """Those that can be read and are what was packed, with their bytes."""
        intact = {}
        for name, archive in archives.items():
            data = self._bytes(archive)
            if data is not None and sha256(data).digest() == archive.checksum:
                intact[name] = replace(archive, packed=data)
        return intact

    def _bytes(self, archive: Archive) -> bytes | None:
        if archive.object is None:
            return archive.packed
        try:
            return self._engine.parts.objects().read(archive.object)
        except ArchiveDamaged:
            return None

    def _into_the_store(self, archives: Mapping[str, Archive]) -> None:
        self._point(archives, lambda archive: replace(archive, object=None))
        self.remove_due_objects()

    def _into_the_folder(self, archives: Mapping[str, Archive]) -> None:
        objects = self._engine.parts.objects()
        names = {archive.id: f"{archive.tier}/{archive.id}" for archive in archives.values()}
        self._announce(list(names.values()))
        for archive in archives.values():
            objects.write(names[archive.id], archive.packed or b"")
            if sha256(objects.read(names[archive.id])).digest() != archive.checksum:
                raise ArchiveDamaged("Reading back from the archive folder gives different data than was written.")
        self._point(archives, lambda archive: replace(archive, object=names[archive.id], packed=None))

    def _point(self, archives: Mapping[str, Archive], moved: Callable[[Archive], Archive]) -> None:
        """Let the rows say where their texts are now."""
        if archives:
            with self._engine.records.writing() as tx:
                for name, archive in archives.items():
                    tx.archives.move(name, moved(archive), at=self._engine.now())


def _to_move(archive: Archive, to: Place) -> bool:
    return archive.tier in ELSEWHERE and (archive.object is None) is (to is Place.FOLDER)
