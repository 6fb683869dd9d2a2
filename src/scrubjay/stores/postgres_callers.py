"""Credentials, grants, sessions and the audit in PostgreSQL."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from scrubjay.errors import Conflict
from scrubjay.memory import Act, Credential, Grant, Session
from scrubjay.stores.base import milliseconds, moment
from scrubjay.stores.callers import ActFilter, CallerChanges, CallerReads
from scrubjay.stores.postgres_filters import Condition, among, joined
from scrubjay.stores.postgres_history import Connection
from scrubjay.stores.rows import maybe_milliseconds
from scrubjay.stores.side_rows import act_of, credential_of, session_of

CREDENTIAL = "id, kind, user_id, role, spaces, name, created_at, created_by, expires_at, revoked_at"


class PostgresCallers(CallerReads):
    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection for one call."""

    def credential(self, id: str) -> tuple[Credential, bytes | None] | None:
        with self._reading() as con:
            row = con.execute(f"SELECT {CREDENTIAL}, secret FROM credentials WHERE id = %s", (id,)).fetchone()
            return None if row is None else (credential_of(row[:-1]), row[-1])

    def credentials(self, *, user: str | None = None) -> list[Credential]:
        where, values = _of(user)
        with self._reading() as con:
            rows = con.execute(f"SELECT {CREDENTIAL} FROM credentials WHERE {where} ORDER BY created_at, id", values)
            return [credential_of(row) for row in rows]

    def locked(self) -> bool:
        with self._reading() as con:
            [(found,)] = con.execute("SELECT EXISTS (SELECT 1 FROM credentials WHERE revoked_at IS NULL)")
            return bool(found)

    def grants(self, *, user: str | None = None) -> list[Grant]:
        where, values = _of(user)
        with self._reading() as con:
            rows = con.execute(
                f"SELECT user_id, space, at, by FROM grants WHERE {where} ORDER BY user_id, space", values
            )
            return [Grant(user=name, space=space, at=moment(at), by=by) for name, space, at, by in rows]

    def session(self, secret: bytes) -> Session | None:
        with self._reading() as con:
            row = con.execute(
                "SELECT credential, guard, created_at, expires_at FROM sessions WHERE secret = %s", (secret,)
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
                SELECT at, user_id, action, space, memory, subject, client, transport, reason
                FROM (
                    SELECT at, user_id, action, space, memory, NULL AS subject, client, transport, reason, number
                    FROM events
                    UNION ALL
                    SELECT at, user_id, action, space, NULL, subject, client, transport, reason, number
                    FROM acts
                ) AS deeds
                WHERE {where}
                ORDER BY at DESC, number DESC
                LIMIT %s
                """,
                [*values, limit],
            )
            return [act_of(row) for row in rows]


class PostgresCallerChanges(PostgresCallers, CallerChanges):
    _con: Connection

    def add_credential(self, credential: Credential, secret: bytes | None) -> None:
        added = self._con.execute(
            f"""
            INSERT INTO credentials ({CREDENTIAL}, secret)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
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
        if added.rowcount == 0:
            raise Conflict(f"The id {credential.id!r} is taken.")

    def replace_secret(self, id: str, secret: bytes) -> None:
        self._con.execute("UPDATE credentials SET secret = %s WHERE id = %s", (secret, id))
        self._con.execute("DELETE FROM sessions WHERE credential = %s", (id,))

    def revoke_credential(self, id: str, *, at: datetime) -> bool:
        revoked = self._con.execute(
            "UPDATE credentials SET revoked_at = %s WHERE id = %s AND revoked_at IS NULL", (milliseconds(at), id)
        )
        self._con.execute("DELETE FROM sessions WHERE credential = %s", (id,))
        return revoked.rowcount == 1

    def grant(self, grants: Sequence[Grant]) -> None:
        self._con.cursor().executemany(
            "INSERT INTO grants (user_id, space, at, by) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [(one.user, one.space, milliseconds(one.at), one.by) for one in grants],
        )

    def withdraw(self, user: str, space: str) -> bool:
        return self._con.execute("DELETE FROM grants WHERE user_id = %s AND space = %s", (user, space)).rowcount == 1

    def open_session(self, session: Session, secret: bytes) -> None:
        self._con.execute("DELETE FROM sessions WHERE expires_at <= %s", (milliseconds(session.created_at),))
        self._con.execute(
            """
            INSERT INTO sessions (secret, credential, guard, created_at, expires_at)
            VALUES (%s, %s, %s, %s, %s)
            """,
            (
                secret,
                session.credential,
                session.guard,
                milliseconds(session.created_at),
                milliseconds(session.expires_at),
            ),
        )

    def close_session(self, secret: bytes) -> None:
        self._con.execute("DELETE FROM sessions WHERE secret = %s", (secret,))

    def note(self, act: Act) -> None:
        self._con.execute(
            """
            INSERT INTO acts (at, user_id, action, space, subject, client, transport, reason)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
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


def _of(user: str | None) -> Condition:
    return ("TRUE", []) if user is None else ("user_id = %s", [user])


def _wanted(filter: ActFilter) -> Iterator[Condition]:
    if filter.spaces is not None:
        yield among("space", sorted(filter.spaces))
    for column, value in (
        ("user_id", filter.user),
        ("action", filter.action),
        ("client", filter.client),
        ("memory", filter.memory),
    ):
        if value is not None:
            yield f"{column} = %s", [value]
    if filter.since is not None:
        yield "at >= %s", [milliseconds(filter.since)]
    if filter.until is not None:
        yield "at <= %s", [milliseconds(filter.until)]
