"""Memories as they travel between stores, how far feeds were heard, conflicts: the part of sync that is SQL."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.postgres.filters import Condition, joined, namesakes, seen, views_of
from scrubjay.stores.postgres.history import Connection, PostgresHistory
from scrubjay.stores.postgres.memories import Known, PostgresMemories
from scrubjay.stores.postgres.rows import COLUMNS, FIELDS, memory_of, row_of
from scrubjay.stores.postgres.values import vector_of
from scrubjay.stores.postgres.words import passages_of
from scrubjay.stores.promises.memories import Change, List, milliseconds
from scrubjay.stores.promises.sync import Aside, Endpoint, Erased, Heard, Replica, ReplicaReads, Stamp, SyncConflict
from scrubjay.stores.tables.rows import as_json, maybe_milliseconds
from scrubjay.stores.tables.side_rows import endpoint_of, erased_of, sync_conflict_of
from scrubjay.stores.words.words import found_by
from scrubjay.values.memory import AT_HAND, Audience, Memory, State, random_suffix

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

# What a row's own stamp says need not be said twice.
_SEEN = """
    (
        SELECT coalesce(json_object_agg(ancestry.origin, ancestry.hlc), '{}')
        FROM ancestry
        WHERE ancestry.space = memories.space
        AND ancestry.memory = memories.seq
        AND (ancestry.origin <> memories.origin OR ancestry.hlc > memories.hlc)
    )
"""
_ALIASES = "FROM aliases WHERE aliases.space = memories.space AND aliases.memory = memories.seq"


class PostgresReplicaReads(PostgresHistory, ReplicaReads):
    def asides(self, id: str) -> list[Aside]:
        with self._reading() as con:
            rows = con.execute("SELECT role, other, hlc FROM asides WHERE memory = %s ORDER BY role, other", (id,))
            return [Aside(*row) for row in rows]

    def stamps(self, ids: Sequence[str], audience: Audience) -> dict[str, Stamp]:
        where, values = joined([("memories.id = ANY(%s)", [list(ids)]), seen(views_of(audience))], "AND")
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id
                f"""
                SELECT memories.id, hlc, origin, version, state, final, {_SEEN}, (SELECT count(*) {_ALIASES})
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
                    seen=others,
                    aliases=aliases,
                )
                for name, hlc, origin, version, state, final, others, aliases in rows
            }

    def replicas(self, ids: Sequence[str], audience: Audience, *, vectors: bool = False) -> List[Replica]:
        where, values = joined([("memories.id = ANY(%s)", [list(ids)]), seen(views_of(audience))], "AND")
        found = {}
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id
                f"""
                SELECT {COLUMNS}, memories.state, final, parts, {_SEEN}, ARRAY(SELECT alias {_ALIASES} ORDER BY alias)
                FROM memories
                WHERE {where}
                """,
                values,
            ).fetchall()
            for row in rows:
                memory = self._tally.laid_over(memory_of(row[: len(FIELDS)]))
                state, final, parts, others, aliases = row[len(FIELDS) :]
                found[memory.id] = Replica(
                    memory=memory,
                    erased=erased_of(state, final),
                    seen=others,
                    aliases=tuple(aliases),
                    vectors=_vectors(con, memory) if vectors else (),
                    parts=parts,
                )
        return [found[name] for name in dict.fromkeys(ids) if name in found]

    def described_spaces(self) -> dict[str, str | None]:
        with self._reading() as con:
            return dict(con.execute("SELECT name, description FROM spaces ORDER BY name"))

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
                "SELECT number, proof FROM heard WHERE speaker = %s AND listener = %s AND space = %s",
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
            asked.append(("endpoint = %s", [endpoint]))
        if memory is not None:
            asked.append(("memory = %s", [memory]))
        where, values = joined(asked, "AND")
        with self._reading() as con:
            rows = con.execute(
                # sync_conflicts_open, sync_conflicts_by_memory
                f"""
                SELECT number, memory, endpoint, policy, at, outcome, settled_at, ours, theirs
                FROM sync_conflicts
                WHERE {where}
                ORDER BY number DESC
                LIMIT %s
                """,
                (*values, limit),
            )
            return [sync_conflict_of(row) for row in rows]


class PostgresReplicas(PostgresReplicaReads, PostgresMemories):
    """The part of a transaction that takes in other stores' memories."""

    def mend_clock(self, *, now: int, latest: int) -> int:
        self._con.execute("CREATE TEMP TABLE lifted (old BIGINT PRIMARY KEY, new BIGINT NOT NULL) ON COMMIT DROP")
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
                greatest(%(now)s, coalesce((SELECT max(hlc) FROM stamps WHERE hlc <= %(latest)s), 0))
                    + row_number() OVER (ORDER BY hlc)
            FROM stamps
            WHERE hlc > %(latest)s
            """,
            where,
        )
        for table in ("memories", "links", "ancestry"):
            self._con.execute(
                f"UPDATE {table} SET hlc = (SELECT new FROM lifted WHERE old = {table}.hlc) WHERE hlc > %(latest)s",
                where,
            )
        self._con.execute(
            """
            UPDATE counters
            SET clock = greatest(%(now)s, coalesce((SELECT max(new) FROM lifted), 0))
            WHERE clock > %(latest)s
            """,
            where,
        )
        [(count,)] = self._con.execute("SELECT count(*) FROM lifted")
        self._con.execute("DROP TABLE lifted")
        return int(count)

    def replicate(
        self, replica: Replica, *, fingerprint: bytes | None, vectors: Sequence[Vector] | None, change: Change
    ) -> None:
        memory = replica.memory
        known = self._known(memory.id)
        if known is not None and _same(known, replica):
            self._update(memory.space, known.seq, {"version": memory.version})
            self._file_of(memory, known, moved=False)
            seq = known.seq
        else:
            columns = self._columns(replica, fingerprint)
            if known is None:
                seq = self._insert(
                    memory,
                    columns,
                    () if replica.erased else vectors or (),
                    parts=0 if replica.erased else replica.parts,
                    repeated=not replica.erased,
                    mirrored=True,
                ).seq
            else:
                seq = self._replace_by(known, columns, replica, change)
                if not replica.erased and vectors is not None:
                    self._replace_all_vectors(memory, seq, vectors, replica.parts)
        self._join_seen(memory.space, seq, replica.seen)
        for alias in replica.aliases:
            self._add_alias(memory.space, alias, seq)

    def point(
        self, id: str, *, supersedes: str | None, superseded_by: str | None, asides: Sequence[Aside] = ()
    ) -> None:
        self._con.execute("DELETE FROM asides WHERE memory = %s", (id,))
        if asides:
            self._con.cursor().executemany(
                "INSERT INTO asides (memory, role, other, hlc) VALUES (%s, %s, %s, %s)", [(id, *one) for one in asides]
            )
        known = self._known(id)
        if known is None or known.counted.state == State.PURGED:
            return
        state = known.counted.state
        if state in AT_HAND:
            state = int(superseded_by is not None)
        columns = {"supersedes": supersedes, "superseded_by": superseded_by, "state": state}
        self._update(known.counted.space, known.seq, columns)
        self._recount(known)
        self._mark_repeats(known.fingerprint)
        self._file_of(known.memory, known, moved=False)

    def move_alias(self, alias: str, id: str) -> None:
        row = self._con.execute("SELECT space, seq FROM memories WHERE id = %s AND state < 4", (id,)).fetchone()
        if row is not None:
            self._con.execute("DELETE FROM aliases WHERE alias = %s", (alias,))
            self._con.execute("INSERT INTO aliases (space, memory, alias) VALUES (%s, %s, %s)", (*row, alias))

    def note_checkpoint(self, space: str, number: int) -> None:
        self._con.execute("UPDATE spaces SET checkpoints = greatest(checkpoints, %s) WHERE name = %s", (number, space))

    def set_access_count(self, id: str, count: int) -> None:
        known = self._known(id)
        if known is not None and known.counted.reads != count:
            self._update(known.counted.space, known.seq, {"access_count": count})
            self._recount(known)

    def put_endpoint(self, endpoint: Endpoint) -> None:
        self._con.execute(
            """
            INSERT INTO endpoints (name, url, spaces, added_at, synced_at)
            VALUES (%s, %s, %s, %s, %s)
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
        self._con.execute("DELETE FROM sync_conflicts WHERE endpoint = %s AND outcome IS NULL", (name,))
        return self._con.execute("DELETE FROM endpoints WHERE name = %s", (name,)).rowcount == 1

    def hear(self, speaker: str, listener: str, space: str, heard: Heard) -> None:
        self._con.execute(
            """
            INSERT INTO heard (speaker, listener, space, number, proof)
            VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (speaker, listener, space) DO UPDATE SET number = excluded.number, proof = excluded.proof
            """,
            (speaker, listener, space, heard.number, heard.proof),
        )

    def note_conflict(self, conflict: SyncConflict) -> SyncConflict:
        if conflict.outcome is None:
            self._con.execute(
                "DELETE FROM sync_conflicts WHERE endpoint = %s AND memory = %s AND outcome IS NULL",
                (conflict.endpoint, conflict.memory),
            )
        [(number,)] = self._con.execute(
            """
            INSERT INTO sync_conflicts (memory, endpoint, policy, at, outcome, settled_at, ours, theirs)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            RETURNING number
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
        return replace(conflict, number=number)

    def settle_conflict(self, number: int, outcome: str, *, at: datetime) -> None:
        self._con.execute(
            "UPDATE sync_conflicts SET outcome = %s, settled_at = %s WHERE number = %s AND outcome IS NULL",
            (outcome, milliseconds(at), number),
        )

    def renew_origin(self, *, late: bool = False) -> str:
        former, origin = self.fact("origin"), random_suffix(16)
        self.set_fact("origin", origin)
        if late:
            self._con.execute("UPDATE memories SET origin = %s WHERE origin = %s", (origin, former))
            self._con.execute(
                """
                DELETE FROM ancestry
                USING memories
                WHERE ancestry.origin = %s
                AND memories.space = ancestry.space
                AND memories.seq = ancestry.memory
                AND memories.origin = %s
                """,
                (former, origin),
            )
        return origin

    def _columns(self, replica: Replica, fingerprint: bytes | None) -> dict[str, Any]:
        memory = replica.memory
        if self._con.execute("SELECT 1 FROM spaces WHERE name = %s", (memory.space,)).fetchone() is None:
            raise SpaceNotFound(f"No space {memory.space!r}.", hint="Create it first.")
        columns = row_of(memory) | {"fingerprint": fingerprint, "final": int(replica.erased is Erased.FINAL)}
        if replica.erased:
            return columns | {"state": int(State.PURGED), "fingerprint": None, "content_hash": None}
        taken = self._con.execute(
            # memories_by_place
            """
            SELECT 1
            FROM memories
            WHERE space = %s AND path = %s AND state IN (0, 1) AND id <> %s AND audience = ANY(%s)
            """,
            (memory.space, memory.path, memory.id, namesakes(memory)),
        ).fetchone()
        if taken and memory.state in AT_HAND:
            raise Conflict(f"The path {memory.path!r} is taken.", hint="Choose another path.", path=memory.path)
        return columns

    def _replace_by(self, known: Known, columns: dict[str, Any], replica: Replica, change: Change) -> int:
        memory, seq = replica.memory, known.seq
        if replica.erased:
            self.purge(memory.id, at=memory.updated_at, final=False)
            now = self._known(memory.id)
            assert now is not None
            self._move(now.counted.space, memory.space, seq)
            self._update(now.counted.space, seq, columns | {"parts": 0})
            self._remember(known, memory)
            self._recount(now)
            self._file_of(memory, known, moved=False)
            return seq
        former = None if known.counted.state == State.PURGED else known.memory
        if former is not None:
            self._keep_version(known, change)
        if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
            self._remove_words(known.counted.space, seq)
        self._move(known.counted.space, memory.space, seq)
        self._update(known.counted.space, seq, columns)
        self._remember(known, memory)
        self._recount(known)
        self._mark_repeats(*{one for one in (known.fingerprint, columns["fingerprint"]) if one is not None})
        if former is None or (found_by(former), former.space) != (found_by(memory), memory.space):
            self.write_words(memory.space, seq, passages_of(memory))
        if former is None or (former.tags, former.auto_tags) != (memory.tags, memory.auto_tags):
            self._write_tags(seq, memory)
        self._file_of(memory, known, moved=former is not None and former.path != memory.path)
        return seq

    def _replace_all_vectors(self, memory: Memory, seq: int, vectors: Sequence[Vector], parts: int) -> None:
        before = self._known(memory.id)
        assert before is not None
        size = sum(4 * len(vector) for vector in vectors)
        left = {"text_version": memory.version, "parts": parts, "vector_bytes": size}
        self._update(memory.space, seq, left)
        self._replace_vectors(memory.space, seq, vectors, parts)
        self._recount(before)

    def _file_of(self, memory: Memory, known: Known, *, moved: bool) -> None:
        self.file_waits(memory.id, space=memory.space, version=memory.version, state=known.counted.state, moved=moved)

    def _join_seen(self, space: str, seq: int, others: Mapping[str, int]) -> None:
        for origin, hlc in others.items():
            self._note_ancestor(space, seq, origin, hlc)

    def _add_alias(self, space: str, alias: str, seq: int) -> None:
        self._con.execute(
            """
            INSERT INTO aliases (space, alias, memory)
            SELECT %(space)s, %(alias)s, %(seq)s
            WHERE NOT EXISTS (SELECT 1 FROM memories WHERE id = %(alias)s)
            AND NOT EXISTS (SELECT 1 FROM aliases WHERE alias = %(alias)s)
            """,
            {"space": space, "alias": alias, "seq": seq},
        )


def _same(known: Known, replica: Replica) -> bool:
    """Whether the state here has the same stamp, and is erased if the other is."""
    memory = known.memory
    return (memory.hlc, memory.origin) == (replica.memory.hlc, replica.memory.origin) and (
        bool(replica.erased) == (known.counted.state == State.PURGED)
    )


def _vectors(con: Connection, memory: Memory) -> tuple[Vector, ...]:
    rows = con.execute(
        "SELECT vector_send(vector) FROM vectors WHERE space = %s AND memory = %s ORDER BY part",
        (memory.space, memory.seq),
        binary=True,
    )
    return tuple(vector_of(sent) for (sent,) in rows)
