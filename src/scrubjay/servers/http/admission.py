"""Who calls, and in which space: decided before any route is reached. Default deny.

Every request leaves here with an engine bound to its caller and its space (`request.state.engine`), or is refused. Only
what `is_open` names passes without a credential. The space is `?space=` or `X-Scrubjay-Space`, which must exist: the
first store would create a misspelt one. Otherwise it is the process's own, or the first that the caller was
granted, if that one was not. It is written to, and the first among those that are read; a read over REST that names one
stays in it (rest.py). The credentials of long answers are checked again (open_streams.py).
"""

from __future__ import annotations

from collections.abc import Callable

from anyio.to_thread import run_sync
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.engine import access
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, RateLimited
from scrubjay.servers.http.credentials import Credentials, Proven
from scrubjay.servers.http.open_streams import RECHECK_SECONDS, OpenStreams
from scrubjay.servers.http.rate_limits import Limits, rate_of

# Health, readiness, signing in, and the page's files. Everything else needs a caller.
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/sign-in"})
OPEN_FOLDERS = ("/sign-in/", "/assets/")


def is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


class Admission:
    """Binds the engine. `refused` builds the answer to a rejected request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        engine: Engine,
        credentials: Credentials,
        limits: Limits,
        refused: Callable[[Scope, Error], Response],
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        self._app = app
        self._engine = engine
        self._credentials = credentials
        self._limits = limits
        self._refused = refused
        self._streams = OpenStreams(credentials.proven, recheck_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope["path"]):
            return await self._app(scope, receive, send)
        request = Request(scope)
        rated = with_rate(scope, send)
        try:
            request.state.names_space = bool(spaces_named(request))
            proven, request.state.engine = await run_sync(self._admit, request)
            request.state.session = proven.session
            request.state.rate = self._limits.request(proven.caller)
        except Error as error:
            if isinstance(error, RateLimited):
                request.state.rate = rate_of(error)
            return await self._refused(scope, error)(scope, receive, rated)
        await self._streams.run(self._app, request, proven.caller, receive, rated)

    def _admit(self, request: Request) -> tuple[Proven, Engine]:
        """The caller, and the engine bound to it. This reads the store: call it in a thread."""
        proven = self._credentials.proven(request, request.method)
        named = spaces_named(request)
        home, own = proven.caller.home, self._engine.spaces
        spaces = own if home is None or access.is_granted(proven.caller, own[0]) else (home,)
        bound = self._engine.bound_to(caller=proven.caller, spaces=spaces, only=self._engine.only)
        if not named:
            return proven, bound
        for_all = bound.bound_to(spaces=named, only=bound.only)  # all names are checked, the first is used
        bound.known_spaces.check(for_all.spaces)
        return proven, for_all.bound_to(spaces=named[:1], only=bound.only)


def spaces_named(request: Request) -> tuple[str, ...]:
    return (*request.query_params.getlist("space"), *request.headers.getlist("x-scrubjay-space"))


def with_rate(scope: Scope, send: Send) -> Send:
    """Every reply has its caller's rate: that of the operation if one was called, otherwise that of all requests."""

    async def send_with_rate(message: Message) -> None:
        rate = scope.get("state", {}).get("rate")
        if message["type"] == "http.response.start" and rate is not None:
            MutableHeaders(scope=message).update(rate.headers)
        await send(message)

    return send_with_rate
