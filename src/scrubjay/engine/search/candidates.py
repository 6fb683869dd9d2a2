"""How a question is answered: candidates by words, by meaning, from the time it names; their order; a page of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from scrubjay.engine.search import freshness, ranking, weighted
from scrubjay.engine.store.embedding import check_degraded, check_model, embed_query, without_vectors
from scrubjay.lazy import modules
from scrubjay.stores.promises.memories import Reads
from scrubjay.text.words import query_words
from scrubjay.values.callers import Audience
from scrubjay.values.frozen import dataclass, replace
from scrubjay.values.memory import Memory
from scrubjay.values.search import (
    NO_GLIMPSES,
    Candidates,
    Explanation,
    Filter,
    Hit,
    Hits,
    Match,
    Period,
    Query,
    Verdict,
)
from scrubjay.values.times import moment

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.engine import trust
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store.models import ModelScores
    from scrubjay.values.vectors import Knots
else:  # for flagged memories only: its patterns take 35 ms to compile
    [trust] = modules("scrubjay.engine", "trust")

KNOWN_EVENT = 0.6  # similarity from which on a memory is taken to tell of an event that the question names
MOST_IN_PERIODS = 50  # candidates by meaning from each period that a question names


class FoundCandidates(NamedTuple):
    """What a question found, before a page is cut from it."""

    candidates: ranking.Ranked  # best first
    vector: Vector | None  # the question's
    degraded: str | None  # why there is none, or which memories have none
    partly: bool  # the latter
    periods: tuple[Period, ...]  # the times that the question names

    @property
    def verdict(self) -> Verdict:
        """The label of the likeliest of all."""
        ranked = self.candidates
        return ranking.label_of(max((float(ranked.chances[row]) for row in ranked.order), default=0.0))

    def chances(self, start: int, end: int | None) -> dict[str, float]:
        """The memories of a page, in order, each with how likely it answers the question."""
        ranked = self.candidates
        return {ranked.memories[row]: float(ranked.chances[row]) for row in ranked.order[start:end]}

    def without_doubtful(self, flagged: Mapping[str, Memory], query: Query) -> FoundCandidates:
        """Leave out flagged memories that are not clearly an answer: no count and no page shows them."""
        ranked = self.candidates
        order = [
            row
            for row in ranked.order
            if (memory := flagged.get(ranked.memories[row])) is None
            or (ranked.chances[row] >= ranking.BEYOND_DOUBT and trust.was_asked_for(memory, (query.text, *query.also)))
        ]
        return self if len(order) == len(ranked) else self._replace(candidates=ranked.reordered(order))

    def here_first(self, here: Container[str]) -> FoundCandidates:
        """Put the memories of the current space, whose ids are `here`, before others that have no better label.

        Where that space answers the question, other spaces add strong hits only, and no more of them than it has.
        """
        ranked, grades = self.candidates, {label: grade for grade, label in enumerate(Verdict)}
        own = [row for row in ranked.order if ranked.memories[row] in here]
        others = [row for row in ranked.order if ranked.memories[row] not in here]
        if not others:  # as in most stores
            return self
        chances = [*map(float, ranked.chances)]
        labels = {row: grades[ranking.label_of(chances[row])] for row in ranked.order}
        if answers := sum(labels[row] == 0 for row in own):
            others = [row for row in others if labels[row] == 0][:answers]
        order = list[int]()
        for row in own:
            better = next((place for place, one in enumerate(others) if labels[one] >= labels[row]), len(others))
            order, others = [*order, *others[:better], row], others[better:]
        return self._replace(candidates=ranked.reordered([*order, *others]))


def search(engine: Engine, query: Query, audience: Audience, now: datetime) -> Hits:
    """Find the page that a question asks for, without recording the read."""
    asked = _ask(engine, query)
    with engine.records.one_reader():
        found = _find(engine, query, asked, audience, now)
        hits = read_page(engine, found, query, audience, now)
        able = hits and engine.parts.embedding.embedder is not None
        uncompared = engine.records.upkeep.uncompared([hit.memory.id for hit in hits]) if able else []
    if engine.notices is not None:
        engine.notices.uncompared += uncompared
    return Hits(
        hits=hits,
        verdict=found.verdict,
        total=len(found.candidates),
        degraded=found.degraded,
        partly=found.partly,
        uncompared=tuple(uncompared),
        periods=found.periods,
    )


def find(engine: Engine, query: Query, audience: Audience, now: datetime) -> FoundCandidates:
    """Find all that may answer the question, best first."""
    asked = _ask(engine, query)
    with engine.records.one_reader():
        return _find(engine, query, asked, audience, now)


def _ask(engine: Engine, query: Query) -> tuple[Vector | None, str | None, Sequence[ModelScores]]:
    """Embed the question, here and by further models; say why if there is no vector. What takes long is done before
    anything is read."""
    engine.look_at_folders(owing=False)
    if query.words_only:
        return None, None, ()
    vector, degraded = embed_query(engine, query.joined)
    further, lacking = engine.parts.models.query(query.joined)
    return vector, degraded or lacking, further


def _find(
    engine: Engine,
    query: Query,
    asked: tuple[Vector | None, str | None, Sequence[ModelScores]],
    audience: Audience,
    now: datetime,
) -> FoundCandidates:
    engine.look_for_owed()
    vector, degraded, further = asked
    if vector is not None and (other_model := check_model(engine)) is not None:
        vector, degraded = None, other_model
    if vector is None:
        check_degraded(engine, degraded)
    search = Search(
        query=query,
        reads=engine.records,
        audience=audience,
        now=now,
        fingerprint=engine.parts.embedding.fingerprint,
        knots=engine.parts.embedding.calibration,
        embed=lambda text: embed_query(engine, text)[0],
        further=further,
    )
    found, periods = search.candidates(vector)
    answer = FoundCandidates(found, vector, degraded, False, periods)
    if len(found) and query.filter.flag is None and query.filter.ids is None:  # else they were asked for
        answer = answer.without_doubtful(_flagged_among(engine, found, query, audience, now), query)
    if not engine.only and len(found):
        answer = answer.here_first(engine.records.in_space(found.memories, engine.spaces[0]))
    if vector is None or degraded is not None:
        return answer
    if len(found):
        waiting = engine.parts.pending_vectors.warning(query.filter, audience, now, met_one=not found.best_has_vector)
    else:  # whatever has a vector is found
        searched = engine.records.count(query.filter, audience, now=now)
        waiting = without_vectors(searched, searched)
    return answer._replace(degraded=waiting, partly=waiting is not None)


def _flagged_among(
    engine: Engine, found: ranking.Ranked, query: Query, audience: Audience, now: datetime
) -> Mapping[str, Memory]:
    """Find the candidates that hold a secret or instructions to a model."""
    flagged, most = replace(query.filter, flag="any"), len(found.memories)
    if not engine.records.list(flagged, audience, now=now, limit=1):  # as in most stores; the ids would take longer
        return {}
    among = replace(flagged, ids=frozenset(found.memories))
    return {memory.id: memory for memory in engine.records.list(among, audience, now=now, limit=most)}


def read_page(
    engine: Engine, found: FoundCandidates, query: Query, audience: Audience, now: datetime
) -> tuple[Hit, ...]:
    """Read the page of hits; with weights that order, of the order that they make."""
    reads, weights, ranked = engine.records, query.weights, found.candidates
    end, orders = query.offset + query.limit, weights is not None and weights.order
    chances = found.chances(0, None) if orders else found.chances(query.offset, end)
    known = {memory.id: memory for memory in reads.get(list(chances), audience)}
    memories: Sequence[Memory] = [known[one] for one in chances if one in known]
    if weights is not None:
        scores = ranked.scores_of_page(0, len(ranked)) if orders else ranked.scores_of_page(query.offset, end)
        hits = weighted.by_weights(scores, memories, weights, now)
        hits = hits[query.offset : end] if orders else hits
        memories = engine.with_texts([hit.memory for hit in hits], deep=False)
        return tuple(
            replace(hit, memory=memory, verdict=ranking.label_of(chances[memory.id]))
            for hit, memory in zip(hits, memories, strict=True)
        )
    why: Mapping[str, Explanation] = {}
    if query.explain:
        words = reads.matched_words(query.joined, list(known))
        page = ranked.page(query.offset, end)
        why = {one.memory: ranking.explain_candidate(one, query, words.get(one.memory, ())) for one in page}
    return tuple(
        Hit(
            memory=memory,
            score=chances[memory.id],
            verdict=ranking.label_of(chances[memory.id]),
            explanation=why.get(memory.id),
        )
        for memory in engine.with_texts(memories, deep=False)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One question on its way through the store."""

    query: Query
    reads: Reads
    audience: Audience
    now: datetime
    fingerprint: str | None  # of the model
    knots: Knots  # what a cosine is worth
    embed: Callable[[str], Vector | None]  # a further question's vector
    further: Sequence[ModelScores]  # the question as further models see it

    def candidates(self, vector: Vector | None) -> tuple[ranking.Ranked, tuple[Period, ...]]:
        """Everything that may answer, best first, and the times that the question names."""
        query, reads = self.query, self.reads
        periods = () if query.words_only else self._periods(vector)
        if vector is None:
            matches = reads.match(query.joined, query.filter, self.audience, now=self.now, limit=ranking.DEPTH)
            found = ranking.Ranked.by_words(matches)
        else:
            near = reads.candidates(
                query.joined, vector, query.filter, self.audience, now=self.now, limit=ranking.DEPTH
            )
            if periods:
                near = merge_matches(near, self._nearest_in_periods(vector, periods))
            similarities = list[tuple[dict[str, float], float]]()
            for asked in self.further:
                from scrubjay.values.vectors import interpolate

                cosines = self._cosines_of(asked, near.memories)
                near = merge_matches(near, reads.cosines(vector, [*cosines.keys() - {*near.memories}]).items())
                similar = {memory: interpolate(cosine, asked.calibration) for memory, cosine in cosines.items()}
                similarities.append((similar, asked.weight))
            found = ranking.fuse(near, self.knots, similarities)
        look = len(found) and not query.words_only
        glimpses = reads.glimpses(ranking.choose_for_second_look(found, periods)) if look else NO_GLIMPSES
        passages = self._passages(ranking.choose_long_notes(glimpses))
        ranked = ranking.rank(
            found,
            query,
            periods,
            glimpses,
            passages=passages,
            links_among=lambda some, found: reads.history.links(some, kinds=freshness.PAIRS, within=found),
            vectors_of=reads.vectors,
        )
        return ranked, periods

    def _passages(self, long: Sequence[str]) -> dict[str, float]:
        """Compute what the best passage of each long note holds of the question's words."""
        if not long:
            return {}
        rarity = self.reads.rarity(query_words(self.query.joined), self.audience)
        return {one.id: ranking.best_passage(one.text, rarity) for one in self.reads.sketches(long, self.audience)}

    def _nearest(self, vector: Vector, filter: Filter, limit: int) -> list[Match]:
        return self.reads.nearest(vector, filter, self.audience, now=self.now, limit=limit)

    def _cosines_of(self, asked: ModelScores, others: Sequence[str]) -> dict[str, float]:
        """Compute a further model's cosines with its nearest memories and with others' candidates. Memories that it has
        no vector of are left out."""
        nearest = self.reads.nearest(
            asked.vector, self.query.filter, self.audience, now=self.now, limit=ranking.DEPTH, model=asked.model
        )
        cosines = {match.memory: match.score for match in nearest}
        missing = [memory for memory in others if memory not in cosines]
        cosines |= self.reads.cosines(asked.vector, missing, model=asked.model)
        return cosines

    def _periods(self, vector: Vector | None) -> tuple[Period, ...]:
        from scrubjay.text.time_expressions import periods  # its tables are not for a search by words

        found = periods(self.query.text, self.now)
        return found if found or vector is None else self._around_an_event()

    def _around_an_event(self) -> tuple[Period, ...]:
        """The time before or after what the question names ("before the move"), if a memory knows when that was."""
        from scrubjay.text.time_expressions import around, event_of

        event = event_of(self.query.text)
        vector = self.embed(event.words) if event else None
        if event is None or vector is None:
            return ()
        from scrubjay.values.vectors import interpolate

        for match in self._nearest(vector, self.query.filter, 1):
            if interpolate(match.score, self.knots) >= KNOWN_EVENT:
                known = self.reads.glimpses([match.memory])
                since = [at for at in (*known.valid_from, *known.created_at) if at is not None]
                return tuple(around(moment(int(at)), event) for at in since[:1])
        return ()

    def _nearest_in_periods(self, vector: Vector, periods: Sequence[Period]) -> list[Match]:
        """Find the nearest from the named times, which in a large store may not be among the nearest of all times."""
        narrowed = [narrow_filter(self.query.filter, period) for period in periods]
        return [match for then in narrowed if then for match in self._nearest(vector, then, MOST_IN_PERIODS)]


def merge_matches(found: Candidates, near: Iterable[tuple[str, float]]) -> Candidates:
    """Add matches by meaning that are not among the candidates yet."""
    known = set(found.memories)
    more = {memory: cosine for memory, cosine in near if memory not in known}
    return found._replace(
        memories=[*found.memories, *more],
        word_scores=[*found.word_scores, *(0.0 for _ in more)],
        cosines=[*found.cosines, *more.values()],
        near=found.near + len(more),
    )


def narrow_filter(filter: Filter, period: Period) -> Filter | None:
    """Narrow a filter to a period; None if nothing can be left."""
    since = max(period.start, filter.created_since or period.start)
    until = min(period.end, filter.created_until or period.end)
    return replace(filter, created_since=since, created_until=until) if since <= until else None
