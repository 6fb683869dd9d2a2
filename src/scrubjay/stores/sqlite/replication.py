"""Memories that come from another store, written as they are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.memories import Change
from scrubjay.stores.promises.sync import Erased, Replica
from scrubjay.stores.sqlite.filters import space_number
from scrubjay.stores.tables.rows import Row, memory_of, rephrase
from scrubjay.text.words import found_by
from scrubjay.values.memory import State
from scrubjay.values.times import milliseconds

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector
    from scrubjay.stores.sqlite.transaction import SqliteTransaction


def replicate(
    tx: SqliteTransaction,
    replica: Replica,
    *,
    fingerprint: bytes | None,
    vectors: Sequence[Vector] | None,
    change: Change,
) -> None:
    memory = replica.memory
    stored = tx._stored(memory.id)
    if stored is not None and _same(tx, stored, replica):
        seq = stored[0]
        tx._con.execute(
            "UPDATE memories SET version = ?, change = ? WHERE seq = ?", (memory.version, tx._changed(), seq)
        )
    else:
        columns = _columns(tx, replica, fingerprint)
        if stored is None:
            seq = _insert_replica(tx, columns, replica)
        else:
            seq = _replace(tx, stored, columns, replica, change)
        if not replica.erased and (vectors is not None or stored is None):
            tx._replace_vectors(seq, memory.version, vectors or (), replica.parts)
    tx.sync.note_seen(memory.id, replica.seen)
    for alias in replica.aliases:
        tx.history.add_alias(alias, memory.id)


def _same(tx: SqliteTransaction, stored: Row, replica: Replica) -> bool:
    """Whether the state here has the same stamp, and is erased if the other is."""
    memory = memory_of(stored)
    return (memory.hlc, memory.origin) == (replica.memory.hlc, replica.memory.origin) and (
        bool(replica.erased) == tx._purged(memory.seq)
    )


def _columns(tx: SqliteTransaction, replica: Replica, fingerprint: bytes | None) -> dict[str, Any]:
    memory = replica.memory
    space = space_number(tx._con, memory.space)
    if space is None:
        raise SpaceNotFound(f"No space {memory.space!r}.", hint="Create it first.")
    final = int(replica.erased is Erased.FINAL)
    columns = tx._columns(memory, space) | {"fingerprint": fingerprint, "change": tx._changed(), "final": final}
    if replica.erased:
        return columns | {"state": int(State.PURGED), "fingerprint": None, "content_hash": None, "parts": 0}
    tx._check_path(memory, space)
    return columns


def _insert_replica(tx: SqliteTransaction, columns: dict[str, Any], replica: Replica) -> int:
    memory = replica.memory
    seq = tx._insert(
        columns
        | {
            "text_version": memory.version,
            "parts": 0 if replica.erased else replica.parts,
            "access_count": memory.access_count,
            "accessed_at": milliseconds(memory.accessed_at),
        }
    )
    if not replica.erased:
        tx._mark_repeats(columns["fingerprint"])
        tx._write_words(seq, memory, columns["space"])
        tx._write_tags(seq, memory)
    return seq


def _replace(tx: SqliteTransaction, stored: Row, columns: dict[str, Any], replica: Replica, change: Change) -> int:
    seq, memory = int(stored[0]), replica.memory
    if replica.erased:
        tx.purge(memory.id, at=memory.updated_at, final=False)
        tx._update(seq, columns)
        return seq
    former = None if tx._purged(seq) else memory_of(stored)
    if former is None:
        fingerprints = [columns["fingerprint"]]
    else:
        if memory.version > former.version:
            tx._keep_version(seq, stored, change)
        else:
            columns["former_also"] = rephrase(former, memory, change, tx.history.former_phrases(memory.id))
        fingerprints = [tx._fingerprint(seq), columns["fingerprint"]]
    tx._update(seq, columns)
    tx._mark_repeats(*dict.fromkeys(fingerprints))
    if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
        tx._write_words(seq, memory, columns["space"])
    if former is None or (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
        tx._write_tags(seq, memory)
    return seq
