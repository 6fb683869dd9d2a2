"""Native: what another scrubjay asks when it syncs with this one. For programs; people use `scrubjay sync`.

Every request may be repeated: taking what is already here changes nothing, and a store gets a new origin only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Route, Schema, array, either, flag, integer, object_schema, record, text
from scrubjay.dialects.native.memories import FAILED, ROOT, gives, owners_only
from scrubjay.dialects.schemas import full_shape
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.merge import Policy, Winner
from scrubjay.engine.sync.peer import SyncBatch
from scrubjay.engine.sync.run import STRETCH, Resolution
from scrubjay.stores.promises.sync import MAX_CLOCK, Erased, Heard, Replica, Stamp
from scrubjay.values.codec import plain
from scrubjay.values.memory import Link, Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

MAX_IDS = 500
ID = text(minLength=1, maxLength=256)
IDS = array(ID, maxItems=MAX_IDS)
SPACE = text(minLength=1, maxLength=100)
CLOCK = integer(minimum=0, maximum=MAX_CLOCK)
NUMBER = integer(minimum=0, maximum=2**53)
SEEN = {"type": "object", "additionalProperties": CLOCK, "maxProperties": 1000}
ERASED = integer(enum=[one.value for one in Erased])


def with_fields(kind: type, **fields: Schema) -> Schema:
    """The schema of a value, some of whose fields are described in more detail."""
    schema = full_shape(kind)
    return {**schema, "properties": {**schema["properties"], **fields}}


MEMORY = with_fields(Memory, hlc=CLOCK, version={**NUMBER, "minimum": 1}, seq=NUMBER, access_count=NUMBER)
REPLICA = with_fields(
    Replica,
    memory=MEMORY,
    erased=ERASED,
    seen=SEEN,
    vectors=array(text(), maxItems=1000, description="Base64 of 32-bit numbers"),
    further={
        "type": "object",
        "additionalProperties": array(text(), maxItems=1000),
        "maxProperties": 10,
        "description": "The same, by further models",
    },
    parts=integer(minimum=0, maximum=10_000),
)
STAMP = with_fields(Stamp, hlc=CLOCK, version=NUMBER, erased=ERASED, seen=SEEN, aliases=NUMBER)
HEARD = with_fields(Heard, number=NUMBER)
LINK = with_fields(Link, hlc=CLOCK)
PARCEL = with_fields(
    SyncBatch,
    replicas=array(REPLICA),
    links=array(LINK),
    spaces={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
)
TAKEN = object_schema(
    {
        "memory": text(),
        "change": {"enum": ["created", "updated", "deleted"]},
        "conflict": flag(),
        "winner": {"enum": [str(one) for one in Winner]},
        "failed": flag(),
    },
    required=("memory", "conflict", "winner", "failed"),
)


@owners_only.reads(
    "Sync: which store this is",
    route=Route("GET", f"{ROOT}/sync"),
    # Open: a newer scrubjay may send more, and must be understood well enough to be recognised as newer.
    gives=either({**full_shape(wire.Greeting), "additionalProperties": True}, FAILED),
)
def sync_greet(engine: Engine, _args: Body) -> Body:
    """What another scrubjay must know before it syncs with this store."""
    body: Body = plain(engine.sync.host.greeting())
    return body


@owners_only.reads(
    "Sync: which memories changed",
    route=Route("POST", f"{ROOT}/sync/changes"),
    takes=record({"space": SPACE, "after": HEARD, "limit": integer(minimum=1, maximum=STRETCH)}),
    gives=gives({"ids": IDS, "heard": HEARD, "more": flag(), "restarted": flag()}),
)
def sync_changes(engine: Engine, args: Body) -> Body:
    """The memories that a space's feed names after a position; from the beginning if it has no such position."""
    after = wire.built(Heard, args["after"])
    body: Body = plain(engine.sync.host.changes(args["space"], after, limit=int(args["limit"])))
    return body


@owners_only.reads(
    "Sync: states of memories",
    route=Route("POST", f"{ROOT}/sync/stamps"),
    takes=record({"ids": IDS}),
    gives=gives({"stamps": {"type": "object", "additionalProperties": STAMP}}),
)
def sync_stamps(engine: Engine, args: Body) -> Body:
    """The states of these memories, without their text; unknown ones are left out."""
    return {"stamps": plain(engine.sync.host.stamps(args["ids"]))}


@owners_only.reads(
    "Sync: links of memories",
    route=Route("POST", f"{ROOT}/sync/links"),
    takes=record({"ids": IDS}, optional={"offset": NUMBER}),
    gives=gives({"links": array(LINK), "more": flag()}),
)
def sync_links(engine: Engine, args: Body) -> Body:
    """Links of these memories, as many as fit, from an offset."""
    links, more = engine.sync.host.links(args["ids"], offset=int(args.get("offset", 0)))
    return {"links": plain(list(links)), "more": more}


@owners_only.reads(
    "Sync: fetch memories",
    route=Route("POST", f"{ROOT}/sync/fetch"),
    takes=record({"ids": IDS}, optional={"vectors": flag(default=False)}),
    gives=gives({"parcel": PARCEL, "left": IDS}),
)
def sync_fetch(engine: Engine, args: Body) -> Body:
    """These memories in full, as many as fit; ask again for those that are `left`."""
    parcel, left = engine.sync.host.parcel(args["ids"], vectors=bool(args.get("vectors")))
    return {"parcel": wire.written(parcel), "left": list(left)}


@owners_only.writes(
    "Sync: merge memories",
    destructive=True,
    idempotent=True,
    replicates=True,
    route=Route("POST", f"{ROOT}/sync/take"),
    takes=record(
        {
            "parcel": PARCEL,
            "policy": {"enum": [str(one) for one in Policy]},
            "named": {"enum": [str(one) for one in Resolution]},
            "sender": text(minLength=1, maxLength=64, pattern="^[A-Za-z0-9._-]+$"),
        },
        optional={"dry_run": flag(default=False)},
    ),
    gives=gives({"taken": array(TAKEN)}),
)
def sync_take(engine: Engine, args: Body) -> Body:
    """Merge these memories into this store; where both sides changed one, the policy decides."""
    taken = engine.sync.host.take(
        wire.read(args["parcel"]),
        policy=Policy(args["policy"]),
        named=args["named"],
        sender=args["sender"],
        dry_run=bool(args.get("dry_run")),
    )
    return {"taken": plain(list(taken))}


@owners_only.writes(
    "Sync: take a new origin",
    idempotent=True,
    route=Route("POST", f"{ROOT}/sync/renew"),
    takes=record({"origin": ID}),
    gives=gives({"origin": text()}),
)
def sync_renew(engine: Engine, args: Body) -> Body:
    """Sign changes under a new origin from now on: this store turned out to be a copy of the caller's."""
    return {"origin": engine.sync.host.renew(args["origin"])}
