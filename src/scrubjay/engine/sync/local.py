"""A store that this process has open, as a place to sync with (`peer.py` says what that can be asked).

take    one transaction: memories join what is here (`merge.py`), on free paths; then links, and what they imply
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine import access
from scrubjay.engine.archive.archives import ArchivedText, is_away, pack, read_archive, with_text
from scrubjay.engine.holding import locked_error
from scrubjay.engine.lifecycle import supersession
from scrubjay.engine.lifecycle.supersession import PLAIN, SUPERSEDES
from scrubjay.engine.store import intake, names
from scrubjay.engine.store.models import models_of
from scrubjay.engine.sync.merge import Joined, Winner, differing, includes, join_replicas
from scrubjay.engine.sync.peer import Changes, Peer, SyncBatch, Taken, TakeOptions
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, ClockAhead
from scrubjay.stores.promises.memories import OWN_MODEL, Change, Reads, Store, Transaction, clock_at
from scrubjay.stores.promises.sync import Erased, Heard, Replica, Stamp, SyncConflict
from scrubjay.values import codec
from scrubjay.values.callers import Provenance
from scrubjay.values.memory import Archive, Kind, Link, Memory, Status, Tier
from scrubjay.values.store import Event
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.archives.base import Objects
    from scrubjay.embedders.base import Vector


USUAL_SKEW = timedelta(minutes=1)  # between machines that ask a time server
MOST_AHEAD = timedelta(hours=1)
MEND_CLOCK = "scrubjay sync mend-clock"
MENDING = f"Check the clocks of both machines. Then fix the store with the wrong timestamps: {MEND_CLOCK}"


class _Undone(Exception):
    """A dry run is over."""


@dataclass(eq=False)
class StorePeer(Peer):
    """A store that this process has open. `split` says what parts of a memory are embedded."""

    store: Store
    now: Callable[[], datetime]
    user: str
    split: Callable[[Memory], Sequence[str]] | None = None
    wake: Callable[[], None] | None = None
    objects: Objects | None = None  # where it archives memories
    new_model: str | None = None  # whose vectors it will keep, while it has none yet
    owned: bool = True  # whether closing the peer closes the store
    read_only: frozenset[str] = frozenset()  # spaces whose files are

    @property
    def origin(self) -> str:
        return self.store.origin

    def model(self) -> str | None:
        return self.store.history.fact(OWN_MODEL) or self.new_model

    def spaces(self) -> Sequence[str]:
        return list(self.store.spaces.described())

    def sealed(self, space: str) -> bool:
        return space in self.read_only

    def changes(self, space: str, after: Heard, *, limit: int) -> Changes:
        # One event earlier than asked: if it is not the one that was heard last, the feed is another one.
        start = max(after.number - 1, 0)
        events = self.store.history.events(space, after=start, limit=limit + 1)
        if after.number:
            if not events or _proof(events[0]) != after.proof:
                return replace(self.changes(space, Heard(), limit=limit), restarted=True)
            events = events[1:]
        else:
            events = events[:limit]
        ids = tuple(dict.fromkeys(event.memory for event in events if event.memory is not None))
        heard = Heard(events[-1].number, _proof(events[-1])) if events else after
        return Changes(ids=ids, heard=heard, more=len(events) == limit)

    def stamps(self, ids: Sequence[str]) -> dict[str, Stamp]:
        return self.store.sync.stamps(ids, access.EVERYTHING)

    def links(self, ids: Sequence[str]) -> Sequence[Link]:
        return self.store.history.links(ids) if ids else ()

    def parcel(self, ids: Sequence[str], *, vectors: bool) -> SyncBatch:
        further = models_of(self.store) if vectors else ()
        found = self.store.sync.replicas(ids, access.EVERYTHING, vectors=vectors, further=further)
        away = self._put_away(self.store, found)
        replicas = tuple(
            with_archived_text(one, away) for one in found if away.get(one.memory.id, NOT_AWAY) is not None
        )
        names = {one.memory.space for one in replicas}
        return SyncBatch(
            replicas=replicas,
            unreadable=tuple(name for name, kept in away.items() if kept is None),
            spaces={name: told for name, told in self.store.spaces.described().items() if name in names},
            model=self.model() if vectors else None,
        )

    def _put_away(self, reads: Reads, replicas: Sequence[Replica]) -> dict[str, Away | None]:
        """The archived parts of these memories; None for what cannot be read."""
        ids = [one.memory.id for one in replicas if not one.erased and is_away(one.memory)]
        found: dict[str, Away | None] = {}
        for name, archive in reads.archives.get(ids).items() if ids else ():
            try:
                found[name] = Away(archive, read_archive(archive, self.objects))
            except (ArchiveDamaged, ArchiveUnavailable):
                found[name] = None
        return found

    def take(self, parcel: SyncBatch, options: TakeOptions) -> Sequence[Taken]:
        self._check_clocks(parcel, options)
        taken: list[Taken] = []
        with suppress(_Undone), self.store.writing() as tx:
            for name, description in parcel.spaces.items():
                tx.spaces.create(name, at=self.now(), description=description)
            taken += self._take_memories(tx, parcel, options)
            linked = self._take_links(tx, parcel.links)
            # Also of those that only took another stamp: what follows from links came along as it was there.
            self._settle(tx, {one.memory for one in taken} | linked)
            if options.dry_run:
                raise _Undone
        if self.wake is not None and not options.dry_run and any(one.change for one in taken):
            self.wake()
        return taken

    def mark(self) -> str | None:
        return self.store.history.fact("sync_mark")

    def leave_mark(self, mark: str) -> None:
        with self.store.writing() as tx:
            tx.history.set_fact("sync_mark", mark)

    def renew(self) -> None:
        with self.store.writing() as tx:
            tx.sync.renew_origin(late=True)

    def close(self) -> None:
        if self.owned:
            self.store.close()

    # --- memories ----------------------------------------------------------------------------------------------------

    def _take_memories(self, tx: Transaction, parcel: SyncBatch, options: TakeOptions) -> Iterable[Taken]:
        ids = [one.memory.id for one in parcel.replicas]
        found = tx.sync.replicas(ids, access.EVERYTHING)
        away = self._put_away(tx, found)
        here = {one.memory.id: with_archived_text(one, away) for one in found}
        carried = parcel.model is not None and (tx.history.fact(OWN_MODEL) or self.new_model) in (None, parcel.model)
        if carried and tx.history.fact(OWN_MODEL) is None and any(one.vectors for one in parcel.replicas):
            tx.history.set_fact(OWN_MODEL, parcel.model or "")
        further = models_of(tx)
        if not further and (further := sorted({model for one in parcel.replicas for model in one.further})):
            tx.upkeep.keep_models(further)
        # Known ones first: one of them may give up the path that a new one has.
        for incoming in sorted(parcel.replicas, key=lambda one: (one.memory.id not in here, one.memory.hlc)):
            name = incoming.memory.id
            # No memory ever leaves its space: one that claims to would reach where its sender may not.
            elsewhere = name in here and here[name].memory.space != incoming.memory.space
            if elsewhere or (away.get(name, NOT_AWAY) is None and not incoming.erased):
                yield Taken(memory=name, change=None, failed=True)
            else:
                yield self._take(tx, here.get(name), incoming, options, carried=carried, away=away.get(name))
                if incoming.further:
                    self._take_further(tx, incoming, further)

    def _take_further(self, tx: Transaction, incoming: Replica, models: Sequence[str]) -> None:
        """The vectors of these further models, unless the memory here has another text."""
        [now, *_] = tx.sync.replicas([incoming.memory.id], access.EVERYTHING)
        if now.erased or now.memory.embeddable != incoming.memory.embeddable:
            return
        for model, vectors in incoming.further.items():
            if model in models:
                tx.add_vectors(
                    now.memory.id,
                    version=now.memory.version,
                    first_part=0,
                    vectors=vectors,
                    parts=len(vectors),
                    also=now.memory.also,
                    model=model,
                )

    def _take(
        self,
        tx: Transaction,
        current: Replica | None,
        incoming: Replica,
        options: TakeOptions,
        *,
        carried: bool,
        away: Away | None,
    ) -> Taken:
        outcome = join_replicas(current, incoming, options.policy, latest=self._latest)
        change = None
        if outcome.state is not None:
            state = self._stamp(tx, outcome.state) if outcome.stamped_anew else outcome.state
            state = self._on_a_free_path(tx, state)
            self._check_free(tx, memory=state.memory.id)
            if away is not None and not state.erased and not _same_stamp(current, state):
                tx.bring_back(away.kept.memory, away.kept.versions, at=self.now())
            self._write(tx, current, state, carried=carried)
            if state.archive is not None and state.memory.status is not Status.ACTIVE:
                self._put_away_again(tx, state)
            if options.recorded:
                self._settle_conflicts(tx, state, outcome.winner if outcome.conflict else "elsewhere")
            change = _change(current, state)
        if outcome.conflict and outcome.winner is not Winner.NONE and options.recorded:
            assert current is not None
            self._note(tx, current, incoming, outcome, options)
        return Taken(
            memory=incoming.memory.id,
            change=change,
            conflict=outcome.conflict,
            winner=outcome.winner,
            current=current if outcome.winner is Winner.NONE else None,
        )

    def _put_away_again(self, tx: Transaction, state: Replica) -> None:
        """What was archived elsewhere is archived here: in the store, whatever its tier was there."""
        name, now = state.memory.id, self.now()
        if state.archive is None or state.erased or name in tx.archives.get([name]):
            return
        [memory] = tx.get([name], access.EVERYTHING)
        data = pack(ArchivedText(memory=memory, versions=tuple(tx.history.versions(name))), Tier.COLD)
        archive = Archive(
            id=state.archive, tier=Tier.COLD, at=now, size=len(data), checksum=sha256(data).digest(), packed=data
        )
        tx.put_away(name, archive, keep_vectors=state.parts > 0)

    def _check_free(self, tx: Transaction, memory: str) -> None:
        """:raises Locked: while long work holds it: the next run brings it"""
        for held in tx.jobs.held_by_others([memory]):
            raise locked_error(held)

    def _stamp(self, tx: Transaction, state: Replica) -> Replica:
        """As a change that this store makes."""
        self._observe(tx, state)
        now = self.now()
        updated = max(now, state.memory.updated_at)
        return replace(
            state, memory=replace(state.memory, updated_at=updated, hlc=tx.clock.tick(now), origin=self.origin)
        )

    def _observe(self, tx: Transaction, state: Replica) -> None:
        """Let our clock be past what it sees, but not carried away by one that is ahead: of memories, `seen` says which
        change came after which. Only what bears our own name must never be in front of us."""
        for origin, hlc in ((state.memory.origin, state.memory.hlc), *state.seen.items()):
            tx.clock.observe(hlc if origin == self.origin else min(hlc, self._latest))

    @property
    def _latest(self) -> int:
        """What is stamped later than this is from the future."""
        return clock_at(self.now() + USUAL_SKEW)

    def _check_clocks(self, parcel: SyncBatch, options: TakeOptions) -> None:
        """:raises ClockAhead: for a stamp that no working clock has made, before anything is written"""
        now, clock = self.now(), self.store.sync.clock()
        # Where our own clock was set back, earlier stamps are ahead: ours, and those of stores that synced with us.
        latest = max(clock_at(now), clock) + clock_at(now + MOST_AHEAD) - clock_at(now)
        # Our clock follows what bears our name, so each of these stamps would lift the bound for the next one.
        own = max(clock_at(now + MOST_AHEAD), clock)
        for name, origin, hlc in _stamps(parcel):
            if hlc > (own if origin == self.origin else latest):
                whose = "this store" if origin == self.origin else "another store"
                raise ClockAhead(
                    f"Sync with {options.sender} is refused: a change to {name} was stamped by {whose} "
                    f"{ahead(hlc, now)} ahead of this machine's clock; at most an hour is accepted.",
                    hint=MENDING,
                    memory_id=name,
                )

    def _on_a_free_path(self, tx: Transaction, state: Replica) -> Replica:
        """Of two memories that came to the same path in different stores the younger one moves: its name gets an end
        made from its id, so that every store which notices does the same."""
        memory = state.memory
        if state.erased or memory.status is not Status.ACTIVE:
            return state
        holder = names.holder(tx, memory)
        if holder is None:
            return state
        if (holder.created_at, holder.id) < (memory.created_at, memory.id):
            return self._move_path(tx, state)
        [replica] = tx.sync.replicas([holder.id], access.EVERYTHING)
        self._write(tx, replica, self._move_path(tx, replica), carried=False)
        return state

    def _move_path(self, tx: Transaction, state: Replica) -> Replica:
        """On a path of its own; a checkpoint, whose path is its number, gets the next number."""
        memory, aliases = state.memory, state.aliases
        path = f"{memory.path}-{memory.id[-6:]}"
        if memory.kind is Kind.CHECKPOINT:
            number = names.free_number(tx, memory.space)
            path, former = f"checkpoints/{number}", names.alias_of(memory)
            memory = replace(memory, detail={**memory.detail, "name": f"checkpoint_{number}"})
            aliases = tuple(one for one in (*aliases, names.alias_of(memory)) if one is not None and one != former)
        seen = {**state.seen, memory.origin: max(state.seen.get(memory.origin, 0), memory.hlc)}
        memory = replace(memory, path=path, version=memory.version + 1)
        return self._stamp(tx, replace(state, memory=memory, seen=seen, aliases=aliases))

    def _write(self, tx: Transaction, current: Replica | None, state: Replica, *, carried: bool) -> None:
        memory = state.memory
        self._observe(tx, state)
        kept = current is not None and not current.erased and current.memory.embeddable == memory.embeddable
        vectors: Sequence[Vector] | None = None if kept else state.vectors if carried else ()
        if not carried and not state.erased and state.parts and self.split is not None:
            state = replace(state, parts=len(self.split(memory)))
        tx.replicate(
            state,
            fingerprint=None if state.erased else intake.fingerprint(memory),
            vectors=vectors,
            change=Change(user=self.user, at=self.now(), reason="sync"),
        )
        if state.memory.kind is Kind.MEMORY and vectors and memory.status is Status.ACTIVE and not state.erased:
            tx.upkeep.await_judgement(memory.id)  # what comes without vectors waits for both
        if not state.erased:
            self._keep_number(tx, memory)
        if current is not None and memory.access_count > current.memory.access_count:
            tx.set_access_count(memory.id, memory.access_count)
        changed = () if current is None else differing(current.memory, memory)
        self._record(tx, memory, "synced", changed)

    def _keep_number(self, tx: Transaction, memory: Memory) -> None:
        """Let the name of a checkpoint lead to the one with this number and this path."""
        if (number := names.number_of(memory)) is not None:
            tx.spaces.note_checkpoint(memory.space, number if number < names.MOST_NUMBERED else 0)
            tx.history.move_alias(names.alias_of(memory) or memory.id, memory.id)

    def _record(self, tx: Transaction, memory: Memory, action: str, names: tuple[str, ...] = ()) -> None:
        """Tell the feed, so that the next store hears of it from here."""
        tx.history.record(
            Event(
                space=memory.space,
                at=self.now(),
                action=action,
                memory=memory.id,
                fields=names,
                user=self.user,
                provenance=Provenance(client="sync", caller=self.user, transport="sync"),
            )
        )

    def _note(
        self, tx: Transaction, current: Replica, incoming: Replica, outcome: Joined, options: TakeOptions
    ) -> None:
        now, erased = self.now(), Erased.FINAL in (current.erased, incoming.erased)
        tx.sync.note_conflict(
            SyncConflict(
                memory=current.memory.id,
                endpoint=options.sender,
                policy=options.named,
                at=now,
                outcome=outcome.winner,
                settled_at=now,
                # What someone wanted erased is not kept here either.
                ours=None if erased else codec.write_json(without_vectors(current)),
                theirs=None if erased else codec.write_json(without_vectors(incoming)),
            )
        )

    def _settle_conflicts(self, tx: Transaction, state: Replica, outcome: str) -> None:
        """Conflicts that waited here are decided, now or before in another store."""
        for conflict in tx.sync.conflicts(open=True, memory=state.memory.id):
            theirs = codec.read(Replica, conflict.theirs) if conflict.theirs else None
            if theirs is not None and includes(state.stamp, theirs.stamp):
                tx.sync.settle_conflict(conflict.number, outcome, at=self.now())

    # --- links -------------------------------------------------------------------------------------------------------

    def _take_links(self, tx: Transaction, links: Sequence[Link]) -> set[str]:
        """Write those that are new or newer; the memories at their ends."""
        ends = sorted({end for link in links for end in (link.source, link.target)})
        here = {link.key: link for link in tx.history.links(ends)} if ends else {}
        stamps = tx.sync.stamps(ends, access.EVERYTHING) if ends else {}
        touched: set[str] = set()
        for link in links:
            known = here.get(link.key)
            if known is not None and (known.hlc, known.origin) >= (link.hlc, link.origin):
                continue
            erased = any(end in stamps and stamps[end].erased for end in (link.source, link.target))
            tx.clock.observe(min(link.hlc, self._latest))
            tx.history.relate(replace(link, reason=None) if erased else link)
            touched |= {link.source, link.target}
        for memory in tx.get(sorted({link.source for link in links} & touched), access.EVERYTHING):
            self._record(tx, memory, "linked")
        return touched

    def _settle(self, tx: Transaction, ids: set[str]) -> None:
        """What follows from links: what a memory supersedes, and what it is superseded by.

        It is the same in every store that has the same links, so it needs no stamp, and no edit loses to it.
        """
        links = tx.history.links(sorted(ids), kinds=SUPERSEDES) if ids else ()
        ends = sorted({end for link in links for end in (link.source, link.target)})
        there = tx.get(ends, PLAIN)
        gone = set(ends) - {memory.id for memory in there if memory.status is not Status.DELETED}
        for memory in (*there, *supersession.predecessors(tx, gone)):
            supersession.settle(tx, memory)


def _stamps(parcel: SyncBatch) -> Iterator[tuple[str, str, int]]:
    """Every stamp that travels: of which memory, by which store."""
    for one in parcel.replicas:
        yield one.memory.id, one.memory.origin, one.memory.hlc
        for origin, hlc in one.seen.items():
            yield one.memory.id, origin, hlc
    for link in parcel.links:
        yield link.source, link.origin, link.hlc


def ahead(hlc: int, now: datetime) -> str:
    """How far a stamp is ahead, in words."""
    hours = ((hlc >> 16) - milliseconds(now)) / 3_600_000
    if hours > 24 * 365:
        return f"{hours / 24 / 365:,.0f} years"
    return f"{hours / 24:,.0f} days" if hours > 48 else f"{hours:.1f} hours"


class Away(NamedTuple):
    """The archived part of a memory."""

    archive: Archive
    kept: ArchivedText


NOT_AWAY = object()


def with_archived_text(replica: Replica, away: Mapping[str, Away | None]) -> Replica:
    """A memory with its archived text."""
    found = away.get(replica.memory.id)
    if found is None:
        return replica
    return replace(replica, memory=with_text(replica.memory, found.kept.memory), archive=found.archive.id)


def _same_stamp(current: Replica | None, state: Replica) -> bool:
    if current is None:
        return False
    return (current.memory.hlc, current.memory.origin) == (state.memory.hlc, state.memory.origin)


def without_vectors(replica: Replica) -> Replica:
    return replace(replica, vectors=(), further={})


def _change(current: Replica | None, state: Replica) -> str | None:
    """In a client's words what happened to a memory; that another store's change is now known is nothing to tell."""
    gone = bool(state.erased) or state.memory.status is Status.DELETED
    was_gone = current is None or bool(current.erased) or current.memory.status is Status.DELETED
    if gone:
        return None if was_gone else "deleted"
    if current is None:
        return "created"
    return "updated" if was_gone or differing(current.memory, state.memory) else None


def _proof(event: Event) -> str:
    return f"{event.memory} {event.action} {milliseconds(event.at)}"
