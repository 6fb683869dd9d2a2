"""An OpenAPI 3.1 document built from the table of operations, complete and always up to date.

OpenAPI 3.1 takes JSON Schema as it is, so it includes an operation's schemas word for word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import Any

import orjson
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from scrubjay import __version__
from scrubjay.dialects.base import COUNT, MAX_KEY, Dialect, Operation, Schema, object_schema
from scrubjay.servers.http.rest import IN_QUERY, Address, addresses

Document = dict[str, Any]

INTRODUCTION = """\
Long-term memory for AI agents: one memory, five dialects. Every tool of every dialect is also an address here.

Choose the space with `?space=` or `X-Scrubjay-Space`. Once a key exists, every request needs one. A write with an
`Idempotency-Key` is done once, however often it is sent. Callers with a key are rate-limited; every reply says how many
calls are left. A POST without a key in a header needs `Content-Type: application/json`, even without a body.
"""
NAMES = {400: "Bad input", 401: "No credential", 403: "Not allowed", 404: "Not found", 405: "Method not allowed",
         408: "The body arrived too slowly", 409: "Not in the expected state", 413: "Too large",
         415: "Unsupported content type", 421: "Unknown host",
         422: "Cannot be done to this memory", 423: "Locked", 429: "Too many calls", 500: "Internal error",
         502: "The language model did not answer", 503: "Try again later", 507: "No space left"}  # fmt: skip
EVERY_REPLY = {
    name: {"$ref": f"#/components/headers/{name}"}
    for name in ("X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
}
PLAIN_ERROR = {"$ref": "#/components/schemas/Error"}


def description(dialects: Sequence[Dialect]) -> Callable[[Request], Awaitable[Response]]:
    """The route that serves it, whole or of one dialect; each is built once, on first use."""
    by_name = {one.name: one for one in dialects}

    @cache
    def made(name: str | None) -> bytes:
        return orjson.dumps(document(dialects) if name is None else document([by_name[name]], site={}))

    async def show(request: Request) -> Response:
        name = request.path_params.get("dialect")
        if name is not None and name not in by_name:
            raise HTTPException(404)
        return Response(await run_sync(made, name), media_type="application/json")

    return show


def document(dialects: Sequence[Dialect], *, site: Document | None = None) -> Document:
    paths: dict[str, Document] = {}
    linked = links_of(dialects)
    for address in addresses(dialects):
        path = re.sub(r"\{(\w+):path\}", r"{\1}", address.path)
        paths.setdefault(path, {})[address.method.lower()] = operation(address, linked)
    paths, schemas = with_shared_schemas({**paths, **(SITE if site is None else site)})
    failures = share_failures(paths)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "scrubjay",
            "version": __version__,
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "security": [{"key": []}, {"bearer": []}, {"session": []}, {}],
        "tags": [{"name": one.name, "description": one.title} for one in dialects],
        "paths": paths,
        "components": {**COMPONENTS, "schemas": {**COMPONENTS["schemas"], **schemas}, "responses": failures},
    }


def with_shared_schemas(paths: Document) -> tuple[Document, Document]:
    """The same with every long part that comes twice written once, and those parts by their names.

    Most of the whole is how each dialect's errors look, once per operation and status.
    """
    counts: Counter[bytes] = Counter()
    names: dict[bytes, str] = {}
    schemas: Document = {}

    def count(value: Any) -> None:
        if isinstance(value, dict):
            key = orjson.dumps(value)
            counts[key] += 1
            if counts[key] > 1:  # what is inside is written only once with it
                return
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            count(inner)

    def shared(value: Any, *, whole: bool = True) -> Any:
        if isinstance(value, list):
            return [shared(inner) for inner in value]
        if not isinstance(value, dict):
            return value
        key = orjson.dumps(value)
        if not whole or counts[key] < 2 or len(key) < WORTH_SHARING or not SCHEMA_WORDS & value.keys():
            return {name: shared(inner, whole=name != "properties") for name, inner in value.items()}
        if key not in names:
            names[key] = f"Shared{len(names) + 1}"
            schemas[names[key]] = {name: shared(inner, whole=name != "properties") for name, inner in value.items()}
        return {"$ref": f"#/components/schemas/{names[key]}"}

    def within(value: Any, act: Callable[[Any], Any]) -> Any:
        """The document with every schema in it replaced."""
        if isinstance(value, list):
            return [within(inner, act) for inner in value]
        if not isinstance(value, dict):
            return value
        return {name: act(inner) if name == "schema" else within(inner, act) for name, inner in value.items()}

    within(paths, count)
    return within(paths, shared), schemas


def share_failures(paths: Document) -> Document:
    """Every answer that is an error by a name of its own, which takes its place in these paths."""
    named: dict[bytes, str] = {}
    failures: Document = {}
    for methods in paths.values():
        for one in methods.values():
            for status, answer in one["responses"].items():
                if not status.startswith("2"):
                    name = named.setdefault(orjson.dumps([status, answer]), f"Failure{status}-{len(named) + 1}")
                    failures[name] = answer
                    one["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return failures


WORTH_SHARING = 120  # bytes; a reference has 40
SCHEMA_WORDS = frozenset({"type", "anyOf", "enum", "properties"})


# --- one operation ---------------------------------------------------------------------------------------------------


def operation(address: Address, linked: dict[str, list[tuple[str, str, str]]]) -> Document:
    asked = address.operation
    takes = asked.accepts or asked.takes
    in_path = re.findall(r"\{(\w+)(?::path)?\}", address.path)
    described: Document = {
        "operationId": operation_id(address),
        "summary": asked.title,
        "description": asked.description,
        "tags": [address.dialect.name],
        "parameters": [
            *(parameter(name, "path", takes, required=True) for name in in_path),
            {"$ref": "#/components/parameters/space"},
            {"$ref": "#/components/parameters/X-Scrubjay-Space"},
        ],
        "responses": responses(address, linked),
    }
    rest = {name: schema for name, schema in takes.get("properties", {}).items() if name not in in_path}
    if address.method in IN_QUERY:
        needed = takes.get("required", ())
        described["parameters"] += [parameter(name, "query", takes, required=name in needed) for name in rest]
    else:
        described["requestBody"] = body(takes, rest, in_path)
    if asked.changes:
        described["parameters"] += [
            {"$ref": f"#/components/parameters/{name}"} for name in ("Idempotency-Key", "X-Idempotency-Key", "If-Match")
        ]
    return described


def operation_id(address: Address) -> str:
    asked = address.operation
    earlier = ".earlier" if asked.earlier is not None and address.path == asked.earlier.path else ""
    return f"{address.dialect.name}.{asked.name}{earlier or ('.route' if address.specified else '')}"


def parameter(name: str, place: str, takes: Schema, *, required: bool) -> Document:
    schema = takes.get("properties", {}).get(name, {"type": "string"})
    described: Document = {"name": name, "in": place, "required": required, "schema": schema}
    if "description" in schema:
        described["description"] = schema["description"]
    return described


def body(takes: Schema, properties: Schema, in_path: Sequence[str]) -> Document:
    needed = [name for name in takes.get("required", ()) if name not in in_path]
    schema = {**takes, "properties": properties, "required": needed}
    if not needed:
        del schema["required"]
    return {"required": bool(needed), "content": {"application/json": {"schema": schema}}}


def responses(address: Address, linked: dict[str, list[tuple[str, str, str]]]) -> Document:
    ok, error = outcomes(address.operation)
    success: Document = {
        "description": "Done",
        "headers": EVERY_REPLY,
        "content": {"application/json": {"schema": ok}},
    }
    if address.operation.streams is not None:
        success["content"] = {str(address.operation.streams): {}, **success["content"]}
    links = {
        f"{target}.{argument}": {"operationId": target, "requestBody": {argument: f"$response.body#/{pointer}"}}
        for target, argument, pointer in linked.get(operation_id(address), ())
    }
    if links:
        success["links"] = links
    # What comes before every dialect (Host, Origin, size, method) answers with its own error body.
    failed = {"content": {"application/json": {"schema": {"anyOf": [error, PLAIN_ERROR]}}}, "headers": EVERY_REPLY}
    retried = {**failed, "headers": {**EVERY_REPLY, "Retry-After": {"$ref": "#/components/headers/Retry-After"}}}
    return {
        str(address.status): success,
        **{
            str(status): {"description": name, **(retried if status in (423, 429, 502, 503, 507) else failed)}
            for status, name in NAMES.items()
        },
    }


def outcomes(asked: Operation) -> tuple[Schema, Schema]:
    """What a success and a failure look like."""
    either = asked.gives.get("anyOf")
    if either is None:
        return asked.gives, asked.gives
    return either[0], either[1] if len(either) == 2 else {"anyOf": either[1:]}


def links_of(dialects: Sequence[Dialect]) -> dict[str, list[tuple[str, str, str]]]:
    """What can be done with the memory that an operation made: by the names in its reply and in others' arguments."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for dialect in dialects:
        by_id = [one for one in dialect.operations.values() if "memory_id" in one.takes.get("properties", {})]
        for made in dialect.operations.values():
            shown = outcomes(made)[0].get("properties", {})
            if made.changes and not made.destructive and "memory_id" in shown and dialect.tools:
                found[f"{dialect.name}.{made.name}"] = [
                    (f"{dialect.name}.{one.name}", "memory_id", "memory_id") for one in by_id
                ]
    return found


# --- what is the same for all ----------------------------------------------------------------------------------------


def plain(summary: str, content: Document, *, status: str = "200", open_to_all: bool = False, **more: Any) -> Document:
    failures = {
        code: {"description": NAMES[int(code)], "content": {"application/json": {"schema": PLAIN_ERROR}}}
        for code in ("400", "401", "403", "405", "408", "413", "415", "421", "429", "500", "503")
    }
    return {
        "summary": summary,
        "tags": ["site"],
        **({"security": []} if open_to_all else {}),
        **more,
        "responses": {**failures, status: {"description": "Done", "content": content}},
    }


def json_of(schema: Schema) -> Document:
    return {"application/json": {"schema": schema}}


OPEN = partial(object_schema, closed=False)
STATUS = OPEN({"status": {"const": "ok"}}, required=["status"])
READY = OPEN({"status": {"const": "ok"}, "archive": {"const": "unavailable"}}, required=["status"])
WHO = {
    "user": {"type": "string"},
    "role": {"enum": ["owner", "member", "reader"]},
    "local": {"type": "boolean", "description": "Whether it is the owner of this machine"},
    "spaces": {"type": ["array", "null"], "items": {"type": "string"}},
    "csrf_token": {"type": ["string", "null"]},
}
ERROR = {"code": {"type": "string"}, "message": {"type": "string"}}
SITE: Document = {
    "/healthz": {"get": plain("The process is alive", json_of(STATUS), open_to_all=True)},
    "/readyz": {"get": plain("Its store answers", json_of(READY), open_to_all=True)},
    "/metrics": {"get": plain("Metrics for Prometheus", {"text/plain": {}})},
    "/openapi.json": {"get": plain("This document", {"application/json": {}})},
    "/openapi/{dialect}.json": {
        "get": plain(
            "This document for one dialect",
            {"application/json": {}},
            parameters=[{"name": "dialect", "in": "path", "required": True, "schema": {"type": "string"}}],
        )
    },
    "/docs": {"get": plain("This document, for reading", {"text/html": {}})},
    "/session": {"get": plain("Who I am", json_of(OPEN(WHO, required=list(WHO))))},
    "/sign-in": {
        "get": plain("The sign-in form", {"text/html": {}}, open_to_all=True),
        "post": plain(
            "Sign in on the page",
            json_of(STATUS),
            open_to_all=True,
            requestBody={
                "required": True,
                "content": json_of(
                    {
                        "type": "object",
                        "oneOf": [{"required": ["key"]}, {"required": ["user", "password"]}],
                        "properties": {name: {"type": "string"} for name in ("key", "user", "password")},
                    }
                ),
            },
        ),
    },
    "/sign-out": {"post": plain("Sign out", json_of(STATUS))},
}
SPACE = {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 100}
ONCE = "Do this write only once: sent again within a day, it gets the same answer."
KEY = {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$"}
VERSION = {"type": "string", "pattern": '^(\\*|"?[1-9][0-9]{0,8}"?)$'}


def build_parameter(name: str, place: str, description: str, schema: Schema) -> Document:
    return {"name": name, "in": place, "description": description, "schema": schema}


COMPONENTS: Document = {
    "securitySchemes": {
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "bearer": {"type": "http", "scheme": "bearer", "description": "A key, or a token of the configured issuer."},
        "session": {"type": "apiKey", "in": "cookie", "name": "scrubjay_session"},
    },
    "schemas": {"Error": OPEN({"error": OPEN(ERROR, required=list(ERROR))}, required=["error"])},
    "parameters": {
        "space": build_parameter("space", "query", "The space to use.", SPACE),
        "X-Scrubjay-Space": build_parameter(
            "X-Scrubjay-Space", "header", "The same, as a header; ?space= takes precedence.", SPACE
        ),
        **{name: build_parameter(name, "header", ONCE, KEY) for name in ("Idempotency-Key", "X-Idempotency-Key")},
        "If-Match": build_parameter(
            "If-Match", "header", "Make this change only to this version of the memory.", VERSION
        ),
    },
    "headers": {
        "X-Request-Id": {"schema": {"type": "string"}, "description": "The request's id in the log."},
        "X-RateLimit-Limit": {"schema": COUNT, "description": "Calls per minute, for callers with a key."},
        "X-RateLimit-Remaining": {"schema": COUNT, "description": "Calls left in this window."},
        "X-RateLimit-Reset": {"schema": COUNT, "description": "When the next window begins, in Unix seconds."},
        "Retry-After": {"schema": COUNT, "description": "Seconds to wait before trying again."},
    },
}
