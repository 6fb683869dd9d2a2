"""Each field of each operation refuses what its schema does not allow, and the error names the field.

The cases are made from the schemas: a required field that is missing or null, a value of another type, one that is too
long, too large or not among those allowed.
"""

from __future__ import annotations

import math

import jsonschema_rs
import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.errors import InvalidInput

OPERATIONS = [
    (f"{dialect}-{name}", operation)
    for dialect in [*DIALECTS, *ONLY_REST]
    for name, operation in find(dialect).operations.items()
]
KINDS = {"a text": "text", "a number": 0.5, "a yes or no": True, "a list": [[]], "an object": {"no such": {}}}


def smallest(schema):
    """A value that the schema allows, as small as it can be."""
    if "const" in schema or "enum" in schema:
        return schema.get("const", next(iter(schema.get("enum", ()))))
    if "anyOf" in schema or "oneOf" in schema:
        return smallest((schema.get("anyOf") or schema["oneOf"])[0])
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        properties = schema.get("properties", {})
        names = [*schema.get("required", ()), *properties][
            : max(len(schema.get("required", ())), schema.get("minProperties", 0))
        ]
        return {name: smallest(properties[name]) for name in names}
    if kind == "array":
        return [smallest(schema.get("items", {}))] * schema.get("minItems", 0)
    if kind in ("number", "integer"):
        return max(schema.get("minimum", 0), 0)
    texts = (
        "x" * max(schema.get("minLength", 1), 1),
        "mem_000000000000",
        "2026-11-19T10:00:00Z",
        "a/b",
        "https://a.example",
    )
    return {"boolean": False, "null": None}.get(kind) if kind != "string" else fitting(schema, texts)


def fitting(schema, values):
    return next((value for value in values if jsonschema_rs.is_valid(schema, value, validate_formats=True)), values[0])


def wrong_values(schema):
    """What the schema of a field does not allow, and what is wrong with it."""
    cases = list(KINDS.items())
    if "maxLength" in schema:
        cases.append(("too long", "x" * (schema["maxLength"] + 1)))
    if "maxItems" in schema:
        cases.append(("too many", [smallest(schema.get("items", {}))] * (schema["maxItems"] + 1)))
    cases += [("too large", schema["maximum"] + 1)] if "maximum" in schema else []
    cases += [("too small", schema["minimum"] - 1)] if "minimum" in schema else []
    return [(why, value) for why, value in cases if not jsonschema_rs.is_valid(schema, value)]


def cases():
    for name, operation in OPERATIONS:
        schema = operation.accepts or operation.takes
        for field, inner in schema["properties"].items():
            yield pytest.param(operation, schema, field, inner, id=f"{name}-{field}")


@pytest.mark.parametrize(("operation", "schema", "field", "inner"), list(cases()))
def test_a_field_refuses_what_its_schema_does_not_allow(operation, schema, field, inner):
    wrong = wrong_values(inner)

    for why, value in wrong:
        with pytest.raises(InvalidInput) as refused:
            operation.check({**smallest(schema), field: value})
        named = refused.value.details.get("field", "")
        assert named.split(".")[0].split("[")[0] == field, (why, refused.value)
        assert field in refused.value.message, why
        assert "satisfy" not in refused.value.message, why  # what is allowed is said
        assert len(refused.value.message) < 1_000, why  # what was wrong is not repeated at length

    assert wrong or inner == {} or math.inf in inner.values() or set(inner) <= {"description", "default"}


@pytest.mark.parametrize(
    ("operation", "schema", "field"),
    [
        pytest.param(operation, operation.accepts or operation.takes, field, id=f"{name}-{field}")
        for name, operation in OPERATIONS
        for field in (operation.accepts or operation.takes).get("required", ())
    ],
)
def test_a_required_field_must_be_there(operation, schema, field):
    arguments = smallest(schema)
    operation.check(arguments)
    null_has_a_meaning = jsonschema_rs.is_valid(schema["properties"][field], None)

    for missing in [{name: one for name, one in arguments.items() if name != field}, {**arguments, field: None}]:
        if field in missing and null_has_a_meaning:
            continue
        with pytest.raises(InvalidInput, match=rf"^{field} is required") as refused:
            operation.check(missing)
        assert refused.value.details["field"] == field
