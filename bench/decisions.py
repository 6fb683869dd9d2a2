"""Decisions: what the chain and the links cost a search, what a save costs beside a store, and the edge parser.

    python -m bench.decisions [--topics 2000] [--each 10]

The decisions that are already there have vectors drawn at random, as in `bench.system`; what is measured embeds with
the real model. Milliseconds of processor time, and the ratio to the same thing without decisions.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench import report
from bench.sentences import memories, questions
from bench.system import ROUNDS, RandomEmbedder, cost
from scrubjay.engine.decisions.mentions import edges_in
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.settings import load
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import State
from scrubjay.values.search import Filter, Query
from scrubjay.wiring import open_embedder

HOSTILE = {
    "keywords only": "builds_on:",
    "open lists": "synthesizes: [     ",
    "long lists": "synthesizes: decision_a_1_b , ",
    "stars": "**debates**:** ",
}


class StandIn(RandomEmbedder):
    """Quick vectors under the real model's name, so that the store takes both."""

    def __init__(self, fingerprint: str) -> None:
        super().__init__()
        self._fingerprint = fingerprint

    @property
    def fingerprint(self) -> str:
        return self._fingerprint


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.decisions", description=__doc__)
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--each", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = open_embedder(load())
        with engine_on(SqliteStore(Path(folder) / "memories.db"), StandIn(model.fingerprint)) as jay:
            fill(jay, given.topics, given.each)
        with engine_on(SqliteStore(Path(folder) / "memories.db"), model) as jay:
            rows = measured(jay, given.topics)
    report.table(
        f"{given.topics * given.each:,} decisions in {given.topics:,} topics, ms of processor time",
        ["", "ms", "beside", "ms", "ratio", "goal"],
        [[name, f"{ms:.1f}", beside, f"{floor:.1f}" if floor else "", f"{ms / floor:.2f}" if floor else "", goal]
         for name, ms, beside, floor, goal in rows],
    )  # fmt: skip
    report.write("decisions", {"rows": rows}, report.machine())


def fill(jay: Engine, topics: int, each: int) -> None:
    """Each topic's chain, every third decision naming the one before it in another topic."""
    texts = iter(memories(topics * each))
    previous = ""
    for round_ in range(each):
        batch = []
        for topic in range(topics):
            reasoning = f"builds_on: {previous}" if previous and topic % 3 == 0 else "It is the simplest that works."
            batch.append({"content": f"{next(texts)} ({round_})", "kind": "decision", "topic": f"topic_{topic}",
                          "detail": {"reasoning": reasoning}})  # fmt: skip
        ids = jay.store_many(batch)
        previous = ids[-1]
        print(f"  {(round_ + 1) * topics:,} saved", flush=True)


def measured(jay: Engine, topics: int) -> list[tuple[str, float, str, float, str]]:
    asked = list(questions(ROUNDS + 2))
    both = Filter(states=frozenset({State.ACTIVE, State.SUPERSEDED}))
    plain = cost(lambda n: jay.search(Query(text=asked[n], limit=10, filter=both)))
    shown = cost(lambda n: jay.decisions.search(asked[n], limit=10))
    new = list(memories(ROUNDS + 2))
    store = cost(lambda n: jay.store(f"{new[n]} Because it is the simplest that works."))
    save = cost(lambda n: jay.decisions.save(f"topic_{n % topics}", new[n], reasoning="It is the simplest that works."))
    rows = [
        ("search with chains and links", shown, "plain search", plain, "≤ 2"),
        ("save", save, "plain store", store, "≤ 1.5"),
    ]
    for name, piece in HOSTILE.items():
        text = "synthesizes: [" + piece * (100_000 // len(piece))
        rows.append((f"edges in 100 kB: {name}", cost(lambda _, text=text: edges_in(text)), "", 0.0, "≤ 50 ms"))
    return rows


if __name__ == "__main__":
    main()
