"""Fit when a newer memory comes before an older one on the same thing: `NEWER` of `engine/search/ranking.py`.

    python -m training.newer            figures, each world left out in turn, and the weights
    python -m training.newer --keep     keeps the weights without each everyday world, for bench/everyday.py

Every question of training/worlds, training/questions and training/everyday is asked through the library. Of two
memories among the first twelve, the newer behind the older, one row says which of them answers.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import scrubjay
from scrubjay.engine.engine import Engine
from scrubjay.engine.search import candidates, ranking
from scrubjay.text.tokens import words_of
from scrubjay.values.search import Filter, Query
from training import questions, worlds
from training.folds import keep
from training.pairs import EVERYDAY

RIDGE = 5.0
HAND = {"everyday": 3.0, "training": 1.0}  # what a row counts
BEFORE = timedelta(days=60)  # how much older an earlier text of a training world is
FIRST = 10
Numbers = NDArray[np.float64]
Pairs = dict[tuple[str, str], dict[str, float]]  # older, newer: what is weighed


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    name: str
    hand: str
    english: bool
    memories: Sequence[tuple[str, str, datetime]]
    questions: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]  # text, gold, stale


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An answerable question, and what was found for it before newer ones were moved."""

    world: World
    gold: frozenset[str]
    stale: tuple[str, ...]
    order: list[str]  # names of memories
    pairs: Pairs
    apart: frozenset[tuple[str, str]]  # of these, those that keep their places whatever the odds


# --- what is asked ---------------------------------------------------------------------------------------------------


def read_worlds() -> Iterator[World]:
    for path in sorted(EVERYDAY.glob("*.json")):
        fields = json.loads(path.read_text(encoding="utf-8"))
        yield World(
            name=fields["world"],
            hand="everyday",
            english=fields["world"] != "languages",
            memories=[(one["id"], one["text"], datetime.fromisoformat(one["at"])) for one in fields["memories"]],
            questions=[(one["text"], tuple(one["gold"]), tuple(one.get("stale", ()))) for one in fields["questions"]],
        )
    for world in worlds.load():
        memories = [
            memory
            for change in world.changes
            for memory in (
                *(
                    (one.id, one.text, change.at - BEFORE + timedelta(days=place))
                    for place, one in enumerate(change.earlier)
                ),
                (change.id, change.new, change.at),
            )
        ]
        yield World(
            name=world.name,
            hand="training",
            english=world.language == "en",
            memories=sorted(memories, key=lambda memory: memory[2]),
            questions=[*((one.text, one.gold, one.stale) for one in world.questions), *further(world)],
        )


def further(world: worlds.World) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The questions of training/questions; stale is what the answers outdate."""
    outdated = {change.id: [one.id for one in change.earlier if one.label == "outdates"] for change in world.changes}
    for one in questions.load(world)[len(world.questions) :]:
        yield one.text, one.gold, tuple(id for gold in one.gold for id in outdated.get(gold, ()))


def asked(world: World) -> Iterator[Asked]:
    with tempfile.TemporaryDirectory() as folder, scrubjay.open(Path(folder) / "memories.db") as jay:
        names = {jay.store(text, created_at=at).memory.id: id for id, text, at in world.memories}
        for text, gold, stale in world.questions:
            if gold:
                order, pairs, apart = before(jay, text, names)
                yield Asked(world=world, gold=frozenset(gold), stale=stale, order=order, pairs=pairs, apart=apart)


def before(jay: Engine, question: str, names: dict[str, str]) -> tuple[list[str], Pairs, frozenset[tuple[str, str]]]:
    """The order without newer ones moved, what is weighed of each pair, and which pairs are on different subjects: the
    weights are better for having seen these, too."""
    found = candidates.find(jay, Query(text=question), jay.audience(Filter()), jay.now())
    moved = found.candidates
    rows = sorted(moved.order, key=lambda row: -float(moved.scores[row]))
    ranked = moved.but(rows, {}, "current")
    glimpses = jay.records.glimpses(ranked.first(ranking.COMPARED))
    known = [*ranking.facts(ranked, glimpses, jay.records.vectors).values()]
    asked = ranking.asked_for(question)
    pairs, apart = Pairs(), set[tuple[str, str]]()
    for older, newer in combinations(known, 2):
        seen = ranking.compare_facts(older, newer, asked)
        if seen is not None and not ranking.on_another_one(older, newer, asked):
            pair = names[ranked.memories[older.row]], names[ranked.memories[newer.row]]
            pairs[pair] = seen
            if ranking.on_another_subject(older, newer, asked):
                apart.add(pair)
    as_ever = found.periods or not ranking.FORMER.isdisjoint(words_of(question))
    return [names[one] for one in ranked.first(len(ranked))], {} if as_ever else pairs, frozenset(apart)


# --- fitting ---------------------------------------------------------------------------------------------------------

NAMES = [name for name in ranking.NEWER if name != "bias"]
Rule = Callable[[dict[str, float]], float]


def rows(some: Sequence[Asked]) -> Iterator[tuple[list[float], float, float]]:
    """Of each pair of which one answers: what is seen, whether it is the newer one, what the row counts."""
    for one in some:
        for (older, newer), seen in one.pairs.items():
            if (newer in one.gold) != (older in one.gold):
                yield [seen[name] for name in NAMES], float(newer in one.gold), HAND[one.world.hand]


def fitted(some: Sequence[Asked]) -> tuple[Numbers, float]:
    """Logistic regression by Newton's method, features in units of their spread; weights and bias."""
    given, truth, share = (np.array(column, float) for column in zip(*rows(some), strict=True))
    middle, spread = given.mean(axis=0), given.std(axis=0) + 1e-9
    design = np.hstack([(given - middle) / spread, np.ones((len(given), 1))])
    ridge = np.diag([RIDGE] * len(NAMES) + [1e-6])
    found = np.zeros(design.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        curve = (design * (share * likely * (1 - likely))[:, None]).T @ design + ridge
        found -= np.linalg.solve(curve, design.T @ (share * (likely - truth)) + ridge @ found)
    chosen = found[:-1] / spread
    return chosen, float(found[-1] - chosen @ middle)


# --- what is printed -------------------------------------------------------------------------------------------------


def moved(one: Asked, odds: Rule) -> list[str]:
    """The order with newer ones moved."""
    order = one.order[: ranking.COMPARED]
    for newer in order[1:]:
        low = order.index(newer)
        for high in range(low):
            pair = order[high], newer
            if pair in one.pairs and pair not in one.apart and odds(one.pairs[pair]) > 0:
                order.insert(high, order.pop(low))
                break
    return order + one.order[ranking.COMPARED :]


def figures(some: Sequence[Asked], orders: Sequence[Sequence[str]]) -> list[float]:
    """Recall@1, recall@3, MRR, and how often the current one comes before the outdated."""
    first, third, ranks, fresh = [], [], [], []
    for one, order in zip(some, orders, strict=True):
        place = {name: number for number, name in enumerate(order[:FIRST], 1)}
        found = [place[name] for name in one.gold if name in place]
        first.append(float(1 in found))
        third.append(sum(number <= 3 for number in found) / min(3, len(one.gold)))
        ranks.append(1 / min(found) if found else 0.0)
        fresh += [float(min(found, default=99) < place.get(old, 99)) for old in one.stale if found or old in place]
    return [round(100 * float(np.mean(one)), 1) for one in (first, third, ranks, fresh)]


def main() -> None:
    everything = [one for world in read_worlds() for one in asked(world)]
    left_out: dict[str, Rule] = {}
    kept: dict[str, dict[str, float]] = {}
    for name, hand in {one.world.name: one.world.hand for one in everything}.items():
        chosen, bias = fitted([one for one in everything if one.world.name != name])
        if hand == "everyday":
            kept[name] = shown(chosen, bias)
        left_out[name] = lambda seen, chosen=chosen, bias=bias: float(  # type: ignore[misc]
            bias + sum(weight * seen[name] for name, weight in zip(NAMES, chosen, strict=True))
        )
    print(
        "| worlds | questions | | recall@1 | recall@3 | MRR | current before outdated |\n|---|---|---|---|---|---|---|"
    )
    for hand, english in (("everyday", True), ("everyday", False), ("training", True), ("training", False)):
        some = [one for one in everything if (one.world.hand, one.world.english) == (hand, english)]
        for way, orders in (
            ("before", [one.order for one in some]),
            ("left out", [moved(one, left_out[one.world.name]) for one in some]),
        ):
            told = " | ".join(map(str, figures(some, orders)))
            print(f"| {hand}, {'English' if english else 'others'} | {len(some)} | {way} | {told} |")
    lines = "".join(f'    "{name}": {weight:.2f},\n' for name, weight in shown(*fitted(everything)).items())
    print(f"NEWER = {{\n{lines}}}")
    if "--keep" in sys.argv:
        keep("newer", kept)


def shown(chosen: Numbers, bias: float) -> dict[str, float]:
    return {name: round(float(weight), 2) for name, weight in (("bias", bias), *zip(NAMES, chosen, strict=True))}


if __name__ == "__main__":
    main()
