"""Native: spaces, their contents, export and import."""

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
    present,
    record,
    text,
)
from scrubjay.dialects.native.memories import COUNT, FAILED, LARGE, NAME, ROOT, gives, many, native, plain_body
from scrubjay.dialects.schemas import fields_of, filled, shape, shown
from scrubjay.engine.statistics import Statistics, StatsQuery
from scrubjay.engine.transfer import Imported
from scrubjay.values.memory import Space, TagCount

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine


@native.reads("List spaces", route=Route("GET", f"{ROOT}/spaces"), gives=gives({"spaces": many(Space)}, optional=LARGE))
def list_spaces(engine: Engine, _args: Body) -> Body:
    """The spaces that the caller may use, with how many memories each has."""
    return {"spaces": shown(list(engine.list_spaces()))}


@native.writes(
    "Create a space",
    idempotent=True,
    route=Route("POST", f"{ROOT}/spaces", 201),
    takes=record({"name": NAME}, optional={"description": text(minLength=1, maxLength=10_000)}),
    gives=gives({"space": text(), "created": flag()}),
)
def create_space(engine: Engine, args: Body) -> Body:
    """Create a space; an existing one does not change."""
    new = engine.create_space(args["name"], description=args.get("description"))
    return {"space": args["name"], "created": new}


@native.writes(
    "Delete an empty space",
    destructive=True,
    route=Route("DELETE", f"{ROOT}/spaces/{{name}}"),
    takes=record({"name": NAME}),
    gives=gives({"space": shape(Space)}),
)
def drop_space(engine: Engine, args: Body) -> Body:
    """Delete a space without memories, together with its conversations."""
    return {"space": shown(engine.drop_space(args["name"]))}


@native.reads(
    "List tags",
    route=Route("GET", f"{ROOT}/tags"),
    takes=object_schema(
        {
            "found": flag("Include tags that were found in texts", default=False),
            "limit": integer(minimum=1, maximum=1000, default=100),
        }
    ),
    gives=gives({"tags": many(TagCount)}, optional=LARGE),
)
def list_tags(engine: Engine, args: Body) -> Body:
    """Tags of memories and how many have each, the most frequent first."""
    return {"tags": shown(list(engine.tags(found=bool(args.get("found")), limit=int(args.get("limit", 100)))))}


STORE = object_schema(
    {
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
    },
    required=("name", "memories", "superseded", "mirrored", "project", "waiting", "there", "away", "read_only"),
)


@native.reads(
    "List stores and their folders",
    route=Route("GET", f"{ROOT}/stores"),
    gives=gives({"stores": array(STORE)}, optional=LARGE),
)
def list_stores(engine: Engine, _args: Body) -> Body:
    """The stores that the caller may see, with the folders where their memories are files."""
    return {
        "stores": [
            {**shown(store, leave_out=("path",)), **present(path=store.path and str(store.path))}
            for store in engine.folders.list()
        ]
    }


@native.reads(
    "Statistics",
    route=Route("GET", f"{ROOT}/statistics"),
    takes=object_schema(fields_of(StatsQuery)),
    gives=gives({"statistics": shape(Statistics)}),
)
def get_statistics(engine: Engine, args: Body) -> Body:
    """Counts, sizes, rates, trends and health of what the caller may see."""
    return {"statistics": shown(engine.statistics(filled(StatsQuery, args)))}


@native.reads(
    "Export",
    route=Route("GET", f"{ROOT}/export"),
    streams=Pieces.LINES,
    gives=either(object_schema({"type": text()}, required=("type",), closed=False), FAILED),
)
def export(engine: Engine, _args: Body) -> Stream:
    """Every memory of a space and the links between them, as JSON lines for `import`."""
    return Stream(engine.export(), Pieces.LINES)


@native.writes(
    "Import",
    route=Route("POST", f"{ROOT}/import"),
    takes=record({"lines": array({"type": "object"}, minItems=1, maxItems=1000)}),
    gives=gives(shape(Imported)["properties"]),
)
def import_(engine: Engine, args: Body) -> Body:
    """Import lines of an export or a list, at most a thousand per call. What is already here, by id or by text and
    time, is left unchanged and counted in `already_here`."""
    return plain_body(engine.import_from(args["lines"]))
