"""Native, for those who look after a memory: other stores and what they disagree about, duplicates, health, backups."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrubjay.dialects.base import Body, Reach, Route, object_schema
from scrubjay.dialects.native import LARGE, NAME, ROOT, gives, many, native
from scrubjay.dialects.shapes import shape
from scrubjay.engine.folders import Indexed
from scrubjay.engine.syncing import Keep
from scrubjay.engine.twins import Twins
from scrubjay.engine.values import plain
from scrubjay.memory import Job, Memory
from scrubjay.stores.base import Checkup
from scrubjay.stores.replication import Endpoint, SyncConflict

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

SIDE = {"type": "object", "description": "The memory as this side has it; missing once it is erased"}
DISAGREEMENT = {
    **shape(SyncConflict),
    "properties": {**shape(SyncConflict)["properties"], "ours": SIDE, "theirs": SIDE},
}
NUMBER = {"type": "integer", "minimum": 1, "maximum": 2**53, "description": "A conflict's number"}
JOB = gives({"job": shape(Job)})


# --- other stores ----------------------------------------------------------------------------------------------------


@native.operation(
    "list_endpoints",
    title="List endpoints",
    changes=False,
    reach=Reach.LOCAL,
    route=Route("GET", f"{ROOT}/sync/endpoints"),
    takes=object_schema({}),
    gives=gives({"endpoints": many(Endpoint)}, optional=LARGE),
)
def list_endpoints(engine: Engine, _args: Body) -> Body:
    """The stores that this one is kept the same with, and when it last was."""
    return {"endpoints": plain(list(engine.sync.endpoints()))}


@native.operation(
    "add_endpoint",
    title="Add an endpoint",
    changes=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/sync/endpoints", 201),
    takes=object_schema(
        {
            "name": NAME,
            "url": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "A file, or an address"},
            "spaces": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 100},
        },
        required=("name", "url"),
    ),
    gives=gives({"endpoint": shape(Endpoint)}),
)
def add_endpoint(engine: Engine, args: Body) -> Body:
    """Name a store to sync with; `sync_memories` of System then runs it."""
    return {"endpoint": plain(engine.sync.add(args["name"], args["url"], spaces=args.get("spaces")))}


@native.operation(
    "remove_endpoint",
    title="Remove an endpoint",
    changes=True,
    destructive=True,
    reach=Reach.LOCAL,
    route=Route("DELETE", f"{ROOT}/sync/endpoints/{{name}}"),
    takes=object_schema({"name": NAME}, required=("name",)),
    gives=gives({"removed": {"type": "boolean"}}),
)
def remove_endpoint(engine: Engine, args: Body) -> Body:
    """No longer sync with a store; memories stay on both sides."""
    engine.sync.remove(args["name"])
    return {"removed": True}


@native.operation(
    "list_sync_conflicts",
    title="List what stores disagree about",
    changes=False,
    reach=Reach.OWNER,
    route=Route("GET", f"{ROOT}/sync/conflicts"),
    takes=object_schema(
        {
            "settled": {"type": "boolean", "default": False, "description": "Those that were decided instead"},
            "endpoint": NAME,
        }
    ),
    gives=gives({"conflicts": {"type": "array", "items": DISAGREEMENT}}, optional=LARGE),
)
def list_sync_conflicts(engine: Engine, args: Body) -> Body:
    """Memories that were changed on both sides and wait for a decision, newest first, with both states."""
    found = engine.sync.conflicts(settled=bool(args.get("settled")), endpoint=args.get("endpoint"))
    return {"conflicts": [disagreement(one) for one in found]}


@native.operation(
    "resolve_sync_conflict",
    title="Settle what stores disagree about",
    changes=True,
    destructive=True,
    reach=Reach.OWNER,
    route=Route("POST", f"{ROOT}/sync/conflicts/{{number}}/resolve"),
    takes=object_schema({"number": NUMBER, "keep": shape(Keep)}, required=("number", "keep")),
    gives=gives({}, optional={"memory": shape(Memory)}),
)
def resolve_sync_conflict(engine: Engine, args: Body) -> Body:
    """Decide which state stays; the next sync tells the other side. Without `memory` it is erased meanwhile."""
    memory = engine.sync.resolve(args["number"], args["keep"])
    return {} if memory is None else {"memory": plain(memory)}


def disagreement(conflict: SyncConflict) -> dict[str, Any]:
    """A conflict with both states as JSON, not as texts that hold JSON."""
    told = {"ours": conflict.ours, "theirs": conflict.theirs}
    sides = {side: json.loads(text)["memory"] for side, text in told.items() if text is not None}
    return {**{name: value for name, value in plain(conflict).items() if name not in told}, **sides}


# --- tidying ---------------------------------------------------------------------------------------------------------


@native.operation(
    "list_duplicates",
    title="List duplicates",
    changes=False,
    route=Route("GET", f"{ROOT}/duplicates"),
    takes=object_schema({"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}}),
    gives=gives({"duplicates": many(Twins)}, optional=LARGE),
)
def list_duplicates(engine: Engine, args: Body) -> Body:
    """Pairs of memories that say the same in the same words; spelling, case and punctuation may differ."""
    return {"duplicates": plain(list(islice(engine.duplicates(), int(args.get("limit", 20)))))}


@native.operation(
    "reindex_store",
    title="Look at every file of a store",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/stores/{{name}}/reindex"),
    takes=object_schema({"name": NAME}, required=("name",)),
    gives=gives({"indexed": shape(Indexed)}),
)
def reindex_store(engine: Engine, args: Body) -> Body:
    """Take in what was changed by hand in a store's folder, now."""
    return {"indexed": plain(engine.folders.reindex(args["name"]))}


# --- the whole store -------------------------------------------------------------------------------------------------


@native.operation(
    "check",
    title="Check the store",
    changes=False,
    reach=Reach.LOCAL,
    route=Route("GET", f"{ROOT}/check"),
    takes=object_schema(
        {"deep": {"type": "boolean", "default": False, "description": "Read every page and text, and compare hashes"}}
    ),
    gives=gives({"checkup": shape(Checkup)}),
)
def check(engine: Engine, args: Body) -> Body:
    """Look for damage, and count memories, words and vectors."""
    return {"checkup": plain(engine.check(deep=bool(args.get("deep"))))}


@native.operation(
    "backup",
    title="Back up",
    changes=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/backup", 202),
    takes=object_schema(
        {"file": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "A new file of the server's"}},
        required=("file",),
    ),
    gives=JOB,
)
def backup(engine: Engine, args: Body) -> Body:
    """Copy the whole memory, every space of it, to a new file; a job, for others may write meanwhile."""
    return {"job": plain(engine.upkeep.backup(args["file"]))}


@native.operation(
    "reembed",
    title="Make vectors anew",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/reembed", 202),
    takes=object_schema({}),
    gives=JOB,
)
def reembed(engine: Engine, _args: Body) -> Body:
    """Let the model of the settings make every vector anew; a job. Search uses words until it is done."""
    return {"job": plain(engine.upkeep.reembed())}


@native.operation(
    "rebuild",
    title="Make indexes anew",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/rebuild", 202),
    takes=object_schema({}),
    gives=JOB,
)
def rebuild(engine: Engine, _args: Body) -> Body:
    """Make words, missing vectors and the index of vectors anew; a job."""
    return {"job": plain(engine.upkeep.rebuild())}
