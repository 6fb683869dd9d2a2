"""Credentials, grants, sessions and the audit in SQLite."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

import apsw

from scrubjay.errors import Conflict
from scrubjay.memory import Act, Credential, Grant, Session
from scrubjay.stores.base import milliseconds, moment
from scrubjay.stores.callers import ActFilter, CallerChanges, CallerReads
from scrubjay.stores.rows import maybe_milliseconds
from scrubjay.stores.side_rows import act_of, credential_of, session_of
from scrubjay.stores.sqlite_filters import Condition, among, joined

CREDENTIAL = "id, kind, user, role, spaces, name, created_at, created_by, expires_at, revoked_at"


class SqliteCallers(CallerReads):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[apsw.Connection]:
        """A connection for one call."""

    def credential(self, id: str) -> tuple[Credential, bytes | None] | None:
        with self._reading() as con:
            row = con.execute(f"SELECT {CREDENTIAL}, secret FROM credentials WHERE id = ?", (id,)).fetchone()
            return None if row is None else (credential_of(row[:-1]), row[-1])

    def credentials(self, *, user: str | None = None) -> list[Credential]:
        with self._reading() as con:
            rows = con.execute(
                # credentials_by_user, where one is asked for
                f"SELECT {CREDENTIAL} FROM credentials WHERE ?1 IS NULL OR user = ?1 ORDER BY created_at, id",
                (user,),
            )
            return [credential_of(row) for row in rows]

    def locked(self) -> bool:
        with self._reading() as con:
            [(found,)] = con.execute("SELECT EXISTS (SELECT 1 FROM credentials WHERE revoked_at IS NULL)")
            return bool(found)

    def grants(self, *, user: str | None = None) -> list[Grant]:
        with self._reading() as con:
            rows = con.execute(
                "SELECT user, space, at, by FROM grants WHERE ?1 IS NULL OR user = ?1 ORDER BY user, space",
                (user,),
            )
            return [Grant(user=name, space=space, at=moment(at), by=by) for name, space, at, by in rows]

    def session(self, secret: bytes) -> Session | None:
        with self._reading() as con:
            row = con.execute(
                "SELECT credential, guard, created_at, expires_at FROM sessions WHERE secret = ?", (secret,)
            ).fetchone()
            if row is None:
                return None
            return session_of(row)

    def acts(self, filter: ActFilter, *, limit: int) -> list[Act]:
        where, values = joined(list(_wanted(filter)), "AND")
        with self._reading() as con:
            rows = con.execute(
                # Reads both tables whole: an audit is rare, and an index would be paid for by every write.
                f"""
                SELECT at, user, action, space, memory, subject, client, transport, reason
                FROM (
                    SELECT at, user, action, spaces.name AS space, memory, NULL AS subject, client, transport, reason,
                        events.number AS number
                    FROM events
                    JOIN spaces ON spaces.number = events.space
                    UNION ALL
                    SELECT at, user, action, space, NULL, subject, client, transport, reason, number
                    FROM acts
                )
                WHERE {where}
                ORDER BY at DESC, number DESC
                LIMIT ?
                """,
                [*values, limit],
            )
            return [act_of(row) for row in rows]


class SqliteCallerChanges(SqliteCallers, CallerChanges):
    _con: apsw.Connection

    def add_credential(self, credential: Credential, secret: bytes | None) -> None:
        self._con.execute(
            f"""
            INSERT INTO credentials ({CREDENTIAL}, secret)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (id) DO NOTHING
            """,
            (
                credential.id,
                credential.kind,
                credential.user,
                credential.role,
                None if credential.spaces is None else json.dumps(credential.spaces),
                credential.name,
                milliseconds(credential.created_at),
                credential.created_by,
                maybe_milliseconds(credential.expires_at),
                maybe_milliseconds(credential.revoked_at),
                secret,
            ),
        )
        if self._con.changes() == 0:
            raise Conflict(f"The id {credential.id!r} is taken.")

    def replace_secret(self, id: str, secret: bytes) -> None:
        self._con.execute("UPDATE credentials SET secret = ? WHERE id = ?", (secret, id))
        self._con.execute("DELETE FROM sessions WHERE credential = ?", (id,))

    def revoke_credential(self, id: str, *, at: datetime) -> bool:
        self._con.execute(
            "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (milliseconds(at), id)
        )
        revoked = self._con.changes() == 1
        self._con.execute("DELETE FROM sessions WHERE credential = ?", (id,))
        return revoked

    def grant(self, grants: Sequence[Grant]) -> None:
        self._con.executemany(
            "INSERT INTO grants (user, space, at, by) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            [(one.user, one.space, milliseconds(one.at), one.by) for one in grants],
        )

    def withdraw(self, user: str, space: str) -> bool:
        self._con.execute("DELETE FROM grants WHERE user = ? AND space = ?", (user, space))
        return self._con.changes() == 1

    def open_session(self, session: Session, secret: bytes) -> None:
        self._con.execute("DELETE FROM sessions WHERE expires_at <= ?", (milliseconds(session.created_at),))
        self._con.execute(
            "INSERT INTO sessions (secret, credential, guard, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
            (
                secret,
                session.credential,
                session.guard,
                milliseconds(session.created_at),
                milliseconds(session.expires_at),
            ),
        )

    def close_session(self, secret: bytes) -> None:
        self._con.execute("DELETE FROM sessions WHERE secret = ?", (secret,))

    def note(self, act: Act) -> None:
        self._con.execute(
            """
            INSERT INTO acts (at, user, action, space, subject, client, transport, reason)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (
                milliseconds(act.at),
                act.user,
                act.action,
                act.space,
                act.subject,
                act.client,
                act.transport,
                act.reason,
            ),
        )


def _wanted(filter: ActFilter) -> Iterator[Condition]:
    if filter.spaces is not None:
        yield among("space", sorted(filter.spaces)) if filter.spaces else ("FALSE", [])
    for column, value in (
        ("user", filter.user),
        ("action", filter.action),
        ("client", filter.client),
        ("memory", filter.memory),
    ):
        if value is not None:
            yield f"{column} = ?", [value]
    if filter.since is not None:
        yield "at >= ?", [milliseconds(filter.since)]
    if filter.until is not None:
        yield "at <= ?", [milliseconds(filter.until)]
