"""How fast memories are taken in by the thousand, beside what two embedding threads alone reach.

    python -m bench.bulk [--memories 2000]

Then lines as `import --embed later` takes them in, by the clock and per second of processor: ten times as many made-up
ones, which are short and share their words, and at most as many real ones of all lengths, if the data is there. By the
clock a second core helps: that figure needs a quiet machine.

The floor embeds the same texts with the same two threads and does nothing else. Both take turns. On a machine that
others use, too, the share of processor time says more than that of time on the wall.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import scrubjay
from bench import data, report, sentences
from bench.figures import Figure
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.machine.paths import store_address
from scrubjay.settings import load
from scrubjay.wiring import open_engine

TURNS = 5
GOAL = 0.95
LINES = 3_000  # a second
LATER = "import, embedded later"
REAL = ("locomo", "scifact")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bulk", description="Measure bulk loading.")
    parser.add_argument("--memories", type=int, default=2_000)
    parser.add_argument("--data", help="the benchmark data; by default BENCH_DATA, or beside the project")
    given = parser.parse_args(arguments)
    count = given.memories
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
        goal_times=GOAL,
        more_is_better=True,
    )
    imports = {LATER: taken_in(sentences.memories(10 * count))}
    if given.data or data.DEFAULT.is_dir():
        imports[f"{LATER}, real texts"] = taken_in(real_texts(data.folder(given.data))[: 10 * count])
    report.table(
        "Import, embedded later",
        ["", "lines", "characters each", "lines/s by the clock", "lines/s of processor"],
        [
            [name, f"{one.lines:,}", f"{one.length:.0f}", *map("{:,.0f}".format, one.rates)]
            for name, one in imports.items()
        ],
    )
    shares["figures"] = [figure.as_json(), *(one.as_json() for one in figures_of(imports))]
    report.write("bulk", {"alone": alone, "stored": stored, **shares}, report.machine())


class TakenIn(NamedTuple):
    """How fast some lines came in."""

    lines: int
    length: float  # characters a line
    clock: float  # lines a second
    processor: float  # lines a second

    @property
    def rates(self) -> tuple[float, float]:
        return self.clock, self.processor


def figures_of(imports: Mapping[str, TakenIn]) -> Iterator[Figure]:
    """The goal is one of short lines, by the clock."""
    for name, one in imports.items():
        goal = LINES if name == LATER else None
        yield Figure(name=f"{name}, by the clock", value=one.clock, unit="lines/s", goal=goal, more_is_better=True)
        yield Figure(name=name, value=one.processor, unit="lines/s of processor", more_is_better=True)


def taken_in(texts: Sequence[str]) -> TakenIn:
    lines = [json.dumps({"content": text}) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(load(), store=store_address(Path(folder) / "later.db"), home=Path(folder), embedder="none")
        with open_engine(settings) as jay:
            begun, cpu = time.perf_counter(), time.process_time()
            jay.transfer.import_from(map(json.loads, lines))
            clock, processor = time.perf_counter() - begun, time.process_time() - cpu
    return TakenIn(len(lines), sum(map(len, texts)) / len(texts), len(lines) / clock, len(lines) / processor)


def real_texts(path: Path) -> list[str]:
    """What people say, abstracts and everyday notes, each once, in no order of ours."""
    datasets, _ = data.tools(path)
    texts = [item.text for name in REAL for case in datasets.load(name).cases for item in case.items]
    for world in sorted((path / "everyday").glob("*.json")):
        texts += [memory["text"] for memory in json.loads(world.read_text(encoding="utf-8"))["memories"]]
    texts = [*dict.fromkeys(texts)]
    random.Random(21).shuffle(texts)
    return texts


if __name__ == "__main__":
    main()
