"""What lies on the disk: the store's file, and the packages of an installation."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from bench.children import PACKAGE
from bench.report import ROOT

NAME = re.compile(r"[A-Za-z0-9._-]+")


def installation() -> dict[str, float]:
    """Megabytes per package: ours, and all that it needs, bytecode included."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    sizes: dict[str, float] = {"scrubjay": tree(PACKAGE)}
    while wanted:
        requirement = wanted.pop()
        name = NAME.match(requirement)[0].lower().replace("_", "-")  # type: ignore[index]
        if name in sizes or "extra ==" in requirement:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system or version
            continue
        paths = {Path(str(file.locate())) for file in package.files or ()}
        sizes[name] = sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        wanted += package.requires or []
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def tree(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def store_file(path: Path) -> float:
    """Megabytes of a closed store."""
    return sum(each.stat().st_size for each in path.parent.glob(path.name + "*")) / 1e6
