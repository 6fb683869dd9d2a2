"""Conversations in the file, read: their messages, the memories that were put into them, and open conflicts."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from datetime import datetime

from scrubjay.stores.promises.conversations import sight_of
from scrubjay.stores.promises.memories import List, milliseconds, moment
from scrubjay.stores.sqlite.filters import seen, superseded_for, views_of
from scrubjay.stores.sqlite.statistics import SqliteStatistics
from scrubjay.stores.tables.rows import link_of
from scrubjay.stores.tables.side_rows import conversation_of, message_of
from scrubjay.values.memory import Audience, Conversation, Injection, Link, Message, Sight

CONVERSATION = """
    conversations.id, spaces.name, conversations.title, conversations.system_prompt, conversations.created_at,
    conversations.updated_at, conversations.user_id, conversations.access_level,
    (SELECT count(*) FROM messages WHERE conversation = conversations.number)
"""
MESSAGE = "messages.id, messages.role, messages.content, messages.reply_to, messages.created_at"
THIS = """
    (
        SELECT conversations.number
        FROM spaces
        JOIN conversations ON conversations.space = spaces.number
        WHERE spaces.name = ?
        AND conversations.id = ?
    )
"""


class SqliteConversations(SqliteStatistics):
    def conversation(self, space: str, id: str) -> Conversation | None:
        with self._reading() as con:
            row = con.execute(
                f"""
                SELECT {CONVERSATION}
                FROM spaces
                JOIN conversations ON conversations.space = spaces.number
                WHERE spaces.name = ?
                AND conversations.id = ?
                """,
                (space, id),
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
                FROM spaces
                JOIN conversations ON conversations.space = spaces.number
                WHERE spaces.name = ?
                AND (? OR conversations.access_level <> 'private' OR conversations.user_id = ?)
                ORDER BY conversations.updated_at DESC, conversations.number DESC
                LIMIT ? OFFSET ?
                """,
                (space, sight is Sight.ALL, audience.user if sight is Sight.OWN else None, limit, offset),
            )
            return [conversation_of(row) for row in rows]

    def spaces_of_conversation(self, id: str) -> List[str]:
        with self._reading() as con:
            rows = con.execute(
                # conversations_by_id
                """
                SELECT spaces.name
                FROM conversations
                JOIN spaces ON spaces.number = conversations.space
                WHERE conversations.id = ?
                ORDER BY spaces.name
                """,
                (id,),
            )
            return [name for (name,) in rows]

    def messages(self, space: str, id: str, *, limit: int, offset: int = 0) -> List[Message]:
        with self._reading() as con:
            rows = con.execute(
                # messages_by_conversation
                f"""
                SELECT {MESSAGE}
                FROM messages
                WHERE conversation = {THIS}
                ORDER BY number DESC
                LIMIT ? OFFSET ?
                """,
                (space, id, limit, offset),
            )
            return [message_of(row) for row in rows][::-1]

    def answer_to(self, space: str, id: str, message: str) -> Message | None:
        with self._reading() as con:
            row = con.execute(
                # messages_by_question
                f"SELECT {MESSAGE} FROM messages WHERE conversation = {THIS} AND reply_to = ?",
                (space, id, message),
            ).fetchone()
            return None if row is None else message_of(row)

    def injections(self, space: str, id: str) -> List[Injection]:
        with self._reading() as con:
            rows = con.execute(
                f"""
                SELECT memories.id, injections.active, injections.injected_at
                FROM injections
                JOIN memories ON memories.seq = injections.memory
                WHERE injections.conversation = {THIS}
                ORDER BY injections.number
                """,
                (space, id),
            )
            return [
                Injection(memory=memory, active=bool(active), injected_at=moment(at)) for memory, active, at in rows
            ]

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
