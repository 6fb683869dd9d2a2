"""Categories: fitted to one half of the labelled sentences, measured on the other.

    python -m bench.categories        accuracy and confusion table, without the other sets' data

Both halves (`data_categories/`; 44 and 40 sentences per category) are our own. The test half was written apart, in
other turns of phrase; nothing is fitted to it or chosen by it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import report
from scrubjay.embedders.base import Embedder
from scrubjay.engine.store.categories import DETECTED, SIGNS, Categoriser, CategoryWeights, signs
from scrubjay.engine.store.embedding import Embedding
from scrubjay.values.memory import Category

DATA = Path(__file__).with_name("data_categories")
STEPS = 400
# Chosen by eight-fold cross-validation within the train half. A vector's numbers are small beside the ones and zeros of
# the signs: made larger, they are punished less.
PENALTY = 0.01
VECTOR_SCALE = 6.0


@dataclass(frozen=True, slots=True)
class Labelled:
    category: Category
    text: str


def load(half: str) -> list[Labelled]:
    lines = (DATA / f"{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Labelled(Category(row["category"]), row["text"]) for row in map(json.loads, lines)]


# --- fitting ---------------------------------------------------------------------------------------------------------


def fitted(embedder: Embedder, sentences: Sequence[Labelled] | None = None) -> CategoryWeights:
    """The weights for this embedder, from the train half; the same numbers every time."""
    sentences = load("train") if sentences is None else sentences
    answers = np.array([DETECTED.index(one.category) for one in sentences])
    found = np.array([signs(one.text) for one in sentences])
    vectors = VECTOR_SCALE * np.stack(embedder.embed([embedder.split(one.text)[0] for one in sentences]))
    both, bias = regression(np.hstack([vectors, found]), answers)
    alone, bias_alone = regression(found, answers)
    return CategoryWeights(
        fingerprint=embedder.fingerprint,
        vector=VECTOR_SCALE * both[: -len(SIGNS)],
        signs=both[-len(SIGNS) :],
        bias=bias,
        signs_alone=alone,
        bias_alone=bias_alone,
    )


def regression(features: Any, answers: Any) -> tuple[Any, Any]:
    """Multinomial logistic regression with a penalty on the squares, by accelerated gradient descent.

    The features are centred first, which keeps the steps large; the bias takes the centre back.
    """
    middle = features.mean(axis=0)
    rows = np.hstack([features - middle, np.ones((len(features), 1))])
    wanted = np.eye(len(DETECTED))[answers]
    step = 1 / (0.5 * np.linalg.norm(rows, 2) ** 2 / len(rows) + PENALTY)
    weights = ahead = np.zeros((rows.shape[1], len(DETECTED)))
    for turn in range(1, STEPS + 1):
        slope = rows.T @ (softmax(rows @ ahead) - wanted) / len(rows)
        slope[:-1] += PENALTY * ahead[:-1]
        before, weights = weights, ahead - step * slope
        ahead = weights + (turn - 1) / (turn + 2) * (weights - before)
    return weights[:-1], weights[-1] - middle @ weights[:-1]


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# --- measuring -------------------------------------------------------------------------------------------------------


def run(embedder: Embedder, half: str = "test") -> dict[str, Any]:
    """Accuracy with the shipped weights, by signs alone and as for a foreign model; who is taken for what."""
    sentences = load(half)
    vectors = embedder.embed([embedder.split(one.text)[0] for one in sentences])
    categoriser = Categoriser(Embedding(embedder, wait_seconds=60))
    foreign = Categoriser(Embedding(Foreign(embedder), wait_seconds=60))
    chosen = [categoriser.category(one.text, vector) for one, vector in zip(sentences, vectors, strict=True)]
    return {
        "n": len(sentences),
        "accuracy": accuracy(sentences, chosen),
        "signs_alone": accuracy(sentences, [categoriser.category(one.text, None) for one in sentences]),
        "foreign_model": accuracy(
            sentences, [foreign.category(one.text, vector) for one, vector in zip(sentences, vectors, strict=True)]
        ),
        "confusion": confusion(sentences, chosen),
    }


class Foreign:
    """The same model under another name: the shipped weights are not for it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.fingerprint = f"not {embedder.fingerprint}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)


def accuracy(sentences: Sequence[Labelled], chosen: Sequence[Category]) -> float:
    right = sum(one.category is category for one, category in zip(sentences, chosen, strict=True))
    return right / len(sentences)


def confusion(sentences: Sequence[Labelled], chosen: Sequence[Category]) -> dict[str, dict[str, int]]:
    """How many of each category (outer) were taken for each (inner)."""
    table = {one.value: {other.value: 0 for other in DETECTED} for one in DETECTED}
    for one, category in zip(sentences, chosen, strict=True):
        table[one.category.value][category.value] += 1
    return table


def show(name: str, result: dict[str, Any]) -> None:
    table = result["confusion"]
    rows = [[one, *(number or "" for number in taken.values())] for one, taken in table.items()]
    caption = (
        f"{result['n']} sentences. Accuracy {report.percent(result['accuracy'])}; grammar alone "
        f"{report.percent(result['signs_alone'])}; as for a foreign model {report.percent(result['foreign_model'])}."
    )
    report.table(f"{name}: of each (row), how many were taken for what", ["", *table], rows, caption)


def main() -> None:
    from scrubjay.embedders.catalogue import DEFAULT, find
    from scrubjay.embedders.local import LocalEmbedder
    from scrubjay.settings import load as settings

    show("categories", run(LocalEmbedder(find(DEFAULT), settings().models)))


if __name__ == "__main__":
    main()
