"""Cold storage: what archiving frees, and what a restore costs.

    python -m bench.archive [--memories 10000]

Vectors are drawn at random: what is measured is everything around the model. Bytes are those of pages on the disk
after VACUUM, so room between rows counts; an empty store's are taken off.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import apsw

from bench import report
from bench.sentences import memories
from bench.system import RandomEmbedder
from scrubjay.archives.folder import FolderObjects
from scrubjay.engine.archive.archiving import Criteria, Terms
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Tier

ROUNDS = 30
HOT = ("memories", "words", "vectors", "versions", "tags", "pending", "sqlite_autoindex_memories")  # names begin so


def opened(folder: Path) -> Engine:
    return engine_on(SqliteStore(folder / "memories.db"), RandomEmbedder(), archive=FolderObjects(folder / "archive"))


def on_disk(folder: Path) -> tuple[int, int]:
    """Bytes of the hot tables with their indexes, and of the whole file, after VACUUM."""
    con = apsw.Connection(str(folder / "memories.db"))
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    con.execute("VACUUM")
    con.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sizes = dict(con.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    con.close()
    hot = sum(size for name, size in sizes.items() if str(name).startswith(HOT))
    return hot, (folder / "memories.db").stat().st_size


def measured(tier: Tier, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        opened(folder).close()
        empty = on_disk(folder)
        with opened(folder) as jay:
            jay.store_many({"content": text, "importance": 0.5} for text in memories(count))
        before = on_disk(folder)
        with opened(folder) as jay:
            begun = time.process_time()
            done = jay.cold_storage.archive_matching(Criteria(below_importance=1.0), Terms(tier=tier))
            spent = time.process_time() - begun
        after = on_disk(folder)
        assert len(done.memories) == count
        with opened(folder) as jay:
            cpu, wall = restores(jay, [one.memory for one in done.memories[: ROUNDS + 3]])
    return {
        "hot bytes each": (before[0] - empty[0]) / count,
        "hot left each": (after[0] - empty[0]) / count,
        "hot freed": 1 - (after[0] - empty[0]) / (before[0] - empty[0]),
        "file freed": 1 - (after[1] - empty[1]) / (before[1] - empty[1]),
        "packed each": sum(one.packed_bytes for one in done.memories) / count,
        "archive ms": spent * 1000 / count,
        "restore ms": cpu,
        "restore wall ms": wall,
    }


def restores(jay: Engine, ids: list[str]) -> tuple[float, float]:
    cpu, wall = [], []
    for one in ids:
        begun = time.process_time(), time.perf_counter()
        jay.cold_storage.restore([one])
        cpu.append((time.process_time() - begun[0]) * 1000)
        wall.append((time.perf_counter() - begun[1]) * 1000)
    return median(cpu[3:]), median(wall[3:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.archive", description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--tier", choices=[str(tier) for tier in Tier], action="append")
    arguments = parser.parse_args()
    tiers = [Tier(tier) for tier in arguments.tier or (Tier.COLD, Tier.GLACIER)]
    results = {str(tier): measured(tier, arguments.memories) for tier in tiers}
    names = list(next(iter(results.values())))
    report.table(
        f"{arguments.memories:,} memories archived",
        ["", *results],
        [[name, *(f"{figures[name]:.3f}" for figures in results.values())] for name in names],
        caption="goals: hot freed 0.8, restore 20 ms",
    )
    report.write("archive", results, report.machine())


if __name__ == "__main__":
    main()
