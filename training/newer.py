"""Fit when a newer memory comes before an older one on the same thing: `NEWER` of `engine/search/freshness.py`.

    python -m training.newer                  figures, worlds left out eight at a time, and the weights
    python -m training.newer --kept FILE      with what `python -m bench.ablate --kept FILE` found
    python -m training.newer --keep           keeps the weights without each everyday world, for bench/everyday.py

Every question of `bench.phrases` is asked, with and without phrases and wordings, of its world's store and of one store
with all worlds. Of two memories on one thing among the first twelve, one row says whether the newer one answers.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from bench import ablate, phrases
from numpy.typing import NDArray

from scrubjay.engine.search import freshness
from training.folds import keep

RIDGE = 5.0
EVERYDAY = 3.0  # what a row of an everyday world counts
FOLDS = 8
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """Two facts on one thing, of which one answers."""

    world: phrases.World
    seen: dict[str, float]
    newer_answers: bool


def rows_of(one: ablate.Recorded, world: phrases.World) -> Iterator[Row]:
    """What the program compares for a question."""
    pairs: list[tuple[freshness.Fact, freshness.Fact]] = []

    def note(older: freshness.Fact, newer: freshness.Fact, asked: freshness.Asked) -> float:
        if chance_of_newer(older, newer, asked):
            pairs.append((older, newer))
        return 0.0

    chance_of_newer = freshness.chance_of_newer
    with patch.object(freshness, "chance_of_newer", note):
        ablate.order_of(one)
    memories = ablate.ranking.fuse(*one.fused).memories
    for older, newer in pairs:
        answers = memories[newer.row] in one.gold
        if answers != (memories[older.row] in one.gold):
            yield Row(world, freshness.compare_facts(older, newer), answers)


def fitted(rows: Sequence[Row]) -> dict[str, float]:
    """Logistic regression by Newton's method, features in units of their spread."""
    names = list(rows[0].seen)
    given = np.array([[row.seen[name] for name in names] for row in rows], float)
    truth = np.array([row.newer_answers for row in rows], float)
    share = np.array([EVERYDAY if row.world.everyday else 1.0 for row in rows])
    middle, spread = given.mean(axis=0), given.std(axis=0) + 1e-9
    design = np.hstack([(given - middle) / spread, np.ones((len(given), 1))])
    ridge = np.diag([RIDGE] * len(names) + [1e-6])
    found = np.zeros(design.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        curve = (design * (share * likely * (1 - likely))[:, None]).T @ design + ridge
        found -= np.linalg.solve(curve, design.T @ (share * (likely - truth)) + ridge @ found)
    chosen = found[:-1] / spread
    weights = zip(("bias", *names), (found[-1] - chosen @ middle, *chosen), strict=True)
    return {name: round(float(weight), 2) for name, weight in weights}


def tell(
    kind: str, some: Sequence[tuple[ablate.Recorded, phrases.World]], without_it: dict[str, dict[str, float]]
) -> None:
    """How often the answer comes first, the reciprocal rank, and current before outdated: without the rule, and with
    weights that were fitted without the question's world."""
    cells = []
    for rule in (False, True):
        ranks, current = [], []
        for one, world in some:
            with (
                patch.object(freshness, "NEWER", without_it[world.name]),
                patch.object(freshness, "COMPARED", freshness.COMPARED if rule else 0),
            ):
                found = ablate.figures([one])
            ranks.append(found.ranks[0])
            current.append(found.current[0])
        figures = (np.mean(np.equal(ranks, 1)), np.mean(ranks), np.nanmean(current))
        cells.append(" / ".join(f"{100 * float(one):.1f}" for one in figures))
    print(f"| {kind} | {len(some)} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, help="file with what the stores found")
    parser.add_argument("--keep", action="store_true", help="keep the weights without each everyday world")
    options = parser.parse_args()
    worlds = phrases.load_worlds()
    recorded = ablate.read_kept(options.kept) if options.kept else ablate.worlds_asked(worlds)
    asked = [(one, of) for one, of in zip(recorded, ablate.worlds_in_order(worlds), strict=False) if one.gold]
    with ablate.reading_once():
        rows = [row for one, world in asked for row in rows_of(one, world)]
        names = [world.name for world in worlds]
        without_it = {}
        for fold in range(FOLDS):
            out = set(names[fold::FOLDS])
            weights = fitted([row for row in rows if row.world.name not in out])
            without_it |= dict.fromkeys(out, weights)
        print(f"NEWER = {fitted(rows)}  # {len(rows)} pairs\n")
        print("| store, phrases | questions | without the rule | worlds left out |\n|---|---|---|---|")
        for kind in dict.fromkeys(one.kind for one, _ in asked):
            tell(kind, [pair for pair in asked if pair[0].kind == kind], without_it)
    if options.keep:
        everyday = [world.name for world in worlds if world.everyday]
        keep("newer", {out: fitted([row for row in rows if row.world.name != out]) for out in everyday})


if __name__ == "__main__":
    main()
