"""The memory over HTTP, for `scrubjay serve`.

    /mcp              MCP, in the first dialect
    /mcp/{dialect}    MCP, in each
    /api/…            REST (rest.py)
    /openapi.json     REST described, and /docs to read it
    /                 the page (page.py), and /sign-in … for its sessions (sessions.py)
    /healthz          the process lives
    /readyz           and its store answers, and is whole as far as anybody has noticed
    /metrics          for Prometheus

A request passes Journal (a name, the log), Guard (Host, Origin, size), Admission (who calls), then its route.
"""

from __future__ import annotations

import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import uvicorn
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.dialects.base import Dialect
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput
from scrubjay.servers.admission import Admission
from scrubjay.servers.asking import ASK_SECONDS
from scrubjay.servers.calls import Service, fault
from scrubjay.servers.clients import announcement
from scrubjay.servers.connection import config_of
from scrubjay.servers.credentials import Credentials
from scrubjay.servers.docs import docs
from scrubjay.servers.guard import MAX_BODY_BYTES, Guard, failure
from scrubjay.servers.journal import Journal, set_up_logs
from scrubjay.servers.limits import Limits, SharedStorage
from scrubjay.servers.mcp import Endpoint, asks, build_endpoint, build_server, owned_by, running
from scrubjay.servers.metrics import Metrics
from scrubjay.servers.openapi import description
from scrubjay.servers.page import page_routes
from scrubjay.servers.rest import Stopping, address_of, failed, refused, rest_routes, turned_away
from scrubjay.servers.sessions import SignInLink, session_routes
from scrubjay.servers.tokens import Tokens
from scrubjay.servers.workers import SECONDS, Workers
from scrubjay.settings import Settings
from scrubjay.wiring import open_engine

SHUTDOWN_SECONDS = 10  # for calls that are running when we are told to stop
MAX_CONNECTIONS = 1_000


def build_app(
    engine: Engine,
    dialects: Sequence[Dialect],
    *,
    only_rest: Sequence[Dialect] = (),
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    link: SignInLink | None = None,
    allowed_hosts: Sequence[str] = (),
    any_address: bool = False,
    max_body_bytes: int = MAX_BODY_BYTES,
    call_seconds: float = SECONDS,
    stopping: Stopping = lambda: False,
) -> Starlette:
    """The whole site for an open engine; the first dialect also answers at `/mcp`."""
    limits, metrics = limits or Limits(), Metrics()
    service = Service(workers=Workers(seconds=call_seconds), limits=limits, watch=metrics.called)
    ask_seconds = min(ASK_SECONDS, 0.75 * call_seconds)  # rules need the rest, if no model answers
    endpoints = {
        dialect.name: mcp_endpoint(engine, dialect, service, ask_seconds=ask_seconds, max_body_bytes=max_body_bytes)
        for dialect in dialects
    }
    tables = [*dialects, *only_rest]
    rest = rest_routes(tables, service, stopping)

    def not_admitted(scope: Scope, error: Error) -> Response:
        address = address_of(rest, scope)
        return failed(error) if address is None else refused(address, error)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with running(list(endpoints.values())):
            yield

    app = Starlette(
        routes=[
            Route("/mcp", endpoint=McpAddress(endpoints[dialects[0].name].app, "/mcp")),
            *(Route(f"/mcp/{name}", endpoint=McpAddress(one.app, f"/mcp/{name}")) for name, one in endpoints.items()),
            *rest,
            *session_routes(engine, limits, link or SignInLink()),
            *page_routes(),
            Route("/openapi.json", endpoint=description(tables)),
            Route("/docs", endpoint=docs),
            Route("/metrics", endpoint=metrics.shown),
            Route("/healthz", endpoint=healthy),
            Route("/readyz", endpoint=readiness(engine)),
        ],
        middleware=[
            Middleware(Journal, metrics=metrics),
            Middleware(
                Guard,
                allowed_hosts=allowed_hosts,
                any_address=any_address,
                max_body_bytes=max_body_bytes,
                refused=lambda scope, refusal: turned_away(address_of(rest, scope), refusal),
            ),
            Middleware(
                Admission,
                engine=engine,
                credentials=credentials or Credentials(engine),
                limits=limits,
                refused=not_admitted,
            ),
        ],
        exception_handlers={HTTPException: no_such_page, Exception: broken},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def mcp_endpoint(
    engine: Engine, dialect: Dialect, service: Service, *, ask_seconds: float, max_body_bytes: int
) -> Endpoint:
    server = build_server(
        [dialect],
        lambda ctx: bound_engine(ctx.request),
        transport="http",
        service=service,
        signing_key=engine.signing_key,
        ask_seconds=ask_seconds,
    )
    return build_endpoint(server, max_body_bytes=max_body_bytes, streams=asks(dialect))


def readiness(engine: Engine) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_: Request) -> Response:
        try:
            await run_sync(engine.list_spaces)
            well = not engine.damaged
        except Error:
            well = False
        return JSONResponse({"status": "ok" if well else "unavailable"}, status_code=200 if well else 503)

    return ready


async def healthy(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def no_such_page(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return failure(405, "method_not_allowed", "This address takes another method.", dict(error.headers or {}))
    return failure(error.status_code, "no_such_address", "There is nothing at this address; see /docs.")


async def broken(_request: Request, _error: Exception) -> Response:
    return failed(fault("a route"))


class McpAddress:
    """One address of the protocol. A session belongs to the caller who opened it."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["route"] = self._path
        # A GET would open a stream of messages from us, and we have none to send: the protocol's answer is 405.
        if scope["method"] not in ("POST", "DELETE"):
            refusal = failure(405, "method_not_allowed", "Send a POST.", headers={"allow": "POST, DELETE"})
            return await refusal(scope, receive, send)
        scope["user"] = owned_by(bound_engine(Request(scope)).caller)
        await self._app(scope, receive, begun_late(send))


def begun_late(send: Send) -> Send:
    """Holds the answer's headers back until its first piece: by then it is known what they say of the caller's rate."""
    held: list[Message] = []

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            held.append(message)
            return
        while held:
            await send(held.pop())
        await send(message)

    return sent


def bound_engine(request: Any) -> Engine:
    engine: Engine = request.state.engine
    return engine


# --- the process -----------------------------------------------------------------------------------------------------


def serve(settings: Settings) -> None:
    """Serve until told to stop; running calls are finished first.

    :raises InvalidInput: if the address is taken, or others could reach it and there is no key
    """
    set_up_logs(settings.log_level, settings.log_format)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)  # uvicorn has its own while it runs, and calls ours when it is done
    with open_engine(settings) as engine, listening(settings.host, settings.port, engine) as listener:
        engine.warm()
        engine.folders.watch()
        credentials = Credentials(
            engine,
            secret=settings.server_token,
            tokens=tokens_of(settings),
            always=not is_loopback(settings.host),
            remote_files=settings.remote_files,
        )
        link, stopping = SignInLink(), threading.Event()
        app = build_app(
            engine,
            [find(name) for name in DIALECTS],
            only_rest=[make() for make in ONLY_REST.values()],
            credentials=credentials,
            limits=Limits(storage=SharedStorage(engine.count_call), local=settings.limits),
            link=link,
            allowed_hosts=[name for name in settings.allowed_hosts.replace(",", " ").split() if name],
            any_address=not is_loopback(settings.host),
            call_seconds=settings.call_seconds,
            stopping=stopping.is_set,
        )
        address = listener.getsockname()[:2]
        sys.stderr.write(announcement(address, settings, sign_in=link.path if credentials.needed() else None))
        sys.stderr.flush()
        config = config_of(app, limit_concurrency=MAX_CONNECTIONS, timeout_graceful_shutdown=SHUTDOWN_SECONDS)
        Server(config, stopping).run(sockets=[listener])


class Server(uvicorn.Server):
    """Tells open streams that it is about to end, so that they do not keep it waiting."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(0)


def tokens_of(settings: Settings) -> Tokens | None:
    if not settings.token_issuer:
        return None
    return Tokens(issuer=settings.token_issuer, audience=settings.token_audience, keys=settings.token_keys)


def listening(host: str, port: int, engine: Engine | None = None) -> socket.socket:
    """A socket on this machine's own address; on others only if the engine's callers need a key.

    :raises InvalidInput: if others could call without one, or the port is taken
    """
    if not is_loopback(host) and (engine is None or not engine.callers.locked()):
        raise InvalidInput(
            "Without a key only addresses of this machine itself are served.",
            hint="Create one first: scrubjay keys create --user NAME --role owner.",
            field="host",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server(("127.0.0.1" if host == "localhost" else host, port), family=family)
    except (OSError, OverflowError):
        raise InvalidInput(
            f"Port {port} of this address cannot be used; perhaps another server has it.",
            hint="Choose another with --port.",
            field="port",
        ) from None
    # Connections inherit it. Without it the second half of each answer waits 40 ms for a word from the client.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
