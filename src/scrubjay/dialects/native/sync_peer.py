"""Native: what another scrubjay asks when it syncs with this one. For programs; people use `scrubjay sync`.

Every request may be repeated: taking what is already here changes nothing, and a store gets a new origin only once.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from scrubjay.dialects.base import array, flag, integer, object_schema, text
from scrubjay.dialects.native import rows
from scrubjay.dialects.schemas import full_shape, with_fields
from scrubjay.engine.engine import Engine
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.merge import Winner, WinnerPolicy
from scrubjay.engine.sync.peer import SyncBatch
from scrubjay.engine.sync.run import STRETCH, Resolution
from scrubjay.stores.promises.sync import MAX_CLOCK, Erased, Heard, Replica, Stamp
from scrubjay.values.codec import plain
from scrubjay.values.memory import Link, Memory

MAX_IDS = 500
ID = text(minLength=1, maxLength=256)
IDS = array(ID, maxItems=MAX_IDS)
SPACE = text(minLength=1, maxLength=100)
CLOCK = integer(minimum=0, maximum=MAX_CLOCK)
NUMBER = integer(minimum=0, maximum=2**53)
SEEN = {"type": "object", "additionalProperties": CLOCK, "maxProperties": 1000}
ERASED = integer(enum=[one.value for one in Erased])


MEMORY = with_fields(full_shape(Memory), hlc=CLOCK, version={**NUMBER, "minimum": 1}, seq=NUMBER, access_count=NUMBER)
REPLICA = with_fields(
    full_shape(Replica),
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
STAMP = with_fields(full_shape(Stamp), hlc=CLOCK, version=NUMBER, erased=ERASED, seen=SEEN, aliases=NUMBER)
HEARD = with_fields(full_shape(Heard), number=NUMBER)
LINK = with_fields(full_shape(Link), hlc=CLOCK)
PARCEL = with_fields(
    full_shape(SyncBatch),
    replicas=array(REPLICA),
    links=array(LINK),
    spaces={"type": "object", "additionalProperties": {"type": ["string", "null"]}},
)
CHANGE = {"enum": ["created", "updated", "deleted"]}
WINNER = {"enum": [str(one) for one in Winner]}
TAKEN = object_schema(
    {"memory": text(), "change": CHANGE, "conflict": flag(), "winner": WINNER, "failed": flag()},
    required=("memory", "conflict", "winner", "failed"),
)
reads, writes = partial(rows.reads, reach=rows.OWNER), partial(rows.writes, reach=rows.OWNER)


Ids = Annotated[list[str], IDS]


# Open: a newer scrubjay may send more, and must be understood well enough to be recognised as newer.
@reads("GET /sync", "Sync: which store this is", {**full_shape(wire.Greeting), "additionalProperties": True})
def sync_greet(engine: Engine) -> Any:
    """What another scrubjay must know before it syncs with this store."""
    return plain(engine.sync.host.greeting())


@reads(
    "POST /sync/changes",
    "Sync: which memories changed",
    {"ids": IDS, "heard": HEARD, "more": flag(), "restarted": flag()},
)
def sync_changes(
    engine: Engine,
    space: Annotated[str, SPACE],
    after: Annotated[Any, HEARD],
    limit: Annotated[int, integer(minimum=1, maximum=STRETCH)],
) -> Any:
    """The memories that a space's feed names after a position; from the beginning if it has no such position."""
    return plain(engine.sync.host.changes(space, wire.build_value(Heard, after), limit=limit))


@reads(
    "POST /sync/stamps",
    "Sync: states of memories",
    {"stamps": {"type": "object", "additionalProperties": STAMP}},
)
def sync_stamps(engine: Engine, ids: Ids) -> Any:
    """The states of these memories, without their text; unknown ones are left out."""
    return plain(engine.sync.host.stamps(ids))


@reads("POST /sync/links", "Sync: links of memories", {"links": array(LINK), "more": flag()})
def sync_links(engine: Engine, ids: Ids, offset: Annotated[int | None, NUMBER] = None) -> Any:
    """Links of these memories, as many as fit, from an offset."""
    links, more = engine.sync.host.links(ids, offset=offset or 0)
    return {"links": plain(list(links)), "more": more}


@reads("POST /sync/fetch", "Sync: fetch memories", {"parcel": PARCEL, "left": IDS})
def sync_fetch(engine: Engine, ids: Ids, vectors: bool = False) -> Any:
    """These memories in full, as many as fit; ask again for those that are `left`."""
    parcel, left = engine.sync.host.parcel(ids, vectors=vectors)
    return {"parcel": wire.write_value(parcel), "left": list(left)}


@writes(
    "POST /sync/take",
    "Sync: merge memories",
    {"taken": array(TAKEN)},
    destructive=True,
    idempotent=True,
    replicates=True,
)
def sync_take(
    engine: Engine,
    *,
    parcel: Annotated[Any, PARCEL],
    policy: Annotated[Any, {"enum": [str(one) for one in WinnerPolicy]}],
    named: Annotated[Any, {"enum": [str(one) for one in Resolution]}],
    sender: Annotated[str, text(minLength=1, maxLength=64, pattern="^[A-Za-z0-9._-]+$")],
    dry_run: bool = False,
) -> Any:
    """Merge these memories into this store; where both sides changed one, the policy decides."""
    batch = wire.read(parcel)
    taken = engine.sync.host.take(batch, policy=WinnerPolicy(policy), named=named, sender=sender, dry_run=dry_run)
    return plain(list(taken))


@writes("POST /sync/renew", "Sync: take a new origin", {"origin": str}, idempotent=True)
def sync_renew(engine: Engine, origin: Annotated[str, ID]) -> Any:
    """Sign changes under a new origin from now on: this store turned out to be a copy of the caller's."""
    return engine.sync.host.renew(origin)
