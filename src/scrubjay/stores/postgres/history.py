"""What a store remembers beside the memories' present state: links, former versions, events, spaces, facts, recalls."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import psycopg

from scrubjay.stores.postgres.filters import Condition, among, holds, joined, seen, superseded_for, views_of
from scrubjay.stores.postgres.rows import COLUMNS, FIELDS, memory_of
from scrubjay.stores.promises.memories import List, Pending, Reads, SpaceCounts, milliseconds, moment
from scrubjay.stores.tables.rows import event_of, link_of
from scrubjay.stores.tables.side_rows import version_of
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.memory import Audience, Deed, Event, Link, LinkKind, Recall, Space, Version

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresHistory(Reads):
    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection for one call."""

    def links(self, ids: Sequence[str], *, kinds: frozenset[LinkKind] | None = None) -> List[Link]:
        conditions: list[Condition] = [joined([among("source", ids), among("target", ids)], "OR")]
        if kinds is not None:
            conditions.append(among("kind", sorted(kinds)))
        where, values = joined(conditions, "AND")
        with self._reading() as con:
            rows = con.execute(
                # the primary key, links_by_target
                f"""
                SELECT kind, source, target, score, state, given, reason, created_at, hlc, origin
                FROM links
                WHERE {where}
                ORDER BY created_at, number
                """,
                values,
            )
            return [link_of(row) for row in rows]

    def versions(self, id: str) -> List[Version]:
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id, then the primary key of versions
                """
                SELECT versions.id, versions.snapshot, versions.replaced_at, versions.replaced_by, versions.reason
                FROM memories
                JOIN versions ON versions.space = memories.space AND versions.memory = memories.seq
                WHERE memories.id = %s
                ORDER BY versions.version DESC
                """,
                (id,),
            )
            return [version_of(row) for row in rows]

    def to_mend(self, *, after: int = 0, limit: int) -> List[tuple[int, str]]:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT memories.seq, memories.id
                FROM memories
                WHERE memories.seq > %s
                AND memories.state < 4
                AND (
                    memories.supersedes IS NOT NULL
                    OR memories.superseded_by IS NOT NULL
                    OR memories.packed_bytes IS NOT NULL
                    OR EXISTS (
                        SELECT 1
                        FROM versions
                        WHERE versions.space = memories.space
                        AND versions.memory = memories.seq
                        AND (
                            versions.snapshot::JSON ->> 'access_level' <> memories.access_level
                            OR versions.snapshot::JSON ->> 'space' <> memories.space
                        )
                    )
                )
                ORDER BY memories.seq
                LIMIT %s
                """,
                (after, limit),
            )
            return [(seq, name) for seq, name in rows]

    def events(self, space: str, *, after: int = 0, limit: int = 1000) -> List[Event]:
        with self._reading() as con:
            rows = con.execute(
                # the primary key
                """
                SELECT number, at, action, memory, fields, user_id, client, caller, transport, dialect, reason
                FROM events
                WHERE space = %s
                AND number > %s
                ORDER BY number
                LIMIT %s
                """,
                (space, after, limit),
            )
            return [event_of(space, row) for row in rows]

    def last_event(self, space: str) -> int:
        with self._reading() as con:
            row = con.execute("SELECT events FROM spaces WHERE name = %s", (space,)).fetchone()
            return 0 if row is None else int(row[0])

    def last_events(self) -> dict[str, int]:
        with self._reading() as con:
            return dict(con.execute("SELECT name, events FROM spaces").fetchall())

    def has_space(self, name: str) -> bool:
        with self._reading() as con:
            [(there,)] = con.execute(
                "SELECT EXISTS (SELECT 1 FROM spaces WHERE name = %s AND deleted_at IS NULL)", (name,)
            )
            return bool(there)

    def spaces(self) -> List[Space]:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT name, title, description, created_at
                FROM spaces
                WHERE deleted_at IS NULL
                ORDER BY name
                """
            )
            return [
                Space(name=name, title=title, description=description, created_at=moment(at))
                for name, title, description, at in rows
            ]

    def space_counts(self, audience: Audience, *, now: datetime) -> dict[str, SpaceCounts]:
        views = views_of(audience)
        (counted, some), (visible, values), at = seen(views, "totals"), seen(views), milliseconds(now)
        outdated, named = superseded_for(audience)  # for this audience, though not for everyone
        with self._reading() as con:
            rows = con.execute(
                # the primary key of totals; memories_by_expiry
                f"""
                SELECT
                    space,
                    coalesce(sum(memories) FILTER (WHERE state = 0), 0)::BIGINT,
                    coalesce(sum(memories) FILTER (WHERE state = 1), 0)::BIGINT
                FROM (
                    SELECT space, state, memories
                    FROM totals
                    WHERE part = '' AND state IN (0, 1) AND {counted}
                    UNION ALL
                    SELECT space, state, -1
                    FROM memories
                    WHERE expires_at <= %s AND state IN (0, 1) AND {visible}
                    UNION ALL
                    SELECT space, moved.state, moved.by_one
                    FROM memories
                    CROSS JOIN (VALUES (0, -1), (1, 1)) AS moved (state, by_one)
                    WHERE memories.id = ANY({outdated})
                    AND memories.state = 0
                    AND (expires_at IS NULL OR expires_at > %s)
                    AND {visible}
                ) AS counts
                GROUP BY space
                """,
                (*some, at, *values, *named, at, *values),
            )
            return {name: SpaceCounts(active=active, superseded=superseded) for name, active, superseded in rows}

    def open_conflicts(self, audience: Audience, *, now: datetime, limit: int, offset: int = 0) -> List[Link]:
        views = views_of(audience)
        superseded, told = superseded_for(audience)
        conditions, values = [], list[object]()
        for end in ("newer", "older"):
            sql, given = seen(views, end)
            conditions.append(f"{sql} AND {end}.state = 0 AND ({end}.expires_at IS NULL OR {end}.expires_at > %s)")
            conditions.append(f"{end}.id <> ALL({superseded})")
            values += [*given, milliseconds(now), *told]
        with self._reading() as con:
            rows = con.execute(
                # links_open, then each end by memories_by_id
                f"""
                SELECT links.kind, links.source, links.target, links.score, links.state, links.given, links.reason,
                    links.created_at, links.hlc, links.origin
                FROM links
                JOIN memories AS newer ON newer.id = links.source
                JOIN memories AS older ON older.id = links.target
                WHERE links.kind = 'may_outdate'
                AND links.state = 'open'
                AND {" AND ".join(conditions)}
                ORDER BY links.created_at DESC, links.number DESC
                LIMIT %s OFFSET %s
                """,
                (*values, limit, offset),
            )
            return [link_of(row) for row in rows]

    def deed(self, id: str) -> Deed | None:
        with self._reading() as con:
            row = con.execute("SELECT id, action, user_id, at, reason FROM deeds WHERE id = %s", (id,)).fetchone()
            if row is None:
                return None
            memories = con.execute("SELECT memory FROM deed_memories WHERE deed = %s ORDER BY memory", (id,))
            name, action, user, at, reason = row
            return Deed(
                id=name,
                action=action,
                user=user,
                at=moment(at),
                reason=reason,
                memories=tuple(memory for (memory,) in memories),
            )

    def fact(self, key: str) -> str | None:
        with self._reading() as con:
            row = con.execute("SELECT value FROM facts WHERE key = %s", (key,)).fetchone()
            return None if row is None else str(row[0])

    def pending(self, *, limit: int) -> List[Pending]:
        with self._reading() as con:
            rows = con.execute(
                # pending_by_attempts
                f"""
                SELECT {COLUMNS}, pending.next_part, pending.attempts, pending.judged
                FROM pending
                JOIN memories ON memories.space = pending.space AND memories.seq = pending.memory
                WHERE memories.state < 3
                ORDER BY pending.attempts, pending.memory
                LIMIT %s
                """,
                (limit,),
            )
            return [
                Pending(
                    memory=self._tally.laid_over(memory_of(row[: len(FIELDS)])),
                    next_part=row[-3],
                    attempts=row[-2],
                    judged=row[-1],
                )
                for row in rows
            ]

    def recalls(self, memory: str, *, limit: int = 100) -> List[Recall]:
        where, values = holds("recalls.memories", memory)
        with self._reading() as con:
            rows = con.execute(
                # At most KEPT_RECALLS rows, read rarely: no index of their memories.
                f"""
                SELECT at, space, user_id, client, memories
                FROM recalls
                WHERE {where}
                ORDER BY number DESC
                LIMIT %s
                """,
                (*values, limit),
            )
            written = [
                Recall(at=moment(at), space=space, user=user, client=client, memories=tuple(json.loads(memories)))
                for at, space, user, client, memories in rows
            ]
        return [*self._tally.recalls_of(memory), *written][:limit]
