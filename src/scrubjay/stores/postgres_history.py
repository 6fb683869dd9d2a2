"""What a store remembers beside the memories' present state: links, former versions, events, spaces, facts, recalls."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import psycopg

from scrubjay.memory import Event, Link, LinkKind, Recall, Space, Version
from scrubjay.stores.base import List, Pending, Reads, moment
from scrubjay.stores.postgres_filters import Condition, among, holds, joined
from scrubjay.stores.postgres_rows import COLUMNS, FIELDS, memory_of
from scrubjay.stores.rows import event_of, link_of
from scrubjay.stores.side_rows import version_of
from scrubjay.stores.tally import Tally

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

    def spaces(self) -> List[Space]:
        with self._reading() as con:
            rows = con.execute(
                # the primary key of totals
                """
                SELECT name, title, description, created_at, coalesce(active.memories, 0)::BIGINT
                FROM spaces
                LEFT JOIN (
                    SELECT space, sum(memories) AS memories FROM totals WHERE part = '' AND state = 0 GROUP BY space
                ) AS active ON active.space = spaces.name
                WHERE deleted_at IS NULL
                ORDER BY name
                """
            )
            return [
                Space(name=name, title=title, description=description, created_at=moment(at), memories=memories)
                for name, title, description, at, memories in rows
            ]

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
