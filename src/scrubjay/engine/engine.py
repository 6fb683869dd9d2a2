"""The verbs of memory, each readable from top to bottom.

An engine is bound to a caller, the spaces it works in (the first for writing) and where its calls come from; servers
bind one per request, sharing everything behind it. Nothing here knows SQL, JSON or HTTP.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from scrubjay.engine import access, intake, lifecycle, ranking, transfer
from scrubjay.engine.backlog import Backlog
from scrubjay.engine.conflicts import Judge, Proposal
from scrubjay.engine.embedding import AT_ONCE, Embedding
from scrubjay.engine.ledger import Ledger, Text
from scrubjay.engine.neighbours import neighbours_of
from scrubjay.errors import Conflict, EmbeddingError, InvalidInput, NotFound
from scrubjay.memory import (
    DEFAULT_SPACE,
    Audience,
    Caller,
    Explanation,
    Filter,
    Hit,
    Hits,
    Kind,
    Link,
    LinkKind,
    Memory,
    NewMemory,
    Order,
    Page,
    Provenance,
    Query,
    Recall,
    Role,
    Space,
    State,
    Stored,
    Version,
    new_id,
)
from scrubjay.stores.base import Checkup, Store, Transaction
from scrubjay.times import utc_now

if TYPE_CHECKING:
    from scrubjay.embedders.base import Embedder, Vector

BATCH = 64  # memories of a bulk load per transaction
CURRENT = frozenset({State.ACTIVE, State.SUPERSEDED})
OTHER_MODEL = "The store's vectors come from another embedding model; only words are searched."


class Engine:
    """A memory, as one caller uses it."""

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
    ) -> None:
        self.caller = caller or Caller()
        self.spaces = tuple(intake.check_space(space) for space in spaces)
        self.provenance = provenance or Provenance(caller=self.caller.user)
        self.now = clock
        self._records = store
        self._embedding = Embedding(embedder, wait_seconds=wait_seconds, fetch=fetch)
        self._judge = Judge(self._embedding)
        self._backlog = Backlog(store, self._embedding, self._judge_late)

    def bound_to(
        self,
        *,
        caller: Caller | None = None,
        spaces: tuple[str, ...] | None = None,
        provenance: Provenance | None = None,
    ) -> Engine:
        """The same memory for another caller, other spaces, or calls from elsewhere."""
        bound = copy.copy(self)
        bound.caller = caller or self.caller
        bound.spaces = self.spaces if spaces is None else tuple(intake.check_space(space) for space in spaces)
        bound.provenance = replace(provenance or self.provenance, caller=bound.caller.user)
        return bound

    def warm(self) -> None:
        """Load the model and see to what waits for it, in the background; returns at once."""
        self._embedding.warm()
        self._backlog.start()

    def close(self) -> None:
        """Finish what waits for a vector, as far as that is quick, and let go of everything. Twice is no error."""
        self._backlog.close()
        self._embedding.close()
        self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- remembering -------------------------------------------------------------------------------------------------

    def store(self, new: NewMemory | str, **fields: Any) -> Stored:
        """Keep a memory, and name earlier ones that it may outdate. Never refused for being like another."""
        memory = self._admitted(intake.new_memory(new, fields))
        text, degraded = self._embedded(memory.text)
        proposals = self._proposals(memory, text.first)
        with self._records.writing() as tx:
            stored = self._ledger.add(tx, memory, text, judged=bool(text.vectors))
            self._propose(tx, stored, proposals)
        if not text.whole:
            self._backlog.wake()
        return Stored(memory=stored, similar=tuple(proposal.memory for proposal in proposals), degraded=degraded)

    def store_many(
        self,
        items: Iterable[NewMemory | Mapping[str, Any]],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Sequence[str]:
        """Keep many memories, one transaction per batch; their ids in order. Conflicts are not judged."""
        ids: list[str] = []
        for batch in batches(items):
            memories = [self._admitted(intake.new_memory(item, {})) for item in batch]
            texts = self._embedded_at_leisure(memories)
            with self._records.writing() as tx:
                for memory, text in zip(memories, texts, strict=True):
                    self._ledger.add(tx, memory, text, judged=True)
            ids += [memory.id for memory in memories]
            if progress:
                progress(len(ids))
        return ids

    def update(
        self, id: str, *, reason: str | None = None, expected_version: int | None = None, **fields: Any
    ) -> Memory:
        """Change a memory; its former state stays in the history. Only changed text is embedded anew."""
        changed = intake.changes(fields)
        known = self._ledger.changeable(self._records, id)
        if "content" in changed and known.kind is not Kind.MEMORY:
            raise InvalidInput(f"The text of a {known.kind} is not edited.", hint="Save a new one.", field="content")
        text: Text | None = None
        if changed.get("content", known.content) != known.content:
            text, _ = self._embedded(changed["content"])
        with self._records.writing() as tx:
            current = self._ledger.changeable(tx, id)
            if expected_version not in (None, current.version) or (text is None) != (
                changed.get("content", current.content) == current.content
            ):
                raise Conflict(
                    f"Memory {current.id} has changed meanwhile; it is at version {current.version}.",
                    hint="Read it again and repeat the change.",
                    memory_id=current.id,
                    version=current.version,
                )
            memory = self._ledger.change(
                tx, intake.retitled(current, changed), "updated", *changed, reason=reason, text=text
            )
        if text is not None and not text.whole:
            self._backlog.wake()
        return memory

    def supersede(self, *, old: str, new: str) -> tuple[Memory, Memory]:
        """Mark a memory as outdated by a newer one. Both stay; searches show only the newer."""
        with self._records.writing() as tx:
            return lifecycle.supersede(self._ledger, tx, old, new)

    # --- finding -----------------------------------------------------------------------------------------------------

    def search(self, query: Query | str, **options: Any) -> Hits:
        """Find memories by words and by meaning, best first; nothing relevant is an empty answer."""
        query = intake.query(query, options)
        now, audience = query.now or self.now(), self._audience(query.filter)
        vector, degraded = (None, None) if query.words_only else self._asked(query.text)
        by_words = self._records.match(query.text, query.filter, audience, now=now, limit=ranking.DEPTH)
        if vector is None:
            candidates = ranking.fuse(by_words, (), {}, self._embedding.calibrate)
        else:
            by_meaning = self._records.nearest(vector, query.filter, audience, now=now, limit=ranking.DEPTH)
            near = {match.memory for match in by_meaning}
            further = self._records.cosines(vector, [one.memory for one in by_words if one.memory not in near])
            candidates = ranking.fuse(by_words, by_meaning, further, self._embedding.calibrate)
        hits = self._hits(candidates[query.offset : query.offset + query.limit], query, audience)
        self._count_reads(hits)
        return Hits(hits=hits, total=len(candidates), degraded=degraded)

    def get(self, id: str, *, deleted: bool = False) -> Memory:
        """A memory by its id; softly deleted ones only if asked for.

        :raises NotFound: if there is none, or none that the caller may see
        """
        return self._ledger.seen(self._records, id, deleted=deleted)

    def list(
        self,
        filter: Filter | None = None,
        *,
        order: Order = Order.CREATED,
        descending: bool = True,
        limit: int = 20,
        offset: int = 0,
        counted: bool = False,
    ) -> Page:
        """Memories in order, newest first unless asked otherwise; `counted` also says how many there are in all."""
        intake.check_limit(limit, offset)
        wanted = filter or Filter()
        audience, now = self._audience(wanted), self.now()
        memories = self._records.list(
            wanted, audience, now=now, order=order, descending=descending, limit=limit, offset=offset
        )
        total = self._records.count(wanted, audience, now=now) if counted else None
        return Page(memories=tuple(memories), total=total)

    def history(self, id: str) -> Sequence[Version]:
        """Former states of a memory, newest first."""
        return self._records.versions(self.get(id).id)

    def links(self, id: str) -> Sequence[Link]:
        """What a memory is linked with, as far as the caller may see it."""
        memory = self.get(id)
        links = self._records.links([memory.id])
        ends = sorted({end for link in links for end in (link.source, link.target)})
        visible = {other.id for other in self._records.get(ends, access.audience_anywhere(self.caller))}
        return [link for link in links if {link.source, link.target} <= visible]

    # --- forgetting --------------------------------------------------------------------------------------------------

    def forget(
        self, id: str, *, hard: bool = False, reason: str | None = None, days: int = lifecycle.RETENTION_DAYS
    ) -> Memory:
        """Delete a memory: softly, to be brought back for some days, or for good."""
        with self._records.writing() as tx:
            return lifecycle.forget(self._ledger, tx, id, hard=hard, reason=reason, days=days)

    def recover(self, id: str) -> Memory:
        """Bring a softly deleted memory back."""
        with self._records.writing() as tx:
            return lifecycle.recover(self._ledger, tx, id)

    def restore_version(self, id: str, version: int) -> Memory:
        """Make a former state the current one again; today's state joins the history."""
        former = next((one.memory for one in self.history(id) if one.memory.version == version), None)
        if former is None:
            raise NotFound(f"Memory {id} has no former version {version}.", hint="`scrubjay history` lists them.")
        fields = {name: getattr(former, name) for name in intake.CHANGEABLE}
        if former.kind is not Kind.MEMORY:
            del fields["content"]
        return self.update(id, reason=f"restored version {version}", **fields)

    def prune(self, *, dry_run: bool = False) -> Sequence[Memory]:
        """Softly delete what has expired in this engine's spaces, and say which; a dry run only says."""
        expired = Filter(states=CURRENT, expired=True)
        found = self._records.list(expired, self._audience(expired), now=self.now(), limit=100_000)
        pruned = [memory for memory in found if access.may_change(self.caller, memory)]
        for memory in () if dry_run else pruned:
            self.forget(memory.id, reason="expired")
        return pruned

    # --- spaces, transfer, health ------------------------------------------------------------------------------------

    def list_spaces(self) -> Sequence[Space]:
        return [space for space in self._records.spaces() if access.granted(self.caller, space.name)]

    def create_space(self, name: str, *, description: str | None = None) -> bool:
        """Make a space; False if it was there already."""
        access.check_store(self.caller, intake.check_space(name))
        with self._records.writing() as tx:
            return tx.create_space(name, at=self.now(), description=description)

    def export(self) -> Iterator[dict[str, Any]]:
        """Every memory of this engine's spaces as plain JSON objects, oldest first."""
        return transfer.exported(self._records, self._audience(Filter()), self.now())

    def import_from(
        self, lines: Iterable[Mapping[str, Any]], *, progress: Callable[[int], None] | None = None
    ) -> transfer.Imported:
        """Take in what `export` gave; what is already here with the same id is left as it is."""
        return transfer.imported(self, lines, progress)

    def admitted(self, fields: Mapping[str, Any], *, id: str | None = None) -> Memory:
        """A memory from named fields as it would be stored, with an id of its own or a given one."""
        return self._admitted(intake.new_memory(fields, {}), id=id)

    def known_ids(self, ids: Sequence[str]) -> set[str]:
        """Those of the ids that are taken, whoever may see them."""
        return {memory.id for memory in self._records.get(ids, access.EVERYTHING)}

    def add_all(self, memories: Sequence[Memory], links: Sequence[Link] = ()) -> int:
        """Write complete memories and the links between known ones in one transaction; how many links there were."""
        texts = self._embedded_at_leisure(memories)
        with self._records.writing() as tx:
            for memory, text in zip(memories, texts, strict=True):
                self._ledger.add(tx, replace(memory, path=lifecycle.free_path(tx, memory)), text, judged=True)
            ends = {end for link in links for end in (link.source, link.target)}
            known = {memory.id for memory in tx.get(sorted(ends), access.EVERYTHING)}
            kept = [link for link in links if {link.source, link.target} <= known]
            for link in kept:
                tx.relate(replace(link, hlc=tx.tick(self.now()), origin=self._records.origin))
        return len(kept)

    def check(self, *, deep: bool = False) -> Checkup:
        """Look for damage; writes nothing."""
        return self._records.check(deep=deep)

    def rebuild(self) -> None:
        """Make words and missing vectors anew from the texts."""
        self._records.rebuild()
        self._backlog.drain()

    # --- steps that several verbs share ------------------------------------------------------------------------------

    @property
    def _ledger(self) -> Ledger:
        return Ledger(
            caller=self.caller,
            provenance=self.provenance,
            origin=self._records.origin,
            model=self._embedding.fingerprint,
            now=self.now,
        )

    def _audience(self, filter: Filter) -> Audience:
        if filter.user_id is not None:
            access.checked_user(self.caller, filter.user_id)
        return access.audience_in(self.caller, self.spaces)

    def _admitted(self, new: NewMemory, *, id: str | None = None) -> Memory:
        space = self.spaces[0]
        access.check_store(self.caller, space)
        user = access.owner_of_new(self.caller, new.user_id)
        return intake.admitted(
            new, id=id or new_id(), space=space, user=user, provenance=self.provenance, now=self.now()
        )

    def _embedded(self, content: str) -> tuple[Text, str | None]:
        """The first parts' vectors within the waiting time, or none and the reason."""
        parts = self._embedding.split(content)
        if (reason := self._cannot_embed()) is not None:
            return Text(vectors=(), parts=len(parts)), reason
        try:
            return Text(vectors=self._embedding.texts(parts[:AT_ONCE]), parts=len(parts)), None
        except EmbeddingError as error:
            return Text(vectors=(), parts=len(parts)), error.message

    def _embedded_at_leisure(self, memories: Sequence[Memory]) -> Sequence[Text]:
        """All parts of all texts; what cannot be embedded now waits in the backlog."""
        split = [self._embedding.split(memory.text) for memory in memories]
        vectors: Iterator[Vector] = iter(())
        if self._cannot_embed() is None:
            try:
                vectors = iter(self._embedding.at_leisure([part for parts in split for part in parts]))
            except EmbeddingError:
                self._backlog.wake()
        return [Text(vectors=tuple(islice(vectors, len(parts))), parts=len(parts)) for parts in split]

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
        return OTHER_MODEL if self._records.fact("model") not in (None, self._embedding.fingerprint) else None

    def _proposals(self, memory: Memory, vector: Vector | None) -> Sequence[Proposal]:
        """What a memory may outdate: of what its user may see and change, in its own space."""
        now = self.now()
        role = self.caller.role if memory.context.user_id == self.caller.user else Role.MEMBER
        audience = access.audience_in(Caller(user=memory.context.user_id, role=role), (memory.space,))
        neighbours = neighbours_of(vector, self._records, audience, now=now, without=memory.id)
        twins = self._records.twins(intake.fingerprint(memory), audience)
        return self._judge.proposals(memory, vector, neighbours, self._records, twins=twins, now=now)

    def _propose(self, tx: Transaction, memory: Memory, proposals: Sequence[Proposal]) -> None:
        for proposal in proposals:
            self._ledger.link(tx, LinkKind.MAY_OUTDATE, memory, proposal.memory, score=proposal.score, given=False)

    def _judge_late(self, memory: Memory, vector: Vector) -> None:
        """Judge a memory that had no vector when it was stored."""
        proposals = self._proposals(memory, vector)
        with self._records.writing() as tx:
            self._propose(tx, memory, proposals)

    def _hits(self, page: Sequence[ranking.Candidate], query: Query, audience: Audience) -> tuple[Hit, ...]:
        memories = {memory.id: memory for memory in self._records.get([one.memory for one in page], audience)}
        words = self._records.matched_words(query.text, list(memories)) if query.explain else {}
        return tuple(
            Hit(
                memory=memories[one.memory],
                score=one.score,
                explanation=Explanation(
                    words=words.get(one.memory, ()),
                    word_score=one.word_score,
                    cosine=one.cosine,
                    similarity=one.similarity,
                )
                if query.explain
                else None,
            )
            for one in page
            if one.memory in memories
        )

    def _count_reads(self, hits: Sequence[Hit]) -> None:
        if hits:
            ids = tuple(hit.memory.id for hit in hits)
            recall = Recall(
                at=self.now(),
                space=self.spaces[0],
                user=self.caller.user,
                client=self.provenance.client,
                memories=ids,
            )
            self._records.count_reads(dict.fromkeys(ids, 1), at=recall.at, recall=recall)


def batches(items: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
