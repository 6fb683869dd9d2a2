"""What every request over HTTP must pass, whatever its address: Host, Origin, the type, size and pace of its body.

A web page can make a browser send requests to this machine, and make its own name point here (DNS rebinding). Such a
request names a foreign host or a foreign origin, and is refused. Old browsers send forms without an origin, so a POST
must also have something that no form can send: the content type of JSON, or a key in a header. A form cannot send any
other method. Only origins in the setting `origins` may read an answer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.errors import InvalidInput
from scrubjay.values.frozen import dataclass

MAX_BODY_BYTES = 2 * 1024 * 1024

# The whole header must match: `127.0.0.1.evil.example` and `localhost@evil.example` are not us.
LOOPBACK = r"(?:localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])"
PORT = r"(?::[0-9]{1,5})?"
ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:.]{2,45}\]"
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9_.:\[\]-]+")
TYPE = re.compile(r"[a-z0-9.+_-]+/[a-z0-9.+_-]+")
OF_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
USUAL_PORTS = {"http": ":80", "https": ":443"}
SECONDS = 30.0  # to receive a body, and to send each piece of an answer
SILENCE_SECONDS = 10.0  # between two pieces of a body
CLOSE = {"connection": "close"}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    status: int
    code: str
    message: str
    headers: dict[str, str] | None = None

    def plain(self) -> JSONResponse:
        """Make the reply, where no dialect shapes it."""
        return failure(self.status, self.code, self.message, self.headers)


FOREIGN_ORIGIN = Refusal(
    403,
    "forbidden",
    "Pages of other origins may not use this server. The setting `origins` names those that may; behind a proxy with "
    "TLS, `proxies` names the proxy.",
)
FORM = Refusal(
    415,
    "unsupported_media_type",
    "Send Content-Type: application/json with a POST, even without a body: otherwise a form of another site could have "
    "sent this.",
    CLOSE,
)


class StoppedReading(Exception):
    """Raised when a client does not read its answer."""


class Guard:
    """Refuses requests before anything else sees them; `refused` builds the answer."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        allowed_hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
        any_address: bool = False,
        max_body_bytes: int = MAX_BODY_BYTES,
        seconds: float = SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
        refused: Callable[[Scope, Refusal], Response] = lambda _scope, refusal: refusal.plain(),
    ) -> None:
        """`origins`: those of other sites whose pages may use this one.

        `any_address`: IP addresses are allowed as a host, since they cannot be made to point elsewhere.
        """
        names = "|".join([LOOPBACK, *map(re.escape, allowed_hosts), *((ADDRESS,) if any_address else ())])
        self._app = app
        self._host = re.compile(f"(?:{names}){PORT}", re.IGNORECASE)
        self._origins = frozenset(map(plain_origin, origins))
        self._max_body_bytes = max_body_bytes
        self._seconds = seconds
        self._silence_seconds = silence_seconds
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":  # nothing here speaks WebSocket
            return await send({"type": "websocket.close", "code": 1008})
        if refusal := self._refusal(scope, Headers(scope=scope)):
            return await self._refused(scope, refusal)(scope, receive, send)
        try:
            with anyio.fail_after(self._seconds):
                body = await read_body(with_deadline(receive, self._silence_seconds), self._max_body_bytes)
        except TimeoutError:
            slow = Refusal(408, "too_slow", "The body stopped arriving, or arrived too slowly.", CLOSE)
            return await self._refused(scope, slow)(scope, receive, send)
        if body is None:
            return await self._refused(scope, too_large(self._max_body_bytes))(scope, receive, send)
        if body["type"] == "http.request":  # else the client has left
            # One that does not read its answer is disconnected, so that it holds nothing for ever.
            await self._app(scope, replay(body, receive), with_send_deadline(send, self._seconds))

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        if not all(self._host.fullmatch(host) for host in headers.getlist("host") or [""]):
            return Refusal(421, "misdirected", "This server answers to loopback addresses only.")
        own = plain_origin(f"{scope['scheme']}://{headers.get('host')}")
        if not {plain_origin(origin) for origin in headers.getlist("origin")} <= {own, *self._origins}:
            return FOREIGN_ORIGIN
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may use the other one
            return Refusal(400, "unreadable", "The request states its length in two ways.", CLOSE)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._max_body_bytes:
            return too_large(self._max_body_bytes)
        if scope["method"] == "POST" and could_be_a_form(headers):
            return FORM
        return None


def plain_origin(origin: str) -> str:
    """Write an origin as browsers do: in lower case, without the scheme's default port."""
    origin = origin.lower()
    return origin.removesuffix(USUAL_PORTS.get(origin.partition(":")[0], ""))


def origins_in(text: str) -> list[str]:
    """Read the origins that a setting names.

    :raises InvalidInput: if one is not
    """
    found = [plain_origin(one) for one in text.replace(",", " ").split()]
    for one in found:
        if ORIGIN.fullmatch(one) is None:
            hint = "Write it like https://app.example:8443."
            raise InvalidInput(f"origins: {one[:100]} is not an origin.", hint=hint, field="origins")
    return found


def could_be_a_form(headers: Headers) -> bool:
    """Whether a page of another origin could have sent this POST without asking for permission first."""
    if "x-api-key" in headers or "authorization" in headers:
        return False
    kinds = [kind.partition(";")[0].strip().lower() for kind in headers.getlist("content-type")]
    return not kinds or any(TYPE.fullmatch(kind) is None or kind in OF_FORMS for kind in kinds)


async def read_body(receive: Receive, max_bytes: int) -> Message | None:
    """Read the request's body into one message; None as soon as it is too large, whatever length it declared."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body += message.get("body", b"")
        if len(body) > max_bytes:
            return None
        if not message.get("more_body", False):
            return {"type": "http.request", "body": bytes(body), "more_body": False}


def with_deadline(act: Callable[..., Awaitable[Any]], seconds: float) -> Callable[..., Awaitable[Any]]:
    """Let no call of this function take longer."""

    async def timed(*given: Any) -> Any:
        with anyio.fail_after(seconds):
            return await act(*given)

    return timed


def with_send_deadline(send: Send, seconds: float) -> Send:
    """Disconnect a client that takes longer to read a piece of its answer."""

    async def timed(message: Message) -> None:
        try:
            with anyio.fail_after(seconds):
                await send(message)
        except TimeoutError:
            raise StoppedReading from None

    return timed


def replay(first: Message, receive: Receive) -> Receive:
    waiting = [first]

    async def next_message() -> Message:
        return waiting.pop() if waiting else await receive()

    return next_message


def failure(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


def too_large(max_bytes: int) -> Refusal:
    # The rest of the body is not read, so the connection ends with this answer.
    message = f"The request is too large (maximum {max_bytes // 1024} KiB)."
    return Refusal(413, "too_large", message, CLOSE)
