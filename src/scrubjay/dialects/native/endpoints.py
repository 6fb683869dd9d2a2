"""Native: syncing this store with others, as `scrubjay sync` does it.

Endpoints and runs are for this machine's owner; conflicts are for every owner, in its own spaces.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Route, Schema, array, flag, integer, object_schema, record, text
from scrubjay.dialects.native.memories import LARGE, ROOT, gives, local_only, owners_only
from scrubjay.dialects.schemas import shape, shown
from scrubjay.engine.sync.run import Keep, Resolution, Synced, SyncRequest, SyncType
from scrubjay.machine.outgoing import without_password
from scrubjay.stores.promises.sync import Endpoint, SyncConflict
from scrubjay.values.memory import Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

NAME: Schema = text(minLength=1, maxLength=64)
CONFLICT: Schema = {**shape(SyncConflict), "properties": {**shape(SyncConflict)["properties"]}}
CONFLICT["properties"] |= {"ours": shape(Memory), "theirs": shape(Memory)}


@local_only.reads(
    "List sync endpoints",
    route=Route("GET", f"{ROOT}/sync/endpoints"),
    gives=gives({"endpoints": array(shape(Endpoint))}, optional=LARGE),
)
def list_endpoints(engine: Engine, _args: Body) -> Body:
    """The stores that this one can sync with, and when it last did. Passwords are removed from addresses."""
    return {"endpoints": [endpoint_body(one) for one in engine.sync.endpoints()]}


@local_only.writes(
    "Add a sync endpoint",
    idempotent=True,
    route=Route("POST", f"{ROOT}/sync/endpoints", 201),
    takes=record(
        {"name": NAME, "url": text(minLength=1, maxLength=1000, pattern="^(sqlite|postgres(ql)?|https?)://")},
        optional={"spaces": array(text(), minItems=1, maxItems=100)},
    ),
    gives=gives({"endpoint": shape(Endpoint)}),
)
def add_endpoint(engine: Engine, args: Body) -> Body:
    """Add another store: sqlite:///FILE, postgresql://… or the https address of another scrubjay server, whose key
    comes from the setting sync_key."""
    return {"endpoint": endpoint_body(engine.sync.add(args["name"], args["url"], spaces=args.get("spaces")))}


@local_only.writes(
    "Remove a sync endpoint",
    destructive=True,
    route=Route("DELETE", f"{ROOT}/sync/endpoints/{{name}}"),
    takes=record({"name": NAME}),
    gives=gives({"removed": NAME}),
)
def remove_endpoint(engine: Engine, args: Body) -> Body:
    """Remove a store to sync with; its memories stay on both sides."""
    engine.sync.remove(args["name"])
    return {"removed": args["name"]}


@local_only.writes(
    "Sync with a store",
    destructive=True,
    idempotent=True,
    route=Route("POST", f"{ROOT}/sync/run"),
    takes=record(
        {"name": NAME},
        optional={
            "type": {**shape(SyncType), "default": "incremental"},
            "resolution": {**shape(Resolution), "default": "newest_wins"},
            "dry_run": flag("Only report what would happen", default=False),
        },
    ),
    gives=gives({"synced": shape(Synced)}, optional=LARGE),
)
def run_sync(engine: Engine, args: Body) -> Body:
    """Sync with a store, in both directions unless `type` says otherwise; this store is the source."""
    request = SyncRequest(
        type=SyncType(args.get("type", "incremental")),
        destination=args["name"],
        resolution=Resolution(args.get("resolution", "newest_wins")),
        dry_run=bool(args.get("dry_run")),
    )
    return {"synced": shown(engine.sync.run(request))}


@owners_only.reads(
    "List sync conflicts",
    route=Route("GET", f"{ROOT}/sync/conflicts"),
    takes=object_schema({"settled": flag("Resolved conflicts instead", default=False)}),
    gives=gives({"conflicts": array(CONFLICT)}, optional=LARGE),
)
def list_sync_conflicts(engine: Engine, args: Body) -> Body:
    """Memories that were changed on both sides and need a decision, newest first."""
    return {"conflicts": [conflict_body(one) for one in engine.sync.conflicts(settled=bool(args.get("settled")))]}


@owners_only.writes(
    "Resolve a sync conflict",
    route=Route("POST", f"{ROOT}/sync/conflicts/{{number}}/resolve"),
    takes=record({"number": integer(minimum=1, maximum=2**53), "keep": shape(Keep)}),
    gives=gives({}, optional={"memory": shape(Memory)}),
)
def resolve_sync_conflict(engine: Engine, args: Body) -> Body:
    """Choose the version to keep; the next sync passes it on. No memory in the answer: it has been erased meanwhile."""
    memory = engine.sync.resolve(args["number"], Keep(args["keep"]))
    return {} if memory is None else {"memory": shown(memory)}


def endpoint_body(endpoint: Endpoint) -> Body:
    return {**shown(endpoint), "url": without_password(endpoint.url)}


def conflict_body(conflict: SyncConflict) -> Body:
    """A conflict with both versions as JSON objects, not as JSON text."""
    sides = {"ours": conflict.ours, "theirs": conflict.theirs}
    memories = {side: json.loads(told)["memory"] for side, told in sides.items() if told is not None}
    return {**shown(conflict), **memories}
