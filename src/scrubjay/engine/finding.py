"""How candidates for a question are found: by words, by meaning, from the time it names; then put in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from scrubjay.engine import ranking
from scrubjay.memory import Audience, Filter, Match, Period, Query
from scrubjay.stores.base import Reads

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrubjay.embedders.base import Vector

FROM_THEN = 50  # candidates by meaning from the time that a question names


def candidates(
    reads: Reads,
    query: Query,
    vector: Vector | None,
    audience: Audience,
    calibrate: Callable[[float], float],
    *,
    now: datetime,
) -> tuple[list[ranking.Candidate], tuple[Period, ...]]:
    """Everything that may answer, best first, and the times that the question names."""
    by_words = reads.match(query.text, query.filter, audience, now=now, limit=ranking.DEPTH)
    periods = () if query.words_only else named_times(query.text, now)
    if vector is None:
        found = ranking.fuse(by_words, (), {}, calibrate)
    else:
        by_meaning = reads.nearest(vector, query.filter, audience, now=now, limit=ranking.DEPTH)
        near = {match.memory for match in by_meaning}
        from_then = [one for one in nearest_then(reads, vector, query, periods, audience, now) if one.memory not in near]
        near.update(one.memory for one in from_then)
        further = reads.cosines(vector, [one.memory for one in by_words if one.memory not in near])
        found = ranking.fuse(by_words, [*by_meaning, *from_then], further, calibrate)
    if not query.words_only:
        found = looked_at(reads, found, query.text, periods)
    if query.weights is None and found:  # a weighted sum is a plain one
        best = [one.memory for one in found[: ranking.LOOKED]]
        found = ranking.fresh_first(found, reads.links(best, kinds=ranking.PAIRS))
    return found, periods


def named_times(question: str, now: datetime) -> tuple[Period, ...]:
    from scrubjay.engine import when  # its tables are not for a search by words

    return when.periods(question, now)


def nearest_then(
    reads: Reads, vector: Vector, query: Query, periods: Sequence[Period], audience: Audience, now: datetime
) -> list[Match]:
    """The nearest from the named times, which in a large store may not be among the nearest of all times."""
    found: list[Match] = []
    for period in periods:
        then = within(query.filter, period)
        if then is not None:
            found += reads.nearest(vector, then, audience, now=now, limit=FROM_THEN)
    return list({match.memory: match for match in found}.values())


def within(filter: Filter, period: Period) -> Filter | None:
    """The filter, narrowed to a period; None if nothing can be left."""
    since = max(period.start, filter.created_since or period.start)
    until = min(period.end, filter.created_until or period.end)
    return replace(filter, created_since=since, created_until=until) if since <= until else None


def looked_at(
    reads: Reads, found: Sequence[ranking.Candidate], question: str, periods: Sequence[Period]
) -> list[ranking.Candidate]:
    best = [one.memory for one in found[: ranking.LOOKED]]
    if periods:  # those from then may stand far behind
        best = [one.memory for one in found]
    if not best:
        return []
    from scrubjay.engine.when import fit

    return ranking.second_look(found, reads.glimpses(best), question, periods, fit)
