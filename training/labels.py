"""Fits how likely a hit answers its question: the weights of `engine/search/ranking.py`.

    python -m training.labels          the weights, and what they say of worlds that were left out of the fit

The worlds are those of `bench.phrases`: questions to a world's own store and to all worlds in one, questions of other
worlds, and small stores; with and without phrases and wordings. A hit that is the outdated version of an answer counts
neither way. Questions without an answer count twice, as there are few of them here and many in life.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from bench import phrases
from numpy.typing import NDArray

from scrubjay.engine.engine import Engine
from scrubjay.engine.search import ranking
from scrubjay.engine.search.candidates import find
from scrubjay.values.search import Filter, Query

FACTS = ("meaning", "words", "above")
FOLDS = 8
SIZES = (1, 3, 8)  # memories of small stores
UNANSWERED = 2.0  # how much a question without an answer counts
EVERYDAY = 2.0
RIGHT_LINE = 0.35  # fitted probability from which on a hit shall be called strong: it becomes `ranking.STRONG`
RIDGE = 1.0
Numbers = NDArray[np.float64]


@dataclass
class Row:
    """One hit of one question."""

    facts: list[float]
    answers: bool
    world: str
    question: int
    answerable: bool
    reworded: bool
    weight: float


def hits_of(jay: Engine, question: phrases.Question, *, reworded: bool) -> tuple[list[str], Numbers]:
    """The best hits and what the program weighs of each."""
    query = Query(text=question.text, also=question.wordings if reworded else ())
    ranked = find(jay, query, jay.audience(Filter()), jay.now()).candidates
    facts = ranking.facts_about(ranked)
    columns = np.stack([np.asarray(facts[name], np.float64) for name in FACTS], axis=1)
    best = [*ranked.order[:6]]
    return [ranked.memories[row] for row in best], columns[best]


def collect(worlds: Sequence[phrases.World]) -> list[Row]:
    rows: list[Row] = []
    draw = Random(3)  # noqa: S311 -- which questions are asked is no secret
    for with_phrases in (False, True):
        with phrases.measuring() as jay:
            every = jay.bound_to(spaces=("every-world",), only=True)
            together: dict[str, str] = {}
            for world in worlds:
                alone = jay.bound_to(spaces=(world.name.replace("_", "-"),), only=True)
                known = phrases.fill(alone, world, with_phrases=with_phrases)
                others = [other for other in worlds if other is not world and other.everyday is world.everyday]
                strange = [one for other in others for one in other.questions if one.gold]
                for one in world.questions:
                    rows += rows_of(alone, known, one, world)
                for one in draw.sample(strange, min(phrases.STRANGERS, len(strange))):
                    rows += rows_of(alone, known, one, world, stranger=True)
                for size in SIZES:
                    rows += list(small(jay, world, size, draw, with_phrases=with_phrases))
                together |= phrases.fill(every, world, with_phrases=with_phrases)
            for world in worlds:
                for one in world.questions:
                    rows += rows_of(every, together, one, world)
    return rows


def small(jay: Engine, world: phrases.World, size: int, draw: Random, *, with_phrases: bool) -> Iterator[Row]:
    """A store of a few memories, one of which answers a question."""
    asked = draw.choice([one for one in world.questions if one.gold & {text.id for text in world.texts}])
    answer = next(text for text in world.texts if text.id in asked.gold)
    rest = draw.sample([text for text in world.texts if text.id not in asked.gold], size - 1)
    some = replace(world, texts=(*rest, answer))
    place = jay.bound_to(spaces=(f"{world.name.replace('_', '-')}-{size}",), only=True)
    known = phrases.fill(place, some, with_phrases=with_phrases)
    here = {text.id for text in some.texts}
    yield from rows_of(place, known, asked, world)
    others = [one for one in world.questions if not one.gold & here]
    for one in draw.sample(others, min(6, len(others))):
        yield from rows_of(place, known, one, world)


def rows_of(
    jay: Engine, known: dict[str, str], question: phrases.Question, world: phrases.World, *, stranger: bool = False
) -> Iterator[Row]:
    gold = set() if stranger else {f"{world.name}/{one}" for one in question.gold}
    stale = set() if stranger else {f"{world.name}/{one}" for one in question.stale} - gold
    for reworded in (False, True):
        ids, facts = hits_of(jay, question, reworded=reworded)
        names = [known[one] for one in ids]
        answerable = bool(gold & set(known.values()))
        for name, some in zip(names, facts.tolist(), strict=True):
            if name not in stale:
                weight = (EVERYDAY if world.everyday else 1.0) * (1.0 if answerable else UNANSWERED)
                yield Row(some, name in gold, world.name, hash(question.text), answerable, reworded, weight)


def fitted(x: Numbers, y: Numbers, weight: Numbers) -> Numbers:
    """Logistic regression; the bias first."""
    middle, spread = x.mean(0), x.std(0) + 1e-9
    z = np.c_[np.ones(len(x)), (x - middle) / spread]
    beta, ridge = np.zeros(z.shape[1]), np.diag([1e-6, *[RIDGE] * x.shape[1]])
    for _ in range(40):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        slope = z.T @ (weight * (p - y)) + ridge @ beta
        beta = beta - np.linalg.solve((z * (weight * p * (1 - p))[:, None]).T @ z + ridge, slope)
    slopes = beta[1:] / spread
    return np.r_[beta[0] - slopes @ middle, slopes]


def shown(beta: Numbers) -> dict[str, float]:
    """As the program has them: with the line between weak and strong at one half."""
    shift = -math.log(RIGHT_LINE / (1 - RIGHT_LINE))
    return {"bias": round(float(beta[0]) + shift, 2)} | {
        name: round(float(value), 2) for name, value in zip(FACTS, beta[1:], strict=True)
    }


def main() -> None:
    rows = collect(phrases.load_worlds())
    names = sorted({row.world for row in rows})
    for title, reworded in (("BARE", False), ("REWORDED", True)):
        some = [row for row in rows if row.reworded is reworded]
        x = np.array([row.facts for row in some])
        y = np.array([float(row.answers) for row in some])
        weight = np.array([row.weight for row in some])
        fold = np.array([names.index(row.world) % FOLDS for row in some])
        left_out = np.zeros(len(some))
        for one in range(FOLDS):
            beta = fitted(x[fold != one], y[fold != one], weight[fold != one])
            left_out[fold == one] = x[fold == one] @ beta[1:] + beta[0]
        print(f"{title} = {shown(fitted(x, y, weight))}")
        print(f"  worlds left out: {report(some, y, left_out)}")


def report(rows: Sequence[Row], y: Numbers, logits: Numbers) -> dict[str, Any]:
    line = math.log(RIGHT_LINE / (1 - RIGHT_LINE))
    own = np.array([row.answerable for row in rows])
    strong = own & (logits >= line)
    return {
        "hits": len(rows),
        "strong: precision": round(100 * float(y[strong].mean()), 1),
        "strong: recall of answers found": round(100 * float(y[strong].sum() / y.sum()), 1),
        "answer against another hit": round(
            float(phrases.area(list(logits[y == 1][::7]), list(logits[own & (y == 0)][::29])) or 0), 1
        ),
    }


if __name__ == "__main__":
    main()
