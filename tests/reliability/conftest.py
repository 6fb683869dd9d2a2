"""What the rounds share: chance that can be repeated, and folders on a disk that costs no time."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.servers.conftest import start  # noqa: F401 - a fixture

MEMORY_DISK = Path("/dev/shm")


@pytest.fixture
def chance() -> Random:
    """Random moments and texts. A failing test shows the seed that repeats them."""
    seed = int(os.environ.get("RELIABILITY_SEED") or secrets.randbelow(10**9))
    print(f"RELIABILITY_SEED={seed}")
    return Random(seed)


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: for facts that have nothing to do with how slow a disk syncs."""
    if not os.access(MEMORY_DISK, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="scrubjay-", dir=MEMORY_DISK))
    yield folder
    shutil.rmtree(folder)
