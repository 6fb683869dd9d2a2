"""Values of ours as callers see them: as JSON, the JSON Schema of that, read from the type; and back.

What the store keeps for itself is left out: `seq` and `hlc` count everything that anyone writes, so they would reveal
to a caller how much others write in private.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import Body, Schema, array, object_schema
from scrubjay.engine.store import intake
from scrubjay.values.codec import build_value, plain
from scrubjay.values.times import parse_time

Value = TypeVar("Value")

PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


BOOKKEEPING = ("seq", "hlc", "origin")


def to_json(value: Any, *, leave_out: tuple[str, ...] = ()) -> Any:
    """A value as callers see it."""
    return plain(value, leave_out=(*BOOKKEEPING, *leave_out))


def shape(kind: Any) -> Schema:
    """What `shown` makes of a value of this type. What may be None may be left out."""
    return full_shape(kind, BOOKKEEPING)


@cache
def full_shape(kind: Any, leave_out: tuple[str, ...] = ()) -> Schema:  # noqa: PLR0911 -- one line per kind of type
    """What `plain` makes of it."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return full_shape(next(one for one in inner if one is not NoneType), leave_out)
    if origin in (tuple, list, Sequence):
        return array(full_shape(inner[0], leave_out))
    if origin is Mapping or origin is dict:
        return {"type": "object", "additionalProperties": {} if inner[1] is Any else full_shape(inner[1], leave_out)}
    if origin is frozenset:
        return array(full_shape(inner[0], leave_out))
    if kind is Any:
        return {}
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return {"type": "string", "enum": [one.name.lower() for one in kind]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {**PLAIN[type(next(iter(kind)).value)], "enum": [one.value for one in kind]}
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
