"""How many sessions of the handshake era stay open: beyond that, the caller with most loses its least used one.

Some clients open a session for every call and never end one. At its limit the protocol's library refuses every new
session, so one of these clients would lock all others out until its sessions expire. A client that comes back to an
ended session gets a 404 and opens another, as the protocol requires.
"""

from __future__ import annotations

from collections import Counter
from time import monotonic

from starlette.authentication import BaseUser
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.values.frozen import dataclass

SESSION = "mcp-session-id"
MOST = 500
IDLE_SECONDS = 1_800.0  # after which the library ends a session


@dataclass(frozen=True, slots=True)
class Open:
    user: BaseUser  # whose it is, as the library knows one
    used_at: float

    @property
    def owner(self) -> str:
        return self.user.display_name


class BoundedSessions:
    """Wraps the library's app, and ends a session as if its client had asked for it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._most = MOST
        self._open: dict[str, Open] = {}  # the least used first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = Headers(scope=scope).get(SESSION)
        known = self._open.get(name or "")
        if name is not None and known is not None and known.owner == scope["user"].display_name:
            del self._open[name]
            if scope["method"] != "DELETE":
                self._open[name] = Open(known.user, monotonic())

        async def noticed(message: Message) -> None:
            if name is None and message["type"] == "http.response.start" and message["status"] < 400:
                opened = Headers(raw=message["headers"]).get(SESSION)
                if opened is not None:
                    self._open[opened] = Open(scope["user"], monotonic())
            await send(message)

        await self._app(scope, receive, noticed)
        while (surplus := self._surplus()) is not None:
            await self._end(surplus)

    def _surplus(self) -> str | None:
        """A session to end; those already over are dropped."""
        begun = monotonic() - IDLE_SECONDS
        while self._open and next(iter(self._open.values())).used_at < begun:
            del self._open[next(iter(self._open))]
        if len(self._open) <= self._most:
            return None
        [(fullest, _)] = Counter(one.owner for one in self._open.values()).most_common(1)
        return next(name for name, one in self._open.items() if one.owner == fullest)

    async def _end(self, name: str) -> None:
        request: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(SESSION.encode(), name.encode())],
            "user": self._open.pop(name).user,
        }
        await self._app(request, nothing_more, ignore_end)


async def nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def ignore_end(_message: Message) -> None:
    """There is no client to read that it has ended."""
