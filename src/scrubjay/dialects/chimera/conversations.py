"""Chimera: conversations and their messages. Part of `memories.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Pieces, Route, Schema, Stream, array, flag, object_schema, present, text
from scrubjay.dialects.chimera.memories import (
    BUDGET,
    CONTEXT,
    CONVERSATION_ID,
    COUNT,
    DONE,
    LIMIT,
    MESSAGE,
    OFFSET,
    PLACEMENT,
    TEXT,
    TIME,
    WORKSPACE_ID,
    extras,
    gives,
    how,
    ok,
    parts,
    said,
)
from scrubjay.engine.conversations.workspaces import id_of
from scrubjay.values.memory import AccessLevel, Conversation, Message

if TYPE_CHECKING:
    from scrubjay.engine.conversations.conversations import Turn
    from scrubjay.engine.engine import Engine

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
OF_CONVERSATION: Schema = {"conversation_id": CONVERSATION_ID, "workspace_id": WORKSPACE_ID}
DESCRIBED: Schema = {
    "title": text(minLength=1, maxLength=200),
    "system_prompt": {**TEXT, "description": "What the language model is given before anything else"},
}


@extras.reads(
    "List conversations",
    route=Route("GET", "/api/conversations"),
    takes=object_schema({"workspace_id": WORKSPACE_ID, "limit": LIMIT, "offset": OFFSET}),
    gives=gives({"conversations": array(CONVERSATION)}),
)
def list_conversations(engine: Engine, args: Body) -> Body:
    """List a workspace's conversations, the most recently active first."""
    found = engine.conversations.list(
        limit=int(args.get("limit", 20)), offset=int(args.get("offset", 0)), workspace=args.get("workspace_id")
    )
    return ok(conversations=[talk(one) for one in found])


@extras.writes(
    "Start a conversation",
    route=Route("POST", "/api/conversations", 201),
    takes=object_schema(
        {
            **OF_CONVERSATION,
            **DESCRIBED,
            "access_level": text(
                "private: only you and owners of the workspace see it", enum=LEVELS, default=str(AccessLevel.SHARED)
            ),
        }
    ),
    gives=gives({"conversation": CONVERSATION}),
)
def create_conversation(engine: Engine, args: Body) -> Body:
    """Start a conversation in a workspace, with your own id or a new one: shared with everyone who uses the workspace,
    or private."""
    made = engine.conversations.create(
        args.get("conversation_id"),
        title=args.get("title"),
        system_prompt=args.get("system_prompt"),
        access_level=args.get("access_level", AccessLevel.SHARED),
        workspace=args.get("workspace_id"),
    )
    return ok(conversation=talk(made))


@extras.reads(
    "Get a conversation",
    route=Route("GET", "/api/conversations/{conversation_id}"),
    takes=object_schema(OF_CONVERSATION, required=("conversation_id",)),
    gives=gives({"conversation": CONVERSATION}),
)
def get_conversation(engine: Engine, args: Body) -> Body:
    """A conversation by its id."""
    return ok(conversation=talk(engine.conversations.get(args["conversation_id"], workspace=args.get("workspace_id"))))


@extras.writes(
    "Update a conversation",
    route=Route("PUT", "/api/conversations/{conversation_id}"),
    takes=object_schema({**OF_CONVERSATION, **DESCRIBED}, required=("conversation_id",)),
    gives=gives({"conversation": CONVERSATION}),
)
def update_conversation(engine: Engine, args: Body) -> Body:
    """Update a conversation's title or system prompt."""
    changed = engine.conversations.describe(
        args["conversation_id"],
        workspace=args.get("workspace_id"),
        **{name: args[name] for name in DESCRIBED if name in args},
    )
    return ok(conversation=talk(changed))


@extras.writes(
    "Delete a conversation",
    destructive=True,
    route=Route("DELETE", "/api/conversations/{conversation_id}"),
    takes=object_schema(OF_CONVERSATION, required=("conversation_id",)),
    gives=gives(DONE),
)
def delete_conversation(engine: Engine, args: Body) -> Body:
    """Erase a conversation with its messages; its memories stay. Only for its creator and owners."""
    engine.conversations.delete(args["conversation_id"], workspace=args.get("workspace_id"))
    return ok(message="Conversation deleted")


@extras.writes(
    "Forget a conversation's memories",
    destructive=True,
    route=Route("DELETE", "/api/mcp/conversation/{conversation_id}/clear"),
    takes=object_schema(OF_CONVERSATION, required=("conversation_id",)),
    gives=gives({**DONE, "count": COUNT}, optional={"deed": text("Id of the bulk operation, to undo it")}),
)
def clear_conversation(engine: Engine, args: Body) -> Body:
    """Forget the memories that were stored in a conversation; they can be restored for thirty days. Only for its
    creator and owners."""
    done = engine.conversations.clear(args["conversation_id"], workspace=args.get("workspace_id"))
    return ok(message=f"Cleared {done.count} memories", count=done.count, deed=done.deed)


@extras.reads(
    "List messages",
    route=Route("GET", "/api/conversations/{conversation_id}/messages"),
    takes=object_schema(
        {**OF_CONVERSATION, "limit": {**LIMIT, "maximum": 1000}, "offset": OFFSET}, required=("conversation_id",)
    ),
    gives=gives({"messages": array(MESSAGE)}),
)
def list_messages(engine: Engine, args: Body) -> Body:
    """The last messages of a conversation, oldest first; offset skips the newest."""
    found = engine.conversations.messages(
        args["conversation_id"],
        limit=int(args.get("limit", 20)),
        offset=int(args.get("offset", 0)),
        workspace=args.get("workspace_id"),
    )
    return ok(messages=[said(one) for one in found])


@extras.writes(
    "Send a message",
    route=Route("POST", "/api/conversations/{conversation_id}/messages", 201),
    streams=Pieces.EVENTS,
    takes=object_schema(
        {
            **OF_CONVERSATION,
            "content": {**TEXT, "description": "What the user says"},
            "token_budget": BUDGET,
            "placement": PLACEMENT,
            "stream": flag("Stream the answer as server-sent events: context, piece …, done.", default=False),
        },
        required=("conversation_id", "content"),
    ),
    gives=gives(
        {
            "message": MESSAGE,
            "context": object_schema(CONTEXT, required=tuple(CONTEXT)),
            "answer": {"anyOf": [MESSAGE, {"type": "null"}]},
        }
    ),
)
def send_message(engine: Engine, args: Body) -> Body | Stream:
    """Add a user's message to a conversation and build its context. If a language model is configured, the context is
    sent to it and the answer is stored; otherwise only the context is returned."""
    turn, pieces = engine.conversations.converse(
        args["conversation_id"], args["content"], workspace=args.get("workspace_id"), **how(args)
    )
    if args.get("stream"):
        return Stream(events(turn, pieces))
    *_, answer = (None, *pieces)
    return turned(turn, answer)


def events(turn: Turn, pieces: Iterator[str | Message]) -> Iterator[Body]:
    """The context, the answer piece by piece, and finally the same body as without a stream."""
    yield {"event": "context", "data": parts(turn.context)}
    last: str | Message | None = None
    for last in pieces:
        if isinstance(last, str):
            yield {"event": "piece", "data": {"text": last}}
    yield {"event": "done", "data": turned(turn, last)}


def turned(turn: Turn, answer: str | Message | None) -> Body:
    given = said(answer) if isinstance(answer, Message) else None
    return ok(message=said(turn.message), context=parts(turn.context), answer=given)


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
