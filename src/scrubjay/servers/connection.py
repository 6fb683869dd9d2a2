"""How requests are read off the wire: by uvicorn, which answers in plain text what it cannot read; here, as all errors
are. Bytes that are no HTTP never become a request, so nothing else of ours sees them."""

from __future__ import annotations

from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from scrubjay.servers.guard import CLOSE, failure

MAX_HEAD_BYTES = 64 * 1024  # of a request's line and its headers together
UNREADABLE = failure(
    400,
    "unreadable",
    "This could not be read as an HTTP request. Its address and headers together may have at most "
    f"{MAX_HEAD_BYTES // 1024} KiB; longer arguments belong into a body.",
    CLOSE,
)


class Connection(H11Protocol):
    """One client's, for as long as it stays."""

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's words for it
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):  # else an answer is on its way; it just ends
            for event in (
                h11.Response(status_code=UNREADABLE.status_code, headers=UNREADABLE.raw_headers, reason=b"Bad Request"),
                h11.Data(data=bytes(UNREADABLE.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


def config_of(app: ASGIApp, **options: Any) -> uvicorn.Config:
    """`options`: uvicorn's own."""
    return uvicorn.Config(
        app,
        http=Connection,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        log_config=None,  # ours, so that nothing goes to stdout
        access_log=False,  # Journal's, which has no ids in it
        ws="none",
        server_header=False,
        proxy_headers=False,
        **options,
    )
