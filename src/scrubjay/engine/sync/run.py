"""Sync: memories that live in several stores become the same in all of them.

    jay.sync.add("drive", "/mnt/drive/memories.db")
    jay.sync.run(destination="drive")

A run goes through the speaker's feed from where the listener last stopped, sends what the listener does not have, and
remembers the place after every stretch; so an interrupted run resumes there. Both ways means: first the destination
speaks and conflicts are decided here, then the source speaks. What two states become is `merge.py`, what a place can
be asked is `peer.py`. Only owners sync: what travels includes other people's private memories.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.engine.sync.local import MOST_AHEAD, StorePeer, without_vectors
from scrubjay.engine.sync.merge import Winner, WinnerPolicy
from scrubjay.engine.sync.peer import Peer, SyncBatch, Taken, TakeOptions
from scrubjay.engine.upkeep.repairs import Repairs
from scrubjay.errors import (
    EndpointNotFound,
    EndpointUnreachable,
    Forbidden,
    InvalidInput,
    Locked,
    NotFound,
    StorageBusy,
    StorageError,
    StorageFull,
    StorageTooNew,
    SyncFailed,
    Undecided,
)
from scrubjay.machine.paths import store_address
from scrubjay.stores.promises.memories import clock_at
from scrubjay.stores.promises.sync import Endpoint, Heard, Replica, SyncConflict
from scrubjay.values import codec
from scrubjay.values.callers import Role
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Category, Link, Memory, random_suffix
from scrubjay.values.store import Job, JobStatus
from scrubjay.values.times import iso

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle
    from scrubjay.engine.sync.host import Host

KIND = "sync"  # of its jobs
EXCERPT = 1_000  # characters of a text that are shown to the person who decides a conflict
LOCAL = "local"  # this store's own name as an endpoint
LEASE = "sync"
LEASE_SECONDS = 60.0
LOOK_SECONDS = 0.2  # between looks whether the lease is free
TAKEN_UP = timedelta(seconds=10)  # by when a live server has taken up a job: it looks every five seconds
RUNNING, LATER = "Another sync of this store is running.", "Try again when it is done."
STRETCH = 500  # events of a feed at once
PARCEL = 100  # memories that travel at once
AGAIN_AFTER = timedelta(hours=12)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class SyncType(StrEnum):
    FULL = "full"  # everything is compared, both ways
    INCREMENTAL = "incremental"  # what changed on either side since they last met
    BIDIRECTIONAL = "bidirectional"  # another word for it
    PUSH = "push"  # what changed in the source
    PULL = "pull"  # what changed in the destination


class Resolution(StrEnum):
    SOURCE_WINS = "source_wins"
    DESTINATION_WINS = "destination_wins"
    NEWEST_WINS = "newest_wins"
    MERGE = "merge"
    MANUAL = "manual"


class Keep(StrEnum):
    """What was decided about a conflict."""

    OURS = "ours"
    THEIRS = "theirs"
    NEWEST = "newest"
    MERGED = "merged"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncFilter:
    """Which memories a run is about; a run with a filter leaves the place in the feed where it was."""

    categories: tuple[Category, ...] | None = None
    user_id: str | None = None
    conversation_id: str | None = None
    modified_since: datetime | None = None

    def admits(self, memory: Memory) -> bool:
        return (
            (self.categories is None or memory.category in self.categories)
            and self.user_id in (None, memory.context.user_id)
            and self.conversation_id in (None, memory.context.conversation_id)
            and (self.modified_since is None or memory.updated_at >= self.modified_since)
        )


EVERY_MEMORY = SyncFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """What a caller asks for."""

    type: SyncType = SyncType.INCREMENTAL
    source: str = LOCAL
    destination: str = "cloud"
    filter: SyncFilter = EVERY_MEMORY
    resolution: Resolution = Resolution.NEWEST_WINS
    dry_run: bool = False
    decisions: Mapping[str, Keep] = field(default_factory=dict)  # by memory: of conflicts that earlier runs left open


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """A conflict of a run: source, destination or both won; or it needs a decision."""

    memory: str
    resolution: Resolution
    winner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to a sync."""

    id: str
    request: SyncRequest
    started_at: datetime
    completed_at: datetime
    duration_ms: int = 0
    checked: int = 0  # memories that were compared
    created: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: int = 0  # differ, and were left so: conflicts that wait
    conflicts: tuple[Handled, ...] = ()
    errors: int = 0  # are archived and cannot be read just now (a full sync tries them again), or are elsewhere

    @property
    def waiting(self) -> tuple[Handled, ...]:
        return tuple(one for one in self.conflicts if one.winner == Winner.NONE)

    @property
    def next_at(self) -> datetime:
        return self.started_at + AGAIN_AFTER


class Syncing:
    """The verbs of sync."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._records = engine.records

    @property
    def host(self) -> Host:
        """This store, for others who sync with it.

        :raises Forbidden: if the caller is not an owner
        """
        from scrubjay.engine.sync.host import Host

        return Host(self.engine, self._local())

    # --- endpoints ---------------------------------------------------------------------------------------------------

    def add(self, name: str, url: str | Path, *, spaces: Sequence[str] | None = None) -> Endpoint:
        """Name another store to sync with: a file (made if its folder is there), or an address.

        :raises EndpointUnreachable: if it cannot be opened
        """
        self._check_owner()
        if not NAME.fullmatch(name) or name == LOCAL:
            raise InvalidInput(
                f"{name[:64]!r} is not a valid name for an endpoint.",
                hint=f"Use letters, digits, dots and hyphens, and a name other than {LOCAL}.",
                field="name",
            )
        endpoint = Endpoint(
            name=name,
            url=store_address(url),
            spaces=None if spaces is None else tuple(intake.check_space(space) for space in spaces),
            added_at=self.engine.now(),
        )
        with self._open_peer(endpoint, create=True) as peer:
            self._check_other(peer, endpoint.name)
        with self._records.writing() as tx:
            tx.sync.put_endpoint(endpoint)
        return endpoint

    def endpoints(self) -> Sequence[Endpoint]:
        """Those that were added and those that the settings name."""
        self._check_owner()
        found = {name: Endpoint(name=name, url=url) for name, url in self.engine.parts.endpoints.items()}
        found |= {endpoint.name: endpoint for endpoint in self._records.sync.endpoints()}
        return [found[name] for name in sorted(found)]

    def remove(self, name: str) -> None:
        """Forget an endpoint; its memories stay where they are, on both sides."""
        self.endpoint(name)
        with self._records.writing() as tx:
            if not tx.sync.remove_endpoint(name):
                raise InvalidInput(
                    f"Endpoint {name} is defined in the settings.", hint="Remove it there.", field="name"
                )

    # --- conflicts ---------------------------------------------------------------------------------------------------

    def conflicts(self, *, settled: bool = False, endpoint: str | None = None) -> Sequence[SyncConflict]:
        """Those that need a decision, newest first; with `settled` those that were decided."""
        self._check_owner()
        found = self._records.sync.conflicts(open=not settled, endpoint=endpoint)
        return [conflict for conflict in found if self._is_ours(conflict)]

    def _is_ours(self, conflict: SyncConflict) -> bool:
        """Whether the caller's spaces hold both states; what is erased belongs to owners of everything."""
        if self.engine.caller.spaces is None:
            return True
        states = [codec.read(Replica, told) for told in (conflict.ours, conflict.theirs) if told is not None]
        return bool(states) and all(access.is_granted(self.engine.caller, state.memory.space) for state in states)

    def resolve(self, number: int, keep: Keep | str) -> Memory | None:
        """Decide a conflict that waits; the next run tells the other side. None if the memory is erased meanwhile.

        :raises NotFound: if no such conflict waits
        """
        self._check_owner()
        decision = Keep(keep)
        conflict = next((one for one in self.conflicts() if one.number == number), None)
        if conflict is None or conflict.theirs is None:
            raise NotFound(f"No open conflict {number}.", hint="`scrubjay sync conflicts` lists them.")
        theirs = codec.read(Replica, conflict.theirs)
        policy = {
            Keep.OURS: WinnerPolicy.CURRENT,
            Keep.THEIRS: WinnerPolicy.INCOMING,
            Keep.NEWEST: WinnerPolicy.NEWEST,
            Keep.MERGED: WinnerPolicy.MERGE,
        }[decision]
        self._local().take(
            SyncBatch(replicas=(theirs,)),
            TakeOptions(policy=policy, named=Resolution.MANUAL, sender=conflict.endpoint, recorded=False),
        )
        with self._records.writing() as tx:
            tx.sync.settle_conflict(number, decision, at=self.engine.now())
        return next(iter(self._records.get([conflict.memory], access.EVERYTHING)), None)

    # --- clocks ------------------------------------------------------------------------------------------------------

    def mend_clock(self) -> int:
        """Set the store's clock back, if another's or a wrong one of its own has lifted it; how many stamps changed.

        Their order stays. The store signs under a new origin from then on, since others know it by later stamps; what
        still differs there counts as a conflict once.
        """
        self._check_owner()
        now = self.engine.now()
        latest = clock_at(now + MOST_AHEAD)
        if self._records.sync.clock() <= latest:
            return 0
        with self._records.writing() as tx:
            mended = tx.sync.mend_clock(now=clock_at(now), latest=latest)
            tx.sync.renew_origin()
            for conflict in tx.sync.conflicts(open=True):  # it holds earlier stamps; the next run finds it again
                tx.sync.settle_conflict(conflict.number, "clock mended", at=now)
        return mended

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, request: SyncRequest | None = None, **options: Any) -> Synced:
        """Sync two stores, one of them usually this one.

        :raises EndpointNotFound: if one of them was never named
        :raises EndpointUnreachable: if one of them cannot be opened
        :raises Locked: while another sync of this store runs, or is about to in the background
        :raises Undecided: if conflicts need a decision; everything else is synced
        :raises SyncFailed: if it was interrupted; the next run resumes there
        """
        asked = replace(request or SyncRequest(), **options)
        asked = replace(asked, type=SyncType(asked.type), resolution=Resolution(asked.resolution))
        self.check(asked)
        if (kept := self.engine.earlier_result(Synced)) is not None:
            return kept
        with self._alone(asked):
            if not asked.dry_run and any(self._is_at_hand(job) for job in self._unfinished_jobs()):
                raise Locked(RUNNING, hint=LATER)
            return self._finish(asked)

    def run_job(self, request: SyncRequest) -> Synced:
        """The same for a job, which had its turn promised: it waits for a run that it meets."""
        self.check(request)
        with self._alone(request, patient=True):
            return self._finish(request)

    def _finish(self, asked: SyncRequest) -> Synced:
        Repairs(self.engine).run()  # before others hear of it
        self._decide(asked)
        with self._both(asked) as (source, destination):
            try:
                synced = Run(self, asked, source, destination).done()
            except (StorageBusy, StorageFull, StorageTooNew):
                raise
            except StorageError as error:
                raise SyncFailed(
                    f"The sync was interrupted: {error.message}", hint="What was synced stays. Run it again to resume."
                ) from error
        self.engine.write_files(patient=True)
        if synced.waiting and not asked.dry_run:
            raise describe_undecided(synced, self.conflicts())
        return self.engine.transact(Synced, lambda _tx: synced)

    def _decide(self, request: SyncRequest) -> None:
        """Settle the conflicts that the caller has decided about, so that the run can tell the other side.

        :raises InvalidInput: if no conflict about one of the memories waits; then none is settled
        """
        waiting = {one.memory: one.number for one in self.conflicts()}
        for memory in request.decisions:
            if memory not in waiting:
                raise InvalidInput(f"No open conflict about {memory[:100]}.", field="decisions")
        if not request.dry_run:
            for memory, keep in request.decisions.items():
                self.resolve(waiting[memory], keep)

    def start(self, request: SyncRequest) -> Job:
        """Have a run done in the background.

        :raises Locked: while another sync of this store runs or waits to
        """
        self.check(request)
        if (kept := self.engine.earlier_result(Job)) is not None:
            return self.engine.jobs.get(kept.id)
        with self._alone(request):
            if self._unfinished_jobs():
                raise Locked(RUNNING, hint=LATER)
            return self.engine.jobs.start(KIND, codec.plain(request), prefix=KIND)

    def _unfinished_jobs(self) -> Sequence[Job]:
        return [job for job in self._records.jobs.list(unfinished=True) if job.kind == KIND]

    def _is_at_hand(self, job: Job) -> bool:
        """Whether it runs, or a server will take it up; one that waits for longer has no server and blocks nothing."""
        return job.status is JobStatus.RUNNING or self.engine.now() - job.created_at < TAKEN_UP

    def check(self, request: SyncRequest) -> None:
        """Refuse what could not be run, before anything is begun."""
        self._check_owner()
        if request.filter.user_id is not None:
            access.checked_user(self.engine.caller, request.filter.user_id)
        if request.source == request.destination:
            raise InvalidInput("Source and destination are the same.", field="destination")
        names = [name for name in (request.source, request.destination) if name != LOCAL]
        for name in names:
            self.endpoint(name)
        if request.resolution is Resolution.MANUAL and len(names) == 2:
            raise InvalidInput(
                "Conflicts between two other stores cannot be resolved manually here.",
                hint="Sync each with local, or choose another conflict_resolution.",
                field="conflict_resolution",
            )

    @contextmanager
    def _alone(self, request: SyncRequest, *, patient: bool = False) -> Iterator[None]:
        """Hold the lease of sync; a dry run writes nothing and needs none."""
        if request.dry_run:
            yield
            return
        holder = random_suffix()
        while not self._records.upkeep.lease(LEASE, holder=holder, seconds=LEASE_SECONDS):
            if not patient:
                raise Locked(RUNNING, hint=LATER)
            self.engine.progress(0, None, "waiting for another sync")  # ends it, if the job is to end
            sleep(LOOK_SECONDS)
        self._holder = holder
        try:
            yield
        finally:
            self._records.upkeep.release(LEASE, holder=holder)

    def still_alone(self) -> None:
        """Renew the lease between stretches."""
        if not self._records.upkeep.lease(LEASE, holder=self._holder, seconds=LEASE_SECONDS):
            raise Locked("Another sync of this store took over.", hint=LATER)

    @contextmanager
    def _both(self, request: SyncRequest) -> Iterator[tuple[Peer, Peer]]:
        with self._side(request.source) as source, self._side(request.destination) as destination:
            yield source, destination

    @contextmanager
    def _side(self, name: str) -> Iterator[Peer]:
        if name == LOCAL:
            yield self._local()
            return
        with self._open_peer(self.endpoint(name), create=False) as peer:
            self._check_other(peer, name)
            yield peer

    @contextmanager
    def _open_peer(self, endpoint: Endpoint, *, create: bool) -> Iterator[Peer]:
        connect = self.engine.parts.connect
        if connect is None:
            raise EndpointUnreachable("This engine is not configured to reach other stores.")
        try:
            peer = connect(endpoint, create)
        except StorageTooNew as error:
            told = f"Endpoint {endpoint.name} was written by a newer scrubjay."
            raise StorageTooNew(told, hint=error.hint) from error
        except (StorageError, OSError) as error:
            why = error.message if isinstance(error, StorageError) else "it does not exist."
            raise EndpointUnreachable(
                f"Endpoint {endpoint.name} cannot be reached: {why}",
                hint="Check that the drive is mounted and the machine is on, then try again.",
            ) from error
        try:
            yield peer
        finally:
            peer.close()

    def _local(self) -> StorePeer:
        engine = self.engine
        return StorePeer(
            self._records,
            now=engine.now,
            user=engine.caller.user,
            split=engine.parts.embedding.parts_of if engine.parts.embedding.embedder is not None else None,
            wake=engine.parts.backlog.wake,
            objects=engine.parts.archive,
            new_model=engine.parts.embedding.fingerprint,
            owned=False,
            read_only=engine.caller.sealed,
        )

    def _check_other(self, peer: Peer, name: str) -> None:
        """Refuse to sync a store with itself; a copy of it is given an origin of its own.

        Two stores that sign with the same origin would each take the other's changes for old ones of its own.
        """
        if peer.origin != self._records.origin:
            return
        mark = random_suffix()
        self._local().leave_mark(mark)
        if peer.mark() == mark:
            raise InvalidInput(f"Endpoint {name} is this store itself.", field="destination")
        peer.renew()

    def endpoint(self, name: str) -> Endpoint:
        """:raises EndpointNotFound: if there is none of that name"""
        found = next((one for one in self.endpoints() if one.name == name), None)
        if found is None:
            shown = name[:64]
            raise EndpointNotFound(
                f"No endpoint {shown!r}. Add it with: scrubjay sync add {shown} FILE", endpoint=shown
            )
        return found

    def _check_owner(self) -> None:
        if self.engine.caller.role is not Role.OWNER:
            raise Forbidden("Only owners may sync.", hint="Ask an owner to do it.")


class Run:
    """One run: what it has seen and done so far."""

    def __init__(
        self,
        syncing: Syncing,
        request: SyncRequest,
        source: Peer,
        destination: Peer,
    ) -> None:
        self._syncing = syncing
        self._engine = syncing.engine
        self._records = syncing.engine.records
        self._request = request
        self._source, self._destination = source, destination
        names = {request.source, request.destination} - {LOCAL}
        self._endpoints = [syncing.endpoint(name) for name in sorted(names)]
        self._other = request.source if request.source != LOCAL else request.destination
        self._started_at, self._begun = self._engine.now(), monotonic()
        self._checked: set[str] = set()
        self._failed: set[str] = set()
        self._put_back: set[tuple[str, str]] = set()  # stores whose feed of a space is not the one that was heard
        self._changes: dict[str, str] = {}
        self._handled: dict[str, Handled] = {}
        self._waiting = {one.memory: one for one in self._records.sync.conflicts(open=True, endpoint=self._other)}

    def done(self) -> Synced:
        # Vectors of one model are worth carrying; of another they would only be thrown away.
        self._vectors = self._source.model() == self._destination.model() or None in (
            self._source.model(),
            self._destination.model(),
        )
        if self._request.type is not SyncType.PUSH:
            self._flow(self._destination, self._source)
        if self._request.type is not SyncType.PULL:
            self._flow(self._source, self._destination)
        if not self._request.dry_run:
            self._finish()
        counts = list(self._changes.values())
        return Synced(
            id=f"sync_{random_suffix()}",
            request=self._request,
            started_at=self._started_at,
            completed_at=max(self._engine.now(), self._started_at),
            duration_ms=round((monotonic() - self._begun) * 1000),
            checked=len(self._checked),
            created=counts.count("created"),
            updated=counts.count("updated"),
            deleted=counts.count("deleted"),
            skipped=sum(1 for one in self._handled.values() if one.winner == Winner.NONE),
            conflicts=tuple(self._handled.values()),
            errors=len(self._failed),
        )

    def _flow(self, speaker: Peer, listener: Peer) -> None:
        """Tell the listener what the speaker's feeds have that it has not heard."""
        self._carry(sorted(self._waiting), speaker, listener)
        for space in self._spaces(speaker):
            if listener.sealed(space):
                continue
            everything = self._request.type is SyncType.FULL
            after = Heard() if everything else self._find_place(speaker, listener, space)
            more = True
            while more:
                changes = speaker.changes(space, after, limit=STRETCH)
                if changes.restarted:
                    self._put_back.add((speaker.origin, space))
                self._carry(changes.ids, speaker, listener)
                if not self._request.dry_run:
                    self._syncing.still_alone()
                    if self._request.filter == EVERY_MEMORY and changes.heard != after:
                        with self._records.writing() as tx:
                            tx.sync.hear(speaker.origin, listener.origin, space, changes.heard)
                after, more = changes.heard, changes.more

    def _find_place(self, speaker: Peer, listener: Peer, space: str) -> Heard:
        """Where to go on; from the beginning if the listener was put back from a copy, and has lost what it heard."""
        back = self._records.sync.heard(listener.origin, speaker.origin, space)
        if back.number and listener.changes(space, back, limit=1).restarted:
            self._put_back.add((listener.origin, space))
        if (listener.origin, space) in self._put_back:
            return Heard()
        return self._records.sync.heard(speaker.origin, listener.origin, space)

    def _spaces(self, speaker: Peer) -> Sequence[str]:
        return [name for name in speaker.spaces() if self._is_admitted(name)]

    def _is_admitted(self, space: str) -> bool:
        chosen = all(one.spaces is None or space in one.spaces for one in self._endpoints)
        taken = self._source.admits(space) and self._destination.admits(space)
        return chosen and taken and access.is_granted(self._engine.caller, space)

    def _carry(self, ids: Sequence[str], speaker: Peer, listener: Peer) -> None:
        """Send those of the memories, and of their links, that the listener has in another state."""
        for start in range(0, len(ids), PARCEL):
            some = ids[start : start + PARCEL]
            theirs, ours = speaker.stamps(some), listener.stamps(some)
            wanted = [one for one in some if one in theirs and theirs[one] != ours.get(one)]
            parcel = speaker.parcel(wanted, vectors=self._vectors) if wanted else SyncBatch()
            replicas = tuple(one for one in parcel.replicas if self._admits(one.memory, listener))
            self._failed.update(parcel.unreadable)
            left_out = {one.memory.id for one in parcel.replicas} - {one.memory.id for one in replicas}
            known = [one for one in some if one in theirs and one not in left_out]
            links = self._news(speaker.links(known), listener.links(known))
            self._checked.update(known)
            if replicas or links:
                taken = listener.take(replace(parcel, replicas=replicas, links=links), self._take_options(speaker))
                self._note(taken, replicas, speaker)
            self._engine.progress(len(self._checked), None, "memories compared")

    def _admits(self, memory: Memory, listener: Peer) -> bool:
        admitted = self._is_admitted(memory.space) and not listener.sealed(memory.space)
        return admitted and self._request.filter.admits(memory)

    def _news(self, theirs: Sequence[Link], ours: Sequence[Link]) -> tuple[Link, ...]:
        here = {link.key: (link.hlc, link.origin) for link in ours}
        return tuple(link for link in theirs if here.get(link.key, (0, "")) < (link.hlc, link.origin))

    def _take_options(self, speaker: Peer) -> TakeOptions:
        incoming_is_source = speaker is self._source
        policy = {
            Resolution.SOURCE_WINS: WinnerPolicy.INCOMING if incoming_is_source else WinnerPolicy.CURRENT,
            Resolution.DESTINATION_WINS: WinnerPolicy.CURRENT if incoming_is_source else WinnerPolicy.INCOMING,
            Resolution.NEWEST_WINS: WinnerPolicy.NEWEST,
            Resolution.MERGE: WinnerPolicy.MERGE,
            Resolution.MANUAL: WinnerPolicy.MANUAL,
        }[self._request.resolution]
        return TakeOptions(
            policy=policy,
            named=self._request.resolution,
            sender=self._request.source if incoming_is_source else self._request.destination,
            dry_run=self._request.dry_run,
        )

    def _note(self, taken: Sequence[Taken], replicas: Sequence[Replica], speaker: Peer) -> None:
        sent = {one.memory.id: one for one in replicas}
        sides = ("source", "destination") if speaker is self._source else ("destination", "source")
        winners = {Winner.INCOMING: sides[0], Winner.CURRENT: sides[1], Winner.BOTH: "both", Winner.NONE: Winner.NONE}
        for one in taken:
            if one.failed:
                self._failed.add(one.memory)
            if one.change is not None:
                self._changes.setdefault(one.memory, one.change)
            if one.conflict and one.memory not in self._handled:
                self._handled[one.memory] = Handled(
                    memory=one.memory, resolution=self._request.resolution, winner=winners[one.winner]
                )
                if one.winner is Winner.NONE and one.current is not None and not self._request.dry_run:
                    from_local = (speaker is self._source) == (self._request.source == LOCAL)
                    self._queue(one.current, sent[one.memory], into_local=not from_local)

    def _queue(self, current: Replica, incoming: Replica, *, into_local: bool) -> None:
        ours, theirs = (current, incoming) if into_local else (incoming, current)
        with self._records.writing() as tx:
            tx.sync.note_conflict(
                SyncConflict(
                    memory=ours.memory.id,
                    endpoint=self._other,
                    policy=Resolution.MANUAL,
                    at=self._engine.now(),
                    ours=codec.write_json(without_vectors(ours)),
                    theirs=codec.write_json(without_vectors(theirs)),
                )
            )

    def _finish(self) -> None:
        """Note what became of conflicts that waited, and when the endpoint was synced."""
        now = self._engine.now()
        waiting = {one.memory for one in self._handled.values() if one.winner == Winner.NONE}
        with self._records.writing() as tx:
            for memory, conflict in self._waiting.items():
                if memory not in waiting and memory in self._checked:
                    handled = self._handled.get(memory)
                    tx.sync.settle_conflict(conflict.number, handled.winner if handled else "agreed", at=now)
            for endpoint in tx.sync.endpoints():
                if endpoint.name in (self._request.source, self._request.destination):
                    tx.sync.put_endpoint(replace(endpoint, synced_at=now))


def in_background(engine: Engine, arguments: Mapping[str, Any], handle: Handle) -> Mapping[str, Any]:
    """The job: a run like any other. What was heard is kept, so it resumes when started again."""
    synced = engine.sync.run_job(codec.read(SyncRequest, json.dumps(arguments)))
    result: Mapping[str, Any] = codec.plain(replace(synced, id=handle.id))  # what its start was answered with
    return result


def describe_undecided(synced: Synced, open: Sequence[SyncConflict]) -> Undecided:
    count = len(synced.waiting)
    told = {one.memory: sides_of(one, synced.request) for one in open}
    return Undecided(
        f"{count} conflict{'s wait' if count > 1 else ' waits'} for a decision; everything else is synced.",
        hint="Sync again and say in decisions what to keep of each, or use `scrubjay sync resolve`.",
        sync_id=synced.id,
        conflicts=[{"memory_id": one.memory, **told.get(one.memory, {})} for one in synced.waiting],
        checked=synced.checked,
        created=synced.created,
        updated=synced.updated,
        deleted=synced.deleted,
    )


def sides_of(conflict: SyncConflict, request: SyncRequest) -> dict[str, Any]:
    """The two states of a memory, for whoever decides between them."""
    names = ("source", "destination") if request.source == LOCAL else ("destination", "source")
    sides = {}
    for name, state in zip(names, (conflict.ours, conflict.theirs), strict=True):
        if state is not None:
            memory = codec.read(Replica, state).memory
            sides[name] = {
                "excerpt": memory.content[:EXCERPT],
                "status": str(memory.status),
                "updated_at": iso(memory.updated_at),
            }
    return sides
