"""Where an engine's work is done: its parts, whom it works for, and the steps that several verbs share."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Self

from scrubjay.engine import access, cursors, intake, ranking
from scrubjay.engine.backlog import Backlog
from scrubjay.engine.conflicts import Judge, Proposal
from scrubjay.engine.embedding import AT_ONCE, Embedding
from scrubjay.engine.ledger import Ledger, Text
from scrubjay.engine.neighbours import neighbours_of
from scrubjay.errors import EmbeddingError
from scrubjay.memory import (
    DEFAULT_SPACE,
    Audience,
    Caller,
    Filter,
    Hit,
    LinkKind,
    Memory,
    NewMemory,
    Order,
    Provenance,
    Query,
    Recall,
    Role,
    Weights,
    new_id,
)
from scrubjay.stores.base import Position, Store, Transaction
from scrubjay.times import utc_now

if TYPE_CHECKING:
    from scrubjay.embedders.base import Embedder, Vector

OTHER_MODEL = "The store's vectors come from another embedding model; only words are searched."


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
    ) -> Self:
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

    def _hits(
        self, candidates: Sequence[ranking.Candidate], query: Query, audience: Audience, now: datetime
    ) -> tuple[Hit, ...]:
        """The page of the question; with weights, of the order that they make."""
        if query.weights is not None:
            return self._weighed_hits(candidates, query, query.weights, audience, now)
        page = candidates[query.offset : query.offset + query.limit]
        memories = {memory.id: memory for memory in self._records.get([one.memory for one in page], audience)}
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
        return tuple(hits[query.offset : query.offset + query.limit])

    def _position(self, cursor: str | None, filter: Filter, order: Order, descending: bool) -> Position | None:
        if cursor is None:
            return None
        return cursors.read(cursor, key=self._cursor_key(), question=self._question(filter, order, descending))

    def _cursor(self, last: Memory, filter: Filter, order: Order, descending: bool) -> str:
        position = Position.of(last, order)
        return cursors.written(position, key=self._cursor_key(), question=self._question(filter, order, descending))

    def _question(self, filter: Filter, order: Order, descending: bool) -> str:
        """Everything that must stay the same from page to page."""
        asked = sorted((entry.name, repr(plain_set(getattr(filter, entry.name)))) for entry in fields(filter))
        return repr((self.caller.user, self.spaces, order, descending, asked))

    def _cursor_key(self) -> bytes:
        """The store's own secret; made when the first cursor is."""
        key = self._records.fact("cursor_key")
        if key is None:
            with self._records.writing() as tx:
                key = tx.fact("cursor_key") or os.urandom(32).hex()
                tx.set_fact("cursor_key", key)
        return bytes.fromhex(key)

    def _link_counts(self, memories: Sequence[Memory]) -> dict[str, int]:
        counts = dict.fromkeys((memory.id for memory in memories), 0)
        for link in self._records.links(list(counts)):
            for end in {link.source, link.target} & counts.keys():
                counts[end] += 1
        return counts

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


def plain_set(value: object) -> object:
    return sorted(map(str, value)) if isinstance(value, frozenset) else value
