"""What SQLite alone takes of a store or a search: no program can be quicker that runs these statements.

    python -m bench.replay                        stores among 10,000 and 100,000 memories
    python -m bench.replay --memories 1000        … among others; made once with --folder
    python -m bench.replay --search               searches instead

Every statement of a call is recorded, with its values. Then the same statements run once more, on a copy of the file as
it was, through as many connections, and nothing is made of what they give. Milliseconds of processor, medians; vectors
are mixed from real ones (bench.large), so that the model has no part in it. Questions are asked for the first time.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import apsw

from bench import report, sentences
from bench.large import MixedEmbedder, filled
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite import vec1
from scrubjay.stores.sqlite import words as sqlite_words
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Query

ROUNDS = 100
WARM_UP = 20
PLACES = "CREATE VIRTUAL TABLE temp.places USING fts5vocab (main, words, instance)"


class Statement(NamedTuple):
    connection: int
    text: str
    values: Any
    many: bool


class Recorder:
    """Notes what the connections that are opened meanwhile are asked to do."""

    def __init__(self) -> None:
        self.calls: list[list[Statement]] = []

    def note(self, connection: apsw.Connection, text: str, values: Any, *, many: bool) -> None:
        if self.calls:
            self.calls[-1].append(Statement(id(connection), text, values, many))

    @contextmanager
    def recording(self) -> Iterator[None]:
        noted = self.note

        class Cursor(apsw.Cursor):
            def execute(self, statement: str, values: Any = None, **options: Any) -> apsw.Cursor:
                noted(self.connection, statement, values, many=False)
                return super().execute(statement, values, **options)

            def executemany(self, statement: str, values: Iterable[Any], **options: Any) -> apsw.Cursor:
                rows = [*values]
                noted(self.connection, statement, rows, many=True)
                return super().executemany(statement, rows, **options)

        def use(connection: apsw.Connection) -> None:
            connection.cursor_factory = Cursor

        apsw.connection_hooks.append(use)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(use)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description="What SQLite alone takes.")
    parser.add_argument("--memories", type=int, action="append", help="how many; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where stores are made, and kept for the next time")
    parser.add_argument("--search", action="store_true", help="searches instead of stores")
    options = parser.parse_args(arguments)
    embedder, rows = MixedEmbedder(), []
    with tempfile.TemporaryDirectory() as folder:
        for count in options.memories or [10_000, 100_000]:
            home = filled(options.folder or Path(folder), count, embedder)
            rows.append([f"{count:,}", *measured(home, embedder, options.rounds, search=options.search)])
    what = "search" if options.search else "store"
    columns = ["memories", f"a {what}, ms", "statements", "its statements alone, ms", "least"]
    report.table(f"What SQLite alone takes of a {what}", columns, rows)


def measured(home: Path, embedder: MixedEmbedder, rounds: int, *, search: bool) -> list[str]:
    recorder = Recorder()
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        path, copy = Path(folder) / "memories.db", Path(folder) / "copy.db"
        shutil.copy(home / "memories.db", path)
        with recorder.recording(), engine_on(SqliteStore(path), embedder) as jay:
            work = searching(jay, rounds) if search else storing(jay, rounds)
            for number in range(WARM_UP):
                work(number)
            jay.records.backup(copy)
            whole = []
            for number in range(WARM_UP, WARM_UP + rounds):
                recorder.calls.append([])
                whole.append(cost(lambda number=number: work(number)))
        alone = replayed(copy, recorder.calls)
    statements = sum(map(len, recorder.calls)) / rounds
    return [f"{median(whole):.2f}", f"{statements:.0f}", f"{median(alone):.2f}", f"{min(alone):.2f}"]


def storing(jay: Engine, rounds: int) -> Callable[[int], object]:
    fresh = sentences.memories(20_000 + rounds + WARM_UP)[20_000:]
    return lambda number: jay.store(fresh[number])


def searching(jay: Engine, rounds: int) -> Callable[[int], object]:
    asked = sentences.questions(rounds + WARM_UP)
    return lambda number: jay.search(Query(text=asked[number], limit=10))


def replayed(path: Path, calls: Sequence[Sequence[Statement]]) -> list[float]:
    """Milliseconds for each call, after some that are not counted."""
    known: dict[int, apsw.Connection] = {}

    def run(statements: Sequence[Statement]) -> None:
        for statement in statements:
            con = known.get(statement.connection) or known.setdefault(statement.connection, opened(path))
            if statement.many:
                con.executemany(statement.text, statement.values)
            elif statement.text != PLACES:  # each connection has it from the beginning
                con.execute(statement.text, statement.values).fetchall()

    taken = [cost(lambda statements=statements: run(statements)) for statements in calls]
    for con in known.values():
        con.close()
    return taken[len(taken) // 10 :]


def opened(path: Path) -> apsw.Connection:
    con = sqlite_file.connect(path)
    sqlite_words.register(con)
    vec1.able(con)
    con.execute(PLACES)
    return con


def cost(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


if __name__ == "__main__":
    main()
