"""Chimera: workspaces and their memories. Part of `memories.py`."""

from __future__ import annotations

from typing import Annotated, Any

from scrubjay.dialects.base import (
    COUNT,
    NOTICES,
    PHRASES,
    TIME,
    Body,
    Route,
    Schema,
    array,
    object_schema,
    phrases_in,
    present,
    text,
)
from scrubjay.dialects.chimera.memories import (
    DONE,
    FRAGMENT,
    MEMORIES,
    MEMORY,
    MEMORY_ID,
    TAGS,
    TEXT,
    WORKSPACE_ID,
    Limit,
    Offset,
    WorkspaceId,
    new_memory,
    reads,
    show_memory,
    spelt,
    writes,
)
from scrubjay.dialects.schemas import Wordings
from scrubjay.engine.conversations.workspaces import id_of
from scrubjay.engine.engine import Engine
from scrubjay.values.memory import MAX_CONTENT, NewMemory, Source
from scrubjay.values.store import Space

WORKSPACE = object_schema(
    {"id": text(), "name": text(), "description": text(), "memory_count": COUNT, "created_at": TIME},
    required=("id", "name", "memory_count", "created_at"),
)
GIVEN = {"workspace": WORKSPACE}
OF_WORKSPACE: Schema = {**WORKSPACE_ID, "description": "Such as workspace-…"}
Id = Annotated[str, OF_WORKSPACE]
Name = Annotated[str, text(minLength=1, maxLength=200)]
Description = Annotated[str | None, text(minLength=1, maxLength=MAX_CONTENT)]


@reads("GET /api/workspaces", "List workspaces", {"workspaces": array(WORKSPACE)})
def list_workspaces(engine: Engine) -> Any:
    """List the workspaces that you can use."""
    return [workspace(space) for space in engine.known_spaces.list()]


@writes("POST /api/workspaces", "Create a workspace", GIVEN, status=201)
def create_workspace(engine: Engine, name: Name, description: Description = None) -> Any:
    """Create a workspace with its own memories and conversations."""
    return workspace(engine.workspaces.create(name, description=description))


@reads("GET /api/workspaces/{workspace_id}", "Get a workspace", GIVEN)
def get_workspace(engine: Engine, workspace_id: Id) -> Any:
    """A workspace by its id."""
    return workspace(engine.workspaces.get(workspace_id))


@writes("PUT /api/workspaces/{workspace_id}", "Rename or describe a workspace", GIVEN, idempotent=True)
def update_workspace(
    engine: Engine,
    workspace_id: Id,
    name: Annotated[str | None, text(minLength=1, maxLength=200)] = None,
    description: Description = None,
) -> Any:
    """Change a workspace's name or description; its id stays."""
    return workspace(engine.workspaces.describe(workspace_id, name=name, description=description))


@writes("DELETE /api/workspaces/{workspace_id}", "Delete an empty workspace", DONE, destructive=True)
def delete_workspace(engine: Engine, workspace_id: Id) -> Any:
    """Delete a workspace without memories, together with its conversations."""
    engine.workspaces.delete(workspace_id)
    return "Workspace deleted"


WRITTEN: Schema = {
    "title": text(minLength=1, maxLength=200),
    "content": TEXT,
    "tags": TAGS,
    "metadata": {"type": "object"},
    "also": PHRASES,
}
PAGE = {"memories": MEMORIES, "total": COUNT, "limit": COUNT, "offset": COUNT}
NEW = object_schema({"workspace_id": OF_WORKSPACE, **WRITTEN}, required=("workspace_id", "content"))
CHANGED = object_schema({"memory_id": MEMORY_ID, **WRITTEN}, required=("memory_id",))
MANY = array(object_schema(FRAGMENT, required=("text",)), minItems=1, maxItems=100)


@reads(
    "GET /api/workspaces/{workspace_id}/memories", "List a workspace's memories", PAGE, optional={"notices": NOTICES}
)
def list_workspace_memories(
    engine: Engine,
    *,
    workspace_id: Id,
    search: Annotated[str | None, TEXT, "Only matching memories, best first"] = None,
    also: Wordings = (),
    limit: Limit = 20,
    offset: Offset = 0,
) -> Any:
    """List a workspace's memories, newest first, or search among them."""
    part = {"limit": limit, "offset": offset}
    page = engine.workspaces.memories(workspace_id, search=search, also=also, **part)
    return {"memories": [show_memory(memory) for memory in page], "total": page.total, **part}


@writes(
    "POST /api/workspaces/{workspace_id}/memories",
    "Create a memory in a workspace",
    {"memory": MEMORY},
    status=201,
    takes=NEW,
)
def create_memory(engine: Engine, args: Body) -> Any:
    """Store a memory in a workspace."""
    new = NewMemory(
        content=args["content"],
        title=args.get("title"),
        tags=tuple(args.get("tags", ())),
        also=phrases_in(args),
        metadata=args.get("metadata", {}),
        source=Source.EXPLICIT,
    )
    return show_memory(engine.workspaces.remember(args["workspace_id"], new).memory)


@reads("GET /api/memories/{memory_id}", "Get a memory", {"memory": MEMORY}, optional={"notices": NOTICES})
def get_memory(engine: Engine, memory_id: Annotated[str, MEMORY_ID]) -> Any:
    """A memory by its id."""
    return show_memory(engine.get(memory_id))


@writes(
    "PUT /api/memories/{memory_id}",
    "Update a memory",
    {"memory": MEMORY},
    optional={"notices": NOTICES},
    of_one_version=True,
    takes=CHANGED,
)
def update_memory(engine: Engine, args: Body) -> Any:
    """Update a memory's title, content, tags or metadata; its version increases by one, and the earlier one is kept."""
    memory = engine.update(args["memory_id"], **{name: args[name] for name in WRITTEN if name in args})
    same = engine.conflicts.same_as(memory.id).get(memory.id, ()) if "content" in args else ()
    told = [f"It says the same as {', '.join(map(spelt, same))}: keep one of them."]
    return {"memory": show_memory(memory), **({"notices": told} if same else {})}


@writes(
    "DELETE /api/memories/{memory_id}",
    "Delete a memory",
    DONE,
    of_one_version=True,
    destructive=True,
    earlier=Route("DELETE", "/api/mcp/memory/{memory_id}/delete"),
)
def delete_memory(engine: Engine, memory_id: Annotated[str, MEMORY_ID]) -> Any:
    """Delete a memory, also from every conversation; it can be restored for thirty days."""
    engine.forget(memory_id)
    return "Memory deleted"


@writes(
    "POST /api/mcp/batch-remember",
    "Remember many",
    {"created": COUNT, "memories": MEMORIES},
    status=201,
    fields={"content": "text"},
)
def batch_remember(engine: Engine, memories: Annotated[Any, MANY], workspace_id: WorkspaceId = None) -> Any:
    """Store several memory fragments at once: all of them, or none."""
    stored = engine.conversations.remember_all(list(map(new_memory, memories)), workspace=workspace_id)
    return len(stored), [show_memory(memory) for memory in stored]


def workspace(space: Space) -> Body:
    return present(
        id=id_of(space.name),
        name=space.title or space.name,
        description=space.description,
        memory_count=space.memories + space.superseded,  # the number that its list shows
        created_at=space.created_at,
    )
