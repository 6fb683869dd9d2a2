"""How fast memories are taken in by the thousand, beside what two embedding threads alone reach.

    python -m bench.bulk [--memories 2000]

Then the same lines as `import --embed later` takes them in, per second of processor: ten times as many of them.

The floor embeds the same texts with the same two threads and does nothing else. Both take turns. On a machine that
others use, too, the share of processor time says more than that of time on the wall.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import scrubjay
from bench import report, sentences
from bench.figures import Figure
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.machine.paths import store_address
from scrubjay.settings import load
from scrubjay.wiring import open_engine

TURNS = 5
GOAL = 0.95
LINES = 5_000  # a second


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description="Measure bulk loading.")
    parser.add_argument("--memories", type=int, default=2_000)
    count = parser.parse_args(arguments).memories
    model = LocalEmbedder(find(DEFAULT), load().models)
    model.load()
    texts = sentences.memories(count)
    alone, stored, alone_cpu, stored_cpu = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(TURNS):
            begun, cpu = time.perf_counter(), time.process_time()
            for start in range(0, count, 64):
                model.embed(texts[start : start + 64])
            alone.append(count / (time.perf_counter() - begun))
            alone_cpu.append((time.process_time() - cpu) / count)
            with scrubjay.open(Path(folder) / f"{turn}.db", embedder=model) as jay:
                begun, cpu = time.perf_counter(), time.process_time()
                jay.store_many({"content": text} for text in texts)
                stored.append(count / (time.perf_counter() - begun))
                stored_cpu.append((time.process_time() - cpu) / count)
            model.load()
    share = max(stored) / max(alone)
    share_of_cpu = median(one / other for one, other in zip(alone_cpu, stored_cpu, strict=True))
    rows = [
        ["two embedding threads alone, texts/s", f"{max(alone):.0f}"],
        ["store_many, memories/s", f"{max(stored):.0f}"],
        ["share", f"{share:.2f}"],
        ["processor a text alone, ms", ", ".join(f"{1000 * one:.1f}" for one in alone_cpu)],
        ["processor a memory stored, ms", ", ".join(f"{1000 * one:.1f}" for one in stored_cpu)],
        ["share by processor time, median of the turns", f"{share_of_cpu:.2f}"],
        ["goal", f"≥ {GOAL}"],
    ]
    report.table(f"Bulk loading of {count:,} memories (best of {TURNS})", ["", ""], rows)
    shares: dict[str, Any] = {"share": share, "share_of_cpu": share_of_cpu, "goal": GOAL}
    figure = Figure(
        name="import, beside two threads that only embed",
        value=max(stored),
        unit="memories/s",
        floor=max(alone),
        goal=GOAL * max(alone),
        more_is_better=True,
    )
    later = lines_without_embedding(10 * count)
    report.table(
        f"Import of {10 * count:,} lines, embedded later", ["", ""], [["lines per processor second", f"{later:,.0f}"]]
    )
    lines = Figure(name="import, embedded later", value=later, unit="lines/s", goal_there=LINES, more_is_better=True)
    shares["figures"] = [figure.as_json(), lines.as_json()]
    report.write("bulk", {"alone": alone, "stored": stored, **shares}, report.machine())


def lines_without_embedding(count: int) -> float:
    lines = [json.dumps({"content": text}) for text in sentences.memories(count)]
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(load(), store=store_address(Path(folder) / "later.db"), home=Path(folder), embedder="none")
        with open_engine(settings) as jay:
            cpu = time.process_time()
            jay.import_from(map(json.loads, lines))
            return count / (time.process_time() - cpu)


if __name__ == "__main__":
    main()
