"""Every operation over REST, from the same table as MCP.

    POST /api/{dialect}/{tool}       every tool of every dialect; the body is the tool's arguments
    {method} {path of its route}     where an operation has an address of its own

A request's path, query and JSON body together are the arguments; a name may come from one of them only. The answer is
the dialect's own body, with the status of its error. `Admission` has already decided who calls, and in which space.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from scrubjay import errors
from scrubjay.dialects.base import Body, Dialect, Operation, Pieces, Reply, Schema, Stream
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput, RateLimited, Unauthenticated
from scrubjay.servers.calls import (
    MAX_BYTES,
    MAX_CLIENT_NAME,
    Call,
    Service,
    bound_body,
    expected_version,
    fault,
    idempotency_key,
)
from scrubjay.servers.http.guard import Refusal, failure
from scrubjay.servers.http.rate_limits import Rate
from scrubjay.servers.http.streams import Last, OpenStream, Streams
from scrubjay.servers.stdio.frames import whole_number
from scrubjay.values.frozen import dataclass

# The status of each kind of error; an error gets that of its nearest base class.
STATUSES: dict[type[Error], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.QueryTooComplex: 413,
    errors.NoSuchAddress: 404,
    errors.WrongMethod: 405,
    errors.TooSlow: 408,
    errors.TooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.Misdirected: 421,
    errors.Unprocessable: 422,
    errors.Locked: 423,
    RateLimited: 429,
    errors.Internal: 500,
    Error: 500,
    errors.ProviderError: 502,
    errors.ArchiveUnavailable: 503,
    errors.EndpointUnreachable: 503,
    errors.EmbeddingError: 503,
    errors.StorageBusy: 503,
    errors.TimedOut: 503,
    errors.StorageFull: 507,
    errors.QuotaExceeded: 507,
}
TRY_AGAIN_SECONDS = 1  # after a transient error

IN_QUERY = frozenset({"GET", "DELETE"})  # methods that take arguments from the query, the others from a body
SPACE = "space"  # in every query: the space to use; never an argument


@dataclass(frozen=True, slots=True)
class Address:
    """An operation at a method and a path."""

    method: str
    path: str
    dialect: Dialect
    operation: Operation
    status: int

    @property
    def specified(self) -> bool:
        """Whether the dialect's specification names it; the others are ours."""
        return self.dialect.tools and self.path != f"/api/{self.dialect.name}/{self.operation.name}"


def addresses(dialects: Sequence[Dialect]) -> Iterator[Address]:
    """Where every operation is found, in the table's order."""
    for dialect in dialects:
        for operation in dialect.operations.values():
            if dialect.tools:
                yield Address("POST", f"/api/{dialect.name}/{operation.name}", dialect, operation, 200)
            for route in (operation.route, operation.earlier):
                if route is not None:
                    yield Address(route.method, route.path, dialect, operation, route.status)


def rest_routes(dialects: Sequence[Dialect], service: Service, streams: Streams) -> list[Route]:
    """One route per path, ordered so that none hides another: those without arguments first."""
    by_path: dict[str, dict[str, Address]] = {}
    for address in addresses(dialects):
        by_path.setdefault(address.path, {})[address.method] = address
    plain_first = sorted(by_path, key=lambda path: (":path}" in path, path.count("{")))
    return [Route(path, endpoint=Endpoint(by_path[path], service, streams)) for path in plain_first]


def address_of(routes: Sequence[Route], scope: Scope) -> Address | None:
    """The operation that a request is for, if any; with a wrong method, any operation at the same path."""
    for route in routes:
        if isinstance(route.endpoint, Endpoint) and route.matches(scope)[0] is not Match.NONE:
            return route.endpoint.address(scope["method"]) or route.endpoint.any_address
    return None


class Endpoint:
    """One path: an ASGI app that answers the methods it has operations for."""

    def __init__(self, by_method: Mapping[str, Address], service: Service, streams: Streams) -> None:
        self._by_method = by_method
        self._service = service
        self._streams = streams

    def address(self, method: str) -> Address | None:
        return self._by_method.get("GET" if method == "HEAD" else method)

    @property
    def any_address(self) -> Address:
        return next(iter(self._by_method.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = self.address(scope["method"])
        if address is None:
            response = refuse_outside(self.any_address.dialect, method_not_allowed(self._by_method))
            return await response(scope, receive, send)
        request = Request(scope, receive)
        request.state.route = address.path
        if address.operation.streams is None:
            return await (await self._answer(address, request, None))(scope, receive, send)
        try:
            with self._streams.opening(request.state.engine.caller) as opened:
                await (await self._answer(address, request, opened))(scope, receive, send)
        except RateLimited as error:
            await refuse(address, error)(scope, receive, send)

    async def _answer(self, address: Address, request: Request, opened: OpenStream | None) -> Response:
        engine: Engine = request.state.engine
        if request.state.names_space and not address.operation.changes:  # it is about that space
            engine = engine.bound_to(only=True, narrowed=not engine.only)
        try:
            call = await call_of(address, request)
        except Error as error:
            return refuse(address, error)
        except ClientDisconnect:
            return Response(status_code=400)  # the client has left

        def shape(reply: Reply, rate: Rate | None) -> Response:
            request.state.rate = rate or request.state.rate
            if reply.stream is not None and opened is not None:
                return stream_reply(address, reply.stream, self._streams, opened)
            return respond(address, reply)

        return await self._service.answer(call, lambda: engine, shape, user=engine.caller.user)


# --- requests --------------------------------------------------------------------------------------------------------


async def call_of(address: Address, request: Request) -> Call:
    """:raises InvalidInput: naming what cannot be read"""
    return Call(
        dialect=address.dialect,
        operation=address.operation.name,
        arguments=await arguments_of(address, request),
        client=client_name(request.headers),
        transport="http",
        key=idempotency_key(request.headers),
        if_version=expected_version(request.headers),
        request_id=request.state.request_id,
    )


async def arguments_of(address: Address, request: Request) -> Body:
    properties = (address.operation.accepts or address.operation.takes).get("properties", {})
    given = {name: read_text(text, properties.get(name, {})) for name, text in request.path_params.items()}
    query = [name for name in dict.fromkeys(request.query_params) if name != SPACE]
    if address.method in IN_QUERY:
        more = {name: read_query(request.query_params.getlist(name), properties.get(name, {})) for name in query}
    elif query:
        raise InvalidInput(f"{query[0][:100]} must be sent in the body, not in the query string.", field=query[0][:100])
    else:
        more = read_body(request.headers, await request.body())
    for name in more:
        if name in given:
            raise InvalidInput(f"{name} is already in the path.", field=name)
    return {**given, **more}


def read_body(headers: Headers, body: bytes) -> Body:
    if not body:
        return {}
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise InvalidInput("The body must be JSON.", hint="Send Content-Type: application/json.")
    value = parse_json(body)
    if not isinstance(value, dict):
        raise InvalidInput("The body must be a JSON object.")
    return value


# As many digits as a number beyond 64 bits has, which orjson would round.
MANY_DIGITS = re.compile(rb"[0-9]{19}")


def parse_json(body: bytes) -> Any:
    """JSON with every number exact. What only a lenient parser accepts (NaN, 1e999, a lone surrogate) is read as well:
    `plain_json.check` refuses it and says where it is.

    :raises InvalidInput: if it is not JSON at all
    """
    if MANY_DIGITS.search(body) is None:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(body)
    try:
        return json.loads(body.decode(), parse_int=whole_number)
    except (ValueError, RecursionError):
        raise InvalidInput("The body is not JSON in UTF-8.") from None


def read_query(texts: Sequence[str], schema: Schema) -> Any:
    """An argument from the query: repeated for a list, otherwise once."""
    if "array" in types_of(schema):
        return [read_text(text, schema.get("items", {})) for text in texts]
    return read_text(texts[0], schema) if len(texts) == 1 else list(texts)


def read_text(text: str, schema: Schema) -> Any:
    """The number or boolean that the schema wants, if the text is one; otherwise the text, for the schema to reject."""
    types = types_of(schema)
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    if types & {"integer", "number"} and re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    if "number" in types and re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text):
        return float(text)
    return text


def types_of(schema: Schema) -> set[str]:
    kind = schema.get("type", ())
    return {kind} if isinstance(kind, str) else set(kind)


def client_name(headers: Headers) -> str:
    """Read the client's name from X-Client (a page cannot choose its User-Agent), else the first word of User-Agent."""
    name = (headers.get("x-client") or headers.get("user-agent", "")).strip().split("/")[0].split(" ")[0]
    return name[:MAX_CLIENT_NAME] if name.isprintable() and name else "unknown"


# --- replies ---------------------------------------------------------------------------------------------------------


def status_of(error: Error) -> int:
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def respond(address: Address, reply: Reply) -> Response:
    """Send the reply as JSON, with fewer items where it would be too large."""
    body = write_json(reply.body)
    if len(body) > MAX_BYTES:
        body = write_json(bound_body(reply.body))
    if reply.error is None:
        beside = {"scrubjay-notices": json.dumps(reply.notices)} if reply.notices else None  # ASCII, as headers are
        return Response(body, address.status, beside, "application/json")
    return Response(body, status_of(reply.error), headers_of(reply.error), "application/json")


def write_json(value: Any) -> bytes:
    """Write JSON, whatever a store contains."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)  # enum values are keys too
    except TypeError:
        return write_slowly(value)


def write_slowly(value: Any) -> bytes:
    """Write what orjson cannot: integers beyond 64 bits, hundreds of levels, lone surrogates (escaped).

    What is not JSON at all becomes null, as with orjson.
    """
    text = json.dumps(value, default=lambda one: orjson.loads(orjson.dumps(one)))
    return json.dumps(json.loads(text, parse_constant=lambda _: None), separators=(",", ":")).encode()


def headers_of(error: Error) -> dict[str, str]:
    """Make the headers that tell a client about an error before it reads the body."""
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    if error.retryable:
        headers["retry-after"] = str(error.details.get("retry_after", TRY_AGAIN_SECONDS))
    return headers


def refuse(address: Address, error: Error) -> Response:
    """Answer with an error from before the operation was reached, in its dialect's shape."""
    return respond(address, address.dialect.failure(error, address.operation.name))


def fail(error: Error) -> Response:
    """Answer with an error outside any dialect."""
    return failure(status_of(error), error.code, sentence_of(error), headers_of(error))


def sentence_of(error: Error) -> str:
    return error.message if error.hint is None else f"{error.message} {error.hint}"


def method_not_allowed(methods: Mapping[str, Any]) -> Refusal:
    allowed = ", ".join([*methods, *(("HEAD",) if "GET" in methods else ())])
    return Refusal(405, "method_not_allowed", f"Use {allowed.replace(', ', ' or ')}.", {"allow": allowed})


def refuse_outside(dialect: Dialect | None, refusal: Refusal) -> Response:
    """Answer with a refusal from before any operation. A dialect's clients know only its own errors."""
    if dialect is None:
        return refusal.plain()
    error = next((kind for kind in STATUSES if kind.code == refusal.code), InvalidInput)(refusal.message)
    return Response(write_json(dialect.failure(error, "").body), refusal.status, refusal.headers, "application/json")


def dialects_by_root(dialects: Sequence[Dialect]) -> dict[str, Dialect]:
    """Map `/api/NAME` to the dialect below it; the native one has no shape of its own for a wrong address."""
    return {root_of(one.path): one.dialect for one in addresses(dialects) if one.dialect.tools}


def root_of(path: str) -> str:
    return "/".join(path.split("/")[:3])


# --- streams ---------------------------------------------------------------------------------------------------------


def stream_reply(address: Address, stream: Stream, streams: Streams, opened: OpenStream) -> Response:
    write = WRITTEN[stream.kind]
    pieces = streams.pieces_of(stream, opened, partial(next_piece, address, stream), changes=address.operation.changes)

    async def sent() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            async for piece in pieces:
                if piece is not None:
                    yield write(piece)
                elif stream.kind is Pieces.EVENTS:
                    yield b": still here\n\n"

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(sent(), address.status, headers, stream.kind)


def next_piece(address: Address, stream: Stream) -> Body | Last | None:
    """Produce the next piece; a failure becomes the dialect's error body, and ends the stream."""
    try:
        return next(stream.pieces, Last())
    except Error as error:
        shown = error
    except Exception:  # noqa: BLE001 -- the unforeseen goes to the log, with a number for the client
        shown = fault(f"the stream of {address.operation.name} of {address.dialect.name}")
    body = address.dialect.failure(shown, address.operation.name).body
    return Last({"event": "error", "data": body} if stream.kind is Pieces.EVENTS else body)


def as_event(piece: Body) -> bytes:
    named = [f"{field}: {piece[field]}\n".encode() for field in ("event", "id") if piece.get(field) is not None]
    return b"".join([*named, b"data: ", write_json(piece["data"]), b"\n\n"])


def as_line(piece: Body) -> bytes:
    return write_json(piece) + b"\n"


WRITTEN = {Pieces.EVENTS: as_event, Pieces.LINES: as_line}
