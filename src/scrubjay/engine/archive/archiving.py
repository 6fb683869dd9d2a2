"""Putting memories away: their text leaves the hot tables.

    hold ─> pack ─> write and sync the object, read it back ─> one transaction: status, text out of the row, archive in

Nothing is lost on the way: an object is durable before the row is emptied. Objects are announced before they are
written, so what a killed process leaves behind is removed an hour later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from hashlib import sha256
from time import perf_counter

from scrubjay.engine import access
from scrubjay.engine.archive import prices
from scrubjay.engine.archive.archives import ArchivedText, Archives, check_count, pack, spent_ms
from scrubjay.engine.cursors import pages
from scrubjay.engine.holding import PAGE, holding
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.errors import AlreadyArchived, Error, InvalidInput, QuotaExceeded, Unprocessable
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import AT_HAND, Archive, Category, Memory, Status, Tier, Version, random_suffix
from scrubjay.values.search import Filter
from scrubjay.values.times import MILLISECOND

MOST = 1_000  # ids in one call


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Which memories to archive; all that are given must hold."""

    inactive_days: int | None = None  # not handed out for so long
    below_importance: float | None = None
    categories: frozenset[Category] | None = None
    before: datetime | None = None  # created

    def filter(self, now: datetime) -> Filter:
        """:raises InvalidInput: if nothing is given"""
        if self == Criteria():
            raise InvalidInput("auto_archive_criteria must have at least one criterion.", field="auto_archive_criteria")
        idle = None if self.inactive_days is None else days_before(now, self.inactive_days)
        return Filter(
            states=AT_HAND,
            accessed_until=idle,
            max_importance=None if self.below_importance is None else math.nextafter(self.below_importance, -1.0),
            categories=self.categories,
            created_until=None if self.before is None else self.before - MILLISECOND,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAway:
    """One archived memory."""

    memory: str
    archive: str | None  # none in a dry run
    at: datetime
    hot_bytes: int  # that it took in the hot tables
    packed_bytes: int
    retrieval_ms: int  # what reading it back took when it was tried
    cost_reduction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """The answer to an archive."""

    job: str | None  # none in a dry run
    tier: Tier
    memories: tuple[PutAway, ...]
    vectors_kept: bool
    monthly_savings: float
    cost: float

    @property
    def saved_bytes(self) -> int:
        return sum(max(0, one.hot_bytes - one.packed_bytes) for one in self.memories)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How memories are archived."""

    tier: Tier = Tier.COLD
    keep_vectors: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A memory that is packed and, where its tier wants that, written."""

    memory: Memory
    archive: Archive
    retrieval_ms: int


class Archiving(Archives):
    """The verbs that archive."""

    def archive(self, ids: Sequence[str], terms: Terms | None = None, *, dry_run: bool = False) -> Archived:
        """Put named memories away, all of them or none.

        :raises AlreadyArchived: :raises Unprocessable: if one has expired
        :raises QuotaExceeded: if the archive may hold no more
        """
        engine, terms = self._engine, terms or Terms()
        check_count(ids, MOST)
        lifecycle.check_names_one(ids, engine.expected_version)
        if (kept := engine.earlier_result(Archived)) is not None:
            return kept
        names = [self._archivable(name).id for name in ids]
        if dry_run:
            return self._preview(self._read(names), terms)
        with self._prepare(names, terms) as (held, prepared):
            for one in prepared:
                lifecycle.check_version(one.memory, engine.expected_version)
            return engine.transact(Archived, lambda tx: self._finish(tx, terms, held.put_away(tx, prepared, terms)))

    def archive_matching(self, criteria: Criteria, terms: Terms | None = None, *, dry_run: bool = False) -> Archived:
        """Archive what meets all criteria and the caller may change, a batch at a time; what is held by others is
        passed over. An error leaves the batches before it archived."""
        engine, terms = self._engine, terms or Terms()
        lifecycle.check_names_one(None, engine.expected_version)
        if (kept := engine.earlier_result(Archived)) is not None:
            return kept
        engine.records.flush_reads()
        found = list(self._matching(criteria.filter(engine.now())))
        if dry_run:
            return self._preview(found, terms)
        done: list[PutAway] = []
        for start in range(0, len(found), PAGE):
            names = [memory.id for memory in found[start : start + PAGE]]
            busy = engine.records.jobs.held_by_others(names)
            free = [name for name in names if name not in busy]
            with self._prepare(free, terms) as (held, prepared), engine.records.writing() as tx:
                done += held.put_away(tx, prepared, terms)
            engine.progress(len(done), len(found), "archiving")
        return engine.transact(Archived, lambda tx: self._finish(tx, terms, done))

    def _archivable(self, id: str) -> Memory:
        memory = self._engine.ledger.get_changeable(self._engine.records, id)
        if memory.status is Status.ARCHIVED:
            raise AlreadyArchived(f"Memory {memory.id} is already archived.", memory_id=memory.id)
        if memory.expired(self._engine.now()):
            raise Unprocessable(
                f"Memory {memory.id} has expired.", hint="Prune it, or change its expiry.", memory_id=memory.id
            )
        return memory

    def _matching(self, filter: Filter) -> Iterator[Memory]:
        engine = self._engine
        audience = engine.bound_to(only=True).audience(filter)  # a policy is that of a space
        for page in pages(engine.records, filter, audience, now=engine.now(), size=PAGE, newest_first=False):
            yield from (memory for memory in page if access.may_change(engine.caller, memory))

    def _read(self, ids: Sequence[str]) -> list[Memory]:
        return self._engine.records.get(ids, access.audience_anywhere(self._engine.caller))

    @contextmanager
    def _prepare(self, ids: Sequence[str], terms: Terms) -> Iterator[tuple[Archiving, Sequence[Prepared]]]:
        """Hold memories, and prepare them to be archived."""
        with holding(self._engine, ids) as held:
            holder = type(self)(held)
            with holder.ready(ids, terms) as prepared:
                yield holder, prepared

    @contextmanager
    def ready(self, ids: Sequence[str], terms: Terms) -> Iterator[Sequence[Prepared]]:
        """Pack memories that this engine holds, as they are now, and write what is to be kept elsewhere."""
        prepared = [self._pack(memory, terms) for memory in self._read(ids)]
        self._check_quota(prepared)
        with self._write_blocks(prepared) as tried:
            yield tried

    def _pack(self, memory: Memory, terms: Terms) -> Prepared:
        engine = self._engine
        now = engine.now()
        # Its present state is one more former state from now on.
        present = Version(
            id=f"ver_{random_suffix()}",
            memory=memory,
            replaced_at=now,
            replaced_by=engine.caller.user,
            reason=terms.reason,
        )
        kept = ArchivedText(memory=memory, versions=(present, *engine.records.history.versions(memory.id)))
        data = pack(kept, terms.tier)
        name = f"arch_{random_suffix()}"
        archive = Archive(
            id=name,
            tier=terms.tier,
            at=now,
            size=len(data),
            checksum=sha256(data).digest(),
            object=None if terms.tier is Tier.COLD or engine.parts.archive_in_store else f"{terms.tier}/{name}",
            packed=data,
        )
        return Prepared(memory=memory, archive=archive, retrieval_ms=0)

    @contextmanager
    def _write_blocks(self, prepared: Sequence[Prepared]) -> Iterator[Sequence[Prepared]]:
        """Each tried by reading it back; those elsewhere durable first, and gone again if the block fails."""
        elsewhere = [one.archive.object for one in prepared if one.archive.object is not None]
        records = self._engine.records
        if elsewhere:
            self._announce(elsewhere)
        try:
            yield [self._try_reading_back(one) for one in prepared]
        except BaseException:  # whatever it was, nothing will claim what was put there
            if elsewhere:
                with suppress(Error), records.writing() as tx:
                    tx.archives.announce_objects(elsewhere, due=self._engine.now())
                self.remove_due_objects()
            raise

    def _try_reading_back(self, one: Prepared) -> Prepared:
        archive = one.archive
        if archive.object is not None:
            assert archive.packed is not None
            self._engine.parts.objects().write(archive.object, archive.packed)
            archive = replace(archive, packed=None)
        begun = perf_counter()
        self._unpack(archive)
        return replace(one, archive=archive, retrieval_ms=spent_ms(begun))

    def _check_quota(self, prepared: Sequence[Prepared]) -> None:
        quota = self._engine.parts.archive_quota
        if quota and self._engine.records.archives.bytes() + sum(one.archive.size for one in prepared) > quota:
            raise QuotaExceeded(
                f"The archive is full: its quota is {quota:,} bytes.",
                hint="Forget some archived memories, or raise archive_quota.",
            )

    def put_away(self, tx: Transaction, prepared: Sequence[Prepared], terms: Terms) -> list[PutAway]:
        """Archive what is ready, within the caller's transaction."""
        return [self._put_away_one(tx, one, terms) for one in prepared]

    def _put_away_one(self, tx: Transaction, one: Prepared, terms: Terms) -> PutAway:
        ledger = self._engine.ledger
        memory = ledger.get_changeable(tx, one.memory.id)
        if memory.version != one.memory.version:
            raise lifecycle.changed_meanwhile(memory)
        freed = tx.archives.hot_bytes([memory.id], vectors=not terms.keep_vectors)[memory.id]
        ledger.change(tx, replace(memory, status=Status.ARCHIVED), "archived", "status", reason=terms.reason)
        tx.put_away(memory.id, one.archive, keep_vectors=terms.keep_vectors)
        tx.history.alias(one.archive.id, memory.id)
        return self._describe(one, terms, freed)

    def _describe(self, one: Prepared, terms: Terms, hot_bytes: int, *, dry_run: bool = False) -> PutAway:
        return PutAway(
            memory=one.memory.id,
            archive=None if dry_run else one.archive.id,
            at=one.archive.at,
            hot_bytes=hot_bytes,
            packed_bytes=one.archive.size,
            retrieval_ms=one.retrieval_ms,
            cost_reduction=prices.reduction(self._engine.parts.prices, terms.tier, hot_bytes, one.archive.size),
        )

    def _preview(self, memories: Sequence[Memory], terms: Terms) -> Archived:
        """What would happen: everything is packed and nothing kept."""
        sizes = self._engine.records.archives.hot_bytes(
            [memory.id for memory in memories], vectors=not terms.keep_vectors
        )
        shown = []
        for memory in memories:
            one = self._pack(memory, terms)
            one = self._try_reading_back(replace(one, archive=replace(one.archive, object=None)))
            shown.append(self._describe(one, terms, sizes[memory.id], dry_run=True))
        return self._answer(None, terms, shown)

    def _finish(self, tx: Transaction, terms: Terms, done: Sequence[PutAway]) -> Archived:
        job = self._record(tx, "archive", "arch_job", {"tier": str(terms.tier), "archived": len(done)})
        return self._answer(job.id, terms, done)

    def _answer(self, job: str | None, terms: Terms, done: Sequence[PutAway]) -> Archived:
        table, tier = self._engine.parts.prices, terms.tier
        return Archived(
            job=job,
            tier=tier,
            memories=tuple(done),
            vectors_kept=terms.keep_vectors,
            monthly_savings=prices.monthly_savings(table, tier, [(one.hot_bytes, one.packed_bytes) for one in done]),
            cost=prices.transfer(table, tier, "in", sum(one.packed_bytes for one in done)),
        )


def days_before(now: datetime, days: int) -> datetime:
    try:
        return now - timedelta(days=days)
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)
