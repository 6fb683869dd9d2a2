"""The benchmark data: where it lies, and the loaders and metrics that come with it."""

from __future__ import annotations

import importlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from bench.report import ROOT

DEFAULT = Path(os.environ.get("BENCH_DATA") or ROOT.parent / "shared" / "datasets").expanduser()


def folder(given: str | None) -> Path:
    """The data's folder: given, named by BENCH_DATA, or beside the project."""
    path = (Path(given).expanduser() if given else DEFAULT).resolve()
    if not (path / "tools" / "datasets.py").is_file():
        sys.exit(
            f"The benchmark data is not at {path}.\n"
            "Needed: a folder with tools/datasets.py, tools/metrics.py and one folder per set with its dev.json.\n"
            "Name it with --data PATH or BENCH_DATA."
        )
    return path


def tools(path: Path) -> tuple[ModuleType, ModuleType]:
    """The modules `datasets` and `metrics` that lie beside the data: the protocol is theirs, not ours."""
    sys.path.insert(0, str(path / "tools"))
    datasets, metrics = importlib.import_module("datasets"), importlib.import_module("metrics")
    datasets.DEV = path
    return datasets, metrics


def moment(timestamp: str | None) -> datetime | None:
    """The sets write times without a zone; any one will do, as long as it is the same for all."""
    return None if timestamp is None else datetime.fromisoformat(timestamp).replace(tzinfo=UTC)
