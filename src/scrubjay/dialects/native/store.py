"""Native, for the whole store: spaces, jobs, suggestions, health, and syncing with others, as `scrubjay sync` does it.

Endpoints and runs of sync are for this machine's owner; conflicts are for every owner, in its own spaces.
"""

from __future__ import annotations

import json
from itertools import islice
from typing import Annotated, Any

from scrubjay.dialects.base import COUNT, SOME, Body, Pieces, Schema, Stream, array, flag, object_schema, present, text
from scrubjay.dialects.native.rows import LARGE, LOCAL, OWNER, Limit, Name, Spaces, Text, reads, writes
from scrubjay.dialects.schemas import shape, to_json
from scrubjay.engine.conflicts.duplicates import DuplicatePair
from scrubjay.engine.engine import Engine
from scrubjay.engine.files.stores import Indexed
from scrubjay.engine.statistics import Statistics, StatsQuery
from scrubjay.engine.sync.run import Keep, Resolution, Synced, SyncRequest, SyncType
from scrubjay.engine.transfer import Imported
from scrubjay.machine.outgoing import without_password
from scrubjay.machine.suggestions import Suggestion
from scrubjay.stores.promises.memories import Checkup
from scrubjay.stores.promises.sync import Endpoint, SyncConflict
from scrubjay.values.memory import Memory
from scrubjay.values.store import Job, Space, TagCount

# --- spaces and their contents ---------------------------------------------------------------------------------------


@reads("GET /spaces", "List spaces", {"spaces": list[Space]})
def list_spaces(engine: Engine) -> Any:
    """The spaces that the caller may use, with how many memories each has."""
    return engine.known_spaces.list()


@writes("POST /spaces", "Create a space", {"space": str, "created": bool}, status=201, idempotent=True)
def create_space(
    engine: Engine, name: Name, description: Annotated[str | None, {"minLength": 1, "maxLength": 10_000}] = None
) -> Any:
    """Create a space; an existing one does not change."""
    return name, engine.known_spaces.create(name, description=description)


@writes("DELETE /spaces/{name}", "Delete an empty space", {"space": Space}, destructive=True)
def drop_space(engine: Engine, name: Name) -> Any:
    """Delete a space without memories, together with its conversations."""
    return engine.known_spaces.drop(name)


FOUND = "Include tags that were found in texts"


@reads("GET /tags", "List tags", {"tags": list[TagCount]})
def list_tags(engine: Engine, found: Annotated[bool, FOUND] = False, limit: Limit = 100) -> Any:
    """Tags of memories and how many have each, the most frequent first."""
    return engine.tags(found=found, limit=limit)


STORE: Schema = {
    "name": text(),
    "path": text("Its folder, if the caller is on this machine"),
    "description": text(),
    "memories": COUNT,
    "superseded": COUNT,
    "mirrored": flag(),
    "project": flag("Whether it belongs to the folder that the server runs in"),
    "waiting": {**COUNT, "description": "Files still to be written"},
    "there": flag("Whether its folder exists"),
    "away": flag("Whether its folder was there before and is not now: its disk may not be mounted"),
    "read_only": flag("Whether its memories are changed by editing files only"),
}
STORES = array(object_schema(STORE, required=[name for name in STORE if name not in ("path", "description")]))


@reads("GET /stores", "List stores and their folders", {"stores": STORES}, optional=LARGE)
def list_stores(engine: Engine) -> Any:
    """The stores that the caller may see, with the folders where their memories are files."""
    stores = engine.folders.list()
    return [to_json(one, leave_out=("path",)) | present(path=one.path and str(one.path)) for one in stores]


@reads("GET /statistics", "Statistics", {"statistics": Statistics})
def get_statistics(engine: Engine, query: StatsQuery) -> Any:
    """Counts, sizes, rates, trends and health of what the caller may see."""
    return engine.statistics(query)


LINE = object_schema({"type": text()}, required=("type",), closed=False)
LINES = array({"type": "object"}, minItems=1, maxItems=1000)


@reads("GET /export", "Export", LINE, streams=Pieces.LINES)
def export(engine: Engine) -> Any:
    """Every memory of a space and the links between them, as JSON lines for `import`."""
    return Stream(engine.transfer.export(), Pieces.LINES)


@writes("POST /import", "Import", Imported)
def import_(engine: Engine, lines: Annotated[Any, LINES]) -> Any:
    """Import lines of an export or a list, at most a thousand per call. What is already here, by id or by text and
    time, is left unchanged and counted in `already_here`, and if it was forgotten, in `forgotten`, too."""
    return engine.transfer.import_from(lines)


# --- jobs ------------------------------------------------------------------------------------------------------------

JobId = Annotated[Text, "A job's id"]
Unfinished = Annotated[bool, "Only waiting or running jobs"]


@reads("GET /jobs", "List jobs", {"jobs": list[Job]})
def list_jobs(
    engine: Engine, unfinished: Unfinished = False, limit: Annotated[int, {"minimum": 1, "maximum": 100}] = 20
) -> Any:
    """Jobs that the caller may see, newest first."""
    return engine.jobs.list(unfinished=unfinished, limit=limit)


@reads("GET /jobs/{id}", "Get a job", {"job": Job})
def get_job(engine: Engine, id: JobId) -> Any:
    """A job's progress and result."""
    return engine.jobs.get(id)


@writes("POST /jobs/{id}/cancel", "Cancel a job", {"job": Job}, destructive=True, idempotent=True)
def cancel_job(engine: Engine, id: JobId) -> Any:
    """Ask a job to stop; it does so as soon as it can."""
    return engine.jobs.cancel(id)


# --- suggestions -----------------------------------------------------------------------------------------------------

SUGGESTION = text("A suggestion's id", **SOME)
SuggestionId = Annotated[str, SUGGESTION]


@reads("GET /suggestions", "List suggestions", {"suggestions": list[Suggestion]}, reach=LOCAL)
def list_suggestions(engine: Engine) -> Any:
    """What this machine's hooks suggest to remember, newest first. None of it is a memory before it is accepted."""
    return engine.suggestions.list()


@writes("POST /suggestions/{id}/accept", "Accept a suggestion", {"memory": Memory}, reach=LOCAL)
def accept_suggestion(
    engine: Engine,
    id: SuggestionId,
    text: Annotated[str | None, SOME, "What to store instead of its own words"] = None,
) -> Any:
    """Store what was suggested as a memory; the suggestion is gone then."""
    return engine.suggestions.accept(id, text).memory


@writes("DELETE /suggestions/{id}", "Drop a suggestion", {"dropped": SUGGESTION}, destructive=True, reach=LOCAL)
def drop_suggestion(engine: Engine, id: SuggestionId) -> Any:
    """Drop a suggestion for good."""
    engine.suggestions.drop(id)
    return id


# --- tidying ---------------------------------------------------------------------------------------------------------


@reads("GET /duplicates", "List duplicates", {"duplicates": list[DuplicatePair]})
def list_duplicates(engine: Engine, limit: Limit = 20) -> Any:
    """Pairs of memories with the same words; spelling, case and punctuation may differ."""
    return islice(engine.conflicts.duplicates(), limit)


@writes("POST /stores/{name}/reindex", "Reindex a store", {"indexed": Indexed}, idempotent=True, reach=LOCAL)
def reindex_store(engine: Engine, name: Name) -> Any:
    """Import manual changes in a store's folder now."""
    return engine.folders.reindex(name)


# --- the whole store -------------------------------------------------------------------------------------------------


@reads("GET /check", "Check the store", {"checkup": Checkup}, reach=LOCAL)
def check(engine: Engine, deep: Annotated[bool, "Read every page and text, and compare hashes"] = False) -> Any:
    """Look for damage, and count memories, words and vectors."""
    return engine.upkeep.check(deep=deep)


@writes("POST /backup", "Back up", {"job": Job}, status=202, reach=LOCAL)
def backup(
    engine: Engine, file: Annotated[str, {"minLength": 1, "maxLength": 4000}, "A new file on the server"]
) -> Any:
    """Copy the whole store, every space of it, to a new file; runs as a job, while others keep writing."""
    return engine.upkeep.start_backup(file)


@writes("POST /reembed", "Rebuild all vectors", {"job": Job}, status=202, idempotent=True, reach=LOCAL)
def reembed(engine: Engine) -> Any:
    """Rebuild every vector with the configured model; runs as a job. Searches use words only until it is done."""
    return engine.upkeep.start_reembed()


@writes("POST /tidy", "Write phrases", {"job": Job}, status=202, idempotent=True, reach=LOCAL)
def tidy(engine: Engine) -> Any:
    """Let the configured language model write phrases for memories that have none; runs as a job."""
    return engine.tidying.start()


@writes("POST /rebuild", "Rebuild indexes", {"job": Job}, status=202, idempotent=True, reach=LOCAL)
def rebuild(engine: Engine) -> Any:
    """Rebuild the word index, missing vectors and the vector index; runs as a job."""
    return engine.upkeep.start_rebuild()


# --- sync ------------------------------------------------------------------------------------------------------------

NAME: Schema = text(minLength=1, maxLength=64)
EndpointName = Annotated[str, NAME]
URL = text(minLength=1, maxLength=1000, pattern="^(sqlite|postgres(ql)?|https?)://")
CONFLICT: Schema = {**shape(SyncConflict), "properties": {**shape(SyncConflict)["properties"]}}
CONFLICT["properties"] |= {"ours": shape(Memory), "theirs": shape(Memory)}


@reads("GET /sync/endpoints", "List sync endpoints", {"endpoints": list[Endpoint]}, reach=LOCAL)
def list_endpoints(engine: Engine) -> Any:
    """The stores that this one can sync with, and when it last did. Passwords are removed from addresses."""
    return map(endpoint_body, engine.sync.endpoints())


@writes("POST /sync/endpoints", "Add a sync endpoint", {"endpoint": Endpoint}, status=201, idempotent=True, reach=LOCAL)
def add_endpoint(engine: Engine, name: EndpointName, url: Annotated[str, URL], spaces: Spaces = None) -> Any:
    """Add another store: sqlite:///FILE, postgresql://… or the https address of another scrubjay server, whose key
    comes from the setting sync_key."""
    return endpoint_body(engine.sync.add(name, url, spaces=spaces))


@writes("DELETE /sync/endpoints/{name}", "Remove a sync endpoint", {"removed": NAME}, destructive=True, reach=LOCAL)
def remove_endpoint(engine: Engine, name: EndpointName) -> Any:
    """Remove a store to sync with; its memories stay on both sides."""
    engine.sync.remove(name)
    return name


BOTH_WAYS: Body = {"destructive": True, "idempotent": True, "reach": LOCAL}


@writes("POST /sync/run", "Sync with a store", {"synced": Synced}, optional=LARGE, **BOTH_WAYS)
def run_sync(
    engine: Engine,
    name: EndpointName,
    type: SyncType = SyncType.INCREMENTAL,
    resolution: Resolution = Resolution.NEWEST_WINS,
    dry_run: Annotated[bool, "Only report what would happen"] = False,
) -> Any:
    """Sync with a store, in both directions unless `type` says otherwise; this store is the source."""
    return engine.sync.run(SyncRequest(type=type, destination=name, resolution=resolution, dry_run=dry_run))


@reads("GET /sync/conflicts", "List sync conflicts", {"conflicts": array(CONFLICT)}, optional=LARGE, reach=OWNER)
def list_sync_conflicts(engine: Engine, settled: Annotated[bool, "Resolved conflicts instead"] = False) -> Any:
    """Memories that were changed on both sides and need a decision, newest first."""
    return [conflict_body(one) for one in engine.sync.conflicts(settled=settled)]


RESOLVED = {"memory": shape(Memory)}


@writes("POST /sync/conflicts/{number}/resolve", "Resolve a sync conflict", {}, optional=RESOLVED, reach=OWNER)
def resolve_sync_conflict(engine: Engine, number: Annotated[int, {"minimum": 1, "maximum": 2**53}], keep: Keep) -> Any:
    """Choose the version to keep; the next sync passes it on. No memory in the answer: it has been erased meanwhile."""
    memory = engine.sync.resolve(number, keep)
    return {} if memory is None else {"memory": to_json(memory)}


def endpoint_body(endpoint: Endpoint) -> Body:
    return {**to_json(endpoint), "url": without_password(endpoint.url)}


def conflict_body(conflict: SyncConflict) -> Body:
    """A conflict with both versions as JSON objects, not as JSON text."""
    sides = {"ours": conflict.ours, "theirs": conflict.theirs}
    memories = {side: json.loads(told)["memory"] for side, told in sides.items() if told is not None}
    return {**to_json(conflict), **memories}
