"""Native, for administrators: keys, grants, who did what, and changes as they happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import (
    Body,
    Pieces,
    Route,
    Stream,
    array,
    either,
    flag,
    integer,
    object_schema,
    record,
    text,
)
from scrubjay.dialects.native.memories import FAILED, LARGE, NAME, REASON, ROOT, gives, many, native, owners_only
from scrubjay.dialects.schemas import fields_of, filled, shape, shown
from scrubjay.values.memory import Act, ActFilter, Credential, CredentialKind, Event, Grant, Role
from scrubjay.values.times import parse_time

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

KEY = text("A credential's id", minLength=1)
ISSUED = {
    "key": shape(Credential),
    "secret": {"type": ["string", "null"], "description": "Shown only once; null if it was shown before"},
}


@owners_only.reads(
    "List keys", route=Route("GET", f"{ROOT}/keys"), gives=gives({"keys": many(Credential)}, optional=LARGE)
)
def list_keys(engine: Engine, _args: Body) -> Body:
    """The credentials that the caller may manage, oldest first, revoked ones too. Never a secret."""
    return {"keys": shown(list(engine.callers.credentials()))}


@owners_only.writes(
    "Create a key",
    route=Route("POST", f"{ROOT}/keys", 201),
    takes=record(
        {"user": NAME},
        optional={
            "role": {**shape(Role), "default": "member"},
            "spaces": array(text(), minItems=1, maxItems=100),
            "name": text("A label, for people", maxLength=100),
            "expires_at": text(format="date-time"),
            "kind": {
                "enum": ["key", "token"],
                "default": "key",
                "description": "A key for programs, or a subject of your token issuer",
            },
        },
    ),
    gives=gives(ISSUED),
)
def create_key(engine: Engine, args: Body) -> Body:
    """Create a credential for a user. A key's secret is only in this answer. Once a key exists, all callers need
    one."""
    made = engine.callers.create(
        args["user"],
        role=Role(args.get("role", "member")),
        spaces=args.get("spaces"),
        name=args.get("name", ""),
        expires_at=parse_time(args["expires_at"], field="expires_at") if "expires_at" in args else None,
        kind=CredentialKind(args.get("kind", "key")),
    )
    return {"key": shown(made.credential), "secret": made.secret}


@owners_only.writes(
    "Revoke a key",
    destructive=True,
    idempotent=True,
    route=Route("DELETE", f"{ROOT}/keys/{{id}}"),
    takes=record({"id": KEY}, optional={"reason": REASON}),
    gives=gives({"key": shape(Credential)}),
)
def revoke_key(engine: Engine, args: Body) -> Body:
    """Revoke a key immediately, with every session it opened. After the last one the server stays locked until a key is
    created or `scrubjay keys open` is run on its machine."""
    return {"key": shown(engine.callers.revoke(args["id"], reason=args.get("reason")))}


@owners_only.writes(
    "Rotate a key", route=Route("POST", f"{ROOT}/keys/{{id}}/rotate"), takes=record({"id": KEY}), gives=gives(ISSUED)
)
def rotate_key(engine: Engine, args: Body) -> Body:
    """Replace a key's secret; the old one stops working immediately."""
    made = engine.callers.rotate(args["id"])
    return {"key": shown(made.credential), "secret": made.secret}


@owners_only.reads(
    "List grants", route=Route("GET", f"{ROOT}/grants"), gives=gives({"grants": many(Grant)}, optional=LARGE)
)
def list_grants(engine: Engine, _args: Body) -> Body:
    """Who can access which of the caller's spaces."""
    return {"grants": shown(list(engine.callers.grants()))}


ENTRY = record({"name": NAME, "user": NAME})


@owners_only.writes(
    "Grant a space",
    idempotent=True,
    route=Route("PUT", f"{ROOT}/spaces/{{name}}/grants/{{user}}"),
    takes=ENTRY,
    gives=gives({"grant": shape(Grant)}),
)
def grant_space(engine: Engine, args: Body) -> Body:
    """Give a user access to a space."""
    return {"grant": shown(engine.callers.grant(args["name"], args["user"]))}


@owners_only.writes(
    "Revoke a grant",
    destructive=True,
    route=Route("DELETE", f"{ROOT}/spaces/{{name}}/grants/{{user}}"),
    takes=ENTRY,
    gives=gives({"withdrawn": flag()}),
)
def withdraw_grant(engine: Engine, args: Body) -> Body:
    """Revoke a grant: the user's credentials can no longer access the space."""
    engine.callers.withdraw(args["name"], args["user"])
    return {"withdrawn": True}


@owners_only.reads(
    "Who did what",
    route=Route("GET", f"{ROOT}/audit"),
    takes=object_schema({"limit": integer(minimum=1, maximum=1000, default=100), **fields_of(ActFilter)}),
    gives=gives({"acts": many(Act)}, optional=LARGE),
)
def audit(engine: Engine, args: Body) -> Body:
    """Who changed what in the caller's spaces, newest first."""
    return {"acts": shown(list(engine.callers.audit(filled(ActFilter, args), limit=int(args.get("limit", 100)))))}


NOT_IN_FEEDS = ("number", "credential")


@native.reads(
    "Changes as they happen",
    route=Route("GET", f"{ROOT}/events"),
    streams=Pieces.EVENTS,
    takes=object_schema(
        {"after": text("Start after the event with this id; 0 starts at the first; default: from now on", minLength=1)}
    ),
    gives=either(object_schema(fields_of(Event, without=NOT_IN_FEEDS), closed=False), FAILED),
)
def follow(engine: Engine, args: Body) -> Stream:
    """The changes in a space as server-sent events: who, what, when; ids and field names, never content."""
    feed = engine.feed
    events = feed.follow(after=feed.number_at(args["after"]) if "after" in args else None)
    pieces = (
        None if event is None else {"id": feed.place_of(event), "data": shown(event, leave_out=NOT_IN_FEEDS)}
        for event in events
    )
    return Stream(pieces, listening=feed.listening)
