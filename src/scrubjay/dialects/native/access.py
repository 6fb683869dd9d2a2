"""Native, for administrators: keys, grants, who did what, and changes as they happen."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from scrubjay.dialects.base import SOME, Body, Pieces, Stream, object_schema
from scrubjay.dialects.native.rows import OWNER, Limit, Name, Reason, Spaces, Text, reads, writes
from scrubjay.dialects.schemas import fields_of, to_json
from scrubjay.engine.engine import Engine
from scrubjay.values.callers import Act, ActFilter, Credential, CredentialKind, Grant, Role
from scrubjay.values.store import Event

KeyId = Annotated[Text, "A credential's id"]
KIND = "A key for programs, or a subject of your token issuer"
SECRET = {"type": ["string", "null"], "description": "Shown only once; null if it was shown before"}
ISSUED = {"key": Credential, "secret": SECRET}


@reads("GET /keys", "List keys", {"keys": list[Credential]}, reach=OWNER)
def list_keys(engine: Engine) -> Any:
    """The credentials that the caller may manage, oldest first, revoked ones too. Never a secret."""
    return engine.callers.credentials()


@writes("POST /keys", "Create a key", ISSUED, status=201, reach=OWNER)
def create_key(
    engine: Engine,
    *,
    user: Name,
    role: Role = Role.MEMBER,
    spaces: Spaces = None,
    name: Annotated[str | None, {"maxLength": 100}, "A label, for people"] = None,
    expires_at: datetime | None = None,
    kind: Annotated[Any, {"enum": ["key", "token"]}, KIND] = "key",
) -> Any:
    """Create a credential for a user. A key's secret is only in this answer. Once a key exists, all callers need
    one."""
    more: Body = {"name": name or "", "expires_at": expires_at, "kind": CredentialKind(kind)}
    made = engine.callers.create(user, role=role, spaces=spaces, **more)
    return made.credential, made.secret


@writes("DELETE /keys/{id}", "Revoke a key", {"key": Credential}, destructive=True, idempotent=True, reach=OWNER)
def revoke_key(engine: Engine, id: KeyId, reason: Reason = None) -> Any:
    """Revoke a key immediately, with every session it opened. After the last one the server stays locked until a key is
    created or `scrubjay keys open` is run on its machine."""
    return engine.callers.revoke(id, reason=reason)


@writes("POST /keys/{id}/rotate", "Rotate a key", ISSUED, reach=OWNER)
def rotate_key(engine: Engine, id: KeyId) -> Any:
    """Replace a key's secret; the old one stops working immediately."""
    made = engine.callers.rotate(id)
    return made.credential, made.secret


@reads("GET /grants", "List grants", {"grants": list[Grant]}, reach=OWNER)
def list_grants(engine: Engine) -> Any:
    """Who can access which of the caller's spaces."""
    return engine.callers.grants()


@writes("PUT /spaces/{name}/grants/{user}", "Grant a space", {"grant": Grant}, idempotent=True, reach=OWNER)
def grant_space(engine: Engine, name: Name, user: Name) -> Any:
    """Give a user access to a space."""
    return engine.callers.grant(name, user)


@writes("DELETE /spaces/{name}/grants/{user}", "Revoke a grant", {"withdrawn": bool}, destructive=True, reach=OWNER)
def withdraw_grant(engine: Engine, name: Name, user: Name) -> Any:
    """Revoke a grant: the user's credentials can no longer access the space."""
    engine.callers.withdraw(name, user)
    return True


@reads("GET /audit", "Who did what", {"acts": list[Act]}, reach=OWNER)
def audit(engine: Engine, *, limit: Limit = 100, filter: ActFilter) -> Any:
    """Who changed what in the caller's spaces, newest first."""
    return engine.callers.audit(filter, limit=limit)


NOT_IN_FEEDS = ("number", "credential")
AFTER = "Start after the event with this id; 0 starts at the first; default: from now on"
EVENT = object_schema(fields_of(Event, without=NOT_IN_FEEDS), closed=False)


@reads("GET /events", "Changes as they happen", EVENT, streams=Pieces.EVENTS)
def follow(engine: Engine, after: Annotated[str | None, SOME, AFTER] = None) -> Any:
    """The changes in a space as server-sent events: who, what, when; ids and field names, never content."""
    feed = engine.feed
    events = feed.follow(after=None if after is None else feed.number_at(after))

    def piece(event: Event) -> Body:
        return {"id": feed.place_of(event), "data": to_json(event, leave_out=NOT_IN_FEEDS)}

    return Stream((None if event is None else piece(event) for event in events), listening=feed.listening)
