"""Credentials, grants, sessions and the audit, in every backend.

No secret is ever handed to a store: it gets hashes, and gives them back for comparison.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.errors import Conflict
from scrubjay.stores.tables.rows import columns_of_value, maybe_milliseconds, value_of
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.callers import Act, ActFilter, Credential, Grant, Session
from scrubjay.values.times import milliseconds


class Callers:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._credential = "id, kind, user_id, role, spaces, name, created_at, created_by, expires_at, revoked_at"

    def credential(self, id: str) -> tuple[Credential, bytes | None] | None:
        """A credential and the hash of its secret, also when it is expired or revoked; None if there is none."""
        row = self._sql.first_row(f"SELECT {self._credential}, secret FROM credentials WHERE id = :id", id=id)
        return None if row is None else (value_of(Credential, row[:-1]), row[-1])

    def credentials(self, *, user: str | None = None) -> list[Credential]:
        """All credentials, or one user's, oldest first; expired and revoked ones too."""
        rows = self._sql.all(
            # credentials_by_user, where one is asked for
            f"SELECT {self._credential} FROM credentials WHERE {self._of(user)} ORDER BY created_at, id",
            user=user,
        )
        return [value_of(Credential, row) for row in rows]

    def locked(self) -> bool:
        """Whether there are more credentials than when the door was last opened; revoked and expired ones count.

        So neither time nor a revocation opens a door, and the next credential closes it by itself.
        """
        row = self._sql.first_row(
            """
            SELECT count(*) > COALESCE((SELECT CAST(value AS INTEGER) FROM facts WHERE key = 'opened'), 0)
            FROM credentials
            """
        )
        return row is not None and bool(row[0])

    def grants(self, *, user: str | None = None) -> list[Grant]:
        """All grants, or one user's, by user and space."""
        rows = self._sql.all(
            f"SELECT user_id, space, at, by FROM grants WHERE {self._of(user)} ORDER BY user_id, space", user=user
        )
        return [value_of(Grant, row) for row in rows]

    def session(self, secret: bytes) -> Session | None:
        """The session with this hash, also when it is over."""
        row = self._sql.first_row(
            "SELECT credential, guard, created_at, expires_at FROM sessions WHERE secret = :secret", secret=secret
        )
        return None if row is None else value_of(Session, row)

    def acts(self, filter: ActFilter, *, limit: int) -> list[Act]:
        """What was done, newest first: changes of memories (the events of the spaces) and changes of rights. Within a
        space they come in the order in which they happened, even if the clock was set back."""
        where, values = self._wanted(filter)
        rows = self._sql.all(
            # Reads both tables whole: an audit is rare, and an index would be paid for by every write.
            f"""
            SELECT at, user_id, action, space, memory, subject, client, transport, reason, credential,
                (SELECT created_by FROM credentials WHERE id = credential)
            FROM (
                SELECT at, user_id, action, space, memory, NULL AS subject, client, transport, reason, credential,
                    number, max(at) OVER (PARTITION BY space ORDER BY number) AS latest
                FROM events
                UNION ALL
                SELECT at, user_id, action, space, NULL, subject, client, transport, reason, credential,
                    number, max(at) OVER (ORDER BY number)
                FROM acts
            ) AS everything
            WHERE {where}
            ORDER BY latest DESC, number DESC
            LIMIT :limit
            """,
            limit=limit,
            **values,
        )
        return [value_of(Act, row) for row in rows]

    def _of(self, user: str | None) -> str:
        return "TRUE" if user is None else "user_id = :user"

    def _wanted(self, filter: ActFilter) -> tuple[str, dict[str, object]]:
        conditions, values = ["TRUE"], dict[str, object]()
        if filter.spaces is not None:
            conditions.append(self._sql.among("space", "spaces"))
            values["spaces"] = sorted(filter.spaces)
        asked = {
            "user_id = :user": filter.user,
            "action = :action": filter.action,
            "client = :client": filter.client,
            "memory = :memory": filter.memory,
            "at >= :since": maybe_milliseconds(filter.since),
            "at <= :until": maybe_milliseconds(filter.until),
        }
        for condition, value in asked.items():
            if value is not None:
                conditions.append(condition)
                values[condition.rpartition(":")[2]] = value
        return " AND ".join(conditions), values


class CallerChanges(Callers):
    """What a transaction can read and change."""

    def add(self, credential: Credential, secret: bytes | None) -> None:
        """:raises Conflict: if its id is taken"""
        added = self._sql.run(
            f"""
            INSERT INTO credentials ({self._credential}, secret)
            VALUES (
                :id, :kind, :user, :role, :spaces, :name, :created_at, :created_by, :expires_at, :revoked_at, :secret
            )
            ON CONFLICT (id) DO NOTHING
            """,
            **columns_of_value(credential),
            secret=secret,
        )
        if added == 0:
            raise Conflict(f"The id {credential.id!r} is taken.")

    def replace_secret(self, id: str, secret: bytes) -> None:
        """Let a credential have another secret; sessions that it opened end."""
        self._sql.run("UPDATE credentials SET secret = :secret WHERE id = :id", secret=secret, id=id)
        self._end_sessions(id)

    def revoke(self, id: str, *, at: datetime) -> bool:
        """End a credential and the sessions that it opened; False if it has ended before or there is none."""
        revoked = self._sql.run(
            "UPDATE credentials SET revoked_at = :at WHERE id = :id AND revoked_at IS NULL", at=milliseconds(at), id=id
        )
        self._end_sessions(id)
        return revoked == 1

    def open_door(self) -> None:
        """Let the store be unlocked from now on, until another credential is added."""
        # How many there are is enough to tell whether one was added: credentials are revoked, never deleted.
        self._sql.run(
            """
            INSERT INTO facts (key, value) SELECT 'opened', CAST(count(*) AS TEXT) FROM credentials WHERE TRUE
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """
        )

    def grant(self, grants: Sequence[Grant]) -> None:
        """Let users enter spaces; what is granted already stays as it is."""
        self._sql.run_many(
            """
            INSERT INTO grants (user_id, space, at, by)
            VALUES (:user, :space, :at, :by)
            ON CONFLICT DO NOTHING
            """,
            map(columns_of_value, grants),
        )

    def withdraw(self, user: str, space: str) -> bool:
        """Take a grant back; False if there was none."""
        gone = self._sql.run(f"DELETE FROM grants WHERE {self._of(user)} AND space = :space", user=user, space=space)
        return gone == 1

    def open_session(self, session: Session, secret: bytes) -> None:
        """Keep a session; those whose time is over go."""
        self._sql.run("DELETE FROM sessions WHERE expires_at <= :now", now=milliseconds(session.created_at))
        self._sql.run(
            """
            INSERT INTO sessions (secret, credential, guard, created_at, expires_at)
            VALUES (:secret, :credential, :guard, :created_at, :expires_at)
            """,
            **columns_of_value(session),
            secret=secret,
        )

    def close_session(self, secret: bytes) -> None:
        """End a session; nothing happens if there is none."""
        self._sql.run("DELETE FROM sessions WHERE secret = :secret", secret=secret)

    def note(self, act: Act) -> None:
        """Write a line of the audit about rights."""
        self._sql.run(
            """
            INSERT INTO acts (at, user_id, action, space, subject, client, transport, reason, credential)
            VALUES (:at, :user, :action, :space, :subject, :client, :transport, :reason, :credential)
            """,
            **columns_of_value(act),
        )

    def _end_sessions(self, credential: str) -> None:
        self._sql.run("DELETE FROM sessions WHERE credential = :credential", credential=credential)
