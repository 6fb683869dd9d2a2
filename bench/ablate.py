"""What each rule of a search is worth: every one taken out alone, all questions answered again, question by question.

    python -m bench.ablate                     worlds with and without phrases, and chats
    python -m bench.ablate --kept FILE         keeps what the stores found, so that a second run need not ask them

Stores are asked once. What they gave to `ranking` is kept, and ranked again without each rule. A difference has a 95 %
interval (bootstrap over questions). Nobody has written phrases for the chats, so these are measured without.
"""

from __future__ import annotations

import argparse
import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bench import phrases, retrieval
from bench.cached import CachedEmbedder
from bench.data import folder, tools
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.search import freshness, ranking
from scrubjay.settings import load
from scrubjay.values.memory import Link
from scrubjay.values.search import Query

CHATS = ("locomo", "longmemeval_pool", "beam_100k")
ROUNDS = 2_000
SEEN = 10  # hits that count
NOTHING = "nothing"
Numbers = NDArray[np.float64]


@dataclass(slots=True)
class Recorded:
    """A question with all that ranking was given for it."""

    kind: str
    gold: frozenset[str]  # ids of memories
    stale: frozenset[str]
    stranger: bool
    fused: tuple[Any, ...] = ()
    ranked: tuple[Any, ...] = ()
    passages: Mapping[str, float] = field(default_factory=dict)
    links: Sequence[Link] = ()
    vectors: Mapping[str, Any] = field(default_factory=dict)


@contextmanager
def recording(into: list[Recorded]) -> Iterator[None]:
    """What is given to `ranking` goes to the last of these, too."""
    fuse, rank, vectors = ranking.fuse, ranking.rank, dict[str, Any]()

    def fuse_and_record(*given: Any) -> Any:
        into[-1].fused = given
        return fuse(*given)

    def rank_and_record(found: Any, query: Query, periods: Any, glimpses: Any, **further: Any) -> Any:
        one, best = into[-1], found.first(ranking.MOST_LOOKED_AT)
        one.ranked, one.passages = (query, tuple(periods), glimpses), further["passages"]
        one.links = [*further["links_among"](best, found.memories)]
        if not any(glimpses.conversation):
            few = further["vectors_of"](best[: 4 * freshness.COMPARED])
            one.vectors = {memory: vectors.setdefault(memory, vector) for memory, vector in few.items()}
        return rank(found, query, periods, glimpses, **further)

    with patch.object(ranking, "fuse", fuse_and_record), patch.object(ranking, "rank", rank_and_record):
        yield


def order_of(one: Recorded) -> tuple[list[str], Numbers]:
    """The memories in the order that the rules as they are now make, and how likely each answers."""
    if not one.ranked:
        return [], np.zeros(0)
    query, periods, glimpses = one.ranked
    found = ranking.rank(
        ranking.fuse(*one.fused),
        query,
        periods,
        glimpses,
        passages=one.passages,
        links_among=lambda some, _: [link for link in one.links if link.source in some or link.target in some],
        vectors_of=lambda some: {memory: one.vectors[memory] for memory in some if memory in one.vectors},
    )
    best = [*found.order[:SEEN]]
    return [found.memories[row] for row in best], np.array([float(found.chances[row]) for row in best])


def read_kept(file: Path) -> list[Recorded]:
    found: list[Recorded] = pickle.loads(file.read_bytes())
    return found


# --- what is asked ---------------------------------------------------------------------------------------------------


def worlds_asked(worlds: Sequence[phrases.World]) -> list[Recorded]:
    found: list[Recorded] = []
    for with_phrases in (False, True):
        with phrases.measuring() as jay, recording(found):
            every, together = jay.bound_to(spaces=("every-world",), only=True), dict[str, str]()
            for world in worlds:
                together |= phrases.fill(every, world, with_phrases=with_phrases)
            for world in worlds:
                alone = jay.bound_to(spaces=(world.name.replace("_", "-"),), only=True)
                known = phrases.fill(alone, world, with_phrases=with_phrases)
                for reworded in (False, True):
                    case = next(name for name, both in phrases.CASES.items() if both == (with_phrases, reworded))
                    for stranger, question in questions_of(world, worlds):
                        ask(found, alone, known, question, world, f"notes, {case}", stranger=stranger)
                        if question.gold and not stranger:
                            ask(found, every, together, question, world, f"one store, {case}", stranger=False)
    return found


def worlds_in_order(worlds: Sequence[phrases.World]) -> Iterator[phrases.World]:
    """The world of each question, in the order in which `worlds_asked` asks them."""
    for world in 2 * [*worlds]:
        for stranger, question in 2 * [*questions_of(world, worlds)]:
            yield from [world] * (1 if stranger or not question.gold else 2)


def questions_of(world: phrases.World, worlds: Sequence[phrases.World]) -> Iterator[tuple[bool, phrases.Question]]:
    others = [other for other in worlds if other is not world and other.everyday is world.everyday]
    yield from ((False, one) for one in world.questions)
    yield from ((True, one) for one in phrases.strangers_of(world, others))


def ask(
    into: list[Recorded],
    jay: Engine,
    known: Mapping[str, str],
    question: phrases.Question,
    world: phrases.World,
    kind: str,
    *,
    stranger: bool,
) -> None:
    ids = {name: id for id, name in known.items()}

    def named(some: frozenset[str]) -> frozenset[str]:
        return frozenset() if stranger else frozenset(ids[f"{world.name}/{one}"] for one in some)

    into.append(Recorded(kind, named(question.gold), named(question.stale), stranger))
    hits = jay.search(question.text, also=question.wordings if "asked" in kind or "both" in kind else ())
    if hits.degraded:
        raise SystemExit(f"{question.text!r} was answered degraded: {hits.degraded}")


def chats_asked(data: str | None, cache: Path | None) -> list[Recorded]:
    path = folder(data)
    datasets, _ = tools(path)
    embedder = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models), cache)
    found: list[Recorded] = []

    def asked(jay: Any, text: str, options: dict[str, Any]) -> Any:
        found.append(Recorded("", frozenset(), frozenset(), False))
        hits = retrieval.both(jay, text, options)
        found[-1].vectors = {hit.memory.id: None for hit in hits}
        return hits

    for name in CHATS:
        with recording(found):
            start = len(found)
            answered = retrieval.run(datasets.load(name), embedder, {"scrubjay": asked})
            for one, recorded in zip(answered, found[start:], strict=True):
                ids = dict(zip(one.answers["scrubjay"].ranking, recorded.vectors, strict=True))
                recorded.kind = f"chats, {name}"
                recorded.gold = frozenset(ids.get(gold, gold) for gold in one.query.gold)
                recorded.vectors = {}
    return found


# --- what is taken out -----------------------------------------------------------------------------------------------

Rules = Mapping[str, Sequence[tuple[Any, str, Any]]]  # by name: whose, what, and what it is without the rule


def rules() -> Rules:
    def same(found: Any, *_: Any) -> Any:
        return found

    def never(*_: Any) -> bool:
        return False

    def always(*_: Any) -> bool:
        return True

    none = frozenset[str]()
    return {
        NOTHING: [],
        "second look": [(ranking, "second_look", same)],
        "… length": [(ranking, "LONG_COSTS", 0.0)],
        "… length, in notes": [(ranking, "MOST_IN_NOTES", 0.0)],
        "… best passage": [(ranking, "FULLY_READ", 1e9)],
        "… shortness of notes": [(ranking, "NOTE", 0.0)],
        "… subject": [(ranking, "SUBJECT", 0.0)],
        "… named times": [(ranking, "TIME", 0.0)],
        "… conversation": [(ranking, "CONVERSATION_PULL", 0.0)],
        "newer on one thing": [(ranking, "newer_first", same)],
        "… not of people who talk": [(freshness, "TALKING", none)],
        "… not of speakers": [(freshness, "states_something", always)],
        "… not on another": [(freshness, "is_on_another", never)],
        "… not of who asks what was": [(freshness, "FORMER", none)],
        "of a pair the newer": [(ranking, "fresh_first", same)],
        "label: what is outdone": [(ranking, "pass_chances_on", same)],
        "label: who speaks": [(ranking, "PERSON", 0.0)],
        "label: half of the words": [(ranking, "WORDED", 2.0)],
        **{
            f"label: {name}": [
                (ranking, "BARE", {**ranking.BARE, name: 0.0}),
                (ranking, "REWORDED", {**ranking.REWORDED, name: 0.0}),
            ]
            for name in ranking.BARE
            if name != "bias"
        },
    }


@contextmanager
def reading_once() -> Iterator[None]:
    """What is read of a text is remembered: the same texts are ranked for every rule."""
    with ExitStack() as stack:
        for name in ("pieces", "find_rare_words", "words_of"):
            stack.enter_context(patch.object(freshness, name, cache(getattr(freshness, name))))
        yield


@contextmanager
def without(rule: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for whose, name, value in rule:
            if hasattr(whose, name):
                stack.enter_context(patch.object(whose, name, value))
        yield


# --- what it changes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Of each question: the reciprocal rank of its answer, whether the current one comes before the outdated, the best
    chance of any hit."""

    ranks: Numbers
    current: Numbers
    best: Numbers


def figures(some: Sequence[Recorded]) -> Figures:
    ranks, current, best = [], [], []
    for one in some:
        order, chances = order_of(one)
        place = {memory: number for number, memory in enumerate(order, 1)}
        first = min((place[gold] for gold in one.gold if gold in place), default=0)
        stale = min((place[old] for old in one.stale if old in place), default=SEEN + 1)
        ranks.append(1 / first if first else 0.0)
        current.append(float((first or SEEN + 1) < stale) if one.stale else np.nan)
        best.append(chances.max(initial=0.0))
    return Figures(np.array(ranks), np.array(current), np.array(best))


def interval(differences: Numbers) -> tuple[float, float, float]:
    """The mean and where it lies in 95 of 100 draws, in hundredths."""
    if not len(differences):
        return 0.0, 0.0, 0.0
    draws = np.random.default_rng(1).integers(0, len(differences), (ROUNDS, len(differences)))
    low, high = np.percentile(differences[draws].mean(axis=1), (2.5, 97.5))
    return 100 * float(differences.mean()), 100 * float(low), 100 * float(high)


def area(one: Figures, yes: Numbers, no: Numbers) -> float:
    return phrases.area(list(one.best[yes]), list(one.best[no])) or 0.0


def tell(kind: str, some: Sequence[Recorded], chosen: Mapping[str, Sequence[tuple[Any, str, Any]]]) -> None:
    answerable = np.array([bool(one.gold) for one in some])
    strange = np.array([one.stranger for one in some])
    near = ~answerable & ~strange
    whole = figures(some)
    changed = answerable & ~np.isnan(whole.current)
    print(f"\n### {kind}: {answerable.sum()} questions, {changed.sum()} with an outdated answer\n")
    print("| taken out | MRR | current first | strangers | near topics |\n|---|---|---|---|---|")
    for name, rule in chosen.items():
        with without(rule):
            other = figures(some) if rule else whole
        cells = []
        for column, which in (("ranks", answerable), ("current", changed)):
            before, after = getattr(whole, column)[which], getattr(other, column)[which]
            mean, low, high = interval(after - before)
            told = "0" if not (after - before).any() else f"{mean:+.1f} ({low:+.1f} to {high:+.1f})"
            cells.append(f"{100 * before.mean() if len(before) else 0:.1f}" if not rule else told)
        for which in (strange, near):
            was, now = (area(one, answerable, which) for one in (whole, other))
            cells.append("–" if not which.any() else f"{was:.1f}" if not rule else f"{now - was:+.1f}")
        if not rule or any(cell not in ("0", "–", "+0.0", "-0.0") for cell in cells):
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ablate", description="What each rule of a search is worth.")
    parser.add_argument("--data", help="folder of the benchmark data")
    parser.add_argument("--cache", type=Path, help="file for the vectors of chats; default: in the user's cache")
    parser.add_argument("--without-chats", action="store_true", help="worlds only")
    parser.add_argument("--kept", type=Path, help="file for what the stores found")
    options = parser.parse_args()
    os.environ["SCRUBJAY_STRICT_EMBEDDING"] = "on"
    if options.kept and options.kept.exists():
        recorded = read_kept(options.kept)
    else:
        recorded = worlds_asked(phrases.load_worlds())
        recorded += [] if options.without_chats else chats_asked(options.data, options.cache)
        if options.kept:
            options.kept.write_bytes(pickle.dumps(recorded))
    with reading_once():
        for kind in dict.fromkeys(one.kind for one in recorded):
            tell(kind, [one for one in recorded if one.kind == kind], rules())


if __name__ == "__main__":
    main()
