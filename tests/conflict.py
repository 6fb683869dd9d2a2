"""An open conflict between two memories, for tests whose embedder finds none by itself."""

from __future__ import annotations

from scrubjay.engine.engine import Engine
from scrubjay.values.memory import LinkKind, Memory


def open_conflict(engine: Engine, newer: Memory, older: Memory) -> None:
    with engine.records.writing() as tx:
        engine.ledger.link(tx, LinkKind.MAY_OUTDATE, newer, older, score=0.9, given=False)
