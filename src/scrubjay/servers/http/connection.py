"""How requests are read off the wire: by uvicorn, which answers in plain text what it cannot read or has no room for;
here, as all errors are. Bytes that are no HTTP never become a request, so nothing else of ours sees them."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from scrubjay.servers.http.crowd import Crowd, address_of
from scrubjay.servers.http.guard import CLOSE, failure

MAX_HEAD_BYTES = 64 * 1024  # of a request's line and its headers together
HEALTH = frozenset({"/healthz", "/readyz"})  # answered however many are connected
UNREADABLE = failure(
    400,
    "unreadable",
    "This could not be read as an HTTP request. Its address and headers together may have at most "
    f"{MAX_HEAD_BYTES // 1024} KiB; longer arguments belong into a body.",
    CLOSE,
)
TOO_SLOW = failure(408, "too_slow", "The request's head did not arrive in time.", CLOSE)
OVERLOADED = failure(
    503, "overloaded", "This server has as many connections as it takes. Try again soon.", {**CLOSE, "retry-after": "2"}
)
REASONS = {400: b"Bad Request", 408: b"Request Timeout"}


class Connection(H11Protocol):
    """One client's, for as long as it stays."""

    crowd: Crowd

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_of(self.client)
        self.since = self.loop.time()  # when it became its client's turn, or ours
        self._ours = False  # our turn: a request is being answered
        self._unsent = 0
        self._site, self.app = self.app, self._answered
        self.crowd.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.leave(self)
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and not self.cycle.response_complete:
            self._ours, self.since = True, self.loop.time()

    def on_response_complete(self) -> None:
        self._ours, self.since = False, self.loop.time()
        super().on_response_complete()  # which may begin with the next request

    @property
    def idle(self) -> bool:
        """We wait for the client."""
        return not self._ours or self.conn.their_state is h11.SEND_BODY

    def look(self, now: float) -> None:
        """End it if nothing comes or goes any more. (A body's own deadline is the guard's.)"""
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent != self._unsent:  # a slow reader, but one that reads
            self.since = now
        self._unsent = unsent
        late = now - self.since >= self.crowd.idle_seconds
        if late and self.transport.is_closing():
            self.transport.abort()
        elif late and not self._ours:
            self.drop()

    def drop(self) -> None:
        """End it; a client in the middle of a head is told why."""
        self.crowd.leave(self)
        if self.transport.get_write_buffer_size():
            return self.transport.abort()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._say(TOO_SLOW)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's words for it
        self._say(UNREADABLE)
        self.transport.close()

    def _say(self, response: Response) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # else an answer is on its way; it just ends
            for event in (
                h11.Response(
                    status_code=response.status_code,
                    headers=response.raw_headers,
                    reason=REASONS[response.status_code],
                ),
                h11.Data(data=bytes(response.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        crowded = self.crowd.too_many(self) and scope["path"] not in HEALTH
        await (OVERLOADED if crowded else self._site)(scope, receive, send)


def config_of(app: ASGIApp, *, crowd: Crowd | None = None, **options: Any) -> uvicorn.Config:
    """`options`: uvicorn's own."""
    known = crowd or Crowd()
    return uvicorn.Config(
        app,
        http=type("CrowdedConnection", (Connection,), {"crowd": known}),
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_config=None,  # ours, so that nothing goes to stdout
        access_log=False,  # Journal's, which has no ids in it
        ws="none",
        server_header=False,
        proxy_headers=False,
        **{"timeout_keep_alive": known.idle_seconds, **options},
    )
