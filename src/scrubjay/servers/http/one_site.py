"""Several workers as one site: a request of an MCP session reaches the worker that holds it.

    client ──> any worker ──> the session is another's? ──> that one's own socket ──> the whole site there
                              it is ours, or there is none ──> the site here

A session's name begins with the number of its worker. This comes before all other layers, so that a request is checked,
counted and answered once, where its session is; there it counts as what it was when it arrived: from that address, by
that scheme.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Iterable

import httpx2
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.servers.http.guard import failure
from scrubjay.servers.http.processes import Worker

Headers = Iterable[tuple[bytes, bytes]]

DIGITS = 2  # of a worker's number
SESSION, ARRIVED = b"mcp-session-id", b"x-scrubjay-arrived"
OF_A_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})


class OneSite:
    """Wraps the whole site of a worker."""

    def __init__(self, app: ASGIApp, worker: Worker) -> None:
        self._app = app
        self._worker = worker

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = dict(scope["headers"])
        number, dash, name = headers.get(SESSION, b"").partition(b"-")
        arrived = self._read_arrival(headers.get(ARRIVED, b""))
        if arrived is not None:
            scope = {**scope, **arrived}
        elif dash and number.isdigit() and len(number) <= DIGITS and int(number) != self._worker.number:
            return await self._pass_on(int(number), scope, receive, send)
        if dash:
            scope = {**scope, "headers": with_session(scope["headers"], name)}

        async def send_with_session(message: Message) -> None:
            session = dict(message.get("headers", ())).get(SESSION)
            if session is not None:
                name = b"%d-%s" % (self._worker.number, session)
                message = {**message, "headers": with_session(message["headers"], name)}
            await send(message)

        await self._app(scope, receive, send_with_session)

    def _read_arrival(self, header: bytes) -> Scope | None:
        """Read how a request arrived that another worker passed on; None if none did."""
        secret, _, rest = header.partition(b" ")
        if not hmac.compare_digest(secret, self._worker.secret.encode()):
            return None
        client, scheme = json.loads(rest)
        return {"client": None if client is None else tuple(client), "scheme": scheme}

    async def _pass_on(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        arrived = json.dumps([scope.get("client"), scope["scheme"]])
        headers = [one for one in scope["headers"] if one[0] not in OF_A_CONNECTION]
        headers.append((ARRIVED, f"{self._worker.secret} {arrived}".encode()))
        url = httpx2.URL(
            "http://worker", raw_path=scope["raw_path"] + b"?" * bool(scope["query_string"]) + scope["query_string"]
        )
        begun = False
        try:
            line = httpx2.AsyncHTTPTransport(uds=self._worker.socket_of(number))
            async with (
                httpx2.AsyncClient(transport=line, timeout=None) as client,
                client.stream(scope["method"], url, headers=headers, content=body_of(receive)) as reply,
            ):
                answer = [one for one in reply.headers.raw if one[0].lower() not in OF_A_CONNECTION]
                begun = True
                await send({"type": "http.response.start", "status": reply.status_code, "headers": answer})
                async for piece in reply.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except httpx2.ConnectError:  # it is being replaced, and its sessions are gone
            await failure(404, "not_found", "Session not found")(scope, receive, send)
        except httpx2.HTTPError:
            if begun:
                raise
            again = {"retry-after": "1"}
            await failure(503, "unavailable", "The worker of this session has ended.", again)(scope, receive, send)


async def body_of(receive: Receive) -> AsyncIterator[bytes]:
    """The body as it comes; the worker that gets it bounds its size and its pace."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx2.ReadError("The client has left.")
        more = message.get("more_body", False)
        yield message.get("body", b"")


def with_session(headers: Headers, name: bytes) -> list[tuple[bytes, bytes]]:
    return [(key, name if key == SESSION else value) for key, value in headers]
