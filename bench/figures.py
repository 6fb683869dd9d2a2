"""Every figure of the last run in one table: beside its floor, beside what it was before, beside its goal.

    python -m bench.figures         the newest results of each bench; `make bench` runs them all, then this

A figure's floor is what a bare program needs for the same thing in the same run, so the ratio is what can be compared
between machines and days. What figures were before is in before.json, as measured then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import report

BENCHES = ("large", "speed", "bulk", "postgres")  # those whose results have figures
BEFORE = Path(__file__).with_name("before.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and what to compare it with. All in its unit."""

    name: str
    value: float
    unit: str = "ms"
    floor: float | None = None  # of a bare program
    goal: float | None = None
    more_is_better: bool = False

    @property
    def times(self) -> float | None:
        return None if not self.floor else self.value / self.floor

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.more_is_better else self.value <= self.goal

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def main() -> None:
    runs = {name: run for name in BENCHES if (run := newest(name)) is not None}
    before = json.loads(BEFORE.read_text())
    rows = [row(Figure(**one), before) for run in runs.values() for one in run["figures"]]
    columns = ["", "floor", "scrubjay", "× floor", "before", "× floor", "goal", ""]
    report.table("All figures", columns, rows, sources(runs))


def newest(bench: str) -> dict[str, Any] | None:
    found = sorted(report.RESULTS.glob(f"{bench}-*.json"))
    run: dict[str, Any] = json.loads(found[-1].read_text()) if found else {}
    return run if "figures" in run else None


def row(figure: Figure, before: Mapping[str, Mapping[str, float]]) -> list[str]:
    was = before.get(figure.name, {})
    relation = "≥" if figure.more_is_better else "≤"
    return [
        f"{figure.name}, {figure.unit}",
        number(figure.floor),
        number(figure.value),
        number(figure.times),
        number(was.get("value")),
        number(was.get("times")),
        "" if figure.goal is None else f"{relation} {number(figure.goal)}",
        "" if figure.met is None else "ok" if figure.met else "[red]missed[/red]",
    ]


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
