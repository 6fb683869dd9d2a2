"""Native: what people and the page need and no other dialect offers. REST under /api/v1/, not MCP.

Replies are the engine's own values as JSON (`schemas.shown`), so their schemas are read from the types; what is
None is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrubjay.dialects.base import (
    LEFT_OUT,
    NOTICES,
    PHRASES,
    WORDINGS,
    Body,
    Dialect,
    Reach,
    Route,
    Schema,
    array,
    either,
    fitting,
    flag,
    integer,
    object_schema,
    phrases_in,
    present,
    record,
    text,
)
from scrubjay.dialects.schemas import fields_of, filled, shape, shown
from scrubjay.engine.brief import BUDGET, LEAST, MOST, Brief
from scrubjay.engine.store import intake
from scrubjay.errors import Error
from scrubjay.values.memory import Filter, FormerPhrases, Hit, Memory, NewMemory, Order, Query, Recall, Verdict, Version
from scrubjay.values.times import parse_time

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

ROOT = "/api/v1"


def error_body(error: Error, _operation: str) -> Body:
    details = {name: shown(value) for name, value in error.details.items() if value is not None}
    return {"error": present(code=error.code, message=error.message, hint=error.hint, details=details or None)}


native = Dialect(
    name="native",
    title="Native: everything a person can do",
    server_name="scrubjay",
    instructions="",
    error_body=error_body,
    tools=False,
)
owners_only = native.part(reach=Reach.OWNER)
local_only = native.part(reach=Reach.LOCAL)

FAILED = record(
    {
        "error": record(
            {"code": text(), "message": text()}, optional={"hint": text("How to fix it"), "details": {"type": "object"}}
        )
    }
)
ID = text("A memory's id, in any form", minLength=1)


def gives(properties: Schema, *, optional: Schema | None = None) -> Schema:
    """A successful reply with these fields, or an error."""
    return either(record(properties, optional=optional), FAILED)


def many(kind: Any) -> Schema:
    return array(shape(kind))


LARGE: Schema = {"degraded": text(), "left_out": LEFT_OUT}
NAME = text(minLength=1, maxLength=100)
DIFFERENCE = object_schema({"field": text(), "old": {}, "new": {}, "lines": array(text())}, required=("field", "lines"))


PAGE: Schema = {
    "limit": integer(minimum=1, maximum=1000, default=20),
    "offset": integer(minimum=0, maximum=1_000_000, default=0),
}
COUNT = integer(minimum=0)
FILTER = fields_of(Filter)
REASON = text("Reason, kept in the history", minLength=1, maxLength=1000)
SAME = array(
    ID, description="Ids of other memories that it now says the same as; with one of them it is an open conflict"
)
ONE = record({"id": ID})
CHANGES: Schema = {
    **{name: schema for name, schema in fields_of(Memory).items() if name in intake.CHANGEABLE},
    "also": PHRASES,
}


def one(memory: Memory) -> Body:
    return {"memory": shown(memory)}


# --- one memory ------------------------------------------------------------------------------------------------------


@native.reads(
    "Get a memory",
    route=Route("GET", f"{ROOT}/memories/{{id}}"),
    takes=record({"id": ID}, optional={"deleted": flag("Include a forgotten memory that can still be restored")}),
    gives=gives({"memory": shape(Memory)}),
)
def get_memory(engine: Engine, args: Body) -> Body:
    """A memory by its id, with all its fields."""
    return one(engine.get(args["id"], deleted=bool(args.get("deleted"))))


@native.writes(
    "Store a memory",
    route=Route("POST", f"{ROOT}/memories", 201),
    takes=object_schema(
        {**fields_of(NewMemory, without=("kind", "topic", "detail")), "also": PHRASES}, required=("content",)
    ),
    gives=gives(
        {
            "memory": shape(Memory),
            "similar": many(Memory),
            "candidates": many(Memory),
            "same": array(ID),
            "links": COUNT,
        },
        optional={**LARGE, "notices": NOTICES},
    ),
)
def store_memory(engine: Engine, args: Body) -> Body:
    """Store a memory. `similar` is the one earlier memory that it very likely outdates, if any; `candidates` are up to
    three more to judge for yourself, and `same` the ids of those that say the same."""
    stored = engine.store(filled(NewMemory, args))
    more = present(degraded=stored.degraded)
    hints = {"similar": shown(stored.similar), "candidates": shown(stored.candidates), "same": list(stored.same)}
    return {**one(stored.memory), **hints, "links": stored.links, **more}


@native.writes(
    "Update a memory",
    of_one_version=True,
    route=Route("PATCH", f"{ROOT}/memories/{{id}}"),
    takes=object_schema({"id": ID, **CHANGES, "reason": REASON}, required=("id",)),
    gives=gives(
        {
            "memory": shape(Memory),
            "fields": array(text()),
            "previous": {
                "type": ["string", "null"],
                "description": "Id of the previous version; null if there is none",
            },
            "same": SAME,
        }
    ),
)
def update_memory(engine: Engine, args: Body) -> Body:
    """Update a memory; the earlier version stays in the history. Send If-Match with its version to change only that."""
    fields = {name: moment(name, args[name]) for name in CHANGES if name in args}
    revised = engine.revise(args["id"], reason=args.get("reason"), **fields)
    same = same_as(engine, revised.memory) if "content" in revised.fields else []
    return {**one(revised.memory), "fields": list(revised.fields), "previous": revised.previous, "same": same}


@native.writes(
    "Forget a memory",
    of_one_version=True,
    destructive=True,
    route=Route("DELETE", f"{ROOT}/memories/{{id}}"),
    takes=record({"id": ID}, optional={"hard": flag("Erase for good", default=False), "reason": REASON}),
    gives=gives({"memory": shape(Memory), "hard": flag()}),
)
def forget_memory(engine: Engine, args: Body) -> Body:
    """Forget a memory: it can be restored for thirty days, or with `hard` never."""
    forgotten = engine.forget(args["id"], hard=bool(args.get("hard")), reason=args.get("reason"))
    return {**one(forgotten.memory), "hard": forgotten.hard}


@native.writes(
    "Restore a forgotten memory",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/recover"),
    takes=ONE,
    gives=gives({"memory": shape(Memory), "same": SAME}),
)
def recover_memory(engine: Engine, args: Body) -> Body:
    """Restore a forgotten memory."""
    memory = engine.recover(args["id"])
    return {**one(memory), "same": same_as(engine, memory)}


def same_as(engine: Engine, memory: Memory) -> list[str]:
    return engine.same_as(memory.id).get(memory.id, [])


# --- finding ---------------------------------------------------------------------------------------------------------


@native.reads(
    "Search with explanation",
    route=Route("POST", f"{ROOT}/search"),
    takes=object_schema({"query": text(minLength=1), "also": WORDINGS, **PAGE, **FILTER}, required=("query",)),
    gives=gives({"hits": many(Hit), "verdict": shape(Verdict), "total": COUNT}, optional={**LARGE, "notices": NOTICES}),
)
def search(engine: Engine, args: Body) -> Body:
    """Find memories by words and by meaning, best first, each with the reasons why it was found."""
    hits = engine.search(
        Query(
            text=args["query"],
            also=phrases_in(args),
            limit=int(args.get("limit", 10)),
            offset=int(args.get("offset", 0)),
            filter=filled(Filter, args),
            explain=True,
        )
    )
    found = {"hits": shown(hits.hits), "verdict": str(hits.verdict), "total": hits.total}
    return found | present(degraded=hits.degraded)


@native.reads(
    "List memories",
    route=Route("GET", f"{ROOT}/memories"),
    takes=object_schema(
        {
            **PAGE,
            "cursor": text("next_cursor of the previous page", minLength=1),
            "order": {**shape(Order), "default": "created_at"},
            "ascending": flag(default=False),
            **FILTER,
        }
    ),
    gives=gives({"memories": many(Memory), "total": COUNT}, optional={"cursor": text(), **LARGE}),
)
def list_memories(engine: Engine, args: Body) -> Body:
    """Memories in order, newest first unless asked otherwise."""
    page = engine.list(
        filled(Filter, args),
        order=Order(args.get("order", "created_at")),
        descending=not args.get("ascending"),
        limit=int(args.get("limit", 20)),
        offset=int(args.get("offset", 0)),
        cursor=args.get("cursor"),
        counted=True,
        room=lambda found: fitting(map(shown, found)),
    )
    more = present(cursor=page.cursor, left_out=page.left_out or None)
    return {"memories": shown(page.memories), "total": page.total, **more}


@native.reads(
    "Brief a session",
    route=Route("GET", f"{ROOT}/brief"),
    takes=object_schema({"budget": {"type": "integer", "minimum": LEAST, "maximum": MOST, "default": BUDGET}}),
    gives=gives(shape(Brief)["properties"], optional={"notices": NOTICES}),
)
def brief(engine: Engine, args: Body) -> Body:
    """What to know when a session begins, within a budget of tokens: the current space, what is personal, open
    decisions, the last checkpoint, and other spaces by name; as a text for a model, and as the memories in it."""
    return plain_body(engine.brief(budget=int(args.get("budget", BUDGET))))


@native.reads(
    "Who was shown a memory",
    route=Route("GET", f"{ROOT}/memories/{{id}}/shown"),
    takes=ONE,
    gives=gives({"recalls": many(Recall)}, optional=LARGE),
)
def shown_to(engine: Engine, args: Body) -> Body:
    """Who received a memory and when, newest first: for when it turns out to be poisoned or wrong."""
    return {"recalls": shown(list(engine.shown_to(args["id"])))}


# --- history ---------------------------------------------------------------------------------------------------------


@native.reads(
    "List a memory's versions",
    route=Route("GET", f"{ROOT}/memories/{{id}}/versions"),
    takes=ONE,
    gives=gives({"versions": many(Version), "phrases": many(FormerPhrases)}, optional=LARGE),
)
def list_versions(engine: Engine, args: Body) -> Body:
    """Earlier versions of a memory, newest first; and the phrases it had before, which change without a new version."""
    former = shown(list(engine.former_phrases(args["id"])))
    return {"versions": shown(list(engine.history(args["id"]))), "phrases": former}


@native.reads(
    "Compare versions",
    route=Route("GET", f"{ROOT}/memories/{{id}}/diff"),
    takes=record(
        {"id": ID, "old": integer(minimum=1)}, optional={"new": integer("Default: the current version", minimum=1)}
    ),
    gives=gives({"differences": array(DIFFERENCE)}, optional=LARGE),
)
def diff_versions(engine: Engine, args: Body) -> Body:
    """How two versions of a memory differ, field by field."""
    found = engine.curation.diff(args["id"], old=args["old"], new=args.get("new"))
    return {"differences": shown(list(found))}


@native.writes(
    "Restore a version",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/versions/{{version}}/restore"),
    takes=record({"id": ID, "version": integer(minimum=1)}),
    gives=gives({"memory": shape(Memory), "same": SAME}),
)
def restore_version(engine: Engine, args: Body) -> Body:
    """Make an earlier version of a memory the current one again; the present one joins the history."""
    memory = engine.restore_version(args["id"], args["version"])
    return {**one(memory), "same": same_as(engine, memory)}


# --- definitions that several operations share ------------------------------------------------------------------------


def moment(name: str, value: Any) -> Any:
    """An argument as the engine takes it: times are times."""
    return parse_time(value, field=name) if name.endswith(("_at", "_from", "_until")) else value


def plain_body(value: Any) -> Body:
    body: Body = shown(value)
    return body


# The other operations, in their own files, join the same table; they use the definitions above.
from scrubjay.dialects.native import access, bulk, endpoints, jobs, links, spaces, sync_peer, upkeep  # noqa: E402, F401
