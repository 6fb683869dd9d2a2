"""Duplicates: do two sentences say the same? Graded by similarity alone, as the engine measures it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from bench.cached import CachedEmbedder
from scrubjay.engine.conflicts.duplicates import same_said
from scrubjay.text.words import query_words


def run(pairs: Sequence[Any], embedder: CachedEmbedder, metrics: ModuleType) -> dict[str, Any]:
    """Per source and measure: average precision, and what the best threshold over all sources would merge."""
    embedder.fill((text for pair in pairs for text in (pair.a, pair.b)), (pair.a for pair in pairs), "dedup")
    measures: dict[str, Callable[[Any], float]] = {
        "similarity": lambda pair: embedder.calibrate(float(embedder.embed_query(pair.a) @ first(embedder, pair.b))),
        "cosine of both texts": lambda pair: float(first(embedder, pair.a) @ first(embedder, pair.b)),
        "shared words": lambda pair: shared_words(pair.a, pair.b),
        "reported as twins": lambda pair: float(same_said(pair.a, pair.b)),
    }
    result: dict[str, Any] = {}
    for name, measure in measures.items():
        values = {pair.id: measure(pair) for pair in pairs}
        *_, threshold = metrics.best_f1([(values[pair.id], pair.duplicate) for pair in pairs])
        for source in ("all", *sorted({pair.source for pair in pairs})):
            some = [pair for pair in pairs if source in ("all", pair.source)]
            result.setdefault(source, {})[name] = graded(some, values, threshold, metrics)
    return result


def graded(pairs: Sequence[Any], values: dict[str, float], threshold: float, metrics: ModuleType) -> dict[str, Any]:
    scored = [(values[pair.id], pair.duplicate) for pair in pairs]
    f1, precision, recall = metrics.at_threshold(scored, threshold)
    contradictions = [values[pair.id] >= threshold for pair in pairs if pair.contradiction]
    return {
        "n": len(pairs),
        "ap": metrics.average_precision(scored),
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "threshold": threshold,
        "contradictions": sum(contradictions) / len(contradictions) if contradictions else None,
    }


def first(embedder: CachedEmbedder, text: str) -> Any:
    [vector] = embedder.embed([embedder.split(text)[0]])
    return vector


def shared_words(one: str, other: str) -> float:
    a, b = ({word.lower() for word in query_words(text)} for text in (one, other))
    return len(a & b) / max(1, len(a | b))
