"""The everyday worlds, left out one at a time: what is fitted was fitted without the world that is judged.

Two things are left out: the judge of what is outdated, and when a newer memory comes first. The weights of each without
each world are kept in `training/left_out.json`: `python -m training.hints --write` and `training.newer --keep` write
them. Where some are not kept, those of the package are used, and it is said. The labels have a handful of weights,
fitted on all worlds; `python -m training.labels` says what they give without each.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from training.folds import kept, left_out

import scrubjay
from scrubjay.engine.conflicts import differences
from scrubjay.engine.search import freshness


def run(path: Path) -> dict[str, Any]:
    """What the data's own program says of each world and of all, by weights that have not seen it."""
    os.environ["SCRUBJAY_JUDGE_WAIT"] = "0"  # no deadline for judges while measuring
    sys.path.insert(0, str(path / "tools"))
    everyday = importlib.import_module("everyday")
    worlds = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((path / "everyday").glob("*.json"))]
    report: dict[str, Any] = {}
    sums: dict[str, list[float]] = {}
    alone: list[Any] = []
    together: list[Any] = []
    for world in worlds:
        strangers = [
            question["text"]
            for other in worlds
            if other is not world
            for question in [one for one in other["questions"] if one["gold"]][::5]
        ]
        with without(world["world"]), tempfile.TemporaryDirectory() as home, at(Path(home)) as jay:
            asked = everyday.asked(jay.bound_to(spaces=(world["world"],)), world, strangers)
            by_itself, with_others = everyday.paired(jay, world, [])
        for name in [name for name in asked if name.startswith("_")]:
            sums.setdefault(name, []).extend(asked.pop(name))
        alone += by_itself
        together += with_others
        report[world["world"]] = said(everyday, asked, by_itself, with_others)
    report["all"] = said(everyday, totals(everyday, sums), alone, together)
    return report


@contextmanager
def without(world: str) -> Iterator[None]:
    """Weights that were fitted without a world, as far as they are kept."""
    with ExitStack() as stack:
        if (judge := left_out("judge", world)) is not None:
            inner = {name: numbers(row) for name, row in judge["inner"].items()}
            network = differences.network_of(inner, numbers(judge["middle"]), numbers(judge["outer"]), judge["bias"])
            stack.enter_context(patch.object(differences, "network", lambda: network))
        if (newer := left_out("newer", world)) is not None:
            stack.enter_context(patch.object(freshness, "NEWER", newer))
        yield


def numbers(row: str) -> list[float]:
    return [float(number) for number in row.split(",")]


def seen() -> str:
    """What was fitted on the worlds that it judges, and for which no other weights are kept."""
    shipped = [what for what in ("judge", "newer") if what not in kept()]
    return f"Fitted on these worlds, too: {', '.join(shipped)}." if shipped else "Each world is left out of every fit."


@contextmanager
def at(home: Path) -> Iterator[Any]:
    with patch.dict(os.environ, SCRUBJAY_HOME=str(home)), scrubjay.open(home / "memories.db") as jay:
        jay.store("warm up")  # the model is loaded; not in a world's space
        yield jay


def totals(everyday: ModuleType, sums: dict[str, list[float]]) -> dict[str, Any]:
    shares = {name: everyday.share(sums[f"_{short}"]) for name, short in SHARES.items()}
    return {
        **shares,
        "questions": len(sums["_first"]),
        "unanswerable auroc": everyday.auroc(sums["_yes"], sums["_no"]),
        "strangers auroc": everyday.auroc(sums["_yes"], sums["_foreign"]),
    }


SHARES = {
    "recall@1": "first", "recall@3": "third", "mrr": "ranks", "empty": "empty", "fresh": "fresh",
    "strangers given": "given",
}  # fmt: skip


def said(everyday: ModuleType, asked: dict[str, Any], alone: list[Any], together: list[Any]) -> dict[str, Any]:
    return {"asked": asked, "alone": everyday.judged(alone), "together": everyday.judged(together)}


def rows(report: dict[str, Any]) -> list[list[Any]]:
    """A line for each world, and one for all."""
    return [
        [
            world, one["asked"]["questions"], *(one["asked"][name] for name in SHARES),
            *(one["asked"][f"{whom} auroc"] for whom in ("strangers", "unanswerable")),
            *(f"{one[way]['precision']} / {one[way]['recall']}" for way in ("alone", "together")),
            one["alone"]["false alarms"], one["alone"]["duplicates named"],
        ]
        for world, one in report.items()
    ]  # fmt: skip


COLUMNS = (
    "world", "questions", "recall@1", "@3", "MRR", "found nothing", "current first", "strangers given",
    "AUROC strangers", "near topics", "alone P / R", "together P / R", "false alarms", "same named",
)  # fmt: skip
