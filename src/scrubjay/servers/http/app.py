"""The memory over HTTP, for `scrubjay serve`.

    /mcp              MCP, in the first dialect
    /mcp/{dialect}    MCP, in each
    /api/…            REST (rest.py)
    /openapi.json     REST described (/openapi/NAME.json: of one dialect), and /docs to read it
    /                 the page (page.py), and /sign-in … for its sessions (sessions.py)
    /healthz          the process is alive
    /readyz           and its store answers, with no damage noticed
    /metrics          for Prometheus

A request passes Forwarded (what a trusted proxy says of it), Journal (a name, the log), Guard (Host, Origin, type,
size), Admission (who calls), then its route, whose reply is compressed.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.dialects.base import Dialect
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.engine.cursors import signing_key
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput
from scrubjay.hooks.listening import listen
from scrubjay.servers.calls import Service, fault, offered_dialect
from scrubjay.servers.http.access_log import Journal, set_up_logs
from scrubjay.servers.http.admission import RECHECK_SECONDS, Admission
from scrubjay.servers.http.connect_texts import announcement
from scrubjay.servers.http.connection import config_of
from scrubjay.servers.http.credentials import Credentials, Tokens
from scrubjay.servers.http.crowd import ConnectionLimiter, affordable_connections
from scrubjay.servers.http.forwarded import Forwarded, Network, networks
from scrubjay.servers.http.guard import MAX_BODY_BYTES, Guard, Refusal, StoppedReading, failure, origins_in
from scrubjay.servers.http.metrics import Metrics
from scrubjay.servers.http.one_site import OneSite
from scrubjay.servers.http.openapi import description
from scrubjay.servers.http.page import docs, page_routes
from scrubjay.servers.http.processes import Worker, bind_socket
from scrubjay.servers.http.rate_limits import Limits, SharedWindows
from scrubjay.servers.http.rest import address_of, dialects_by_root, fail, refuse, refuse_outside, rest_routes, root_of
from scrubjay.servers.http.sign_in import SignInLink, session_routes
from scrubjay.servers.http.streams import Streams
from scrubjay.servers.mcp.sampling import ASK_SECONDS
from scrubjay.servers.mcp.server import Endpoint, asks, build_endpoint, build_server, owned_by, running
from scrubjay.servers.workers import SECONDS, Workers
from scrubjay.settings import AUTO, Settings
from scrubjay.values.callers import DEFAULT_SPACE
from scrubjay.values.frozen import replace
from scrubjay.wiring import open_engine

SHUTDOWN_SECONDS = 10  # from the signal to the end of the process …
FINISHING_SHARE = 0.8  # … of which calls that are running have so much; the rest is for closing the store
# Headers that pages of other origins may read, if a setting lets them read answers at all.
READABLE = ["Mcp-Session-Id", "Retry-After", "X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining",
            "X-RateLimit-Reset"]  # fmt: skip


def build_app(
    engine: Engine,
    dialects: Sequence[Dialect],
    *,
    only_rest: Sequence[Dialect] = (),
    credentials: Credentials | None = None,
    limits: Limits | None = None,
    link: SignInLink | None = None,
    allowed_hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    proxies: Sequence[Network] = (),
    any_address: bool = False,
    max_body_bytes: int = MAX_BODY_BYTES,
    call_seconds: float = SECONDS,
    recheck_seconds: float = RECHECK_SECONDS,
    streams: Streams | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """The whole site for an open engine; the first dialect also answers at `/mcp`."""
    limits, metrics = limits or Limits(), metrics or Metrics()
    service = Service(workers=Workers(seconds=call_seconds), limits=limits, watch=metrics.count_call)
    ask_seconds = min(ASK_SECONDS, 0.75 * call_seconds)  # the rules need the rest, if no model answers
    endpoints = {
        dialect.name: mcp_endpoint(engine, dialect, service, ask_seconds=ask_seconds, max_body_bytes=max_body_bytes)
        for dialect in dialects
    }
    tables = [*dialects, *only_rest]
    rest = rest_routes(tables, service, streams or Streams())

    def not_admitted(scope: Scope, error: Error) -> Response:
        address = address_of(rest, scope)
        return fail(error) if address is None else refuse(address, error)

    roots = dialects_by_root(tables)

    def turn_away(scope: Scope, refusal: Refusal) -> Response:
        return refuse_outside(roots.get(root_of(scope["path"])), refusal)

    async def no_such_page(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return turn_away(request.scope, wrong_address(error))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with running(list(endpoints.values())):
            yield

    described = description(tables)
    app = Starlette(
        routes=[
            Route("/mcp", endpoint=McpAddress(endpoints[dialects[0].name].app, "/mcp")),
            *(Route(f"/mcp/{name}", endpoint=McpAddress(one.app, f"/mcp/{name}")) for name, one in endpoints.items()),
            *rest,
            *session_routes(engine, limits, link or SignInLink()),
            *page_routes(),
            *(Route(path, endpoint=described) for path in ("/openapi.json", "/openapi/{dialect}.json")),
            Route("/docs", endpoint=docs),
            Route("/metrics", endpoint=metrics.show),
            Route("/healthz", endpoint=healthy),
            Route("/readyz", endpoint=readiness(engine)),
        ],
        middleware=[
            Middleware(Forwarded, proxies=proxies),
            Middleware(Journal, metrics=metrics),
            Middleware(
                Guard,
                allowed_hosts=allowed_hosts,
                origins=origins,
                any_address=any_address,
                max_body_bytes=max_body_bytes,
                refused=turn_away,
            ),
            *([allow_reading(origins)] if origins else []),
            Middleware(
                Admission,
                engine=engine,
                credentials=credentials or Credentials(engine),
                limits=limits,
                refused=not_admitted,
                seconds=call_seconds,
                recheck_seconds=recheck_seconds,
            ),
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5),
        ],
        exception_handlers={HTTPException: no_such_page, Exception: broken},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def allow_reading(origins: Sequence[str]) -> Middleware:
    """Let pages of these origins read answers. They authenticate with a key: our cookies are never sent there."""
    return Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=READABLE,
    )


def mcp_endpoint(
    engine: Engine, dialect: Dialect, service: Service, *, ask_seconds: float, max_body_bytes: int
) -> Endpoint:
    server = build_server(
        [dialect],
        lambda ctx: bound_engine(ctx.request),
        transport="http",
        service=service,
        signing_key=partial(signing_key, engine.records),
        ask_seconds=ask_seconds,
    )
    return build_endpoint(server, max_body_bytes=max_body_bytes, streams=asks(dialect))


def readiness(engine: Engine) -> Callable[[Request], Awaitable[Response]]:
    own = CapacityLimiter(2)  # threads: health checks are answered however many calls wait

    async def ready(_: Request) -> Response:
        try:
            await run_sync(engine.known_spaces.list, limiter=own)
            well = not engine.upkeep.damaged and not await run_sync(lambda: engine.upkeep.unfinished, limiter=own)
        except Error:
            well = False
        # Without its archive a server does everything except restore: it stays in service, and says so.
        archive = {"archive": "unavailable"} if engine.upkeep.archive_trouble else {}
        return JSONResponse({"status": "ok" if well else "unavailable", **archive}, status_code=200 if well else 503)

    return ready


async def healthy(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


def wrong_address(error: HTTPException) -> Refusal:
    if error.status_code == 405:
        return Refusal(405, "method_not_allowed", "This address does not allow that method.", dict(error.headers or {}))
    return Refusal(error.status_code, "no_such_address", "Nothing is served at this address; see /docs.")


async def broken(_request: Request, error: Exception) -> Response:
    if isinstance(error, StoppedReading):  # the connection deals with it
        return Response(status_code=499)
    return fail(fault("a route"))


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
        await self._app(scope, receive, hold_back_headers(send))


def hold_back_headers(send: Send) -> Send:
    """Hold the answer's headers back until its first piece: by then the caller's rate is known."""
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


def serve(settings: Settings, worker: Worker | None = None) -> None:
    """Serve until stopped; running calls finish first. `worker`: as one of several processes.

    :raises InvalidInput: if the address is in use, or other machines could reach it and there is no key
    """
    if settings.space == AUTO:  # a server has no project, wherever it is started
        settings = replace(settings, space=DEFAULT_SPACE)
    set_up_logs(settings.log_level, settings.log_format)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)  # uvicorn installs its own while it runs, and calls ours when it is done
    with (
        open_engine(settings, borrows=False) as engine,
        open_listener(settings.host, settings.port if worker is None else worker.port, engine, worker) as listener,
    ):
        engine.warm()
        engine.folders.watch()
        credentials = Credentials(
            engine,
            secret=settings.server_token,
            tokens=tokens_of(settings),
            always=not is_loopback(settings.host),
            remote_files=settings.remote_files,
        )
        link, streams, proxies = SignInLink(), Streams(), networks(settings.proxies)
        if worker is not None:
            link = SignInLink(worker.link, until=worker.link_until, once=worker.take_link)
        app = build_app(
            engine,
            [offered_dialect(find(name), also=settings.also, by_client=settings.also_by_client) for name in DIALECTS],
            only_rest=[offered_dialect(find(name), also=settings.also) for name in ONLY_REST],
            credentials=credentials,
            limits=Limits(windows=SharedWindows(engine.records.count_call), local=settings.limits),
            link=link,
            allowed_hosts=settings.allowed_hosts.replace(",", " ").split(),
            origins=origins_in(settings.origins),
            proxies=proxies,
            any_address=not is_loopback(settings.host),
            call_seconds=settings.call_seconds,
            streams=streams,
            metrics=Metrics(None if worker is None else worker.folder),
        )
        address = listener.getsockname()[:2]
        sign_in = link.path if credentials.are_needed() else None
        if worker is None or worker.announces:
            sys.stderr.write(announcement(address, settings, sign_in=sign_in, locked_out=credentials.is_locked_out()))
            sys.stderr.flush()
        crowd = ConnectionLimiter(most=affordable_connections(), proxies=proxies)
        site = app if worker is None else OneSite(app, worker)
        config = config_of(site, crowd=crowd, timeout_graceful_shutdown=int(SHUTDOWN_SECONDS * FINISHING_SHARE))
        stop = listen(settings, engine, lambda: "scrubjay serve")
        try:
            Server(config, streams).run(sockets=[listener, *(() if worker is None else (worker.internal(),))])
        finally:
            stop()


class Server(uvicorn.Server):
    """Tells open streams that it is about to end, so that they do not keep it waiting, and ends in time.

    Threads cannot be cancelled: a call that goes on keeps the process alive. What it did not commit is lost either way.
    """

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            last = threading.Timer(SHUTDOWN_SECONDS, os._exit, (0,))
            last.daemon = True
            last.start()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.stop()
        await super().shutdown(sockets)


def leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(0)


def tokens_of(settings: Settings) -> Tokens | None:
    if not settings.token_issuer:
        return None
    return Tokens(issuer=settings.token_issuer, audience=settings.token_audience, keys=settings.token_keys)


def open_listener(host: str, port: int, engine: Engine | None = None, worker: Worker | None = None) -> socket.socket:
    """Open a socket on a loopback address; on others only if callers need a key.

    :raises InvalidInput: if other machines could call without one, or the port is in use
    """
    if not is_loopback(host) and (engine is None or not engine.callers.locked()):
        raise InvalidInput(
            "Without a key, the server only listens on loopback addresses.",
            hint="Create one first: scrubjay keys create --user NAME --role owner.",
            field="host",
        )
    listener = bind_socket(host, port, shared=worker is not None)
    # Connections inherit it. Without it the second half of each answer waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
