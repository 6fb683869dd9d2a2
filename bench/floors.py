"""The least that any program of this kind must do, with nothing around it: what every figure is compared with.

    store    embed the text, compare with every vector, append and fsync
    search   embed the question, compare with every vector, ask a bare FTS5 table
    list     read the newest rows of a bare table
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw
import numpy as np

from scrubjay.embedders.base import Embedder, Vector
from scrubjay.stores.words import query_words

NEIGHBOURS = 200  # candidates of a search, as the engine takes from each side
CANDIDATES = 30  # of a store
SPARE = 4_000  # rows of the matrix for what is stored while measuring
COMMON = 0.1  # words in more rows than this share are not asked for


class Floor:
    """A bare program over the same texts and vectors."""

    def __init__(self, folder: Path, texts: Sequence[str], vectors: Iterable[Vector], embedder: Embedder) -> None:
        self._embedder = embedder
        self._count = len(texts)
        self._matrix = np.empty((len(texts) + SPARE, embedder.dimension), np.float32)
        for row, vector in enumerate(vectors):
            self._matrix[row] = vector
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
        self.append(text.encode() + vector.tobytes())

    def append(self, record: bytes) -> None:
        os.write(self._log, record)
        os.fsync(self._log)

    def search(self, question: str) -> None:
        self._nearest(self._embedder.embed_query(question), NEIGHBOURS)
        words = [word for word in query_words(question) if word.lower() not in self._common]
        self._con.execute(
            "SELECT rowid, bm25(words) FROM words WHERE words MATCH ? ORDER BY bm25(words) LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words), NEIGHBOURS),
        ).fetchall()

    def list(self, limit: int) -> None:
        self._con.execute("SELECT seq, text FROM texts ORDER BY seq DESC LIMIT ?", (limit,)).fetchall()

    def close(self) -> None:
        os.close(self._log)
        self._con.close()

    def _nearest(self, vector: Vector, count: int) -> None:
        scores = self._matrix[: self._count] @ vector
        best = np.argpartition(scores, -count)[-count:]
        best[np.argsort(-scores[best])]
