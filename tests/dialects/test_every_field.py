"""Each field of each operation refuses what its schema does not allow, and the error names the field.

The cases are made from the schemas, for fields within fields as well: a required field that is missing or null, a value
of another type, one that is too long or short, too large or small, of another format or not among those allowed.
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
    cases += [
        ("empty", {}),
        ("too short", ""),
        ("too few", []),
        ("no such word", "no such word"),
        ("no field", {"x": 1}),
    ]
    return [(why, value) for why, value in cases if not jsonschema_rs.is_valid(schema, value)]


def places(schema, place=""):
    """Every field of arguments, however deep: `metadata.tags`, `memories[0].text`."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{place}{name}", inner
        yield from places(inner, f"{place}{name}.")
        items = inner.get("items", {})
        yield from places(items, f"{place}{name}[0].")


def put(schema, arguments, place, value):
    """The arguments with this value there; what it is in is made as needed."""
    name, _, rest = place.partition(".")
    if not rest:
        return {**arguments, name: value}
    listed = name.endswith("[0]")
    name = name.removesuffix("[0]")
    inner = schema["properties"][name]
    inner = inner["items"] if listed else inner
    changed = put(inner, smallest(inner), rest, value)
    return {**arguments, name: [changed] if listed else changed}


def cases():
    for name, operation in OPERATIONS:
        schema = operation.accepts or operation.takes
        for place, inner in places(schema):
            yield pytest.param(operation, schema, place, inner, id=f"{name}-{place}")


@pytest.mark.parametrize(("operation", "schema", "place", "inner"), list(cases()))
def test_a_field_refuses_what_its_schema_does_not_allow(operation, schema, place, inner):
    wrong = wrong_values(inner)

    for why, value in wrong:
        with pytest.raises(InvalidInput) as refused:
            operation.check(put(schema, smallest(schema), place, value))
        named = refused.value.details.get("field", "")
        assert named.startswith(place), (why, refused.value)
        assert place in refused.value.message, why
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


@pytest.mark.parametrize("operation", [pytest.param(operation, id=name) for name, operation in OPERATIONS])
def test_arguments_are_a_closed_object_that_every_model_takes(operation):
    assert operation.takes["type"] == "object"
    assert operation.takes["additionalProperties"] is False
    assert not {"oneOf", "anyOf", "allOf"} & set(operation.takes)
    for field in operation.takes["properties"].values():
        assert isinstance(field.get("required", []), list)  # as a word of a field it would mean nothing
