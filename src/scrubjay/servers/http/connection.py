"""How requests are read off the wire: by uvicorn. What it cannot read or has no capacity for it would answer in plain
text; here it is JSON like all errors. Bytes that are not HTTP never become a request, so nothing else sees them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import h11
import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from scrubjay.servers.http.crowd import ConnectionLimiter, address_of
from scrubjay.servers.http.guard import CLOSE, StoppedReading, failure

log = logging.getLogger(__name__)

MAX_HEAD_BYTES = 64 * 1024  # of a request's line and its headers together
HEALTH = frozenset({"/healthz", "/readyz"})  # answered however many are connected
UNREADABLE = failure(
    400,
    "unreadable",
    "This is not a valid HTTP request. Its address and headers together may have at most "
    f"{MAX_HEAD_BYTES // 1024} KiB; send longer arguments in the body.",
    CLOSE,
)
TOO_SLOW = failure(408, "too_slow", "The request's headers did not arrive in time.", CLOSE)
OVERLOADED = failure(
    503, "overloaded", "This server has too many connections. Try again soon.", {**CLOSE, "retry-after": "2"}
)
REASONS = {400: b"Bad Request", 408: b"Request Timeout"}


class Connection(H11Protocol):
    """One client's connection."""

    crowd: ConnectionLimiter

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_of(self.client)
        self.since = self.loop.time()  # when the client's turn, or ours, began
        self._ours = False  # our turn: a request is being answered
        self._unsent = 0
        self._site, self.app = self.app, self._answer
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
        super().on_response_complete()  # which may start the next request

    @property
    def idle(self) -> bool:
        """Whether it is the client's turn to send."""
        return not self._ours or self.conn.their_state is h11.SEND_BODY

    def close_if_idle(self, now: float) -> None:
        """Close the connection if nothing is received or sent any more. (The guard has its own deadline for bodies.)"""
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
        """Close the connection; a client in the middle of its headers gets the reason."""
        self.crowd.leave(self)
        if self.transport.get_write_buffer_size():
            return self.transport.abort()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._send_response(TOO_SLOW)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's text
        self._send_response(UNREADABLE)
        self.transport.close()

    def _send_response(self, response: Response) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # otherwise an answer is on its way, and is cut off
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

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        crowded = self.crowd.too_many(self) and scope["path"] not in HEALTH
        try:
            await (OVERLOADED if crowded else self._site)(scope, receive, send)
        except StoppedReading:
            log.info("A client stopped reading its answer and was disconnected.")
            self.cycle.disconnected = True  # or uvicorn would report an answer that was not completed
            self.transport.abort()


def config_of(app: ASGIApp, *, crowd: ConnectionLimiter | None = None, **options: Any) -> uvicorn.Config:
    """`options`: uvicorn's own."""
    known = crowd or ConnectionLimiter()
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
