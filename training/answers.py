"""How well what was found is told from an answer, and in which order it comes: one table for every idea.

    python -m training.answers        today's order and verdict, and what each line between weak and none would do

Every world is one store, as in everyday use: its own questions, those of other worlds (strangers, every fifth) and
near-topic questions that nothing there answers. All of it offline: cosines, words and freshness as a search has them.
What is fitted is fitted on the other worlds. A reader of answers (`training.read`) is judged by the same table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from bench.cached import CachedEmbedder

from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.search import ranking
from scrubjay.engine.search import verdict as shipped
from scrubjay.settings import load
from scrubjay.values.vectors import interpolated
from training import questions as asked
from training import verdict, worlds
from training.verdict import MODELS, Numbers, Store

FIRST = 5  # how many of what was found a reader looks at
EVERY = 5  # of the answerable questions of other worlds are strangers


@dataclass
class Found:
    """What one question finds in one world, best first."""

    store: int
    question: int  # number in Questions
    rows: list[int]  # memories, best first
    scores: Numbers  # theirs
    gold: set[int]
    also: set[int]  # say the same, or said it before
    kind: str = "own"  # own, near (nothing answers it) or stranger
    seen: dict[str, float] = field(default_factory=dict)  # what the verdict sees


def stores() -> tuple[list[Store], list[dict[str, set[str]]]]:
    """All worlds with all their questions, and for each what says the same as a memory."""
    everyday = verdict.everyday()
    same: list[dict[str, set[str]]] = []
    for store in everyday:
        world = json.loads((verdict.EVERYDAY / f"{store.name}.json").read_text(encoding="utf-8"))
        same.append(
            {id: set(one.get("stale", ())) for one in world["questions"] for id in one["gold"] if one.get("stale")}
        )
    ours = verdict.trained()
    for store, world in zip(ours, worlds.load(), strict=True):
        store.questions = [(one.text, one.gold) for one in asked.load(world)]
        same.append(asked.answers_too(world))
    return everyday + ours, same


def prepared() -> tuple[list[Store], verdict.Questions, list[Found]]:
    """Everything that is looked at, with vectors and words."""
    known, same = stores()
    models = load().models
    embedders = {name: CachedEmbedder(LocalEmbedder(find(name), models)) for name in MODELS}
    asked_all = verdict.Questions(known, embedders)
    for store in known:
        store.vectors = {
            name: np.stack([embedder.embed(embedder.split(text)[:1])[0] for text in store.texts])
            for name, embedder in embedders.items()
        }
    found = []
    for number, store in enumerate(known):
        behind = verdict.background(known, without=number)
        strangers = {
            q
            for other, one in enumerate(known)
            if other != number and one.hand == store.hand
            for q in [q for q, home in enumerate(asked_all.home) if home == other and asked_all.gold[q]][
                :: EVERY if store.hand == "everyday" else 10 * EVERY
            ]
        }
        wanted = [q for q, home in enumerate(asked_all.home) if home == number or q in strangers]
        verdict.index(store, asked_all, set(wanted))
        for q in wanted:
            one = searched(store, number, q, asked_all, same[number])
            one.kind = "stranger" if q in strangers else "own" if one.gold else "near"
            one.seen = verdict.seen(store, q, np.arange(len(store.ids)), asked_all, behind)
            found.append(one)
    return known, asked_all, found


def searched(store: Store, number: int, q: int, questions: verdict.Questions, same: dict[str, set[str]]) -> Found:
    """The order of `ranking.fuse`, with notes and the freshest as in its second look."""
    similar = calibrated(store, q, questions, MODELS[0])
    if not store.english:  # the store has texts in other languages, so it uses the second model, too
        similar = similar + ranking.FOREIGN * (calibrated(store, q, questions, MODELS[1]) - similar)
    assert store.words is not None
    lengths = np.array([len(text) for text in store.texts])
    meaning = ranking.MEANING + ranking.NOTE * np.maximum(0, 1 - lengths / ranking.LONG)
    scores = meaning * similar + (1 - meaning) * store.words[q]
    scores = scores * (1 + ranking.RECENT * np.arange(len(scores)) / len(scores))
    rows = [int(row) for row in np.argsort(-scores, kind="stable")]
    home = questions.home[q] == number
    gold = {store.ids.index(id) for id in questions.gold[q]} if home else set()
    also = {store.ids.index(id) for row in gold for id in same.get(store.ids[row], ())} - gold
    return Found(number, q, rows, scores[rows], gold, also)


def calibrated(store: Store, q: int, questions: verdict.Questions, model: str) -> Numbers:
    cosines: Numbers = store.vectors[model] @ questions.vectors[model][q]
    return np.asarray(interpolated(cosines, find(model).calibration))


# --- figures ---------------------------------------------------------------------------------------------------------


def rank_of(one: Found, order: Sequence[int]) -> float:
    return next((1 / place for place, row in enumerate(order, 1) if row in one.gold), 0.0)


def given_at(yes: Numbers, no: Numbers, missed: float) -> float:
    """The share of strangers that are given something if this share of answerable questions is missed."""
    return float((no >= np.quantile(yes, missed)).mean())


def curve(yes: Numbers, no: Numbers) -> str:
    return " ".join(f"{100 * given_at(yes, no, at):5.1f}" for at in (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1))


def report(label: str, found: Sequence[Found], scores: Numbers, orders: Sequence[Sequence[int]]) -> None:
    """One line: AUROC of strangers and near topics, strangers given at shares missed, order."""
    kind = np.array([one.kind for one in found])
    yes, no, near = (scores[kind == name] for name in ("own", "stranger", "near"))
    own = [(one, order) for one, order in zip(found, orders, strict=True) if one.kind == "own"]
    first = np.mean([order[0] in one.gold for one, order in own])
    third = np.mean([len(one.gold & set(order[:3])) / min(3, len(one.gold)) for one, order in own])
    ranks = np.mean([rank_of(one, order[:10]) for one, order in own])
    print(
        f"{label:<44} {100 * verdict.auroc(yes, no):5.1f} {100 * verdict.auroc(yes, near):5.1f} | {curve(yes, no)} | "
        f"{100 * first:5.1f} {100 * third:5.1f} {100 * ranks:5.1f}"
    )


HEADER = f"{'':<44} AUROC  near | given at 0.5, 1, 1.5, 2, 3, 5, 10 % missed | r@1 r@3 MRR"


def left_out(found: Sequence[Found], columns: Numbers) -> Numbers:
    """Logits of a logistic regression on these columns, each world judged by weights of the others."""
    home = np.array([one.store for one in found])
    answerable = np.array([float(one.kind == "own") for one in found])
    usable = np.array([one.kind != "near" for one in found])
    logits = np.zeros(len(found))
    for world in set(home):
        some = usable & (home != world)
        beta = verdict.fitted(columns[some], answerable[some], np.ones(int(some.sum())))
        logits[home == world] = columns[home == world] @ beta[1:] + beta[0]
    return logits


def today(known: Sequence[Store], found: Sequence[Found]) -> Numbers:
    """Today's verdict, its weights fitted on other worlds: by the first model in English, else by the second."""
    logits = np.zeros(len(found))
    english = np.array([known[one.store].english for one in found])
    for model, some in ((MODELS[0], english), (MODELS[1], ~english)):
        names = verdict.SETS[(model,)]
        x = np.array([[one.seen[name] for name in names] for one in found])
        logits[some] = left_out(found, x)[some]
    return logits


GROUPS = (
    ("everyday", lambda store: store.hand == "everyday"),
    ("everyday in English", lambda store: store.hand == "everyday" and store.english),
    ("ours in English", lambda store: store.hand == "training" and store.english),
    ("ours in others", lambda store: store.hand == "training" and not store.english),
)


def tables(known: Sequence[Store], found: Sequence[Found], lines: dict[str, tuple[Numbers, list[list[int]]]]) -> None:
    for group, belongs in GROUPS:
        at = [number for number, one in enumerate(found) if belongs(known[one.store])]
        if not at:
            continue
        print(f"\n{group}\n{HEADER}")
        for label, (scores, orders) in lines.items():
            report(label, [found[n] for n in at], scores[at], [orders[n] for n in at])


LINES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.12, 0.16, 0.2, 0.3, 0.4, 0.5)


def likelihoods(known: Sequence[Store], found: Sequence[Found]) -> Numbers:
    """What the product says, by the weights it ships: by the first model in English, else by the second."""
    likely = []
    for one in found:
        weights = shipped.WEIGHTS[(MODELS[0] if known[one.store].english else MODELS[1],)]
        logit = weights["bias"] + sum(value * one.seen[name] for name, value in weights.items() if name != "bias")
        likely.append(1 / (1 + math.exp(-logit)))
    return np.array(likely)


def lines(known: Sequence[Store], questions: verdict.Questions, found: Sequence[Found]) -> None:
    """What each line between weak and none would miss and give. Of ours, only questions that nothing was fitted on."""
    fitted_on = {text for world in worlds.load() for text in (one.text for one in world.questions)}
    new = [one for one in found if questions.text[one.question] not in fitted_on]
    likely = likelihoods(known, new)
    print("\n| line | " + " | ".join(f"{group}: missed | given" for group, _ in GROUPS[1:]) + " |")
    print("|" + "---|" * (2 * len(GROUPS) - 1))
    for line in LINES:
        cells = []
        for _, belongs in GROUPS[1:]:
            at = [n for n, one in enumerate(new) if belongs(known[one.store])]
            for kind, said in (("own", likely < line), ("stranger", likely >= line)):
                cells.append(f"{100 * np.mean([said[n] for n in at if new[n].kind == kind]):.1f}")
        print(f"| {line} | " + " | ".join(cells) + " |")


def beside(known: Sequence[Store], found: Sequence[Found], logits: Numbers) -> None:
    """A reader's logits of the first few of each question, alone and beside today's verdict and order."""
    now = today(known, found)
    first = logits.shape[1]
    best = logits.max(1)
    lines = {"today": (now, [one.rows for one in found])}

    def reordered(weight: float) -> list[list[int]]:
        orders = []
        for one, read in zip(found, logits, strict=True):
            scores = one.scores[:first] + weight * read
            orders.append([one.rows[at] for at in np.argsort(-scores, kind="stable")] + one.rows[first:])
        return orders

    lines["reader alone"] = (best, reordered(100.0))
    lines["both, fitted"] = (left_out(found, np.c_[now, best]), reordered(0.02))
    lines["both, first and best"] = (left_out(found, np.c_[now, best, logits[:, 0]]), reordered(0.05))
    ordered = -np.sort(-logits, 1)
    lines["both, first, best and second"] = (
        left_out(found, np.c_[now, best, logits[:, 0], ordered[:, 1]]),
        reordered(0.1),
    )
    tables(known, found, lines)


def main() -> None:
    known, questions, found = prepared()
    logits = today(known, found)
    tables(known, found, {"today": (logits, [one.rows for one in found])})
    lines(known, questions, found)


if __name__ == "__main__":
    main()
