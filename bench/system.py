"""The system dialect's verbs at a hundred thousand memories.

    python -m bench.system [--memories 100000]

Vectors are drawn at random: what is measured is everything around the model. Each figure is milliseconds of processor
time, and beside it what it is compared with: a plain search, or a store without embedding.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from zlib import crc32

import numpy as np

from bench import report
from bench.sentences import memories, questions
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.statistics import Granularity, StatsQuery
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import AccessLevel, Category, NewMemory
from scrubjay.values.search import Filter, Order, Query, Weights

ROUNDS = 15
START = datetime(2026, 1, 1, tzinfo=UTC)


class RandomEmbedder(HashingEmbedder):
    """A unit vector drawn from the text's checksum: as large as a real one, and free."""

    def embed(self, texts):  # type: ignore[no-untyped-def]
        return [drawn(text) for text in texts]

    def embed_query(self, text):  # type: ignore[no-untyped-def]
        return drawn(text)


def drawn(text: str) -> np.ndarray:
    vector = np.random.default_rng(crc32(text.encode())).standard_normal(384).astype(np.float32)
    return vector / np.linalg.norm(vector)


def filled(jay: Engine, count: int) -> None:
    def made() -> Sequence[NewMemory]:
        for number, text in enumerate(memories(count)):
            yield NewMemory(
                content=f"{text} ({number})",
                category=list(Category)[number % 9],
                tags=(f"tag{number % 50}",),
                importance=(number % 101) / 100,
                user_id=f"user{number % 20}",
                conversation_id=f"c{number % 1000}",
                created_at=START + timedelta(minutes=number % 400_000),
                access_level=AccessLevel.SHARED,
            )

    jay.store_many(made(), progress=lambda done: done % 9_984 or print(f"  {done:,} stored", flush=True))


def cost(work: Callable[[int], object]) -> float:
    """Milliseconds of processor time, the median of some rounds."""
    taken = []
    for number in range(ROUNDS + 2):
        begun = time.process_time()
        work(number)
        taken.append((time.process_time() - begun) * 1000)
    return median(taken[2:])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.system", description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    count = parser.parse_args().memories
    with tempfile.TemporaryDirectory() as folder:
        with engine_on(SqliteStore(Path(folder) / "memories.db"), RandomEmbedder()) as jay:
            filled(jay, count)
        with engine_on(SqliteStore(Path(folder) / "memories.db"), RandomEmbedder()) as jay:
            rows = measured(jay, count)
    report.table(
        f"{count:,} memories, ms of processor time",
        ["", "ms", "beside", "ms", "ratio", "goal"],
        [[name, f"{ms:.1f}", beside, f"{floor:.1f}" if floor else "", f"{ms / floor:.2f}" if floor else "", goal]
         for name, ms, beside, floor, goal in rows],
    )  # fmt: skip
    report.write("system", {"rows": rows}, report.machine())


def measured(jay: Engine, count: int) -> list[tuple[str, float, str, float, str]]:
    asked = list(questions(ROUNDS + 2))
    every = Filter(
        categories=frozenset(list(Category)[:5]),
        tags=frozenset(f"tag{number}" for number in range(25)),
        created_since=START,
        created_until=START + timedelta(days=200),
        min_importance=0.2,
        access_levels=frozenset({AccessLevel.SHARED}),
    )
    plain = cost(lambda n: jay.search(Query(text=asked[n], limit=10)))
    recall = cost(lambda n: jay.search(Query(text=asked[n], limit=10, filter=every, weights=Weights())))
    rows = [("recall with all filters", recall, "plain search", plain, "≤ 2")]
    for order in Order:
        for descending in (True, False):
            listed = cost(lambda _, o=order, d=descending: jay.list(order=o, descending=d, limit=20, counted=True))
            rows.append((f"list by {order} {'down' if descending else 'up'}", listed, "", 0.0, "≤ 50 ms"))
    stats = cost(lambda _: jay.statistics(StatsQuery(trends=Granularity.DAY)))
    rows.append(("statistics with a trend by day", stats, "", 0.0, "≤ 50 ms"))
    bare = engine_on(jay.records, None)
    store = cost(lambda n: bare.store(f"A new thing number {n} of {count}"))
    ids = [memory.id for memory in jay.list(limit=3 * ROUNDS)]
    update = cost(lambda n: jay.update(ids[n], importance=(n % 10) / 10))
    forget = cost(lambda n: jay.forget(ids[n + ROUNDS + 2]))
    rows.append(("update", update, "store without embedding", store, "≤ 1.5"))
    rows.append(("forget", forget, "store without embedding", store, "≤ 1.5"))
    return rows


if __name__ == "__main__":
    main()
