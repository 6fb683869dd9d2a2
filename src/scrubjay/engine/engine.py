"""The verbs of memory, each readable from top to bottom.

An engine is bound to a caller, the spaces it works in (the first for writing) and where its calls come from; servers
bind one per request, sharing everything behind it. Nothing here knows SQL, JSON or HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.desk import RELATED, Desk
from scrubjay.engine.lifecycle import lifecycle, supersession
from scrubjay.engine.store import intake, names
from scrubjay.engine.store.history import Text
from scrubjay.errors import Conflict, NotFound, ScopeNotFound, SpaceNotFound
from scrubjay.stores.promises.memories import Checkup, Reads, SpaceCounts, Transaction
from scrubjay.values.memory import (
    AT_HAND,
    DEFAULT_SPACE,
    Audience,
    Filter,
    Forgotten,
    Hits,
    Kind,
    Link,
    Memory,
    NewMemory,
    OpenConflict,
    Order,
    Page,
    Query,
    Recall,
    Revised,
    Role,
    Space,
    State,
    Stored,
    Version,
)

if TYPE_CHECKING:
    from scrubjay.engine.archive.cold_storage import ColdStorage
    from scrubjay.engine.callers import Callers
    from scrubjay.engine.conflicts.duplicates import Twins
    from scrubjay.engine.conversations.conversations import Conversations
    from scrubjay.engine.conversations.workspaces import Workspaces
    from scrubjay.engine.decisions.decisions import Decisions
    from scrubjay.engine.feed import Feed
    from scrubjay.engine.files.paths import Paths
    from scrubjay.engine.jobs import Jobs
    from scrubjay.engine.lifecycle.bulk import Bulk
    from scrubjay.engine.lifecycle.consolidation import Consolidation
    from scrubjay.engine.lifecycle.curation import Curation
    from scrubjay.engine.statistics import Statistics, StatsQuery
    from scrubjay.engine.sync.run import Syncing
    from scrubjay.engine.transfer import Imported
    from scrubjay.engine.upkeep.reembedding import Reembedded
    from scrubjay.engine.upkeep.tasks import Upkeep

BATCH = 64  # memories of a bulk load, or of what is pruned, per transaction
MOST_PRUNED = 100_000  # at once; what is left waits for the next time
ATTEMPTS = 5  # at a change that others keep overtaking


class Engine(Desk):
    """A memory, as one caller uses it."""

    # --- its other parts, each imported when it is first used ---------------------------------------------------------

    @property
    def decisions(self) -> Decisions:
        """Decisions that evolve by topic, and checkpoints."""
        from scrubjay.engine.decisions.decisions import Decisions

        return Decisions(self)

    @property
    def paths(self) -> Paths:
        """Memories by where they lie in a space."""
        from scrubjay.engine.files.paths import Paths

        return Paths(self)

    # --- remembering -------------------------------------------------------------------------------------------------

    def store(self, new: NewMemory | str, **fields: Any) -> Stored:
        """Keep a memory, and name earlier ones that it may outdate. Never refused for being like another, unless the
        caller asks for it to be the only one with its words."""
        given = intake.new_memory(new, fields)
        if given.kind is not Kind.MEMORY:
            return self.decisions.keep(given).stored
        admitted = self._admitted(given)
        text, degraded = self._embedded(admitted)
        self._strict(degraded)
        memory = self._enriched(admitted, given, text.first)
        neighbours = self._neighbours(memory, text.first)
        proposals = self._proposals(memory, neighbours)

        def write(tx: Transaction) -> Stored:
            self._check_quota(tx, memory)
            if given.unique:
                self._check_unique(tx, memory)
            stored = self._ledger.add(tx, memory, text, judged=bool(text.vectors))
            if given.as_file and self._registry is not None:
                tx.keep_as_file([stored.id])
            self._propose(tx, stored, proposals)
            links = self._relate(tx, stored, given, neighbours)
            if (agreed := neighbours.agree_with(stored.category)) is not None:
                tx.judge_category(stored.id, agreed=agreed)
            similar = tuple(proposal.memory for proposal in proposals)
            return Stored(memory=stored, similar=similar, degraded=degraded, links=links)

        result = self._transact(Stored, write)
        if not text.whole:
            self._backlog.wake()
        return result

    def store_many(
        self,
        items: Iterable[NewMemory | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Sequence[str]:
        """Keep many memories, one transaction per batch; their ids in order. Conflicts are not judged."""
        ids: list[str] = []
        for admitted, texts, given in self._embedded_ahead(self._admitted_batches(items)):
            memories = [
                self._enriched(memory, new, text.first)
                for memory, new, text in zip(admitted, given, texts, strict=True)
            ]
            ledger = self._ledger
            with self._records.writing() as tx:
                for memory, text in zip(memories, texts, strict=True):
                    if memory.kind is Kind.DECISION:
                        self.decisions.add(tx, memory, text)
                    else:
                        ledger.add(tx, memory, text, judged=True)
            self._write_files(patient=True)
            ids += [memory.id for memory in memories]
            if progress:
                progress(len(ids))
        self._indexer.finish()
        return ids

    def _admitted_batches(
        self, items: Iterable[NewMemory | Mapping[str, Any]]
    ) -> Iterator[tuple[Sequence[Memory], Sequence[NewMemory]]]:
        for batch in batches(items):
            given = [intake.new_memory(item, {}) for item in batch]
            yield [self._admitted(new) for new in given], given

    def update(
        self, id: str, *, reason: str | None = None, expected_version: int | None = None, **fields: Any
    ) -> Memory:
        """Change a memory; its former state stays in the history."""
        return self.revise(id, reason=reason, expected_version=expected_version, **fields).memory

    def revise(
        self,
        id: str,
        *,
        merge: intake.Merge = intake.Merge.REPLACE,
        tag_change: intake.TagChange | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
        related: Sequence[str] | None = None,
        held: bool = False,
        **fields: Any,
    ) -> Revised:
        """Change a memory and say where its former state is kept. Only changed text is embedded again.

        `related` names all memories that it is to be linked with; `held` says that the fields are those of a former
        version. What changes nothing makes no version.
        """
        if (kept := self._kept(Revised)) is not None:
            return kept  # before it is looked at: what it has become may not allow the change a second time
        expected = expected_version or self._expected_version
        for _ in range(ATTEMPTS):
            known = self._ledger.changeable(self._records, id)
            only_links = related is not None and not fields and tag_change is None
            changed = {} if only_links else intake.revision(known, fields, merge, tag_change, held=held)
            flags = known.flags
            if changed.keys() & {"content", "title", "metadata"}:
                examined = self._examined(intake.retitled(known, changed))
                changed, flags = {name: getattr(examined, name) for name in changed}, examined.flags
            text = self._embedded(intake.retitled(known, changed))[0] if "content" in changed else None

            def write(
                tx: Transaction, known: Memory = known, changed: Any = changed, flags: Any = flags, text: Any = text
            ) -> Revised:
                current = self._ledger.changeable(tx, id)
                if expected not in (None, current.version) or current.version != known.version:
                    raise lifecycle.changed_meanwhile(current)
                linked = related is not None and self._relink(tx, current, related)
                revised = replace(intake.retitled(current, changed), flags=flags)
                done = self._ledger.revise(tx, current, revised, changed, reason=reason, text=text)
                if not linked:
                    return done
                self._ledger.record(tx, done.memory, "linked", reason=reason)
                return replace(done, fields=(*done.fields, RELATED))

            try:
                revised = self._transact(Revised, write)
            except Conflict:
                if expected is not None:
                    raise
                continue  # somebody was quicker: look at what it is now
            if text is not None and not text.whole:
                self._backlog.wake()
            return revised
        raise lifecycle.changed_meanwhile(known)

    def supersede(self, *, old: str, new: str) -> tuple[Memory, Memory]:
        """Mark a memory as outdated by a newer one. Both stay; searches show only the newer."""
        return self._transact(
            tuple[Memory, Memory],
            lambda tx: lifecycle.supersede(self._ledger, tx, old, new, expected_version=self._expected_version),
        )

    def open_conflicts(self, *, limit: int = 50, offset: int = 0) -> Sequence[OpenConflict]:
        """Pairs of which the newer memory may outdate the older, and nobody has said whether it does; newest first."""
        from scrubjay.engine.conflicts import settle

        intake.check_limit(limit, offset)
        audience = self._audience(Filter())
        return settle.open_conflicts(self._records, audience, now=self.now(), limit=limit, offset=offset)

    def settle(self, *, old: str, new: str, keep: bool = False) -> tuple[Memory, Memory]:
        """Say of such a pair that the newer supersedes the older, or that both are kept. Saying it twice is no error.

        :raises NotFound: if nobody proposed it
        """
        from scrubjay.engine.conflicts import settle

        return self._transact(
            tuple[Memory, Memory], lambda tx: settle.settle(self._ledger, tx, old=old, new=new, keep=keep)
        )

    def duplicates(self) -> Iterator[Twins]:
        """Pairs of memories that say the same in the same words, articles aside; a stream, newest first."""
        from scrubjay.engine.conflicts import duplicates

        return duplicates.found(self._records, self._audience(Filter()), now=self.now())

    # --- finding -----------------------------------------------------------------------------------------------------

    def search(self, query: Query | str, **options: Any) -> Hits:
        """Find memories by words and by meaning, best first; nothing relevant is an empty answer."""
        query = intake.query(query, options)
        found = self._found(query, self._audience(query.filter), query.now or self.now())
        self._count_reads([hit.memory for hit in found])
        return found

    def _found(self, query: Query, audience: Audience, now: datetime) -> Hits:
        """The search itself; who asks is not noted."""
        found = self._candidates(query, audience, now)
        hits = self._hits(found.candidates, query, audience, now)
        return Hits(hits=hits, total=len(found.candidates), degraded=found.degraded, periods=found.periods)

    def get(self, id: str, *, deleted: bool = False) -> Memory:
        """A memory by its id; softly deleted ones only if asked for.

        :raises NotFound: if there is none, or none that the caller may see
        """
        [memory] = self._whole([self._ledger.seen(self._records, id, deleted=deleted, elsewhere=True)])
        return memory

    def list(
        self,
        filter: Filter | None = None,
        *,
        order: Order = Order.CREATED,
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
        cursor: str | None = None,
        counted: bool = False,
        linked: bool = False,
        room: Callable[[Sequence[Memory]], int] | None = None,
    ) -> Page:
        """Memories in order, newest first unless asked otherwise; a cursor goes on where a page ended.

        `counted` also says how many there are in all, `linked` how many links each has. `room` says for how many of a
        page's memories there is room, at least one: the page ends there.
        """
        intake.check_limit(limit, offset)
        wanted = filter or Filter()
        self._look_at_folders()
        audience, now = self._audience(wanted), self.now()
        after = self._position(cursor, wanted, order, descending)
        memories = self._records.list(
            wanted, audience, now=now, order=order, descending=descending, limit=limit + 1, offset=offset, after=after
        )
        asked = self._whole(memories[:limit], deep=False)
        whole = asked if room is None else asked[: room(asked)]
        page = memories[: len(whole)]
        more = len(memories) > len(page)
        return Page(
            memories=tuple(whole),
            total=self._records.count(wanted, audience, now=now) if counted else None,
            cursor=self._cursor(page[-1], wanted, order, descending) if more else None,
            links=self._link_counts(page) if linked else {},
            lengths=self._lengths(whole),
            left_out=len(asked) - len(whole),
        )

    def history(self, id: str) -> Sequence[Version]:
        """Former states of a memory, newest first, with what each change was made for; also of a softly deleted one.

        Those that the caller may see as they were, whoever may see the memory now.
        """
        memory = self._ledger.seen(self._records, id, deleted=True, elsewhere=True)
        since = self._records.versions(memory.id)
        former = since if memory.content else [*since, *self.cold_storage.history(memory)]
        return self._ledger.versions_seen(self._records, former)

    def links(self, id: str) -> Sequence[Link]:
        """What a memory is linked with, as far as the caller may see it."""
        return self._ledger.links_seen(self._records, [self.get(id).id])

    # --- forgetting --------------------------------------------------------------------------------------------------

    def forget(
        self,
        id: str,
        *,
        hard: bool = False,
        reason: str | None = None,
        days: int = lifecycle.RETENTION_DAYS,
        cascade: bool = False,
    ) -> Forgotten:
        """Delete a memory: softly, to be brought back for some days, or for good.

        `cascade` also forgets the memories that a client linked it with, one step far.
        """
        forgotten = self._transact(
            Forgotten,
            lambda tx: lifecycle.forget(
                self._ledger,
                tx,
                id,
                hard=hard,
                reason=reason,
                days=days,
                cascade=cascade,
                expected_version=self._expected_version,
            ),
        )
        self._tidy()
        return forgotten

    def recover(self, id: str) -> Memory:
        """Bring a softly deleted memory back."""
        return self._transact(Memory, lambda tx: lifecycle.recover(self._ledger, tx, id))

    def restore_version(self, id: str, version: int | str) -> Memory:
        """Make a former state, by its number or its id, the current one again; today's state joins the history."""
        if (kept := self._kept(Revised)) is not None:
            return kept.memory
        former = next((one.memory for one in self.history(id) if version in (one.memory.version, one.id)), None)
        if former is None:
            hint = "Its history lists them, and an update's reply names the one before."
            raise NotFound(f"Memory {id} has no former version {version}.", hint=hint)
        fields = {name: getattr(former, name) for name in intake.CHANGEABLE}
        if former.kind is not Kind.MEMORY:
            del fields["content"]
        if self.caller.role is not Role.OWNER:
            del fields["verified_at"]  # not theirs to say
        return self.revise(id, reason=f"restored version {version}", held=True, **fields).memory

    def prune(self, *, dry_run: bool = False) -> Sequence[Memory]:
        """Softly delete what has expired in this engine's spaces, and say which; a dry run only says.

        A batch at a time: an error leaves those before it pruned.
        """
        if not dry_run and (kept := self._kept(tuple[Memory, ...])) is not None:
            return kept
        expired = Filter(states=AT_HAND, expired=True)
        audience, now = self._audience(expired), self.now()
        found = self._records.list(expired, audience, now=now, limit=MOST_PRUNED)
        pruned = [memory for memory in found if access.may_change(self.caller, memory)]
        if dry_run:
            return pruned
        for batch in batches(pruned):
            still = replace(expired, ids=frozenset(memory.id for memory in batch))
            with self._records.writing() as tx:
                for memory in tx.list(still, audience, now=now, limit=BATCH):
                    lifecycle.forget(self._ledger, tx, memory.id, hard=False, reason="expired")
        return self._transact(tuple[Memory, ...], lambda _tx: tuple(pruned))

    @property
    def bulk(self) -> Bulk:
        """The same done to many memories."""
        from scrubjay.engine.lifecycle.bulk import Bulk

        return Bulk(self)

    @property
    def curation(self) -> Curation:
        """What people do by hand: take back a supersession, compare, look around."""
        from scrubjay.engine.lifecycle.curation import Curation

        return Curation(self)

    # --- talking -----------------------------------------------------------------------------------------------------

    @property
    def conversations(self) -> Conversations:
        """Conversations, and what memories are put into them."""
        from scrubjay.engine.conversations.conversations import Conversations

        return Conversations(self)

    @property
    def workspaces(self) -> Workspaces:
        """Spaces, as workspaces with their memories."""
        from scrubjay.engine.conversations.workspaces import Workspaces

        return Workspaces(self)

    # --- counting ----------------------------------------------------------------------------------------------------

    def statistics(self, query: StatsQuery | None = None) -> Statistics:
        """Counts, sizes, rates, trends and health of what the caller may see.

        :raises ScopeNotFound: if nobody has heard of the user, conversation or category
        """
        from scrubjay.engine import statistics

        asked = query or statistics.StatsQuery()
        found = statistics.statistics(self._records, self.caller, self.spaces, asked, now=self.now())
        if not found.exists:
            raise ScopeNotFound(f"There is no {asked.scope} {asked.scope_id}.", scope_id=asked.scope_id)
        return found

    # --- parts -------------------------------------------------------------------------------------------------------

    @property
    def callers(self) -> Callers:
        """Credentials, grants and the audit."""
        from scrubjay.engine.callers import Callers  # servers and owners need it, not every call

        return Callers(self)

    @property
    def feed(self) -> Feed:
        """The changes of a space, as they happen."""
        from scrubjay.engine.feed import Feed

        return Feed(self)

    @property
    def jobs(self) -> Jobs:
        """Work in the background: start, look at, cancel."""
        from scrubjay.engine.jobs import Jobs

        return Jobs(self)

    @property
    def consolidation(self) -> Consolidation:
        """Make one memory of several."""
        from scrubjay.engine.lifecycle.consolidation import Consolidation

        return Consolidation(self)

    @property
    def cold_storage(self) -> ColdStorage:
        """Put memories away, bring them back."""
        from scrubjay.engine.archive.cold_storage import ColdStorage

        return ColdStorage(self)

    @property
    def sync(self) -> Syncing:
        """Other stores with the same memories: endpoints, runs, conflicts."""
        from scrubjay.engine.sync.run import Syncing

        return Syncing(self)

    @property
    def upkeep(self) -> Upkeep:
        """Backups and new indexes, in the background."""
        from scrubjay.engine.upkeep.tasks import Upkeep

        return Upkeep(self)

    # --- spaces, transfer, health ------------------------------------------------------------------------------------

    def list_spaces(self) -> Sequence[Space]:
        """The spaces that the caller may use, with how many memories of each it sees."""
        granted = [space for space in self._records.spaces() if access.granted(self.caller, space.name)]
        return self._with_counts(self._records, granted)

    def has_space(self, name: str) -> bool:
        """Whether there is a space of this name; one that was not granted is not there for the caller."""
        return access.granted(self.caller, name) and self._records.has_space(name)

    def check_spaces(self, names: Iterable[str]) -> None:
        """For callers who must not make a space by misspelling one: storing into one that is not there makes it.

        :raises SpaceNotFound: if there is none of that name. One that was not granted looks empty, there or not.
        """
        for name in names:
            if access.granted(self.caller, name) and name not in self.spaces:
                self._check_there(self._records, name)

    def _check_there(self, reads: Reads, name: str) -> None:
        filed = self._registry is not None and name in self._registry.stores()
        if not filed and not reads.has_space(name):
            hint = f"Create it first: `scrubjay spaces create {name}`."
            raise SpaceNotFound(f"There is no space {name}.", hint=hint, space=name)

    def create_space(self, name: str, *, description: str | None = None) -> bool:
        """Make a space; False if it was there already."""
        access.check_store(self.caller, intake.check_space(name))
        return self._transact(bool, lambda tx: tx.create_space(name, at=self.now(), description=description))

    def space(self, name: str) -> Space:
        """:raises SpaceNotFound: if there is none :raises Forbidden: if the caller has no part in it"""
        return self._space(self._records, name)

    def _space(self, reads: Reads, name: str) -> Space:
        access.check_granted(self.caller, name)
        found = next((space for space in reads.spaces() if space.name == name), None)
        if found is None:
            raise SpaceNotFound(f"No space {name[:100]!r}.", hint="Create it first.")
        [counted] = self._with_counts(reads, [found])
        return counted

    def _with_counts(self, reads: Reads, spaces: Sequence[Space]) -> Sequence[Space]:
        audience = access.audience_in(self.caller, [space.name for space in spaces])
        known = reads.space_counts(audience, now=self.now())
        counts = [known.get(space.name, SpaceCounts()) for space in spaces]
        return [
            replace(space, memories=count.active, superseded=count.superseded)
            for space, count in zip(spaces, counts, strict=True)
        ]

    def describe_space(self, name: str, *, title: str | None = None, description: str | None = None) -> Space:
        """Change what people read of a space; what is not given stays."""
        access.check_store(self.caller, name)
        for field, text in (("title", title), ("description", description)):
            if text is not None:
                intake.check_text(text, field, maximum=intake.MAX_METADATA)

        def write(tx: Transaction) -> Space:
            known = self._space(tx, name)
            tx.describe_space(name, title=title or known.title, description=description or known.description)
            return self._space(tx, name)

        return self._transact(Space, write)

    def drop_space(self, name: str) -> Space:
        """Put an empty space away, its conversations with it; storing into it brings it back.

        :raises Conflict: if it holds memories, or is the default one
        """
        access.check_owns(self.caller, name)
        if name == DEFAULT_SPACE:
            raise Conflict("The default space always exists.")

        def write(tx: Transaction) -> Space:
            known = self._space(tx, name)
            tx.drop_space(name, at=self.now())
            return known

        return self._transact(Space, write)

    def shown_to(self, id: str, *, limit: int = 100) -> Sequence[Recall]:
        """Who was handed a memory and when, newest first: for when it turns out poisoned or wrong.

        :raises Forbidden: if the caller does not own its space
        """
        memory = self.get(id, deleted=True)
        access.check_owns(self.caller, memory.space)
        return self._records.recalls(memory.id, limit=limit)

    def export(self) -> Iterator[dict[str, Any]]:
        """Every memory of this engine's spaces as plain JSON objects, oldest first."""
        from scrubjay.engine import transfer  # as in import_from: not for a search

        def linked(ids: Sequence[str]) -> Sequence[Link]:
            return self._ledger.links_seen(self._records, ids)

        return transfer.exported(self._records, self._audience(Filter()), self.now(), self._whole, linked)

    def import_from(
        self, lines: Iterable[Mapping[str, Any]], *, progress: Callable[[int], None] | None = None
    ) -> Imported:
        """Take in what `export` gave; what is already here with the same id is left as it is."""
        from scrubjay.engine import transfer

        result = transfer.imported(self, lines, progress)
        self._indexer.finish()
        return result

    def admitted(self, fields: Mapping[str, Any], *, id: str | None = None) -> Memory:
        """A memory from named fields as it would be stored, with an id of its own or a given one."""
        return self._admitted(intake.new_memory(fields, {}), id=id)

    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are taken, whoever may see them."""
        return {memory.id for memory in self._records.get(ids, access.EVERYTHING)}

    def add_all(
        self, memories: Sequence[Memory], links: Sequence[Link] = (), *, texts: Sequence[Text] | None = None
    ) -> int:
        """Write complete memories and the links between known ones in one transaction; how many links there were.

        Links that reach what the caller may not see or not change are left out.
        `texts` are the memories' vectors, where they are made already.
        """
        texts = self._embedded_at_leisure(memories) if texts is None else texts
        with self._records.writing() as tx:
            for memory, text in zip(memories, texts, strict=True):
                placed = replace(memory, path=names.free_path(tx, memory))
                by_hand = memory.name == memory.id  # then it is in no chain yet
                if memory.kind is Kind.DECISION and by_hand and memory.state is State.ACTIVE:
                    self.decisions.add(tx, placed, text, imported=True)
                else:
                    self._ledger.add(tx, placed, text, judged=True)
            ends = {end for link in links for end in (link.source, link.target)}
            seen = tx.get(sorted(ends), access.audience_anywhere(self.caller))
            known = {memory.id for memory in seen if access.may_change(self.caller, memory)}
            kept = [link for link in links if {link.source, link.target} <= known]
            for link in kept:
                tx.relate(replace(link, hlc=tx.tick(self.now()), origin=self._records.origin))
            for memory in tx.get(supersession.ends_of(kept), supersession.PLAIN):
                supersession.settle(tx, memory)
            for memory in tx.get(sorted({link.source for link in kept}), access.EVERYTHING):
                self._ledger.record(tx, memory, "linked")
        self._write_files(patient=True)
        return len(kept)

    def backup(self, path: Path, *, progress: Callable[[int, int], None] | None = None) -> Checkup:
        """Copy the whole memory, every space of it, to a new file; others may write meanwhile.

        :raises Conflict: if there is something already
        """
        return self._records.backup(path, progress=progress)

    def reembed(self, *, progress: Callable[[int, int], None] | None = None) -> Reembedded:
        """Let this engine's model take over: every vector is made anew. Goes on where it was broken off.

        :raises Locked: if another process is embedding
        """
        from scrubjay.engine.upkeep.reembedding import Reembedding

        return Reembedding(self).run(progress)

    @property
    def archive_trouble(self) -> str | None:
        """What keeps archived memories from being read, as a running server last saw it; None if nothing does."""
        return None if self._archive is None else self._archive.trouble

    @property
    def unfinished(self) -> bool:
        """Whether the store is the target of a copy that is not finished."""
        return self._records.unfinished

    @property
    def damaged(self) -> bool:
        """Whether damage was found since the memory was opened; then it is not written any more."""
        return self._records.damaged

    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage; writes nothing."""
        return self._records.check(deep=deep)

    def rebuild(self) -> None:
        """Make words, missing vectors and the index of vectors anew.

        :raises StorageBusy: if another process is embedding and does not stop
        """
        self._records.rebuild()
        self._backlog.finish()
        self._indexer.finish()


def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
