"""Native, for maintenance: duplicates, health, backups."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Reach, Route, object_schema, record
from scrubjay.dialects.native.memories import LARGE, NAME, ROOT, gives, many, native
from scrubjay.dialects.schemas import shape, shown
from scrubjay.engine.conflicts.duplicates import DuplicatePair
from scrubjay.engine.files.stores import Indexed
from scrubjay.stores.promises.memories import Checkup
from scrubjay.values.memory import Job

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

JOB = gives({"job": shape(Job)})


# --- tidying ---------------------------------------------------------------------------------------------------------


@native.operation(
    "list_duplicates",
    title="List duplicates",
    changes=False,
    route=Route("GET", f"{ROOT}/duplicates"),
    takes=object_schema({"limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20}}),
    gives=gives({"duplicates": many(DuplicatePair)}, optional=LARGE),
)
def list_duplicates(engine: Engine, args: Body) -> Body:
    """Pairs of memories with the same words; spelling, case and punctuation may differ."""
    return {"duplicates": shown(list(islice(engine.duplicates(), int(args.get("limit", 20)))))}


@native.operation(
    "reindex_store",
    title="Reindex a store",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/stores/{{name}}/reindex"),
    takes=record({"name": NAME}),
    gives=gives({"indexed": shape(Indexed)}),
)
def reindex_store(engine: Engine, args: Body) -> Body:
    """Import manual changes in a store's folder now."""
    return {"indexed": shown(engine.folders.reindex(args["name"]))}


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
    return {"checkup": shown(engine.check(deep=bool(args.get("deep"))))}


@native.operation(
    "backup",
    title="Back up",
    changes=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/backup", 202),
    takes=record(
        {"file": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "A new file on the server"}}
    ),
    gives=JOB,
)
def backup(engine: Engine, args: Body) -> Body:
    """Copy the whole memory, every space of it, to a new file; runs as a job, while others keep writing."""
    return {"job": shown(engine.upkeep.backup(args["file"]))}


@native.operation(
    "reembed",
    title="Rebuild all vectors",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/reembed", 202),
    takes=object_schema({}),
    gives=JOB,
)
def reembed(engine: Engine, _args: Body) -> Body:
    """Rebuild every vector with the configured model; runs as a job. Searches use words only until it is done."""
    return {"job": shown(engine.upkeep.reembed())}


@native.operation(
    "rebuild",
    title="Rebuild indexes",
    changes=True,
    idempotent=True,
    reach=Reach.LOCAL,
    route=Route("POST", f"{ROOT}/rebuild", 202),
    takes=object_schema({}),
    gives=JOB,
)
def rebuild(engine: Engine, _args: Body) -> Body:
    """Rebuild the word index, missing vectors and the vector index; runs as a job."""
    return {"job": shown(engine.upkeep.rebuild())}
