"""Weights as they are without each of the everyday worlds, kept so that a benchmark need not fit anything."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "left_out.json"


def left_out(what: str, world: str) -> dict[str, Any] | None:
    """The weights of something that was fitted without a world, if they are kept."""
    found: dict[str, Any] | None = kept().get(what, {}).get(world)
    return found


def kept() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    return found


def keep(what: str, weights: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was fitted without each world; what else is kept stays."""
    all_kept = {**kept(), what: weights}
    FILE.write_text(json.dumps(all_kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
