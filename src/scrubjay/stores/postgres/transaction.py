"""Writing: everything that changes in one transaction. Memories themselves come from below.

What many changes of one transaction would write to the same row again and again (clock, feed numbers, totals) is kept
here and written once, before the next read and at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scrubjay.errors import Conflict, CopyUnfinished, NotFound, SpaceNotFound, Unprocessable
from scrubjay.stores.postgres.counts import Counted
from scrubjay.stores.postgres.history import Connection
from scrubjay.stores.postgres.memories import AGAIN
from scrubjay.stores.postgres.rebuilding import PostgresRebuilding
from scrubjay.stores.postgres.rows import COUNTED
from scrubjay.stores.postgres.sql import PostgresSql
from scrubjay.stores.postgres.sync import PostgresReplicas
from scrubjay.stores.promises.memories import RESULTS_KEPT, Request, milliseconds
from scrubjay.stores.tables.parts import hold_changes
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch, Tally
from scrubjay.values.memory import Deed, Event, Link

DROPPED_AT_ONCE = 100  # results past their time, per result kept: they never pile up, and none waits for them


class PostgresTransaction(PostgresReplicas, PostgresRebuilding):
    def __init__(self, con: Connection, tally: Tally) -> None:
        super().__init__(con, tally)
        hold_changes(self, PostgresSql(self._reading, self._tally))
        self._clock: int | None = None
        self._ticked = False
        self._feeds: dict[str, int] = {}  # number of each space's last event
        self._events: list[tuple[Any, ...]] = []
        self._spaces: set[str] = set()  # that are known to exist
        self._facts: dict[str, str | None] = {}

    def write_gathered(self) -> None:
        super().write_gathered()
        if self._events:
            self._write_events()
        if self._ticked:
            self._con.execute("UPDATE counters SET clock = %s", (self._clock,))
            self._ticked = False

    def tick(self, now: datetime) -> int:
        # Milliseconds in the upper bits, a count in the lower 16: sorts like time, and never stands still.
        if self._clock is None:
            # In the same question: whether somebody began a copy into this store while this process had it open.
            [(self._clock, copied)] = self._con.execute(
                "SELECT clock, (SELECT value FROM facts WHERE key = 'copy') FROM counters"
            )
            if copied is not None:
                raise CopyUnfinished
        self._clock = max(self._clock + 1, milliseconds(now) << 16)
        self._ticked = True
        return self._clock

    def mend_clock(self, *, now: int, latest: int) -> int:
        self.write_gathered()
        mended = super().mend_clock(now=now, latest=latest)
        self._clock = None  # what was read is no longer so
        return mended

    def observe(self, hlc: int) -> None:
        if self._clock is None:
            [(self._clock,)] = self._con.execute("SELECT clock FROM counters")
        if hlc > self._clock:
            self._clock, self._ticked = hlc, True

    def fact(self, key: str) -> str | None:
        if key not in self._facts:
            self._facts[key] = super().fact(key)
        return self._facts[key]

    def put_off(self, id: str, *, judged: bool | None = None, failed: bool = False) -> None:
        self._con.execute(
            """
            UPDATE pending
            SET attempts = attempts + %s, judged = coalesce(%s, judged)
            FROM memories
            WHERE memories.id = %s
            AND pending.space = memories.space
            AND pending.memory = memories.seq
            """,
            (int(failed), judged, id),
        )

    def relate(self, link: Link) -> None:
        self._con.execute(
            # The file of what it leads from names it, and so waits; a proposal is named nowhere.
            f"""
            WITH former AS (
                SELECT state FROM links WHERE source = %(source)s AND target = %(target)s AND kind = %(kind)s
            ), written AS (
                INSERT INTO links (kind, source, target, score, state, given, reason, created_at, hlc, origin)
                VALUES (
                    %(kind)s, %(source)s, %(target)s, %(score)s, %(state)s, %(given)s, %(reason)s, %(created_at)s,
                    %(hlc)s, %(origin)s
                )
                ON CONFLICT (source, target, kind) DO UPDATE SET
                    score = excluded.score, state = excluded.state, given = excluded.given, reason = excluded.reason,
                    created_at = excluded.created_at, hlc = excluded.hlc, origin = excluded.origin
                RETURNING kind, source, state
            )
            INSERT INTO outbox (space, memory, version)
            SELECT files.space, files.memory, memories.version
            FROM written
            JOIN files ON files.memory = written.source
            JOIN memories ON memories.id = files.memory
            WHERE written.kind <> 'may_outdate'
            AND written.state IS DISTINCT FROM (SELECT state FROM former)
            {AGAIN}
            """,  # noqa: S608 -- constants
            {
                "kind": link.kind,
                "source": link.source,
                "target": link.target,
                "score": link.score,
                "state": link.state,
                "given": link.given,
                "reason": link.reason,
                "created_at": milliseconds(link.created_at),
                "hlc": link.hlc,
                "origin": link.origin,
            },
        )

    def record(self, event: Event) -> Event:
        if event.space not in self._feeds:
            row = self._con.execute("SELECT events FROM spaces WHERE name = %s", (event.space,)).fetchone()
            if row is None:
                raise SpaceNotFound(f"No space {event.space!r}.")
            [self._feeds[event.space]] = row
        self._feeds[event.space] += 1
        number = self._feeds[event.space]
        self._events.append(
            (
                event.space,
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
            )
        )
        return replace(event, number=number)

    def _write_events(self) -> None:
        columns = [list(column) for column in zip(*self._events, strict=True)]
        told = {space: self._feeds[space] for space in columns[0]}
        self._events = []
        self._con.execute(
            """
            WITH told AS (
                INSERT INTO events
                    (space, number, at, action, memory, fields, user_id, client, caller, transport, dialect, reason)
                SELECT *
                FROM unnest(
                    %s::TEXT[], %s::BIGINT[], %s::BIGINT[], %s::TEXT[], %s::TEXT[], %s::TEXT[],
                    %s::TEXT[], %s::TEXT[], %s::TEXT[], %s::TEXT[], %s::TEXT[], %s::TEXT[]
                )
            )
            UPDATE spaces SET events = feeds.number
            FROM unnest(%s::TEXT[], %s::BIGINT[]) AS feeds (space, number)
            WHERE spaces.name = feeds.space
            RETURNING pg_notify(current_schema(), spaces.name)  -- see postgres/listening.py
            """,
            [*columns, [*told], [*told.values()]],
        )

    def judge_category(self, id: str, *, agreed: bool) -> None:
        row = self._con.execute(
            f"SELECT {COUNTED}, seq FROM memories WHERE id = %s AND state < 4",  # noqa: S608 -- constants
            (id,),
        ).fetchone()
        if row is not None:
            before, seq = Counted(*row[:-1]), row[-1]
            self._counts.replaced(before, before._replace(agreed=int(agreed)))
            self._con.execute(
                "UPDATE memories SET category_agreed = %s WHERE space = %s AND seq = %s",
                (int(agreed), before.space, seq),
            )

    def count_consolidation(self, id: str, *, sources: int, at: datetime) -> None:
        rows = self._con.execute(f"SELECT {COUNTED} FROM memories WHERE id = %s", (id,))  # noqa: S608 -- constants
        for row in rows:
            self._counts.happened(Counted(*row), milliseconds(at) // HOUR, consolidations=1, consolidated=sources)

    def result_of(self, request: Request, *, now: datetime) -> str | None:
        row = self._con.execute(
            # the primary key
            "SELECT operation, arguments, result FROM results WHERE caller = %s AND key = %s AND at > %s",
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
            WHERE (caller = %s AND key = %s)
            OR (caller, key) IN (SELECT caller, key FROM results WHERE at <= %s ORDER BY at LIMIT %s)
            """,
            (request.caller, request.key, milliseconds(at - RESULTS_KEPT), DROPPED_AT_ONCE),
        )
        self._con.execute(
            """
            INSERT INTO results (caller, key, operation, arguments, result, at)
            VALUES (%s, %s, %s, %s, %s, %s)
            """,
            (request.caller, request.key, request.operation, request.arguments, result, milliseconds(at)),
        )
        self._con.execute(
            "INSERT INTO result_memories (memory, caller, key) SELECT unnest(%s::TEXT[]), %s, %s",
            (list(dict.fromkeys(memories)), request.caller, request.key),
        )

    def alias(self, alias: str, id: str) -> None:
        row = self._con.execute(
            # memories_by_id, aliases_by_alias
            """
            SELECT
                memories.space,
                memories.seq,
                EXISTS (SELECT 1 FROM memories AS others WHERE others.id = %(alias)s),
                (SELECT memory FROM aliases WHERE alias = %(alias)s)
            FROM memories
            WHERE id = %(id)s
            AND state <> 4
            """,
            {"alias": alias, "id": id},
        ).fetchone()
        if row is None:
            raise NotFound(f"No memory {id!r}.")
        space, seq, taken, meant = row
        if taken or meant not in (None, seq):
            raise Conflict(f"The id {alias!r} is taken.")
        if meant is None:
            self._con.execute("INSERT INTO aliases (space, alias, memory) VALUES (%s, %s, %s)", (space, alias, seq))

    def create_space(self, name: str, *, at: datetime, description: str | None = None) -> bool:
        if name in self._spaces:
            return False
        created = self._con.execute(
            """
            INSERT INTO spaces (name, description, created_at) VALUES (%s, %s, %s)
            ON CONFLICT (name) DO UPDATE SET deleted_at = NULL WHERE spaces.deleted_at IS NOT NULL
            """,
            (name, description, milliseconds(at)),
        ).rowcount
        self._spaces.add(name)
        return created == 1

    def describe_space(self, name: str, *, title: str | None, description: str | None) -> None:
        described = self._con.execute(
            "UPDATE spaces SET title = %s, description = %s WHERE name = %s", (title, description, name)
        )
        if described.rowcount == 0:
            raise SpaceNotFound(f"No space {name!r}.")

    def drop_space(self, name: str, *, at: datetime) -> None:
        self._existing_space(name)
        if self._con.execute(
            "SELECT 1 FROM memories WHERE space = %s AND state IN (0, 1, 2) LIMIT 1", (name,)
        ).fetchone():
            raise Conflict(f"Space {name} still holds memories.", hint="Forget them or move them first.")
        for table in ("conversations", "messages", "injections"):
            self._con.execute(f"DELETE FROM {table} WHERE space = %s", (name,))  # noqa: S608 -- constants
        self._con.execute("UPDATE spaces SET deleted_at = %s WHERE name = %s", (milliseconds(at), name))

    def note_deed(self, deed: Deed) -> None:
        self._con.execute(
            "INSERT INTO deeds (id, action, user_id, at, reason) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            (deed.id, deed.action, deed.user, milliseconds(deed.at), deed.reason),
        )
        self._con.execute(
            "INSERT INTO deed_memories (deed, memory) SELECT %s, unnest(%s::TEXT[]) ON CONFLICT DO NOTHING",
            (deed.id, list(deed.memories)),
        )

    def _existing_space(self, name: str) -> None:
        if self._con.execute("SELECT 1 FROM spaces WHERE name = %s", (name,)).fetchone() is None:
            raise SpaceNotFound(f"No space {name!r}.", hint="Create it first.")

    def number_checkpoint(self, space: str, wanted: int | None = None) -> int:
        row = self._con.execute(
            "UPDATE spaces SET checkpoints = greatest(checkpoints + 1, %s) WHERE name = %s RETURNING checkpoints",
            (wanted or 0, space),
        ).fetchone()
        if row is None:
            raise SpaceNotFound(f"No space {space!r}.")
        return int(row[0])

    def set_fact(self, key: str, value: str) -> None:
        self._facts[key] = value
        self._con.execute(
            """
            INSERT INTO facts (key, value) VALUES (%s, %s)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """,
            (key, value),
        )

    # --- what a store does in a transaction of its own ---

    def write_reads(self, batch: Batch) -> None:
        """Add a batch to the counters and the recall log; ids of no memory are passed over."""
        if batch.readings:
            self._count_reads(batch)
        if batch.recalls:
            self._log_recalls(batch)

    def _count_reads(self, batch: Batch) -> None:
        readings = batch.readings
        rows = self._con.execute(
            # memories_by_id
            f"""
            UPDATE memories
            SET access_count = access_count + counted.count, accessed_at = greatest(accessed_at, counted.at)
            FROM unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS counted (id, count, at)
            WHERE memories.id = counted.id
            RETURNING memories.id, {COUNTED}
            """,  # noqa: S608 -- constants
            ([*readings], [one.count for one in readings.values()], [one.at for one in readings.values()]),
        )
        for memory, *row in rows:
            now = Counted(*row)
            self._counts.replaced(now._replace(reads=now.reads - readings[memory].count), now)
            for hour, count in readings[memory].hours.items():
                self._counts.happened(now, hour, reads=count)

    def _log_recalls(self, batch: Batch) -> None:
        cursor = self._con.cursor()
        cursor.executemany(
            "INSERT INTO recalls (at, space, user_id, client, memories) VALUES (%s, %s, %s, %s, %s)",
            [
                (milliseconds(recall.at), recall.space, recall.user, recall.client, as_json(recall.memories))
                for recall in batch.recalls
            ],
        )
        cursor.executemany(
            """
            INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
            VALUES (%s, %s, %s, 1, %s)
            ON CONFLICT (space, user_id, hour) DO UPDATE SET
                recalls = recall_counts.recalls + 1,
                memories = recall_counts.memories + excluded.memories
            """,
            [
                (recall.space, recall.user, milliseconds(recall.at) // HOUR, len(recall.memories))
                for recall in batch.recalls
            ],
        )
        self._con.execute(
            # recalls_by_number
            "DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - %s",
            (KEPT_RECALLS,),
        )
