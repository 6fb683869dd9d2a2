"""How a question is answered: candidates by words, by meaning, from the time it names; their order; a page of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.search import answerability, ranking
from scrubjay.engine.store.embedding import check_degraded, check_model, embed_query
from scrubjay.stores.promises.memories import Reads
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Audience, Filter, Hit, Hits, Match, Period, Query, Verdict

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.languages import Asked

KNOWN_EVENT = 0.6  # similarity from which on a memory is taken to tell of an event that the question names
FROM_THEN = 50  # candidates by meaning from the time that a question names


class Found(NamedTuple):
    """What a question found, before a page is cut from it."""

    candidates: list[ranking.Candidate]  # best first
    vector: Vector | None  # the question's
    degraded: str | None  # why there is none
    periods: tuple[Period, ...]  # the times that the question names
    verdict: Verdict  # on the best


def search(engine: Engine, query: Query, audience: Audience, now: datetime) -> Hits:
    """The page that a question asks for; who asks is not noted."""
    asked = _ask(engine, query)
    with engine.records.one_reader():
        found = _find(engine, query, asked, audience, now)
        hits = read_page(engine, found.candidates, query, audience, now)
    return Hits(
        hits=hits,
        verdict=found.verdict,
        total=len(found.candidates),
        degraded=found.degraded,
        periods=found.periods,
    )


def find(engine: Engine, query: Query, audience: Audience, now: datetime) -> Found:
    """Everything that may answer the question, best first."""
    asked = _ask(engine, query)
    with engine.records.one_reader():
        return _find(engine, query, asked, audience, now)


def _ask(engine: Engine, query: Query) -> tuple[Vector | None, str | None, Asked | None]:
    """The question's vector, or none and why, and what the model for other languages makes of it; what takes long is
    done before anything is read."""
    engine.notice_edits()
    if query.words_only:
        return None, None, None
    vector, degraded = embed_query(engine, query.text)
    languages = engine.parts.languages
    second, lacking = languages.query(query.text) if languages.configured else (None, None)
    return vector, degraded or lacking, second


def _find(
    engine: Engine,
    query: Query,
    asked: tuple[Vector | None, str | None, Asked | None],
    audience: Audience,
    now: datetime,
) -> Found:
    vector, degraded, second = asked
    if vector is not None and (other_model := check_model(engine)) is not None:
        vector, degraded = None, other_model
    if vector is None:
        check_degraded(engine, degraded)
    search = Search(
        query=query,
        reads=engine.records,
        audience=audience,
        now=now,
        calibrate=engine.parts.embedding.calibrate,
        embed=lambda text: embed_query(engine, text)[0],
        second=second,
    )
    found, periods = search.candidates(vector)
    best = max((one.score for one in found), default=0.0)
    return Found(found, vector, degraded, periods, answerability.verdict(best))


def read_page(
    engine: Engine, candidates: Sequence[ranking.Candidate], query: Query, audience: Audience, now: datetime
) -> tuple[Hit, ...]:
    """The page of the question; with weights, of the order that they make."""
    if query.weights is not None:
        read = engine.records.get([one.memory for one in candidates], audience)
        hits = ranking.by_weights({one.memory: one.score for one in candidates}, read, query.weights, now)
        weighed = hits[query.offset : query.offset + query.limit]
        shown = engine.with_texts([hit.memory for hit in weighed], deep=False)
        return tuple(replace(hit, memory=memory) for hit, memory in zip(weighed, shown, strict=True))
    reads = engine.records
    page = candidates[query.offset : query.offset + query.limit]
    shown = engine.with_texts(reads.get([one.memory for one in page], audience), deep=False)
    memories = {memory.id: memory for memory in shown}
    words = reads.matched_words(query.text, list(memories)) if query.explain else None
    return tuple(
        Hit(
            memory=memories[one.memory],
            score=one.score,
            verdict=answerability.verdict(one.score),
            explanation=None if words is None else ranking.explained(one, words.get(one.memory, ())),
        )
        for one in page
        if one.memory in memories
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One question on its way through the store."""

    query: Query
    reads: Reads
    audience: Audience
    now: datetime
    calibrate: Callable[[float], float]  # cosine to similarity
    embed: Callable[[str], Vector | None]  # a further question's vector
    second: Asked | None  # the question for the second model, if the store uses one

    def candidates(self, vector: Vector | None) -> tuple[list[ranking.Candidate], tuple[Period, ...]]:
        """Everything that may answer, best first, and the times that the question names."""
        query, reads = self.query, self.reads
        periods = () if query.words_only else self._periods(vector)
        if vector is None:
            by_words = reads.match(query.text, query.filter, self.audience, now=self.now, limit=ranking.DEPTH)
            found = ranking.fuse(by_words, (), {}, self.calibrate)
        else:
            by_words, by_meaning = reads.match_and_nearest(
                query.text, vector, query.filter, self.audience, now=self.now, limit=ranking.DEPTH
            )
            near = {match.memory: match for match in (*self._from_then(vector, periods), *by_meaning)}
            second = self._second([*near, *(one.memory for one in by_words)])
            wanted = dict.fromkeys([*(one.memory for one in by_words), *second])
            further = reads.cosines(vector, [memory for memory in wanted if memory not in near])
            weight = ranking.FOREIGN if self.second is not None and self.second.foreign else ranking.BESIDE
            found = ranking.fuse(by_words, list(near.values()), further, self.calibrate, second, weight=weight)
        links_of = partial(reads.history.links, kinds=ranking.PAIRS)
        return ranking.rank(found, query, periods, reads.glimpses, links_of), periods

    def _nearest(self, vector: Vector, filter: Filter, limit: int) -> list[Match]:
        return self.reads.nearest(vector, filter, self.audience, now=self.now, limit=limit)

    def _second(self, others: Sequence[str]) -> dict[str, float]:
        """How similar the second model finds its nearest, and the candidates of others; those that it has no vector of
        are missing. Empty if the store does not use one."""
        asked = self.second
        if asked is None:
            return {}
        nearest = self.reads.nearest(
            asked.vector, self.query.filter, self.audience, now=self.now, limit=ranking.DEPTH, model=asked.model
        )
        cosines = {match.memory: match.score for match in nearest}
        missing = [memory for memory in others if memory not in cosines]
        cosines |= self.reads.cosines(asked.vector, missing, model=asked.model)
        return {memory: asked.calibrate(cosine) for memory, cosine in cosines.items()}

    def _periods(self, vector: Vector | None) -> tuple[Period, ...]:
        from scrubjay.engine.search import time_expressions  # its tables are not for a search by words

        found = time_expressions.periods(self.query.text, self.now)
        return found if found or vector is None else self._around_an_event()

    def _around_an_event(self) -> tuple[Period, ...]:
        """The time before or after what the question names ("before the move"), if a memory knows when that was."""
        from scrubjay.engine.search import time_expressions

        event = time_expressions.event(self.query.text)
        vector = self.embed(event.words) if event else None
        if event is None or vector is None:
            return ()
        for match in self._nearest(vector, self.query.filter, 1):
            if self.calibrate(match.score) >= KNOWN_EVENT:
                glimpse = self.reads.glimpses([match.memory])[match.memory]
                return (time_expressions.around(glimpse.valid_from or glimpse.created_at, event),)
        return ()

    def _from_then(self, vector: Vector, periods: Sequence[Period]) -> list[Match]:
        """The nearest from the named times, which in a large store may not be among the nearest of all times."""
        narrowed = [within(self.query.filter, period) for period in periods]
        return [match for then in narrowed if then for match in self._nearest(vector, then, FROM_THEN)]


def within(filter: Filter, period: Period) -> Filter | None:
    """The filter, narrowed to a period; None if nothing can be left."""
    since = max(period.start, filter.created_since or period.start)
    until = min(period.end, filter.created_until or period.end)
    return replace(filter, created_since=since, created_until=until) if since <= until else None
