"""The JSON Schema of a value, read from its type: what `engine.values.plain` writes; and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum, IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import Body, Schema, object_schema
from scrubjay.times import parse_time

Value = TypeVar("Value")

PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


@cache
def shape(kind: Any) -> Schema:  # noqa: PLR0911 -- one line per kind of type
    """What a value of this type is as JSON. What may be None may be left out."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return shape(next(one for one in inner if one is not NoneType))
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": shape(inner[0])}
    if origin is Mapping or origin is dict:
        return {"type": "object", "additionalProperties": {} if inner[1] is Any else shape(inner[1])}
    if origin is frozenset:
        return {"type": "array", "items": shape(inner[0])}
    if kind is Any:
        return {}
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return {"type": "string", "enum": [one.name.lower() for one in kind]}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {**PLAIN[type(next(iter(kind)).value)], "enum": [one.value for one in kind]}
    assert is_dataclass(kind), kind
    hints = get_type_hints(kind)
    return object_schema(
        {entry.name: shape(hints[entry.name]) for entry in fields(kind)},
        required=[entry.name for entry in fields(kind) if NoneType not in get_args(hints[entry.name])],
    )


def fields_of(kind: type, *, without: tuple[str, ...] = ()) -> Schema:
    """The properties of a value that a caller may fill in."""
    properties: Schema = shape(kind)["properties"]
    return {name: schema for name, schema in properties.items() if name not in without}


def filled(kind: type[Value], args: Body, **more: Any) -> Value:
    """A value from those arguments that are its fields; their schemas have been checked."""
    hints = get_type_hints(kind)
    given = {name: _read(hints[name], args[name], name) for name in hints if name in args}
    return kind(**{**given, **more})


def _read(kind: Any, raw: Any, name: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read(next(one for one in inner if one is not NoneType), raw, name)
    if origin in (tuple, frozenset):
        return origin(_read(inner[0], one, name) for one in raw)
    if kind is datetime:
        return parse_time(raw, field=name)
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return kind[raw.upper()]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(raw)
    return raw
