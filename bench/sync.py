"""What an incremental sync of a hundred changes costs among few memories and among many.

    python -m bench.sync [--memories 100000]

Processor time of a run, both ways, after a hundred memories were changed; among a thousand memories and among many. The
goal is that many cost at most twice as much: what is read is the change feed, not the memories.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.sentences import memories
from scrubjay.engine.engine import Engine
from scrubjay.engine.peers import StorePeer
from scrubjay.memory import NewMemory
from scrubjay.stores.sqlite import SqliteStore

CHANGES = 100
ROUNDS = 7
FEW = 1_000


def cost(count: int, folder: Path) -> dict[str, float]:
    """Milliseconds of processor time per run, by what was changed."""
    other = Engine(SqliteStore(folder / f"other{count}.db"), None)
    jay = Engine(
        SqliteStore(folder / f"jay{count}.db"),
        None,
        connect=lambda _url, _create: StorePeer(other._records, now=jay.now, user="local", owned=False),
        endpoints={"other": "other"},
    )
    with other, jay:
        ids = jay.store_many(NewMemory(content=f"{text} ({number})") for number, text in enumerate(memories(count)))
        jay.sync.run(destination="other")
        jay.sync.run(destination="other")
        taken: dict[str, list[float]] = {"edits": [], "new": [], "nothing": []}
        for round_number in range(ROUNDS):
            for step in range(CHANGES):
                jay.update(ids[(round_number * CHANGES + step * 7) % count], importance=step / 200 + round_number / 20)
            taken["edits"].append(run(jay))
            jay.store_many(NewMemory(content=f"New {round_number} {step}") for step in range(CHANGES))
            taken["new"].append(run(jay))
            run(jay)  # hears what the runs themselves have written
            taken["nothing"].append(run(jay))
        return {name: median(values) for name, values in taken.items()}


def run(jay: Engine) -> float:
    begun = time.process_time()
    jay.sync.run(destination="other")
    return (time.process_time() - begun) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    many = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        small, large = cost(FEW, Path(folder)), cost(many, Path(folder))
    for name in small:
        ratio = large[name] / small[name]
        print(
            f"incremental sync, {CHANGES if name != 'nothing' else 0} {name}: {small[name]:.1f} ms among {FEW:,}, "
            f"{large[name]:.1f} ms among {many:,}: {ratio:.2f} x"
        )


if __name__ == "__main__":
    main()
