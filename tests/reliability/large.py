"""Stores of many memories, made quickly: a few are stored, the others are copies with numbers of their own."""

from __future__ import annotations

from pathlib import Path

from bench.grown import grow

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore

SEED = 2_000  # memories stored one by one, at most


def fill(path: Path, count: int) -> None:
    """A store of so many memories about harbours, with words, vectors, tags, feed and, if it is large, an index."""
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many(
            {"content": f"fact {number} about harbour {number % 977}", "tags": (f"pier-{number % 50}",)}
            for number in range(min(count, SEED))
        )
    if count > SEED:
        grow(path, count, HashingEmbedder())
