"""The JSON Schema of a value, read from its type: what `engine.values.plain` writes of it, no more and no less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import Schema, object_schema

PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}


@cache
def shape(kind: Any) -> Schema:
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
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {**PLAIN[type(next(iter(kind)).value)], "enum": [one.value for one in kind]}
    assert is_dataclass(kind), kind
    hints = get_type_hints(kind)
    return object_schema(
        {entry.name: shape(hints[entry.name]) for entry in fields(kind)},
        required=[entry.name for entry in fields(kind) if NoneType not in get_args(hints[entry.name])],
    )
