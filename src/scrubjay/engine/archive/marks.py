"""The archive folder as the store knows it: by a mark that was left there once, when the first object was written.

The store remembers the mark of each tier (`facts`: `archive:glacier` …). A folder without it is a disk that is not
mounted, or another server's folder: it is neither written to nor believed when it holds nothing. The mark is never made
a second time, unless a person says that the folder is the right one (`accept`).

A folder may serve several stores: the mark is the folder's, and each store remembers it.
"""

from __future__ import annotations

from contextlib import suppress

from scrubjay.archives.base import Objects
from scrubjay.errors import ArchiveUnavailable, Error
from scrubjay.lazy import logging
from scrubjay.stores.promises.memories import Store
from scrubjay.values.memory import Tier, random_suffix

ELSEWHERE = (Tier.GLACIER, Tier.DEEP_ARCHIVE)  # tiers that may be kept outside the store
FACT = "archive:"
SAMPLE = 20  # objects by which a folder of a version without marks is recognised


class MarkedObjects(Objects):
    def __init__(self, objects: Objects, records: Store) -> None:
        self._objects = objects
        self._records = records
        self._known: dict[str, str] = {}  # marks that were remembered when last asked
        self._looked = False
        self.trouble: str | None = None  # what `look` found

    def set_up(self, tier: str) -> None:
        """Make sure that objects of this tier may be written here; the first time ever, leave the mark.

        :raises ArchiveUnavailable: if this is not where the store's objects are
        """
        if self._records.history.fact(FACT + tier) is None:
            self._recognise(tier)
        self.check(tier)

    def check(self, tier: str) -> None:
        """:raises ArchiveUnavailable: if this is not where the store's objects are"""
        mark = self._objects.mark(tier)
        if mark and mark == self._known.get(tier):
            return
        remembered = self._records.history.fact(FACT + tier)
        if remembered is None:  # never set up by this version: the place itself tells whether it is there
            return
        if mark != remembered:
            raise absent(mark)
        self._known[tier] = remembered

    def accept(self, tier: str) -> None:
        """Take this for the right place from now on, whatever it holds."""
        with self._records.writing() as tx:
            tx.history.set_fact(FACT + tier, self._read_or_make_mark(tier))

    def look(self) -> None:
        """Find out whether the place is there, for those who look after the server; `trouble` says so."""
        found = None
        try:
            for tier in ELSEWHERE:
                if not self._looked and self._objects.mark(tier) is not None:
                    self.set_up(tier)
                self.check(tier)
            self._looked = True
        except ArchiveUnavailable as error:
            if any(self._records.archives.objects(tier, 1) for tier in ELSEWHERE):  # otherwise nothing is missing
                found = f"{error.message} {error.hint}"
        if found and found != self.trouble:
            logging.getLogger(__name__).warning("%s", found)
        self.trouble = found

    def write(self, name: str, data: bytes) -> None:
        self.check(tier_of(name))
        self._objects.write(name, data)

    def read(self, name: str) -> bytes:
        self.check(tier_of(name))
        return self._objects.read(name)

    def remove(self, name: str) -> None:
        self.check(tier_of(name))
        self._objects.remove(name)

    def mark(self, tier: str) -> str | None:
        return self._objects.mark(tier)

    def set_mark(self, tier: str, mark: str) -> None:
        self._objects.set_mark(tier, mark)

    def holds_most(self, tier: str) -> bool:
        """Whether most of the oldest objects that the store knows are here; also if it knows none."""
        names = self._records.archives.objects(tier, SAMPLE)
        here = 0
        for name in names:
            with suppress(Error):
                here += bool(self._objects.read(name))
        return not names or 2 * here > len(names)

    def _recognise(self, tier: str) -> None:
        if not self.holds_most(tier):
            raise absent(self._objects.mark(tier))
        with self._records.writing() as tx:
            if (
                tx.history.fact(FACT + tier) is None
            ):  # otherwise another server was first, with its own folder or this one
                tx.history.set_fact(FACT + tier, self._read_or_make_mark(tier))

    def _read_or_make_mark(self, tier: str) -> str:
        """The mark, made if there is none. It is on the disk before the store remembers it: whoever dies in between
        leaves a mark that the next one finds."""
        if mark := self._objects.mark(tier):
            return mark
        mark = random_suffix()
        self._objects.set_mark(tier, mark)
        return mark


def tier_of(name: str) -> str:
    return name.partition("/")[0]


def absent(mark: str | None) -> ArchiveUnavailable:
    if mark:
        return ArchiveUnavailable(
            "This is not the archive folder that this store's memories were archived in.",
            hint="Servers on one database must share one folder: set SCRUBJAY_ARCHIVE to it. If this folder is the "
            "right one: `scrubjay archive --accept-folder`.",
        )
    return ArchiveUnavailable(
        "The archive folder does not exist. Is its disk mounted?",
        hint="Mount it, or set SCRUBJAY_ARCHIVE to where it is; servers on one database must share it. If the folder "
        "is the right one: `scrubjay archive --accept-folder`.",
    )
