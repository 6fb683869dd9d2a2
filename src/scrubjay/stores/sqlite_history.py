"""What a store remembers beside the memories' present state: links, former versions, events, spaces, facts, recalls."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import apsw

from scrubjay.memory import Archive, Deed, Event, Job, Link, LinkKind, Recall, Space, Version
from scrubjay.stores import sqlite_archives, sqlite_jobs
from scrubjay.stores.base import List, Pending, Reads, moment
from scrubjay.stores.rows import FIELDS, event_of, link_of, memory_of
from scrubjay.stores.side_rows import version_of
from scrubjay.stores.sqlite_filters import among, joined, space_number
from scrubjay.stores.sqlite_rows import COLUMNS, TABLES
from scrubjay.stores.tally import Tally


class SqliteHistory(Reads):
    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    @abstractmethod
    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        """A connection for one call."""

    def links(self, ids: Sequence[str], *, kinds: frozenset[LinkKind] | None = None) -> List[Link]:
        ends = joined([among("source", ids), among("target", ids)], "OR")  # the unique index, links_by_target
        where, values = joined([ends] if kinds is None else [ends, among("kind", sorted(kinds))], "AND")
        with self._reading() as con:
            rows = con.execute(
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
                """
                SELECT versions.id, versions.snapshot, versions.replaced_at, versions.replaced_by, versions.reason
                FROM memories
                JOIN versions ON versions.memory = memories.seq
                WHERE memories.id = ?
                ORDER BY versions.version DESC
                """,
                (id,),
            )
            return [version_of(row) for row in rows]

    def events(self, space: str, *, after: int = 0, limit: int = 1000) -> List[Event]:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT number, at, action, memory, fields, user, client, caller, transport, dialect, reason
                FROM events
                WHERE space = ?
                AND number > ?
                ORDER BY number
                LIMIT ?
                """,
                (space_number(con, space), after, limit),
            )
            return [event_of(space, row) for row in rows]

    def last_event(self, space: str) -> int:
        with self._reading() as con:
            row = con.execute("SELECT events FROM spaces WHERE name = ?", (space,)).fetchone()
            return 0 if row is None else int(row[0])

    def spaces(self) -> List[Space]:
        with self._reading() as con:
            rows = con.execute(
                # memories_by_created
                """
                SELECT name, title, description, created_at,
                    (SELECT count(*) FROM memories WHERE space = spaces.number AND state = 0)
                FROM spaces
                WHERE deleted_at IS NULL
                ORDER BY name
                """
            )
            return [
                Space(name=name, title=title, description=description, created_at=moment(at), memories=memories)
                for name, title, description, at, memories in rows
            ]

    def deed(self, id: str) -> Deed | None:
        with self._reading() as con:
            row = con.execute("SELECT id, action, user, at, reason FROM deeds WHERE id = ?", (id,)).fetchone()
            if row is None:
                return None
            memories = con.execute("SELECT memory FROM deed_memories WHERE deed = ? ORDER BY memory", (id,))
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
            row = con.execute("SELECT value FROM facts WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

    def pending(self, *, limit: int) -> List[Pending]:
        with self._reading() as con:
            rows = con.execute(
                # pending_by_attempts
                f"""
                SELECT {COLUMNS}, pending.next_part, pending.attempts, pending.judged
                FROM pending
                CROSS JOIN {TABLES}
                WHERE memories.seq = pending.memory
                AND memories.state < 3
                ORDER BY pending.attempts, pending.memory
                LIMIT ?
                """,
                (limit,),
            )
            return [
                Pending(
                    memory=self._tally.laid_over(memory_of(row[: len(FIELDS)])),
                    next_part=row[-3],
                    attempts=row[-2],
                    judged=bool(row[-1]),
                )
                for row in rows
            ]

    def recalls(self, memory: str, *, limit: int = 100) -> List[Recall]:
        with self._reading() as con:
            rows = con.execute(
                # At most KEPT_RECALLS rows, read rarely: no index of their memories.
                """
                SELECT at, space, user, client, memories
                FROM recalls
                WHERE EXISTS (SELECT 1 FROM json_each(recalls.memories) WHERE value = ?)
                ORDER BY number DESC
                LIMIT ?
                """,
                (memory, limit),
            )
            written = [
                Recall(at=moment(at), space=space, user=user, client=client, memories=tuple(json.loads(memories)))
                for at, space, user, client, memories in rows
            ]
        return [*self._tally.recalls_of(memory), *written][:limit]

    def job(self, id: str) -> Job | None:
        with self._reading() as con:
            return sqlite_jobs.job(con, id)

    def jobs(self, *, user: str | None = None, unfinished: bool = False, limit: int = 100) -> List[Job]:
        with self._reading() as con:
            return sqlite_jobs.jobs(con, user=user, unfinished=unfinished, limit=limit)

    def held(self, ids: Sequence[str], *, but: str = "") -> List[str]:
        with self._reading() as con:
            return sqlite_jobs.held(con, ids, but=but)

    def archives(self, ids: Sequence[str]) -> dict[str, Archive]:
        with self._reading() as con:
            return sqlite_archives.archives(con, ids)

    def hot_bytes(self, ids: Sequence[str], *, vectors: bool) -> dict[str, int]:
        with self._reading() as con:
            return sqlite_archives.hot_bytes(con, ids, vectors=vectors)

    def archived_bytes(self) -> int:
        with self._reading() as con:
            return sqlite_archives.total_bytes(con)

    def objects_due(self, now: datetime, limit: int) -> List[str]:
        with self._reading() as con:
            return sqlite_archives.objects_due(con, now, limit)
