"""What a run leaves behind: tables on the terminal, a JSON file in bench/results, and what machine it was."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

TABLES: list[dict[str, Any]] = []  # all that this run has printed

console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str | None = None) -> None:
    cells = [[str(cell) for cell in row] for row in rows]
    TABLES.append({"title": title, "columns": [*columns], "rows": [[plain(cell) for cell in row] for row in cells]})
    shown = Table(title=title, title_justify="left", caption=caption, caption_justify="left", title_style="bold")
    for number, name in enumerate(columns):
        shown.add_column(name, justify="left" if number == 0 else "right")
    for row in cells:
        shown.add_row(*row)
    console.print()
    console.print(shown)


def plain(cell: str) -> str:
    """A cell without the marks of its colour."""
    return Text.from_markup(cell).plain


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return {
        "system": platform.platform(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in ("apsw", "numpy", "onnxruntime", "mcp")},
        "load": [round(value, 2) for value in os.getloadavg()],
        "commit": commit(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str:
    try:
        ran = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return ran.stdout.strip()


def write(name: str, results: Mapping[str, Any], facts: Mapping[str, Any]) -> Path:
    """Keep the figures and the tables; only figures, never a text."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(
        json.dumps({"machine": facts, "tables": TABLES, **results}, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
    return path
