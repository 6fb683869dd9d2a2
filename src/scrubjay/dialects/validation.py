"""Arguments against a JSON Schema: the first finding, said in a sentence a model can act on.

A message names the field, what was wrong and what is allowed; never the value, which may be a secret or a megabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

import jsonschema_rs

from scrubjay.errors import InvalidInput


class Checker:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)

    def check(self, arguments: Any) -> None:
        """:raises InvalidInput: for the first thing that the schema does not allow"""
        try:
            first = next(iter(self._validator.iter_errors(arguments)), None)
        except (UnicodeEncodeError, ValueError, OverflowError):  # not JSON at all: a lone surrogate, NaN, 2**64
            raise InvalidInput("The arguments hold something that JSON cannot carry.") from None
        if first is not None:
            raise explained(first, self._schema)


def explained(error: jsonschema_rs.ValidationError, schema: dict[str, Any]) -> InvalidInput:
    kind: Any = error.kind
    where = ".".join(str(step) for step in error.instance_path)
    if kind.name == "additionalProperties":
        return unknown_field(where, kind.unexpected[0], known_fields(schema, error.schema_path))
    if kind.name == "required":
        missing = f"{where}.{kind.property}" if where else kind.property
        return InvalidInput(f"{missing} is required.", field=missing)
    allowed = RULES.get(kind.name, lambda _: f"does not satisfy {kind.name}.")(kind)
    return InvalidInput(f"{where or 'arguments'} {allowed}", field=where or None)


RULES: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be of type {' or '.join(kind.types)}.",
    "enum": lambda kind: f"must be one of {', '.join(map(str, kind.options))}.",
    "minimum": lambda kind: f"must be at least {kind.limit}.",
    "maximum": lambda kind: f"must be at most {kind.limit}.",
    "minLength": lambda kind: f"must have at least {kind.limit} character{'s' * (kind.limit > 1)}.",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters.",
    "minItems": lambda kind: f"must have at least {kind.limit} items.",
    "maxItems": lambda kind: f"must have at most {kind.limit} items.",
    "minProperties": lambda kind: f"must have at least {kind.limit} field{'s' * (kind.limit > 1)}.",
    "format": lambda kind: f"must be a {kind.format}, such as 2026-11-15T10:00:00Z.",
}


def unknown_field(where: str, name: str, known: Sequence[str]) -> InvalidInput:
    full = writable(f"{where}.{name}" if where else name)[:100]
    near = get_close_matches(name, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known) or 'none'}."
    return InvalidInput(f"{full} is not known. {hint}", field=full)


def writable(text: str) -> str:
    """A name as somebody else chose it, without what no reply could carry."""
    return text.encode("utf-8", "replace").decode("utf-8")


def known_fields(schema: dict[str, Any], schema_path: Sequence[str | int]) -> list[str]:
    place: Any = schema
    for step in schema_path[:-1]:
        place = place[step]
    return list(place.get("properties", ()))
