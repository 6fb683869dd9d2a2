"""Every figure of the last run in one table: beside its floor, beside what it was before, beside its goal.

    python -m bench.figures         the newest results of each bench; `make bench` runs them all, then this

A figure's floor is what a bare program needs for the same thing in the same run, so the ratio is what can be compared
between machines and days. What figures were before is in before.json, as measured then.

Some goals are a time on the machine that they were set on. Two floors are known from there (`FLOORS_THERE`), so how
much slower this machine is follows from the same floors in this run, and so does what such a goal is here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from bench import report

BENCHES = ("large", "speed", "windows", "bulk", "postgres")  # those whose results have figures
BEFORE = Path(__file__).with_name("before.json")
FLOORS_THERE = {"search, 1,000 memories": 0.22, "search, 10,000 memories": 1.8}  # ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and what to compare it with. All in its unit."""

    name: str
    value: float
    unit: str = "ms"
    floor: float | None = None  # of a bare program
    goal: float | None = None
    goal_there: float | None = None  # on the machine that goals were set on, instead of one that holds anywhere
    more_is_better: bool = False

    @property
    def times(self) -> float | None:
        return None if not self.floor else self.value / self.floor

    def goal_here(self, slowness: float) -> float | None:
        """The goal on a machine that takes so many times as long."""
        if self.goal_there is None:
            return self.goal
        return self.goal_there / slowness if self.more_is_better else self.goal_there * slowness

    def meets(self, goal: float) -> bool:
        return self.value >= goal if self.more_is_better else self.value <= goal

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def main() -> None:
    runs = {name: run for name in BENCHES if (run := newest(name)) is not None}
    before = json.loads(BEFORE.read_text())
    figures = [Figure(**one) for run in runs.values() for one in run["figures"]]
    slower = slowness(figures)
    columns = ["", "floor", "scrubjay", "× floor", "before", "× floor", "goal", "goal here", ""]
    report.table("All figures", columns, [row(one, before, slower) for one in figures], sources(runs))
    report.console.print(f"A bare search takes {slower:.2f} times as long here as where the goals were set.")


def slowness(figures: Iterable[Figure]) -> float:
    """How many times as long this machine takes as the one that goals were set on."""
    floors = [
        one.floor / FLOORS_THERE[one.name] for one in figures if one.floor is not None and one.name in FLOORS_THERE
    ]
    return fmean(floors) if floors else 1.0


def newest(bench: str) -> dict[str, Any] | None:
    found = sorted(report.RESULTS.glob(f"{bench}-*.json"))
    run: dict[str, Any] = json.loads(found[-1].read_text()) if found else {}
    return run if "figures" in run else None


def row(figure: Figure, before: Mapping[str, Mapping[str, float]], slowness: float) -> list[str]:
    was = before.get(figure.name, {})
    goal, here = figure.goal_there or figure.goal, figure.goal_here(slowness)
    return [
        f"{figure.name}, {figure.unit}",
        number(figure.floor),
        number(figure.value),
        number(figure.times),
        number(was.get("value")),
        number(was.get("times")),
        wanted(figure, goal),
        wanted(figure, here if figure.goal_there else None),
        outcome(figure, goal, here),
    ]


def wanted(figure: Figure, goal: float | None) -> str:
    return "" if goal is None else f"{'≥' if figure.more_is_better else '≤'} {number(goal)}"


def outcome(figure: Figure, goal: float | None, here: float | None) -> str:
    """Whether a figure meets its goal as it stands, or only what that is on a machine like this one."""
    if goal is None or here is None:
        return ""
    if figure.meets(goal):
        return "ok"
    return "ok here" if figure.meets(here) else "[red]missed[/red]"


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.2f}"


def sources(runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Where each comes from, and how busy the machine was."""
    told: Iterable[str] = (
        f"{name} {run['machine']['commit']} {run['machine']['at'][:16]} (load {run['machine']['load'][0]})"
        for name, run in runs.items()
    )
    return "; ".join(told)


if __name__ == "__main__":
    main()
