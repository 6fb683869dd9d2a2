"""What a store promises of conversations: messages, and memories put into them. Beside `memories.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from scrubjay.values.memory import Audience, Conversation, Injection, Message, Sight


def sight_of(audience: Audience, space: str) -> Sight:
    """How much of a space an audience sees."""
    return max((scope.sight for scope in audience.scopes if scope.space in (None, space)), default=Sight.PUBLIC)


class ConversationReads(ABC):
    @abstractmethod
    def conversation(self, space: str, id: str) -> Conversation | None:
        """A space's conversation with this id."""

    @abstractmethod
    def conversations(self, space: str, audience: Audience, *, limit: int = 20, offset: int = 0) -> list[Conversation]:
        """A space's conversations that are not private, or the audience's to see; the latest to change come first."""

    @abstractmethod
    def spaces_of_conversation(self, id: str) -> list[str]:
        """The names of the spaces that have a conversation with this id, in order."""

    @abstractmethod
    def messages(self, space: str, id: str, *, limit: int, offset: int = 0) -> list[Message]:
        """The last messages of a conversation in the order in which they came; `offset` leaves out the very last."""

    @abstractmethod
    def answer_to(self, space: str, id: str, message: str) -> Message | None:
        """The message of a conversation that answers this one."""

    @abstractmethod
    def injections(self, space: str, id: str) -> list[Injection]:
        """The memories put into a conversation, in the order in which that was done."""


class ConversationChanges(ABC):
    @abstractmethod
    def put_conversation(self, conversation: Conversation) -> None:
        """Write a conversation; one with the same id in the same space is replaced: its messages stay, and whose it is.

        :raises SpaceNotFound: if its space was never created
        """

    @abstractmethod
    def drop_conversation(self, space: str, id: str) -> bool:
        """Erase a conversation, its messages and injections; memories stay. False if there is none."""

    @abstractmethod
    def add_message(self, space: str, id: str, message: Message) -> None:
        """Add to a conversation.

        :raises NotFound: if there is no such conversation
        :raises Conflict: if the message that it answers has an answer already
        """

    @abstractmethod
    def inject(self, space: str, id: str, injection: Injection) -> None:
        """Put a memory into a conversation; where it is in already, only `active` changes.

        :raises NotFound: if there is no such conversation, or no such memory in its space that is not deleted
        """

    @abstractmethod
    def take_out(self, space: str, id: str, memory: str) -> bool:
        """Take a memory out of a conversation. False if it was not in it."""
