"""The dialects as an MCP server: the only module that knows the protocol's library.

A call goes from here into a worker thread, through the dialect and the engine, and back:

    call_tool ──> answered (thread) ──> Dialect.call ──> engine

Bytes come from `stdio.py` as parsed messages, or from `http.py` as requests. Nothing here knows any vocabulary.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from queue import SimpleQueue
from typing import Any

import anyio
from anyio import from_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from anyio.to_thread import run_sync
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    JSONRPCError,
    JSONRPCResponse,
    ListToolsResult,
    PaginatedRequestParams,
    SamplingMessage,
    TextContent,
    Tool,
    jsonrpc_message_adapter,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp

from scrubjay import __version__
from scrubjay.dialects.base import Dialect, Reply
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, Internal, InvalidInput, SynthesisFailed
from scrubjay.memory import Prompt, Provenance
from scrubjay.servers.answers import FRESH_MS
from scrubjay.servers.bounds import bounded
from scrubjay.servers.manifest import sheet_of
from scrubjay.servers.profile import compose, served_name
from scrubjay.servers.text import check_text
from scrubjay.servers.turns import Turns

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Arguments = Mapping[str, Any] | None
Ask = Callable[[Prompt], str]

KEY = "scrubjay/idempotency-key"  # in a call's _meta: do this write once
IF_VERSION = "scrubjay/if-version"  # do this change only to that version
WORKERS = 16  # calls that run at once; each thread keeps a connection to the store
MAX_CLIENT_NAME = 100
QUESTION = "synthesis"  # the key of what we ask of a client's model
CLIENT_SECONDS = 100.0  # what a client's model, and whoever has to approve, may take


@dataclass(frozen=True, slots=True)
class Served:
    """A tool as clients see it, and what it stands for."""

    dialect: Dialect
    operation: str
    prefix: str  # before the operation's name, where several dialects are served


def build_server(
    dialects: Sequence[Dialect],
    engine: Callable[[Context], Engine],
    *,
    transport: str,
    extras: bool = False,
    one_client: bool = False,
) -> Server[Any]:
    """A server for these dialects. `engine` is asked once a call, in the worker thread, and may wait or raise.

    One client's calls take effect in the order in which they came; several clients have no order among them.
    """
    profile = compose([sheet_of(dialect) for dialect in dialects], extras=extras)
    alone = len(dialects) == 1
    served = {
        served_name(dialect.name, operation, alone=alone): Served(
            dialect, operation, "" if alone else f"{dialect.name}_"
        )
        for dialect in dialects
        for operation in dialect.operations
    }
    listed = ListToolsResult(tools=[Tool.model_validate(tool) for tool in profile["tools"]])
    workers = anyio.CapacityLimiter(WORKERS)
    turns = Turns() if one_client else None

    def input_schema(name: str) -> Mapping[str, Any] | None:
        tool = served.get(name)
        return tool.dialect.operations[tool.operation].takes if tool else None

    async def list_tools(_ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        tool = served.get(params.name)
        if tool is None:
            raise unknown_tool(params.name, served)
        operation = tool.dialect.operations[tool.operation]
        if not operation.asks and (params.request_state is not None or params.input_responses is not None):
            raise MCPError(code=INVALID_PARAMS, message="This server has asked nothing that could be answered.")
        ask = client_model(ctx, params) if operation.asks else None
        async with turns.turn(changes=operation.changes) if turns else nullcontext():
            return await run_sync(answered, tool, params.arguments, engine, ctx, transport, ask, limiter=workers)

    fresh = CacheHint(ttl_ms=FRESH_MS, scope="public")
    return Server(
        profile["name"],
        version=__version__,
        instructions=profile["instructions"],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=input_schema,
        cache_hints={"tools/list": fresh, "server/discover": fresh},
    )


def answered(  # noqa: PLR0917 -- run_sync passes no names
    tool: Served,
    arguments: Arguments,
    engine: Callable[[Context], Engine],
    ctx: Context,
    transport: str,
    ask: Ask | None,
) -> CallToolResult | InputRequiredResult:
    """One call, in a worker thread. Whatever happens, the client gets its dialect's answer."""
    try:
        reply = called(tool, arguments, engine(ctx).bound_to(client_model=ask), ctx, transport)
        return shaped(reply)
    except Asking as asking:
        return asking.result
    except Error as error:  # the engine could not be opened, or the arguments are not text
        return shaped(tool.dialect.failure(error, tool.operation))
    except Exception:
        fault = secrets.token_hex(4)
        log.exception("fault %s in %s of %s", fault, tool.operation, tool.dialect.name)
        internal = Internal(f"Something went wrong inside scrubjay. The log tells more under {fault}.")
        return shaped(tool.dialect.failure(internal, tool.operation))


def called(tool: Served, arguments: Arguments, engine: Engine, ctx: Context, transport: str) -> Reply:
    check_text(arguments)
    client, meta = client_name(ctx), dict(ctx.meta or {})
    provenance = Provenance(client=client, caller=engine.caller.user, transport=transport, dialect=tool.dialect.name)
    return tool.dialect.call(
        engine.bound_to(provenance=provenance, progress=reporter(ctx)),
        tool.operation,
        arguments,
        key=meta_text(meta, KEY),
        if_version=meta_number(meta, IF_VERSION),
        prefix=tool.prefix,
    )


def reporter(ctx: Context) -> Callable[[int, int | None, str], None] | None:
    """Tells the client how far its call is, from the worker thread; None if the client did not ask."""
    if "progress_token" not in (ctx.meta or {}):
        return None
    told = -math.inf

    def report(done: int, total: int | None, note: str) -> None:
        nonlocal told
        if done <= told:  # the protocol wants it to grow
            return
        told = done
        from_thread.run(ctx.session.report_progress, done, total, note or None)

    return report


# --- the client's own language model ---------------------------------------------------------------------------------


class Asking(Exception):
    """The call needs an answer of the client's model first; the client sends it again with that answer."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__()
        self.result = result


def client_model(ctx: Context, params: CallToolRequestParams) -> Ask | None:
    """How to ask the client's model, in either era of the protocol; None if the client does not offer it."""
    offered = ctx.session.client_capabilities
    if offered is None or offered.sampling is None:
        return None
    if ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return lambda prompt: asked_before(prompt, params)
    return lambda prompt: from_thread.run(asked_now, prompt, ctx)


def asked_before(prompt: Prompt, params: CallToolRequestParams) -> str:
    """The answer that came along, if it is to this very question; else the question.

    The state is a hash of the question and no secret: who forges it forges an answer that is its own to give.
    """
    state = sha256(f"{prompt.system}\0{prompt.text}".encode()).hexdigest()
    answer = (params.input_responses or {}).get(QUESTION)
    if params.request_state != state or answer is None:
        raise Asking(InputRequiredResult(input_requests={QUESTION: sampling(prompt)}, request_state=state))
    return text_of(answer)


async def asked_now(prompt: Prompt, ctx: Context) -> str:
    """:raises SynthesisFailed: if the client's model or its user refuses, or nobody is there to be asked"""
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        answer = await ctx.session.send_request(
            sampling(prompt), CreateMessageResult, request_read_timeout_seconds=CLIENT_SECONDS, metadata=related
        )
    except (MCPError, NoBackChannelError, ValueError) as error:
        raise SynthesisFailed("The client's language model gave no answer.") from error
    return text_of(answer)


def sampling(prompt: Prompt) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt.text))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[message], system_prompt=prompt.system, max_tokens=prompt.max_tokens, temperature=0.0
        )
    )


def text_of(answer: Any) -> str:
    content = getattr(answer, "content", None)
    text = content.text.strip() if isinstance(content, TextContent) else ""
    if not text:
        raise SynthesisFailed("The client's language model gave no text.")
    return text


def meta_text(meta: Mapping[str, Any], name: str) -> str | None:
    value = meta.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"_meta {name} must be text.", field=name)
    return value


def meta_number(meta: Mapping[str, Any], name: str) -> int | None:
    value = meta.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise InvalidInput(f"_meta {name} must be a whole number from 1.", field=name)
    return value


def shaped(reply: Reply) -> CallToolResult:
    reply = Reply(bounded(reply.body), failed=reply.failed, fixed_text=reply.fixed_text)
    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)], structured_content=reply.body, is_error=reply.failed
    )


def unknown_tool(name: str, served: Mapping[str, Served]) -> MCPError:
    near = get_close_matches(name, served, n=1, cutoff=0.0)
    return MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}. Did you mean {near[0]}?")


def client_name(ctx: Context) -> str:
    """What the client calls itself, in the handshake or in this very request."""
    params = ctx.session.client_params
    name = params.client_info.name.strip() if params else ""
    return name[:MAX_CLIENT_NAME] or "unknown"


# --- stdio -----------------------------------------------------------------------------------------------------------


def run_streams(
    dialects: Sequence[Dialect],
    engine: Callable[[], Engine],
    inbox: SimpleQueue[dict[str, Any] | None],
    deliver: Callable[[int | str | None, bytes], None],
    *,
    extras: bool = False,
    serving: threading.Event,
) -> None:
    """Serve one client until the inbox says None. Messages come in parsed, and go out as lines with their ids."""
    server = build_server(dialects, lambda _ctx: engine(), transport="stdio", extras=extras, one_client=True)

    async def main() -> None:
        send_in, receive_in = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        send_out, receive_out = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, inbox, send_in)
            tasks.start_soon(_drain, receive_out, deliver)
            serving.set()
            await server.run(receive_in, send_out, server.create_initialization_options())

    anyio.run(main)


async def _feed(
    inbox: SimpleQueue[dict[str, Any] | None], stream: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    """Hand over what the front has read. A thread of its own waits, so calls cannot take its place."""
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


def build_endpoint(server: Server[Any], *, max_body_bytes: int) -> Endpoint:
    # Answers are plain JSON: we never call a client back, and a stream per answer would only cost.
    manager = StreamableHTTPSessionManager(app=server, json_response=True, max_request_body_size=max_body_bytes)
    return Endpoint(StreamableHTTPASGIApp(manager), manager)


@asynccontextmanager
async def running(endpoints: Sequence[Endpoint]) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for endpoint in endpoints:
            await stack.enter_async_context(endpoint.manager.run())
        yield
