"""Fit the judge of conflicts: which of the nearest earlier memories does a new one outdate?

    python -m bench.conflicts           fit, grade, print the table
    python -m bench.conflicts --write   and write it into the package

Fitted on supersede_lme and supersede_fc (MIT) and on sentences of our own; supersede_beam only judges. supersede_lme is
small, so each of its streams is graded by weights that were fitted without it. Pairs are the twenty nearest earlier
memories of each new one, as the engine finds them. Chats repeat: a pair that is labelled in one stream and stands
unlabelled in another is left out there.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.engine.conflict_pairs import OUTDATED, TRUE_TOGETHER

from bench import report
from bench.cached import CachedEmbedder, say
from bench.data import folder, tools
from bench.report import percent
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.conflicts import grammar, judge, weights
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.store import neighbours
from scrubjay.settings import load
from scrubjay.values.words import rarity_of

Numbers = NDArray[np.float64]

NAMES = [entry.name for entry in fields(judge.Features)]
FITTED = {"supersede_lme": 1.0, "supersede_fc": 1.0, "own": 2.0}  # what each set counts in the fit
UNLABELLED = 0.1  # a candidate that nobody looked at counts less than one that somebody passed over
RIDGE = 0.01  # keeps weights small where the data says little
EVERY = 5  # of the memories that nothing is said about, one in so many


@dataclass(slots=True)
class Pairs:
    """One set's candidates, a row each."""

    features: Numbers
    outdated: NDArray[np.bool_]
    labelled: NDArray[np.bool_]  # the data says something about the new memory
    stream: NDArray[np.int64]
    new: NDArray[np.int64]
    talk: NDArray[np.bool_]  # one of the texts has several sentences
    updates: int  # to be found, among the candidates or not

    def without(self, stream: int) -> Pairs:
        kept = self.stream != stream
        return Pairs(
            self.features[kept], self.outdated[kept], self.labelled[kept], self.stream[kept], self.new[kept],
            self.talk[kept], 0,
        )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.conflicts", description="Fit the judge of conflicts.")
    parser.add_argument("--data", help="folder of the benchmark data")
    parser.add_argument("--cache", type=Path, help="file for the vectors; default: in the user's cache")
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    options = parser.parse_args(arguments)
    datasets, metrics = tools(folder(options.data))
    embedder = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models), options.cache)
    sets = {name: gathered(datasets.load_streams(name), embedder, name) for name in datasets.SUPERSEDE}
    sets["own"] = own(embedder)
    weights = fitted(sets)
    report.table("weights", ["feature", "fitted", "in force"], [
        [name, f"{weight:.2f}", f"{today:.2f}"]
        for name, weight, today in zip([*NAMES, "(bias)"], weights, [*in_force()], strict=True)
    ])  # fmt: skip
    rows = []
    for label, chosen in (("fitted", weights), ("in force", np.array([*in_force()]))):
        for name, pairs in sets.items():
            scores = pairs.features @ chosen[:-1] + chosen[-1]
            if label == "fitted" and name == "supersede_lme":
                scores = left_out(sets, name)
            rows.append([label, name, *graded(pairs, scores, metrics)])
    columns = ["weights", "set", "updates", "@1", "@3", "@5", "AP", "P at R 0.5", "flags", "precision", "recall",
               "flags, all memories"]  # fmt: skip
    report.table("new memories that the data speaks of", columns, rows, "supersede_lme, fitted: leave one stream out.")
    if options.write:
        write(weights)


def in_force() -> Sequence[float]:
    return [*(weights.WEIGHTS[name] for name in NAMES), weights.BIAS]


# --- candidates ------------------------------------------------------------------------------------------------------


def gathered(streams: Sequence[Any], embedder: CachedEmbedder, name: str) -> Pairs:
    embedder.fill((memory.text for stream in streams for memory in stream.memories), label=name)
    attributes = Attributes(embedder)
    text_of = {(stream.id, memory.id): memory.text for stream in streams for memory in stream.memories}
    true = {
        (text_of[stream.id, old], text_of[stream.id, update.new])
        for stream in streams
        for update in stream.updates
        for old in update.old
    }
    rows: list[tuple[Any, ...]] = []
    for number, stream in enumerate(streams):
        say(f"{name}: {number + 1} of {len(streams)} streams")
        rows += stream_rows(number, stream, embedder, attributes, true)
    say("")
    updates = sum(len(update.old) for stream in streams for update in stream.updates)
    return as_pairs(rows, updates)


def stream_rows(
    number: int, stream: Any, embedder: CachedEmbedder, attributes: Attributes, true: set[tuple[str, str]]
) -> list[tuple[Any, ...]]:
    texts = [memory.text for memory in stream.memories]
    vectors = np.stack(embedder.embed([embedder.split(text)[0] for text in texts]))
    profiles = attributes.profiles(list(vectors))
    said = [grammar.statements(text) for text in texts]
    place = {memory.id: index for index, memory in enumerate(stream.memories)}
    outdated, kept = defaultdict(set), defaultdict(set)
    for update in stream.updates:
        outdated[place[update.new]] |= {place[old] for old in update.old}
    for new, other in stream.non_updates:
        kept[place[new]].add(place[other])
    rows: list[tuple[Any, ...]] = []
    seen: Counter[str] = Counter()
    for new in range(1, len(texts)):
        seen.update(word for sentence in {*said[new - 1]} for word in sentence.words)
        labelled = new in outdated or new in kept
        if not labelled and (new + number) % EVERY:
            continue
        cosines = np.vecdot(vectors[:new], vectors[new])
        nearest = [one for one in np.argsort(-cosines)[: neighbours.MOST] if cosines[one] >= neighbours.NEAR]
        kinds = same_kinds(profiles[nearest], profiles[new])
        for old, (same_kind, exclusive) in zip(nearest, kinds, strict=True):
            is_true = old in outdated.get(new, ())
            if texts[old] == texts[new] or (not is_true and (texts[old], texts[new]) in true):
                continue
            best = judge.at_best(float(cosines[old]), same_kind, exclusive)
            rarity = {word: rarity_of(seen[word], new) for sentence in said[new] for word in sentence.words}
            features = judge.compared(said[old], said[new], best, rarity)
            talk = max(len(said[old]), len(said[new])) > 1
            rows.append((features, is_true, labelled, number, new, talk))
    return rows


def own(embedder: CachedEmbedder) -> Pairs:
    """Sentences of our own, each pair a stream."""
    rows: list[tuple[Any, ...]] = []
    attributes = Attributes(embedder)
    for number, (old, new, is_true) in enumerate(
        [(*pair, True) for pair in OUTDATED] + [(*pair, False) for pair in TRUE_TOGETHER]
    ):
        vectors = embedder.embed([old, new])
        profiles = attributes.profiles(vectors)
        [(same_kind, exclusive)] = same_kinds(profiles[:1], profiles[1])
        best = judge.at_best(float(np.vecdot(*vectors)), same_kind, exclusive)
        told, said = grammar.statements(old), grammar.statements(new)
        held = {word for sentence in told for word in sentence.words}
        rarity = {word: rarity_of(int(word in held), 1) for sentence in said for word in sentence.words}
        features = judge.compared(told, said, best, rarity)
        rows.append((features, is_true, True, number, 1, False))
    return as_pairs(rows, len(OUTDATED))


def as_pairs(rows: Sequence[tuple[Any, ...]], updates: int) -> Pairs:
    features = np.array([[getattr(row[0], name) for name in NAMES] for row in rows], dtype=float)
    outdated, labelled, stream, new, talk = (np.array(column) for column in list(zip(*rows, strict=True))[1:])
    return Pairs(features, outdated, labelled, stream, new, talk, updates)


def likely_enough(pairs: Pairs) -> Numbers:
    """The score from which on the engine names a row."""
    return np.where(pairs.talk, judge.logit(judge.PROPOSE_IN_TALK), judge.logit(judge.PROPOSE))


def named(pairs: Pairs, scores: Numbers, thresholds: Numbers) -> NDArray[np.bool_]:
    """What the engine would name: likely enough, and not far behind the likeliest; in talk only that."""
    groups = defaultdict(list)
    for row in np.flatnonzero(scores >= thresholds):
        groups[pairs.stream[row], pairs.new[row]].append(row)
    chosen = np.zeros(len(scores), dtype=bool)
    for rows in groups.values():
        best, *others = sorted(rows, key=lambda row: -scores[row])[: judge.MOST]
        close = [row for row in others if not pairs.talk[row] and scores[row] >= scores[best] - judge.CLOSE]
        chosen[[best, *close]] = True
    return chosen


# --- fitting ---------------------------------------------------------------------------------------------------------


def fitted(sets: dict[str, Pairs]) -> Numbers:
    """Logistic regression; in each set what is outdated weighs as much as what is not."""
    features, truth, weights = [], [], []
    for name, share in FITTED.items():
        pairs = sets[name]
        weight = np.where(pairs.labelled, 1.0, UNLABELLED)
        for value in (True, False):
            chosen = pairs.outdated == value
            weight[chosen] *= share / weight[chosen].sum()
        features.append(pairs.features)
        truth.append(pairs.outdated)
        weights.append(weight)
    return logistic(np.vstack(features), np.concatenate(truth).astype(float), np.concatenate(weights))


def logistic(features: Numbers, truth: Numbers, weights: Numbers) -> Numbers:
    """Newton's method; the last number is the bias, which is not kept small."""
    design = np.hstack([features, np.ones((len(features), 1))])
    ridge = np.append(np.full(features.shape[1], RIDGE), 0.0)
    found = np.zeros(design.shape[1])
    for _ in range(100):
        likely = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        slope = design.T @ (weights * (likely - truth)) + ridge * found
        curve = (design * (weights * likely * (1 - likely))[:, None]).T @ design + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        found -= np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-6:
            break
    return found


def left_out(sets: dict[str, Pairs], name: str) -> Numbers:
    """The set's scores, each stream's by weights fitted on everything but it."""
    pairs = sets[name]
    weights = fitted(sets)
    scores = pairs.features @ weights[:-1] + weights[-1]
    for stream in np.unique(pairs.stream[pairs.labelled]):
        weights = fitted({**sets, name: pairs.without(stream)})
        own = pairs.stream == stream
        scores[own] = pairs.features[own] @ weights[:-1] + weights[-1]
    return scores


# --- grading ---------------------------------------------------------------------------------------------------------


def graded(pairs: Pairs, scores: Numbers, metrics: ModuleType) -> list[str]:
    labelled = np.flatnonzero(pairs.labelled)
    shares: dict[int, list[float]] = {1: [], 3: [], 5: []}
    groups = defaultdict(list)
    for row in labelled:
        groups[pairs.stream[row], pairs.new[row]].append(row)
    for rows in groups.values():
        ordered = sorted(rows, key=lambda row: -scores[row])
        if (wanted := pairs.outdated[ordered].sum()) > 0:
            for k, found in shares.items():
                found.append(pairs.outdated[ordered[:k]].sum() / wanted)
    missed = pairs.updates - int(pairs.outdated[labelled].sum())
    scored = [(float(scores[row]), bool(pairs.outdated[row])) for row in labelled] + [(metrics.MISSED, True)] * missed
    could = np.flatnonzero(named(pairs, scores, np.full(len(scores), -np.inf)) & pairs.labelled)
    found = np.cumsum(pairs.outdated[could[np.argsort(-scores[could])]])
    precisions = (found / np.arange(1, len(found) + 1))[found / pairs.updates >= 0.5]
    flagged = named(pairs, scores, likely_enough(pairs))
    right = int((flagged & pairs.outdated).sum())
    precision, recall = right / max(1, int(flagged[labelled].sum())), right / pairs.updates
    return [
        str(pairs.updates),
        *(percent(float(np.mean(found))) for found in shares.values()),
        percent(metrics.average_precision(scored)),
        percent(float(precisions.max()) if len(precisions) else 0.0),
        str(int(flagged[labelled].sum())),
        percent(precision),
        percent(recall),
        f"{flagged.sum() / len(np.unique(pairs.stream * 100_000 + pairs.new)):.2f} each",
    ]


def write(weights: Numbers) -> None:
    path = Path(weights.__file__)
    head, _, _ = path.read_text(encoding="utf-8").partition("WEIGHTS = {")
    lines = [f'    "{name}": {weight:.2f},' for name, weight in zip(NAMES, weights, strict=False)]
    path.write_text(f"{head}WEIGHTS = {{\n" + "\n".join(lines) + f"\n}}\nBIAS = {weights[-1]:.2f}\n", encoding="utf-8")
    report.console.print(f"Written: {path}")


if __name__ == "__main__":
    main()
