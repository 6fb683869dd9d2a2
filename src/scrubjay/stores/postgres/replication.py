"""Memories that come from another store, written as they are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.postgres.filters import audiences_of_path
from scrubjay.stores.postgres.sql import row_of
from scrubjay.stores.postgres.stored import Known, await_file, find
from scrubjay.stores.postgres.words import passages_of
from scrubjay.stores.promises.memories import Change
from scrubjay.stores.promises.sync import Erased, Replica
from scrubjay.stores.tables.rows import rephrase
from scrubjay.text.words import found_by
from scrubjay.values.memory import AT_HAND, Memory, State

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.postgres.transaction import PostgresTransaction


def replicate(
    tx: PostgresTransaction,
    replica: Replica,
    *,
    fingerprint: bytes | None,
    vectors: Sequence[Vector] | None,
    change: Change,
) -> None:
    memory = replica.memory
    known = find(tx._con, memory.id)
    if known is not None and _same(known, replica):
        tx._update(memory.space, known.seq, {"version": memory.version})
        _file_of(tx, memory, known, moved=False)
        seq = known.seq
    else:
        columns = _columns(tx, replica, fingerprint)
        if known is None:
            seq = tx._insert(
                memory,
                columns,
                () if replica.erased else vectors or (),
                parts=0 if replica.erased else replica.parts,
                repeated=not replica.erased,
                mirrored=True,
            ).seq
        else:
            seq = _replace_by(tx, known, columns, replica, change)
            if not replica.erased and vectors is not None:
                _replace_all_vectors(tx, memory, seq, vectors, replica.parts)
    tx.sync.note_seen(memory.id, replica.seen)
    for alias in replica.aliases:
        tx.history.add_alias(alias, memory.id)


def _columns(tx: PostgresTransaction, replica: Replica, fingerprint: bytes | None) -> dict[str, Any]:
    memory = replica.memory
    if tx._con.execute("SELECT 1 FROM spaces WHERE name = %s", (memory.space,)).fetchone() is None:
        raise SpaceNotFound(f"No space {memory.space!r}.", hint="Create it first.")
    columns = row_of(memory) | {"fingerprint": fingerprint, "final": int(replica.erased is Erased.FINAL)}
    if replica.erased:
        return columns | {"state": int(State.PURGED), "fingerprint": None, "content_hash": None}
    taken = tx._con.execute(
        # memories_by_place
        """
        SELECT 1
        FROM memories
        WHERE space = %s AND path = %s AND state IN (0, 1) AND id <> %s AND audience = ANY(%s)
        """,
        (memory.space, memory.path, memory.id, audiences_of_path(memory)),
    ).fetchone()
    if taken and memory.state in AT_HAND:
        raise Conflict(f"The path {memory.path!r} is taken.", hint="Choose another path.", path=memory.path)
    return columns


def _replace_by(
    tx: PostgresTransaction, known: Known, columns: dict[str, Any], replica: Replica, change: Change
) -> int:
    memory, seq = replica.memory, known.seq
    if replica.erased:
        tx.purge(memory.id, at=memory.updated_at, final=False)
        now = find(tx._con, memory.id)
        assert now is not None
        tx._move(now.space, memory.space, seq)
        tx._update(now.space, seq, columns | {"parts": 0})
        tx._remember(known, memory)
        _file_of(tx, memory, known, moved=False)
        return seq
    former = None if known.state == State.PURGED else known.memory
    if former is not None and memory.version > former.version:
        tx._keep_version(known, change)
    elif former is not None:
        columns["former_also"] = rephrase(former, memory, change, tx.history.former_phrases(memory.id))
    if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
        tx._remove_words(known.space, seq)
    tx._move(known.space, memory.space, seq)
    tx._update(known.space, seq, columns)
    tx._remember(known, memory)
    tx._mark_repeats(*{one for one in (known.fingerprint, columns["fingerprint"]) if one is not None})
    if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
        tx.write_words(memory.space, seq, passages_of(memory))
    if former is None or (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
        tx._write_tags(seq, memory)
    _file_of(tx, memory, known, moved=former is not None and former.path != memory.path)
    return seq


def _replace_all_vectors(
    tx: PostgresTransaction, memory: Memory, seq: int, vectors: Sequence[Vector], parts: int
) -> None:
    size = sum(4 * len(vector) for vector in vectors)
    left = {"text_version": memory.version, "parts": parts, "vector_bytes": size}
    tx._update(memory.space, seq, left)
    tx._replace_vectors(memory.space, seq, vectors, parts)


def _file_of(tx: PostgresTransaction, memory: Memory, known: Known, *, moved: bool) -> None:
    await_file(tx._con, memory.id, space=memory.space, version=memory.version, state=known.state, moved=moved)


def _same(known: Known, replica: Replica) -> bool:
    """Whether the state here has the same stamp, and is erased if the other is."""
    memory = known.memory
    return (memory.hlc, memory.origin) == (replica.memory.hlc, replica.memory.origin) and (
        bool(replica.erased) == (known.state == State.PURGED)
    )
