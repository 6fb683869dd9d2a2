"""Fit the judge of what a new memory may outdate, and say how well it judges worlds that it was not fitted on.

    python -m training.hints --data FOLDER            fit, and print the tables
    python -m training.hints --data FOLDER --write    and write the weights into the package

Fitted on the English worlds (training/worlds, training/everyday), each pair alone in a store and all of a world
together, on facts of supersede_fc (MIT), and on sentences of our own. What is printed for a world is by weights fitted
without it. FOLDER holds the benchmark data.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.cached import CachedEmbedder
from bench.data import folder, tools
from numpy.typing import NDArray
from tests.engine.conflict_pairs import LEFT_TO_A_READER, OUTDATED, TRUE_TOGETHER

from scrubjay.embedders.base import Vector
from scrubjay.engine.conflicts import differences, weights
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.conflicts.judge import FAR_BEHIND
from scrubjay.engine.store.neighbours import MOST, NEAR
from scrubjay.text.reading import read
from scrubjay.text.words import rarity_of
from training.folds import keep
from training.pairs import Store, nearest, open_embedder, stores, vectors_of

NEAREST = 8
FOLDS = 34  # one for each world
SHARES = {"same": 2.0, "fact": 0.3, "own": 25.0}  # how often a row is drawn in the fit; all others 1
OUTDATED_FACT = 4.0  # one in thirty of them is
EVERYDAY = 3.0  # the only hand that is not ours: its few rows count more
INNER, SEED = 12, 1
EPOCHS, BATCH = 12, 128
RATE, LAST_RATE, DECAY, DROPOUT = 3e-3, 6e-5, 0.3, 0.3
LEAST_SPREAD = 0.25  # a feature that is hardly ever there does not count for more than others
SURE, CANDIDATE = 0.52, 0.25
FACTS = 700  # memories of each stream of supersede_fc that are looked at
FILE = Path(weights.__file__)
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A pair as the judge sees it."""

    world: str
    new: str
    label: str  # of the pair; "stranger" for two texts of different changes
    alone: bool  # stored by themselves, or all of a world together
    seen: dict[str, float]
    near: bool = True  # among the nearest
    silent: bool = False  # another one, another number, or the same in other words: never named
    unsupported: bool = False  # never named as sure
    everyday: bool = False

    @property
    def outdated(self) -> bool:
        return self.label == "outdates"

    @property
    def share(self) -> float:
        if self.world == "fact" and self.outdated:
            return OUTDATED_FACT
        share = SHARES.get(self.world) or SHARES.get(self.label, 1.0)
        return share * EVERYDAY if self.everyday else share


# --- what is judged --------------------------------------------------------------------------------------------------


def seen(new: str, olds: Sequence[str], held: Counter[str], texts: int, *, by: "Eyes") -> list[dict[str, float]]:
    """What the judge sees of a new text beside some old ones, in a store whose words are `held`."""
    said = read(new)
    rarity = {word: rarity_of(held[word], texts) for word in said.words}
    cosines = [float((by.vectors[old] * by.vectors[new]).sum()) for old in olds]
    profiles = by.attributes.profiles([by.vectors[new], *(by.vectors[old] for old in olds)])
    kinds = same_kinds(profiles[1:], profiles[0])
    return [
        differences.features(read(old), said, cosine=cosine, behind=max(cosines) - cosine, kinds=kind, rarity=rarity)
        for old, cosine, kind in zip(olds, cosines, kinds, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Eyes:
    vectors: dict[str, Vector]
    attributes: Attributes


def of_world(store: Store, eyes: Eyes) -> Iterable[Row]:
    olds = store.olds()
    labels = {(pair.old, pair.new): pair.label for pair in store.pairs}

    def row(old: str, new: str, features: dict[str, float], *, alone: bool, near: bool = True) -> Row:
        return Row(
            world=store.name,
            new=new,
            label=labels.get((old, new), "stranger"),
            alone=alone,
            seen=features,
            near=near,
            silent=is_silent(old, new, eyes),
            unsupported=differences.is_unsupported(old, new, features),
            everyday=store.set == "everyday",
        )

    for place, new in enumerate(store.news()):
        known = list(dict.fromkeys(one for one in (*olds, *store.news()[:place]) if one != new))
        held = Counter(word for one in known for word in read(one).words)
        near = near_enough(nearest(new, known, eyes.vectors, MOST))
        own = [old for old, of in labels if of == new]
        both = list(dict.fromkeys((*near, *own)))
        for old, features in zip(both, seen(new, both, held, len(known), by=eyes), strict=True):
            yield row(old, new, features, alone=False, near=old in near)
        for old in own:
            [features] = seen(new, [old], Counter(read(old).words), 1, by=eyes)
            yield row(old, new, features, alone=True)


def near_enough(found: Sequence[tuple[str, float]]) -> list[str]:
    """Those of the nearest that a store has judged."""
    return [old for old, cosine in found if cosine >= max(NEAR, found[0][1] - FAR_BEHIND)]


def is_silent(old: str, new: str, eyes: Eyes) -> bool:
    """Whether a rule after the judge forbids to name a text."""
    told, said = read(old), read(new)
    cosine = float((eyes.vectors[old] * eyes.vectors[new]).sum())
    ruled_out = any(
        rule(told, said) for rule in (differences.other_one, differences.other_number, differences.other_letter)
    )
    return ruled_out or differences.restates(told, said, cosine)


def of_facts(stream: Any, embedder: CachedEmbedder, attributes: Attributes) -> Iterable[Row]:
    """Facts that are written over by others, and as many that are not."""
    memories = stream.memories[:FACTS]
    texts = {memory.id: memory.text for memory in memories}
    place = {memory.id: number for number, memory in enumerate(memories)}
    eyes = Eyes(vectors_of(list(dict.fromkeys(texts.values())), embedder), attributes)
    outdated = {update.new: set(update.old) for update in stream.updates if update.new in place}
    held = Counter(word for text in texts.values() for word in read(text).words)
    for memory in memories[1::3]:
        olds = [one.text for one in memories[: place[memory.id]] if one.text != memory.text]
        near = [old for old, _ in nearest(memory.text, olds, eyes.vectors, NEAREST)] if olds else []
        gone = {texts[old] for old in outdated.get(memory.id, ()) if old in texts}
        for old, features in zip(near, seen(memory.text, near, held, len(texts), by=eyes) if near else [], strict=True):
            label = "outdates" if old in gone else "compatible"
            yield Row(world="fact", new=memory.text, label=label, alone=False, seen=features)


def of_our_own(embedder: CachedEmbedder, attributes: Attributes) -> Iterable[Row]:
    for label, pairs in (("outdates", OUTDATED + LEFT_TO_A_READER), ("compatible", TRUE_TOGETHER)):
        for old, new in pairs:
            eyes = Eyes(vectors_of([old, new], embedder), attributes)
            [features] = seen(new, [old], Counter(read(old).words), 1, by=eyes)
            yield Row(world="own", new=new, label=label, alone=True, seen=features)


# --- fitting ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fit:
    """A layer of bent sums of the features, and their sum."""

    inner: Numbers
    middle: Numbers
    outer: Numbers
    bias: float

    def likely(self, given: Numbers) -> Numbers:
        return likelihoods(np.tanh(given @ self.inner + self.middle) @ self.outer + self.bias)


def likelihoods(sums: Numbers) -> Numbers:
    found: Numbers = 1 / (1 + np.exp(-np.clip(sums, -30, 30)))
    return found


def fitted(rows: Sequence[Row], names: Sequence[str]) -> Fit:
    """AdamW on batches drawn by what the rows count, features in units of their spread."""
    given, truth = matrix(rows, names), np.array([row.outdated for row in rows], float)
    share = np.array([row.share for row in rows])
    middle, spread = given.mean(axis=0), np.maximum(given.std(axis=0), LEAST_SPREAD)
    given = (given - middle) / spread
    chance = np.random.default_rng(SEED)
    found = [
        chance.uniform(-1, 1, (len(names), INNER)) / np.sqrt(len(names)),
        np.zeros(INNER),
        chance.uniform(-1, 1, INNER) / np.sqrt(INNER),
        np.zeros(1),
    ]
    first, second = [np.zeros_like(one) for one in found], [np.zeros_like(one) for one in found]
    steps = EPOCHS * len(rows) // BATCH
    for step in range(steps):
        rate = RATE + (LAST_RATE - RATE) * step / steps
        drawn = chance.choice(len(rows), BATCH, p=share / share.sum())
        kept = (chance.random((BATCH, INNER)) >= DROPOUT) / (1 - DROPOUT)
        for at, slope in enumerate(slopes(found, given[drawn], truth[drawn], kept)):
            first[at] = 0.9 * first[at] + 0.1 * slope
            second[at] = 0.999 * second[at] + 0.001 * slope**2
            by = first[at] / (1 - 0.9 ** (step + 1)) / (np.sqrt(second[at] / (1 - 0.999 ** (step + 1))) + 1e-8)
            found[at] = found[at] * (1 - rate * DECAY) - rate * by
    inner = found[0] / spread[:, None]
    return Fit(inner.round(3), (found[1] - middle @ inner).round(3), found[2].round(3), round(float(found[3][0]), 3))


def slopes(weights: Sequence[Numbers], given: Numbers, truth: Numbers, kept: Numbers) -> list[Numbers]:
    """Of the mean loss of a batch, by each part of the weights; `kept` says which sums are not dropped."""
    inner, middle, outer, bias = weights
    bent = np.tanh(given @ inner + middle)
    wrong = (likelihoods((bent * kept) @ outer + bias) - truth) / len(truth)
    back = np.outer(wrong, outer) * kept * (1 - bent**2)
    return [given.T @ back, back.sum(axis=0), (bent * kept).T @ wrong, wrong.sum(keepdims=True)]


def matrix(rows: Sequence[Row], names: Sequence[str]) -> Numbers:
    return np.array([[row.seen[name] for name in names] for row in rows], float)


def left_out(rows: Sequence[Row], names: Sequence[str], worlds: Sequence[str]) -> tuple[Numbers, dict[str, Fit]]:
    """Each row's likelihood by weights that were fitted without its world, and those weights."""
    kept: dict[str, Fit] = {}
    likely = np.zeros(len(rows))
    of = np.array([row.world for row in rows])
    for fold in range(FOLDS):
        without = set(worlds[fold::FOLDS])
        judged = np.flatnonzero([world in without for world in of])
        if len(judged):
            fit = fitted([row for row in rows if row.world not in without], names)
            likely[judged] = fit.likely(matrix([rows[at] for at in judged], names))
            kept |= dict.fromkeys(without, fit)
    return likely, kept


# --- what is printed -------------------------------------------------------------------------------------------------


def tell(name: str, rows: Sequence[Row], likely: Numbers) -> None:
    print(f"\n{name}\n  named from   together: right / found       alone: right / found     false alarms  same named")
    for least in (0.25, 0.3, 0.4, 0.5, 0.52, 0.55, 0.6, 0.65, 0.7, 0.8):
        together, alone = figures(rows, likely, least, alone=False), figures(rows, likely, least, alone=True)
        sure = " <- SURE" if least == SURE else " <- CANDIDATE" if least == CANDIDATE else ""
        print(f"  {least:<10} {together[0]:>14} / {together[1]:<14} {alone[0]:>14} / {alone[1]:<14} "
              f"{alone[2]:>12}  {alone[3]:>12}{sure}")  # fmt: skip


def figures(rows: Sequence[Row], likely: Numbers, least: float, *, alone: bool) -> list[str]:
    """Precision, recall, false alarms and repetitions named, with 95 % intervals over new texts."""
    cases: dict[tuple[str, str], list[tuple[float, Row]]] = {}
    for row, score in zip(rows, likely, strict=True):
        if row.alone == alone:
            silent = row.silent or (row.unsupported and least >= SURE)
            cases.setdefault((row.world, row.new), []).append((0.0 if silent else score, row))
    counts = np.array([counted(case, least, alone=alone) for case in cases.values()], float)
    draws = np.random.default_rng(1).integers(0, len(counts), (1000, len(counts)))
    sums = np.vstack([counts.sum(axis=0), counts[draws].sum(axis=1)])
    right, wrong, outdated, alarms, quiet, same, sames = sums.T
    shares = (right / np.maximum(1, right + wrong), right / outdated, alarms / quiet, same / np.maximum(1, sames))
    return [
        f"{100 * one[0]:.0f} ({100 * np.percentile(one[1:], 2.5):.0f}-{100 * np.percentile(one[1:], 97.5):.0f})"
        for one in shares
    ]


def counted(case: Sequence[tuple[float, Row]], least: float, *, alone: bool) -> tuple[float, ...]:
    """Of one new text: named rightly, wrongly, to be named, false alarms of so many, repetitions named of so many."""
    near = [one for one in case if one[1].near]
    if alone:
        named = [row for score, row in case if score >= least]
    else:
        score, best = max(near, key=lambda one: one[0], default=(0.0, None))
        named = [best] if best and score >= least else []
    rows = [row for _, row in case]
    right = sum(row.outdated for row in named)
    same = sum(row.label == "same" for row in named)
    quiet = sum(row.label in {"compatible", "unrelated"} for row in rows)
    alarms = sum(row.label in {"compatible", "unrelated"} for row in named)
    return (
        right, len(named) - right - same, sum(row.outdated for row in rows), alarms, quiet, same,
        sum(row.label == "same" for row in rows),
    )  # fmt: skip


def fitted_on(rows: Sequence[Row], worlds: Sequence[Store]) -> str:
    sets = Counter(store.set for store in worlds)
    counts = Counter("worlds" if row.world not in SHARES else row.world for row in rows)
    return (
        f"Fitted on {sets['worlds']} English worlds of training/worlds and {sets['everyday']} of training/everyday "
        f"({counts['worlds']} rows), on\nsupersede_fc ({counts['fact']}) and on pairs of our own ({counts['own']}; "
        "tests/engine/conflict_pairs.py)."
    )


def write(names: Sequence[str], fit: Fit, fitted_on: str) -> None:
    inner = "".join(f'    "{name}": ({listed(row)}),\n' for name, row in zip(names, fit.inner, strict=True))
    FILE.write_text(
        '"""How much each feature of the judge counts. Written by `python -m training.hints --write`.\n\n'
        f'{fitted_on}\n"""\n\n# fmt: off\n'
        f"INNER = {{\n{inner}}}\nMIDDLE = ({listed(fit.middle)})\nOUTER = ({listed(fit.outer)})\n"
        f"BIAS = {fit.bias:.3f}\n# fmt: on\n"
        f"SURE = {SURE}  # the probability from which on a memory is hinted at, and a conflict is opened\n"
        f"CANDIDATE = {CANDIDATE}  # … and from which on it is left to a reader to judge\n",
        encoding="utf-8",
    )


def listed(numbers: Numbers) -> str:
    return ", ".join(f"{number:.3f}" for number in numbers)


def as_kept(names: Sequence[str], fit: Fit) -> dict[str, Any]:
    inner = {name: listed(row) for name, row in zip(names, fit.inner, strict=True)}
    return {"inner": inner, "middle": listed(fit.middle), "outer": listed(fit.outer), "bias": fit.bias}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the benchmark data")
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    options = parser.parse_args()
    datasets, _ = tools(folder(options.data))
    embedder = open_embedder()
    attributes = Attributes(embedder)
    worlds = [store for store in stores() if store.language == "en"]
    rows: list[Row] = []
    for store in worlds:
        rows += of_world(store, Eyes(vectors_of([*store.olds(), *store.news()], embedder), attributes))
    for stream in datasets.load_streams("supersede_fc"):
        rows += of_facts(stream, embedder, attributes)
    rows += of_our_own(embedder, attributes)
    names = sorted(rows[0].seen)
    likely, kept = left_out(rows, names, [store.name for store in worlds])
    for title, chosen in (("worlds", "worlds"), ("everyday worlds", "everyday")):
        of = {store.name for store in worlds if store.set == chosen}
        at = [number for number, row in enumerate(rows) if row.world in of]
        tell(f"{title}, each left out", [rows[number] for number in at], likely[at])
    fit = fitted(rows, names)
    likely = fit.likely(matrix(rows, names))
    for world in ("fact", "own"):
        for label in ("outdates", "compatible"):
            named = [likely[at] >= SURE for at, row in enumerate(rows) if (row.world, row.label) == (world, label)]
            print(f"{world}, fitted on: {label}, {sum(named)} of {len(named)} named")
    if options.write:
        write(names, fit, fitted_on(rows, worlds))
        of = [store.name for store in worlds if store.set == "everyday"]
        # The judge says nothing in other languages, so their world is in no fit: any weights are without it.
        keep("judge", {name: as_kept(names, kept.get(name, kept[of[0]])) for name in (*of, "languages")})


if __name__ == "__main__":
    main()
