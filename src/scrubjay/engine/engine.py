"""The verbs of memory, each readable from top to bottom.

An engine is bound to a caller, the spaces it works in (the first for writing) and where its calls come from; servers
bind one per request, sharing everything behind it. Nothing here knows SQL, JSON or HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from scrubjay.engine import access, cursors
from scrubjay.engine.jobs import Progress, no_progress
from scrubjay.engine.lifecycle import lifecycle
from scrubjay.engine.search import candidates
from scrubjay.engine.store import embedding, intake
from scrubjay.engine.store.history import Ledger, without_erased_text
from scrubjay.errors import Conflict, NotFound, ScopeNotFound
from scrubjay.lazy import Part, modules
from scrubjay.stores.promises.memories import Request, Store, Transaction
from scrubjay.values import codec
from scrubjay.values.callers import Audience, Caller, Provenance
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import (
    Forgotten,
    Kind,
    Link,
    Memory,
    NewMemory,
    OpenConflict,
    Revised,
    Status,
    Stored,
    Version,
)
from scrubjay.values.search import Filter, Hits, Order, Page, Query
from scrubjay.values.store import Prompt, Recall, TagCount

if TYPE_CHECKING:
    from scrubjay.engine import brief, statistics
    from scrubjay.engine.archive import archives
    from scrubjay.engine.archive.cold_storage import ColdStorage
    from scrubjay.engine.callers import Callers
    from scrubjay.engine.conflicts import judge, settle
    from scrubjay.engine.conflicts.settle import Conflicts
    from scrubjay.engine.conversations.conversations import Conversations
    from scrubjay.engine.conversations.workspaces import Workspaces
    from scrubjay.engine.decisions.decisions import Decisions
    from scrubjay.engine.feed import Feed
    from scrubjay.engine.files.paths import Paths
    from scrubjay.engine.files.stores import Folders
    from scrubjay.engine.jobs import Jobs
    from scrubjay.engine.lifecycle import revising
    from scrubjay.engine.lifecycle.bulk import Bulk
    from scrubjay.engine.lifecycle.consolidation import Consolidation
    from scrubjay.engine.lifecycle.curation import Curation
    from scrubjay.engine.lifecycle.tidying import Tidying
    from scrubjay.engine.parts import Parts
    from scrubjay.engine.spaces import Spaces
    from scrubjay.engine.store import enrichment, loading, neighbours
    from scrubjay.engine.suggestions import Suggestions
    from scrubjay.engine.sync.syncing import Syncing
    from scrubjay.engine.transfer import Transfer
    from scrubjay.engine.upkeep.tasks import Upkeep
    from scrubjay.folders.registry import Registry
else:  # none of these is for a search
    archives, brief, statistics = modules("scrubjay.engine", "archive.archives brief statistics")
    judge, settle = modules("scrubjay.engine.conflicts", "judge settle")
    enrichment, loading, neighbours = modules("scrubjay.engine.store", "enrichment loading neighbours")
    [revising] = modules("scrubjay.engine.lifecycle", "revising")

Result = TypeVar("Result")

ATTEMPTS = 5  # at a change that others keep overtaking
MOST_USED = 10  # memories that one call counts as used


class Notices:
    """What the reply to one call has to say besides its answer; the server binds one to each call."""

    def __init__(self) -> None:
        self.uncompared: list[str] = []  # memories that there was no time to compare with earlier ones
        self.due: list[Memory] = []  # memories of this client, compared since a reply said they were not


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A memory, as one caller uses it: parts that are shared, and who and what they are used for."""

    parts: Parts
    records: Store
    now: Callable[[], datetime]
    identity: Caller  # who calls; `caller` also says which spaces are read-only now
    spaces: tuple[str, ...]  # that it works in, the first for writing, and first among those that are read
    only: bool  # whether it reads nothing but these, instead of every space the caller may see
    provenance: Provenance  # where its calls come from
    narrowed: bool = False  # whether only this call reads no other spaces, and could name what is in them
    request: Request | None = None  # a write with a key, which is done once
    expected_version: int | None = None  # of what is changed
    holder: str = ""  # under which this engine holds memories for long work
    progress: Progress = no_progress
    client_model: Callable[[Prompt], str] | None = None  # the language model of the client that calls
    notices: Notices | None = None
    with_model: bool = True  # False: whatever it takes in is embedded in the background
    from_files: bool = False  # it takes in what people wrote into files, so none is written for it, or read-only

    def bound_to(
        self,
        *,
        caller: Caller | None = None,
        spaces: tuple[str, ...] | None = None,
        only: bool | None = None,
        narrowed: bool = False,
        provenance: Provenance | None = None,
        request: Request | None = None,
        expected_version: int | None = None,
        progress: Progress | None = None,
        holder: str | None = None,
        client_model: Callable[[Prompt], str] | None = None,
        notices: Notices | None = None,
    ) -> Engine:
        """The same memory for another caller, other spaces, or calls from elsewhere. It reads nothing but the spaces
        named, or with `only=False` every space that the caller may see, these first.

        A request with a key is done once, however often it comes; a change happens only at the expected version.
        Long work tells `progress` how far it is; a `holder` may change the memories that are held in its name;
        `client_model` asks the language model of whoever calls; `notices` gathers what a reply has to say besides its
        answer.
        """
        identity = caller or self.identity
        return replace(
            self,
            identity=identity,
            spaces=self.spaces if spaces is None else tuple(intake.check_space(space) for space in spaces),
            only=only if only is not None else spaces is not None or self.only,
            narrowed=narrowed or self.narrowed,
            provenance=replace(provenance or self.provenance, caller=identity.user),
            request=request or self.request,
            expected_version=expected_version or self.expected_version,
            progress=progress or self.progress,
            holder=holder or self.holder,
            client_model=client_model or self.client_model,
            notices=notices or self.notices,
        )

    @property
    def caller(self) -> Caller:
        """Who calls, and which spaces are read-only for everyone."""
        registry = self.registry
        sealed = frozenset[str]() if registry is None else registry.read_only()
        return self.identity if sealed == self.identity.sealed else replace(self.identity, sealed=sealed)

    @property
    def registry(self) -> Registry | None:
        """Which spaces have a folder."""
        return None if self.from_files else self.parts.registry

    def warm(self, *, model: bool = True) -> None:
        """Start what is done in the background and load the model, unless it can wait; returns at once."""
        self.parts.warm(model=model)
        self.write_files()  # what a kill kept from being written

    def close(self) -> None:
        """Finish what waits for a vector, as far as that is quick, and let go of everything. Twice is fine."""
        self.parts.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what every verb needs ---------------------------------------------------------------------------------------

    @property
    def ledger(self) -> Ledger:
        """How this caller's changes are written."""
        return Ledger(
            caller=self.caller,
            provenance=self.provenance,
            spaces=self.spaces,
            model=self.parts.embedding.fingerprint,
            now=self.now,
            holder=self.holder,
        )

    def audience(self, filter: Filter) -> Audience:
        """What the caller reads; :raises Forbidden: if the filter names what it may not ask for"""
        intake.check_filter(filter)
        caller = self.caller
        if filter.user_id is not None:
            access.checked_user(caller, filter.user_id)
        return access.audience_in(caller, self.spaces) if self.only else access.audience_anywhere(caller, self.spaces)

    def transact(self, kind: type[Result], work: Callable[[Transaction], Result]) -> Result:
        """Do some work in a transaction of its own; once only, if its request carries a key."""
        with self.records.writing() as tx:
            result = self._do_once(tx, kind, work)
            waiting = self.registry is not None and bool(tx.files.waiting())
        if waiting:
            self.folders.write()
        return result

    def _do_once(self, tx: Transaction, kind: type[Result], work: Callable[[Transaction], Result]) -> Result:
        if self.request is None:
            return work(tx)
        now = self.now()
        kept = tx.history.result_of(self.request, now=now)
        if kept is not None:
            return self._replay(kind, kept)
        result = work(tx)
        memories = sorted({memory.id for memory in codec.memories_in(result)})
        tx.history.keep_result(self.request, codec.write_json(without_erased_text(result)), memories=memories, at=now)
        return result

    def _replay(self, kind: type[Result], kept: str) -> Result:
        """:raises NotFound: if the caller has since lost the right to see what was changed"""
        result = codec.read(kind, kept)
        seen = access.audience_anywhere(self.caller)
        for memory in codec.memories_in(result):
            if not access.sees(seen, memory):
                raise NotFound(f"No memory {memory.id}.", memory_id=memory.id)
        return result

    def earlier_result(self, kind: type[Result]) -> Result | None:
        """The result of this very request, if it was done before: for work that comes before the transaction."""
        if self.request is None:
            return None
        with self.records.writing() as tx:
            kept = tx.history.result_of(self.request, now=self.now())
        return None if kept is None else self._replay(kind, kept)

    def write_files(self, *, patient: bool = False) -> None:
        """Let files say what memories say, after a change; with patience all of them, however many."""
        if self.registry is not None and self.records.files.waiting():
            self.folders.write(patient=patient)

    def look_at_folders(self, *, owing: bool = True) -> None:
        """Take in what people changed in the files of what is read, the current space first. Those that wait are
        written, unless with `owing=False` no file was changed."""
        there = [] if self.registry is None else self.registry.there()
        others = () if self.only else [one for one in there if access.is_granted(self.caller, one)]
        if filed := [space for space in dict.fromkeys((*self.spaces, *others)) if space in there]:
            self.folders.look(filed, owing=owing)
        elif owing:
            self.write_files()  # a folder may be missing because a kill came before its first file

    def with_texts(self, memories: Sequence[Memory], *, deep: bool = True, strict: bool = False) -> Sequence[Memory]:
        """Memories as they are shown: with the texts of those that are archived (`archives.py`)."""
        if all(memory.content or memory.status is Status.ACTIVE for memory in memories):
            return memories
        return archives.Archives(self).with_texts(memories, deep=deep, strict=strict)

    def count_reads(self, memories: Sequence[Memory], *, used: bool = True) -> None:
        """Note who was shown these memories, and count the first ones as used, if they were asked for.

        Being shown is not a use: else the most shown would become the best ranked, and be shown still more.
        """
        if memories:
            ids = tuple(memory.id for memory in memories)
            counted = ids[:MOST_USED] if used and not self.provenance.by_person else ()
            recall = Recall(
                at=self.now(),
                space=self.spaces[0],
                user=self.identity.user,
                client=self.provenance.client,
                memories=ids,
            )
            self.records.tally.count(dict.fromkeys(counted, 1), at=recall.at, recall=recall)

    # --- its other parts ---------------------------------------------------------------------------------------------

    folders: ClassVar[Part[Folders]] = Part("engine.files.stores.Folders")  # spaces that are Markdown files as well
    decisions: ClassVar[Part[Decisions]] = Part("engine.decisions.decisions.Decisions")  # and checkpoints
    paths: ClassVar[Part[Paths]] = Part("engine.files.paths.Paths")  # memories by where they lie in a space
    bulk: ClassVar[Part[Bulk]] = Part("engine.lifecycle.bulk.Bulk")  # the same done to many memories
    tidying: ClassVar[Part[Tidying]] = Part("engine.lifecycle.tidying.Tidying")  # phrases for memories that have none
    curation: ClassVar[Part[Curation]] = Part("engine.lifecycle.curation.Curation")  # compare, look around
    conversations: ClassVar[Part[Conversations]] = Part("engine.conversations.conversations.Conversations")
    workspaces: ClassVar[Part[Workspaces]] = Part("engine.conversations.workspaces.Workspaces")
    callers: ClassVar[Part[Callers]] = Part("engine.callers.Callers")  # credentials, grants and the audit
    feed: ClassVar[Part[Feed]] = Part("engine.feed.Feed")  # the changes of a space, as they happen
    jobs: ClassVar[Part[Jobs]] = Part("engine.jobs.Jobs")  # work in the background: start, look at, cancel
    consolidation: ClassVar[Part[Consolidation]] = Part("engine.lifecycle.consolidation.Consolidation")
    cold_storage: ClassVar[Part[ColdStorage]] = Part("engine.archive.cold_storage.ColdStorage")
    sync: ClassVar[Part[Syncing]] = Part("engine.sync.syncing.Syncing")  # other stores with the same memories
    upkeep: ClassVar[Part[Upkeep]] = Part("engine.upkeep.tasks.Upkeep")  # backups, checks, new indexes
    conflicts: ClassVar[Part[Conflicts]] = Part("engine.conflicts.settle.Conflicts")  # what may be outdated
    suggestions: ClassVar[Part[Suggestions]] = Part("engine.suggestions.Suggestions")  # what hooks would remember
    known_spaces: ClassVar[Part[Spaces]] = Part("engine.spaces.Spaces")  # those that the caller may use
    transfer: ClassVar[Part[Transfer]] = Part("engine.transfer.Transfer")  # exports and imports

    # --- remembering -------------------------------------------------------------------------------------------------

    def store(self, new: NewMemory | str, **fields: Any) -> Stored:
        """Keep a memory, and name earlier ones that it may outdate. Never refused for being like another, unless the
        caller asks for it to be the only one with its words."""
        given = intake.new_memory(new, fields)
        if given.kind is not Kind.MEMORY:
            return self.decisions.keep(given).stored
        admitted = intake.admit_unread(self, given)
        text, degraded = embedding.embed(self, admitted)
        enriched = enrichment.enrich(self, admitted, given, text.first)
        with self.records.one_reader():
            memory = intake.in_conversation(self, enriched, given)
            self.look_for_owed()
            fingerprint = intake.fingerprint(memory)
            audience = access.own_audience(self.caller, memory, only=self.only)
            degraded = degraded or embedding.check_model(self)
            embedding.check_degraded(self, degraded)
            vector, wait = None if degraded else text.first, self.parts.judge_seconds
            near = neighbours.find_neighbours(self, memory, vector, audience, further=text.further, wait_seconds=wait)
            proposals = judge.find_proposals(self, memory, near, audience, fingerprint)
            compared = near.judged and (vector is not None or self.parts.embedding.embedder is None)

        def write(tx: Transaction) -> Stored:
            intake.check_quota(self, tx, memory)
            if given.unique:
                intake.check_unique(self, tx, fingerprint)
            stored = self.ledger.add(
                tx,
                memory,
                text,
                judged=bool(text.vectors) and near.judged,
                fingerprint=fingerprint,
                agreed=near.agree_with(memory.category),
            )
            if given.as_file and self.registry is not None:
                tx.files.keep([stored.id])
            judge.propose(self, tx, stored, proposals)
            if not compared and self.notices is not None:
                tx.history.owe(stored.id, user=self.identity.user, client=self.provenance.client)
            links = neighbours.link_related(self, tx, stored, given, near)
            return judge.stored_result(
                self, tx, stored, proposals, audience, degraded=degraded, links=links, compared=compared
            )

        result = self.transact(Stored, write)
        if not text.complete or not near.judged:
            self.parts.backlog.wake()
        if not result.compared and self.notices is not None:
            self.notices.uncompared.append(result.memory.id)
        return result

    def store_many(
        self, items: Iterable[NewMemory | Mapping[str, Any]], *, progress: Callable[[int], None] | None = None
    ) -> Sequence[str]:
        """Keep many memories, one transaction per batch; their ids in order. What they may outdate is judged in the
        background."""
        return loading.store_many(self, items, progress)

    def store_each(self, items: Sequence[NewMemory], *, personal: Container[int] = ()) -> Sequence[Stored]:
        """Keep some memories one after the other, each judged as if it came alone; all are checked before the first is
        kept. Those whose place is in `personal` go into the default space, if the caller may write there and this
        engine is not kept to its own."""
        return loading.store_each(self, items, personal)

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
        if (kept := self.earlier_result(Revised)) is not None:
            return kept  # before it is looked at: what it has become may not allow the change a second time
        expected = expected_version or self.expected_version
        for _ in range(ATTEMPTS):
            known = self.ledger.get_changeable(self.records, id)
            only_links = related is not None and not fields and tag_change is None
            changed = {} if only_links else intake.revision(known, fields, merge, tag_change, held=held)
            revision = revising.prepare_revision(self, known, changed)

            def write(tx: Transaction, revision: revising.Revision = revision) -> Revised:
                current = revision.current(self, tx, expected_version=expected)
                linked = related is not None and neighbours.relink(self, tx, current, related)
                done = revision.write(self, tx, current, reason=reason)
                if not linked:
                    return done
                self.ledger.record(tx, done.memory, "linked", reason=reason)
                return replace(done, fields=(*done.fields, neighbours.NAMES))

            try:
                revised = self.transact(Revised, write)
            except Conflict:
                if expected is not None:
                    raise
                continue  # another process was faster: look at what it is now
            revision.see_to_the_rest(self)
            return revised
        raise lifecycle.changed_meanwhile(known)

    def supersede(self, *, old: str, new: str) -> tuple[Memory, Memory]:
        """Mark a memory as outdated by a newer one. Both stay; searches show only the newer."""
        return self.transact(
            tuple[Memory, Memory],
            lambda tx: lifecycle.supersede(self.ledger, tx, old, new, expected_version=self.expected_version),
        )

    def look_for_owed(self) -> None:
        """Note for this call's reply which memories were compared after an earlier reply said that they were not."""
        if self.notices is not None:
            ids = self.records.history.owed(user=self.identity.user, client=self.provenance.client)
            self.notices.due = list(self.records.get(ids, access.audience_anywhere(self.caller))) if ids else []

    def take_owed(self) -> Sequence[OpenConflict]:
        """The open pairs that comparing those memories brought; each is given once, whichever process is asked first.

        What the caller may not see any more stays; what was forgotten or settled meanwhile is not given at all.
        """
        return settle.take_owed(self) if self.notices is not None and self.notices.due else ()

    # --- finding -----------------------------------------------------------------------------------------------------

    def search(self, query: Query | str, **options: Any) -> Hits:
        """Find memories by words and by meaning, best first; `verdict` says whether they answer it."""
        query = intake.query(query, options)
        found = candidates.search(self, query, self.audience(query.filter), query.now or self.now())
        self.count_reads([hit.memory for hit in found.answers])
        return found

    def brief(self, *, budget: int = 1_500) -> brief.Brief:
        """What to know when a session begins, within a budget of tokens: the current space, what is personal, decisions
        that are open, the last checkpoint, other spaces by name. Needs no model."""
        return brief.write_brief(self, budget=budget)

    def get(self, id: str, *, deleted: bool = False) -> Memory:
        """A memory by its id; soft-deleted ones only if asked for.

        :raises NotFound: if there is none, or none that the caller may see
        """
        [memory] = self.with_texts([self.ledger.get_visible(self.records, id, deleted=deleted, elsewhere=True)])
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
        self.look_at_folders()
        audience, now = self.audience(wanted), self.now()
        question = cursors.question(self, wanted, order, descending)
        after = cursors.position_of(self, cursor, question)
        memories = self.records.list(
            wanted, audience, now=now, order=order, descending=descending, limit=limit + 1, offset=offset, after=after
        )
        asked = self.with_texts(memories[:limit], deep=False)
        fitting = asked if room is None else asked[: room(asked)]
        page = memories[: len(fitting)]
        more = len(memories) > len(page)
        return Page(
            memories=tuple(fitting),
            total=self.records.count(wanted, audience, now=now) if counted else None,
            cursor=cursors.behind(self, page[-1], order, question) if more else None,
            links=self.ledger.count_links(self.records, page) if linked else {},
            lengths=cursors.lengths(self.records, fitting),
            left_out=len(asked) - len(fitting),
        )

    def history(self, id: str) -> Sequence[Version]:
        """Former states of a memory, newest first, with what each change was made for; also of a soft-deleted one.

        Those that the caller may see as they were, whoever may see the memory now.
        """
        memory = self.ledger.get_visible(self.records, id, deleted=True, elsewhere=True)
        since = self.records.history.versions(memory.id)
        former = since if memory.content else [*since, *self.cold_storage.history(memory)]
        return self.ledger.visible_versions(self.records, former)

    def links(self, id: str) -> Sequence[Link]:
        """What a memory is linked with, as far as the caller may see it."""
        return self.ledger.visible_links(self.records, [self.get(id).id])

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
        """Delete a memory: soft-delete it, to be restored for some days, or for good.

        `cascade` also forgets the memories that a client linked it with, one step far.
        """
        forgotten = self.transact(
            Forgotten,
            lambda tx: lifecycle.forget(
                self.ledger,
                tx,
                id,
                hard=hard,
                reason=reason,
                days=days,
                cascade=cascade,
                expected_version=self.expected_version,
            ),
        )
        archives.remove_due(self)
        return forgotten

    def recover(self, id: str) -> Memory:
        """Restore a soft-deleted memory."""
        return self.transact(
            Memory, lambda tx: lifecycle.recover(self.ledger, tx, id, expected_version=self.expected_version)
        )

    def restore_version(self, id: str, version: int | str, *, reason: str | None = None) -> Memory:
        """Make a former state, by its number or its id, the current one again; today's state joins the history."""
        if (kept := self.earlier_result(Revised)) is not None:
            return kept.memory
        former = next((one.memory for one in self.history(id) if version in (one.memory.version, one.id)), None)
        if former is None:
            hint = "The memory's history lists them; an update's reply has the previous one."
            raise NotFound(f"Memory {id} has no earlier version {version}.", hint=hint)
        fields = revising.fields_of(self, former)
        return self.revise(id, reason=reason or f"restored version {version}", held=True, **fields).memory

    def prune(self, *, dry_run: bool = False) -> Sequence[Memory]:
        """Soft-delete what has expired in this engine's spaces, and return it; a dry run only returns it.

        A batch at a time: an error leaves those before it pruned.
        """
        return lifecycle.prune(self, dry_run=dry_run)

    # --- counting ----------------------------------------------------------------------------------------------------

    def statistics(self, query: statistics.StatsQuery | None = None) -> statistics.Statistics:
        """Counts, sizes, rates, trends and health of what the caller may see.

        :raises ScopeNotFound: if the user, conversation or category is unknown
        """
        asked = query or statistics.StatsQuery()
        found = statistics.statistics(self.records, self.caller, self.audience(Filter()), asked, now=self.now())
        if not found.exists:
            raise ScopeNotFound(f"No {asked.scope} {asked.scope_id}.", scope_id=asked.scope_id)
        return found

    def tags(self, *, found: bool = False, limit: int = 100) -> Sequence[TagCount]:
        """The tags of what the caller reads, the most frequent first; with `found`, those found in texts as well."""
        intake.check_limit(limit, 0)
        rows = self.records.statistics.tags(self.audience(Filter()), now=self.now(), found=found, limit=limit)
        return [TagCount(tag=tag, memories=memories) for tag, memories in rows]
