"""The wheel and the source archive, built as `make dist` builds them."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

PROJECT = Path(__file__).parents[2]
PARTS = (
    "src", "docs", "packaging", "tests/packaging",
    "pyproject.toml", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md",
)  # fmt: skip


def copy_sources(folder: Path) -> Path:
    """What a build reads, somewhere else and with other times."""
    for name in PARTS:
        source, target = PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(source, target, copy_function=shutil.copyfile, ignore=ignored)
        else:
            shutil.copyfile(source, target)
    return folder


def build_archives(project: Path, folder: Path, *targets: str) -> dict[str, Path]:
    """The files by their suffix, `whl` and `gz`."""
    flags = [flag for target in targets for flag in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *flags]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return {path.name.rpartition(".")[2]: path for path in folder.iterdir()}


@cache
def release() -> dict[str, Path]:
    """What `make dist` makes of this tree, built once for all tests."""
    return build_archives(PROJECT, kept_for_the_run("scrubjay-dist-"))


def kept_for_the_run(prefix: str) -> Path:
    """A temporary folder that all tests of this process share."""
    folder = Path(mkdtemp(prefix=prefix))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
