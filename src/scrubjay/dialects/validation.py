"""Checks arguments against a JSON Schema: the first finding, as a sentence a model can act on.

A message names the field, what was wrong and what is allowed; never the value, which may be a secret or a megabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jsonschema_rs

from scrubjay.errors import InvalidInput
from scrubjay.values.plain_json import place
from scrubjay.values.spelling import missing_field, nearest


class Checker:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def check(self, arguments: Any) -> Any:
        """The arguments without meaningless nulls.

        :raises InvalidInput: for the first thing that the schema does not allow
        """
        arguments = without_nulls(arguments, self._schema)
        try:
            self._validator.validate(arguments)  # stops at the first finding: a list may have a million more
        except jsonschema_rs.ValidationError as first:
            raise explain_mistake(first, self._schema, arguments) from None
        except (UnicodeEncodeError, ValueError, OverflowError):  # not JSON at all: a lone surrogate, NaN, 2**64
            raise InvalidInput("The arguments contain something that JSON cannot represent.") from None
        return arguments


def without_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """The value without null fields where the schema gives null no meaning.

    Many clients fill in every field they know; such a null means "not given". Fields that the schema does not
    describe, such as those of free metadata, are left as they are.
    """
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return {
            name: without_nulls(inner, known.get(name, {}))
            for name, inner in value.items()
            if inner is not None or name not in known or allows_null(known[name])
        }
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [without_nulls(inner, schema["items"]) for inner in value]
    return value


def allows_null(schema: dict[str, Any]) -> bool:
    return bool(jsonschema_rs.is_valid(schema, None))


def explain_mistake(error: jsonschema_rs.ValidationError, schema: dict[str, Any], arguments: Any) -> InvalidInput:
    kind: Any = error.kind
    where = place(error.instance_path)
    if kind.name in ("additionalProperties", "required"):
        here = at(schema, error.schema_path[:-1])
        return explain_name(where, kind, here, at(arguments, error.instance_path))
    allowed = RULES.get(kind.name, lambda _: f"does not satisfy {kind.name}.")(kind)
    return InvalidInput(f"{where or 'arguments'} {allowed}", field=where or None)


RULES: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be of type {' or '.join(kind.types)}.",
    "enum": lambda kind: f"must be one of {', '.join(map(str, kind.options))}.",
    "minimum": lambda kind: f"must be at least {kind.limit}.",
    "maximum": lambda kind: f"must be at most {kind.limit}.",
    "minLength": lambda kind: f"must have at least {kind.limit} character{'s' * (kind.limit > 1)}.",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters.",
    "minItems": lambda kind: f"must have at least {kind.limit} item{'s' * (kind.limit > 1)}.",
    "maxItems": lambda kind: f"must have at most {kind.limit} items.",
    "minProperties": lambda kind: f"must have at least {kind.limit} field{'s' * (kind.limit > 1)}.",
    "pattern": lambda kind: f"must match {kind.pattern}.",
    "format": lambda kind: f"must be a {kind.format}, such as 2026-11-15T10:00:00Z.",
}


def explain_name(where: str, kind: Any, schema: dict[str, Any], given: dict[str, Any]) -> InvalidInput:
    """The error for an unknown field, a missing one, or an unknown one given instead of a missing one."""
    known = list(schema.get("properties", ()))
    missing = [name for name in schema.get("required", ()) if name not in given]
    if kind.name == "required":
        name = kind.property
    else:
        unknown = kind.unexpected[0]
        name = nearest(unknown, known)
        if name not in missing:
            return unknown_field(where, unknown, known, name)
    full = f"{where}.{name}" if where else name
    return InvalidInput(missing_field(name, map(writable, given), known, within=where), field=full)


def unknown_field(where: str, name: str, known: Sequence[str], near: str | None) -> InvalidInput:
    full = writable(f"{where}.{name}" if where else name)[:100]
    hint = f"Did you mean {near}?" if near else f"Known: {', '.join(known) or 'none'}."
    return InvalidInput(f"{full} is not known. {hint}", field=full)


def writable(text: str) -> str:
    """A name chosen by a client, without what no reply could carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value
