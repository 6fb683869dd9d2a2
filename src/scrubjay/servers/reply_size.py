"""How large an answer may be: fewer items, best first, rather than a megabyte that no model can read; and how deep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from scrubjay.lazy import orjson

MAX_BYTES = 1_000_000  # of the body as JSON
MAX_LEVELS = 200  # of nesting that stay where an answer is nested too deeply …
ENVELOPE = 20  # … for the protocol's library: it writes 255 levels, some of them its own

Body = dict[str, Any]


def bound_body(body: Body, *, max_bytes: int = MAX_BYTES) -> Body:
    """The body, if it is small enough; otherwise with its largest list cut at the end, and how many items were cut.

    At least one item stays, and no item is ever altered: a body may remain too large rather than become wrong.
    """
    total = size(body)
    path = max(lists(body), key=lambda found: size(at(body, found)), default=None) if total > max_bytes else None
    if path is None:
        return body
    items = at(body, path)
    dropped = 0
    for kept in range(len(items) - 1, 0, -1):
        total -= size(items[kept]) + len(",")
        dropped += 1
        if total + len(f',"left_out":{dropped}') <= max_bytes:
            break
    return {**replace_list(body, path, items[: len(items) - dropped]), "left_out": dropped} if dropped else body


def shallow(body: Body) -> Body:
    """The body; what is nested too deeply for the protocol's library is included as JSON text.

    Callers can no longer store such values, but older stores may have them.
    """
    enveloped: Any = body
    for _ in range(ENVELOPE):
        enveloped = [enveloped]
    try:  # its limit is the library's, and checking level by level would cost as much as writing the answer
        orjson.dumps(enveloped, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # or a number beyond 64 bits, which the library writes
        return {name: _shallow(value, MAX_LEVELS) for name, value in body.items()}
    return body


def _shallow(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return {name: _shallow(inner, levels - 1) for name, inner in value.items()}
    return [_shallow(inner, levels - 1) for inner in value]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def lists(body: Body, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where lists are in a body; those inside items belong to their items."""
    for name, value in body.items():
        if isinstance(value, list):
            yield (*path, name)
        elif isinstance(value, dict):
            yield from lists(value, (*path, name))


def at(body: Body, path: tuple[str, ...]) -> Any:
    value: Any = body
    for name in path:
        value = value[name]
    return value


def replace_list(body: Body, path: tuple[str, ...], items: list[Any]) -> Body:
    first, *rest = path
    return {**body, first: replace_list(body[first], tuple(rest), items) if rest else items}
