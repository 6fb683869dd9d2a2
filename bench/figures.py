"""Every figure of the last run in one table, and the page of figures that is made of them.

    python -m bench.figures           the newest results of each bench beside what is kept; `make bench` ends with it
    python -m bench.figures --keep    keeps them in bench/figures.json and writes the tables of docs/lab/figures.md

A figure's floor is what a bare program needs for the same thing in the same run, so the ratio is what can be compared
between machines and days. The page's text is written by hand; what is between its markers comes from the kept results.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import report

BENCHES = ("speed", "large", "windows", "bulk", "postgres", "system", "decisions", "archive", "sync", "load")
KEPT = Path(__file__).with_name("figures.json")
PAGE = report.ROOT / "docs" / "lab" / "figures.md"
MARKED = re.compile(r"(<!-- results of ([a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLUMNS = ("", "floor", "scrubjay", "× floor", "before", "goal", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number, and what to compare it with. All in its unit."""

    name: str
    value: float
    unit: str = "ms"
    floor: float | None = None  # of a bare program
    goal: float | None = None
    goal_times: float | None = None  # of the floor, instead of a goal in the unit
    more_is_better: bool = False

    @property
    def times(self) -> float | None:
        return None if not self.floor else self.value / self.floor

    def meets_goal(self) -> bool | None:
        """Whether the goal is met; None if there is none."""
        value, goal = (self.times, self.goal_times) if self.goal_times is not None else (self.value, self.goal)
        if value is None or goal is None:
            return None
        return value >= goal if self.more_is_better else value <= goal

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__.partition("\n")[0])
    parser.add_argument("--keep", action="store_true", help="keep the newest results and write the page")
    keep = parser.parse_args(arguments).keep
    kept = json.loads(KEPT.read_text())
    runs = {bench: run for bench in BENCHES if (run := newest(bench)) is not None}
    before = {one["name"]: one["value"] for run in kept.values() for one in run.get("figures", ())}
    figures = [Figure(**one) for run in runs.values() for one in run.get("figures", ())]
    report.table("All figures", COLUMNS, [row(one, before) for one in figures], "; ".join(map(source, runs.values())))
    if keep:
        kept |= runs
        KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(PAGE.read_text(), kept))


def newest(bench: str) -> dict[str, Any] | None:
    """What is kept of the newest run of a bench: its figures, or else its tables."""
    found = sorted(report.RESULTS.glob(f"{bench}-*.json"))
    if not found:
        return None
    run = json.loads(found[-1].read_text())
    what = "figures" if "figures" in run else "tables"
    machine = {name: run["machine"][name] for name in ("commit", "at", "load", "processor", "cores")}
    return {"machine": machine, what: run[what]} if what in run else None


def row(figure: Figure, before: Mapping[str, float]) -> list[str]:
    met = figure.meets_goal()
    return [
        f"{figure.name}, {figure.unit}",
        number(figure.floor),
        number(figure.value),
        number(figure.times),
        number(before.get(figure.name)),
        wanted(figure),
        "" if met is None else "ok" if met else "[red]missed[/red]",
    ]


def wanted(figure: Figure) -> str:
    sign = "≥" if figure.more_is_better else "≤"
    if figure.goal_times is not None:
        return f"{sign} {number(figure.goal_times)} ×"
    return "" if figure.goal is None else f"{sign} {number(figure.goal)}"


def number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def page(text: str, kept: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with the kept results between its markers; a table of which nothing is kept stays as it is."""
    return MARKED.sub(
        lambda found: found[1] + results(kept[found[2]]) + found[3] if found[2] in kept else found[0], text
    )


def results(run: Mapping[str, Any]) -> str:
    """The tables of a run, in Markdown, and below them where they come from."""
    tables = run.get("tables") or [figure_table(run["figures"])]
    parts = []
    for one in tables:
        parts += [f"**{one['title']}**\n"] if one["title"] else []
        parts += [*map(markdown, (one["columns"], ["---"] * len(one["columns"]), *one["rows"])), ""]
    return "\n" + "\n".join(parts) + f"\n{source(run)}.\n\n"


def figure_table(given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The same columns as on the terminal, without what was before."""
    rows = [row(Figure(**one), {}) for one in given]
    place = COLUMNS.index("before")
    return {
        "title": "",
        "columns": [*COLUMNS[:place], *COLUMNS[place + 1 :]],
        "rows": [[report.plain(cell) for cell in (*one[:place], *one[place + 1 :])] for one in rows],
    }


def markdown(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def source(run: Mapping[str, Any]) -> str:
    """Where a run's figures come from, and how busy the machine was."""
    machine = run["machine"]
    return (
        f"Commit {machine['commit']}, {machine['at'][:10]}, {machine['cores']} cores at a load of {machine['load'][0]}"
    )


if __name__ == "__main__":
    main()
