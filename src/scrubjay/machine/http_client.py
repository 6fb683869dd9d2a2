"""Requests to other machines: one client for syncing, for models that embed or answer, and for downloads.

    Client.open(method, path, body) -> Reply     status and headers; the body comes as it is read
    Client.ask(method, path, body) -> Answer     all of it
    fetched(url, headers) -> Reply               a GET that follows redirects
    ask_again(ask, statuses) -> Answer           several attempts with growing pauses

For all of them TLS is verified, a host's IP addresses are checked before connecting (outgoing.py), an answer is limited
in bytes and in seconds, and credentials go to the given address and nowhere else.
"""

from __future__ import annotations

import random
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2

from scrubjay.machine.outgoing import LOOPBACK_NAMES, is_address, reachable

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
MAX_REDIRECTS = 10
REDIRECTS = {301, 302, 303, 307, 308}
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
# Not OSError as a whole: a caller that writes the answer to disk must be able to tell the errors apart.
NETWORK_ERRORS = (ConnectionError, TimeoutError, ssl.SSLError)

_end: ContextVar[float] = ContextVar("end")  # when the answer that is read now must be complete


class TooLong(ConnectionError):
    """The answer is larger than the caller accepts."""


class HttpAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class HttpLimits(NamedTuple):
    """How long and how much an answer may be."""

    silence_seconds: float  # between two pieces of it, and for connecting
    answer_seconds: float  # from the request to the end of the answer
    bytes: int
    connect_seconds: float | None = None  # if it differs from the silence


class HttpReply:
    """An answer whose body is still on the line."""

    def __init__(self, response: httpcore2.Response, most: int, end: float) -> None:
        self._pieces = response.iter_stream()
        self._left = most
        self._end = end
        self.status = response.status
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        # Otherwise it ends wherever the connection is cut.
        self.has_an_end = not {"content-length", "transfer-encoding"}.isdisjoint(self.headers)

    def read(self) -> bytes:
        """The next bytes; none at the end."""
        with _translate_errors(self._end):
            piece = next(self._pieces, b"")
        self._left -= len(piece)
        if self._left < 0:
            raise TooLong
        return piece

    def lines(self) -> Iterator[bytes]:
        """The lines as they come."""
        rest = b""
        for piece in iter(self.read, b""):
            *whole, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in whole)
        if rest:
            yield rest

    def body(self) -> bytes:
        return b"".join(iter(self.read, b""))


class Client:
    """Sends requests to one server. Several threads may use it at once."""

    def __init__(
        self,
        url: str,
        limits: HttpLimits,
        *,
        key: str = "",
        headers: Mapping[str, str] | None = None,
        private: bool = True,
        proxies: bool = False,
        keep_alive: bool = False,
    ) -> None:
        """`private`: also addresses of this machine and private networks. `proxies`: those of the environment.
        `keep_alive`: connections are reused, until `close`.
        """
        self._url = parts = urlsplit(url)
        self._limits = limits
        self._headers = {"User-Agent": "scrubjay", "Accept-Encoding": "identity", "Host": _server(parts)}
        self._headers |= {**_basic("Authorization", parts), **(headers or {})}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._prefix = f"{parts.path}?{parts.query}" if parts.query else parts.path
        proxy = _proxy_for(parts) if proxies else None
        # The name of a host behind a proxy is resolved by that, in whose network its addresses mean something.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=ssl.create_default_context() if parts.scheme == "https" else None,
            proxy=proxy
            and httpcore2.Proxy(f"http://{_server(proxy)}", headers=[*_basic("Proxy-Authorization", proxy).items()]),
            max_connections=None,
            max_keepalive_connections=None if keep_alive else 0,
            network_backend=_Network(None if proxy else private),
        )

    def ask(self, method: str, path: str = "", body: bytes | None = None) -> HttpAnswer:
        """:raises ConnectionError, TimeoutError, SSLError: `NETWORK_ERRORS`, if no full answer came"""
        with self.open(method, path, body) as reply:
            return HttpAnswer(reply.status, reply.headers, reply.body())

    @contextmanager
    def open(self, method: str, path: str = "", body: bytes | None = None) -> Iterator[HttpReply]:
        """As `ask`; a broken connection is noticed when reading."""
        silence, end = self._limits.silence_seconds, time.monotonic() + self._limits.answer_seconds
        timeouts = {"connect": self._limits.connect_seconds or silence, "read": silence, "write": silence}
        with ExitStack() as stack:
            with _translate_errors(end):
                host, target = (self._url.hostname or "").encode("idna"), f"{self._prefix}{path}" or "/"
                url = httpcore2.URL(scheme=self._url.scheme, host=host, port=self._url.port, target=target)
                headers, extensions = [*self._headers.items()], {"timeout": timeouts}
                asked = self._pool.stream(method, url, headers=headers, content=body, extensions=extensions)
                response = stack.enter_context(asked)
            yield HttpReply(response, self._limits.bytes, end)

    def close(self) -> None:
        self._pool.close()


class _Network(httpcore2.SyncBackend):
    """Connects to one of a host's addresses that were checked, not to what its name resolves to a moment later."""

    def __init__(self, private: bool | None) -> None:
        """`private`: whether private addresses are allowed as well; None if nothing is checked."""
        self._private = private

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **named: Any) -> _Line:
        refused: Exception = ConnectionError()
        for address in [host] if self._private is None else reachable(host, port, private=self._private):
            try:
                return _Line(super().connect_tcp(address, port, timeout, *more, **named))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused


class _Line(httpcore2.NetworkStream):
    """A connection that waits no longer than the answer may take, however slowly data trickles in."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream
        self.close, self.get_extra_info = stream.close, stream.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Line(self._stream.start_tls(ssl_context, server_hostname, self._left(timeout)))

    def _left(self, timeout: float | None) -> float:
        left = _end.get() - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left if timeout is None else min(left, timeout)


@contextmanager
def _translate_errors(end: float) -> Iterator[None]:
    """Turns whatever goes wrong into one of `NETWORK_ERRORS`; this side stops waiting at the end."""
    token = _end.set(end)
    try:
        yield
    except NETWORK_ERRORS:
        raise
    except httpcore2.TimeoutException as error:
        raise TimeoutError from error
    # no route, no such host; a name, key or path that HTTP cannot carry; an answer that is none
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, OSError, ValueError) as error:
        reason = error.args[0] if error.args else None
        raise reason if isinstance(reason, ssl.SSLError) else ConnectionError() from error
    finally:
        _end.reset(token)


def _proxy_for(parts: SplitResult) -> SplitResult | None:
    """The environment's proxy for this address."""
    found = getproxies().get(parts.scheme)
    if not found or parts.hostname in LOOPBACK_NAMES or proxy_bypass(_server(parts)):
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _server(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _basic(header: str, parts: SplitResult) -> dict[str, str]:
    """The name and password of an address, as a header."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}


# --- asking more than once -------------------------------------------------------------------------------------------


@contextmanager
def fetch_following(url: str, limits: HttpLimits, headers: Mapping[str, str]) -> Iterator[HttpReply]:
    """The answer after following redirects, through the environment's proxies."""
    for _ in range(MAX_REDIRECTS + 1):
        with Client(url, limits, headers=headers, proxies=True).open("GET") as reply:
            if reply.status not in REDIRECTS or "location" not in reply.headers:
                yield reply
                return
            with _translate_errors(0.0):
                url = urljoin(url, reply.headers["location"])
        if not is_address(url):
            break
    raise ConnectionError("redirected too often, or to an invalid address")


def ask_again(
    ask: Callable[[], HttpAnswer],
    statuses: Collection[int],
    *,
    longest_seconds: float,
    cut_short: bool,
    pause: Callable[[float], None] = time.sleep,
) -> HttpAnswer:
    """An answer of any status; transient ones and broken connections are retried after a growing pause.

    If the server asks for a pause of more than `longest_seconds`, the pause is `longest_seconds` (`cut_short`) or there
    are no more attempts.
    """
    growing = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        wait = growing
        try:
            answer = ask()
            told = answer.headers.get("retry-after", "")
            wait = float(told) if told.isdecimal() else growing
            too_long = wait > longest_seconds and not cut_short
            if answer.status not in statuses or attempt == ATTEMPTS or too_long:
                return answer
        except (ssl.SSLCertVerificationError, TooLong):
            raise  # the next time would be the same
        except NETWORK_ERRORS:
            if attempt == ATTEMPTS:
                raise
        pause(min(wait, longest_seconds) * random.uniform(0.8, 1.2))  # noqa: S311 -- no secret
        growing *= 2
    raise AssertionError("the last attempt has returned or raised")
