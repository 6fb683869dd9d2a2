"""Chimera: conversations and their messages. Part of `memories.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from scrubjay.dialects.base import COUNT, TIME, Body, Pieces, Stream, array, object_schema, present, text
from scrubjay.dialects.chimera.memories import (
    CONTEXT,
    CONVERSATION_ID,
    DONE,
    MESSAGE,
    TEXT,
    Budget,
    ConversationId,
    Limit,
    Offset,
    Placement,
    WorkspaceId,
    how,
    ok,
    parts,
    reads,
    show_message,
    writes,
)
from scrubjay.engine.conversations.workspaces import id_of
from scrubjay.engine.engine import Engine
from scrubjay.values.memory import AccessLevel
from scrubjay.values.store import Conversation, Message

if TYPE_CHECKING:
    from scrubjay.engine.conversations.conversations import Turn

LEVELS = [str(AccessLevel.PRIVATE), str(AccessLevel.SHARED)]
CONVERSATION = object_schema(
    {
        "id": text(),
        "workspace_id": text(),
        "title": text(),
        "system_prompt": text(),
        "message_count": COUNT,
        "user_id": text("Who started it; missing if that is not known"),
        "access_level": text(enum=LEVELS),
        "created_at": TIME,
        "updated_at": TIME,
    },
    required=("id", "workspace_id", "message_count", "access_level", "created_at", "updated_at"),
)
GIVEN = {"conversation": CONVERSATION}
Title = Annotated[str | None, text(minLength=1, maxLength=200)]
SystemPrompt = Annotated[str | None, TEXT, "What the language model is given before anything else"]
Level = Annotated[Any, text(enum=LEVELS), "private: only you and owners of the workspace see it"]
UNDONE_BY = {"deed": text("Id of the bulk operation, to undo it")}


@reads("GET /api/conversations", "List conversations", {"conversations": array(CONVERSATION)})
def list_conversations(engine: Engine, workspace_id: WorkspaceId = None, limit: Limit = 20, offset: Offset = 0) -> Any:
    """List a workspace's conversations, the most recently active first."""
    return [talk(one) for one in engine.conversations.list(limit=limit, offset=offset, workspace=workspace_id)]


@writes("POST /api/conversations", "Start a conversation", GIVEN, status=201)
def create_conversation(
    engine: Engine,
    *,
    conversation_id: Annotated[str | None, CONVERSATION_ID] = None,
    workspace_id: WorkspaceId = None,
    title: Title = None,
    system_prompt: SystemPrompt = None,
    access_level: Level = AccessLevel.SHARED,
) -> Any:
    """Start a conversation in a workspace, with your own id or a new one: shared with everyone who uses the workspace,
    or private."""
    fields = {"title": title, "system_prompt": system_prompt, "access_level": access_level}
    return talk(engine.conversations.create(conversation_id, workspace=workspace_id, **fields))


@reads("GET /api/conversations/{conversation_id}", "Get a conversation", GIVEN)
def get_conversation(engine: Engine, conversation_id: ConversationId, workspace_id: WorkspaceId = None) -> Any:
    """A conversation by its id."""
    return talk(engine.conversations.get(conversation_id, workspace=workspace_id))


@writes("PUT /api/conversations/{conversation_id}", "Update a conversation", GIVEN)
def update_conversation(
    engine: Engine,
    conversation_id: ConversationId,
    workspace_id: WorkspaceId = None,
    title: Title = None,
    system_prompt: SystemPrompt = None,
) -> Any:
    """Update a conversation's title or system prompt."""
    given = {"title": title, "system_prompt": system_prompt}
    fields = {name: one for name, one in given.items() if one is not None}
    return talk(engine.conversations.describe(conversation_id, workspace=workspace_id, **fields))


@writes("DELETE /api/conversations/{conversation_id}", "Delete a conversation", DONE, destructive=True)
def delete_conversation(engine: Engine, conversation_id: ConversationId, workspace_id: WorkspaceId = None) -> Any:
    """Erase a conversation with its messages; its memories stay. Only for its creator and owners."""
    engine.conversations.delete(conversation_id, workspace=workspace_id)
    return "Conversation deleted"


@writes(
    "DELETE /api/mcp/conversation/{conversation_id}/clear",
    "Forget a conversation's memories",
    {**DONE, "count": COUNT},
    optional=UNDONE_BY,
    destructive=True,
)
def clear_conversation(engine: Engine, conversation_id: ConversationId, workspace_id: WorkspaceId = None) -> Any:
    """Forget the memories that were stored in a conversation; they can be restored for thirty days. Only for its
    creator and owners."""
    done = engine.conversations.clear(conversation_id, workspace=workspace_id)
    return {"message": f"Cleared {done.count} memories", "count": done.count, "deed": done.deed}


@reads("GET /api/conversations/{conversation_id}/messages", "List messages", {"messages": array(MESSAGE)})
def list_messages(
    engine: Engine,
    conversation_id: ConversationId,
    workspace_id: WorkspaceId = None,
    limit: Annotated[int, {"minimum": 1, "maximum": 1000}] = 20,
    offset: Offset = 0,
) -> Any:
    """The last messages of a conversation, oldest first; offset skips the newest."""
    found = engine.conversations.messages(conversation_id, limit=limit, offset=offset, workspace=workspace_id)
    return [show_message(one) for one in found]


ANSWER = {"anyOf": [MESSAGE, {"type": "null"}]}
TURN = {"message": MESSAGE, "context": object_schema(CONTEXT, required=tuple(CONTEXT)), "answer": ANSWER}


@writes("POST /api/conversations/{conversation_id}/messages", "Send a message", TURN, status=201, streams=Pieces.EVENTS)
def send_message(
    engine: Engine,
    *,
    conversation_id: ConversationId,
    workspace_id: WorkspaceId = None,
    content: Annotated[str, TEXT, "What the user says"],
    token_budget: Budget = None,
    placement: Placement = "before",
    stream: Annotated[bool, "Stream the answer as server-sent events: context, piece …, done."] = False,
) -> Any:
    """Add a user's message to a conversation and build its context. If a language model is configured, the context is
    sent to it and the answer is stored; otherwise only the context is returned."""
    way = how(token_budget, placement)
    turn, pieces = engine.conversations.converse(conversation_id, content, workspace=workspace_id, **way)
    if stream:
        return Stream(events(turn, pieces))
    *_, answer = (None, *pieces)
    return show_turn(turn, answer)


def events(turn: Turn, pieces: Iterator[str | Message]) -> Iterator[Body]:
    """The context, the answer piece by piece, and finally the same body as without a stream."""
    yield {"event": "context", "data": parts(turn.context)}
    last: str | Message | None = None
    for last in pieces:
        if isinstance(last, str):
            yield {"event": "piece", "data": {"text": last}}
    yield {"event": "done", "data": ok(show_turn(turn, last))}


def show_turn(turn: Turn, answer: str | Message | None) -> Body:
    given = show_message(answer) if isinstance(answer, Message) else None
    return {"message": show_message(turn.message), "context": parts(turn.context), "answer": given}


def talk(conversation: Conversation) -> Body:
    return present(
        id=conversation.id,
        workspace_id=id_of(conversation.space),
        title=conversation.title,
        system_prompt=conversation.system_prompt,
        user_id=conversation.user_id,
        message_count=conversation.messages,
        access_level=conversation.access_level,
        created_at=conversation.created_at,
        updated_at=conversation.updated_at,
    )
