"""What a store says of earlier memories: is the outdated one among them, and how often is it called very likely?

    python -m bench.hints              every world of `bench.phrases`, with and without phrases

A world's texts are stored one after the other. Which of them outdate which is known: of a training world by its
labels, of an everyday world by its questions, which name the answer and its outdated version. An everyday world is
judged by weights that were fitted without it; on the training worlds they were fitted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bench import phrases
from bench.everyday import without
from bench.phrases import World


@dataclass(frozen=True, slots=True)
class Shown:
    """A text that was stored, and the earlier ones that the reply named."""

    name: str  # world/id
    sure: tuple[str, ...]
    to_check: tuple[str, ...]


def store(worlds: Sequence[World], *, with_phrases: bool) -> list[Shown]:
    found = []
    with phrases.measuring() as jay:
        for world in worlds:
            alone = jay.bound_to(spaces=(world.name.replace("_", "-"),), only=True)
            known: dict[str, str] = {}
            with without(world.name):
                for one in world.texts:
                    stored = alone.store(one.text, created_at=one.at, also=one.phrases if with_phrases else ())
                    if stored.degraded or not stored.compared:
                        raise SystemExit(f"{one.text!r} was stored degraded: {stored.degraded}")
                    known[stored.memory.id] = f"{world.name}/{one.id}"
                    sure, rest = ([known[some.id] for some in named] for named in (stored.similar, stored.candidates))
                    found.append(Shown(known[stored.memory.id], tuple(sure), tuple(rest)))
    return found


def figures(shown: Sequence[Shown], outdated: Mapping[str, frozenset[str]]) -> dict[str, float | None]:
    changes = [(one, old) for one in shown for old in outdated.get(one.name, ())]
    sure = [(one, old) for one in shown for old in one.sure]
    right = sum(old in outdated.get(one.name, ()) for one, old in sure)
    others = [one for one in shown if one.name not in outdated]
    return {
        "stores": len(shown),
        "changes": len(changes),
        "outdated one shown": 100 * mean(old in (*one.sure, *one.to_check) for one, old in changes)
        if changes
        else None,
        "to check, per store": mean(len(one.to_check) for one in shown),
        "sure: precision": 100 * right / len(sure) if sure else None,
        "sure: recall": 100 * right / len(changes) if changes else None,
        "false alarms": 100 * mean(bool(one.sure) for one in others),
    }


def main() -> None:
    worlds = phrases.load_worlds(sys.argv[1:])
    outdated = {f"{world.name}/{new}": old for world in worlds for new, old in world.outdated.items()}
    kinds = {
        "everyday": [world.name for world in worlds if world.everyday],
        "training, English": [world.name for world in worlds if not world.everyday and world.english],
        "training, other languages": [world.name for world in worlds if not world.everyday and not world.english],
    }
    columns: list[str] = []
    for with_phrases in (False, True):
        shown = store(worlds, with_phrases=with_phrases)
        for kind, names in kinds.items():
            some = [one for one in shown if one.name.partition("/")[0] in names]
            if not some:
                continue
            told = figures(
                some, {name: {f"{name.partition('/')[0]}/{old}" for old in olds} for name, olds in outdated.items()}
            )
            if not columns:
                columns = list(told)
                print(f"| worlds | phrases | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}")
            cells = ["–" if value is None else f"{value:.1f}" for value in told.values()]
            print(f"| {kind} | {'with' if with_phrases else 'without'} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
