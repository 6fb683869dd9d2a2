"""Who calls, and in which space: decided before any route is reached. Default deny.

Every request leaves here with an engine bound to its caller and its space (`request.state.engine`), or is refused. Only
paths for which `is_open` is true pass without a credential. The space is `?space=` or `X-Scrubjay-Space`, which must
exist: the first store would create a misspelt one. Without one: the process's space if the caller was granted it, else
the caller's first. That space is written to, and is the first of those that are read; a read over REST that names a
space stays in it (rest.py).

A request is authenticated once, and a stream may last for days. So while any is open, one task checks all of them again
every few seconds, each credential once however many streams it has. A stream whose credential fails, or whose caller
has other rights now, ends: its client asks again, and gets what it may see now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.engine import access
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, Forbidden, RateLimited, TimedOut, Unauthenticated
from scrubjay.servers.http.credentials import Credentials, Proven, presented_in
from scrubjay.servers.http.rate_limits import Limits, rate_of
from scrubjay.values.callers import Caller

RECHECK_SECONDS = 3.0  # we promise that a stream ends within ten seconds

# Health, readiness, signing in, and the page's files. Everything else needs a caller.
OPEN_PATHS = frozenset({"/", "/healthz", "/readyz", "/sign-in"})
OPEN_FOLDERS = ("/sign-in/", "/assets/")


def is_open(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


class Admission:
    """Binds the engine of each request to its caller. `refused` builds the answer to a rejected request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        engine: Engine,
        credentials: Credentials,
        limits: Limits,
        refused: Callable[[Scope, Error], Response],
        seconds: float,
        recheck_seconds: float = RECHECK_SECONDS,
    ) -> None:
        """`seconds`: after which a client hears that the store did not say in time who it is."""
        self._app = app
        self._engine = engine
        self._credentials = credentials
        self._limits = limits
        self._refused = refused
        self._seconds = seconds
        self._streams = OpenStreams(credentials.prove, recheck_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope["path"]):
            return await self._app(scope, receive, send)
        request = Request(scope)
        rated = with_rate(scope, send)
        try:
            request.state.names_space = bool(spaces_named(request))
            with anyio.fail_after(self._seconds):
                proven = await run_sync(self._admit, request, abandon_on_cancel=True)
        except TimeoutError:
            late = TimedOut(f"The store did not answer within {self._seconds:g} seconds.")
            return await self._refused(scope, late)(scope, receive, rated)
        except Error as error:
            if isinstance(error, RateLimited):
                request.state.rate = rate_of(error)
            return await self._refused(scope, error)(scope, receive, rated)
        await self._streams.run(self._app, request, proven.caller, receive, rated)

    def _admit(self, request: Request) -> Proven:
        """Bind the engine to the caller, and count the request. Both may wait for the store: call it in a thread."""
        proven = self._credentials.prove(request, request.method)
        request.state.session, request.state.engine = proven.session, self._bind_engine(request, proven)
        request.state.rate = self._limits.request(proven.caller)
        return proven

    def _bind_engine(self, request: Request, proven: Proven) -> Engine:
        named = spaces_named(request)
        home, own = proven.caller.home, self._engine.spaces
        spaces = own if home is None or access.is_granted(proven.caller, own[0]) else (home,)
        bound = self._engine.bound_to(caller=proven.caller, spaces=spaces, only=self._engine.only)
        if not named:
            return bound
        for_all = bound.bound_to(spaces=named, only=bound.only)  # all names are checked, the first is used
        bound.known_spaces.check(for_all.spaces)
        return for_all.bound_to(spaces=named[:1], only=bound.only)


def spaces_named(request: Request) -> tuple[str, ...]:
    return (*request.query_params.getlist("space"), *request.headers.getlist("x-scrubjay-space"))


def with_rate(scope: Scope, send: Send) -> Send:
    """Add the caller's rate to the reply: that of the operation if one was called, otherwise that of all requests."""

    async def send_with_rate(message: Message) -> None:
        rate = scope.get("state", {}).get("rate")
        if message["type"] == "http.response.start" and rate is not None:
            MutableHeaders(scope=message).update(rate.headers)
        await send(message)

    return send_with_rate


# --- answers that are streams ----------------------------------------------------------------------------------------


Prove = Callable[[Request, str], Proven]


@dataclass(eq=False, slots=True)
class OpenAnswer:
    """The answer to one request, for as long as it is being sent."""

    request: Request
    caller: Caller
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    of_events: bool = False

    @property
    def checked_with(self) -> tuple[object, ...]:
        """The credential and the caller: answers for which both are equal are checked again together."""
        return presented_in(self.request), self.caller


class OpenStreams:
    """Answers without a known length, whose callers are checked again every few seconds while any is open."""

    def __init__(self, prove: Prove, seconds: float = RECHECK_SECONDS) -> None:
        self._prove = prove
        self._seconds = seconds
        self._open: set[OpenAnswer] = set()
        self._watching: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, request: Request, caller: Caller, receive: Receive, send: Send) -> None:
        """Let the app answer, for as long as its caller may read the answer."""
        answer = OpenAnswer(request, caller)

        async def send_and_watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                answer.of_events = headers.get("content-type", "").startswith("text/event-stream")
                if "content-length" not in headers:  # its length is not known yet
                    self._watch(answer)
            await send(message)

        try:
            with answer.running:
                await app(request.scope, receive, send_and_watch)
        finally:
            self._leave(answer)
        # Events may end anywhere. Part of anything else (an export) must not look complete: the connection is cut.
        if answer.running.cancelled_caught and answer.of_events:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _watch(self, answer: OpenAnswer) -> None:
        self._open.add(answer)
        if self._watching is None:
            self._watching = asyncio.create_task(self._check_again())

    def _leave(self, answer: OpenAnswer) -> None:
        self._open.discard(answer)
        if not self._open and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _check_again(self) -> None:
        while True:
            await anyio.sleep(self._seconds)
            alike: dict[tuple[object, ...], list[OpenAnswer]] = {}
            for answer in self._open:
                alike.setdefault(answer.checked_with, []).append(answer)
            for answers in alike.values():
                if not await run_sync(self._may_go_on, answers[0]):
                    for answer in answers:
                        answer.running.cancel()

    def _may_go_on(self, answer: OpenAnswer) -> bool:
        """Whether the credential still proves the same caller, with the same rights."""
        with suppress(Error):  # the store is unavailable for a moment; the next check decides
            try:
                return self._prove(answer.request, answer.request.method).caller == answer.caller
            except (Unauthenticated, Forbidden):
                return False
        return True
