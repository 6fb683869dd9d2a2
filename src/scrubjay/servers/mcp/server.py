"""The dialects as an MCP server: with `sampling.py` and `resources.py`, all that knows the protocol's library.

A call goes from here into a worker thread, through the dialect and the engine, and back:

    Tools.call ──> tool_result ──> Service.answer (thread) ──> Dialect.call ──> engine

Bytes come from `stdio/` as parsed messages, or from `http/` as requests. Nothing here knows any vocabulary.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.caching import CacheHint
from mcp.server.request_state import AESGCMRequestStateCodec, RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCResponse,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    jsonrpc_message_adapter,
)
from starlette.types import ASGIApp

from scrubjay import __version__
from scrubjay.dialects.base import Dialect, Reply
from scrubjay.engine.engine import Engine
from scrubjay.errors import InvalidInput
from scrubjay.servers.calls import (
    NOTICES,
    Call,
    Served,
    Service,
    client_called,
    conditions_in,
    expected_version,
    fit_reply,
    idempotency_key,
    served_tools,
)
from scrubjay.servers.mcp.resources import prompt_handlers, resource_handlers
from scrubjay.servers.mcp.sampling import ASK_SECONDS, Asking, Context, client_model, reporter
from scrubjay.servers.stdio.front import FRESH_MS
from scrubjay.servers.stdio.manifest import sheet_of
from scrubjay.servers.stdio.profile import compose
from scrubjay.servers.workers import Turns, Workers
from scrubjay.values.callers import LOCAL_USER, Caller
from scrubjay.values.spelling import nearest
from scrubjay.values.store import Prompt

if TYPE_CHECKING:
    from scrubjay.servers.http.rate_limits import Limits, Rate

Arguments = Mapping[str, Any] | None
Said = TypeVar("Said")

MAX_SESSIONS = 1_000  # that are opened at once, per dialect; BoundedSessions keeps them far below


def build_server(
    dialects: Sequence[Dialect],
    engine: Callable[[Context], Engine],
    *,
    transport: str,
    extras: bool = False,
    one_client: bool = False,
    service: Service | None = None,
    signing_key: Callable[[], bytes] | None = None,
    ask_seconds: float = ASK_SECONDS,
) -> Server[Any]:
    """A server for these dialects. `engine` is called once per call, in the worker thread, and may wait or raise.

    One client's calls take effect in the order in which they came; several clients have no order among them. What
    clients carry between two halves of a call is sealed with `signing_key`, or with a key of this process alone.
    """
    service = service or Service(workers=Workers())
    profile = compose([sheet_of(dialect) for dialect in dialects], extras=extras)
    tools = Tools(
        served=served_tools(dialects),
        listed=ListToolsResult(tools=[Tool.model_validate(tool) for tool in profile["tools"]]),
        engine=engine,
        transport=transport,
        service=service,
        turns=Turns() if one_client else None,
        ask_seconds=ask_seconds,
    )
    fresh = CacheHint(ttl_ms=FRESH_MS, scope="public")
    server: Server[Any] = Server(
        profile["name"],
        version=__version__,
        instructions=profile["instructions"],
        on_list_tools=tools.list,
        on_call_tool=tools.call,
        get_tool_input_schema=tools.input_schema,
        cache_hints={"tools/list": fresh, "server/discover": fresh},
        **resource_handlers(dialects, engine, transport, service.limits),
        **prompt_handlers(dialects, engine, transport, service.limits),
    )
    if any(asks(dialect) for dialect in dialects):
        security = RequestStateSecurity(codec=Seal(signing_key or partial(os.urandom, 32)))
        server.middleware.append(RequestStateBoundary(security, default_audience=server.name))
    return server


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The server's handlers for tools."""

    served: Mapping[str, Served]
    listed: ListToolsResult
    engine: Callable[[Context], Engine]
    transport: str
    service: Service
    turns: Turns | None
    ask_seconds: float

    async def list(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return self.listed

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self.served.get(name)
        return tool.dialect.operations[tool.operation].takes if tool else None

    async def call(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        tool = self.served.get(params.name)
        if tool is None:
            raise unknown_tool(params.name, self.served)
        operation = tool.dialect.operations[tool.operation]
        if not operation.asks and (params.request_state is not None or params.input_responses is not None):
            raise MCPError(code=INVALID_PARAMS, message="This server has not asked anything that could be answered.")
        ask = client_model(ctx, params, self.ask_seconds) if operation.asks else None

        async with self.turns.turn(changes=operation.changes) if self.turns else nullcontext():
            try:
                return await self._answer(tool, params.arguments, ask, ctx)
            except Asking as asking:
                return asking.result

    async def _answer(
        self, tool: Served, arguments: Arguments, ask: Callable[[Prompt], str] | None, ctx: Context
    ) -> CallToolResult:
        """Whatever happens, the client gets its dialect's answer."""
        try:
            call = call_of(tool, arguments, ctx, self.transport, ask)
        except InvalidInput as error:
            return shape_result(fit_reply(tool.dialect.failure(error, tool.operation)))

        def shape(reply: Reply, rate: Rate | None) -> CallToolResult:
            if rate is not None and ctx.request is not None:
                ctx.request.state.rate = rate
            return shape_result(fit_reply(reply, call), rate)

        user = ctx.request.state.engine.caller.user if ctx.request is not None else LOCAL_USER
        return await self.service.answer(call, lambda: self.engine(ctx), shape, user=user)


def asks(dialect: Dialect) -> bool:
    """Whether any of its operations may ask the client something."""
    return any(operation.asks for operation in dialect.operations.values())


class Seal:
    """Seals what a client carries back to us. The key is fetched when it is first needed."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    @cached_property
    def _codec(self) -> AESGCMRequestStateCodec:
        return AESGCMRequestStateCodec([self._key()])

    def seal(self, payload: bytes) -> str:
        return self._codec.seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._codec.unseal(token)


def call_of(
    tool: Served, arguments: Arguments, ctx: Context, transport: str, ask: Callable[[Prompt], str] | None
) -> Call:
    meta = dict(ctx.meta or {})
    key, version = conditions_in(meta)
    if ctx.request is not None:
        key = one_of(key, idempotency_key(ctx.request.headers), "Idempotency-Key")
        version = one_of(version, expected_version(ctx.request.headers), "If-Match")
    return Call(
        dialect=tool.dialect,
        operation=tool.operation,
        arguments=arguments,
        client=client_name(ctx),
        transport=transport,
        key=key,
        if_version=version,
        prefix=tool.prefix,
        request_id=None if ctx.request is None else ctx.request.state.request_id,
        progress=reporter(ctx),
        client_model=ask,
    )


def one_of(in_meta: Said | None, in_headers: Said | None, header: str) -> Said | None:
    """What the call says or, over HTTP, a header of its request.

    :raises InvalidInput: if the two differ
    """
    if in_meta is not None and in_headers is not None and in_meta != in_headers:
        raise InvalidInput(f"_meta and the header {header} differ.", field=header)
    return in_headers if in_meta is None else in_meta


def shape_result(reply: Reply, rate: Rate | None = None) -> CallToolResult:
    meta = {**({} if rate is None else rate.headers), **({NOTICES: list(reply.notices)} if reply.notices else {})}
    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)],
        structured_content=reply.body,
        is_error=reply.failed,
        _meta=meta or None,
    )


def unknown_tool(name: str, served: Mapping[str, Served]) -> MCPError:
    near = nearest(name, served)
    hint = f"Did you mean {near}?" if near else f"Known: {', '.join(served)}."
    return MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}. {hint}")


def client_name(ctx: Context) -> str:
    """The client's own name, from the handshake or this very request."""
    params = ctx.session.client_params
    return client_called(params.client_info.name if params else "")


# --- stdio -----------------------------------------------------------------------------------------------------------


class Inbox(Protocol):
    """Messages as the front has read them."""

    def get(self) -> dict[str, Any] | None: ...


def run_streams(
    dialects: Sequence[Dialect],
    engine: Callable[[], Engine],
    inbox: Inbox,
    deliver: Callable[[int | str | None, bytes], None],
    *,
    extras: bool = False,
    limits: Limits | None = None,
    serving: threading.Event,
) -> None:
    """Serve one client until the inbox says None. Messages come in parsed, and go out as lines with their ids."""
    server = build_server(
        dialects,
        lambda _ctx: engine(),
        transport="stdio",
        extras=extras,
        one_client=True,
        service=Service(workers=Workers(), limits=limits),
    )

    async def main() -> None:
        send_in, receive_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        send_out, receive_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, inbox, send_in)
            tasks.start_soon(_drain, receive_out, deliver)
            serving.set()
            await server.run(receive_in, send_out, server.create_initialization_options())

    anyio.run(main)


async def _feed(inbox: Inbox, stream: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Hand over what the front has read. A separate thread waits, so calls cannot take its place."""
    own = anyio.CapacityLimiter(1)
    async with stream:
        while (message := await run_sync(inbox.get, limiter=own)) is not None:
            await stream.send(SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False)))


async def _drain(
    stream: MemoryObjectReceiveStream[SessionMessage], deliver: Callable[[int | str | None, bytes], None]
) -> None:
    async with stream:
        async for item in stream:
            message = item.message
            answers = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
            deliver(answers, message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")


# --- HTTP ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of the protocol: an ASGI app that works while `running` is entered."""

    app: ASGIApp
    manager: StreamableHTTPSessionManager


def build_endpoint(server: Server[Any], *, max_body_bytes: int, streams: bool = False) -> Endpoint:
    """`streams`: answers may be streams, on which progress and questions to the client come before the result.

    Otherwise they are plain JSON, which costs less.
    """
    from scrubjay.servers.mcp.sessions import BoundedSessions  # only HTTP has sessions

    manager = StreamableHTTPSessionManager(
        app=server, json_response=not streams, max_request_body_size=max_body_bytes, max_sessions=MAX_SESSIONS
    )
    return Endpoint(BoundedSessions(StreamableHTTPASGIApp(manager)), manager)


def owned_by(caller: Caller) -> AuthenticatedUser:
    """A caller in the library's terms: the sessions it opens belong to it alone."""
    return AuthenticatedUser(AccessToken(token="", client_id=caller.credential or "", scopes=[], subject=caller.user))


@asynccontextmanager
async def running(endpoints: Sequence[Endpoint]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for endpoint in endpoints:
            await stack.enter_async_context(endpoint.manager.run())
        yield
