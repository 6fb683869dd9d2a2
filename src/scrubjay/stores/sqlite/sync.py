"""Memories as they travel between stores, how far feeds were heard, conflicts: the part of sync that is SQL."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import apsw

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.memories import Change, List, milliseconds
from scrubjay.stores.promises.sync import Aside, Endpoint, Erased, Heard, Replica, ReplicaReads, Stamp, SyncConflict
from scrubjay.stores.sqlite.filters import Condition, among, joined, seen, space_number, views_of
from scrubjay.stores.sqlite.history import SqliteHistory
from scrubjay.stores.sqlite.memories import SqliteMemories
from scrubjay.stores.sqlite.rows import COLUMNS, TABLES, row_of
from scrubjay.stores.tables.rows import FIELDS, Row, as_json, maybe_milliseconds, memory_of
from scrubjay.stores.tables.side_rows import endpoint_of, erased_of, sync_conflict_of
from scrubjay.stores.words.words import found_by
from scrubjay.values.memory import Audience, State, random_suffix

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector


class SqliteReplicaReads(SqliteHistory, ReplicaReads):
    def asides(self, id: str) -> list[Aside]:
        with self._reading() as con:
            rows = con.execute("SELECT role, other, hlc FROM asides WHERE memory = ? ORDER BY role, other", (id,))
            return [Aside(*row) for row in rows]

    def stamps(self, ids: Sequence[str], audience: Audience) -> dict[str, Stamp]:
        with self._reading() as con:
            where, values = joined([among("memories.id", ids), seen(views_of(con, audience))], "AND")
            rows = con.execute(
                f"""
                SELECT memories.id, hlc, origin, version, state, final, {_SEEN},
                    (SELECT count(*) FROM aliases WHERE aliases.memory = memories.seq)
                FROM memories
                WHERE {where}
                """,
                values,
            )
            return {
                name: Stamp(
                    hlc=hlc,
                    origin=origin,
                    version=version,
                    erased=erased_of(state, final),
                    seen=json.loads(others),
                    aliases=aliases,
                )
                for name, hlc, origin, version, state, final, others, aliases in rows
            }

    def replicas(self, ids: Sequence[str], audience: Audience, *, vectors: bool = False) -> List[Replica]:
        with self._reading() as con:
            where, values = joined([among("memories.id", ids), seen(views_of(con, audience))], "AND")
            rows: Sequence[Row] = con.execute(
                f"""
                SELECT {COLUMNS}, memories.state, final, parts, {_SEEN},
                    (
                        SELECT json_group_array(alias ORDER BY alias)
                        FROM aliases
                        WHERE aliases.memory = memories.seq
                    )
                FROM {TABLES}
                WHERE {where}
                """,
                values,
            ).fetchall()
            found = {}
            for row in rows:
                memory = self._tally.laid_over(memory_of(row[: len(FIELDS)]))
                state, final, parts, others, aliases = row[len(FIELDS) :]
                found[memory.id] = Replica(
                    memory=memory,
                    erased=erased_of(state, final),
                    seen=json.loads(others),
                    aliases=tuple(json.loads(aliases)),
                    vectors=_vectors(con, memory.seq) if vectors else (),
                    parts=parts,
                )
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def described_spaces(self) -> dict[str, str | None]:
        with self._reading() as con:
            return {str(name): told for name, told in con.execute("SELECT name, description FROM spaces ORDER BY name")}

    def clock(self) -> int:
        with self._reading() as con:
            [(clock,)] = con.execute("SELECT clock FROM counters")
            return int(clock)

    def endpoints(self) -> List[Endpoint]:
        with self._reading() as con:
            rows = con.execute("SELECT name, url, spaces, added_at, synced_at FROM endpoints ORDER BY name")
            return [endpoint_of(row) for row in rows]

    def heard(self, speaker: str, listener: str, space: str) -> Heard:
        with self._reading() as con:
            row = con.execute(
                "SELECT number, proof FROM heard WHERE speaker = ? AND listener = ? AND space = ?",
                (speaker, listener, space),
            ).fetchone()
            return Heard() if row is None else Heard(*row)

    def sync_conflicts(
        self, *, open: bool | None = None, endpoint: str | None = None, memory: str | None = None, limit: int = 1000
    ) -> List[SyncConflict]:
        asked: List[Condition] = []
        if open is not None:
            asked.append(("outcome IS NULL" if open else "outcome IS NOT NULL", []))
        if endpoint is not None:
            asked.append(("endpoint = ?", [endpoint]))
        if memory is not None:
            asked.append(("memory = ?", [memory]))
        where, values = joined(asked, "AND")
        with self._reading() as con:
            rows = con.execute(
                # sync_conflicts_open, sync_conflicts_by_memory
                f"""
                SELECT number, memory, endpoint, policy, at, outcome, settled_at, ours, theirs
                FROM sync_conflicts
                WHERE {where}
                ORDER BY number DESC
                LIMIT ?
                """,
                (*values, limit),
            )
            return [sync_conflict_of(row) for row in rows]


class SqliteReplicas(SqliteReplicaReads, SqliteMemories):
    """The part of a transaction that takes in other stores' memories."""

    def observe(self, hlc: int) -> None:
        self._con.execute("UPDATE counters SET clock = max(clock, ?)", (hlc,))

    def mend_clock(self, *, now: int, latest: int) -> int:
        self._con.execute("CREATE TEMP TABLE lifted (old INTEGER PRIMARY KEY, new INTEGER NOT NULL)")
        where = {"now": now, "latest": latest}
        self._con.execute(
            """
            INSERT INTO lifted (old, new)
            WITH stamps AS (
                SELECT hlc FROM memories
                UNION SELECT hlc FROM links
                UNION SELECT hlc FROM ancestry
            )
            SELECT
                hlc,
                max(:now, coalesce((SELECT max(hlc) FROM stamps WHERE hlc <= :latest), 0))
                    + row_number() OVER (ORDER BY hlc)
            FROM stamps
            WHERE hlc > :latest
            """,
            where,
        )
        for table in ("memories", "links", "ancestry"):
            self._con.execute(
                f"UPDATE {table} SET hlc = (SELECT new FROM lifted WHERE old = {table}.hlc) WHERE hlc > :latest",
                where,
            )
        self._con.execute(
            "UPDATE counters SET clock = max(:now, coalesce((SELECT max(new) FROM lifted), 0)) WHERE clock > :latest",
            where,
        )
        [(count,)] = self._con.execute("SELECT count(*) FROM lifted")
        self._con.execute("DROP TABLE lifted")
        return int(count)

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
        self._join_seen(seq, replica.seen)
        for alias in replica.aliases:
            self._add_alias(alias, seq)

    def point(
        self, id: str, *, supersedes: str | None, superseded_by: str | None, asides: Sequence[Aside] = ()
    ) -> None:
        self._con.execute("DELETE FROM asides WHERE memory = ?", (id,))
        self._con.executemany(
            "INSERT INTO asides (memory, role, other, hlc) VALUES (?, ?, ?, ?)", [(id, *one) for one in asides]
        )
        self._con.execute(
            """
            UPDATE memories
            SET supersedes = :supersedes,
                superseded_by = :superseded_by,
                state = CASE WHEN state IN (0, 1) THEN :superseded_by IS NOT NULL ELSE state END,
                change = :change,
                version = version  -- as it is; so that its file, if it has one, is written anew (0004)
            WHERE id = :id
            AND state < 4
            """,
            {"supersedes": supersedes, "superseded_by": superseded_by, "change": self._changed(), "id": id},
        )
        row = self._con.execute("SELECT fingerprint FROM memories WHERE id = ? AND state < 4", (id,)).fetchone()
        if row is not None:
            self._mark_repeats(bytes(row[0]))

    def move_alias(self, alias: str, id: str) -> None:
        self._con.execute(
            """
            INSERT INTO aliases (alias, memory)
            SELECT ?, seq FROM memories WHERE id = ? AND state < 4
            ON CONFLICT (alias) DO UPDATE SET memory = excluded.memory
            """,
            (alias, id),
        )

    def note_checkpoint(self, space: str, number: int) -> None:
        self._con.execute("UPDATE spaces SET checkpoints = max(checkpoints, ?) WHERE name = ?", (number, space))

    def set_access_count(self, id: str, count: int) -> None:
        self._con.execute("UPDATE memories SET access_count = ? WHERE id = ? AND access_count <> ?", (count, id, count))

    def put_endpoint(self, endpoint: Endpoint) -> None:
        self._con.execute(
            """
            INSERT INTO endpoints (name, url, spaces, added_at, synced_at)
            VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET
                url = excluded.url, spaces = excluded.spaces,
                added_at = excluded.added_at, synced_at = excluded.synced_at
            """,
            (
                endpoint.name,
                endpoint.url,
                None if endpoint.spaces is None else as_json(endpoint.spaces),
                milliseconds(endpoint.added_at) if endpoint.added_at else 0,
                maybe_milliseconds(endpoint.synced_at),
            ),
        )

    def remove_endpoint(self, name: str) -> bool:
        self._con.execute("DELETE FROM sync_conflicts WHERE endpoint = ? AND outcome IS NULL", (name,))
        self._con.execute("DELETE FROM endpoints WHERE name = ?", (name,))
        return self._con.changes() == 1

    def hear(self, speaker: str, listener: str, space: str, heard: Heard) -> None:
        self._con.execute(
            """
            INSERT INTO heard (speaker, listener, space, number, proof)
            VALUES (?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET number = excluded.number, proof = excluded.proof
            """,
            (speaker, listener, space, heard.number, heard.proof),
        )

    def note_conflict(self, conflict: SyncConflict) -> SyncConflict:
        if conflict.outcome is None:
            self._con.execute(
                "DELETE FROM sync_conflicts WHERE endpoint = ? AND memory = ? AND outcome IS NULL",
                (conflict.endpoint, conflict.memory),
            )
        self._con.execute(
            """
            INSERT INTO sync_conflicts (memory, endpoint, policy, at, outcome, settled_at, ours, theirs)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (
                conflict.memory,
                conflict.endpoint,
                conflict.policy,
                milliseconds(conflict.at),
                conflict.outcome,
                maybe_milliseconds(conflict.settled_at),
                conflict.ours,
                conflict.theirs,
            ),
        )
        return replace(conflict, number=self._con.last_insert_rowid())

    def settle_conflict(self, number: int, outcome: str, *, at: datetime) -> None:
        self._con.execute(
            "UPDATE sync_conflicts SET outcome = ?, settled_at = ? WHERE number = ? AND outcome IS NULL",
            (outcome, milliseconds(at), number),
        )

    def renew_origin(self, *, late: bool = False) -> str:
        former, origin = self.fact("origin"), random_suffix(16)
        self._con.execute("UPDATE facts SET value = ? WHERE key = 'origin'", (origin,))
        if late:
            self._con.execute("UPDATE memories SET origin = ? WHERE origin = ?", (origin, former))
            self._con.execute(
                """
                DELETE FROM ancestry
                WHERE origin = ?
                AND memory IN (SELECT seq FROM memories WHERE memories.origin = ?)
                """,
                (former, origin),
            )
        return origin

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

    def _join_seen(self, seq: int, others: Mapping[str, int]) -> None:
        self._con.executemany(
            """
            INSERT INTO ancestry (memory, origin, hlc)
            VALUES (?, ?, ?)
            ON CONFLICT (memory, origin) DO UPDATE SET hlc = max(hlc, excluded.hlc)
            """,
            [(seq, origin, hlc) for origin, hlc in others.items()],
        )

    def _add_alias(self, alias: str, seq: int) -> None:
        self._con.execute(
            """
            INSERT INTO aliases (alias, memory)
            SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM memories WHERE id = ?1)
            ON CONFLICT (alias) DO NOTHING
            """,
            (alias, seq),
        )


# What a row's own stamp says need not be said twice.
_SEEN = """
    (
        SELECT json_group_object(ancestry.origin, ancestry.hlc ORDER BY ancestry.origin)
        FROM ancestry
        WHERE ancestry.memory = memories.seq
        AND (ancestry.origin <> memories.origin OR ancestry.hlc > memories.hlc)
    )
"""


def _vectors(con: apsw.Connection, seq: int) -> tuple[Vector, ...]:
    from scrubjay.stores.sqlite.vectors import from_blob

    rows = con.execute("SELECT vector FROM vectors WHERE memory = ? ORDER BY part", (seq,))
    return tuple(from_blob(blob) for (blob,) in rows)
