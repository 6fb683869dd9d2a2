"""Native, for maintenance: duplicates, health, backups."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Route, flag, integer, object_schema, record, text
from scrubjay.dialects.native.memories import LARGE, NAME, ROOT, gives, local_only, many, native
from scrubjay.dialects.schemas import shape, shown
from scrubjay.engine.conflicts.duplicates import DuplicatePair
from scrubjay.engine.files.stores import Indexed
from scrubjay.machine.suggestions import Suggestion
from scrubjay.stores.promises.memories import Checkup
from scrubjay.values.memory import Job, Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

JOB = gives({"job": shape(Job)})


# --- suggestions -----------------------------------------------------------------------------------------------------

SUGGESTION = text("A suggestion's id", minLength=1)


@local_only.reads(
    "List suggestions",
    route=Route("GET", f"{ROOT}/suggestions"),
    takes=object_schema({}),
    gives=gives({"suggestions": many(Suggestion)}, optional=LARGE),
)
def list_suggestions(engine: Engine, _args: Body) -> Body:
    """What this machine's hooks suggest to remember, newest first. None of it is a memory before it is accepted."""
    return {"suggestions": shown(list(engine.suggestions()))}


@local_only.writes(
    "Accept a suggestion",
    route=Route("POST", f"{ROOT}/suggestions/{{id}}/accept"),
    takes=record({"id": SUGGESTION}, optional={"text": text("What to store instead of its own words", minLength=1)}),
    gives=gives({"memory": shape(Memory)}),
)
def accept_suggestion(engine: Engine, args: Body) -> Body:
    """Store what was suggested as a memory; the suggestion is gone then."""
    return {"memory": shown(engine.accept_suggestion(args["id"], args.get("text")).memory)}


@local_only.writes(
    "Drop a suggestion",
    destructive=True,
    route=Route("DELETE", f"{ROOT}/suggestions/{{id}}"),
    takes=record({"id": SUGGESTION}),
    gives=gives({"dropped": SUGGESTION}),
)
def drop_suggestion(engine: Engine, args: Body) -> Body:
    """Drop a suggestion for good."""
    engine.drop_suggestion(args["id"])
    return {"dropped": args["id"]}


# --- tidying ---------------------------------------------------------------------------------------------------------


@native.reads(
    "List duplicates",
    route=Route("GET", f"{ROOT}/duplicates"),
    takes=object_schema({"limit": integer(minimum=1, maximum=1000, default=20)}),
    gives=gives({"duplicates": many(DuplicatePair)}, optional=LARGE),
)
def list_duplicates(engine: Engine, args: Body) -> Body:
    """Pairs of memories with the same words; spelling, case and punctuation may differ."""
    return {"duplicates": shown(list(islice(engine.duplicates(), int(args.get("limit", 20)))))}


@local_only.writes(
    "Reindex a store",
    idempotent=True,
    route=Route("POST", f"{ROOT}/stores/{{name}}/reindex"),
    takes=record({"name": NAME}),
    gives=gives({"indexed": shape(Indexed)}),
)
def reindex_store(engine: Engine, args: Body) -> Body:
    """Import manual changes in a store's folder now."""
    return {"indexed": shown(engine.folders.reindex(args["name"]))}


# --- the whole store -------------------------------------------------------------------------------------------------


@local_only.reads(
    "Check the store",
    route=Route("GET", f"{ROOT}/check"),
    takes=object_schema({"deep": flag("Read every page and text, and compare hashes", default=False)}),
    gives=gives({"checkup": shape(Checkup)}),
)
def check(engine: Engine, args: Body) -> Body:
    """Look for damage, and count memories, words and vectors."""
    return {"checkup": shown(engine.check(deep=bool(args.get("deep"))))}


@local_only.writes(
    "Back up",
    route=Route("POST", f"{ROOT}/backup", 202),
    takes=record({"file": text("A new file on the server", minLength=1, maxLength=4000)}),
    gives=JOB,
)
def backup(engine: Engine, args: Body) -> Body:
    """Copy the whole store, every space of it, to a new file; runs as a job, while others keep writing."""
    return {"job": shown(engine.upkeep.backup(args["file"]))}


@local_only.writes("Rebuild all vectors", idempotent=True, route=Route("POST", f"{ROOT}/reembed", 202), gives=JOB)
def reembed(engine: Engine, _args: Body) -> Body:
    """Rebuild every vector with the configured model; runs as a job. Searches use words only until it is done."""
    return {"job": shown(engine.upkeep.reembed())}


@local_only.writes("Write phrases", idempotent=True, route=Route("POST", f"{ROOT}/tidy", 202), gives=JOB)
def tidy(engine: Engine, _args: Body) -> Body:
    """Let the configured language model write phrases for memories that have none; runs as a job."""
    return {"job": shown(engine.tidying.start())}


@local_only.writes("Rebuild indexes", idempotent=True, route=Route("POST", f"{ROOT}/rebuild", 202), gives=JOB)
def rebuild(engine: Engine, _args: Body) -> Body:
    """Rebuild the word index, missing vectors and the vector index; runs as a job."""
    return {"job": shown(engine.upkeep.rebuild())}
