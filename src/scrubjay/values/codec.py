"""Values of ours as JSON and back: results that are kept, what travels between stores, what callers are shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from scrubjay.values.memory import Memory
from scrubjay.values.times import iso

Value = TypeVar("Value")
ReadLeaf = Callable[[Any, Any], Any]  # (type, JSON) -> value


def plain(value: Any, *, leave_out: tuple[str, ...] = (), nulls: bool = False) -> Any:  # noqa: PLR0911 -- one line per kind of value
    """A value as JSON: names of fields, words of enums, times in UTC; what is None is left out.

    `leave_out` names fields of values, however deep; what mappings hold is data and stays.
    """
    # Called by its own name at each step: anything between would take a part of the depth that data may have.
    if is_dataclass(value):
        named = ((entry.name, getattr(value, entry.name)) for entry in fields(value) if entry.name not in leave_out)
        return {name: plain(one, leave_out=leave_out, nulls=nulls) for name, one in named if nulls or one is not None}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        # An enum's word is not yet plain text.
        return {str(name): plain(one, leave_out=leave_out, nulls=nulls) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, leave_out=leave_out, nulls=nulls) for one in value]
    if isinstance(value, frozenset):
        return sorted(plain(one, leave_out=leave_out, nulls=nulls) for one in value)
    return value


def write_json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def read(kind: type[Value], text: str) -> Value:
    """The value of this type that `written` made the text from."""
    return build_value(kind, json.loads(text))


def build_value(kind: type[Value], raw: Any, read_leaf: ReadLeaf | None = None) -> Value:
    """The value of this type that `plain` made the JSON from; `read_leaf` reads times and enums in another spelling."""
    result: Value = _build(kind, raw, read_leaf or _leaf)
    return result


def memories_in(value: Any) -> Iterator[Memory]:
    """All memories that a value holds."""
    if isinstance(value, Memory):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from memories_in(one)
    elif is_dataclass(value):
        for entry in fields(value):
            yield from memories_in(getattr(value, entry.name))


def _build(kind: Any, raw: Any, read_leaf: ReadLeaf) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if raw is None else _build(next(one for one in inner if one is not NoneType), raw, read_leaf)
    if origin is tuple:
        each = [inner[0]] * len(raw) if inner[1:] == (...,) else inner
        return tuple(_build(one, value, read_leaf) for one, value in zip(each, raw, strict=True))
    if origin is frozenset:
        return frozenset(_build(inner[0], value, read_leaf) for value in raw)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        given = {name: _build(hints[name], value, read_leaf) for name, value in raw.items()}
        # `plain` leaves None out, so a field without a default that is not there was None.
        missing = {entry.name: None for entry in fields(kind) if entry.name not in given and _is_needed(entry)}
        return kind(**given, **missing)
    return read_leaf(kind, raw)


def _leaf(kind: Any, raw: Any) -> Any:
    if kind is datetime:
        return datetime.fromisoformat(raw)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(raw)
    return raw


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _is_needed(entry: Any) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING
