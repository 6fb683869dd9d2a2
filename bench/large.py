"""Large stores: what a search costs when there is much to search, and whether it still finds the right things.

    python -m bench.large                       1,000, 10,000 and 100,000 memories, some minutes
    python -m bench.large --memories 1000000    a quarter of an hour of one core and 9 GB of disk the first time

Texts are made up; past 10,000 they repeat, with numbers of their own (grown.py). Their vectors are mixed from those of
10,000 sentences that the real model has embedded, so that they lie as real ones do; embedding a hundred thousand texts
would measure the model. Times are milliseconds of processor, medians, of everything but embedding: what it takes to ask
for a question's vector, which another thread has ready, is measured in the same run and taken off. The floor of a
search is bare FTS5 and a comparison with every vector, or bare vec1 where the store has an index; of a filtered one the
same over the memories that the filter admits, as if nothing else were there; of a store the comparison and a synced
append.

Of a store the judge of conflicts is counted apart: the time inside its verdicts (`Judge.promising`: what kind of fact
each neighbour is; `Judge.judged`: reading the texts, features, weights), taken while the very same stores run. Finding
the neighbours, those by names among them, and fetching their texts stays with the store.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import isqrt
from pathlib import Path
from statistics import median
from typing import Any, TypeVar
from zlib import crc32

import apsw
import apsw.sqlite_extra
import numpy as np

from bench import children, report, sentences
from bench.cached import CachedEmbedder, say
from bench.figures import Figure
from bench.floors import BareProgram
from bench.grown import grow
from scrubjay.embedders.base import Embedder, Vector
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.engine.conflicts.differences import Kinds
from scrubjay.engine.conflicts.judge import Judge, Judged
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.settings import load
from scrubjay.stores.promises.memories import Store
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.stores.sqlite.vectors import LOOKED_THROUGH
from scrubjay.stores.sqlite.vectors import matrix as as_matrix
from scrubjay.text.words import query_words
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, NewMemory
from scrubjay.values.search import Filter, Query

Verdict = TypeVar("Verdict")

ROUNDS = 40
QUESTIONS = 200  # for recall
QUESTIONS_KEPT = 1_000  # whose vectors are mixed once
PAGE = 1_000
STORED = 10_000  # memories that are stored one by one
START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=3650)
EVERYONE = Audience("", (Scope(None, Sight.ALL),))
PROJECT = Audience("", (Scope("project", Sight.ALL),))
SEARCH_GOALS = {1_000_000: 60.0}  # ms
SCOPE_GOALS = {100_000: 10.0}  # ms
FILE_GOAL = 1.8  # times texts and vectors
RECALL_GOAL = 0.99
RESIDENT_GOALS = {1_000_000: 400.0}  # MB
SCOPES = {
    "one of 100 users": Filter(user_id="user17"),
    "one of 50 tags": Filter(tags=frozenset({"tag7"})),
    "one conversation": Filter(conversation_id="c7"),
    "a space with 1 %": Filter(),  # asked there
    "a rare tag": Filter(tags=frozenset({"rare"})),
    "one category and half the importance": Filter(categories=frozenset({Category.GOAL}), min_importance=0.5),
}
WITH_GOALS = list(SCOPES)[:4]


class MixedEmbedder(Embedder):
    """Vectors mixed from real ones by a text's checksum: nothing has to be embedded, and they lie as real ones do."""

    name = "mixed"
    in_process = True  # as the real one

    def __init__(self) -> None:
        real = CachedEmbedder(LocalEmbedder(find(DEFAULT), load().models))
        texts = sentences.memories(10_000)
        real.fill(texts, label="sentences to mix from")
        self._real = np.stack(real.embed(texts))
        self._mean = self._real.mean(axis=0)
        self.calibration = real.calibration
        self.dimension = real.dimension
        self._asked = lru_cache(QUESTIONS_KEPT)(self._mix)

    @property
    def fingerprint(self) -> str:
        return "mixed-1"

    def split(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._mix(text) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self._asked(text)  # mixing would be measured as search

    def _mix(self, text: str) -> Vector:
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
    counts = options.memories or [1_000, 10_000, 100_000]
    facts, embedder = report.machine(), MixedEmbedder()
    children.compile_package()
    results: dict[str, Any] = {}
    summary: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            home = filled(options.folder or Path(folder), count, embedder)
            results[f"{count:,}"] = measured(home, embedder, options.rounds)
            summary += summed_up(count, results[f"{count:,}"])
    rows = [
        [name, *(shown(results[f"{count:,}"].get(name)) for count in counts)] for name in results[f"{counts[-1]:,}"]
    ]
    report.table("Large stores", ["", *(f"{count:,}" for count in counts)], rows)
    facts["load_after"] = [round(value, 2) for value in os.getloadavg()]
    results["figures"] = [one.as_json() for one in summary]
    report.console.print(f"\nWritten: {report.write('large', results, facts)}")


def summed_up(count: int, measured: Mapping[str, float]) -> list[Figure]:
    """What `bench.figures` shows."""
    figures = [
        Figure(
            name=f"search, {count:,} memories",
            value=measured["search, whole store, ms"],
            floor=measured["floor: search, whole store, ms"],
            goal=SEARCH_GOALS.get(count),
        ),
        Figure(
            name=f"store without embedding, {count:,} memories",
            value=measured["store with made vectors, ms"],
            floor=measured["floor: store, ms"],
        ),
        Figure(
            name=f"store without embedding and judging, {count:,} memories",
            value=measured["store without judging, ms"],
            floor=measured["floor: store, ms"],
        ),
        Figure(
            name=f"file, {count:,} memories",
            value=measured["store file, MB"],
            unit="MB",
            floor=measured["floor: texts and vectors, MB"],
            goal_times=FILE_GOAL,
        ),
        Figure(
            name=f"recall@10 of the nearest, {count:,} memories",
            value=min(share for name, share in measured.items() if name.startswith("recall@10")),
            unit="share",
            goal=RECALL_GOAL,
            more_is_better=True,
        ),
        Figure(
            name=f"a searching process, {count:,} memories",
            value=measured["resident of a searching process, MB"],
            unit="MB resident",
            goal=RESIDENT_GOALS.get(count),
        ),
    ]
    if count in SCOPE_GOALS:
        figures[1:1] = [
            Figure(
                name=f"search, {count:,} memories, {scope}",
                value=measured[f"search, {scope}, ms"],
                floor=measured[f"floor: search, {scope}, ms"],
                goal=SCOPE_GOALS[count],
            )
            for scope in WITH_GOALS
        ]
    return figures


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
    draft.mkdir(parents=True)
    with engine_on(SqliteStore(draft / "memories.db"), embedder) as jay:
        jay.known_spaces.create("project")
        project = jay.bound_to(spaces=("project",))
        given = list(memories_of(min(count, STORED)))
        project.store_many(given[: len(given) // 100])
        jay.store_many(given[len(given) // 100 :])
    grow(draft / "memories.db", count, embedder)
    say("")
    draft.rename(home)
    return home


# --- measuring -------------------------------------------------------------------------------------------------------


def measured(home: Path, embedder: Embedder, rounds: int) -> dict[str, Any]:
    path = home / "memories.db"
    figures: dict[str, Any] = {"store file, MB": sum(file.stat().st_size for file in home.iterdir()) / 1e6}
    figures |= opening(path)
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        copy = Path(folder) / "memories.db"
        shutil.copy(path, copy)
        with engine_on(SqliteStore(copy), embedder) as jay:
            figures |= searches(jay, rounds)
            figures |= recalls(jay, copy, embedder)
            figures |= floors(jay, copy, embedder, rounds)
            figures |= stores(jay, rounds)
        figures["resident of a searching process, MB"] = resident(copy)
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
    embedding = cost(lambda n: jay.parts.embedding.query(asked[n]), rounds)

    def search(filter: Filter, engine: Engine) -> float:
        return cost(lambda n: engine.search(Query(text=asked[n], limit=10, filter=filter)), rounds) - embedding

    figures = {"asking for a question's vector, ms": embedding, "search, whole store, ms": search(Filter(), jay)}
    for name, filter in SCOPES.items():
        figures[f"search, {name}, ms"] = search(filter, project if name.startswith("a space") else jay)
    return figures


class TimedJudge(Judge):
    """Adds up the processor time of its verdicts."""

    milliseconds = 0.0

    def judged(self, *given: Any, **named: Any) -> list[Judged]:
        return self._timed(super().judged, *given, **named)

    def promising(self, *given: Any, **named: Any) -> dict[str, Kinds]:
        return self._timed(super().promising, *given, **named)

    def _timed(self, verdict: Callable[..., Verdict], *given: Any, **named: Any) -> Verdict:
        begun = time.process_time()
        found = verdict(*given, **named)
        self.milliseconds += (time.process_time() - begun) * 1000
        return found


def stores(jay: Engine, rounds: int) -> dict[str, float]:
    fresh = sentences.memories(20_000 + rounds + 3)[20_000:]
    embedding, judge = jay.parts.embedding, TimedJudge(jay.parts.embedding)
    vectors = cost(lambda n: embedding.embedder.embed([fresh[n]]), rounds)  # type: ignore[union-attr]
    jay.parts.judge = judge
    whole, judging = [], []
    for text in fresh:
        judge.milliseconds, begun = 0.0, time.process_time()
        jay.store(text)
        whole.append((time.process_time() - begun) * 1000 - vectors)
        judging.append(judge.milliseconds)
    return {
        "store with made vectors, ms": median(whole[3:]),
        "of it judging, ms": median(judging[3:]),
        "store without judging, ms": median(np.subtract(whole, judging)[3:].tolist()),
    }


def recalls(jay: Engine, path: Path, embedder: Embedder) -> dict[str, float]:
    """Of the ten nearest the share that is found, against comparing with every vector."""
    store = jay.records
    asked = [embedder.embed_query(question) for question in sentences.questions(QUESTIONS)]
    with apsw.Connection(str(path)) as con:
        rows = con.execute(
            """
            SELECT memories.id, memories.user_id, memories.category, memories.importance, vectors.vector
            FROM memories CROSS JOIN vectors ON vectors.memory = memories.seq
            """
        ).fetchall()
        [(user,)] = con.execute("SELECT number FROM names WHERE name = 'user17'")
    ids = np.array([row[0] for row in rows], np.object_)
    matrix = as_matrix([row[4] for row in rows], embedder.dimension)
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
            near = store.nearest(vector, filter, EVERYONE, now=LATER, limit=10)
            found += len(set(ids[best]) & {match.memory for match in near})
        figures[name] = found / (10 * len(asked))
    return figures


def floors(jay: Engine, path: Path, embedder: Embedder, rounds: int) -> dict[str, float]:
    """What bare programs need for the same questions and texts."""
    asked = sentences.questions(rounds + 3)
    making = cost(lambda n: embedder.embed_query(asked[n]), rounds)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for name, filter in {"whole store": Filter(), **SCOPES}.items():
            audience = PROJECT if name.startswith("a space") else EVERYONE
            bare, size = program(Path(folder) / name, jay.records, filter, audience, embedder)
            figures[f"floor: search, {name}, ms"] = cost(lambda n: bare.search(asked[n]), rounds) - making  # noqa: B023
            if name == "whole store":
                texts = cost(lambda n: embedder.embed([asked[n]]), rounds)
                figures["floor: store, ms"] = cost(lambda n: bare.store(asked[n]), rounds) - texts  # noqa: B023
                figures["floor: texts and vectors, MB"] = size / 1e6
    if indexed := bare_index(path, [embedder.embed_query(question) for question in asked], rounds):
        words = bare_words(path, asked, rounds)
        figures["floor: search, whole store, ms"] = indexed["search"] + words
        figures["floor: store, ms"] = min(figures["floor: store, ms"], indexed["store"])
    return figures


def program(
    folder: Path, records: Store, filter: Filter, audience: Audience, embedder: Embedder
) -> tuple[BareProgram, int]:
    """One that holds what a filter admits, and how many bytes its texts and vectors are."""
    folder.mkdir()
    memories = records.list(filter, audience, now=LATER, limit=10**9)
    texts, known = [memory.content for memory in memories], dict[str, Vector]()
    for start in range(0, len(memories), PAGE):
        known |= records.vectors([memory.id for memory in memories[start : start + PAGE]])
    vectors = [known[memory.id] for memory in memories]
    (folder / "texts.json").write_text(json.dumps(texts))
    np.save(folder / "vectors.npy", np.stack(vectors))
    return BareProgram(folder, embedder), sum(len(text.encode()) for text in texts) + sum(one.nbytes for one in vectors)


def bare_index(path: Path, vectors: Sequence[Vector], rounds: int) -> dict[str, float]:
    """Bare vec1 in the store's own file, if it has an index, and its candidates compared exactly: of a search, and of
    a store with a synced append."""
    with apsw.Connection(str(path)) as con, (path.parent / "appended").open("ab", buffering=0) as file:
        con.pragma("cache_size", -8 * 1024)
        ready = vec1.tables(con, "ready")
        if not ready:
            return {}
        vec1.able(con)
        name, buckets = ready[0].name, ready[0].buckets

        def near(number: int, kept: int) -> None:
            options = json.dumps({"k": kept, "nprobe": min(buckets, LOOKED_THROUGH * isqrt(buckets))})
            rows = con.execute(
                f"""
                SELECT vectors.vector
                FROM {name}(?1, ?2) AS found
                CROSS JOIN vectors
                ON vectors.memory = found.rowid / {vec1.PARTS} AND vectors.part = found.rowid % {vec1.PARTS}
                """,
                (vectors[number].tobytes(), options),
            ).fetchall()
            found = as_matrix([vector for (vector,) in rows], len(vectors[number]))
            np.argsort(-np.vecdot(found, vectors[number]))

        def store(number: int) -> None:
            near(number, 30)
            file.write(vectors[number].tobytes())
            os.fsync(file.fileno())

        return {"search": cost(lambda n: near(n, 300), rounds), "store": cost(store, rounds)}


def bare_words(path: Path, asked: Sequence[str], rounds: int) -> float:
    """Bare FTS5 in the store's own file."""
    with apsw.Connection(str(path)) as con:
        con.pragma("cache_size", -8 * 1024)
        [(rows,)] = con.execute("SELECT count(*) FROM words_docsize")
        common = {
            term for (term,) in con.execute("SELECT term FROM vocabulary WHERE col = 'text' AND doc > ?", (rows / 10,))
        }
        words = [
            " OR ".join(f'"{word}"' for word in query_words(question) if word.lower() not in common) or '"nothing"'
            for question in asked
        ]
        return cost(
            lambda n: con.execute(
                "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY 2 LIMIT 200", (words[n],)
            ).fetchall(),
            rounds,
        )


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
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.search import Filter
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
