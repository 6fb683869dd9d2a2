"""Figures of the PostgreSQL store: loading, searching, writing by many.

    python -m bench.postgres

    --url URL              a database of one's own; default: a server that is started for this
    --shared-buffers SIZE  of that server; 128MB is PostgreSQL's own default
    --memories N           how many memories, each with a vector of 384 numbers (default 100,000)
    --writers              also how many can be stored by many at once

Vectors are mixtures of 200 topics, words follow Zipf's law, 100 users share the space. Times are the fastest of several
runs and their median, in milliseconds; a shared machine makes everything else noise. Processor time is that of the
client and of its connections' processes on the server. The floor of a search is the same question in plain SQL: the
nearest 200 among those that the filter admits, and 200 by their words; the floor of loading a plain COPY of texts and
vectors. How much is loaded a second is told by the clock: both sides work at the same time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from itertools import islice
from multiprocessing.queues import Queue
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from tests.stores.contract import suite

from bench import report, sentences
from bench.figures import Figure
from scrubjay.embedders.base import Embedder, Vector
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.copying import MEMORY, TABLES
from scrubjay.stores.postgres.copying import PostgresCopy
from scrubjay.stores.postgres.store import PostgresStore
from scrubjay.stores.postgres.values import vector_bytes
from scrubjay.stores.sqlite.sql import row_of
from scrubjay.text.stems import stems
from scrubjay.text.words import query_words
from scrubjay.values.callers import Audience, Caller, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Status
from scrubjay.values.search import Filter, Query
from scrubjay.values.times import milliseconds

DIMENSION = 384
LAST_DAY = suite.NOW + timedelta(days=68)
# Processes on the server, of connections that were idle once: one that is at work just now is none that has ended.
BACKENDS: WeakKeyDictionary[PostgresStore, set[int]] = WeakKeyDictionary()
LAST_MINUTE = 100_000  # when the last of them was made
EVERYONE = Audience("u1", (Scope("default", Sight.SHARED),))
PROJECT = Audience("u1", (Scope("project", Sight.SHARED),))
OWNER = Audience("u1", (Scope("default", Sight.ALL),))


class Data:
    def __init__(self, seed: int = 1) -> None:
        self._rng = np.random.default_rng(seed)
        self._topics = self._rng.standard_normal((200, DIMENSION)).astype(np.float32)
        letters = random.Random(seed)
        alphabet = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(letters.choices(alphabet, k=letters.randint(3, 9))) for _ in range(30_000)]
        weights = 1 / np.arange(1, len(self.words) + 1) ** 0.9
        self._weights = weights / weights.sum()

    def vectors(self, count: int) -> np.ndarray:
        drawn = self._topics[self._rng.integers(0, 200, count)]
        drawn = drawn + 1.2 * self._rng.standard_normal((count, DIMENSION)).astype(np.float32)
        return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)

    def texts(self, count: int) -> list[str]:
        drawn = self._rng.choice(len(self.words), size=(count, 25), p=self._weights)
        return [" ".join(self.words[word] for word in row) for row in drawn]

    def question(self) -> str:
        """Four words that are neither common nor rare."""
        return " ".join(self.words[word] for word in self._rng.integers(50, 3_000, 4))


def memory(number: int, text: str, *, minute: int):
    return suite.some(
        text,
        id=f"mem_{number:012}",
        created_at=suite.NOW + timedelta(minutes=minute),
        context=Context(user_id=f"u{number % 100}"),
        access_level=AccessLevel.SHARED,
        category=list(Category)[number % 9],
        tags=(f"t{number % 50}",),
        status=Status.ACTIVE if number % 10 else Status.ARCHIVED,
    )


def batches(data: Data, count: int, size: int = 1_000) -> Iterator[tuple[list[tuple], list[tuple]]]:
    for start in range(0, count, size):
        vectors = data.vectors(size)
        memories, placed = [], []
        for place, text in enumerate(data.texts(size)):
            seq = start + place + 1
            new = memory(seq, text, minute=LAST_MINUTE - count + seq)  # so that however few reach the last day
            row = row_of(new, space=0, user=0, conversation=None)
            space = "project" if seq % 101 == 5 else "default"
            row |= {"seq": seq, "space": space, "user_id": new.context.user_id}
            row |= {"conversation_id": f"c{seq % 499}"}
            row |= {"accessed_at": row["created_at"], "access_count": 0, "text_version": 1, "parts": 1}
            row |= {
                "category_agreed": None,
                "repeat": 0,
                "final": 0,
                "fingerprint": text.encode()[:32],
                "former_also": "[]",
            }
            memories.append(tuple(row[name] for name in MEMORY))
            placed.append((space, seq, 0, vectors[place].tobytes()))
        yield memories, placed


def load(store: PostgresStore, data: Data, count: int) -> Figure:
    target = PostgresCopy(store)
    target.vector_size = 4 * DIMENSION  # as `copy` finds out
    by_name = {table.name: table for table in TABLES}
    spaces = [(name, None, 1, 0, 0, 0, None, None) for name in ("default", "project")]
    target.take_in(by_name["spaces"], spaces, "[]")
    bare, spent, cpu = copied(store, Data(), count), 0.0, 0.0
    server = server_cpu_of_all(store)
    made = batches(data, count)
    while some := list(islice(made, 20)):  # made beforehand: the server writes while the next batch is made ready
        began, used = time.perf_counter(), time.process_time()
        for memories, vectors in some:
            target.take_in(by_name["memories"], memories, "[]")
            target.take_in(by_name["vectors"], vectors, "[]")
        target.settle()
        spent, cpu = spent + time.perf_counter() - began, cpu + time.process_time() - used
    began, used = time.perf_counter(), time.process_time()
    target.finish("[]")
    end, cpu = time.perf_counter() - began, cpu + time.process_time() - used
    server = server_cpu_of_all(store) - server
    target.release()
    print(
        f"bulk load          {count / (spent + end):,.0f} rows/s by the clock: {spent:.1f} s for rows, {end:.1f} s for"
        f" signatures, sizes and indexes; processor {cpu:.1f} s of the client, {server:.1f} s of the server,"
        f" {count / (cpu + server):,.0f} rows per second of both sides'; a plain COPY {count / bare:,.0f} rows/s"
    )
    return Figure(
        name=f"PostgreSQL, copy of {count:,}",
        value=count / (spent + end),
        unit="rows/s",
        floor=count / bare,
        goal=1_500.0,
        more_is_better=True,
    )


def imported(url: str, count: int) -> Figure:
    """Lines of an import without a model, into a store of its own."""
    lines = [{"content": text} for text in sentences.memories(count)]
    with closing(PostgresStore(url)) as store:
        jay = engine_on(store, None, caller=Caller(user="u1"))
        jay.transfer.import_from(iter([{"content": "What is prepared once"}]))
        server, began, used = server_cpu_of_all(store), time.perf_counter(), time.process_time()
        jay.transfer.import_from(iter(lines))
        spent, cpu, server = time.perf_counter() - began, time.process_time() - used, server_cpu_of_all(store) - server
    print(
        f"import             {count / spent:,.0f} lines/s by the clock, without vectors;"
        f" {count / (cpu + server):,.0f} per second of both sides' processor"
    )
    return Figure(
        name=f"PostgreSQL, import of {count:,}",
        value=count / spent,
        unit="lines/s",
        goal=3_000.0,
        more_is_better=True,
    )


def copied(store: PostgresStore, data: Data, count: int) -> float:
    """Seconds that it takes to have texts and vectors in a table, and nothing else."""
    ids, texts, spent = MEMORY.index("id"), MEMORY.index("content"), 0.0
    with store._connections.apart() as con:
        con.execute("CREATE TABLE bare (id TEXT, content TEXT, vector VECTOR)")
        for memories, vectors in batches(data, count):
            began = time.perf_counter()
            with con.cursor().copy("COPY bare FROM STDIN (FORMAT BINARY)") as copying:
                copying.set_types(("text", "text", "vector"))
                for row, (*_, vector) in zip(memories, vectors, strict=True):
                    copying.write_row((row[ids], row[texts], vector_bytes(np.frombuffer(vector, np.float32))))
            spent += time.perf_counter() - began
        con.execute("DROP TABLE bare")
    return spent


def server_cpu(store: PostgresStore) -> float:
    """Seconds of CPU that the server's side of the store's connections has used; 0 where that is not to be had."""
    backends = BACKENDS.setdefault(store, set())
    backends.update(con.info.backend_pid for con in store._connections._idle)
    used = 0.0
    for backend in backends:
        with suppress(OSError):  # it has ended
            used += int(Path(f"/proc/{backend}/schedstat").read_text().split()[0]) / 1e9
    return used


def server_cpu_of_all(store: PostgresStore) -> float:
    """The same of all that the server has ever run, parallel workers and connections that are closed included."""
    ticks = os.sysconf("SC_CLK_TCK")
    [con, *_] = store._connections._idle
    try:
        server = int(_stat(con.info.backend_pid)[1])
        used = sum(int(field) for field in _stat(server)[11:15])  # its own, and of those that have ended
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        return (used + sum(int(field) for child in children for field in _stat(int(child))[11:13])) / ticks
    except OSError:
        return 0.0


def _stat(process: int) -> list[str]:
    """What the kernel tells of a process, behind its name."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


class Timed(NamedTuple):
    """Milliseconds of one round: waited for, and of processor."""

    least: float
    median: float
    server: float  # medians, too: a scope that is read into memory within the rounds is read once …
    client: float
    mean: float  # … and is in this, of both sides

    def __str__(self) -> str:
        return (
            f"min {self.least:6.1f}   median {self.median:6.1f}   "
            f"cpu: server {self.server:5.1f}, client {self.client:4.1f}, mean of both {self.mean:5.1f}"
        )


def timed(store: PostgresStore, work: Callable[[], object], rounds: int = 30) -> Timed:
    took, servers, clients = [], [], []
    for _ in range(rounds):
        server, client, began = server_cpu(store), time.process_time(), time.perf_counter()
        work()
        took.append((time.perf_counter() - began) * 1_000)
        clients.append((time.process_time() - client) * 1_000)
        servers.append((server_cpu(store) - server) * 1_000)
    mean = statistics.mean(servers) + statistics.mean(clients)
    return Timed(min(took), statistics.median(took), statistics.median(servers), statistics.median(clients), mean)


FILTERS = {
    "all": (Filter(), EVERYONE),
    "user 1 %": (Filter(user_id="u17"), EVERYONE),
    "space 1 %": (Filter(), PROJECT),
    "conversation 0.2 %": (Filter(conversation_id="c7"), EVERYONE),
    "tag 2 %": (Filter(tags=frozenset({"t7"})), EVERYONE),
    "category 11 %": (Filter(categories=frozenset({Category.GOAL})), EVERYONE),
    "last day 1.4 %": (Filter(created_since=LAST_DAY), EVERYONE),
}


class Looked(Embedder):
    """Vectors that are known beforehand: embedding costs nothing here."""

    name, dimension, fingerprint = "looked up", DIMENSION, "looked-up"

    def __init__(self, known: Mapping[str, Vector]) -> None:
        self._known = known
        self._other = np.full(DIMENSION, DIMENSION**-0.5, np.float32)  # of what the engine compares texts with

    def split(self, text: str) -> list[str]:
        return [text]

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._known.get(text, self._other) for text in texts]

    def embed_query(self, text: str) -> Vector:
        return self._known[text]


def whole_search(store: PostgresStore, data: Data, count: int) -> list[Figure]:
    """What a caller waits for, all but embedding: both ways of finding, a second look, the page, counting its reads."""
    questions = [(data.question(), vector) for vector in data.vectors(40)]
    jay = engine_on(store, Looked(dict(questions)), caller=Caller(user="u1"))  # closed by who opened the store
    figures = []
    for name, (wanted, who) in FILTERS.items():
        bound = jay.bound_to(spaces=tuple(scope.space for scope in who.scopes if scope.space is not None))
        for question in iter(questions[30:]):
            _whole(bound, iter([question]), wanted)
            _bare(store, iter([question]), name)
        took = timed(store, partial(_whole, bound, iter(questions), wanted))
        floor = timed(store, partial(_bare, store, iter(questions), name))
        print(f"search   {name:18}", took)
        print(f"bare SQL {name:18}", floor)
        figures.append(
            Figure(
                name=f"PostgreSQL, search, {count:,} memories, {name}",
                value=took.server + took.client,
                floor=floor.server + floor.client,
                goal=30.0,
            )
        )
    return figures


BARE = {  # what someone would write who has one table of memories
    "all": "TRUE",
    "user 1 %": "memories.user_id = 'u17'",
    "space 1 %": "memories.space = 'project'",
    "conversation 0.2 %": "memories.conversation_id = 'c7'",
    "tag 2 %": "EXISTS (SELECT FROM tags WHERE (tags.space, tags.memory, tag) = (memories.space, memories.seq, 't7'))",
    "category 11 %": "memories.category = 'goal'",
    "last day 1.4 %": f"memories.created_at >= {milliseconds(LAST_DAY)}",
}


def _bare(store: PostgresStore, asked: Iterator[tuple[str, np.ndarray]], name: str) -> None:
    question, vector = next(asked)
    where = f"memories.state = 0 AND {BARE[name]}"
    with store._reading() as con:
        con.execute(
            f"""
            SELECT memories.id
            FROM vectors
            JOIN memories ON memories.space = vectors.space AND memories.seq = vectors.memory
            WHERE {where} AND vector_dims(vector) = {DIMENSION}
            ORDER BY vector::HALFVEC({DIMENSION}) <#> %s::HALFVEC({DIMENSION})
            LIMIT 200
            """,
            (vector_bytes(vector),),
        ).fetchall()
        terms = " | ".join(stems(query_words(question)).values())
        con.execute(
            f"""
            SELECT memories.id
            FROM words
            JOIN memories ON memories.space = words.space AND memories.seq = words.memory
            WHERE terms @@ %s::TSQUERY AND {where}
            ORDER BY ts_rank(terms, %s::TSQUERY) DESC
            LIMIT 200
            """,
            (terms, terms),
        ).fetchall()


def _whole(jay: Engine, asked: Iterator[tuple[str, np.ndarray]], wanted: Filter) -> None:
    found = jay.search(Query(text=next(asked)[0], filter=wanted, limit=10))
    assert found
    assert found.degraded is None


def search(store: PostgresStore, data: Data) -> None:
    questions = [(data.question(), vector) for vector in data.vectors(30)]
    for name in FILTERS:
        asked = iter(questions)
        print(f"words    {name:18}", timed(store, partial(_by_words, store, asked, *FILTERS[name])))
        asked = iter(questions)
        print(f"meaning  {name:18}", timed(store, partial(_by_meaning, store, asked, *FILTERS[name])))


def _by_words(store: PostgresStore, asked: Iterator[tuple[str, np.ndarray]], wanted: Filter, who: Audience) -> None:
    store.match(next(asked)[0], wanted, who, now=suite.NOW, limit=200)


def _by_meaning(store: PostgresStore, asked: Iterator[tuple[str, np.ndarray]], wanted: Filter, who: Audience) -> None:
    store.nearest(next(asked)[1], wanted, who, now=suite.NOW, limit=200)


def recall(store: PostgresStore, data: Data) -> None:
    from scrubjay.stores.postgres import vectors as postgres_vectors
    from scrubjay.stores.postgres.filters import restrict

    for name, (wanted, audience) in FILTERS.items():
        shares = []
        for vector in data.vectors(20):
            found = store.nearest(vector, wanted, audience, now=suite.NOW, limit=200)[:10]
            limits = restrict(wanted, audience, now=suite.NOW)
            assert limits is not None
            with store._reading() as con:
                exact = postgres_vectors._exactly(con, vector, limits, 10)
            shares.append(len({one.memory for one in found} & {one.memory for one in exact}) / 10)
        with store._reading() as con:
            scope = postgres_vectors.scope(con, limits)
        print(f"recall@10 {name:18}", f"{statistics.mean(shares):.3f}  (of about {scope:,.0f} memories)")


def write(url: str, threads: int, seconds: float, stored: Queue) -> None:
    """What one process does: stores by so many threads; tells how many, for how long a turn was held, CPU used."""
    data = Data()
    vectors, texts = data.vectors(64), data.texts(64)
    counts, held = [0] * threads, [0.0] * threads
    with closing(PostgresStore(url)) as store:
        suite.put(store, suite.some(texts[0]), [vectors[0]])  # what is prepared once
        end, used = time.monotonic() + seconds, time.process_time()

        def work(number: int) -> None:
            while time.monotonic() < end:
                turn = counts[number] % 64
                memory = suite.some(f"{texts[turn]} {number}.{counts[number]}")  # none is another's repeat
                with store.writing() as tx:
                    began = time.monotonic()
                    suite.put_in(tx, memory, [vectors[turn]])
                    held[number] += time.monotonic() - began
                counts[number] += 1

        running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        stored.put((sum(counts), sum(held), time.process_time() - used, server_cpu(store)))


def writers(url: str, processes: int, threads: int, seconds: float = 6.0) -> None:
    spawn = multiprocessing.get_context("spawn")
    stored = spawn.Queue()
    running = [spawn.Process(target=write, args=(url, threads, seconds, stored)) for _ in range(processes)]
    for process in running:
        process.start()
    told = [stored.get(timeout=120) for _ in running]
    count, held, client, server = (sum(column) for column in zip(*told, strict=True))
    for process in running:
        process.join(timeout=60)
    print(
        f"{processes * threads} writers in {processes}     {count / seconds:,.0f} stores/s; a turn was held "
        f"{held / seconds:.0%} of the time; CPU {client / count * 1e3:.1f} ms a store, "
        f"of the server {server / count * 1e3:.1f}"
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--url")
    options.add_argument("--shared-buffers", default="128MB")
    options.add_argument("--memories", type=int, default=100_000)
    options.add_argument("--writers", action="store_true")
    given = options.parse_args()
    if given.url is None:
        from tests.postgres import Server

        server = Server(shared_buffers=given.shared_buffers)
        server.restart()
        given.url = server.url
    url = f"{given.url}{'&' if '?' in given.url else '?'}schema=bench"
    data, facts = Data(), report.machine()
    figures: list[Figure] = []
    with closing(PostgresStore(url)) as store:
        if not store.count(Filter(), OWNER, now=suite.NOW):
            figures.append(load(store, data, given.memories))
            figures.append(imported(f"{url}_imported", min(given.memories, 20_000)))
        size = store.check().bytes_on_disk
        print(f"on disk            {size / 1e6:,.0f} MB, {size / given.memories:,.0f} bytes a memory")
        began = time.perf_counter()
        while store.tend():
            pass
        grown = (store.check().bytes_on_disk - size) / 1e6
        print(f"index of vectors   {time.perf_counter() - began:.0f} s, {grown:,.0f} MB")
        figures += whole_search(store, data, given.memories)
        search(store, data)
        recall(store, data)
    if given.writers:
        for processes, threads in ((1, 1), (1, 8), (2, 4), (1, 1), (2, 4)):
            writers(f"{url}_writers", processes, threads)
    results = {"figures": [one.as_json() for one in figures], "shared_buffers": given.shared_buffers}
    print("Written:", report.write("postgres", results, facts))


if __name__ == "__main__":
    main()
