"""A hundred thousand memories brought in at once: memory stays bounded, and a kill in the middle costs nothing.

A few hundred, killed, are in `test_kill.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.processes import Child
from tests.reliability.usage import MIB, usage
from tests.reliability.wholeness import checked

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc"),
    pytest.mark.process,
]
MEMORIES = 100_000
KILLS = 5


@pytest.mark.parametrize("job", ["take_in", "load"])
def test_however_many_come_in_the_process_does_not_grow_with_them(quick_path, job):
    """Looked at after a tenth of them and before the last; the index of a large store is made at the end."""
    resident: dict[int, int] = {}
    with Child(job, quick_path / "memories.db", MEMORIES) as child:
        while "finished" not in (said := child.hear(seconds=600)):
            if said["done"] >= MEMORIES // 10 * (len(resident) + 1):
                resident[said["done"]] = usage(child.process.pid).memory
        child.end()

    assert checked(quick_path / "memories.db").memories == MEMORIES
    early, late = (list(resident.values())[place] for place in (0, -1))
    print(f"{job}, {MEMORIES:,} memories: {early / MIB:.0f} MiB after a tenth, {late / MIB:.0f} MiB before the last")
    assert late < 1.25 * early + 20 * MIB


def test_an_import_killed_again_and_again_brings_every_memory_once(quick_path):
    path, done = quick_path / "memories.db", 0
    for number in range(KILLS):
        with Child("take_in", path, MEMORIES) as child:
            until = MEMORIES * (number + 1) // (KILLS + 1)
            while done < until:
                done = max(done, child.hear(seconds=600)["done"])
            child.kill()
            child.process.wait()
    with Child("take_in", path, MEMORIES) as child:
        told = [said["done"] for said in child.rest() if "done" in said]
        child.end()

    assert told[-1] == MEMORIES
    assert checked(path).memories == MEMORIES
    print(f"an import of {MEMORIES:,} killed {KILLS} times: every memory there, once")
