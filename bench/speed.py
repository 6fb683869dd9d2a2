"""How fast and how small is it? Every figure beside its floor: the least a bare program needs, in the same run.

    python -m bench.speed           about five minutes; the first time two more to embed 10,000 sentences
    python -m bench.speed --quick   1,000 memories and few rounds: does it run at all?

Machines differ and are never idle, so the ratio counts: floor and subject take turns, processor time is compared.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import scrubjay
from bench import children, report, sentences, sizes
from bench.cached import CachedEmbedder, say
from bench.figures import Figure
from bench.floors import Floor
from bench.timing import WARM_UP, Compared, Step, in_turn
from scrubjay.dialects.memento import memento
from scrubjay.embedders.base import Embedder
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load

STORE_GOALS = {10_000: 1.6}  # times the floor, as those that follow
SEARCH_GOALS = {1_000: 1.4, 10_000: 1.5}
START_GOAL = 2.2
WORDS_GOAL = 8.0
FIRST_GOAL_MS = 1_000.0  # of a new server's first search, and of its first stored memory
RESIDENT_GOAL_MB = 250.0
FLEET = 10  # servers of one user: a window each
BARE_PACKAGES = ("apsw", "numpy", "onnxruntime")  # nobody does this with less

# The floor of a server at rest: the model has embedded a question, and the vectors are in memory.
LOADED = """
import numpy
from pathlib import Path
from scrubjay.embedders.catalogue import find
from scrubjay.embedders.local import LocalEmbedder
embedder = LocalEmbedder(find({model!r}), Path({models!r}))
embedder.embed_query("Where is the harbour?")
vectors = numpy.ones(({rows}, embedder.dimension), numpy.float32)
"""


@dataclass(frozen=True, slots=True)
class Rounds:
    calls: int
    starts: int


@dataclass(frozen=True, slots=True)
class Weight:
    """A size beside its floor, in megabytes."""

    name: str
    floor: float
    subject: float
    goal_mb: float | None = None

    def figure(self) -> Figure:
        return Figure(name=self.name, value=self.subject, unit="MB", floor=self.floor, goal=self.goal_mb)

    def figures(self) -> dict[str, Any]:
        met = None if self.goal_mb is None else self.subject <= self.goal_mb
        return {"floor_mb": self.floor, "scrubjay_mb": self.subject, "goal_mb": self.goal_mb, "met": met}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    counts = (1_000,) if options.quick else (1_000, 10_000)
    rounds = Rounds(calls=15, starts=5) if options.quick else Rounds(calls=options.rounds, starts=30)
    facts = report.machine()
    children.compile_package()
    model = LocalEmbedder(find(DEFAULT), load().models)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        homes = {count: filled_home(Path(folder) / str(count), count, model) for count in counts}
        compared: list[Compared] = []
        for count, home in homes.items():
            compared += calls(home, count, model, rounds.calls)
        compared += starts(homes[max(counts)], max(counts), rounds.starts)
        weights = [*memory(homes[max(counts)], max(counts)), *disk(homes)]
    installed = sizes.installation()
    least = sum(installed.get(name, 0.0) for name in BARE_PACKAGES)
    weights.append(Weight("installation", least, sum(installed.values())))
    print_compared(compared)
    print_weights(weights, installed)
    facts["load_after"] = [round(value, 2) for value in os.getloadavg()]
    summary = [
        *(one.figure() for one in compared if one.goal is not None),
        *(replace(one.figure(), goal=FIRST_GOAL_MS) for one in compared if one.name.startswith("first ")),
        *(one.figure() for one in weights),
    ]
    results = {
        "figures": [one.as_json() for one in summary],
        "times": {one.name: one.figures() for one in compared},
        "sizes": {one.name: one.figures() for one in weights},
        "packages_mb": installed,
    }
    report.console.print(f"\nWritten: {report.write('speed', results, facts)}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description="Measure speed and size.")
    parser.add_argument("--quick", action="store_true", help="1,000 memories and few rounds")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of each call")
    parser.add_argument("--folder", type=Path, help="where the stores are made; default: the temporary folder")
    return parser.parse_args(arguments)


# --- what is measured ------------------------------------------------------------------------------------------------


def filled_home(home: Path, count: int, model: Embedder) -> Path:
    """A home whose store holds made-up memories, with real vectors."""
    home.mkdir()
    cached = CachedEmbedder(model)
    texts = sentences.memories(count)
    cached.fill(texts, label="made-up memories")
    with scrubjay.open(home / "memories.db", embedder=cached) as jay:
        ids = jay.store_many(({"content": text} for text in texts), progress=lambda done: say(f"{done:,} stored"))
        with jay.records.writing() as tx:  # else what was stored in bulk is judged while others are measured
            for one in ids:
                tx.upkeep.end_judgement(one)
    say("")
    return home


@contextmanager
def opened(home: Path, count: int, model: Embedder) -> Iterator[tuple[Any, Floor]]:
    """A copy of the store and a bare program over the same texts and vectors, both with the real model."""
    texts = sentences.memories(count)
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        shutil.copy(home / "memories.db", Path(folder) / "memories.db")
        with (
            Floor(Path(folder), texts, CachedEmbedder(model).embed(texts)) as floor,
            scrubjay.open(Path(folder) / "memories.db", embedder=model) as jay,
        ):
            yield jay, floor


def calls(home: Path, count: int, model: Embedder, rounds: int) -> list[Compared]:
    """The library's verbs, then the same through the Memento dialect."""
    fresh = iter(sentences.memories(count + 8 * rounds + 100)[count:])
    asked = iter(sentences.questions(8 * rounds + 100))
    with opened(home, count, model) as (jay, floor):
        jay.search("Who plays the cello?")  # the vectors are read into memory

        def tool(name: str, arguments: dict[str, Any]) -> None:
            reply = memento.call(jay, name, arguments)
            if reply.failed or "degraded" in reply.body:
                raise RuntimeError(f"{name} failed: {reply.body}")

        def run(name: str, bare: Step, subject: Callable[[], object], goal: float | None = None) -> Compared:
            say(f"{name} at {count:,}")
            return in_turn(f"{name} at {count:,}", bare, lambda: subject() and None, rounds=rounds, goal=goal)

        def bare_store() -> tuple[float, float]:
            return floor.measure("store", next(fresh))

        def bare_search() -> tuple[float, float]:
            return floor.measure("search", next(asked))

        def bare_list() -> tuple[float, float]:
            return floor.measure("list")

        results = [
            run("search", bare_search, lambda: jay.search(next(asked)), SEARCH_GOALS.get(count)),
            run("store", bare_store, lambda: jay.store(next(fresh)), STORE_GOALS.get(count)),
            run("list", bare_list, lambda: jay.list(limit=10)),
            run("memento search_memories", bare_search, lambda: tool("search_memories", {"query": next(asked)})),
            run("memento store_memory", bare_store, lambda: tool("store_memory", {"content": next(fresh)})),
            run("memento list_recent_memories", bare_list, lambda: tool("list_recent_memories", {})),
        ]
        pairs = neighbours(jay, rounds + WARM_UP)
        bare_change = partial(floor.measure, "append", "one memory follows another " * 8)
        results.append(run("memento supersede_memory", bare_change, lambda: tool("supersede_memory", next(pairs))))
    say("")
    return results


def neighbours(jay: Any, count: int) -> Iterator[dict[str, str]]:
    """Pairs of memories to supersede one by the other, each memory in one pair."""
    ids = [memory.id for memory in jay.list(limit=2 * count)]
    return iter([{"old_memory_id": old, "new_memory_id": new} for new, old in zip(ids[::2], ids[1::2], strict=True)])


def starts(home: Path, count: int, rounds: int) -> list[Compared]:
    """Processes from nothing: the floor is an interpreter that does nothing at all."""
    bare = partial(children.run, children.BARE, home)
    model = [children.BARE[0], "-c", LOADED.format(model=DEFAULT, models=str(load().models), rows=count)]

    def greeted() -> tuple[float, float]:
        with children.Server(home) as server:
            server.open()
            return server.end()

    def first(tool: str, arguments: dict[str, Any]) -> tuple[float, float]:
        with children.Server(home) as server:
            server.open()
            server.call(tool, arguments)
            return server.end()

    first_search = partial(first, "search_memories", {"query": "Who plays the cello?"})
    first_store = partial(first, "store_memory", {"content": "The cello is in the cellar."})

    def command(*arguments: str) -> Callable[[], tuple[float, float]]:
        return partial(children.run, [*children.COMMAND, *arguments], home)

    few = max(3, rounds // 3)
    steps: list[tuple[str, Callable[[], tuple[float, float]], Callable[[], tuple[float, float]], int, float | None]] = [
        ("initialize + tools/list", bare, greeted, rounds, START_GOAL),
        (f"first search of a new server at {count:,}", partial(children.run, model, home), first_search, few, None),
        (
            f"first stored memory of a new server at {count:,}",
            partial(children.run, model, home),
            first_store,
            few,
            None,
        ),
        (f"scrubjay search --words at {count:,}", bare, command("search", "--words", "cello"), rounds, WORDS_GOAL),
        ("scrubjay --help", bare, command("--help"), few, None),
        ("import scrubjay", bare, partial(children.run, [children.BARE[0], "-c", "import scrubjay"], home), few, None),
    ]
    results = []
    for name, floor, subject, times, goal in steps:
        say(name)
        try:
            results.append(in_turn(name, floor, subject, rounds=times, goal=goal))
        except RuntimeError as error:
            report.console.print(f"not measured: {name}: {error}", style="red")
    say("")
    return results


def memory(home: Path, count: int) -> list[Weight]:
    """Servers at rest after their first search."""
    code = LOADED.format(model=DEFAULT, models=str(load().models), rows=count)
    floor = children.bare_memory(code, home)
    fleet = []
    try:
        for _ in range(FLEET):
            server = children.Server(home)
            fleet.append(server)
            server.open()
            server.call("search_memories", {"query": "Who plays the cello?"})
            if len(fleet) == 1:
                time.sleep(2.0)  # at rest
                alone = server.memory()
        time.sleep(2.0)
        shares = [server.memory() for server in fleet]
    finally:
        for server in fleet:
            server.end()
    together = sum(one["share"] for one in shares)
    return [
        Weight(f"resident, one server at {count:,}", floor["resident"], alone["resident"], RESIDENT_GOAL_MB),
        Weight(f"private, one of {FLEET} servers", floor["private"], shares[-1]["private"]),
        Weight(f"{FLEET} servers together", FLEET * floor["share"], together),
    ]


def disk(homes: dict[int, Path]) -> list[Weight]:
    """Store files; their floor is the texts and the vectors alone."""
    weights = []
    for count, home in homes.items():
        with scrubjay.open(home / "memories.db") as jay:  # a clean close leaves one file
            jay.list(limit=1)
        bytes_needed = sum(len(text.encode()) + 4 * find(DEFAULT).dimension for text in sentences.memories(count))
        weights.append(Weight(f"store file at {count:,}", bytes_needed / 1e6, sizes.store_file(home / "memories.db")))
    return weights


# --- tables ----------------------------------------------------------------------------------------------------------


def verdict(met: bool | None) -> str:
    return "" if met is None else "ok" if met else "[red]missed[/red]"


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f}"


def print_compared(compared: Sequence[Compared]) -> None:
    rows = []
    for one in compared:
        figures = one.figures()
        floor, subject = figures["floor"], figures["scrubjay"]
        rows.append([
            one.name, milliseconds(floor["cpu_median"]), milliseconds(subject["cpu_median"]),
            milliseconds(floor["cpu_min"]), milliseconds(subject["cpu_min"]), milliseconds(floor["wall_median"]),
            milliseconds(subject["wall_median"]), f"{one.wall_ratio:.2f}", f"{one.best_ratio:.2f}", f"{one.ratio:.2f}",
            "" if one.goal is None else f"≤ {one.goal}", verdict(figures["met"]),
        ])  # fmt: skip
    columns = ["ms", "floor cpu", "cpu", "floor min", "min", "floor wall", "wall", "×wall", "×min", "×cpu", "goal", ""]
    report.table("Times (medians, and minima of processor time)", columns, rows)


def print_weights(weights: Sequence[Weight], installed: dict[str, float]) -> None:
    rows = [
        [one.name, f"{one.floor:.1f}", f"{one.subject:.1f}", f"{one.subject / one.floor:.2f}",
         "" if one.goal_mb is None else f"≤ {one.goal_mb:.0f}", verdict(one.figures()["met"])]
        for one in weights
    ]  # fmt: skip
    largest = ", ".join(f"{name} {size:.1f}" for name, size in list(installed.items())[:6])
    report.table("Sizes", ["MB", "floor", "scrubjay", "×", "goal", ""], rows, f"Installation: {largest}, …")


if __name__ == "__main__":
    main()
