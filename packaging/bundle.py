"""Lays out an MCPB bundle: the manifest, and the source that `uv` installs where it is opened.

python packaging/bundle.py FOLDER        `make bundle` packs the folder with the format's own tool
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FILES = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")


def lay_out(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(PROJECT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for name in FILES:
        shutil.copy(PROJECT / name, folder / name)
    manifest = json.loads((PROJECT / "packaging" / "manifest.json").read_text())
    manifest["version"] = version()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def version() -> str:
    text = (PROJECT / "src" / "scrubjay" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
