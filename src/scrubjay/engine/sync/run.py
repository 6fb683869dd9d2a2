"""One run of a sync: what it is asked, what it does and what became of it.

A run goes through the speaker's feed from where the listener last stopped, sends what the listener does not have, and
remembers the place after every stretch; so an interrupted run resumes there. Both ways means: first the destination
speaks and conflicts are decided here, then the source speaks. What two states become is `merge.py`, what a place can
be asked is `peer.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.sync.local import without_vectors
from scrubjay.engine.sync.merge import Winner, WinnerPolicy
from scrubjay.engine.sync.peer import Peer, SyncBatch, Taken, TakeOptions
from scrubjay.errors import (
    Undecided,
)
from scrubjay.stores.promises.sync import Heard, Replica, SyncConflict
from scrubjay.values import codec
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Category, Link, Memory, random_suffix
from scrubjay.values.times import iso

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.jobs import Handle
    from scrubjay.engine.sync.syncing import Syncing

KIND = "sync"  # of its jobs
EXCERPT = 1_000  # characters of a text that are shown to the person who decides a conflict
LOCAL = "local"  # this store's own name as an endpoint
STRETCH = 500  # events of a feed at once
PARCEL = 100  # memories that travel at once
AGAIN_AFTER = timedelta(hours=12)


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
