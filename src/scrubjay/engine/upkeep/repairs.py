"""What earlier versions left in a store and this one must not leave there: repaired once, in the background.

How far it has come is a fact of the store, so an interrupted repair resumes. One process at a time does
it. None of it is a change of a memory: no version, no stamp, no event. Each store does its own, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.lifecycle import publishing, supersession
from scrubjay.engine.store import names
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable
from scrubjay.values.frozen import replace
from scrubjay.values.memory import random_suffix

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

FACT = "mended"  # "done", or the arrival number of the last memory that was looked at
DONE = "done"
LEASE = "repair"
LEASE_SECONDS = 60.0
BATCH = 100


class Repairs:
    """Works for the machine's owner."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._records = engine.records

    def run(self) -> int:
        """Repair what is left; return how many memories were."""
        if self._records.history.fact(FACT) == DONE:
            return 0
        holder = random_suffix()
        mended = 0
        while self._records.upkeep.lease(LEASE, holder=holder, seconds=LEASE_SECONDS):
            reached = (
                self._records.history.fact(FACT) or "0"
            )  # another process may have finished before this one had the lease
            found = [] if reached == DONE else self._records.upkeep.to_mend(after=int(reached), limit=BATCH)
            mended += sum(self._settle(name) | self._clean(name) for _, name in found)
            with self._records.writing() as tx:
                tx.history.set_fact(FACT, str(found[-1][0]) if found else DONE)
            if not found:
                self._records.upkeep.release(LEASE, holder=holder)
                break
        if mended:
            self._engine.write_files(patient=True)
        return mended

    def _settle(self, id: str) -> bool:
        """Let a memory name only what everyone who may see it may see; an aside says the rest to others."""
        with self._records.writing() as tx:
            memory = next(iter(tx.get([id], supersession.PLAIN)), None)
            return memory is not None and supersession.settle(tx, memory)

    def _clean(self, id: str) -> bool:
        """Take words out of a memory's path, title and found tags that it had before others could see it."""
        known = next(iter(self._records.get([id], access.EVERYTHING)), None)
        if known is None:
            return False
        former = [one.memory for one in self._records.history.versions(known.id)]
        try:
            [complete] = self._engine.with_texts([known], strict=True)
            away = [] if known.content else [one.memory for one in self._engine.cold_storage.history(known)]
        except (ArchiveDamaged, ArchiveUnavailable):
            return False  # its text cannot be read, so new tags cannot be made; nor can anyone see it
        clean = publishing.clean_versions([complete, *former, *away])[: len(former) + 1]
        if clean == [complete, *former]:
            return False
        with self._records.writing() as tx:
            current = next(iter(tx.get([id], access.EVERYTHING)), None)
            if current is not None and current.version == known.version:
                path = names.free_path(tx, clean[0]) if clean[0].path != complete.path else complete.path
                tx.reword(replace(clean[0], path=path), clean[1:])
                return True
        return self._clean(id)  # it has changed meanwhile
