"""Every operation over REST, from the same table as MCP.

    POST /api/{dialect}/{tool}       every tool of every dialect; the body is the tool's arguments
    {method} {path of its route}     where an operation has an address of its own

A request's path, query and JSON body together are the arguments; a name may come from one of them only. The answer is
the dialect's own body, with the status of its error. Who calls, and in which space, `Admission` has settled before.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any

import anyio
import orjson
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from scrubjay.dialects.base import Body, Dialect, Operation, Pieces, Reply, Schema, Stream
from scrubjay.engine.engine import Engine
from scrubjay.errors import (
    ArchiveUnavailable,
    Conflict,
    EmbeddingError,
    EndpointUnreachable,
    Error,
    Forbidden,
    Internal,
    InvalidInput,
    Locked,
    NotFound,
    ProviderError,
    QueryTooComplex,
    QuotaExceeded,
    RateLimited,
    StorageBusy,
    StorageFull,
    TimedOut,
    Unauthenticated,
    Unprocessable,
)
from scrubjay.frozen import dataclass
from scrubjay.servers.bounds import MAX_BYTES, bounded
from scrubjay.servers.calls import MAX_CLIENT_NAME, Call, Service, fault
from scrubjay.servers.guard import Refusal, failure
from scrubjay.servers.limits import Rate

Stopping = Callable[[], bool]  # whether the server is about to end: streams do not keep it waiting

# The status of each kind of error; of the kinds that an error is of, the nearest counts.
STATUSES: dict[type[Error], int] = {
    InvalidInput: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    QueryTooComplex: 413,
    Unprocessable: 422,
    Locked: 423,
    RateLimited: 429,
    Internal: 500,
    Error: 500,
    ProviderError: 502,
    ArchiveUnavailable: 503,
    EndpointUnreachable: 503,
    EmbeddingError: 503,
    StorageBusy: 503,
    TimedOut: 503,
    StorageFull: 507,
    QuotaExceeded: 507,
}
TRY_AGAIN_SECONDS = 1  # after an error that passes by itself

IN_QUERY = frozenset({"GET", "DELETE"})  # methods that take arguments from the query, the others from a body
SPACE = "space"  # in every query: which space the call is about; never an argument
POLL_SECONDS = 0.5  # how often a stream that has nothing is asked again …
LISTENING_SECONDS = 10.0  # … and how often if it tells by itself that it has something
SILENCE_SECONDS = 15.0  # how long a stream is silent before a sign of life is sent


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
        """Whether a dialect's specification names it; the others are ours."""
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


def rest_routes(dialects: Sequence[Dialect], service: Service, stopping: Stopping) -> list[Route]:
    """One route per path, in an order in which no path hides another: those without arguments first."""
    by_path: dict[str, dict[str, Address]] = {}
    for address in addresses(dialects):
        by_path.setdefault(address.path, {})[address.method] = address
    plain_first = sorted(by_path, key=lambda path: (":path}" in path, path.count("{")))
    return [Route(path, endpoint=Endpoint(by_path[path], service, stopping)) for path in plain_first]


def address_of(routes: Sequence[Route], scope: Scope) -> Address | None:
    """The operation that a request is for, if it is for one; of one with another method, any at the same path."""
    for route in routes:
        if isinstance(route.endpoint, Endpoint) and route.matches(scope)[0] is not Match.NONE:
            return route.endpoint.address(scope["method"]) or route.endpoint.any_address
    return None


class Endpoint:
    """One path: an ASGI app that answers the methods it has operations for."""

    def __init__(self, by_method: Mapping[str, Address], service: Service, stopping: Stopping) -> None:
        self._by_method = by_method
        self._service = service
        self._stopping = stopping

    def address(self, method: str) -> Address | None:
        return self._by_method.get("GET" if method == "HEAD" else method)

    @property
    def any_address(self) -> Address:
        return next(iter(self._by_method.values()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = self.address(scope["method"])
        if address is None:
            response: Response = turned_away(self.any_address, method_not_allowed(self._by_method))
        else:
            scope["state"]["route"] = address.path
            response = await self._answer(address, Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, address: Address, request: Request) -> Response:
        engine: Engine = request.state.engine
        try:
            call = await call_of(address, request)
        except Error as error:
            return refused(address, error)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it

        def shape(reply: Reply, rate: Rate | None) -> Response:
            request.state.rate = rate or request.state.rate
            if reply.stream is not None:
                return streamed(address, reply.stream, self._stopping)
            return respond(address, reply)

        return await self._service.answer(call, lambda: engine, shape, user=engine.caller.user)


# --- requests --------------------------------------------------------------------------------------------------------


async def call_of(address: Address, request: Request) -> Call:
    """:raises InvalidInput: saying what cannot be read"""
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
        raise InvalidInput(
            f"{query[0][:100]} stands in the query.", hint="Send arguments in the body.", field=query[0][:100]
        )
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
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidInput("The body is not JSON in UTF-8.") from None
    if not isinstance(value, dict):
        raise InvalidInput("The body must be a JSON object.")
    return value


def read_query(texts: Sequence[str], schema: Schema) -> Any:
    """An argument from the query: several for a list, the others once."""
    if "array" in types_of(schema):
        return [read_text(text, schema.get("items", {})) for text in texts]
    return read_text(texts[0], schema) if len(texts) == 1 else list(texts)


def read_text(text: str, schema: Schema) -> Any:
    """The number or truth that the schema wants, if the text is one; else the text, for the schema to judge."""
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


def idempotency_key(headers: Headers) -> str | None:
    keys = {*headers.getlist("idempotency-key"), *headers.getlist("x-idempotency-key")}
    if len(keys) > 1:
        raise InvalidInput("Send one idempotency key.", field="Idempotency-Key")
    return keys.pop() if keys else None


def expected_version(headers: Headers) -> int | None:
    tag = headers.get("if-match")
    if tag is None or tag == "*":
        return None
    found = re.fullmatch(r'(?:W/)?"?([1-9][0-9]{0,8})"?', tag)
    if found is None:
        raise InvalidInput('If-Match must be a version, such as "3".', field="If-Match")
    return int(found[1])


def client_name(headers: Headers) -> str:
    """What it calls itself in X-Client (a page cannot choose its User-Agent), else the first word of User-Agent."""
    name = (headers.get("x-client") or headers.get("user-agent", "")).strip().split("/")[0].split(" ")[0]
    return name[:MAX_CLIENT_NAME] if name.isprintable() and name else "unknown"


# --- replies ---------------------------------------------------------------------------------------------------------


def status_of(error: Error) -> int:
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


def respond(address: Address, reply: Reply) -> Response:
    """The reply as JSON; fewer items where it would be too large."""
    body = written(reply.body)
    if len(body) > MAX_BYTES:
        body = written(bounded(reply.body))
    if reply.error is None:
        return Response(body, address.status, media_type="application/json")
    return Response(body, status_of(reply.error), headers_of(reply.error), "application/json")


def written(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)  # words of enums are keys too


def headers_of(error: Error) -> dict[str, str]:
    """What a client should know of an error before it reads the body."""
    headers = {}
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    if error.retryable:
        headers["retry-after"] = str(error.details.get("retry_after", TRY_AGAIN_SECONDS))
    return headers


def refused(address: Address, error: Error) -> Response:
    """An error from before the operation was reached, said in its dialect."""
    return respond(address, address.dialect.failure(error, address.operation.name))


def failed(error: Error) -> Response:
    """An error where no dialect has the word."""
    return failure(status_of(error), error.code, said(error), headers_of(error))


def said(error: Error) -> str:
    return error.message if error.hint is None else f"{error.message} {error.hint}"


def method_not_allowed(methods: Mapping[str, Any]) -> Refusal:
    allowed = ", ".join([*methods, *(("HEAD",) if "GET" in methods else ())])
    return Refusal(405, "method_not_allowed", f"Send a {allowed.replace(', ', ' or a ')}.", {"allow": allowed})


def turned_away(address: Address | None, refusal: Refusal) -> Response:
    """A refusal from before any operation. At an address that a specification names, its clients know no other error
    than the dialect's own."""
    if address is None or not address.specified:
        return refusal.plain()
    body = address.dialect.failure(InvalidInput(refusal.message), address.operation.name).body
    return Response(written(body), refusal.status, refusal.headers, "application/json")


# --- streams ---------------------------------------------------------------------------------------------------------


def streamed(address: Address, stream: Stream, stopping: Stopping) -> Response:
    write = WRITTEN[stream.kind]

    async def sent() -> AsyncIterator[bytes]:
        spoke = time.monotonic()
        bell = Bell()
        try:
            with nullcontext(lambda: False) if stream.listening is None else stream.listening(bell.ring) as listened:
                while not stopping():
                    bell.be_quiet()  # what is said from here on is not missed
                    piece = await run_sync(next_piece, address, stream)
                    if isinstance(piece, Last):
                        if piece.body is not None:
                            yield write(piece.body)
                        return
                    if piece is not None:
                        yield write(piece)
                        spoke = time.monotonic()
                        continue
                    again = time.monotonic() + (LISTENING_SECONDS if listened() else POLL_SECONDS)
                    while time.monotonic() < again and not stopping() and not await bell.rung(POLL_SECONDS):
                        pass
                    if time.monotonic() - spoke >= SILENCE_SECONDS and stream.kind is Pieces.EVENTS:
                        yield b": still here\n\n"
                        spoke = time.monotonic()
        finally:
            close = getattr(stream.pieces, "close", None)
            if close is not None:
                with anyio.CancelScope(shield=True):
                    await run_sync(close)

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(sent(), address.status, headers, stream.kind)


class Bell:
    """Rung by any thread, heard by the task that made it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._rung.set)

    def be_quiet(self) -> None:
        self._rung.clear()

    async def rung(self, seconds: float) -> bool:
        """Wait so long at most."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        return self._rung.is_set()


@dataclass(frozen=True, slots=True)
class Last:
    """The end of a stream, and what is still to be said."""

    body: Body | None = None


def next_piece(address: Address, stream: Stream) -> Body | Last | None:
    """What comes next; a failure is told in the dialect's words, and then the stream is over."""
    try:
        return next(stream.pieces, Last())
    except Error as error:
        told = error
    except Exception:  # noqa: BLE001 -- the unforeseen is told in the log, with a number for the client
        told = fault(f"the stream of {address.operation.name} of {address.dialect.name}")
    body = address.dialect.failure(told, address.operation.name).body
    return Last({"event": "error", "data": body} if stream.kind is Pieces.EVENTS else body)


def as_event(piece: Body) -> bytes:
    named = [f"{field}: {piece[field]}\n".encode() for field in ("event", "id") if piece.get(field) is not None]
    return b"".join([*named, b"data: ", written(piece["data"]), b"\n\n"])


def as_line(piece: Body) -> bytes:
    return written(piece) + b"\n"


WRITTEN = {Pieces.EVENTS: as_event, Pieces.LINES: as_line}
