"""Is a store whole, and does it hold what was acknowledged?"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.access import EVERYTHING
from scrubjay.stores.promises.memories import Checkup, Reads
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.memory import Memory, State
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from tests.reliability.texts import word_of

ANY = Filter(states=frozenset({State.ACTIVE, State.SUPERSEDED}), expired=None)
EMBEDDER = HashingEmbedder()


def checked(path: Path, *, pending: bool = False) -> Checkup:
    """What a deep check says of a store that must be whole; with `pending`, vectors may be on their way."""
    with closing(SqliteStore(path)) as store:
        checkup = store.check(deep=True)
    assert checkup.problems == ()
    assert checkup.wrong_hashes == ()
    assert checkup.with_words == checkup.memories
    if pending:
        assert checkup.with_vectors + checkup.pending >= checkup.memories
    else:
        assert (checkup.with_vectors, checkup.pending) == (checkup.memories, 0)
    return checkup


def everything(store: Reads) -> dict[str, Memory]:
    """All memories that are not deleted, by id."""
    return {memory.id: memory for memory in store.list(ANY, EVERYTHING, now=utc_now(), limit=1_000_000)}


def unfindable(store: Reads, texts: Iterable[tuple[str, str]], *, by_meaning: bool = True) -> list[str]:
    """Of these ids and texts the ones that their own words or their own vector do not find."""
    now = utc_now()
    missing = []
    for id, text in texts:
        words = store.match(word_of(text), ANY, EVERYTHING, now=now, limit=5)
        vector = EMBEDDER.embed_query(EMBEDDER.split(text)[-1])
        near = store.nearest(vector, ANY, EVERYTHING, now=now, limit=5) if by_meaning else words
        if not all(id in {match.memory for match in found} for found in (words, near)):
            missing.append(id)
    return missing
