"""Fits what tells an answer from what is merely nearest: the weights of `engine/search/verdict.py`.

    python -m training.verdict            figures, each world left out in turn, and the weights
    python -m training.verdict --write    writes the background too
    python -m training.verdict --keep     keeps the weights without each everyday world, for bench/everyday.py

Answerable are a world's own questions, strangers those of other worlds. Worlds of one hand are also judged by weights
fitted on the other hand's only (*crossed*). Stores have 1, 2, 5, 20 or all memories of a world.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.cached import CachedEmbedder
from numpy.typing import NDArray

from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.search import verdict
from scrubjay.settings import load
from scrubjay.stores.tables.stems import counted_stems, stems
from scrubjay.values.vectors import interpolate
from scrubjay.values.words import query_words, weights_of
from training import worlds
from training.folds import keep

EVERYDAY = Path(__file__).parent / "everyday"
FILE = Path(verdict.__file__).parent / "background.npz"
MODELS = ("arctic-embed-s", "multilingual-e5-small")
OF_EACH = 2  # texts of a world that go into the background
SIZES = (1, 2, 5, 20, None)
STRANGERS = {"everyday": 8, "training": 2}  # of each other world
LEAST_MISSED, MOST_GIVEN = 0.01, 0.10
Numbers = NDArray[np.float64]


@dataclass
class Store:
    """One world: its memories, and what all questions of all worlds find in it."""

    name: str
    hand: str
    english: bool
    ids: list[str]
    texts: list[str]
    questions: list[tuple[str, tuple[str, ...]]]
    vectors: dict[str, Numbers]
    words: Numbers | None = None  # question x memory
    held: list[list[set[str]]] | None = None


def everyday() -> list[Store]:
    found = []
    for path in sorted(EVERYDAY.glob("*.json")):
        world = json.loads(path.read_text(encoding="utf-8"))
        found.append(
            Store(
                name=world["world"],
                hand="everyday",
                english=world["world"] != "languages",
                ids=[memory["id"] for memory in world["memories"]],
                texts=[memory["text"] for memory in world["memories"]],
                questions=[(one["text"], tuple(one["gold"])) for one in world["questions"]],
                vectors={},
            )
        )
    return found


def trained() -> list[Store]:
    return [
        Store(
            name=world.name,
            hand="training",
            english=world.language == "en",
            ids=[id for id, _ in world.texts()],
            texts=[text for _, text in world.texts()],
            questions=[(one.text, one.gold) for one in world.questions],
            vectors={},
        )
        for world in worlds.load()
    ]


class Questions:
    """All questions of all worlds, in one order."""

    def __init__(self, stores: Sequence[Store], embedders: dict[str, CachedEmbedder]) -> None:
        self.home = [number for number, store in enumerate(stores) for _ in store.questions]
        self.text = [text for store in stores for text, _ in store.questions]
        self.gold = [gold for store in stores for _, gold in store.questions]
        self.rare = [verdict.rare_words(text) for text in self.text]
        self.vectors = {
            name: np.stack([embedder.embed_query(text) for text in self.text]) for name, embedder in embedders.items()
        }


def index(store: Store, questions: Questions, wanted: Collection[int] | None = None) -> None:
    """Word scores as a store computes them, and the rare words that each memory holds; of the wanted questions."""
    counted = [counted_stems(text) for text in store.texts]
    lengths = [sum(one.values()) for one in counted]
    average = sum(lengths) / len(lengths)
    store.words = np.zeros((len(questions.text), len(counted)))
    store.held = []
    for number, text in enumerate(questions.text):
        if wanted is not None and number not in wanted:
            store.held.append([])
            continue
        asked = stems(query_words(text))
        weights = weights_of({stem: sum(stem in one for one in counted) for stem in asked.values()}, len(counted))
        best = sum(weights.values()) or 1.0
        rare = set(stems(questions.rare[number]).values())
        held = []
        for place, (one, length) in enumerate(zip(counted, lengths, strict=True)):
            damping = 1.2 * (0.25 + 0.75 * length / average)
            score = sum(
                weight * one[stem] * 2.2 / (one[stem] + damping) for stem, weight in weights.items() if one[stem]
            )
            store.words[number, place] = min(1.0, score / best)
            held.append(rare & one.keys())
        store.held.append(held)


def background(stores: Sequence[Store], without: int | None = None) -> dict[str, Numbers]:
    """A few texts of every training world."""
    draw = np.random.default_rng(5)
    chosen = [
        (number, draw.choice(len(store.ids), OF_EACH, replace=False))
        for number, store in enumerate(stores)
        if store.hand == "training"
    ]
    return {
        model: np.concatenate([stores[number].vectors[model][rows] for number, rows in chosen if number != without])
        for model in MODELS
    }


def seen(
    store: Store, question: int, rows: Numbers, questions: Questions, behind: dict[str, Numbers]
) -> dict[str, float]:
    """What the product sees."""
    found: dict[str, float] = {"candidates": min(2.3, math.log10(len(rows) + 1))}
    for model in MODELS:
        asked = questions.vectors[model][question]
        best = np.sort(store.vectors[model][rows] @ asked)[::-1][:10]
        near = np.sort(behind[model] @ asked)
        found |= {f"{model} best": best[0], f"{model} ten": best.mean()}
        found |= {f"{model} near": near[-5:].mean(), f"{model} common": near.mean()}
    found["similarity"] = interpolate(float(found[f"{MODELS[0]} best"]), find(MODELS[0]).calibration)
    assert store.words is not None
    assert store.held is not None
    found["words"] = float(store.words[question][rows].max())
    rare = set(stems(questions.rare[question]).values())
    known = set().union(*(store.held[question][row] for row in rows))
    found |= {"known": min(2, len(known)), "unknown": min(2, len(rare - known))}
    return found


@dataclass
class Row:
    seen: dict[str, float]
    answerable: bool
    store: int
    size: int | None


def rows_of(stores: Sequence[Store], questions: Questions) -> list[Row]:
    draw = np.random.default_rng(1)
    found = []
    for number, store in enumerate(stores):
        behind = background(stores, without=number)
        own = [q for q, home in enumerate(questions.home) if home == number and questions.gold[q]]
        others = [other for other, one in enumerate(stores) if other != number and one.hand == store.hand]
        foreign = [
            q
            for other in others
            for q in draw.choice(
                [q for q, home in enumerate(questions.home) if home == other and questions.gold[q]],
                STRANGERS[store.hand],
                replace=False,
            )
        ]
        for q in (*own, *foreign):
            answers = [store.ids.index(questions.gold[q][0])] if questions.home[q] == number else []
            rest = [row for row in range(len(store.ids)) if row not in answers]
            for size in SIZES:
                some = rest if size is None else list(draw.choice(rest, size - len(answers), replace=False))
                rows = np.array([*answers, *some])
                found.append(Row(seen(store, q, rows, questions, behind), bool(answers), number, size))
    return found


NAMES = ("words", "known", "unknown")
SETS: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("similarity", *NAMES),
    **{
        models: (
            *(f"{model} {what}" for model in models for what in ("best", "ten", "near", "common")),
            *NAMES,
            "candidates",
        )
        for models in ((MODELS[0],), (MODELS[1],), MODELS)
    },
}


def fitted(x: Numbers, y: Numbers, share: Numbers) -> Numbers:
    """Logistic regression, both kinds worth the same; bias first."""
    weight = np.where(y == 1, share / share[y == 1].sum(), share / share[y == 0].sum()) * len(y) / 2
    mean, spread = x.mean(0), x.std(0) + 1e-9
    z = np.c_[np.ones(len(x)), (x - mean) / spread]
    beta, ridge = np.zeros(z.shape[1]), np.diag([1e-6, *[3.0] * x.shape[1]])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(z @ beta, -30, 30)))
        step = np.linalg.solve(
            (z * (weight * p * (1 - p))[:, None]).T @ z + ridge, z.T @ (weight * (p - y)) + ridge @ beta
        )
        beta = beta - step
    slopes = beta[1:] / spread
    return np.r_[beta[0] - slopes @ mean, slopes]


def scaled(beta: Numbers, logits: Numbers, y: Numbers) -> Numbers:
    """So that one answerable question in a hundred is `none`, and one stranger in ten `strong`."""
    low, high = np.quantile(logits[y == 1], LEAST_MISSED), np.quantile(logits[y == 0], 1 - MOST_GIVEN)
    bottom, top = (math.log(at / (1 - at)) for at in (verdict.WEAK, verdict.STRONG))
    factor = (top - bottom) / max(high - low, 1e-6)
    result: Numbers = factor * beta
    result[0] += bottom - factor * low
    return result


def auroc(yes: Numbers, no: Numbers) -> float:
    return float((yes[:, None] > no).mean() + (yes[:, None] == no).mean() / 2)


def main() -> None:
    stores = [*everyday(), *trained()]
    models = load().models
    embedders = {name: CachedEmbedder(LocalEmbedder(find(name), models)) for name in MODELS}
    questions = Questions(stores, embedders)
    for store in stores:
        store.vectors = {
            name: np.stack([embedder.embed(embedder.split(text)[:1])[0] for text in store.texts])
            for name, embedder in embedders.items()
        }
        index(store, questions)
    rows = rows_of(stores, questions)
    home = np.array([row.store for row in rows])
    y = np.array([float(row.answerable) for row in rows])
    whole = np.array([row.size is None for row in rows])
    hand = np.array([stores[row.store].hand == "everyday" for row in rows])
    english = np.array([stores[row.store].english for row in rows])
    share = np.where(whole, 2.0, 0.5) * np.where(hand, 3.0, 1.0)
    print("WEIGHTS = {")
    figures = []
    kept: dict[str, dict[str, dict[str, float]]] = {}
    for names, columns in SETS.items():
        x = np.array([[row.seen[name] for name in columns] for row in rows])

        def made(some: Any, x: Numbers = x) -> Numbers:
            beta = fitted(x[some], y[some], share[some])
            at = some & whole & english
            return scaled(beta, x[at] @ beta[1:] + beta[0], y[at])

        left_out, crossed = np.zeros(len(rows)), np.zeros(len(rows))
        for number in range(len(stores)):
            beta = made(home != number)
            left_out[home == number] = x[home == number] @ beta[1:] + beta[0]
            if stores[number].hand == "everyday":
                kept.setdefault(stores[number].name, {})[" ".join(names)] = shown(columns, beta)
        for some in (hand, ~hand):
            beta = made(some)
            crossed[~some] = x[~some] @ beta[1:] + beta[0]
        beta = made(np.ones(len(rows), bool))
        print(f"    {names}: {{")
        print("".join(f'        "{name}": {value:.3f},\n' for name, value in shown(columns, beta).items()) + "    },")
        for label, some in (
            ("everyday, English", hand & english),
            ("everyday, languages", hand & ~english),
            ("training, English", ~hand & english),
            ("training, others", ~hand & ~english),
        ):
            for size in SIZES:
                at = some & np.array([row.size == size for row in rows])
                yes, no = at & (y == 1), at & (y == 0)
                low, high = (math.log(line / (1 - line)) for line in (verdict.WEAK, verdict.STRONG))
                figures.append(
                    f"| {' + '.join(names) or 'any model'} | {label} | {size or 'all'} | "
                    f"{100 * auroc(left_out[yes], left_out[no]):.1f} | {100 * auroc(crossed[yes], crossed[no]):.1f} | "
                    f"{100 * (left_out[yes] < low).mean():.1f} | {100 * (left_out[no] >= low).mean():.1f} | "
                    f"{100 * (left_out[yes] >= high).mean():.1f} | {100 * (left_out[no] >= high).mean():.1f} |"
                )
    print("}\n\n| models | worlds | memories | AUROC | crossed ", end="")
    print("| answerable none | strangers given | answerable strong | strangers strong |")
    print("|---|---|---|---|---|---|---|---|---|")
    print("\n".join(figures))
    if "--write" in sys.argv:
        vectors = {embedders[name].fingerprint: np.rint(127 * vector) for name, vector in background(stores).items()}
        np.savez_compressed(FILE, allow_pickle=False, **{name: one.astype(np.int8) for name, one in vectors.items()})
        print(f"Written: {FILE}", file=sys.stderr)
    if "--keep" in sys.argv:
        keep("verdict", kept)


def shown(columns: Sequence[str], beta: Numbers) -> dict[str, float]:
    return {name: round(float(weight), 3) for name, weight in zip(("bias", *columns), beta, strict=True)}


if __name__ == "__main__":
    main()
