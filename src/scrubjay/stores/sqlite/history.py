"""What a store remembers beside the memories' present state: links, former versions, events, spaces, facts, recalls."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import apsw

from scrubjay.stores.promises.memories import List, Pending, Reads, SpaceCounts, milliseconds, moment
from scrubjay.stores.sqlite.filters import among, joined, seen, space_number, superseded_for, views_of
from scrubjay.stores.sqlite.rows import COLUMNS, TABLES
from scrubjay.stores.tables.rows import FIELDS, event_of, link_of, memory_of
from scrubjay.stores.tables.side_rows import version_of
from scrubjay.stores.tables.tally import Tally
from scrubjay.values.memory import Audience, Deed, Event, Link, LinkKind, Recall, Space, Version


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

    def last_events(self) -> dict[str, int]:
        with self._reading() as con:
            return {str(name): int(number) for name, number in con.execute("SELECT name, events FROM spaces")}

    def has_space(self, name: str) -> bool:
        with self._reading() as con:
            [(there,)] = con.execute(
                "SELECT EXISTS (SELECT 1 FROM spaces WHERE name = ? AND deleted_at IS NULL)", (name,)
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
        with self._reading() as con:
            views = views_of(con, audience)
            (counted, some), (visible, values), at = seen(views, "totals"), seen(views), milliseconds(now)
            rows = con.execute(
                # the primary key of totals; memories_by_expiry
                f"""
                SELECT spaces.name, sum(memories) FILTER (WHERE state = 0), sum(memories) FILTER (WHERE state = 1)
                FROM (
                    SELECT space, state, memories
                    FROM totals
                    WHERE part = '' AND state IN (0, 1) AND {counted}
                    UNION ALL
                    SELECT space, state, -1
                    FROM memories
                    WHERE expires_at <= ? AND state IN (0, 1) AND {visible}
                    UNION ALL
                    SELECT space, moved.state, moved.by_one
                    FROM memories
                    CROSS JOIN (SELECT 0 AS state, -1 AS by_one UNION ALL SELECT 1, 1) AS moved
                    WHERE seq IN (SELECT value FROM json_each(?))
                    AND (expires_at IS NULL OR expires_at > ?)
                    AND {visible}
                ) AS counts
                JOIN spaces ON spaces.number = counts.space
                GROUP BY counts.space
                """,
                (*some, at, *values, json.dumps(superseded_for(con, audience)), at, *values),
            )
            return {
                name: SpaceCounts(active=active or 0, superseded=superseded or 0) for name, active, superseded in rows
            }

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

    def open_conflicts(self, audience: Audience, *, now: datetime, limit: int, offset: int = 0) -> List[Link]:
        with self._reading() as con:
            views = views_of(con, audience)
            superseded = json.dumps(superseded_for(con, audience))
            conditions, values = [], []
            for end in ("newer", "older"):
                sql, given = seen(views, end)
                conditions.append(f"{sql} AND {end}.state = 0 AND ({end}.expires_at IS NULL OR {end}.expires_at > ?)")
                conditions.append(f"{end}.seq NOT IN (SELECT value FROM json_each(?))")
                values += [*given, milliseconds(now), superseded]
            rows = con.execute(
                # links_open, then each end by the unique index of ids
                f"""
                SELECT links.kind, links.source, links.target, links.score, links.state, links.given, links.reason,
                    links.created_at, links.hlc, links.origin
                FROM links
                CROSS JOIN memories AS newer ON newer.id = links.source
                CROSS JOIN memories AS older ON older.id = links.target
                WHERE links.kind = 'may_outdate'
                AND links.state = 'open'
                AND {" AND ".join(conditions)}
                ORDER BY links.created_at DESC, links.number DESC
                LIMIT ? OFFSET ?
                """,
                (*values, limit, offset),
            )
            return [link_of(row) for row in rows]

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

    def to_mend(self, *, after: int = 0, limit: int) -> List[tuple[int, str]]:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT memories.seq, memories.id
                FROM memories
                JOIN spaces ON spaces.number = memories.space
                WHERE memories.seq > ?
                AND memories.state < 4
                AND (
                    memories.supersedes IS NOT NULL
                    OR memories.superseded_by IS NOT NULL
                    OR memories.seq IN (SELECT memory FROM archives)
                    OR EXISTS (
                        SELECT 1
                        FROM versions
                        WHERE versions.memory = memories.seq
                        AND (
                            versions.snapshot ->> 'access_level' <> memories.access_level
                            OR versions.snapshot ->> 'space' <> spaces.name
                        )
                    )
                )
                ORDER BY memories.seq
                LIMIT ?
                """,
                (after, limit),
            )
            return [(seq, name) for seq, name in rows]

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
