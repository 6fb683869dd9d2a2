"""How well does a run tell what a new text outdates? The figure that counts: *together*, on worlds it has not seen.

    python -m training.judge half-0 half-1          the runs' own left-out worlds, and the everyday worlds
    python -m training.judge half-0 --int8          the exported network instead of the run

All earlier texts of a world lie in one store. Each new text is judged against its eight nearest, and at most one is
named, the likeliest: pairs judged alone teach how a change is worded, not what has changed. A new text that outdates
nothing has near ones all the same, and what is named for it is wrong.

Printed for each set: today's rule, the reader by itself, and the reader with half of today's logit. Intervals are 95 %
over new texts. The curves of all thresholds are written to <run>.judged.json in the build folder.
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.cached import CachedEmbedder
from numpy.typing import NDArray

from scrubjay.embedders.base import Vector
from scrubjay.engine.conflicts import differences
from scrubjay.engine.conflicts.fact_kinds import Attributes, same_kinds
from scrubjay.engine.conflicts.weights import SURE
from scrubjay.text.reading import read
from scrubjay.text.words import rarity_of
from training.pairs import BUILD, OUTDATES, Pair, Store, nearest, open_embedder, stores, vectors_of

NEAREST = 8
TODAYS_SHARE = 0.5
GOAL_PRECISION, GOAL_RECALL = 75.0, 60.0
RESAMPLES = 2000

Read = Callable[[Sequence[Pair]], list[float]]  # the reader's logit of "outdates" for each pair


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    old: str
    outdated: bool
    today: float  # logit
    reader: float = 0.0  # logit


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A new text, what lies near it, and how many texts of its world it outdates, near or not."""

    world: str
    set: str
    language: str
    new: str
    outdated: int
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    named: int
    right: int
    outdated: int


Rule = Callable[[Case], Outcome]


# --- What is judged -------------------------------------------------------------------------------------------------


def cases(store: Store, embedder: CachedEmbedder, attributes: Attributes) -> list[Case]:
    """Each new text with its nearest earlier ones, as today's judge sees them."""
    olds = store.olds()
    vectors = vectors_of([*olds, *store.news()], embedder)
    held = Counter(word for old in olds for word in read(old).words)
    found = []
    for new in store.news():
        said = read(new)
        rarity = {word: rarity_of(held[word], len(olds)) for word in said.words}
        outdated = store.outdated(new)
        near = nearest(new, olds, vectors, NEAREST)
        kinds = kinds_of(vectors[new], [vectors[old] for old, _ in near], attributes)
        candidates = []
        for (old, cosine), kind in zip(near, kinds, strict=True):
            features = differences.features(
                read(old), said, cosine=cosine, behind=near[0][1] - cosine, kinds=kind, rarity=rarity
            )
            likely = differences.probability(features)
            today = math.log(likely / (1 - likely))
            candidates.append(Candidate(old=old, outdated=old in outdated, today=today))
        found.append(
            Case(
                world=store.name,
                set=store.set,
                language=store.language,
                new=new,
                outdated=len(outdated),
                candidates=tuple(candidates),
            )
        )
    return found


def kinds_of(vector: Vector, others: Sequence[Vector], attributes: Attributes) -> list[tuple[float, float]]:
    profiles = attributes.profiles([vector, *others])
    return same_kinds(profiles[1:], profiles[0])


def read_cases(known: Sequence[Case], read: Read) -> list[Case]:
    """The same cases with the reader's logits."""
    pairs = [Pair(old=one.old, new=case.new, label="") for case in known for one in case.candidates]
    logits = iter(read(pairs))
    return [
        Case(
            **{
                **{name: getattr(case, name) for name in ("world", "set", "language", "new", "outdated")},
                "candidates": tuple(Candidate(**{**asdict(one), "reader": next(logits)}) for one in case.candidates),
            }
        )
        for case in known
    ]


def open_run(run: Path) -> tuple[Read, list[str]]:
    """A run as it was trained, and the worlds it has learned from."""
    import torch

    from training import model
    from training.train import open_wordpiece

    state = torch.load(run, weights_only=True)
    reader = model.Reader()
    reader.load_state_dict(state["reader"])
    reader.eval()
    wordpiece = open_wordpiece()

    def read(pairs: Sequence[Pair]) -> list[float]:
        encoded = [model.encode(wordpiece, pair.old, pair.new) for pair in pairs]
        order = sorted(range(len(encoded)), key=lambda at: len(encoded[at][0]))
        logits = [0.0] * len(encoded)
        with torch.inference_mode():
            for at in range(0, len(order), 32):
                some = order[at : at + 32]
                scores = reader(*model.batch([encoded[one] for one in some])).numpy()
                for one, row in zip(some, scores, strict=True):
                    logits[one] = odds(row)
        return logits

    return read, state["about"]["learned"]


def open_network(path: Path) -> Read:
    """The exported network, one pair at a time, as it would run in a store."""
    import onnxruntime

    from training import model
    from training.train import open_wordpiece

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wordpiece = open_wordpiece()

    def read_one(pair: Pair) -> float:
        pieces, sides = (np.array([row], dtype=np.int64) for row in model.encode(wordpiece, pair.old, pair.new))
        given = {"input_ids": pieces, "attention_mask": np.ones_like(pieces), "token_type_ids": sides}
        [[row]] = session.run(["labels"], given)
        return odds(row)

    return lambda pairs: [read_one(pair) for pair in pairs]


def odds(scores: NDArray[np.float32]) -> float:
    """The logit of "outdates" against all other labels."""
    others = np.delete(scores, OUTDATES).astype(float)
    return float(scores[OUTDATES] - np.logaddexp.reduce(others))


# --- How it is judged -----------------------------------------------------------------------------------------------


def as_today(case: Case) -> Outcome:
    """What is named without a reader."""
    sure = [one for one in case.candidates if one.today >= math.log(SURE / (1 - SURE))]
    named = sorted(sure, key=lambda one: -one.today)[:1]
    return Outcome(len(named), sum(one.outdated for one in named), case.outdated)


def today_alone(one: Candidate) -> float:
    return one.today


def reader_alone(one: Candidate) -> float:
    return one.reader


def both(one: Candidate) -> float:
    return one.reader + TODAYS_SHARE * one.today


def likeliest(score: Callable[[Candidate], float], threshold: float) -> Rule:
    def rule(case: Case) -> Outcome:
        best = max(case.candidates, key=score)
        named = score(best) >= threshold
        return Outcome(int(named), int(named and best.outdated), case.outdated)

    return rule


def figures(outcomes: Iterable[Outcome]) -> tuple[float, float, float]:
    """Precision, recall and F1 in percent."""
    rows = np.array([(one.named, one.right, one.outdated) for one in outcomes])
    return _figures(*rows.sum(axis=0))


def _figures(named: float, right: float, outdated: float) -> tuple[float, float, float]:
    precision = 100 * right / named if named else math.nan
    return precision, 100 * right / outdated, 200 * right / (named + outdated)


def intervals(outcomes: Iterable[Outcome]) -> list[tuple[float, float]]:
    """95 % of each figure, new texts drawn again."""
    rows = np.array([(one.named, one.right, one.outdated) for one in outcomes])
    if not rows[:, 0].any():
        return [(math.nan, math.nan), (0.0, 0.0), (0.0, 0.0)]
    draws = np.random.default_rng(1).integers(0, len(rows), (RESAMPLES, len(rows)))
    resampled = np.array([_figures(*sums) for sums in rows[draws].sum(axis=1)])
    low, high = np.nanpercentile(resampled, (2.5, 97.5), axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def curve(known: Sequence[Case], score: Callable[[Candidate], float]) -> list[dict[str, float]]:
    """Precision and recall from each threshold at which something more is named."""
    best = [max(case.candidates, key=score) for case in known]
    ranked = sorted(((score(one), one.outdated) for one in best), reverse=True)
    outdated = sum(case.outdated for case in known)
    points, right = [], 0
    for named, (threshold, hit) in enumerate(ranked, 1):
        right += hit
        precision, recall, f1 = _figures(named, right, outdated)
        points.append({"threshold": threshold, "precision": precision, "recall": recall, "f1": f1})
    return points


def recall_at(points: Sequence[dict[str, float]], precision: float) -> dict[str, float] | None:
    """The point with the most recall of those precise enough."""
    return max((one for one in points if one["precision"] >= precision), key=lambda one: one["recall"], default=None)


# --- What is printed ------------------------------------------------------------------------------------------------


def report(known: Sequence[Case]) -> dict[str, Any]:
    """Print the sets, and give back all curves."""
    sets = {
        "worlds": [case for case in known if case.set == "worlds"],
        "worlds, English": [case for case in known if case.set == "worlds" and case.language == "en"],
        "worlds, other languages": [case for case in known if case.set == "worlds" and case.language != "en"],
        "everyday": [case for case in known if case.set == "everyday"],
        "everyday, English": [case for case in known if case.set == "everyday" and case.language == "en"],
    }
    sets = {name: some for name, some in sets.items() if some}
    scores = {"today, likeliest": today_alone, "reader": reader_alone, "reader + 0.5 × today": both}
    curves = {name: {rule: curve(some, score) for rule, score in scores.items()} for name, some in sets.items()}
    for name, some in sets.items():
        print(
            f"\n{name}: {len({case.world for case in some})} worlds, {len(some)} new texts, "
            f"{sum(case.outdated for case in some)} outdated, "
            f"{sum(one.outdated for case in some for one in case.candidates)} of them among the {NEAREST} nearest"
        )
        print_line("today's rule", some, as_today)
        for rule, score in scores.items():
            print_line(f"{rule}, even odds", some, likeliest(score, 0.0))
            other = {"worlds": "everyday", "everyday": "worlds"}.get(name, name.split(",")[0])
            if other in curves:
                threshold = max(curves[other][rule], key=lambda one: one["f1"])["threshold"]
                print_line(f"{rule}, best of {other} ({threshold:.2f})", some, likeliest(score, threshold))
                if point := recall_at(curves[other][rule], GOAL_PRECISION):
                    threshold = point["threshold"]
                    print_line(
                        f"{rule}, {GOAL_PRECISION:.0f} on {other} ({threshold:.2f})", some, likeliest(score, threshold)
                    )
            if point := recall_at(curves[name][rule], GOAL_PRECISION):
                reached = "reached" if point["recall"] >= GOAL_RECALL else "missed"
                at = f"recall {point['recall']:.1f} at precision {point['precision']:.1f}"
                print(f"  {rule}: {at}, threshold chosen here: goal {reached}")
            else:
                print(f"  {rule}: never as precise as {GOAL_PRECISION:.0f}")
    return curves


def print_line(name: str, some: Sequence[Case], rule: Rule) -> None:
    outcomes = by_text(some, rule)
    texts = [
        f"{value:5.1f} ({low:.0f}–{high:.0f})"
        for value, (low, high) in zip(figures(outcomes), intervals(outcomes), strict=True)
    ]
    print(f"  {name:<48}" + "  ".join(f"{text:<15}" for text in texts))


def by_text(some: Sequence[Case], rule: Rule) -> list[Outcome]:
    """What several runs say of one new text counts as one, so that intervals do not shrink with the number of runs."""
    sums: dict[tuple[str, str], Outcome] = {}
    for case in some:
        one, before = rule(case), sums.get((case.world, case.new), Outcome(0, 0, 0))
        sums[case.world, case.new] = Outcome(
            one.named + before.named, one.right + before.right, one.outdated + before.outdated
        )
    return list(sums.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="names of runs; those of several folds are judged as one")
    parser.add_argument("--int8", action="store_true", help="judge by the exported <run>.onnx")
    parser.add_argument("--threads", type=int, help="of a run that is not exported")
    options = parser.parse_args()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    embedder = open_embedder()
    attributes = Attributes(embedder)
    judged: list[Case] = []
    for name in options.runs:
        read, learned = open_run(BUILD / f"{name}.pt")
        if options.int8:
            read = open_network(BUILD / f"{name}.onnx")
        unseen = [
            case for store in stores() if store.name not in learned for case in cases(store, embedder, attributes)
        ]
        judged += read_cases(unseen, read)
    print("Precision, recall, F1 in percent, with 95 % intervals")
    curves = report(judged)
    path = BUILD / f"{'+'.join(options.runs)}{'.int8' if options.int8 else ''}.judged.json"
    path.write_text(json.dumps({"curves": curves, "cases": [asdict(case) for case in judged]}, ensure_ascii=False))
    print(f"\n{path}")


if __name__ == "__main__":
    main()
