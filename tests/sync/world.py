"""Three stores that sync over a bad line: what the simulation acts on, and what must be true of it in the end.

Nothing is random here: the clock of each store, every fault of the line and every act are handed in. Another transport
is simulated by another `Line`: whatever reaches a store and gives a `Peer`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.sync.local import StorePeer
from scrubjay.engine.sync.peer import Changes, Peer, SyncBatch, Taken, TakeOptions
from scrubjay.engine.sync.run import Resolution, SyncType
from scrubjay.errors import EndpointUnreachable, Error, Undecided
from scrubjay.stores.promises.memories import Store
from scrubjay.stores.promises.sync import Erased, Replica
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values import codec
from scrubjay.values.memory import Memory, Status

NAMES = ("one", "two", "three")
# Of a memory's fields these may differ: read counters, and where it lies in its store.
LOCAL_FIELDS = {"seq", "access_count", "accessed_at"}

Line = Callable[["World", "Site"], Peer]  # how a store is reached
Stores = Mapping[str, Callable[[], Store]]  # sites whose store is no file, and how to get an empty one


Stamped = tuple[int, str]  # the clock and the store of a change


def stamp_of(memory: Memory) -> Stamped:
    return (memory.hlc, memory.origin)


def told(memory: Memory) -> dict[str, object]:
    """What a memory says, without what stamps, reads and links say."""
    beside = {*LOCAL_FIELDS, "version", "hlc", "origin", "updated_at", "supersedes", "superseded_by"}
    return {entry.name: getattr(memory, entry.name) for entry in fields(Memory) if entry.name not in beside}


@dataclass(frozen=True)
class Act:
    """What somebody did to a memory, and on top of which state."""

    stamp: Stamped
    before: Stamped | None
    content: str
    status: Status
    tags: tuple[str, ...]

    @property
    def made(self) -> tuple[str, Status, tuple[str, ...]]:
        return (self.content, self.status, self.tags)


@dataclass
class Site:
    """One store, with a clock of its own."""

    name: str
    path: Path
    skew: timedelta = timedelta()
    engine: Engine | None = None
    backup: Path | None = None
    since_backup: set[str] = field(default_factory=set)  # memories it changed since

    @property
    def jay(self) -> Engine:
        assert self.engine is not None
        return self.engine


def direct(world: World, site: Site) -> Peer:
    """The other file, opened by this process."""
    return StorePeer(site.jay.records, now=site.jay.now, user="local", owned=False)


class World:
    def __init__(self, folder: Path, template: Path, line: Line = direct, stores: Stores | None = None) -> None:
        self.time = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)
        self.line = line
        self.faults: Iterator[str] = iter(())
        self.late: list[tuple[Site, SyncBatch, TakeOptions]] = []
        self.sites = [Site(name, folder / f"{name}.db") for name in NAMES]
        self.texts = 0
        self.parents: dict[str, str] = {}  # by text: the text that was there before
        self.ids: list[str] = []
        self.last: dict[str, tuple[str, Status]] = {}  # by id: what the last act, in real time, made of it
        self.acts: dict[str, dict[Stamped, Act]] = {}  # by id and stamp: everything that anybody did to it
        self.only: Resolution | None = None  # every sync has this policy: then the outcome is known exactly
        self.wished_gone: set[str] = set()
        self.forgotten: set[str] = set()
        self.recovered: set[str] = set()
        self.due: set[str] = set()  # erased by a store because the date of their deletion had come
        self.excused: set[str] = set()  # memories of which a store put back from a copy has lost something
        self.records: dict[str, list[str]] = {}  # by id: conflicts as JSON, also those of stores since replaced
        self.stores = stores or {}
        for site in self.sites:
            if site.name not in self.stores:
                shutil.copy(template, site.path)
            self._open(site)
            with site.jay.records.writing() as tx:
                tx.sync.renew_origin()

    def close(self) -> None:
        for site in self.sites:
            site.jay.close()

    def _open(self, site: Site) -> None:
        site.engine = engine_on(
            self.stores[site.name]() if site.name in self.stores else SqliteStore(site.path),
            None,
            clock=lambda: self.time + site.skew,
            connect=lambda other, _create: Faulty(self, next(one for one in self.sites if one.name == other.name)),
            endpoints={name: name for name in NAMES if name != site.name},
        )

    # --- acts --------------------------------------------------------------------------------------------------------

    def pass_time(self, **by: float) -> None:
        self.time += timedelta(**by)

    def text(self) -> str:
        self.texts += 1
        return f"text{self.texts:04}."

    def store(self, site: Site, path: str | None = None) -> None:
        self.pass_time(seconds=1)
        text = self.text()
        memory = site.jay.store(text, **({"path": path} if path and self._free(site, path) else {})).memory
        self.ids.append(memory.id)
        self._acted(site, memory)

    def _free(self, site: Site, path: str) -> bool:
        return site.jay.records.files.at_path("default", path, EVERYTHING) is None

    def change(self, site: Site, id: str, act: Callable[[Memory], object]) -> None:
        """Do something to a memory, if it is there and can be done."""
        self.pass_time(seconds=1)
        found = site.jay.records.get([id], EVERYTHING)
        if not found:
            return
        with suppress(Error):
            act(found[0])
            self._acted(site, self.whole(site, [id])[0].memory, stamp_of(found[0]))

    def _acted(self, site: Site, memory: Memory, before: Stamped | None = None) -> None:
        """Note what an act made of a memory; one that left it as it was (superseded once more) says nothing of it."""
        site.since_backup.add(memory.id)
        act = Act((memory.hlc, memory.origin), before, memory.content, memory.status, memory.tags)
        if act.stamp != before:
            self.last[memory.id] = (memory.content, memory.status)
            self.acts.setdefault(memory.id, {})[act.stamp] = act

    def edit(self, site: Site, id: str) -> None:
        def act(memory: Memory) -> None:
            text = self.text()
            site.jay.update(id, content=text)
            self.parents[text] = memory.content

        self.change(site, id, act)

    def tag(self, site: Site, id: str, tag: str) -> None:
        self.change(
            site, id, lambda memory: site.jay.update(id, tags=(*memory.tags, tag), metadata={**memory.metadata, tag: 1})
        )

    def forget(self, site: Site, id: str) -> None:
        def act(_memory: Memory) -> None:
            site.jay.forget(id)
            self.forgotten.add(id)

        self.change(site, id, act)

    def erase(self, site: Site, id: str) -> None:
        def act(_memory: Memory) -> None:
            site.jay.forget(id, hard=True)
            self.wished_gone.add(id)

        self.change(site, id, act)

    def recover(self, site: Site, id: str) -> None:
        def act(_memory: Memory) -> None:
            site.jay.recover(id)
            self.recovered.add(id)

        self.change(site, id, act)

    def archive(self, site: Site, id: str) -> None:
        self.change(site, id, lambda _memory: site.jay.cold_storage.archive([id]))

    def restore(self, site: Site, id: str) -> None:
        def act(memory: Memory) -> None:
            site.jay.cold_storage.restore([id])
            if memory.status is Status.DELETED:
                self.recovered.add(id)

        self.change(site, id, act)

    def supersede(self, site: Site, old: str, new: str) -> None:
        if old == new:
            return
        self.pass_time(seconds=1)
        before = {one.id: stamp_of(one) for one in site.jay.records.get([old, new], EVERYTHING)}
        with suppress(Error):
            site.jay.supersede(old=old, new=new)
            for replica in self.whole(site, [old, new]):
                self._acted(site, replica.memory, before[replica.memory.id])

    def purge(self, site: Site) -> None:
        """Days go by, and housekeeping erases what is due."""
        self.pass_time(days=31)
        self.due |= set(site.jay.records.upkeep.due_for_purge(site.jay.now(), 1000))
        site.jay.parts.housekeeper.purge()

    def back_up(self, site: Site) -> None:
        if site.name in self.stores:
            return
        site.jay.records.flush_reads()
        site.backup = site.path.with_suffix(".backup")
        con = site.jay.records._connections._writable()
        con.wal_checkpoint()
        shutil.copy(site.path, site.backup)
        site.since_backup = set()

    def put_back(self, site: Site) -> None:
        """The disk is lost; the copy takes its place, under a new origin."""
        if site.backup is None:
            return
        self.remember(site)
        self.excused |= site.since_backup
        site.jay.close()
        for path in site.path.parent.glob(f"{site.path.name}*"):
            path.unlink()
        shutil.copy(site.backup, site.path)
        self._open(site)
        with site.jay.records.writing() as tx:
            tx.sync.renew_origin()

    def sync(self, site: Site, other: Site, type: SyncType, resolution: Resolution, faults: list[str]) -> None:
        self.pass_time(seconds=1)
        self.faults = iter(faults)
        resolution = self.only or resolution
        with suppress(EndpointUnreachable, Undecided):
            site.jay.sync.run(type=type, destination=other.name, resolution=resolution)
        self.faults = iter(())

    def deliver(self) -> None:
        """What was held up arrives after all."""
        if self.late:
            site, parcel, options = self.late.pop(0)
            with closing(self.line(self, site)) as peer:
                peer.take(parcel, options)

    # --- what must be true -------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Nobody writes, the line is good: two rounds."""
        one, two, three = self.sites
        while self.late:
            self.deliver()
        for _ in range(2):
            for site, other in ((one, two), (two, three), (one, three)):
                self.sync(site, other, SyncType.FULL, Resolution.NEWEST_WINS, [])

    def check(self) -> None:
        first, *others = [self.state(site) for site in self.sites]
        for other in others:
            assert other == first
        for site in self.sites:
            self.remember(site)
            assert not site.jay.sync.conflicts()
        for id in self.ids:
            self.check_one(id)

    def check_one(self, id: str) -> None:
        found = self.whole(self.sites[0], [id])
        if not found:
            assert id in self.excused  # it was only ever in the store that was lost
            return
        [replica] = found
        if id in self.wished_gone and id not in self.excused:
            assert replica.erased is Erased.FINAL
        records = self.records.get(id, [])
        alive = not replica.erased and replica.memory.status is not Status.DELETED
        if id in self.excused:
            return
        self.check_no_false_conflict(id)
        if alive and id in self.forgotten:
            assert id in self.recovered or records
        if replica.erased is Erased.FINAL:
            assert id in self.wished_gone
            if self.only is Resolution.NEWEST_WINS and id not in self.due:
                self.check_erased(id)
            return
        if not records:
            text, status = self.last[id]
            assert replica.memory.status is status
            assert replica.erased or replica.memory.content == text
        if id not in self.due:
            self.check_no_edit_lost(replica, "\n".join(records))
            if self.only is Resolution.NEWEST_WINS and not replica.erased:
                self.check_newest(replica)
            if self.only is Resolution.MERGE and not replica.erased:
                self.check_merged(replica)

    def check_no_edit_lost(self, replica: Replica, records: str) -> None:
        """Every text was changed by somebody who saw it, or stands in a recorded conflict."""
        if replica.erased:
            return
        kept = set(self.line_of(replica.memory.content))
        born = self.line_of(replica.memory.content)[-1]
        for text in self.parents:
            line = self.line_of(text)
            if line[-1] == born and text not in kept:
                descendants = [other for other in self.parents if text in self.line_of(other)]
                assert any(one in records for one in descendants), f"{text} is lost"

    def check_newest(self, replica: Replica) -> None:
        """The newest act made the state; every other is below it, stands in a record, or led to the same elsewhere."""
        acts = self.acts[replica.memory.id]
        if any(act.before not in acts for act in acts.values() if act.before) or stamp_of(replica.memory) not in acts:
            return  # it was moved off a path that another memory has: a change of the store's own
        newest = acts[max(acts)]
        memory = replica.memory
        assert (memory.content, memory.status, memory.tags) == newest.made
        assert stamp_of(memory) == newest.stamp
        kept = self.below(memory.id, newest.stamp)
        for pair in self.pairs(memory.id):
            for state in pair:
                kept |= self.below(memory.id, stamp_of(state.memory))
        same = {acts[stamp].made for stamp in kept}
        for act in acts.values():
            if act.made in same:
                kept |= self.below(memory.id, act.stamp)
        for act in acts.values():
            assert act.stamp in kept, f"{act} is lost"

    def check_merged(self, replica: Replica) -> None:
        """Nobody takes tags or metadata away here: all that were ever given are there."""
        given = {tag for act in self.acts[replica.memory.id].values() for tag in act.tags}
        assert given <= set(replica.memory.tags)
        assert given <= replica.memory.metadata.keys()

    def check_erased(self, id: str) -> None:
        """Who changed a memory without knowing that it was erased finds a record of that, without its text."""
        acts = self.acts[id]
        known = {stamp for act in acts.values() if not act.content for stamp in self.below(id, act.stamp)}
        if any(act.before not in acts for act in acts.values() if act.before):
            return
        lost = [act for act in acts.values() if act.stamp not in known]
        if any(act.made not in [acts[one].made for one in known] for act in lost):
            assert self.records.get(id), f"{lost} was erased without a record"

    def check_no_false_conflict(self, id: str) -> None:
        """Whatever was recorded was really apart: neither state was made on top of the other, and they differ."""
        for ours, theirs in self.pairs(id):
            assert told(ours.memory) != told(theirs.memory)
            one, other = stamp_of(ours.memory), stamp_of(theirs.memory)
            assert one not in self.below(id, other)
            assert other not in self.below(id, one)

    def pairs(self, id: str) -> list[tuple[Replica, Replica]]:
        """Both states of every conflict that was recorded."""
        told = [json.loads(record) for record in self.records.get(id, [])]
        return [(codec.read(Replica, ours), codec.read(Replica, theirs)) for ours, theirs in told if ours and theirs]

    def below(self, id: str, stamp: Stamped | None) -> set[Stamped]:
        """An act and those on top of which it was done."""
        found: set[Stamped] = set()
        while stamp is not None and stamp in self.acts[id]:
            found.add(stamp)
            stamp = self.acts[id][stamp].before
        return found

    def line_of(self, text: str) -> list[str]:
        line = [text]
        while line[-1] in self.parents:
            line.append(self.parents[line[-1]])
        return line

    def whole(self, site: Site, ids: list[str]) -> tuple[Replica, ...]:
        """Memories with their texts, also of those that were put away."""
        return direct(self, site).parcel(ids, vectors=False).replicas

    def remember(self, site: Site) -> None:
        for conflict in site.jay.records.sync.conflicts():
            told = json.dumps([conflict.ours, conflict.theirs])
            self.records.setdefault(conflict.memory, []).append(told)

    def state(self, site: Site) -> object:
        """Everything that syncs, byte for byte."""
        store = site.jay.records
        memories = {
            one.memory.id: (
                {
                    entry.name: getattr(one.memory, entry.name)
                    for entry in fields(Memory)
                    if entry.name not in LOCAL_FIELDS
                },
                one.erased,
                one.seen,
                one.aliases,
            )
            for one in self.whole(site, self.ids)
        }
        links = sorted(repr(link) for link in store.history.links(self.ids)) if self.ids else []
        return memories, links


class Faulty(Peer):
    """A line on which each message may get lost, be answered in vain, come twice or come late."""

    def __init__(self, world: World, site: Site) -> None:
        self._world, self._site = world, site
        self._peer = world.line(world, site)

    def _told(self, ask: Callable[[], object]) -> object:
        fault = next(self._world.faults, "ok")
        if fault == "lost":
            raise EndpointUnreachable
        answer = ask()
        if fault == "twice":
            answer = ask()
        if fault == "cut":
            raise EndpointUnreachable
        return answer

    @property
    def origin(self) -> str:
        return self._peer.origin

    def model(self) -> str | None:
        return self._told(self._peer.model)

    def spaces(self):
        return self._told(self._peer.spaces)

    def changes(self, space, after, *, limit) -> Changes:
        return self._told(lambda: self._peer.changes(space, after, limit=limit))

    def stamps(self, ids):
        return self._told(lambda: self._peer.stamps(ids))

    def links(self, ids):
        return self._told(lambda: self._peer.links(ids))

    def parcel(self, ids, *, vectors) -> SyncBatch:
        return self._told(lambda: self._peer.parcel(ids, vectors=vectors))

    def take(self, parcel: SyncBatch, options: TakeOptions) -> list[Taken]:
        fault = next(self._world.faults, "ok")
        if fault == "late":
            self._world.late.append((self._site, parcel, options))
            raise EndpointUnreachable
        if fault == "lost":
            raise EndpointUnreachable
        taken = self._peer.take(parcel, options)
        if fault == "twice":
            self._peer.take(parcel, options)
        if fault == "cut":
            raise EndpointUnreachable
        return taken

    def mark(self):
        return self._peer.mark()

    def renew(self) -> None:
        self._peer.renew()

    def close(self) -> None:
        self._peer.close()
