"""This store as the other side of another store's sync: what a remote caller may ask, in the terms of `peer.py`.

Only owners, since what travels includes other people's private memories; and only in the spaces granted to them: what
is elsewhere is not revealed, not linked to and not overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scrubjay.engine import access
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.local import StorePeer
from scrubjay.engine.sync.merge import WinnerPolicy
from scrubjay.engine.sync.peer import Changes, SyncBatch, Taken, TakeOptions
from scrubjay.errors import Conflict, Forbidden
from scrubjay.stores.promises.sync import Heard, Stamp
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Link

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


class Host:
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
