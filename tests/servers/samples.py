"""Arguments for any operation, made from its schema: what every test over the whole table needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def sample(schema: Mapping[str, Any], words: Mapping[str, Any], *, everything: bool = False, name: str = "") -> Any:
    """A value that the schema allows, as far as types say it: what is required, or everything.

    `words` gives texts by a part of the field's name ("id": an id for memory_id, old_memory_id, ids …).
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for several in ("anyOf", "oneOf"):
        if several in schema and "properties" not in schema:
            return sample(schema[several][0], words, everything=everything, name=name)
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        properties = schema.get("properties", {})
        wanted = properties if everything else schema.get("required", ())
        return {one: sample(properties.get(one, {}), words, everything=everything, name=one) for one in wanted}
    if kind == "array":
        items = [sample(schema.get("items", {}), words, everything=everything, name=name)]
        return items * max(1, schema.get("minItems", 1))
    if kind in ("integer", "number"):
        return schema.get("default", schema.get("minimum", 1))
    if kind == "boolean":
        return schema.get("default", False)
    return text(schema, words, name)


def text(schema: Mapping[str, Any], words: Mapping[str, Any], name: str) -> str:
    if schema.get("format") == "date-time":
        return "2026-11-15T10:00:00Z"
    for part, word in words.items():
        if part in name:
            return word
    return "tea"
