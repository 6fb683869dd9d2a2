"""Who gets the write lock next, when one process writes without a pause."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from scrubjay.stores.sqlite.connections import WriteLock

pytestmark = pytest.mark.process

BUSY = """
import sys, time
from pathlib import Path
from scrubjay.stores.sqlite.connections import WriteLock

lock, count = WriteLock(Path(sys.argv[1])), Path(sys.argv[2])
while True:
    with lock.held(60):
        with count.open("ab") as file:
            file.write(b".")
        time.sleep(0.002)
"""


def test_a_process_that_writes_without_a_pause_lets_others_have_their_turn(tmp_path):
    """It used to take the lock again some hundred times before a process that waited found it free."""
    path, count = tmp_path / "memories.db.lock", tmp_path / "count"
    lock, held_meanwhile = WriteLock(path), []
    with subprocess.Popen([sys.executable, "-c", BUSY, path, count]) as busy:
        try:
            while not count.exists():
                time.sleep(0.01)
            for _ in range(40):
                before = count.stat().st_size
                with lock.held(60):
                    held_meanwhile.append(count.stat().st_size - before)
                time.sleep(0.01)
        finally:
            busy.kill()

    assert sorted(held_meanwhile)[20] <= 5
