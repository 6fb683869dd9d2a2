"""An embedder that remembers: vectors are kept on disk by model and text, so that a second run is quick.

For filling stores only; what is measured uses the real model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Lock
from unittest.mock import patch

import apsw
import numpy as np

from scrubjay.embedders.base import Embedder, Vector
from scrubjay.embedders.local import LocalEmbedder
from scrubjay.settings import cache_folder

BATCH = 64


def default_cache() -> Path:
    """Beside the models, in the user's cache: the keys hide the texts, and nothing lands in the repository."""
    return cache_folder(os.environ).parent / "bench-vectors.db"


class CachedEmbedder(Embedder):
    """Another embedder's vectors, each made once."""

    def __init__(self, inner: Embedder, path: Path | None = None) -> None:
        self.name, self.dimension, self.calibration = inner.name, inner.dimension, inner.calibration
        self._inner = inner
        self._lock = Lock()
        self._parts: dict[str, list[str]] = {}
        path = path or default_cache()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._con = apsw.Connection(str(path))
        self._con.set_busy_timeout(60_000)
        self._con.execute("PRAGMA journal_mode = WAL")
        self._con.execute("PRAGMA synchronous = NORMAL")
        self._con.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    def split(self, text: str) -> list[str]:
        if text not in self._parts:
            self._parts[text] = self._inner.split(text)
        return list(self._parts[text])

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return self._known("text", texts, self._inner.embed)

    def embed_query(self, text: str) -> Vector:
        [vector] = self._known("query", [text], lambda texts: [self._inner.embed_query(one) for one in texts])
        return vector

    def fill(self, texts: Iterable[str] = (), queries: Iterable[str] = (), label: str = "") -> None:
        """Make the missing vectors of these texts (all parts of them) and questions ahead, saying how far it is."""
        parts = list(dict.fromkeys(part for text in dict.fromkeys(texts) for part in self.split(text)))
        missing = [part for part in parts if self._get(self._key("text", part)) is None]
        for start in range(0, len(missing), BATCH):
            self.embed(missing[start : start + BATCH])
            say(f"{label}: {min(start + BATCH, len(missing)):,} of {len(missing):,} texts embedded")
        for query in dict.fromkeys(queries):
            self.embed_query(query)

    def close(self) -> None:
        """Stays open: many stores share one of these."""

    def _known(self, kind: str, texts: Sequence[str], make: Callable[[Sequence[str]], list[Vector]]) -> list[Vector]:
        keys = [self._key(kind, text) for text in texts]
        found = {key: vector for key in keys if (vector := self._get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = dict(zip(missing, make(list(missing.values())), strict=True))
            with self._lock, self._con:
                rows = [(key, vector.astype("<f4").tobytes()) for key, vector in made.items()]
                self._con.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
            found |= made
        return [found[key] for key in keys]

    def _get(self, key: bytes) -> Vector | None:
        with self._lock:
            row = self._con.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], dtype="<f4").astype(np.float32)

    def _key(self, kind: str, text: str) -> bytes:
        return sha256(f"{self.fingerprint}\0{kind}\0{text}".encode(errors="surrogatepass")).digest()


@contextmanager
def remembering(path: Path | None = None) -> Iterator[None]:
    """Until it is left, every model of this process has each vector made once. Two runs at once share one file."""
    path = path or default_cache().with_name("bench-all-vectors.db")
    path.parent.mkdir(parents=True, exist_ok=True)
    con, lock, made = apsw.Connection(str(path)), Lock(), LocalEmbedder._vector
    con.set_busy_timeout(60_000)
    con.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
    con.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def vector(self: LocalEmbedder, text: str) -> Vector:
        key = sha256(f"{self.fingerprint}\0{text}".encode(errors="surrogatepass")).digest()
        with lock:
            row = con.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        if row is not None:
            return np.frombuffer(row[0], dtype="<f4").astype(np.float32)
        found = made(self, text)
        with lock:
            con.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, found.astype("<f4").tobytes()))
        return found

    with patch.object(LocalEmbedder, "_vector", vector):
        yield


def say(line: str) -> None:
    """Progress, on one line of the terminal; nothing in a log."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
        sys.stderr.flush()
