"""Weights as they are without each of the everyday worlds, kept so that a benchmark need not fit anything."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "left_out.json"


def left_out(what: str, world: str) -> dict[str, Any]:
    """The weights of something that was fitted without a world."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))[what][world]
    return found


def keep(what: str, weights: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was fitted without each world; what else is kept stays."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    kept[what] = weights
    FILE.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
