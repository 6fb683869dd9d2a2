"""Ranking's columns, from candidates one by one and back."""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np

from scrubjay.engine.search import freshness, ranking
from scrubjay.engine.search.ranking import Ranked
from scrubjay.values.search import Candidates, Glimpses, Query
from scrubjay.values.times import milliseconds

AS_IT_IS = ((-1.0, -1.0), (1.0, 1.0))  # what a cosine is worth


class Glimpse(NamedTuple):
    created_at: object
    valid_from: object
    valid_until: object
    conversation: str | None
    length: int
    opening: str
    also: str = "[]"


def glimpses_of(glimpses):
    """Glimpses by name, as columns."""
    at = [lambda moment: None if moment is None else milliseconds(moment)] * 3
    return Glimpses.of_rows(
        (name, *(read(time) for read, time in zip(at, one[:3], strict=True)), *one[3:])
        for name, one in glimpses.items()
    )


def rank_candidates(candidates):
    """Candidates in this order."""
    columns = list(zip(*candidates, strict=True)) or [()] * 5
    names, scores, words, cosines, similarities, *_ = columns
    return Ranked(
        names,
        scores=np.array(scores, float),
        word_scores=np.array(words, float),
        cosines=np.array([nan if cosine is None else cosine for cosine in cosines], float),
        similarities=np.array(similarities, float),
        order=list(range(len(names))),
    )


def candidates_of(by_words, by_meaning, further):
    words, near = dict(by_words), dict(by_meaning)
    names = [*near, *(name for name in words if name not in near)]
    cosines = {**near, **further}
    return Candidates(
        memories=names,
        word_scores=[words.get(name, 0.0) for name in names],
        cosines=[cosines.get(name, nan) for name in names],
        near=len(near),
        by_words=[names.index(name) for name in words],
    )


def fuse(by_words, by_meaning, more, *further):
    return list(ranking.fuse(candidates_of(by_words, by_meaning, more), AS_IT_IS, further))


def second_look(candidates, glimpses, question, periods, passages=(), also=()):
    query = Query(text=question, also=also)
    return list(ranking.second_look(rank_candidates(candidates), glimpses_of(glimpses), query, periods, dict(passages)))


def fresh_first(candidates, links):
    return list(freshness.fresh_first(rank_candidates(candidates), links))
