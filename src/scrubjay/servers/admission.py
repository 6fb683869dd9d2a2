"""Who calls, and in which space: settled before any route is reached.

Every request leaves here with an engine bound to its caller and its space (`request.state.engine`), or is refused. The
space is `?space=` or `X-Scrubjay-Space`, else the process's own.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from scrubjay.engine.engine import Engine
from scrubjay.errors import Error


class Admission:
    """Binds the engine. `refused` makes the answer to a request that is not let in."""

    def __init__(self, app: ASGIApp, *, engine: Engine, refused: Callable[[Scope, Error], Response]) -> None:
        self._app = app
        self._engine = engine
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request = Request(scope)
        try:
            request.state.engine = self._bound(request)
        except Error as error:
            return await self._refused(scope, error)(scope, receive, send)
        await self._app(scope, receive, send)

    def _bound(self, request: Request) -> Engine:
        space = request.query_params.get("space", request.headers.get("x-scrubjay-space"))
        return self._engine if space is None else self._engine.bound_to(spaces=(space,))
