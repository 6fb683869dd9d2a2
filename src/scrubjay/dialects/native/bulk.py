"""Native: many memories at once, with a preview and an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Route, Schema, array, flag, object_schema, record, text
from scrubjay.dialects.native.memories import (
    CHANGES,
    COUNT,
    FILTER,
    LARGE,
    PAGE,
    REASON,
    ROOT,
    gives,
    many,
    moment,
    native,
    plain_body,
)
from scrubjay.dialects.schemas import filled, shape, shown
from scrubjay.engine.lifecycle.bulk import CHANGEABLE as BULK_CHANGES
from scrubjay.engine.lifecycle.bulk import Done
from scrubjay.engine.store.intake import TagChange
from scrubjay.values.memory import Filter, Memory

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

DONE: Schema = shape(Done)["properties"]
OPERATION_ID = text("Id of the bulk operation, from an earlier call", minLength=1, maxLength=100)
TAGS = array(text(minLength=1), maxItems=20)


@native.reads(
    "Preview a bulk operation",
    route=Route("POST", f"{ROOT}/bulk/preview"),
    takes=object_schema({"limit": PAGE["limit"], **FILTER}),
    gives=gives({"total": COUNT, "memories": many(Memory)}, optional=LARGE),
)
def preview_bulk(engine: Engine, args: Body) -> Body:
    """What a bulk operation with this filter would change."""
    named = engine.bulk.preview(filled(Filter, args), limit=int(args.get("limit", 20)))
    return {"total": named.total, "memories": shown(named.memories)}


@native.writes(
    "Forget many",
    of_one_version=True,
    destructive=True,
    route=Route("POST", f"{ROOT}/bulk/forget"),
    takes=object_schema({"reason": REASON, "deed": OPERATION_ID, **FILTER}),
    gives=gives(DONE),
)
def bulk_forget(engine: Engine, args: Body) -> Body:
    """Forget everything that a filter matches, such as all that one client stored. At most a thousand per call: while
    `left` is not 0, call again with the same `deed`."""
    return plain_body(engine.bulk.forget(filled(Filter, args), reason=args.get("reason"), operation=args.get("deed")))


@native.writes(
    "Update many",
    of_one_version=True,
    route=Route("POST", f"{ROOT}/bulk/update"),
    takes=object_schema(
        {
            "filter": object_schema(FILTER),
            "add_tags": TAGS,
            "remove_tags": TAGS,
            **{name: CHANGES[name] for name in BULK_CHANGES},
            "reason": REASON,
        },
        required=("filter",),
    ),
    gives=gives(DONE),
)
def bulk_update(engine: Engine, args: Body) -> Body:
    """Update the same fields of all memories that a filter matches; each keeps its earlier version in its history."""
    tags = TagChange(add=tuple(args.get("add_tags", ())), remove=tuple(args.get("remove_tags", ())))
    changed = {name: moment(name, args[name]) for name in BULK_CHANGES if name in args}
    done = engine.bulk.update(
        filled(Filter, args["filter"]), tags=tags if tags != TagChange() else None, reason=args.get("reason"), **changed
    )
    return plain_body(done)


@native.writes(
    "Undo a bulk forget",
    route=Route("POST", f"{ROOT}/bulk/undo"),
    takes=record({"deed": OPERATION_ID}),
    gives=gives(DONE),
)
def undo_bulk(engine: Engine, args: Body) -> Body:
    """Restore what a bulk operation forgot. While `left` is not 0, call again."""
    return plain_body(engine.bulk.undo(args["deed"]))


@native.writes(
    "Forget expired memories",
    destructive=True,
    route=Route("POST", f"{ROOT}/prune"),
    takes=object_schema({"dry_run": flag("Only report what would be forgotten", default=False)}),
    gives=gives({"pruned": array(text())}, optional=LARGE),
)
def prune(engine: Engine, args: Body) -> Body:
    """Soft-delete expired memories."""
    return {"pruned": [memory.id for memory in engine.prune(dry_run=bool(args.get("dry_run")))]}
