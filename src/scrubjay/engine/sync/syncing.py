"""Sync: memories that live in several stores become the same in all of them.

    jay.sync.add("drive", "/mnt/drive/memories.db")
    jay.sync.run(destination="drive")

A run is `run.py`, what two states become is `merge.py`, what a place can be asked is `peer.py`. Only owners sync: what
travels includes other people's private memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.local import MOST_AHEAD, StorePeer
from scrubjay.engine.sync.merge import WinnerPolicy
from scrubjay.engine.sync.peer import Changes, Peer, SyncBatch, Taken, TakeOptions
from scrubjay.engine.sync.run import (
    KIND,
    LOCAL,
    Keep,
    Resolution,
    Run,
    Synced,
    SyncRequest,
    SyncType,
    describe_undecided,
)
from scrubjay.errors import (
    Conflict,
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
)
from scrubjay.machine.paths import store_address
from scrubjay.stores.promises.memories import clock_at
from scrubjay.stores.promises.sync import Endpoint, Heard, Replica, Stamp, SyncConflict
from scrubjay.values import codec
from scrubjay.values.callers import Role
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Link, Memory, random_suffix
from scrubjay.values.store import Job, JobStatus

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

LEASE = "sync"
LEASE_SECONDS = 60.0
LOOK_SECONDS = 0.2  # between looks whether the lease is free
TAKEN_UP = timedelta(seconds=10)  # by when a live server has taken up a job: it looks every five seconds
RUNNING, LATER = "Another sync of this store is running.", "Try again when it is done."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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


class Host:
    """This store as the other side of another store's sync: what a remote caller may ask, in the terms of `peer.py`.

    Only in the spaces granted to it: what is elsewhere is not revealed, not linked to and not overwritten.
    """

    def __init__(self, engine: Engine, peer: StorePeer) -> None:
        access.check_owner(engine.caller)
        self._engine = engine
        self._peer = peer

    def greeting(self) -> wire.Greeting:
        spaces = tuple(name for name in self._peer.spaces() if access.is_granted(self._engine.caller, name))
        return wire.Greeting(
            origin=self._peer.origin,
            model=self._peer.model(),
            mark=self._peer.mark(),
            spaces=spaces,
            every_space=self._engine.caller.spaces is None,
            sealed=tuple(name for name in spaces if self._peer.sealed(name)) or None,
        )

    def changes(self, space: str, after: Heard, *, limit: int) -> Changes:
        self._check_granted({space})
        return self._peer.changes(space, after, limit=limit)

    def stamps(self, ids: Sequence[str]) -> dict[str, Stamp]:
        return self._engine.records.sync.stamps(ids, access.audience_anywhere(self._engine.caller))

    def links(self, ids: Sequence[str], *, offset: int) -> tuple[Sequence[Link], bool]:
        """Those after this position, as many as fit; and whether there are more."""
        found = sorted(self._among_visible(self._peer.links(list(self.stamps(ids)))), key=lambda link: link.key)
        some = next(wire.batches(found[offset:], wire.size_of), ())
        return some, offset + len(some) < len(found)

    def parcel(self, ids: Sequence[str], *, vectors: bool) -> tuple[SyncBatch, Sequence[str]]:
        """As many as fit, and which did not."""
        parcel = self._peer.parcel(list(self.stamps(ids)), vectors=vectors)
        some = next(wire.batches(parcel.replicas, wire.size_of), ())
        left = [one.memory.id for one in parcel.replicas[len(some) :]]
        names = {one.memory.space for one in some}
        told = {name: description for name, description in parcel.spaces.items() if name in names}
        return replace(parcel, replicas=some, spaces=told), left

    def take(
        self, parcel: SyncBatch, *, policy: WinnerPolicy, named: str, sender: str, dry_run: bool
    ) -> Sequence[Taken]:
        """What became of each; a state that needs a decision is asked for by itself.

        :raises Forbidden: if a memory of it lies in a space that is not the caller's, here or by its own words, or in
            one whose files are read-only
        """
        ids = [one.memory.id for one in parcel.replicas]
        here = self._engine.records.sync.stamps(ids, access.EVERYTHING)
        self._check_granted({*parcel.spaces, *(one.memory.space for one in parcel.replicas)})
        if here.keys() - self.stamps(ids).keys():
            raise Forbidden("A memory with this id is in a space that you cannot access.")
        known = self._engine.records.get(ids, access.EVERYTHING)
        for memory in (*known, *(one.memory for one in parcel.replicas)):
            access.check_unsealed(self._engine.caller, memory.space)
        taken = self._peer.take(
            self._with_our_vectors(replace(parcel, links=tuple(self._among_visible(parcel.links)))),
            TakeOptions(policy=policy, named=named, sender=sender, dry_run=dry_run),
        )
        self._engine.write_files()
        return [replace(one, current=None) for one in taken]

    def renew(self, origin: str) -> str:
        """Take a new origin in place of this one; which one it is now.

        :raises Conflict: if it has another already
        """
        if self._engine.caller.spaces is not None:
            raise Forbidden("Only an owner of every space may do that.")
        if self._peer.origin != origin:
            raise Conflict("The store's origin has changed.", hint="Run the sync again.")
        self._peer.renew()
        return self._peer.origin

    def _check_granted(self, spaces: set[str]) -> None:
        for space in sorted(spaces):
            access.check_granted(self._engine.caller, space)

    def _among_visible(self, links: Sequence[Link]) -> list[Link]:
        """Without those that touch a memory the caller may not see; an end that is not here yet is not a secret."""
        ends = sorted({end for link in links for end in (link.source, link.target)})
        hidden = (
            self._engine.records.sync.stamps(ends, access.EVERYTHING).keys() - self.stamps(ends).keys() if ends else ()
        )
        return [link for link in links if not {link.source, link.target} & set(hidden)]

    def _with_our_vectors(self, parcel: SyncBatch) -> SyncBatch:
        """Without vectors of another length than ours, which could not be compared: those are made here."""
        embedder = self._engine.parts.embedding.embedder
        length = embedder.dimension if embedder is not None else 0  # 0: not known yet
        fitting = not length or all(len(vector) == length for one in parcel.replicas for vector in one.vectors)
        return parcel if fitting else replace(parcel, model=None)
