"""What would other constants of the ranking give? Each question is asked once; its candidates are then ordered anew.

    python -m bench.sweep --only locomo,longmemeval_pool

Prints recall@5/@10 per set for weights of meaning against words, for the floor below which a candidate is dropped,
and for min-max normalised lists instead of the calibrated sum. Changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench import report, retrieval
from bench.cached import CachedEmbedder
from bench.data import folder, tools
from bench.quality import HEADLINE, UNANSWERABLE
from bench.report import percent
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.search import ranking
from scrubjay.settings import load

EVERYTHING = 2 * ranking.DEPTH
WEIGHTS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
FLOORS = (0.0, 0.1, 0.15, 0.22, 0.3, 0.42)

Score = Callable[[list[Any]], list[float]]  # the explanations of one question's candidates -> their scores


def calibrated(weight: float) -> Score:
    return lambda found: [weight * one.similarity + (1 - weight) * one.word_score for one in found]


def minmax(weight: float) -> Score:
    """The cosines spread over 0..1, the words divided by the best: means nothing beyond its own list."""

    def scores(found: list[Any]) -> list[float]:
        cosines = [one.cosine or 0.0 for one in found]
        low, high = min(cosines), max(cosines)
        most = max(one.word_score for one in found) or 1.0
        return [
            weight * (cosine - low) / ((high - low) or 1.0) + (1 - weight) * one.word_score / most
            for cosine, one in zip(cosines, found, strict=True)
        ]

    return scores


class Candidates:
    """A question's candidates, none dropped, as the engine explains them."""

    def __init__(self, hits: Any) -> None:
        self.hits = list(hits)

    def ordered(self, score: Score, floor: float) -> list[tuple[float, Any]]:
        if not self.hits:
            return []
        scores = score([hit.explanation for hit in self.hits])
        kept = [
            (value, hit)
            for value, hit in zip(scores, self.hits, strict=True)
            if hit.explanation.similarity >= floor or hit.explanation.word_score >= ranking.DISTINCTIVE
        ]
        return sorted(kept, key=lambda pair: -pair[0])


def variants() -> dict[str, tuple[Score, float]]:
    found: dict[str, tuple[Score, float]] = {
        f"meaning {weight:.2f}": (calibrated(weight), ranking.FLOOR) for weight in WEIGHTS
    }
    found |= {f"min-max {weight:.2f}": (minmax(weight), ranking.FLOOR) for weight in (0.65, 0.7, 0.75, 0.8)}
    found |= {f"floor {floor:.2f}": (calibrated(ranking.MEANING), floor) for floor in FLOORS}
    return found


class Page:
    """Hits in another order; looks like an answer of the engine."""

    def __init__(self, ordered: list[tuple[float, Any]]) -> None:
        self._hits = [type("Hit", (), {"memory": hit.memory, "score": score}) for score, hit in ordered]

    def __iter__(self) -> Any:
        return iter(self._hits[: retrieval.DEPTH])

    def __len__(self) -> int:
        return len(self._hits)

    def __getitem__(self, index: int) -> Any:
        return self._hits[index]


def ways() -> dict[str, retrieval.Ask]:
    last: dict[str, Any] = {}

    def candidates(jay: Any, text: str, options: dict[str, Any]) -> Candidates:
        if last.get("jay") is not jay or last["text"] != text:
            with patch.object(ranking, "FLOOR", -1.0):
                hits = jay.search(text, **{**options, "limit": EVERYTHING, "explain": True})
            last.update(jay=jay, text=text, candidates=Candidates(hits))
        return last["candidates"]

    def way(score: Score, floor: float) -> retrieval.Ask:
        return lambda jay, text, options: Page(candidates(jay, text, options).ordered(score, floor))

    return {name: way(score, floor) for name, (score, floor) in variants().items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sweep", description="Try other constants of the ranking.")
    parser.add_argument("--data", help="folder of the benchmark data")
    parser.add_argument("--only", default="locomo,longmemeval_pool", help="names of sets, separated by commas")
    parser.add_argument("--cache", type=Path, help="file for the vectors; default: in the user's cache")
    options = parser.parse_args(arguments)
    datasets, metrics = tools(folder(options.data))
    embedder = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models), options.cache)
    results: dict[str, Any] = {}
    for name in options.only.split(","):
        asked = retrieval.run(datasets.load(name), embedder, ways())
        results[name] = graded(name, asked, metrics)
        rows = [[way, *(percent(value) for value in one.values())] for way, one in results[name].items()]
        columns = ["", "recall@5", "recall@10", "mrr", "AUROC", "empty: answerable", "unanswerable"]
        report.table(f"{name} (today: meaning {ranking.MEANING}, floor {ranking.FLOOR})", columns, rows)
    report.console.print(f"\nWritten: {report.write('sweep', results, report.machine())}")


def graded(name: str, asked: list[retrieval.Asked], metrics: Any) -> dict[str, Any]:
    wanted = HEADLINE.get(name)
    headline = [one for one in asked if one.query.gold and (wanted is None or one.query.category in wanted)]
    answerable = [one for one in headline if one.query.category != UNANSWERABLE.get(name)]
    unanswerable = [one for one in asked if one.query.category == UNANSWERABLE.get(name)]
    result = {}
    for way in asked[0].answers:
        means = metrics.mean(retrieval.turn_rows(headline, way, metrics))
        tops = [[one.answers[way].top_score for one in some] for some in (answerable, unanswerable)]
        result[way] = {
            **{column: means[column] for column in ("recall@5", "recall@10", "mrr")},
            "auroc": retrieval.auroc(*tops),
            "empty": share_empty(answerable, way),
            "empty_none": share_empty(unanswerable, way),
        }
    return result


def share_empty(asked: list[retrieval.Asked], way: str) -> float | None:
    return sum(not one.answers[way].ranking for one in asked) / len(asked) if asked else None


if __name__ == "__main__":
    main()
