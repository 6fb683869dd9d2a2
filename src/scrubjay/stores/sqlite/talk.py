"""Conversations in the file, changed: the part of a transaction that writes them."""

from __future__ import annotations

import apsw

from scrubjay.errors import Conflict, NotFound, SpaceNotFound
from scrubjay.stores.promises.memories import milliseconds
from scrubjay.stores.sqlite.filters import space_number
from scrubjay.stores.sqlite.memories import SqliteMemories
from scrubjay.values.memory import Conversation, Injection, Message


class SqliteTalk(SqliteMemories):
    def put_conversation(self, conversation: Conversation) -> None:
        space = space_number(self._con, conversation.space)
        if space is None:
            raise SpaceNotFound(f"No space {conversation.space!r}.", hint="Create it first.")
        self._con.execute(
            """
            INSERT INTO conversations (space, id, title, system_prompt, created_at, updated_at, user_id, access_level)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (space, id) DO UPDATE SET
                title = excluded.title, system_prompt = excluded.system_prompt, updated_at = excluded.updated_at
            """,
            (
                space,
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
        number = self._conversation(space, id)
        if number is None:
            return False
        self._con.execute("DELETE FROM conversations WHERE number = ?", (number,))
        self.erased = True
        return True

    def add_message(self, space: str, id: str, message: Message) -> None:
        number = self._known_conversation(space, id)
        try:
            self._con.execute(
                """
                INSERT INTO messages (conversation, id, role, content, reply_to, created_at)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
                (
                    number,
                    message.id,
                    message.role,
                    message.content,
                    message.reply_to,
                    milliseconds(message.created_at),
                ),
            )
        except apsw.ConstraintError:
            raise Conflict(f"Message {message.reply_to} has an answer already.") from None
        self._con.execute(
            "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE number = ?",
            (milliseconds(message.created_at), number),
        )

    def inject(self, space: str, id: str, injection: Injection) -> None:
        number = self._known_conversation(space, id)
        self._con.execute(
            """
            INSERT INTO injections (conversation, memory, active, injected_at)
            SELECT ?, seq, ?, ?
            FROM memories
            WHERE id = ?
            AND state < 3
            AND space = (SELECT space FROM conversations WHERE number = ?)
            ON CONFLICT (conversation, memory) DO UPDATE SET active = excluded.active
            """,
            (number, int(injection.active), milliseconds(injection.injected_at), injection.memory, number),
        )
        if self._con.changes() == 0:
            raise NotFound(f"Memory with ID {injection.memory} not found", memory_id=injection.memory)

    def take_out(self, space: str, id: str, memory: str) -> bool:
        self._con.execute(
            "DELETE FROM injections WHERE conversation = ? AND memory = (SELECT seq FROM memories WHERE id = ?)",
            (self._conversation(space, id), memory),
        )
        return self._con.changes() == 1

    def _conversation(self, space: str, id: str) -> int | None:
        row = self._con.execute(
            "SELECT number FROM conversations WHERE space = (SELECT number FROM spaces WHERE name = ?) AND id = ?",
            (space, id),
        ).fetchone()
        return None if row is None else int(row[0])

    def _known_conversation(self, space: str, id: str) -> int:
        number = self._conversation(space, id)
        if number is None:
            raise NotFound(f"Conversation {id} not found")
        return number
