"""Where an engine's work is done: its parts, whom it works for, and the steps that several verbs share."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from scrubjay.engine import access, cursors, results
from scrubjay.engine.archive.marks import MarkedObjects
from scrubjay.engine.jobs import Progress, Worker, no_progress
from scrubjay.engine.search import candidates, ranking
from scrubjay.engine.store import intake
from scrubjay.engine.store.backlog import Backlog
from scrubjay.engine.store.embedding import AT_ONCE, Embedding
from scrubjay.engine.store.history import Ledger, Text
from scrubjay.engine.store.neighbours import Neighbours, neighbours_of
from scrubjay.engine.upkeep.housekeeping import Housekeeper
from scrubjay.engine.upkeep.vector_index import Indexer
from scrubjay.errors import (
    ArchiveUnavailable,
    Duplicate,
    EmbeddingError,
    Error,
    InvalidInput,
    NotFound,
    QuotaExceeded,
)
from scrubjay.stores.promises.memories import Position, Request, Store, Transaction
from scrubjay.stores.promises.statistics import Of, Part
from scrubjay.values.memory import (
    DEFAULT_SPACE,
    AccessLevel,
    Audience,
    Caller,
    Category,
    Conversation,
    Filter,
    Hit,
    Kind,
    LinkKind,
    Memory,
    NewMemory,
    Order,
    Prompt,
    Provenance,
    Query,
    Recall,
    Role,
    Scope,
    Sight,
    State,
    Status,
    Weights,
    new_id,
)
from scrubjay.values.times import utc_now

if TYPE_CHECKING:
    from scrubjay.archives.base import Objects
    from scrubjay.embedders.base import Embedder, Vector
    from scrubjay.engine.conflicts.judge import Judge, Proposal
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.files.stores import Folders, Shelves
    from scrubjay.engine.store.categories import Categoriser
    from scrubjay.engine.sync.peer import Peer
    from scrubjay.folders.registry import Registry
    from scrubjay.providers.base import Provider
    from scrubjay.stores.promises.sync import Endpoint

Result = TypeVar("Result")
Payload = TypeVar("Payload")

RELATED = "related_memory_ids"  # what callers name the memories by that one is linked with
MOST_USED = 10  # memories that one call counts as used
OTHER_MODEL = "The store's vectors come from another embedding model; only words are searched."
BEING_REEMBEDDED = "The store's vectors are being made anew (scrubjay reembed); only words are searched."


class Shared:
    """What all bound copies share, and only a store needs: made when it is first asked for."""

    def __init__(self, embedding: Embedding, owner: Caller) -> None:
        self._embedding = embedding
        self.owner = owner  # whose machine it is: what people do to files is theirs

    @cached_property
    def shelves(self) -> Shelves:
        from scrubjay.engine.files.stores import Shelves

        return Shelves()

    @cached_property
    def judge(self) -> Judge:
        from scrubjay.engine.conflicts.judge import Judge

        return Judge(self._embedding)

    @cached_property
    def categoriser(self) -> Categoriser:
        from scrubjay.engine.store.categories import Categoriser

        return Categoriser(self._embedding)


class Desk:
    """One caller's place at a memory. Bound copies share everything but whom they work for."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        *,
        caller: Caller | None = None,
        spaces: tuple[str, ...] = (DEFAULT_SPACE,),
        provenance: Provenance | None = None,
        clock: Callable[[], datetime] = utc_now,
        wait_seconds: float = 2.0,
        fetch: Callable[[], None] | None = None,
        strict_embedding: bool = False,
        quota: int = 0,
        provider: Provider | None = None,
        secrets: str = "flag",
        instructions: str = "flag",
        archive: Objects | None = None,
        archive_in_store: bool = False,
        archive_quota: int = 0,
        prices: Mapping[str, float] | None = None,
        model: Callable[[Prompt], str] | None = None,
        least_similarity: float = 0.3,
        registry: Registry | None = None,
        connect: Callable[[Endpoint, bool], Peer] | None = None,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._caller = caller or Caller()
        self._registry = registry
        self.spaces = tuple(intake.check_space(space) for space in spaces)
        self.provenance = provenance or Provenance(caller=self._caller.user)
        self.now = clock
        self._records = store
        self._strict_embedding = strict_embedding
        self._quota = quota
        self._provider = provider
        self._trust = {"secrets": secrets, "instructions": instructions}
        self._archive = None if archive is None else MarkedObjects(archive, store)
        self._archive_in_store = archive_in_store  # glacier and deep_archive too; older ones may lie in the folder
        self._archive_quota = archive_quota
        self._prices = prices or {}
        self._model = model  # a language model that the owner has configured
        self._client_model: Callable[[Prompt], str] | None = None  # that of the client who asks
        self._least_similarity = least_similarity  # of memories that may be consolidated
        self._connect = connect  # (endpoint, may be made) -> a place to sync with
        self._endpoints = endpoints or {}  # named in the settings
        self._embedding = Embedding(embedder, wait_seconds=wait_seconds, fetch=fetch)
        self._shared = Shared(self._embedding, self._caller)
        self._backlog = Backlog(store, self._embedding, self._judge_late)
        self._housekeeper = Housekeeper(store, lambda: self._ledger, clock, self._tidy, self._repair)
        self._indexer = Indexer(store)
        self._request: Request | None = None
        self._expected_version: int | None = None
        self._holder = ""  # under which this engine holds memories for long work
        self._progress: Progress = no_progress
        self._worker = Worker(cast("Engine", self))  # the only kind of desk there is

    def bound_to(
        self,
        *,
        caller: Caller | None = None,
        spaces: tuple[str, ...] | None = None,
        provenance: Provenance | None = None,
        request: Request | None = None,
        expected_version: int | None = None,
        progress: Progress | None = None,
        holder: str | None = None,
        client_model: Callable[[Prompt], str] | None = None,
    ) -> Self:
        """The same memory for another caller, other spaces, or calls from elsewhere.

        A request with a key is done once, however often it comes; a change happens only at the expected version.
        Long work tells `progress` how far it is; a `holder` may change the memories that are held in its name;
        `client_model` asks the language model of whoever calls.
        """
        bound = copy.copy(self)
        bound._caller = caller or self._caller
        bound.spaces = self.spaces if spaces is None else tuple(intake.check_space(space) for space in spaces)
        bound.provenance = replace(provenance or self.provenance, caller=bound._caller.user)
        bound._request = request or self._request
        bound._expected_version = expected_version or self._expected_version
        bound._progress = progress or self._progress
        bound._holder = holder or self._holder
        bound._client_model = client_model or self._client_model
        return bound

    def warm(self) -> None:
        """Load the model and see to what waits for it, in the background; returns at once."""
        self._embedding.warm()
        self._backlog.start()
        self._housekeeper.start()
        self._indexer.start()
        self._worker.start()
        self._write_files()  # what a kill kept from being written

    def count_call(self, key: str, *, seconds: float, amount: int = 1) -> tuple[int, float] | None:
        """Count calls together with every other server on this memory; None where there can be no other."""
        return self._records.count_call(key, seconds=seconds, amount=amount)

    def close(self) -> None:
        """Finish what waits for a vector, as far as that is quick, and let go of everything. Twice is no error."""
        self._worker.close()
        if "shelves" in vars(self._shared):
            self._shared.shelves.close()
        self._housekeeper.close()
        self._indexer.close()
        self._backlog.close()
        self._embedding.close()
        self._records.close()
        if self._provider is not None:
            self._provider.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def caller(self) -> Caller:
        """Who asks, and where nobody may change anything."""
        sealed = frozenset[str]() if self._registry is None else self._registry.read_only()
        return self._caller if sealed == self._caller.sealed else replace(self._caller, sealed=sealed)

    # --- steps that several verbs share ------------------------------------------------------------------------------

    @property
    def _ledger(self) -> Ledger:
        return Ledger(
            caller=self.caller,
            provenance=self.provenance,
            spaces=self.spaces,
            origin=self._records.origin,
            model=self._embedding.fingerprint,
            now=self.now,
            holder=self._holder,
        )

    def _transact(self, kind: type[Result], work: Callable[[Transaction], Result]) -> Result:
        """Do some work in a transaction of its own; once only, if its request carries a key."""
        with self._records.writing() as tx:
            result = self._done_once(tx, kind, work)
        self._write_files()
        return result

    def _done_once(self, tx: Transaction, kind: type[Result], work: Callable[[Transaction], Result]) -> Result:
        if self._request is None:
            return work(tx)
        now = self.now()
        kept = tx.result_of(self._request, now=now)
        if kept is not None:
            return results.read(kind, kept)
        result = work(tx)
        tx.keep_result(
            self._request, results.written(result), memories=sorted(set(results.memories_in(result))), at=now
        )
        return result

    @property
    def folders(self) -> Folders:
        """Spaces that are folders of Markdown files as well."""
        from scrubjay.engine.files.stores import Folders

        return Folders(cast("Engine", self))

    def _look_at_folders(self) -> None:
        """Take in what people changed in the files of these spaces."""
        if self._registry is not None and self._registry.any_there(self.spaces):
            self.folders.look(self.spaces)
        else:
            self._write_files()  # a folder may be missing because a kill came before its first file

    def _write_files(self, *, patient: bool = False) -> None:
        """Let files say what memories say, after a change; with patience all of them, however many."""
        if self._registry is not None and self._records.waiting():
            self.folders.write(patient=patient)

    def _kept(self, kind: type[Result]) -> Result | None:
        """The result of this very request, if it was done before: for work that comes before the transaction."""
        if self._request is None:
            return None
        with self._records.writing() as tx:
            kept = tx.result_of(self._request, now=self.now())
        return None if kept is None else results.read(kind, kept)

    def _objects(self) -> MarkedObjects:
        """:raises ArchiveUnavailable: if there is no place for archived objects"""
        if self._archive is None:
            raise ArchiveUnavailable("No archive is configured.", hint="Set SCRUBJAY_ARCHIVE to a folder.")
        return self._archive

    def _whole(self, memories: Sequence[Memory], *, deep: bool = True, strict: bool = False) -> Sequence[Memory]:
        """Memories as they are shown: with the texts of those that were put away (`archives.py`)."""
        if all(memory.content or memory.status is Status.ACTIVE for memory in memories):
            return memories
        from scrubjay.engine.archive.archives import Archives  # hardly any answer holds one

        return Archives(cast("Engine", self)).whole(memories, deep=deep, strict=strict)

    def _tidy(self) -> None:
        """See whether the archive's place is there; remove objects whose time has come."""
        if self._archive is None:
            return
        self._archive.look()
        if self._records.objects_due(self.now(), 1):
            from scrubjay.engine.archive.archives import Archives

            Archives(cast("Engine", self)).remove_due_objects()

    def _repair(self) -> None:
        """Mend what an earlier program left (`repairs.py`); most often there is nothing."""
        from scrubjay.engine.upkeep.repairs import Repairs  # not for a search

        Repairs(cast("Engine", self)).run()

    def _audience(self, filter: Filter) -> Audience:
        intake.check_filter(filter)
        if filter.user_id is not None:
            access.checked_user(self.caller, filter.user_id)
        return access.audience_in(self.caller, self.spaces)

    def _admitted(self, new: NewMemory, *, id: str | None = None) -> Memory:
        space = self.spaces[0]
        access.check_store(self.caller, space)
        talk = self._private_conversation(space, new.conversation_id)
        named = talk.user_id if new.user_id is None and talk is not None else new.user_id
        user = access.owner_of_new(self.caller, named)
        if talk is not None and talk.user_id == user:
            new = replace(new, access_level=AccessLevel.PRIVATE)
        return self._examined(
            intake.admitted(new, id=id or new_id(), space=space, user=user, provenance=self.provenance, now=self.now())
        )

    def _private_conversation(self, space: str, id: str | None) -> Conversation | None:
        """The private conversation of this id; to others than its user and owners the id is one like any other."""
        intake.check_name(id, "conversation_id")
        found = None if id is None else self._records.conversations.get(space, id)
        if found is None or found.access_level is not AccessLevel.PRIVATE:
            return None
        return found if access.sees_conversation(self.caller, found) else None

    def _examined(self, memory: Memory) -> Memory:
        """The memory with its flags, as the policy says: what reads like a secret, or like instructions to a model."""
        from scrubjay.engine.trust import policy  # only what writes needs it

        return policy.examined(memory, **{name: policy.Policy(word) for name, word in self._trust.items()})

    def _enriched(self, memory: Memory, new: NewMemory, vector: Vector | None) -> Memory:
        """What its caller left out, found in the text: category, tags, importance."""
        from scrubjay.engine.store.importance import importance  # only a store needs these three
        from scrubjay.engine.store.keyphrases import auto_tags

        category = new.category or self._category(memory, vector)
        found = importance(memory.text, category=category, source=memory.source, confidence=memory.confidence)
        return replace(
            memory,
            category=category,
            auto_tags=auto_tags(memory.text),
            importance=found if new.importance is None else new.importance,
        )

    def _category(self, memory: Memory, vector: Vector | None) -> Category:
        if memory.kind is Kind.CHECKPOINT:
            return Category.CONTEXT
        found = self._shared.categoriser.category(memory.text, vector)
        if memory.kind is Kind.DECISION:  # it either tells others what to do, or says what is the case
            return Category.INSTRUCTION if found is Category.INSTRUCTION else Category.FACT
        return found

    def _embedded(self, memory: Memory) -> tuple[Text, str | None]:
        """The vectors of a text's first parts within the waiting time, or none and the reason."""
        parts = self._embedding.split(memory.embeddable)
        if (reason := self._cannot_embed()) is not None:
            return Text(vectors=(), parts=len(parts)), reason
        try:
            return Text(vectors=self._embedding.texts(parts[:AT_ONCE]), parts=len(parts)), None
        except EmbeddingError as error:
            return Text(vectors=(), parts=len(parts)), error.message

    def _embedded_at_leisure(self, memories: Sequence[Memory]) -> Sequence[Text]:
        """All parts of all texts; what cannot be embedded now waits in the backlog."""
        split = [self._embedding.split(memory.embeddable) for memory in memories]
        vectors: Iterator[Vector] = iter(())
        if self._cannot_embed() is None:
            try:
                vectors = iter(self._embedding.at_leisure([part for parts in split for part in parts]))
            except EmbeddingError:
                self._backlog.wake()
        return [Text(vectors=tuple(islice(vectors, len(parts))), parts=len(parts)) for parts in split]

    def _embedded_ahead(
        self, batches: Iterable[tuple[Sequence[Memory], Payload]]
    ) -> Iterator[tuple[Sequence[Memory], Sequence[Text], Payload]]:
        """Batches with their texts embedded: the next one in the background, while the caller writes this one.

        An error in the source is raised once all that came before it was given out.
        """
        from concurrent.futures import ThreadPoolExecutor  # not for a search

        with ThreadPoolExecutor(1, "ahead") as pool:
            last = None
            try:
                for memories, payload in batches:
                    given, last = last, (memories, pool.submit(self._embedded_at_leisure, memories), payload)
                    if given is not None:
                        yield given[0], given[1].result(), given[2]
            except Error:
                if last is not None:
                    yield last[0], last[1].result(), last[2]
                raise
            if last is not None:
                yield last[0], last[1].result(), last[2]

    def _asked(self, question: str) -> tuple[Vector | None, str | None]:
        """The question's vector, or none and the reason."""
        if (reason := self._cannot_embed()) is not None:
            return None, reason
        try:
            return self._embedding.query(question), None
        except EmbeddingError as error:
            return None, error.message

    def _cannot_embed(self) -> str | None:
        if self._embedding.embedder is None:
            return "No embedding model is configured; only words are searched."
        kept = self._records.fact("model")
        if kept in (None, self._embedding.fingerprint):
            return None
        return BEING_REEMBEDDED if kept.startswith("becoming ") else OTHER_MODEL

    def _neighbours(self, memory: Memory, vector: Vector | None) -> Neighbours:
        if vector is None:
            return Neighbours()
        return neighbours_of(
            vector,
            self._records,
            self._own_audience(memory),
            now=self.now(),
            without=memory.id,
            promising=self._shared.judge.promising,
        )

    def _own_audience(self, memory: Memory) -> Audience:
        """What the memory's user may see and change, in its own space."""
        role = self.caller.role if memory.context.user_id == self.caller.user else Role.MEMBER
        spaces = None if self.caller.spaces is None else self.caller.spaces | {memory.space}
        return access.audience_in(Caller(user=memory.context.user_id, role=role, spaces=spaces), (memory.space,))

    def _proposals(self, memory: Memory, neighbours: Neighbours) -> Sequence[Proposal]:
        """What a memory may outdate."""
        audience = self._own_audience(memory)
        same_words = self._records.twins(intake.fingerprint(memory), audience)
        twins = [twin for twin in same_words if twin.kind is Kind.MEMORY]
        return self._shared.judge.proposals(memory, neighbours, self._records, audience, twins=twins, now=self.now())

    def _propose(self, tx: Transaction, memory: Memory, proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            self._ledger.link(tx, LinkKind.MAY_OUTDATE, memory, proposal.memory, score=proposal.score, given=False)

    def _judge_late(self, memory: Memory, vector: Vector) -> None:
        """Judge a memory that had no vector when it was stored."""
        proposals = self._proposals(memory, self._neighbours(memory, vector))
        with self._records.writing() as tx:
            self._propose(tx, memory, proposals)
            if proposals:  # no other event tells the feed of these links
                self._ledger.record(tx, memory, "linked")

    def _relate(self, tx: Transaction, memory: Memory, new: NewMemory, neighbours: Neighbours) -> int:
        """Link a new memory with those that its caller named, and if asked with the nearest; how many that were."""
        named = [self._named(tx, name) for name in dict.fromkeys(new.related)]
        found = [one for one in neighbours.related() if one not in named] if new.find_related else []
        for other in named:
            self._ledger.link(tx, LinkKind.RELATED, memory, other)
        for other in found:
            self._ledger.link(tx, LinkKind.RELATED, memory, other, score=neighbours.cosines[other.id], given=False)
        return len(named) + len(found)

    def _relink(self, tx: Transaction, memory: Memory, related: Sequence[str]) -> bool:
        """Let these be the memories that it is linked with by its callers' word; whether that changes anything."""
        named = {other.id: other for other in (self._named(tx, name) for name in dict.fromkeys(related))}
        links = tx.links([memory.id], kinds=frozenset({LinkKind.RELATED}))
        there = {link.target: link for link in links if link.source == memory.id and link.given and link.stands}
        for gone in there.keys() - named.keys():
            tx.relate(replace(there[gone], state="released", hlc=tx.tick(self.now()), origin=self._records.origin))
        for new in named.keys() - there.keys():
            self._ledger.link(tx, LinkKind.RELATED, memory, named[new])
        return there.keys() != named.keys()

    def _named(self, tx: Transaction, id: str) -> Memory:
        try:
            return self._ledger.seen(tx, id)
        except NotFound:
            raise InvalidInput(f"Related memory {id[:100]} not found.", field=RELATED, memory_id=id) from None

    def _check_quota(self, tx: Transaction, memory: Memory) -> None:
        """:raises QuotaExceeded: if its user may keep no more in this space"""
        if not self._quota:
            return
        everyone = Audience("", (Scope(memory.space, Sight.ALL),))
        states = tx.totals(Part(Of.USER, memory.context.user_id), everyone, now=self.now()).states
        kept = sum(count for state, count in states.items() if state < State.DELETED)
        if kept >= self._quota:
            raise QuotaExceeded(
                f"User {memory.context.user_id} may keep {self._quota:,} memories in space {memory.space}.",
                hint="Forget some, or ask for a higher quota.",
            )

    def _strict(self, degraded: str | None) -> None:
        """:raises EmbeddingError: if words alone are not to be enough, and there are only words"""
        if degraded is not None and self._strict_embedding:
            raise EmbeddingError(degraded)

    def _check_unique(self, tx: Transaction, memory: Memory) -> None:
        """:raises Duplicate: if its user has the same words in this space already"""
        for twin in tx.twins(intake.fingerprint(memory), access.EVERYTHING):
            if twin.superseded_by is None and not twin.expired(self.now()):
                archived = twin.status is Status.ARCHIVED
                raise Duplicate(
                    f"The same text is already {'archived' if archived else 'stored'} as {twin.id}.",
                    hint="Restore that one instead." if archived else "Update that one instead.",
                    memory_id=twin.id,
                )

    def _candidates(self, query: Query, audience: Audience, now: datetime) -> candidates.Found:
        """Everything that may answer the question, best first."""
        self._look_at_folders()
        vector, degraded = (None, None) if query.words_only else self._asked(query.text)
        self._strict(degraded)
        search = candidates.Search(
            query=query,
            reads=self._records,
            audience=audience,
            now=now,
            calibrate=self._embedding.calibrate,
            embed=lambda text: self._asked(text)[0],
        )
        found, periods = search.candidates(vector)
        return candidates.Found(found, vector, degraded, periods)

    def _hits(
        self, candidates: Sequence[ranking.Candidate], query: Query, audience: Audience, now: datetime
    ) -> tuple[Hit, ...]:
        """The page of the question; with weights, of the order that they make."""
        if query.weights is not None:
            return self._weighed_hits(candidates, query, query.weights, audience, now)
        page = candidates[query.offset : query.offset + query.limit]
        read = self._whole(self._records.get([one.memory for one in page], audience), deep=False)
        memories = {memory.id: memory for memory in read}
        words = self._records.matched_words(query.text, list(memories)) if query.explain else None
        return tuple(
            Hit(
                memory=memories[one.memory],
                score=one.score,
                explanation=None if words is None else ranking.explained(one, words.get(one.memory, ())),
            )
            for one in page
            if one.memory in memories
        )

    def _weighed_hits(
        self,
        candidates: Sequence[ranking.Candidate],
        query: Query,
        weights: Weights,
        audience: Audience,
        now: datetime,
    ) -> tuple[Hit, ...]:
        scores = {one.memory: one.score for one in candidates}
        hits = [
            Hit(
                memory=memory,
                score=scores[memory.id],
                factors=ranking.weighed(scores[memory.id], memory, weights, now),
            )
            for memory in self._records.get(list(scores), audience)
        ]
        hits.sort(key=lambda hit: -hit.factors.combined if hit.factors else 0.0)
        page = hits[query.offset : query.offset + query.limit]
        whole = self._whole([hit.memory for hit in page], deep=False)
        return tuple(replace(hit, memory=memory) for hit, memory in zip(page, whole, strict=True))

    def _position(self, cursor: str | None, filter: Filter, order: Order, descending: bool) -> Position | None:
        if cursor is None:
            return None
        return cursors.read(cursor, key=self.signing_key(), question=self._question(filter, order, descending))

    def _cursor(self, last: Memory, filter: Filter, order: Order, descending: bool) -> str:
        position = Position.of(last, order)
        if order is Order.LENGTH and last.id in (lengths := self._lengths([last])):
            position = Position(value=lengths[last.id], seq=last.seq)
        return cursors.written(position, key=self.signing_key(), question=self._question(filter, order, descending))

    def _question(self, filter: Filter, order: Order, descending: bool) -> str:
        """Everything that must stay the same from page to page."""
        asked = sorted((entry.name, repr(plain_set(getattr(filter, entry.name)))) for entry in fields(filter))
        return repr((self.caller.user, self.spaces, order, descending, asked))

    def signing_key(self) -> bytes:
        """The store's own secret; made when it is first needed."""
        key = self._records.fact("cursor_key")
        if key is None:
            with self._records.writing() as tx:
                key = tx.fact("cursor_key") or os.urandom(32).hex()
                tx.set_fact("cursor_key", key)
        return bytes.fromhex(key)

    def _lengths(self, memories: Sequence[Memory]) -> dict[str, int]:
        """How long the contents are that lie elsewhere."""
        away = [memory.id for memory in memories if not memory.content and memory.status is not Status.ACTIVE]
        return {name: glimpse.length for name, glimpse in self._records.glimpses(away).items()} if away else {}

    def _link_counts(self, memories: Sequence[Memory]) -> dict[str, int]:
        counts = dict.fromkeys((memory.id for memory in memories), 0)
        for link in self._ledger.links_seen(self._records, list(counts)):
            for end in {link.source, link.target} & counts.keys() if link.stands else ():
                counts[end] += 1
        return counts

    def _count_reads(self, memories: Sequence[Memory]) -> None:
        """Note who was shown these memories, and count the first ones as used.

        Being shown is not a use: else the most shown would become the best ranked, and be shown still more.
        """
        if memories:
            ids = tuple(memory.id for memory in memories)
            used = () if self.provenance.by_person else ids[:MOST_USED]
            recall = Recall(
                at=self.now(),
                space=self.spaces[0],
                user=self.caller.user,
                client=self.provenance.client,
                memories=ids,
            )
            self._records.count_reads(dict.fromkeys(used, 1), at=recall.at, recall=recall)


def plain_set(value: object) -> object:
    return sorted(map(str, value)) if isinstance(value, frozenset) else value
