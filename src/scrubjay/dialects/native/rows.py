"""The native table's rows: a route, a title, what is given, and a function whose parameters are what is taken.

    @reads("GET /memories/{id}/links", "List a memory's links", {"links": list[Link]})
    def list_links(engine: Engine, id: Id) -> Any:
        \"\"\"What a memory is linked to.\"\"\"
        return engine.links(id)

A parameter's type says what its argument may be, and `Annotated` adds to its schema, a text being its description; one
without a default is required.
A parameter that is one of our values, such as a `Filter`, takes all arguments that are its fields, and `args` takes the
arguments as they came. A function returns the values of its fields in their order, or the whole body. Values are shown
as JSON, and what is None in them is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import (
    LEFT_OUT,
    Body,
    Dialect,
    Reach,
    Route,
    Schema,
    Stream,
    either,
    integer,
    object_schema,
    present,
    record,
    text,
)
from scrubjay.dialects.schemas import argument, fields_of, filled, shape, shown
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error

Run = Callable[..., Any]
ROOT = "/api/v1"
OWNER, LOCAL = Reach.OWNER, Reach.LOCAL


def error_body(error: Error, _operation: str) -> Body:
    details = {name: shown(value) for name, value in error.details.items() if value is not None}
    return {"error": present(code=error.code, message=error.message, hint=error.hint, details=details or None)}


native = Dialect(
    name="native",
    title="Native: everything a person can do",
    server_name="scrubjay",
    instructions="",
    error_body=error_body,
    tools=False,
)

MORE = {"hint": text("How to fix it"), "details": {"type": "object"}}
FAILED = record({"error": record({"code": text(), "message": text()}, optional=MORE)})
LARGE: Schema = {"degraded": text(), "left_out": LEFT_OUT}
COUNT = integer(minimum=0)
ID = text("A memory's id, in any form", minLength=1)
REASON = text("Reason, kept in the history", minLength=1, maxLength=1000)
Id = Annotated[str, ID]
Text = Annotated[str, {"minLength": 1}]
Name = Annotated[str, {"minLength": 1, "maxLength": 100}]
Reason = Annotated[str | None, REASON]
Limit = Annotated[int, {"minimum": 1, "maximum": 1000}]
Offset = Annotated[int, {"minimum": 0, "maximum": 1_000_000}]


def row(
    route: str, title: str, gives: Any, *, status: int = 200, optional: Schema | None = None, **more: Any
) -> Callable[[Run], Run]:
    """Register a function as the operation at this address. `more`: see `Operation`."""
    method, path = route.split(" ")

    def register(run: Run) -> Run:
        hints = get_type_hints(run, include_extras=True)
        taken = {name: (hints[name], one.default) for name, one in list(signature(run).parameters.items())[1:]}

        def call(engine: Engine, args: Body) -> Body | Stream:
            values = {name: value(kind, name, args) for name, (kind, _) in taken.items() if name in args or whole(kind)}
            return body_of(gives, run(engine, **values))

        call.__name__, call.__doc__ = run.__name__, run.__doc__
        row = {"takes": takes(taken), "gives": either(reply(gives, optional or {}), FAILED), **more}
        native.operation(title, route=Route(method, f"{ROOT}{path}", status), **row)(call)
        return run

    return register


reads, writes = partial(row, changes=False), partial(row, changes=True)
revises = partial(writes, of_one_version=True)


def whole(kind: Any) -> bool:
    """Whether a parameter takes more than the argument of its name: all that are fields of a value, or simply all."""
    return is_dataclass(kind) or kind == Body


def value(kind: Any, name: str, args: Body) -> Any:
    if whole(kind):
        return args if kind == Body else filled(kind, args)
    return argument(plain_kind(kind), name, args[name])


def plain_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def takes(taken: dict[str, tuple[Any, Any]]) -> Schema:
    """What a function takes, from the types and defaults of its parameters."""
    properties: Schema = {}
    for name, (kind, default) in taken.items():
        one = isinstance(kind, type) and is_dataclass(kind)
        properties |= fields_of(kind) if one else {name: schema_of(kind, default)}
    needed = [name for name, (kind, default) in taken.items() if default is Parameter.empty and not whole(kind)]
    return object_schema(properties, required=needed)


def schema_of(kind: Any, default: Any) -> Schema:
    schema, description = dict(shape(plain_kind(kind))), {}
    for part in getattr(kind, "__metadata__", ()):
        if isinstance(part, str):
            description = {"description": part}
        else:
            schema |= part
    if default not in (Parameter.empty, None):
        schema.setdefault("default", shown(default))
    return schema | description


def reply(gives: Any, optional: Schema) -> Schema:
    """What a success looks like. A list of values may be cut, and says so."""
    if is_dataclass(gives):
        return record(shape(gives)["properties"], optional=optional)
    if "type" in gives:  # a whole schema
        return dict(gives)
    large = LARGE if any(get_origin(kind) is list for kind in gives.values()) else {}
    fields = {name: kind if isinstance(kind, dict) else shape(kind) for name, kind in gives.items()}
    return record(fields, optional={**optional, **large})


def body_of(gives: Any, result: Any) -> Body | Stream:
    if isinstance(result, Stream | dict):
        return result
    if is_dataclass(gives):
        return dict(shown(result))
    values = zip(gives, (result,) if len(gives) == 1 else result, strict=True)
    return {name: shown(list(one) if get_origin(gives[name]) is list else one) for name, one in values}
