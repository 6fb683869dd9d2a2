"""Memories that come from another store, written as they are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.memories import Change, milliseconds
from scrubjay.stores.promises.sync import Erased, Replica
from scrubjay.stores.sqlite.filters import space_number
from scrubjay.stores.sqlite.memories import SqliteMemories
from scrubjay.stores.sqlite.rows import row_of
from scrubjay.stores.tables.rows import Row, memory_of
from scrubjay.stores.words.words import found_by
from scrubjay.values.memory import State

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector


class SqliteReplicas(SqliteMemories):
    """The part of a transaction that takes in other stores' memories."""

    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        memory = replica.memory
        stored = self._stored(memory.id)
        if stored is not None and self._same(stored, replica):
            seq = stored[0]
            self._con.execute(
                "UPDATE memories SET version = ?, change = ? WHERE seq = ?", (memory.version, self._changed(), seq)
            )
        else:
            columns = self._columns(replica, fingerprint)
            if stored is None:
                seq = self._insert_replica(columns, replica)
            else:
                seq = self._replace(stored, columns, replica, change)
            if not replica.erased and (vectors is not None or stored is None):
                self._replace_vectors(seq, memory.version, vectors or (), replica.parts)
        self.sync.note_seen(memory.id, replica.seen)
        for alias in replica.aliases:
            self.history.add_alias(alias, memory.id)

    def _same(self, stored: Row, replica: Replica) -> bool:
        """Whether the state here has the same stamp, and is erased if the other is."""
        memory = memory_of(stored)
        return (memory.hlc, memory.origin) == (replica.memory.hlc, replica.memory.origin) and (
            bool(replica.erased) == self._purged(memory.seq)
        )

    def _columns(self, replica: Replica, fingerprint: bytes | None) -> dict[str, Any]:
        memory = replica.memory
        space = space_number(self._con, memory.space)
        if space is None:
            raise SpaceNotFound(f"No space {memory.space!r}.", hint="Create it first.")
        conversation = memory.context.conversation_id
        columns = row_of(
            memory,
            space=space,
            user=self._number(memory.context.user_id),
            conversation=None if conversation is None else self._number(conversation),
        )
        columns |= {
            "fingerprint": fingerprint,
            "change": self._changed(),
            "final": int(replica.erased is Erased.FINAL),
        }
        if replica.erased:
            return columns | {"state": int(State.PURGED), "fingerprint": None, "content_hash": None, "parts": 0}
        self._check_path(memory, space)
        return columns

    def _insert_replica(self, columns: dict[str, Any], replica: Replica) -> int:
        memory = replica.memory
        seq = self._insert(
            columns
            | {
                "text_version": memory.version,
                "parts": 0 if replica.erased else replica.parts,
                "access_count": memory.access_count,
                "accessed_at": milliseconds(memory.accessed_at),
            }
        )
        if not replica.erased:
            self._mark_repeats(columns["fingerprint"])
            self._write_words(seq, memory, columns["space"])
            self._write_tags(seq, memory)
        return seq

    def _replace(self, stored: Row, columns: dict[str, Any], replica: Replica, change: Change) -> int:
        seq, memory = int(stored[0]), replica.memory
        if replica.erased:
            self.purge(memory.id, at=memory.updated_at, final=False)
            self._update(seq, columns)
            return seq
        former = None if self._purged(seq) else memory_of(stored)
        if former is None:
            fingerprints = [columns["fingerprint"]]
        else:
            self._keep_version(seq, stored, change)
            fingerprints = [self._fingerprint(seq), columns["fingerprint"]]
        self._update(seq, columns)
        self._mark_repeats(*dict.fromkeys(fingerprints))
        if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
            self._write_words(seq, memory, columns["space"])
        if former is None or (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
            self._write_tags(seq, memory)
        return seq
