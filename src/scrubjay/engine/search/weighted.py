"""A weighted sum of several factors, for callers who weigh by themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime

from scrubjay.values.memory import Memory
from scrubjay.values.search import Decay, Factors, Hit, Weights

HALF_LIFE_DAYS = 90.0
MANY_READS = 100  # from here on, more reads add nothing
DECIMALS = 4  # of each factor; the sum is made of the rounded ones, so that anyone can check it


def by_weights(scores: Mapping[str, float], memories: Iterable[Memory], weights: Weights, now: datetime) -> list[Hit]:
    """Weigh memories factor by factor; sort them by the weighted sum if the weights order."""
    hits = [
        Hit(memory=memory, score=scores[memory.id], factors=weigh_memory(scores[memory.id], memory, weights, now))
        for memory in memories
    ]
    if weights.order:
        hits.sort(key=lambda hit: -hit.factors.combined if hit.factors else 0.0)
    return hits


def weigh_memory(score: float, memory: Memory, weights: Weights, now: datetime) -> Factors:
    """Compute the factors of a memory and their weighted sum."""
    age_days = max(0.0, (now - memory.created_at).total_seconds() / 86_400)
    similarity = round(score, DECIMALS)
    recency = round(recency_of(age_days, weights.decay), DECIMALS)
    importance = round(memory.importance, DECIMALS)
    access = round(min(1.0, math.log1p(memory.access_count) / math.log1p(MANY_READS)), DECIMALS)
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
        combined=round(combined, DECIMALS),
    )


def recency_of(age_days: float, decay: Decay) -> float:
    """1 at age 0, one half after the half-life, falling for ever (or, linearly, to 0 after two half-lives)."""
    lives = age_days / HALF_LIFE_DAYS
    if decay is Decay.LINEAR:
        return max(0.0, 1 - lives / 2)
    if decay is Decay.LOGARITHMIC:
        return 1 / (1 + math.log2(1 + lives))
    return float(0.5**lives)
