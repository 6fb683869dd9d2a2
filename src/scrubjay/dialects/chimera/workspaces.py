"""Chimera: workspaces and their memories. Part of `memories.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import (
    NOTICES,
    PHRASES,
    WORDINGS,
    Body,
    Route,
    Schema,
    array,
    object_schema,
    phrases_in,
    present,
    record,
    text,
)
from scrubjay.dialects.chimera.memories import (
    COUNT,
    DONE,
    FRAGMENT,
    LIMIT,
    MEMORIES,
    MEMORY,
    MEMORY_ID,
    OFFSET,
    TAGS,
    TEXT,
    TIME,
    WORKSPACE_ID,
    extras,
    gives,
    new_memory,
    ok,
    shown,
    spelt,
)
from scrubjay.engine.conversations.workspaces import id_of
from scrubjay.values.memory import MAX_CONTENT, NewMemory, Source, Space

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

MAX_BATCH = 100

WORKSPACE = object_schema(
    {"id": text(), "name": text(), "description": text(), "memory_count": COUNT, "created_at": TIME},
    required=("id", "name", "memory_count", "created_at"),
)
OF_WORKSPACE: Schema = {"workspace_id": {**WORKSPACE_ID, "description": "Such as workspace-…"}}
NAMED: Schema = {"name": text(minLength=1, maxLength=200), "description": text(minLength=1, maxLength=MAX_CONTENT)}


@extras.reads("List workspaces", route=Route("GET", "/api/workspaces"), gives=gives({"workspaces": array(WORKSPACE)}))
def list_workspaces(engine: Engine, _args: Body) -> Body:
    """List the workspaces that you can use."""
    return ok(workspaces=[workspace(space) for space in engine.list_spaces()])


@extras.writes(
    "Create a workspace",
    route=Route("POST", "/api/workspaces", 201),
    takes=object_schema(NAMED, required=("name",)),
    gives=gives({"workspace": WORKSPACE}),
)
def create_workspace(engine: Engine, args: Body) -> Body:
    """Create a workspace with its own memories and conversations."""
    return ok(workspace=workspace(engine.workspaces.create(args["name"], description=args.get("description"))))


@extras.reads(
    "Get a workspace",
    route=Route("GET", "/api/workspaces/{workspace_id}"),
    takes=object_schema(OF_WORKSPACE, required=("workspace_id",)),
    gives=gives({"workspace": WORKSPACE}),
)
def get_workspace(engine: Engine, args: Body) -> Body:
    """A workspace by its id."""
    return ok(workspace=workspace(engine.workspaces.get(args["workspace_id"])))


@extras.writes(
    "Rename or describe a workspace",
    idempotent=True,
    route=Route("PUT", "/api/workspaces/{workspace_id}"),
    takes=object_schema({**OF_WORKSPACE, **NAMED}, required=("workspace_id",)),
    gives=gives({"workspace": WORKSPACE}),
)
def update_workspace(engine: Engine, args: Body) -> Body:
    """Change a workspace's name or description; its id stays."""
    changed = engine.workspaces.describe(
        args["workspace_id"], name=args.get("name"), description=args.get("description")
    )
    return ok(workspace=workspace(changed))


@extras.writes(
    "Delete an empty workspace",
    destructive=True,
    route=Route("DELETE", "/api/workspaces/{workspace_id}"),
    takes=object_schema(OF_WORKSPACE, required=("workspace_id",)),
    gives=gives(DONE),
)
def delete_workspace(engine: Engine, args: Body) -> Body:
    """Delete a workspace without memories, together with its conversations."""
    engine.workspaces.delete(args["workspace_id"])
    return ok(message="Workspace deleted")


WRITTEN: Schema = {
    "title": text(minLength=1, maxLength=200),
    "content": TEXT,
    "tags": TAGS,
    "metadata": {"type": "object"},
    "also": PHRASES,
}


@extras.reads(
    "List a workspace's memories",
    route=Route("GET", "/api/workspaces/{workspace_id}/memories"),
    takes=object_schema(
        {
            **OF_WORKSPACE,
            "search": {**TEXT, "description": "Only matching memories, best first"},
            "also": WORDINGS,
            "limit": LIMIT,
            "offset": OFFSET,
        },
        required=("workspace_id",),
    ),
    gives=gives({"memories": MEMORIES, "total": COUNT, "limit": COUNT, "offset": COUNT}),
)
def list_workspace_memories(engine: Engine, args: Body) -> Body:
    """List a workspace's memories, newest first, or search among them."""
    limit, offset = int(args.get("limit", 20)), int(args.get("offset", 0))
    page = engine.workspaces.memories(
        args["workspace_id"], search=args.get("search"), also=phrases_in(args), limit=limit, offset=offset
    )
    return ok(memories=[shown(memory) for memory in page], total=page.total, limit=limit, offset=offset)


@extras.writes(
    "Create a memory in a workspace",
    route=Route("POST", "/api/workspaces/{workspace_id}/memories", 201),
    takes=object_schema({**OF_WORKSPACE, **WRITTEN}, required=("workspace_id", "content")),
    gives=gives({"memory": MEMORY}),
)
def create_memory(engine: Engine, args: Body) -> Body:
    """Store a memory in a workspace."""
    new = NewMemory(
        content=args["content"],
        title=args.get("title"),
        tags=tuple(args.get("tags", ())),
        also=phrases_in(args),
        metadata=args.get("metadata", {}),
        source=Source.EXPLICIT,
    )
    return ok(memory=shown(engine.workspaces.remember(args["workspace_id"], new).memory))


@extras.reads(
    "Get a memory",
    route=Route("GET", "/api/memories/{memory_id}"),
    takes=record({"memory_id": MEMORY_ID}),
    gives=gives({"memory": MEMORY}),
)
def get_memory(engine: Engine, args: Body) -> Body:
    """A memory by its id."""
    return ok(memory=shown(engine.get(args["memory_id"])))


@extras.writes(
    "Update a memory",
    of_one_version=True,
    route=Route("PUT", "/api/memories/{memory_id}"),
    takes=object_schema({"memory_id": MEMORY_ID, **WRITTEN}, required=("memory_id",)),
    gives=gives({"memory": MEMORY}, optional={"notices": NOTICES}),
)
def update_memory(engine: Engine, args: Body) -> Body:
    """Update a memory's title, content, tags or metadata; its version increases by one, and the earlier one is kept."""
    memory = engine.update(args["memory_id"], **{name: args[name] for name in WRITTEN if name in args})
    same = engine.same_as(memory.id).get(memory.id, ()) if "content" in args else ()
    told = [f"It says the same as {', '.join(map(spelt, same))}: keep one of them."]
    return ok(memory=shown(memory), **({"notices": told} if same else {}))


@extras.writes(
    "Delete a memory",
    of_one_version=True,
    destructive=True,
    route=Route("DELETE", "/api/memories/{memory_id}"),
    earlier=Route("DELETE", "/api/mcp/memory/{memory_id}/delete"),
    takes=record({"memory_id": MEMORY_ID}),
    gives=gives(DONE),
)
def delete_memory(engine: Engine, args: Body) -> Body:
    """Delete a memory, also from every conversation; it can be restored for thirty days."""
    engine.forget(args["memory_id"])
    return ok(message="Memory deleted")


@extras.writes(
    "Remember many",
    route=Route("POST", "/api/mcp/batch-remember", 201),
    takes=record(
        {"memories": array(object_schema(FRAGMENT, required=("text",)), minItems=1, maxItems=MAX_BATCH)},
        optional={"workspace_id": WORKSPACE_ID},
    ),
    gives=gives({"created": COUNT, "memories": MEMORIES}),
    fields={"content": "text"},
)
def batch_remember(engine: Engine, args: Body) -> Body:
    """Store several memory fragments at once: all of them, or none."""
    stored = engine.conversations.remember_all(
        [new_memory(one) for one in args["memories"]], workspace=args.get("workspace_id")
    )
    return ok(created=len(stored), memories=[shown(memory) for memory in stored])


def workspace(space: Space) -> Body:
    return present(
        id=id_of(space.name),
        name=space.title or space.name,
        description=space.description,
        memory_count=space.memories + space.superseded,  # the number that its list shows
        created_at=space.created_at,
    )
