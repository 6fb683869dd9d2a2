"""Conversations in the database: their messages, the memories that were put into them, open conflicts, deeds."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from datetime import datetime

import psycopg

from scrubjay.errors import Conflict, NotFound, SpaceNotFound
from scrubjay.stores.postgres.filters import seen, superseded_for, views_of
from scrubjay.stores.postgres.history import Connection
from scrubjay.stores.postgres.statistics import PostgresStatistics
from scrubjay.stores.promises.conversations import sight_of
from scrubjay.stores.promises.memories import List, Transaction, milliseconds, moment
from scrubjay.stores.tables.rows import link_of
from scrubjay.stores.tables.side_rows import conversation_of, message_of
from scrubjay.values.memory import Audience, Conversation, Deed, Injection, Link, Message, Sight

CONVERSATION = """
    id, space, title, system_prompt, created_at, updated_at, user_id, access_level,
    (
        SELECT count(*)
        FROM messages
        WHERE messages.space = conversations.space AND messages.conversation = conversations.id
    )
"""
MESSAGE = "id, role, content, reply_to, created_at"
PARTS = ("messages", "injections")  # tables with rows of a conversation


class PostgresConversations(PostgresStatistics):
    def conversation(self, space: str, id: str) -> Conversation | None:
        with self._reading() as con:
            row = con.execute(
                f"SELECT {CONVERSATION} FROM conversations WHERE space = %s AND id = %s", (space, id)
            ).fetchone()
            return None if row is None else conversation_of(row)

    def conversations(self, space: str, audience: Audience, *, limit: int = 20, offset: int = 0) -> List[Conversation]:
        sight = sight_of(audience, space)
        if sight is Sight.PUBLIC:
            return []
        with self._reading() as con:
            rows = con.execute(
                # conversations_by_update
                f"""
                SELECT {CONVERSATION}
                FROM conversations
                WHERE space = %s
                AND (%s OR access_level <> 'private' OR user_id = %s)
                ORDER BY updated_at DESC, number DESC
                LIMIT %s OFFSET %s
                """,
                (space, sight is Sight.ALL, audience.user if sight is Sight.OWN else None, limit, offset),
            )
            return [conversation_of(row) for row in rows]

    def spaces_of_conversation(self, id: str) -> List[str]:
        with self._reading() as con:
            rows = con.execute("SELECT space FROM conversations WHERE id = %s ORDER BY space", (id,))
            return [name for (name,) in rows]

    def messages(self, space: str, id: str, *, limit: int, offset: int = 0) -> List[Message]:
        with self._reading() as con:
            rows = con.execute(
                # the primary key
                f"""
                SELECT {MESSAGE}
                FROM messages
                WHERE space = %s
                AND conversation = %s
                ORDER BY number DESC
                LIMIT %s OFFSET %s
                """,
                (space, id, limit, offset),
            )
            return [message_of(row) for row in rows][::-1]

    def answer_to(self, space: str, id: str, message: str) -> Message | None:
        with self._reading() as con:
            row = con.execute(
                # messages_by_question
                f"SELECT {MESSAGE} FROM messages WHERE space = %s AND conversation = %s AND reply_to = %s",
                (space, id, message),
            ).fetchone()
            return None if row is None else message_of(row)

    def injections(self, space: str, id: str) -> List[Injection]:
        with self._reading() as con:
            rows = con.execute(
                """
                SELECT memory, active, injected_at
                FROM injections
                WHERE space = %s
                AND conversation = %s
                ORDER BY number
                """,
                (space, id),
            )
            return [Injection(memory=memory, active=active, injected_at=moment(at)) for memory, active, at in rows]

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


class PostgresTalk(Transaction):
    """The part of a transaction that writes conversations, what people read of spaces, and deeds."""

    _con: Connection

    def put_conversation(self, conversation: Conversation) -> None:
        self._existing_space(conversation.space)
        self._con.execute(
            """
            INSERT INTO conversations (space, id, title, system_prompt, created_at, updated_at, user_id, access_level)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
            ON CONFLICT (space, id) DO UPDATE SET
                title = excluded.title, system_prompt = excluded.system_prompt, updated_at = excluded.updated_at
            """,
            (
                conversation.space,
                conversation.id,
                conversation.title,
                conversation.system_prompt,
                milliseconds(conversation.created_at),
                milliseconds(conversation.updated_at),
                conversation.user_id,
                str(conversation.access_level),
            ),
        )

    def drop_conversation(self, space: str, id: str) -> bool:
        for table in PARTS:
            self._con.execute(f"DELETE FROM {table} WHERE space = %s AND conversation = %s", (space, id))
        return self._con.execute("DELETE FROM conversations WHERE space = %s AND id = %s", (space, id)).rowcount == 1

    def add_message(self, space: str, id: str, message: Message) -> None:
        known = self._con.execute(
            "UPDATE conversations SET updated_at = greatest(updated_at, %s) WHERE space = %s AND id = %s",
            (milliseconds(message.created_at), space, id),
        )
        if known.rowcount == 0:
            raise NotFound(f"Conversation {id} not found")
        try:
            self._con.execute(
                """
                INSERT INTO messages (space, conversation, id, role, content, reply_to, created_at)
                VALUES (%s, %s, %s, %s, %s, %s, %s)
                """,
                (
                    space,
                    id,
                    message.id,
                    message.role,
                    message.content,
                    message.reply_to,
                    milliseconds(message.created_at),
                ),
            )
        except psycopg.errors.UniqueViolation:
            raise Conflict(f"Message {message.reply_to} has an answer already.") from None

    def inject(self, space: str, id: str, injection: Injection) -> None:
        known = self._con.execute("SELECT 1 FROM conversations WHERE space = %s AND id = %s", (space, id))
        if known.fetchone() is None:
            raise NotFound(f"Conversation {id} not found")
        injected = self._con.execute(
            """
            INSERT INTO injections (space, conversation, memory, active, injected_at)
            SELECT space, %s, id, %s, %s
            FROM memories
            WHERE id = %s
            AND state < 3
            AND space = %s
            ON CONFLICT (space, conversation, memory) DO UPDATE SET active = excluded.active
            """,
            (id, injection.active, milliseconds(injection.injected_at), injection.memory, space),
        )
        if injected.rowcount == 0:
            raise NotFound(f"Memory with ID {injection.memory} not found", memory_id=injection.memory)

    def take_out(self, space: str, id: str, memory: str) -> bool:
        taken = self._con.execute(
            "DELETE FROM injections WHERE space = %s AND conversation = %s AND memory = %s", (space, id, memory)
        )
        return taken.rowcount == 1

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
        for table in ("conversations", *PARTS):
            self._con.execute(f"DELETE FROM {table} WHERE space = %s", (name,))
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
