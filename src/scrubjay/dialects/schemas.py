"""Values and functions as JSON Schema: values of ours as callers see them, and back; operations made of functions.

What the store keeps for itself is left out of values: `seq` and `hlc` count everything that anyone writes, so they
would reveal to a caller how much others write in private.

A function's parameters are what its operation takes: a row has a title, what is given, perhaps a route.

    @reads("GET /memories/{id}/links", "List a memory's links", {"links": list[Link]})
    def list_links(engine: Engine, id: Id) -> Any:
        \"\"\"What a memory is linked to.\"\"\"
        return engine.links(id)

A parameter's type says what its argument may be, and `Annotated` adds to its schema, a text being its description; one
without a default is required. A parameter that is one of our values, such as a `Filter`, takes all arguments that are
its fields, and a `Body` takes the arguments as they came. A function returns the value of its field, or the values of
its fields in their order, or all of them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from functools import cache, partial
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import (
    PHRASES,
    TIME,
    WORDINGS,
    Body,
    Dialect,
    Reply,
    Route,
    Schema,
    Stream,
    array,
    either,
    object_schema,
    record,
)
from scrubjay.engine.engine import Engine
from scrubjay.engine.store import intake
from scrubjay.values.codec import build_value, plain
from scrubjay.values.times import parse_time

Value = TypeVar("Value")

PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: TIME,
    Any: {},
}


BOOKKEEPING = ("seq", "hlc", "origin")


def to_json(value: Any, *, leave_out: tuple[str, ...] = ()) -> Any:
    """A value as callers see it."""
    return plain(value, leave_out=(*BOOKKEEPING, *leave_out))


def shape(kind: Any) -> Schema:
    """What `shown` makes of a value of this type. What may be None may be left out."""
    return full_shape(kind, BOOKKEEPING)


@cache
def full_shape(kind: Any, leave_out: tuple[str, ...] = ()) -> Schema:
    """What `plain` makes of it."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin in (Union, UnionType):
        return full_shape(next(one for one in inner if one is not NoneType), leave_out)
    if origin in (tuple, list, Sequence, frozenset):
        return array(full_shape(inner[0], leave_out))
    if origin in (Mapping, dict):
        return {"type": "object", "additionalProperties": full_shape(inner[1], leave_out)}
    return words_of(kind) if issubclass(kind, Enum) else value_shape(kind, leave_out)


def words_of(kind: type[Enum]) -> Schema:
    if issubclass(kind, IntEnum):
        return {"type": "string", "enum": [one.name.lower() for one in kind]}
    return {**PLAIN[type(next(iter(kind)).value)], "enum": [one.value for one in kind]}


def value_shape(kind: type, leave_out: tuple[str, ...]) -> Schema:
    assert is_dataclass(kind), kind
    hints = get_type_hints(kind)
    names = [entry.name for entry in fields(kind) if entry.name not in leave_out]
    return object_schema(
        {name: full_shape(hints[name], leave_out) for name in names},
        required=[name for name in names if NoneType not in get_args(hints[name])],
    )


def fields_of(kind: type, *, without: tuple[str, ...] = ()) -> Schema:
    """The properties of a value that a caller may fill in; no list may be longer than any of ours needs."""
    properties: Schema = shape(kind)["properties"]
    return {
        name: {**schema, "maxItems": intake.MAX_NAMED} if schema.get("type") == "array" else schema
        for name, schema in properties.items()
        if name not in without
    }


def fill_value(kind: type[Value], args: Body, **more: Any) -> Value:
    """A value from those arguments that are its fields; their schemas have been checked."""
    given = {name: argument(inner, name, args[name]) for name, inner in get_type_hints(kind).items() if name in args}
    return kind(**{**given, **more})


def argument(kind: Any, name: str, raw: Any) -> Any:
    """An argument as a value of this type; its schema has been checked."""
    return build_value(kind, raw, partial(_leaf, name))


def _leaf(name: str, kind: Any, raw: Any) -> Any:
    if kind is datetime:
        return parse_time(raw, field=name)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[raw.upper()] if issubclass(kind, IntEnum) else kind(raw)
    return int(raw) if kind is int else raw  # 5.0 is a whole number in JSON


# --- operations made of functions -------------------------------------------------------------------------------------

Run = TypeVar("Run", bound=Callable[..., Any])
Phrases = Annotated[tuple[str, ...], PHRASES]
Wordings = Annotated[tuple[str, ...], WORDINGS]


def frame(failed: Schema, **always: Schema) -> Callable[[Schema, Schema], Schema]:
    """How a dialect's replies look: the fields that all of its successes have, those of an operation; or a failure."""
    return lambda properties, optional: either(record({**always, **properties}, optional=optional), failed)


@dataclass(frozen=True)
class Tools:
    """How functions become operations of a dialect."""

    dialect: Dialect
    gives: Callable[[Any, Schema], Schema]  # the fields of a reply, and optional ones -> its schema
    reply: Callable[[Body], Body] = dict  # the fields of a reply -> all of it
    show: Callable[[Any], Any] = to_json  # a value -> as JSON

    def row(
        self, title: str, gives: Any, *, optional: Schema | None = None, accepts: Schema | None = None, **more: Any
    ) -> Callable[[Run], Run]:
        """Register a function as an operation. `accepts` are fields that take more than what is advertised, or all
        that is taken instead; `more`: see `Operation`."""

        def register(run: Run) -> Run:
            hints = get_type_hints(run, include_extras=True)
            taken = {name: (hints[name], one.default) for name, one in list(signature(run).parameters.items())[1:]}

            def call(engine: Engine, args: Body) -> Body | Reply | Stream:
                named = [(name, kind) for name, (kind, _) in taken.items() if name in args or whole(kind)]
                result = run(engine, **{name: value(kind, name, args) for name, kind in named})
                return result if isinstance(result, Stream | Reply) else self.reply(self._fields(gives, result))

            call.__name__, call.__doc__ = run.__name__, run.__doc__
            said = gives if is_whole_reply(gives) else self.gives(gives, optional or {})
            row = {"takes": takes(taken), "gives": said, **more}
            if accepts is not None:
                row["accepts"] = accepts if is_schema(accepts) else with_fields(row["takes"], **accepts)
            self.dialect.operation(title, **row)(call)
            return run

        return register

    @property
    def reads(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.row, changes=False)

    @property
    def writes(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.row, changes=True)

    def _fields(self, gives: Any, result: Any) -> Body:
        if is_dataclass(gives):
            return dict(self.show(result))
        whole_reply = is_schema(gives) or is_whole_reply(gives)
        if isinstance(result, dict) and (whole_reply or gives.keys() <= result.keys()):  # or with optional fields
            return result
        values = zip(gives, (result,) if len(gives) == 1 else result, strict=True)
        return {name: self.show(list(one) if get_origin(gives[name]) is list else one) for name, one in values}


@dataclass(frozen=True)
class Rows(Tools):
    """How functions become operations with addresses of their own."""

    root: str = ""

    def at(self, route: str, title: str, gives: Any, *, status: int = 200, **more: Any) -> Callable[[Run], Run]:
        """Register a function as the operation at this address. `more`: see `Operation`."""
        method, path = route.split(" ")
        return self.row(title, gives, route=Route(method, f"{self.root}{path}", status), **more)

    @property
    def reads(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.at, changes=False)

    @property
    def writes(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.at, changes=True)


def is_whole_reply(gives: Any) -> bool:
    """Whether a schema describes a success and a failure, so that nothing is to be added."""
    return isinstance(gives, dict) and "anyOf" in gives


def is_schema(gives: Any) -> bool:
    """Whether the reply of an operation is described by a whole schema, instead of field by field."""
    return isinstance(gives, dict) and "properties" in gives


def whole(kind: Any) -> bool:
    """Whether a parameter takes more than the argument of its name: all that are fields of a value, or simply all."""
    return is_dataclass(kind) or kind == Body


def with_fields(schema: Schema, **more: Schema) -> Schema:
    """An object's schema with these fields, new ones or instead of those of the same name."""
    return {**schema, "properties": {**schema["properties"], **more}}


def value(kind: Any, name: str, args: Body) -> Any:
    if whole(kind):
        return args if kind == Body else fill_value(kind, args)
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
    if default not in (Parameter.empty, None, (), ""):
        schema.setdefault("default", to_json(default))
    return schema | description
