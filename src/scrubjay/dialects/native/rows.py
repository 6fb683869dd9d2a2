"""The native table, and what many of its rows take and give.

Replies are the engine's own values as JSON, so their schemas are read from the types; what is None is left out.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import partial
from typing import Annotated, Any, get_origin

from scrubjay.dialects.base import LEFT_OUT, SOME, Body, Dialect, Reach, Schema, array, either, present, record, text
from scrubjay.dialects.schemas import Rows, is_schema, shape, to_json
from scrubjay.errors import Error

OWNER, LOCAL = Reach.OWNER, Reach.LOCAL


def error_body(error: Error, _operation: str) -> Body:
    details = {name: to_json(value) for name, value in error.details.items() if value is not None}
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
ID = text("A memory's id, in any form", **SOME)
REASON = text("Reason, kept in the history", minLength=1, maxLength=1000)
Id = Annotated[str, ID]
Text = Annotated[str, SOME]
Name = Annotated[str, {"minLength": 1, "maxLength": 100}]
Reason = Annotated[str | None, REASON]
Limit = Annotated[int, {"minimum": 1, "maximum": 1000}]
Spaces = Annotated[list[str] | None, array(text(), minItems=1, maxItems=100)]
Offset = Annotated[int, {"minimum": 0, "maximum": 1_000_000}]


def success(gives: Any, optional: Schema) -> Schema:
    """What a success looks like. A list of values may be cut, and says so."""
    if is_dataclass(gives):
        return record(shape(gives)["properties"], optional=optional)
    if is_schema(gives):
        return dict(gives)
    large = LARGE if any(get_origin(kind) is list for kind in gives.values()) else {}
    fields = {name: kind if isinstance(kind, dict) else shape(kind) for name, kind in gives.items()}
    return record(fields, optional={**optional, **large})


rows = Rows(native, lambda gives, optional: either(success(gives, optional), FAILED), root="/api/v1")
reads, writes = rows.reads, rows.writes
revises = partial(writes, of_one_version=True)
