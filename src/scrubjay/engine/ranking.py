"""Words and meaning, fused into one order and one score. Pure functions.

A hit's score is its own: a fixed, rising function of its similarity (the model's calibrated cosine) and its word score
(share of the question's distinctive words), so the same number means the same for every question. What is neither
near in meaning nor shares a distinctive word is dropped: nothing relevant is an empty list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from scrubjay.memory import Decay, Explanation, Factors, Match, Memory, Weights

DEPTH = 200  # candidates from each side, whatever limit and offset, so that paging is stable
MEANING = 0.75  # weight of similarity against words
FLOOR = 0.22  # similarity below which meaning alone says nothing
SCORE = itemgetter(1)  # of a Candidate
DISTINCTIVE = 0.1  # word score from which a shared word is reason enough to keep a memory


class Candidate(NamedTuple):
    """One of some hundreds that each search makes: a tuple, since a frozen dataclass takes four times as long."""

    memory: str
    score: float
    word_score: float
    cosine: float | None
    similarity: float


def fuse(
    by_words: Sequence[Match],
    by_meaning: Sequence[Match],
    further: Mapping[str, float],
    calibrate: Callable[[float], float],
) -> list[Candidate]:
    """One list of candidates, best first. `further` are cosines of what only words found."""
    words = {match.memory: match.score for match in by_words}
    cosines = {**{match.memory: match.score for match in by_meaning}, **further}
    found = []
    for memory, cosine in cosines.items():
        similarity, word_score = calibrate(cosine), words.get(memory, 0.0)
        if similarity >= FLOOR or word_score >= DISTINCTIVE:
            score = MEANING * similarity + (1 - MEANING) * word_score
            found.append(Candidate(memory, score, word_score, cosine, similarity))
    # Without a vector (not embedded yet, or no model at all) words speak alone.
    found += [Candidate(memory, score, score, None, 0.0) for memory, score in words.items() if memory not in cosines]
    found.sort(key=SCORE, reverse=True)
    return found


def explained(one: Candidate, words: tuple[str, ...]) -> Explanation:
    return Explanation(words=words, word_score=one.word_score, cosine=one.cosine, similarity=one.similarity)


# --- a weighted sum of several factors -------------------------------------------------------------------------------

HALF_LIFE_DAYS = 90.0
MANY_READS = 100  # from here on, more reads add nothing
SHOWN = 4  # decimals; the sum is made of what is shown, so that anybody can add it up


def weighed(score: float, memory: Memory, weights: Weights, now: datetime) -> Factors:
    """The plain weighted sum over what is known of a memory."""
    age_days = max(0.0, (now - memory.created_at).total_seconds() / 86_400)
    similarity = round(score, SHOWN)
    recency = round(recency_of(age_days, weights.decay), SHOWN)
    importance = round(memory.importance, SHOWN)
    access = round(min(1.0, math.log1p(memory.access_count) / math.log1p(MANY_READS)), SHOWN)
    combined = (
        weights.similarity * similarity
        + weights.recency * recency
        + weights.importance * importance
        + weights.access * access
    )
    return Factors(
        similarity=similarity,
        recency=recency,
        importance=importance,
        access=access,
        combined=round(combined, SHOWN),
    )


def recency_of(age_days: float, decay: Decay) -> float:
    """1 at age 0, one half after the half-life, falling for ever (or, linearly, to 0 after two half-lives)."""
    lives = age_days / HALF_LIFE_DAYS
    if decay is Decay.LINEAR:
        return max(0.0, 1 - lives / 2)
    if decay is Decay.LOGARITHMIC:
        return 1 / (1 + math.log2(1 + lives))
    return float(0.5**lives)
