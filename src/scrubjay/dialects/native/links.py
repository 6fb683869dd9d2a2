"""Native: how memories are connected: links, what supersedes what, decisions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from scrubjay.dialects.base import Body, Pieces, Route, Stream, either, flag, integer, object_schema, record, text
from scrubjay.dialects.native.memories import FAILED, ID, LARGE, ONE, PAGE, ROOT, gives, many, native, one
from scrubjay.dialects.schemas import shape, shown
from scrubjay.engine.lifecycle.curation import Node
from scrubjay.values.memory import Link, Memory, OpenConflict, Relation, Topic

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


# --- links and conflicts ---------------------------------------------------------------------------------------------


@native.reads(
    "List a memory's links",
    route=Route("GET", f"{ROOT}/memories/{{id}}/links"),
    takes=ONE,
    gives=gives({"links": many(Link)}, optional=LARGE),
)
def list_links(engine: Engine, args: Body) -> Body:
    """What a memory is linked to."""
    return {"links": shown(list(engine.links(args["id"])))}


@native.reads(
    "Get a memory's surroundings",
    route=Route("GET", f"{ROOT}/memories/{{id}}/graph"),
    takes=record(
        {"id": ID},
        optional={
            "steps": integer(minimum=1, maximum=3, default=1),
            "similar": flag("Include similar memories", default=False),
        },
    ),
    gives=gives({"memories": many(Memory), "links": many(Link)}, optional=LARGE),
)
def get_graph(engine: Engine, args: Body) -> Body:
    """A memory, what is linked to it within that many steps, and the links between them."""
    found = engine.curation.around(args["id"], steps=int(args.get("steps", 1)), similar=bool(args.get("similar")))
    return {"memories": shown(found.memories), "links": shown(found.links)}


@native.reads(
    "Get a memory's network",
    route=Route("GET", f"{ROOT}/memories/{{id}}/network"),
    streams=Pieces.LINES,
    takes=record({"id": ID}, optional={"steps": integer(minimum=1, maximum=10, default=2)}),
    gives=either(object_schema({"nodes": many(Node), "links": many(Link)}), FAILED),
)
def get_network(engine: Engine, args: Body) -> Stream:
    """What a memory is connected to, up to five thousand memories, for drawing: JSON lines, each with some of the nodes
    or, after them, of the links."""
    found = engine.curation.network(args["id"], steps=int(args.get("steps", 2)))
    nodes = ({"nodes": shown(some)} for some in stretches(found.nodes))
    links = ({"links": shown(some)} for some in stretches(found.links))
    return Stream(chain(nodes, links), Pieces.LINES)


def stretches(items: tuple[Any, ...], size: int = 500) -> Iterator[tuple[Any, ...]]:
    return (items[start : start + size] for start in range(0, len(items), size))


@native.writes(
    "Supersede a memory",
    of_one_version=True,
    idempotent=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/supersede"),
    takes=record({"id": ID, "new": {**ID, "description": "The memory that replaces it"}}),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def supersede_memory(engine: Engine, args: Body) -> Body:
    """Mark a memory as outdated by a newer one."""
    old, new = engine.supersede(old=args["id"], new=args["new"])
    return {"old": shown(old), "new": shown(new)}


@native.writes(
    "Undo a supersession",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/memories/{{id}}/release"),
    takes=ONE,
    gives=gives({"memory": shape(Memory)}),
)
def release_memory(engine: Engine, args: Body) -> Body:
    """Mark an outdated memory as current again."""
    return one(engine.curation.release(args["id"]))


@native.reads(
    "List open conflicts",
    route=Route("GET", f"{ROOT}/conflicts"),
    takes=object_schema(PAGE),
    gives=gives({"conflicts": many(OpenConflict)}, optional=LARGE),
)
def list_conflicts(engine: Engine, args: Body) -> Body:
    """Memories that a newer one may outdate, still unresolved, newest first. Supersede the older, or keep both."""
    found = engine.open_conflicts(limit=int(args.get("limit", 20)), offset=int(args.get("offset", 0)))
    return {"conflicts": shown(list(found))}


@native.writes(
    "Keep both",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/conflicts/keep"),
    takes=record({"old": ID, "new": ID}),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def keep_both(engine: Engine, args: Body) -> Body:
    """Resolve a conflict: both memories are true."""
    old, new = engine.settle(old=args["old"], new=args["new"], keep=True)
    return {"old": shown(old), "new": shown(new)}


@native.writes(
    "Say the same",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/conflicts/same"),
    takes=record({"old": ID, "new": ID}),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def mark_same(engine: Engine, args: Body) -> Body:
    """Resolve a conflict: both memories say the same, and searches show the newer one."""
    old, new = engine.relate(old=args["old"], new=args["new"], relation=Relation.SAME)
    return {"old": shown(old), "new": shown(new)}


@native.writes(
    "Reopen a conflict",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/conflicts/reopen"),
    takes=record({"old": ID, "new": ID}),
    gives=gives({"old": shape(Memory), "new": shape(Memory)}),
)
def reopen_conflict(engine: Engine, args: Body) -> Body:
    """Take back how a conflict was resolved: it is open again."""
    old, new = engine.reopen(old=args["old"], new=args["new"])
    return {"old": shown(old), "new": shown(new)}


# --- decisions -------------------------------------------------------------------------------------------------------


@native.reads(
    "List decision topics",
    route=Route("GET", f"{ROOT}/decisions"),
    gives=gives({"topics": many(Topic)}, optional=LARGE),
)
def list_topics(engine: Engine, _args: Body) -> Body:
    """The topics of decisions, the latest first."""
    return {"topics": shown(list(engine.decisions.topics()))}


@native.reads(
    "How a decision evolved",
    route=Route("GET", f"{ROOT}/decisions/{{topic:path}}"),
    takes=record({"topic": text(minLength=1)}),
    gives=gives({"decisions": many(Memory)}, optional=LARGE),
)
def get_chain(engine: Engine, args: Body) -> Body:
    """The decisions on a topic, newest first."""
    return {"decisions": shown(list(engine.decisions.chain(args["topic"])))}
