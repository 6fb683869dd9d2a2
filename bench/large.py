"""Large stores: what a search costs when there is much to search, and whether it still finds the right things.

    python -m bench.large                       10,000 and 100,000 memories, some minutes
    python -m bench.large --memories 1000000    a quarter of an hour of one core and 9 GB of disk the first time

Texts are made up; past 10,000 they repeat, with numbers of their own (grown.py). Their vectors are mixed from those of
10,000 sentences that the real model has embedded, so that they lie as real ones do; embedding a hundred thousand texts
would measure the model. Times are milliseconds of processor, medians, of everything but embedding the question; the
floor is bare vec1 and bare FTS5 over the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import isqrt
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

import apsw
import apsw.sqlite_extra
import numpy as np

from bench import children, report, sentences
from bench.cached import CachedEmbedder, say
from bench.grown import grow
from scrubjay.embedders.base import Embedder, Vector
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.settings import load
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import LOOKED_THROUGH
from scrubjay.values.memory import AccessLevel, Audience, Category, Filter, NewMemory, Query, Scope, Sight
from scrubjay.values.words import query_words

ROUNDS = 40
QUESTIONS = 200  # for recall
STORED = 10_000  # memories that are stored one by one
START = datetime(2026, 1, 1, tzinfo=UTC)
EVERYONE = Audience("", (Scope(None, Sight.ALL),))
GOALS = {100_000: {"whole": 12.0, "scope": 4.0, "recall": 0.98}, 1_000_000: {"whole": 25.0, "recall": 0.97}}


class MixedEmbedder(Embedder):
    """Vectors mixed from real ones by a text's checksum: nothing has to be embedded, and they lie as real ones do."""

    name = "mixed"

    def __init__(self) -> None:
        real = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models))
        texts = sentences.memories(10_000)
        real.fill(texts, label="sentences to mix from")
        self._real = np.stack(real.embed(texts))
        self._mean = self._real.mean(axis=0)
        self.calibration = real.calibration
        self.dimension = real.dimension

    @property
    def fingerprint(self) -> str:
        return "mixed-1"

    def split(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        chance = np.random.default_rng(crc32(text.encode()))
        one, other, third = self._real[chance.integers(0, len(self._real), 3)]
        mixed = 0.75 * one + 0.25 * other + 0.35 * (third - self._mean)
        mixed += 0.01 * chance.standard_normal(self.dimension).astype(np.float32)
        return (mixed / np.linalg.norm(mixed)).astype(np.float32)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.large", description="Measure large stores.")
    parser.add_argument("--memories", type=int, action="append", help="how many; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where stores are made, and kept for the next time")
    options = parser.parse_args(arguments)
    counts = options.memories or [10_000, 100_000]
    facts, embedder = report.machine(), MixedEmbedder()
    children.compile_package()
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            home = filled(options.folder or Path(folder), count, embedder)
            results[f"{count:,}"] = measured(home, count, embedder, options.rounds)
    rows = [
        [name, *(shown(results[f"{count:,}"].get(name)) for count in counts)] for name in results[f"{counts[-1]:,}"]
    ]
    report.table("Large stores", ["", *(f"{count:,}" for count in counts)], rows)
    facts["load_after"] = [round(value, 2) for value in os.getloadavg()]
    report.console.print(f"\nWritten: {report.write('large', results, facts)}")


def shown(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


# --- filling ---------------------------------------------------------------------------------------------------------


def memories_of(count: int) -> Iterator[NewMemory]:
    for number, text in enumerate(sentences.memories(count)):
        yield NewMemory(
            content=text,
            category=list(Category)[number % 9],
            tags=(f"tag{number % 50}", *(("rare",) if number % 1000 == 1 else ())),
            importance=(number % 101) / 100,
            user_id=f"user{number % 100}",
            conversation_id=f"c{number % 500}",
            created_at=START + timedelta(minutes=number),
            access_level=AccessLevel.SHARED if number % 4 else AccessLevel.PRIVATE,
        )


def filled(folder: Path, count: int, embedder: Embedder) -> Path:
    """A home with so many memories, a hundredth of them in a space of their own; most are copies of the first ones."""
    home = folder / f"large-{count}"
    if (home / "memories.db").exists():
        return home
    draft = folder / f"large-{count}.draft"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    with engine_on(SqliteStore(draft / "memories.db"), embedder) as jay:
        jay.create_space("project")
        project = jay.bound_to(spaces=("project",))
        given = list(memories_of(min(count, STORED)))
        project.store_many(given[: len(given) // 100])
        jay.store_many(given[len(given) // 100 :])
    grow(draft / "memories.db", count, embedder)
    say("")
    draft.rename(home)
    return home


# --- measuring -------------------------------------------------------------------------------------------------------


def measured(home: Path, count: int, embedder: Embedder, rounds: int) -> dict[str, Any]:
    path = home / "memories.db"
    figures: dict[str, Any] = {"store file, MB": sum(file.stat().st_size for file in home.iterdir()) / 1e6}
    figures |= opening(path)
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        copy = Path(folder) / "memories.db"
        shutil.copy(path, copy)
        with engine_on(SqliteStore(copy), embedder) as jay:
            figures |= searches(jay, rounds)
            figures |= recalls(jay, copy, embedder)
            figures |= floors(copy, embedder, rounds)
            figures |= stores(jay, rounds)
        figures["resident of a searching process, MB"] = resident(copy)
    for name, goal in GOALS.get(count, {}).items():
        figures[f"goal: {name}"] = goal
    return figures


def cost(work: Callable[[int], object], rounds: int) -> float:
    taken = []
    for number in range(rounds + 3):
        begun = time.process_time()
        work(number)
        taken.append((time.process_time() - begun) * 1000)
    return median(taken[3:])


def searches(jay: Engine, rounds: int) -> dict[str, float]:
    asked = sentences.questions(rounds + 3)
    project = jay.bound_to(spaces=("project",))
    vectors = cost(lambda n: jay.parts.embedding.embedder.embed_query(asked[n]), rounds)  # type: ignore[union-attr]

    def search(filter: Filter, engine: Engine = jay) -> float:
        return cost(lambda n: engine.search(Query(text=asked[n], limit=10, filter=filter)), rounds) - vectors

    scopes = {
        "search, whole store, ms": Filter(),
        "search, one of 100 users, ms": Filter(user_id="user17"),
        "search, one category and half the importance, ms": Filter(
            categories=frozenset({Category.GOAL}), min_importance=0.5
        ),
        "search, one of 50 tags, ms": Filter(tags=frozenset({"tag7"})),
        "search, a rare tag, ms": Filter(tags=frozenset({"rare"})),
        "search, one conversation, ms": Filter(conversation_id="c7"),
    }
    figures = {name: search(filter) for name, filter in scopes.items()}
    figures["search, a space with 1 %, ms"] = search(Filter(), project)
    return figures


def stores(jay: Engine, rounds: int) -> dict[str, float]:
    fresh = sentences.memories(20_000 + rounds + 3)[20_000:]
    return {"store with made vectors, ms": cost(lambda n: jay.store(fresh[n]), rounds)}


def recalls(jay: Engine, path: Path, embedder: Embedder) -> dict[str, float]:
    """Of the ten nearest the share that is found, against comparing with every vector."""
    store = jay.records
    asked = [embedder.embed_query(question) for question in sentences.questions(QUESTIONS)]
    with apsw.Connection(str(path)) as con:
        rows = con.execute(
            """
            SELECT memories.id, memories.user, memories.category, memories.importance, vectors.vector
            FROM memories CROSS JOIN vectors ON vectors.memory = memories.seq
            """
        ).fetchall()
        [(user,)] = con.execute("SELECT number FROM names WHERE name = 'user17'")
    ids = np.array([row[0] for row in rows], np.object_)
    matrix = np.frombuffer(b"".join(row[4] for row in rows), np.float32).reshape(len(rows), -1)
    scopes = {
        "recall@10, whole store": (Filter(), np.ones(len(rows), np.bool_)),
        "recall@10, one of 100 users": (Filter(user_id="user17"), np.array([row[1] == user for row in rows])),
        "recall@10, category and importance": (
            Filter(categories=frozenset({Category.GOAL}), min_importance=0.5),
            np.array([row[2] == Category.GOAL and row[3] >= 0.5 for row in rows]),
        ),
    }
    figures = {}
    for name, (filter, mask) in scopes.items():
        found = 0
        scope = np.flatnonzero(mask)
        for vector in asked:
            best = scope[np.argsort(-np.vecdot(matrix[scope], vector))[:10]]
            near = store.nearest(vector, filter, EVERYONE, now=START + timedelta(days=3650), limit=10)
            found += len(set(ids[best]) & {match.memory for match in near})
        figures[name] = found / (10 * len(asked))
    return figures


def floors(path: Path, embedder: Embedder, rounds: int) -> dict[str, float]:
    """What bare vec1 and bare FTS5 need for the same question, in the same file."""
    asked = sentences.questions(rounds + 3)
    vectors = [embedder.embed_query(question).tobytes() for question in asked]
    with apsw.Connection(str(path)) as con:
        con.pragma("cache_size", -8 * 1024)
        ready = vec1.tables(con, "ready")
        if not ready:
            return {}
        vec1.able(con)
        name = ready[0].name
        options = json.dumps({"k": 300, "nprobe": LOOKED_THROUGH * isqrt(ready[0].buckets)})
        [(rows,)] = con.execute("SELECT count(*) FROM words_docsize")
        common = {
            term for (term,) in con.execute("SELECT term FROM vocabulary WHERE col = 'text' AND doc > ?", (rows / 10,))
        }
        words = [
            " OR ".join(f'"{word}"' for word in query_words(question) if word.lower() not in common) or '"nothing"'
            for question in asked
        ]
        return {
            "floor: bare vec1, 300 rescored, ms": cost(
                lambda n: con.execute(
                    f"""
                    SELECT rowid, vec1_cos_distance(?1, vector) FROM {name}(?1, ?2)
                    ORDER BY 2 LIMIT 200
                    """,
                    (vectors[n], options),
                ).fetchall(),
                rounds,
            ),
            "floor: bare FTS5, ms": cost(
                lambda n: con.execute(
                    "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY 2 LIMIT 200", (words[n],)
                ).fetchall(),
                rounds,
            ),
        }


def opening(path: Path) -> dict[str, float]:
    def opened(_: int) -> None:
        store = SqliteStore(path)
        store.list(Filter(), EVERYONE, now=START, limit=1)
        store.close()

    wall = []
    for number in range(5):
        begun = time.perf_counter()
        opened(number)
        wall.append((time.perf_counter() - begun) * 1000)
    return {"open the store, ms": cost(opened, 5), "open the store, wall ms": median(wall)}


RESIDENT = """
import sys, numpy as np
from pathlib import Path
from scrubjay.engine.engine import Engine
from scrubjay.values.memory import Filter, Audience, Scope, Sight
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.times import utc_now
store = SqliteStore(Path(sys.argv[1]))
chance = np.random.default_rng(1)
everyone = Audience("", (Scope(None, Sight.ALL),))
for _ in range(20):
    vector = chance.standard_normal(384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    store.nearest(vector, Filter(), everyone, now=utc_now(), limit=200)
    store.match("Who plays the cello in the harbour?", Filter(), everyone, now=utc_now(), limit=200)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")][0])
"""


def resident(path: Path) -> float:
    """Of a process that searches by meaning and by words, without a model."""
    done = subprocess.run([sys.executable, "-c", RESIDENT, str(path)], capture_output=True, check=True)
    return int(done.stdout) / 1024


if __name__ == "__main__":
    main()
