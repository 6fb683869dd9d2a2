"""The memory over HTTP, for `scrubjay serve`.

    /mcp              MCP, in the first dialect
    /mcp/{dialect}    MCP, in each
    /api/…            REST (rest.py)
    /healthz          the process lives
    /readyz           and its store answers

Everything stands behind `Guard` and `Admission`.
"""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from scrubjay.dialects.base import Dialect
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput
from scrubjay.servers.admission import Admission
from scrubjay.servers.clients import announcement
from scrubjay.servers.guard import MAX_BODY_BYTES, Guard, failure
from scrubjay.servers.mcp import build_endpoint, build_server, running
from scrubjay.servers.rest import address_of, headers_of, rest_routes, status_of
from scrubjay.servers.rest import refused as rest_refused
from scrubjay.settings import Settings
from scrubjay.wiring import open_engine

SHUTDOWN_SECONDS = 10  # for calls that are running when we are told to stop


def build_app(
    engine: Engine,
    dialects: Sequence[Dialect],
    *,
    only_rest: Sequence[Dialect] = (),
    allowed_hosts: Sequence[str] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
) -> Starlette:
    """The whole site for an open engine; the first dialect also answers at `/mcp`."""
    endpoints = {
        dialect.name: build_endpoint(
            build_server([dialect], lambda ctx: bound_engine(ctx.request), transport="http"),
            max_body_bytes=max_body_bytes,
        )
        for dialect in dialects
    }
    addresses = {name: McpAddress(endpoint.app) for name, endpoint in endpoints.items()}
    rest = rest_routes([*dialects, *only_rest])

    def refused(scope: Scope, error: Error) -> Response:
        address = address_of(rest, scope)
        if address is not None:
            return rest_refused(address, error)
        return failure(status_of(error), error.code, error.message, headers_of(error))

    async def ready(_: Request) -> JSONResponse:
        try:
            await run_in_threadpool(engine.list_spaces)
        except Error:
            return JSONResponse({"status": "unavailable"}, status_code=503)
        return JSONResponse({"status": "ok"})

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with running(list(endpoints.values())):
            yield

    return Starlette(
        routes=[
            Route("/mcp", endpoint=addresses[dialects[0].name]),
            *(Route(f"/mcp/{name}", endpoint=address) for name, address in addresses.items()),
            *rest,
            Route("/healthz", endpoint=healthy),
            Route("/readyz", endpoint=ready),
        ],
        middleware=[
            Middleware(Guard, allowed_hosts=allowed_hosts, max_body_bytes=max_body_bytes),
            Middleware(Admission, engine=engine, refused=refused),
        ],
        lifespan=lifespan,
    )


async def healthy(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


class McpAddress:
    """One address of the protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A GET would open a stream of messages from us, and we have none to send: the protocol's answer is 405.
        if scope["method"] not in ("POST", "DELETE"):
            refusal = failure(405, "method_not_allowed", "Send a POST.", headers={"allow": "POST, DELETE"})
            return await refusal(scope, receive, send)
        await self._app(scope, receive, send)


def bound_engine(request: Any) -> Engine:
    engine: Engine = request.state.engine
    return engine


# --- the process -----------------------------------------------------------------------------------------------------


def serve(settings: Settings) -> None:
    """Serve until told to stop; running calls are finished first.

    :raises InvalidInput: if the address is taken, or not this machine's own
    """
    logging.basicConfig(
        stream=sys.stderr, level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)  # uvicorn has its own while it runs, and calls ours when it is done
    with listening(settings.host, settings.port) as listener, open_engine(settings) as engine:
        engine.warm()
        app = build_app(engine, [find(name) for name in DIALECTS], only_rest=[make() for make in ONLY_REST.values()])
        sys.stderr.write(announcement(listener.getsockname()[:2], settings))
        sys.stderr.flush()
        config = uvicorn.Config(
            app,
            log_config=None,  # ours, so that nothing goes to stdout
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listener])


def leave(_number: int, _frame: object) -> NoReturn:
    sys.exit(0)


def listening(host: str, port: int) -> socket.socket:
    """A socket on this machine's own address."""
    if host != "localhost" and not is_loopback(host):
        raise InvalidInput(
            "Only addresses of this machine itself can be served for now.",
            hint="Use --host 127.0.0.1, and reach it from elsewhere through an SSH tunnel.",
            field="host",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(("127.0.0.1" if host == "localhost" else host, port), family=family)
    except (OSError, OverflowError):
        raise InvalidInput(
            f"Port {port} cannot be used; perhaps another server has it.",
            hint="Choose another with --port.",
            field="port",
        ) from None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
