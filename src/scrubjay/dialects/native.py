"""Native: what people and the page need and no other vocabulary offers. REST under /api/v1/, not MCP.

Replies are the engine's own values as JSON (`engine.values.plain`), so their schemas are read from the types; what is
None is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrubjay.dialects.base import LEFT_OUT, Body, Dialect, Route, Schema, either, object_schema
from scrubjay.dialects.shapes import shape
from scrubjay.engine.values import plain
from scrubjay.errors import Error
from scrubjay.memory import Hit, Memory, Query, Space

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

ROOT = "/api/v1"


def error_body(error: Error, _operation: str) -> Body:
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.hint:
        body["hint"] = error.hint
    if details := {name: plain(value) for name, value in error.details.items() if value is not None}:
        body["details"] = details
    return {"error": body}


native = Dialect(
    name="native",
    title="Native: everything a person can do",
    server_name="scrubjay",
    instructions="",
    error_body=error_body,
    tools=False,
)

FAILED = object_schema(
    {
        "error": object_schema(
            {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"type": "string", "description": "What to do about it"},
                "details": {"type": "object"},
            },
            required=("code", "message"),
        )
    },
    required=("error",),
)
ID = {"type": "string", "minLength": 1, "description": "A memory's id, of any shape"}


def gives(properties: Schema, *, optional: Schema | None = None) -> Schema:
    """A successful reply with these fields, or an error."""
    return either(object_schema({**properties, **(optional or {})}, required=tuple(properties)), FAILED)


def many(kind: Any) -> Schema:
    return {"type": "array", "items": shape(kind)}


@native.operation(
    "get_memory",
    title="Get a memory",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}"),
    takes=object_schema(
        {"id": ID, "deleted": {"type": "boolean", "description": "Also if it was forgotten and can be brought back"}},
        required=("id",),
    ),
    gives=gives({"memory": shape(Memory)}),
)
def get_memory(engine: Engine, args: Body) -> Body:
    """A memory by its id, with everything that is known of it."""
    return {"memory": plain(engine.get(args["id"], deleted=bool(args.get("deleted"))))}


@native.operation(
    "search",
    title="Search with explanation",
    changes=False,
    route=Route("POST", f"{ROOT}/search"),
    takes=object_schema(
        {
            "query": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
            "offset": {"type": "integer", "minimum": 0, "maximum": 1000, "default": 0},
        },
        required=("query",),
    ),
    gives=gives(
        {"hits": many(Hit), "total": {"type": "integer"}},
        optional={"degraded": {"type": "string"}, "left_out": LEFT_OUT},
    ),
)
def search(engine: Engine, args: Body) -> Body:
    """Find memories by words and by meaning, best first, each with the reasons why it was found."""
    hits = engine.search(
        Query(text=args["query"], limit=int(args.get("limit", 10)), offset=int(args.get("offset", 0)), explain=True)
    )
    degraded = {"degraded": hits.degraded} if hits.degraded else {}
    return {"hits": plain(hits.hits), "total": hits.total, **degraded}


@native.operation(
    "list_spaces",
    title="List spaces",
    changes=False,
    route=Route("GET", f"{ROOT}/spaces"),
    takes=object_schema({}),
    gives=gives({"spaces": many(Space)}, optional={"left_out": LEFT_OUT}),
)
def list_spaces(engine: Engine, _args: Body) -> Body:
    """The spaces that the caller may use, with how many memories each holds."""
    return {"spaces": plain(list(engine.list_spaces()))}
