"""Writing: everything that changes in one transaction of the write connection. Memories themselves come from below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import apsw

from scrubjay.errors import Conflict, CopyUnfinished, NotFound, SpaceNotFound, Unprocessable
from scrubjay.stores.promises.memories import RESULTS_KEPT, Request, milliseconds
from scrubjay.stores.sqlite.filters import space_number
from scrubjay.stores.sqlite.sql import SqliteSql
from scrubjay.stores.sqlite.sync import SqliteReplicas
from scrubjay.stores.tables.parts import hold_changes
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.tally import HOUR, Tally
from scrubjay.values.memory import Deed, Event, Link

DROPPED_AT_ONCE = 100  # results past their time, per result kept: they never pile up, and none waits for them


class SqliteTransaction(SqliteReplicas):
    def __init__(self, con: apsw.Connection, tally: Tally) -> None:
        super().__init__(con, tally)
        hold_changes(self, SqliteSql(self._reading, self._tally, self._note_erasure))

    def _note_erasure(self) -> None:
        self.erased = True

    def tick(self, now: datetime) -> int:
        # Milliseconds in the upper bits, a count in the lower 16: sorts like time, and never stands still.
        [(clock,)] = self._con.execute(
            "UPDATE counters SET clock = max(clock + 1, ?) RETURNING clock", (milliseconds(now) << 16,)
        )
        if self.fact("copy") is not None:  # begun while this process had the store open
            raise CopyUnfinished
        return int(clock)

    def put_off(self, id: str, *, judged: bool | None = None, failed: bool = False) -> None:
        self._con.execute(
            """
            UPDATE pending
            SET attempts = attempts + ?, judged = coalesce(?, judged)
            WHERE memory = (SELECT seq FROM memories WHERE id = ?)
            """,
            (int(failed), None if judged is None else int(judged), id),
        )

    def relate(self, link: Link) -> None:
        self._con.execute(
            """
            INSERT INTO links (kind, source, target, score, state, given, reason, created_at, hlc, origin)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (source, target, kind) DO UPDATE SET
                score = excluded.score, state = excluded.state, given = excluded.given, reason = excluded.reason,
                created_at = excluded.created_at, hlc = excluded.hlc, origin = excluded.origin
            """,
            (
                link.kind,
                link.source,
                link.target,
                link.score,
                link.state,
                int(link.given),
                link.reason,
                milliseconds(link.created_at),
                link.hlc,
                link.origin,
            ),
        )

    def record(self, event: Event) -> Event:
        row = self._con.execute(
            "UPDATE spaces SET events = events + 1 WHERE name = ? RETURNING number, events", (event.space,)
        ).fetchone()
        if row is None:
            raise SpaceNotFound(f"No space {event.space!r}.")
        space, number = row
        self._con.execute(
            """
            INSERT INTO events
                (space, number, at, action, memory, fields, user, client, caller, transport, dialect, reason)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (
                space,
                number,
                milliseconds(event.at),
                event.action,
                event.memory,
                as_json(event.fields),
                event.user,
                event.provenance.client,
                event.provenance.caller,
                event.provenance.transport,
                event.provenance.dialect,
                event.reason,
            ),
        )
        return replace(event, number=number)

    def judge_category(self, id: str, *, agreed: bool) -> None:
        self._con.execute("UPDATE memories SET category_agreed = ? WHERE id = ? AND state < 4", (int(agreed), id))

    def count_consolidation(self, id: str, *, sources: int, at: datetime) -> None:
        self._con.execute(
            """
            INSERT INTO happened
            SELECT space, audience, user, conversation, category, ?, 0, 0, 1, ?
            FROM memories
            WHERE id = ?
            """,
            (milliseconds(at) // HOUR, sources, id),
        )

    def result_of(self, request: Request, *, now: datetime) -> str | None:
        row = self._con.execute(
            # the unique index of callers and keys
            """
            SELECT operation, arguments, result
            FROM results
            WHERE caller = ?
            AND key = ?
            AND at > ?
            """,
            (request.caller, request.key, milliseconds(now - RESULTS_KEPT)),
        ).fetchone()
        if row is None:
            return None
        operation, arguments, result = row
        if (operation, arguments) != (request.operation, request.arguments):
            raise Unprocessable(
                "This idempotency key was used for another request.", hint="Send a new key with every new request."
            )
        return str(result)

    def keep_result(self, request: Request, result: str, *, memories: Sequence[str], at: datetime) -> None:
        self._con.execute(
            # results_by_time; what a result says of memories goes with it
            """
            DELETE FROM results
            WHERE (caller = ? AND key = ?)
            OR number IN (SELECT number FROM results WHERE at <= ? ORDER BY at LIMIT ?)
            """,
            (request.caller, request.key, milliseconds(at - RESULTS_KEPT), DROPPED_AT_ONCE),
        )
        self._con.execute(
            "INSERT INTO results (caller, key, operation, arguments, result, at) VALUES (?, ?, ?, ?, ?, ?)",
            (request.caller, request.key, request.operation, request.arguments, result, milliseconds(at)),
        )
        number = self._con.last_insert_rowid()
        self._con.executemany(
            "INSERT INTO result_memories (memory, result) VALUES (?, ?)",
            [(memory, number) for memory in dict.fromkeys(memories)],
        )

    def alias(self, alias: str, id: str) -> None:
        row = self._con.execute("SELECT seq FROM memories WHERE id = ? AND state <> 4", (id,)).fetchone()
        if row is None:
            raise NotFound(f"No memory {id!r}.")
        [seq] = row
        self._con.execute(
            """
            INSERT INTO aliases (alias, memory)
            SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM memories WHERE id = ?1)
            ON CONFLICT (alias) DO NOTHING
            """,
            (alias, seq),
        )
        if self._con.execute("SELECT memory FROM aliases WHERE alias = ?", (alias,)).fetchone() != (seq,):
            raise Conflict(f"The id {alias!r} is taken.")

    def create_space(self, name: str, *, at: datetime, description: str | None = None) -> bool:
        self._con.execute(
            """
            INSERT INTO spaces (name, description, created_at)
            VALUES (?, ?, ?)
            ON CONFLICT (name) DO UPDATE SET deleted_at = NULL WHERE deleted_at IS NOT NULL
            """,
            (name, description, milliseconds(at)),
        )
        return self._con.changes() == 1

    def describe_space(self, name: str, *, title: str | None, description: str | None) -> None:
        self._con.execute("UPDATE spaces SET title = ?, description = ? WHERE name = ?", (title, description, name))
        if self._con.changes() == 0:
            raise SpaceNotFound(f"No space {name!r}.")

    def drop_space(self, name: str, *, at: datetime) -> None:
        space = space_number(self._con, name)
        if space is None:
            raise SpaceNotFound(f"No space {name!r}.")
        if self._con.execute("SELECT 1 FROM memories WHERE space = ? AND state IN (0, 1, 2)", (space,)).fetchone():
            raise Conflict(f"Space {name} still holds memories.", hint="Forget them or move them first.")
        self._con.execute("DELETE FROM conversations WHERE space = ?", (space,))
        self._con.execute("UPDATE spaces SET deleted_at = ? WHERE number = ?", (milliseconds(at), space))
        self.erased = True

    def note_deed(self, deed: Deed) -> None:
        self._con.execute(
            "INSERT INTO deeds (id, action, user, at, reason) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
            (deed.id, deed.action, deed.user, milliseconds(deed.at), deed.reason),
        )
        self._con.executemany(
            "INSERT INTO deed_memories (deed, memory) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(deed.id, memory) for memory in deed.memories],
        )

    def number_checkpoint(self, space: str, wanted: int | None = None) -> int:
        row = self._con.execute(
            "UPDATE spaces SET checkpoints = max(checkpoints + 1, ?) WHERE name = ? RETURNING checkpoints",
            (wanted or 0, space),
        ).fetchone()
        if row is None:
            raise SpaceNotFound(f"No space {space!r}.")
        return int(row[0])

    def set_fact(self, key: str, value: str) -> None:
        self._con.execute(
            "INSERT INTO facts (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    # --- what a store does in a transaction of its own ---

    def lease(self, name: str, *, holder: str, seconds: float, now: int) -> bool:
        self._con.execute(
            # A lease from the future was taken before the clock was set back; it holds nobody off.
            """
            INSERT INTO leases (name, holder, taken_at, until)
            VALUES (:name, :holder, :now, :until)
            ON CONFLICT (name) DO UPDATE SET
                holder = excluded.holder, taken_at = excluded.taken_at, until = excluded.until
            WHERE holder = :holder OR until <= :now OR taken_at > :now
            """,
            {"name": name, "holder": holder, "now": now, "until": now + int(seconds * 1000)},
        )
        return self._con.changes() == 1

    def release(self, name: str, *, holder: str) -> None:
        self._con.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))
