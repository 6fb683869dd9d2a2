"""Where a search or a store spends its processor time, by function or by line.

    python -m bench.profile                            a search over 1,000 and 10,000 memories
    python -m bench.profile --memories 100000          … over others; made once with --folder
    python -m bench.profile --store                    a store instead
    python -m bench.profile --lines ranking.py         the lines of the files whose names end so

Functions are counted by cProfile, whose own cost makes small functions look dearer than they are: read shares, not
milliseconds. Lines are sampled (the line that runs each time a timer of processor time rings), which costs nothing
else. The model is not part of it, vectors are mixed from real ones (bench.large); what it still takes to ask another
thread for one is said beside the median of a call.
"""

# ruff: noqa: A005 -- within this package nothing else is called so

from __future__ import annotations

import argparse
import cProfile
import linecache
import pstats
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from types import FrameType

import scrubjay
from bench import report, sentences
from bench.large import MixedEmbedder, filled
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Query

ROOT = str(Path(scrubjay.__file__).parent)
ROUNDS = 300
TICK = 0.0005  # seconds of processor between two samples; the system may make it longer


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description="Where the time goes.")
    parser.add_argument("--memories", type=int, action="append", help="how many; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where stores are made, and kept for the next time")
    parser.add_argument("--store", action="store_true", help="profile a store instead of a search")
    parser.add_argument("--lines", metavar="FILE", help="sample lines of the files whose names end so")
    options = parser.parse_args(arguments)
    embedder = MixedEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        for count in options.memories or [1_000, 10_000]:
            home = filled(options.folder or Path(folder), count, embedder)
            with engine_on(SqliteStore(home / "memories.db"), embedder) as jay:
                work = storing(jay, options.rounds) if options.store else searching(jay, options.rounds)
                for number in range(3):
                    work(number)
                asking = plain(embedding(jay, options.rounds), options.rounds)
                call = f"{plain(work, options.rounds):.2f} ms a call, {asking:.2f} of it to ask for a vector"
                report.console.print(f"\n[bold]{count:,} memories[/bold]: {call}")
                show = lines if options.lines else functions
                show(work, options.rounds, options.lines)


def searching(jay: Engine, rounds: int) -> Callable[[int], object]:
    asked = sentences.questions(rounds + 3)
    return lambda number: jay.search(Query(text=asked[number], limit=10))


def embedding(jay: Engine, rounds: int) -> Callable[[int], object]:
    asked = sentences.questions(rounds + 3)
    return lambda number: jay.parts.embedding.query(asked[number])


def storing(jay: Engine, rounds: int) -> Callable[[int], object]:
    fresh = sentences.memories(30_000 + rounds + 3)[30_000:]
    return lambda number: jay.store(f"{fresh[number]} {time.time_ns()}")


def plain(work: Callable[[int], object], rounds: int) -> float:
    taken = []
    for number in range(3, rounds + 3):
        begun = time.process_time()
        work(number)
        taken.append((time.process_time() - begun) * 1000)
    return median(taken)


def functions(work: Callable[[int], object], rounds: int, _: str | None) -> None:
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for number in range(3, rounds + 3):
        work(number)
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    whole = sum(own for _, _, own, _, _ in stats.values())
    ordered = sorted(stats.items(), key=lambda item: -item[1][2])[:30]
    rows = [
        [f"{own / whole:.1%}", f"{within / whole:.1%}", f"{calls / rounds:.1f}", named(file, line, name)]
        for (file, line, name), (_, calls, own, within, _) in ordered
    ]
    report.table("Functions", ["own", "with callees", "calls", "function"], rows)


def named(file: str, line: int, name: str) -> str:
    return f"{file.removeprefix(ROOT).lstrip('/')}:{line} {name}" if line else name


def lines(work: Callable[[int], object], rounds: int, wanted: str | None) -> None:
    seen: Counter[tuple[str, int]] = Counter()
    ticks = 0

    def sample(_: int, frame: FrameType | None) -> None:
        nonlocal ticks
        ticks += 1
        while frame is not None:
            if frame.f_code.co_filename.startswith(ROOT) and frame.f_code.co_filename.endswith(wanted or ""):
                seen[frame.f_code.co_filename, frame.f_lineno] += 1
                return
            frame = frame.f_back

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
    try:
        for _ in range(4):
            for number in range(3, rounds + 3):
                work(number)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    rows = [
        [f"{count / max(ticks, 1):.1%}", named(file, line, linecache.getline(file, line).strip()[:90])]
        for (file, line), count in seen.most_common(40)
    ]
    report.table(f"Lines of *{wanted}, {ticks} samples", ["share", "line"], rows)


if __name__ == "__main__":
    main()
