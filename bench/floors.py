"""The least that any program of this kind must do, with nothing around it: what every figure is compared with.

    store    embed the text, compare with every vector, append and fsync
    search   embed the question, compare with every vector, ask a bare FTS5 table
    list     read the newest rows of a bare table

It runs in a process of its own, so that nothing it leaves running is counted as ours or ours as its:

    bench ── {"verb": "search", "text": "…"} ──> python -m bench.floors FOLDER ── [cpu, wall] ──> bench
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw
import numpy as np

from bench.timing import once
from scrubjay.embedders.base import Embedder, Vector
from scrubjay.embedders.catalogue import DEFAULT, find
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import load
from scrubjay.text.words import query_words

NEIGHBOURS = 200  # candidates of a search, as the engine takes from each side
CANDIDATES = 30  # of a store
SPARE = 4_000  # rows of the matrix for what is stored while measuring
COMMON = 0.1  # words in more rows than this share are not asked for


class BareProgram:
    """The same texts and vectors as the store has, in the plainest form."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        texts = json.loads((folder / "texts.json").read_text())
        vectors = np.load(folder / "vectors.npy")
        self._embedder = embedder
        self._count = len(texts)
        self._matrix = np.empty((len(texts) + SPARE, embedder.dimension), np.float32)
        self._matrix[: len(texts)] = vectors
        self._con = apsw.Connection(str(folder / "floor.db"))
        self._con.execute("PRAGMA journal_mode = WAL")
        self._con.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61')")
        self._con.execute("CREATE TABLE texts (seq INTEGER PRIMARY KEY, text TEXT)")
        with self._con:
            self._con.executemany("INSERT INTO words (text) VALUES (?)", [(text,) for text in texts])
            self._con.executemany("INSERT INTO texts (text) VALUES (?)", [(text,) for text in texts])
        self._con.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row)")
        rows = self._con.execute("SELECT term FROM vocabulary WHERE doc > ?", (COMMON * len(texts),))
        self._common = {term for (term,) in rows}
        self._log = os.open(folder / "floor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def store(self, text: str) -> None:
        [vector] = self._embedder.embed([text])
        self._nearest(vector, CANDIDATES)
        self._matrix[self._count] = vector
        self._count += 1
        os.write(self._log, text.encode() + vector.tobytes())
        os.fsync(self._log)

    def append(self, text: str) -> None:
        os.write(self._log, text.encode())
        os.fsync(self._log)

    def search(self, question: str) -> None:
        self._nearest(self._embedder.embed_query(question), NEIGHBOURS)
        words = [word for word in query_words(question) if word.lower() not in self._common]
        self._con.execute(
            "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words) or '"nothing"', NEIGHBOURS),
        ).fetchall()

    def list(self, _text: str) -> None:
        self._con.execute("SELECT seq, text FROM texts ORDER BY seq DESC LIMIT 10").fetchall()

    def _nearest(self, vector: Vector, count: int) -> None:
        scores = np.vecdot(self._matrix[: self._count], vector)  # unlike @ on one thread, and as quick
        count = min(count, self._count)
        best = np.argpartition(scores, -count)[-count:]
        best[np.argsort(-scores[best])]


class Floor:
    """A bare program in another process."""

    def __init__(self, folder: Path, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        (folder / "texts.json").write_text(json.dumps(texts))
        np.save(folder / "vectors.npy", np.stack(vectors))
        # One thread: a second one halves the wait for a comparison of a fraction of a millisecond, and then spins for
        # twenty. Whoever wants to spend little sets this.
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.floors", str(folder)],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def measure(self, verb: str, text: str = "") -> tuple[float, float]:
        """Seconds of processor and wall that the verb takes there."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps({"verb": verb, "text": text}).encode() + b"\n")
        self._child.stdin.flush()
        cpu, wall = json.loads(self._child.stdout.readline())
        return cpu, wall

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.communicate()


def main() -> None:
    program = BareProgram(Path(sys.argv[1]), LocalEmbedder(find(DEFAULT), load().models))
    for line in sys.stdin:
        asked = json.loads(line)
        step = getattr(program, asked["verb"])
        print(json.dumps(once(lambda step=step, text=asked["text"]: step(text))), flush=True)


if __name__ == "__main__":
    main()
