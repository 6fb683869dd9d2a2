"""Native: what people and the page need and no other vocabulary offers. REST under /api/v1/, not MCP.

Replies are the engine's own values as JSON (`engine.values.plain`), so their schemas are read from the types; what is
None is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from scrubjay.dialects.base import (
    LEFT_OUT,
    Body,
    Dialect,
    Pieces,
    Route,
    Schema,
    Stream,
    either,
    object_schema,
)
from scrubjay.dialects.shapes import fields_of, filled, shape
from scrubjay.engine import intake
from scrubjay.engine.bulk import CHANGEABLE as BULK_CHANGES
from scrubjay.engine.bulk import Done
from scrubjay.engine.curation import Node
from scrubjay.engine.intake import TagChange
from scrubjay.engine.statistics import Statistics, StatsQuery
from scrubjay.engine.transfer import Imported
from scrubjay.engine.values import plain
from scrubjay.errors import Error
from scrubjay.memory import (
    Filter,
    Hit,
    Link,
    Memory,
    NewMemory,
    OpenConflict,
    Order,
    Query,
    Recall,
    Space,
    Topic,
    Version,
)
from scrubjay.times import parse_time

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


LARGE: Schema = {"degraded": {"type": "string"}, "left_out": LEFT_OUT}
TAGS = {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 20}
NAME = {"type": "string", "minLength": 1, "maxLength": 100}
DEED = {"type": "string", "minLength": 1, "maxLength": 100, "description": "What an earlier call named it"}
DONE: Schema = shape(Done)["properties"]
DIFFERENCE = object_schema(
    {"field": {"type": "string"}, "old": {}, "new": {}, "lines": {"type": "array", "items": {"type": "string"}}},
    required=("field", "lines"),
)


PAGE: Schema = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20},
    "offset": {"type": "integer", "minimum": 0, "maximum": 1_000_000, "default": 0},
}
COUNT = {"type": "integer", "minimum": 0}
FILTER = fields_of(Filter)
REASON = {"type": "string", "minLength": 1, "maxLength": 1000, "description": "Why, for the history"}
ONE = object_schema({"id": ID}, required=("id",))
CHANGES: Schema = {name: schema for name, schema in fields_of(Memory).items() if name in intake.CHANGEABLE}


def wanted(args: Body) -> Filter:
    """Which memories are meant: current ones unless the arguments say otherwise."""
    return filled(Filter, args)


def one(memory: Memory) -> Body:
    return {"memory": plain(memory)}


# --- one memory ------------------------------------------------------------------------------------------------------


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
    return one(engine.get(args["id"], deleted=bool(args.get("deleted"))))


@native.operation(
    "store_memory",
    title="Store a memory",
    changes=True,
    route=Route("POST", f"{ROOT}/memories", 201),
    takes=object_schema(fields_of(NewMemory, without=("kind", "topic", "detail")), required=("content",)),
    gives=gives({"memory": shape(Memory), "similar": many(Memory), "links": COUNT}, optional=LARGE),
)
def store_memory(engine: Engine, args: Body) -> Body:
    """Keep a memory; answers with earlier ones that it may outdate."""
    stored = engine.store(filled(NewMemory, args))
    return {**one(stored.memory), "similar": plain(stored.similar), "links": stored.links, **degraded(stored.degraded)}


@native.operation(
    "update_memory",
    title="Change a memory",
    changes=True,
    route=Route("PATCH", f"{ROOT}/memories/{{id}}"),
    takes=object_schema({"id": ID, **CHANGES, "reason": REASON}, required=("id",)),
    gives=gives({"memory": shape(Memory), "fields": {"type": "array", "items": {"type": "string"}}, "previous": ID}),
)
def update_memory(engine: Engine, args: Body) -> Body:
    """Change a memory; its former state stays in the history. Send If-Match with its version to change only that."""
    fields = {name: moment(name, args[name]) for name in CHANGES if name in args}
    revised = engine.revise(args["id"], reason=args.get("reason"), **fields)
    return {**one(revised.memory), "fields": list(revised.fields), "previous": revised.previous}


@native.operation(
    "forget_memory",
    title="Forget a memory",
    changes=True,
    destructive=True,
    route=Route("DELETE", f"{ROOT}/memories/{{id}}"),
    takes=object_schema(
        {"id": ID, "hard": {"type": "boolean", "default": False, "description": "Erase for good"}, "reason": REASON},
        required=("id",),
    ),
    gives=gives({"memory": shape(Memory), "hard": {"type": "boolean"}}),
)
def forget_memory(engine: Engine, args: Body) -> Body:
    """Forget a memory: for thirty days it can be brought back, or with `hard` never."""
    forgotten = engine.forget(args["id"], hard=bool(args.get("hard")), reason=args.get("reason"))
    return {**one(forgotten.memory), "hard": forgotten.hard}


@native.operation(
    "recover_memory",
    title="Bring a memory back",
    changes=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/recover"),
    takes=ONE,
    gives=gives({"memory": shape(Memory)}),
)
def recover_memory(engine: Engine, args: Body) -> Body:
    """Bring a forgotten memory back."""
    return one(engine.recover(args["id"]))


# --- finding ---------------------------------------------------------------------------------------------------------


@native.operation(
    "search",
    title="Search with explanation",
    changes=False,
    route=Route("POST", f"{ROOT}/search"),
    takes=object_schema({"query": {"type": "string", "minLength": 1}, **PAGE, **FILTER}, required=("query",)),
    gives=gives({"hits": many(Hit), "total": COUNT}, optional=LARGE),
)
def search(engine: Engine, args: Body) -> Body:
    """Find memories by words and by meaning, best first, each with the reasons why it was found."""
    hits = engine.search(
        Query(
            text=args["query"],
            limit=int(args.get("limit", 10)),
            offset=int(args.get("offset", 0)),
            filter=wanted(args),
            explain=True,
        )
    )
    return {"hits": plain(hits.hits), "total": hits.total, **degraded(hits.degraded)}


@native.operation(
    "list_memories",
    title="List memories",
    changes=False,
    route=Route("GET", f"{ROOT}/memories"),
    takes=object_schema(
        {
            **PAGE,
            "cursor": {"type": "string", "minLength": 1, "description": "Where the last page said that it goes on"},
            "order": {**shape(Order), "default": "created_at"},
            "ascending": {"type": "boolean", "default": False},
            **FILTER,
        }
    ),
    gives=gives({"memories": many(Memory), "total": COUNT}, optional={"cursor": {"type": "string"}, **LARGE}),
)
def list_memories(engine: Engine, args: Body) -> Body:
    """Memories in order, newest first unless asked otherwise."""
    page = engine.list(
        wanted(args),
        order=Order(args.get("order", "created_at")),
        descending=not args.get("ascending"),
        limit=int(args.get("limit", 20)),
        offset=int(args.get("offset", 0)),
        cursor=args.get("cursor"),
        counted=True,
    )
    more = {} if page.cursor is None else {"cursor": page.cursor}
    return {"memories": plain(page.memories), "total": page.total, **more}


@native.operation(
    "shown_to",
    title="Who was shown a memory",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/shown"),
    takes=ONE,
    gives=gives({"recalls": many(Recall)}, optional=LARGE),
)
def shown_to(engine: Engine, args: Body) -> Body:
    """To whom a memory was handed out and when, newest first: for when it turns out poisoned or wrong."""
    return {"recalls": plain(list(engine.shown_to(args["id"])))}


# --- history ---------------------------------------------------------------------------------------------------------


@native.operation(
    "list_versions",
    title="List a memory's versions",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/versions"),
    takes=ONE,
    gives=gives({"versions": many(Version)}, optional=LARGE),
)
def list_versions(engine: Engine, args: Body) -> Body:
    """Former states of a memory, newest first."""
    return {"versions": plain(list(engine.history(args["id"])))}


@native.operation(
    "diff_versions",
    title="Compare versions",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/diff"),
    takes=object_schema(
        {
            "id": ID,
            "old": {"type": "integer", "minimum": 1},
            "new": {"type": "integer", "minimum": 1, "description": "Default: as it is now"},
        },
        required=("id", "old"),
    ),
    gives=gives({"differences": {"type": "array", "items": DIFFERENCE}}, optional=LARGE),
)
def diff_versions(engine: Engine, args: Body) -> Body:
    """How two versions of a memory differ, field by field."""
    found = engine.curation.diff(args["id"], old=args["old"], new=args.get("new"))
    return {"differences": plain(list(found))}


@native.operation(
    "restore_version",
    title="Restore a version",
    changes=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/versions/{{version}}/restore"),
    takes=object_schema({"id": ID, "version": {"type": "integer", "minimum": 1}}, required=("id", "version")),
    gives=gives({"memory": shape(Memory)}),
)
def restore_version(engine: Engine, args: Body) -> Body:
    """Make a former state of a memory the current one again; today's joins the history."""
    return one(engine.restore_version(args["id"], args["version"]))


# --- links and conflicts ---------------------------------------------------------------------------------------------


@native.operation(
    "list_links",
    title="List a memory's links",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/links"),
    takes=ONE,
    gives=gives({"links": many(Link)}, optional=LARGE),
)
def list_links(engine: Engine, args: Body) -> Body:
    """What a memory is linked with."""
    return {"links": plain(list(engine.links(args["id"])))}


@native.operation(
    "get_graph",
    title="Look around a memory",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/graph"),
    takes=object_schema(
        {
            "id": ID,
            "steps": {"type": "integer", "minimum": 1, "maximum": 3, "default": 1},
            "similar": {"type": "boolean", "default": False, "description": "Also what is like it"},
        },
        required=("id",),
    ),
    gives=gives({"memories": many(Memory), "links": many(Link)}, optional=LARGE),
)
def get_graph(engine: Engine, args: Body) -> Body:
    """A memory, what it is linked with so many steps far, and the links between them."""
    found = engine.curation.around(args["id"], steps=int(args.get("steps", 1)), similar=bool(args.get("similar")))
    return {"memories": plain(found.memories), "links": plain(found.links)}


@native.operation(
    "get_network",
    title="Draw what a memory is connected with",
    changes=False,
    route=Route("GET", f"{ROOT}/memories/{{id}}/network"),
    streams=Pieces.LINES,
    takes=object_schema(
        {"id": ID, "steps": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2}}, required=("id",)
    ),
    gives=either(object_schema({"nodes": many(Node), "links": many(Link)}), FAILED),
)
def get_network(engine: Engine, args: Body) -> Stream:
    """What a memory is connected with, up to five thousand, for drawing: lines of JSON, each with some of the nodes or,
    after them, of the links."""
    found = engine.curation.network(args["id"], steps=int(args.get("steps", 2)))
    nodes = ({"nodes": plain(some)} for some in stretches(found.nodes))
    links = ({"links": plain(some)} for some in stretches(found.links))
    return Stream(chain(nodes, links), Pieces.LINES)


def stretches(items: tuple[Any, ...], size: int = 500) -> Iterator[tuple[Any, ...]]:
    return (items[start : start + size] for start in range(0, len(items), size))


@native.operation(
    "supersede_memory",
    title="Supersede a memory",
    changes=True,
    idempotent=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/supersede"),
    takes=object_schema(
        {"id": ID, "new": {**ID, "description": "The memory that replaces it"}}, required=("id", "new")
    ),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def supersede_memory(engine: Engine, args: Body) -> Body:
    """Mark a memory as outdated by a newer one."""
    old, new = engine.supersede(old=args["id"], new=args["new"])
    return {"old": plain(old), "new": plain(new)}


@native.operation(
    "release_memory",
    title="Take a supersession back",
    changes=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/release"),
    takes=ONE,
    gives=gives({"memory": shape(Memory)}),
)
def release_memory(engine: Engine, args: Body) -> Body:
    """Take back that a memory is outdated: it is current again."""
    return one(engine.curation.release(args["id"]))


@native.operation(
    "list_conflicts",
    title="List open conflicts",
    changes=False,
    route=Route("GET", f"{ROOT}/conflicts"),
    takes=object_schema(PAGE),
    gives=gives({"conflicts": many(OpenConflict)}, optional=LARGE),
)
def list_conflicts(engine: Engine, args: Body) -> Body:
    """Memories that a newer one may outdate and nobody has settled yet, newest first. Supersede the older, or keep
    both."""
    found = engine.open_conflicts(limit=int(args.get("limit", 20)), offset=int(args.get("offset", 0)))
    return {"conflicts": plain(list(found))}


@native.operation(
    "keep_both",
    title="Keep both",
    changes=True,
    route=Route("POST", f"{ROOT}/conflicts/keep"),
    takes=object_schema({"old": ID, "new": ID}, required=("old", "new")),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def keep_both(engine: Engine, args: Body) -> Body:
    """Settle a conflict: both memories are true."""
    old, new = engine.settle(old=args["old"], new=args["new"], keep=True)
    return {"old": plain(old), "new": plain(new)}


# --- decisions -------------------------------------------------------------------------------------------------------


@native.operation(
    "list_topics",
    title="List what was decided about",
    changes=False,
    route=Route("GET", f"{ROOT}/decisions"),
    takes=object_schema({}),
    gives=gives({"topics": many(Topic)}, optional=LARGE),
)
def list_topics(engine: Engine, _args: Body) -> Body:
    """The topics of decisions, those decided last first."""
    return {"topics": plain(list(engine.decisions.topics()))}


@native.operation(
    "get_chain",
    title="How a decision evolved",
    changes=False,
    route=Route("GET", f"{ROOT}/decisions/{{topic:path}}"),
    takes=object_schema({"topic": {"type": "string", "minLength": 1}}, required=("topic",)),
    gives=gives({"decisions": many(Memory)}, optional=LARGE),
)
def get_chain(engine: Engine, args: Body) -> Body:
    """The decisions on a topic, newest first."""
    return {"decisions": plain(list(engine.decisions.chain(args["topic"])))}


# --- many at once ----------------------------------------------------------------------------------------------------


@native.operation(
    "preview_bulk",
    title="Preview a bulk action",
    changes=False,
    route=Route("POST", f"{ROOT}/bulk/preview"),
    takes=object_schema({"limit": PAGE["limit"], **FILTER}),
    gives=gives({"total": COUNT, "memories": many(Memory)}, optional=LARGE),
)
def preview_bulk(engine: Engine, args: Body) -> Body:
    """What a bulk action with this filter would change."""
    named = engine.bulk.preview(wanted(args), limit=int(args.get("limit", 20)))
    return {"total": named.total, "memories": plain(named.memories)}


@native.operation(
    "bulk_forget",
    title="Forget many",
    changes=True,
    destructive=True,
    route=Route("POST", f"{ROOT}/bulk/forget"),
    takes=object_schema({"reason": REASON, "deed": DEED, **FILTER}),
    gives=gives(DONE),
)
def bulk_forget(engine: Engine, args: Body) -> Body:
    """Forget all that a filter names, such as everything one client stored. At most a thousand a call: while `left` is
    not 0, call again with the same deed."""
    return plain_body(engine.bulk.forget(wanted(args), reason=args.get("reason"), deed=args.get("deed")))


@native.operation(
    "bulk_update",
    title="Change many",
    changes=True,
    route=Route("POST", f"{ROOT}/bulk/update"),
    takes=object_schema(
        {
            "filter": object_schema(FILTER),
            "add_tags": TAGS,
            "remove_tags": TAGS,
            **{name: CHANGES[name] for name in BULK_CHANGES},
            "reason": REASON,
        },
        required=("filter",),
    ),
    gives=gives(DONE),
)
def bulk_update(engine: Engine, args: Body) -> Body:
    """Change the same fields of all that a filter names; each keeps its former state in its history."""
    tags = TagChange(add=tuple(args.get("add_tags", ())), remove=tuple(args.get("remove_tags", ())))
    changed = {name: moment(name, args[name]) for name in BULK_CHANGES if name in args}
    done = engine.bulk.update(
        wanted(args["filter"]),
        tags=tags if tags != TagChange() else None,
        reason=args.get("reason"),
        **changed,
    )
    return plain_body(done)


@native.operation(
    "undo_bulk",
    title="Undo a bulk forget",
    changes=True,
    route=Route("POST", f"{ROOT}/bulk/undo"),
    takes=object_schema({"deed": DEED}, required=("deed",)),
    gives=gives(DONE),
)
def undo_bulk(engine: Engine, args: Body) -> Body:
    """Bring back what was forgotten under a deed. While `left` is not 0, call again."""
    return plain_body(engine.bulk.undo(args["deed"]))


@native.operation(
    "prune",
    title="Forget what has expired",
    changes=True,
    destructive=True,
    route=Route("POST", f"{ROOT}/prune"),
    takes=object_schema({"dry_run": {"type": "boolean", "default": False, "description": "Only say what it would be"}}),
    gives=gives({"pruned": {"type": "array", "items": {"type": "string"}}}, optional=LARGE),
)
def prune(engine: Engine, args: Body) -> Body:
    """Softly delete what has expired."""
    return {"pruned": [memory.id for memory in engine.prune(dry_run=bool(args.get("dry_run")))]}


# --- spaces, statistics, transfer ------------------------------------------------------------------------------------


@native.operation(
    "list_spaces",
    title="List spaces",
    changes=False,
    route=Route("GET", f"{ROOT}/spaces"),
    takes=object_schema({}),
    gives=gives({"spaces": many(Space)}, optional=LARGE),
)
def list_spaces(engine: Engine, _args: Body) -> Body:
    """The spaces that the caller may use, with how many memories each holds."""
    return {"spaces": plain(list(engine.list_spaces()))}


@native.operation(
    "create_space",
    title="Create a space",
    changes=True,
    idempotent=True,
    route=Route("POST", f"{ROOT}/spaces", 201),
    takes=object_schema(
        {"name": NAME, "description": {"type": "string", "minLength": 1, "maxLength": 10_000}}, required=("name",)
    ),
    gives=gives({"space": {"type": "string"}, "created": {"type": "boolean"}}),
)
def create_space(engine: Engine, args: Body) -> Body:
    """Create a space; one that exists stays as it is."""
    new = engine.create_space(args["name"], description=args.get("description"))
    return {"space": args["name"], "created": new}


@native.operation(
    "drop_space",
    title="Put an empty space away",
    changes=True,
    destructive=True,
    route=Route("DELETE", f"{ROOT}/spaces/{{name}}"),
    takes=object_schema({"name": NAME}, required=("name",)),
    gives=gives({"space": shape(Space)}),
)
def drop_space(engine: Engine, args: Body) -> Body:
    """Put away a space that holds no memories any more, with its conversations."""
    return {"space": plain(engine.drop_space(args["name"]))}


STORE = object_schema(
    {
        "name": {"type": "string"},
        "path": {"type": "string", "description": "Its folder, if the caller is on this machine"},
        "description": {"type": "string"},
        "memories": COUNT,
        "mirrored": {"type": "boolean"},
        "project": {"type": "boolean", "description": "Of the folder that the server works in"},
        "waiting": {**COUNT, "description": "Files that are still to be written"},
        "there": {"type": "boolean", "description": "Whether its folder is there"},
    },
    required=("name", "memories", "mirrored", "project", "waiting", "there"),
)


@native.operation(
    "list_stores",
    title="List stores and their folders",
    changes=False,
    route=Route("GET", f"{ROOT}/stores"),
    takes=object_schema({}),
    gives=gives({"stores": {"type": "array", "items": STORE}}, optional=LARGE),
)
def list_stores(engine: Engine, _args: Body) -> Body:
    """The stores that the caller may see, with the folders where their memories are files."""
    return {
        "stores": [
            {**plain(store, leave_out=("path",)), **({} if store.path is None else {"path": str(store.path)})}
            for store in engine.folders.list()
        ]
    }


@native.operation(
    "get_statistics",
    title="Statistics",
    changes=False,
    route=Route("GET", f"{ROOT}/statistics"),
    takes=object_schema(fields_of(StatsQuery)),
    gives=gives({"statistics": shape(Statistics)}),
)
def get_statistics(engine: Engine, args: Body) -> Body:
    """Counts, sizes, rates, trends and health of what the caller may see."""
    return {"statistics": plain(engine.statistics(filled(StatsQuery, args)))}


@native.operation(
    "export",
    title="Export",
    changes=False,
    route=Route("GET", f"{ROOT}/export"),
    streams=Pieces.LINES,
    takes=object_schema({}),
    gives=either(object_schema({"type": {"type": "string"}}, required=("type",), closed=False), FAILED),
)
def export(engine: Engine, _args: Body) -> Stream:
    """Every memory of a space and the links between them, as lines of JSON that `import` takes in."""
    return Stream(engine.export(), Pieces.LINES)


@native.operation(
    "import",
    title="Import",
    changes=True,
    route=Route("POST", f"{ROOT}/import"),
    takes=object_schema(
        {"lines": {"type": "array", "items": {"type": "object"}, "minItems": 1, "maxItems": 1000}},
        required=("lines",),
    ),
    gives=gives(shape(Imported)["properties"]),
)
def import_(engine: Engine, args: Body) -> Body:
    """Take in lines of an export, at most a thousand a call; what is already here with the same id is left as it is."""
    return plain_body(engine.import_from(args["lines"]))


# --- words that several operations share -----------------------------------------------------------------------------


def degraded(reason: str | None) -> Body:
    return {"degraded": reason} if reason else {}


def moment(name: str, value: Any) -> Any:
    """An argument as the engine takes it: times are times."""
    return parse_time(value, field=name) if name.endswith(("_at", "_from", "_until")) else value


def plain_body(value: Any) -> Body:
    body: Body = plain(value)
    return body
