"""Conversations, their messages, and the memories put into them, in every backend."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from scrubjay.errors import Conflict, NotFound, SpaceNotFound
from scrubjay.stores.tables.rows import columns_of_value, value_of
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.callers import Audience, Sight
from scrubjay.values.store import Conversation, Injection, Message
from scrubjay.values.times import milliseconds

List = list  # below, `list` is a verb

MESSAGE = "messages.id, messages.role, messages.content, messages.reply_to, messages.created_at"
PARTS = ("messages", "injections")  # tables with rows of a conversation
WITHIN = "space = :space AND conversation = :id"  # a condition on these


def sight_of(audience: Audience, space: str) -> Sight:
    """How much of a space an audience sees."""
    return max((scope.sight for scope in audience.scopes if scope.space in (None, space)), default=Sight.PUBLIC)


class Conversations:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._this = "conversations.space = :space AND conversations.id = :id"
        self._conversation = """
            conversations.id, conversations.space, conversations.title,
            conversations.system_prompt, conversations.created_at, conversations.updated_at,
            (
                SELECT count(*)
                FROM messages
                WHERE messages.space = conversations.space AND messages.conversation = conversations.id
            ),
            conversations.user_id, conversations.access_level
        """

    def get(self, space: str, id: str) -> Conversation | None:
        """A space's conversation with this id."""
        row = self._sql.first_row(
            f"SELECT {self._conversation} FROM conversations WHERE {self._this}", space=space, id=id
        )
        return None if row is None else value_of(Conversation, row)

    def list(self, space: str, audience: Audience, *, limit: int = 20, offset: int = 0) -> List[Conversation]:
        """A space's conversations that are not private, or the audience's to see; the latest to change come first."""
        sight = sight_of(audience, space)
        if sight is Sight.PUBLIC:
            return []
        rows = self._sql.all(
            # conversations_by_update
            f"""
            SELECT {self._conversation}
            FROM conversations
            WHERE conversations.space = :space
            AND (:all OR conversations.access_level <> 'private' OR conversations.user_id = :user)
            ORDER BY conversations.updated_at DESC, conversations.number DESC
            LIMIT :limit OFFSET :offset
            """,
            space=space,
            all=sight is Sight.ALL,
            user=audience.user if sight is Sight.OWN else None,
            limit=limit,
            offset=offset,
        )
        return [value_of(Conversation, row) for row in rows]

    def spaces_of(self, id: str) -> List[str]:
        """The names of the spaces that have a conversation with this id, in order."""
        # conversations_by_id
        rows = self._sql.all("SELECT space FROM conversations WHERE id = :id", id=id)
        return sorted(name for (name,) in rows)

    def messages(self, space: str, id: str, *, limit: int, offset: int = 0) -> List[Message]:
        """The last messages of a conversation in the order in which they came; `offset` leaves out the very last."""
        rows = self._sql.all(
            # the primary key of messages, or messages_by_conversation
            f"""
            SELECT {MESSAGE}
            FROM messages
            WHERE {WITHIN}
            ORDER BY messages.number DESC
            LIMIT :limit OFFSET :offset
            """,
            space=space,
            id=id,
            limit=limit,
            offset=offset,
        )
        return [value_of(Message, row) for row in rows][::-1]

    def answer_to(self, space: str, id: str, message: str) -> Message | None:
        """The message of a conversation that answers this one."""
        row = self._sql.first_row(
            # messages_by_question
            f"SELECT {MESSAGE} FROM messages WHERE {WITHIN} AND messages.reply_to = :message",
            space=space,
            id=id,
            message=message,
        )
        return None if row is None else value_of(Message, row)

    def injections(self, space: str, id: str) -> List[Injection]:
        """The memories put into a conversation, in the order in which that was done."""
        rows = self._sql.all(
            """
            SELECT memories.id, injections.active, injections.injected_at
            FROM injections
            JOIN memories ON memories.id = injections.memory
            WHERE injections.space = :space AND injections.conversation = :id
            ORDER BY injections.number
            """,
            space=space,
            id=id,
        )
        return [value_of(Injection, row) for row in rows]


class ConversationChanges(Conversations):
    """What a transaction can read and change."""

    def put(self, conversation: Conversation) -> None:
        """Write a conversation; one with the same id in the same space is replaced: its messages stay, and whose it is.

        :raises SpaceNotFound: if its space was never created
        """
        put = self._sql.run(
            """
            INSERT INTO conversations (space, id, title, system_prompt, created_at, updated_at, user_id, access_level)
            SELECT name, :id, :title, :system_prompt, :created_at, :updated_at, :user_id, :access_level
            FROM spaces
            WHERE spaces.name = :space
            ON CONFLICT (space, id) DO UPDATE SET
                title = excluded.title, system_prompt = excluded.system_prompt, updated_at = excluded.updated_at
            """,
            **columns_of_value(conversation),
        )
        if put == 0:
            raise SpaceNotFound(f"No space {conversation.space!r}.", hint="Create it first.")

    def drop(self, space: str, id: str) -> bool:
        """Erase a conversation, its messages and injections; memories stay. False if there is none."""
        for table in PARTS:
            self._sql.run(f"DELETE FROM {table} WHERE {WITHIN}", space=space, id=id)
        self._sql.note_erasure()
        return self._sql.run(f"DELETE FROM conversations WHERE {self._this}", space=space, id=id) == 1

    def add_message(self, space: str, id: str, message: Message) -> None:
        """Add to a conversation.

        :raises NotFound: if there is no such conversation
        :raises Conflict: if the message that it answers has an answer already
        """
        known = self._sql.run(
            f"UPDATE conversations SET updated_at = {self._sql.greatest}(updated_at, :at) WHERE {self._this}",
            at=milliseconds(message.created_at),
            space=space,
            id=id,
        )
        if known == 0:
            raise NotFound(f"Conversation {id} not found")
        added = self._sql.run(
            # messages_by_question
            """
            INSERT INTO messages (space, conversation, id, role, content, reply_to, created_at)
            VALUES (:space, :id, :message, :role, :content, :reply_to, :created_at)
            ON CONFLICT DO NOTHING
            """,
            **columns_of_value(message) | {"space": space, "id": id, "message": message.id},
        )
        if added == 0:
            raise Conflict(f"Message {message.reply_to} already has an answer.")

    def inject(self, space: str, id: str, injection: Injection) -> None:
        """Put a memory into a conversation; where it is in already, only `active` changes.

        :raises NotFound: if there is no such conversation, or no such memory in its space that is not deleted
        """
        if self._sql.first_row(f"SELECT 1 FROM conversations WHERE {self._this}", space=space, id=id) is None:
            raise NotFound(f"Conversation {id} not found")
        injected = self._sql.run(
            f"""
            INSERT INTO injections (space, conversation, memory, active, injected_at)
            SELECT :space, :id, memories.id, :active, :injected_at
            FROM memories
            WHERE memories.id = :memory
            AND memories.state < 3
            AND memories.space = {self._sql.space}
            ON CONFLICT (space, conversation, memory) DO UPDATE SET active = excluded.active
            """,
            space=space,
            id=id,
            **columns_of_value(injection),
        )
        if injected == 0:
            raise NotFound(f"Memory with ID {injection.memory} not found", memory_id=injection.memory)

    def take_out(self, space: str, id: str, memory: str) -> bool:
        """Take a memory out of a conversation. False if it was not in it."""
        taken = f"DELETE FROM injections WHERE {WITHIN} AND memory = :memory"
        return self._sql.run(taken, space=space, id=id, memory=memory) == 1
