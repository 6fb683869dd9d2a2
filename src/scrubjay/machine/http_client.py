"""Requests to other machines: one client for syncing, for models that embed or answer, and for downloads.

    Client.open(method, path, body) -> Reply     status and headers; the body comes as it is read
    Client.ask(method, path, body) -> Answer     all of it
    fetched(url, headers) -> Reply               a GET that follows redirects
    ask_again(ask, statuses) -> Answer           several attempts with growing pauses

For all of them TLS is verified, a host's IP addresses are checked before connecting (outgoing.py), an answer is limited
in bytes and in seconds, and credentials go to the given address and nowhere else.
"""

from __future__ import annotations

import http.client
import random
import selectors
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from scrubjay.machine.outgoing import LOOPBACK_NAMES, is_address, reachable

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
MAX_REDIRECTS = 10
REDIRECTS = {301, 302, 303, 307, 308}
CHUNK = 1 << 18
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
# Not OSError as a whole: a caller that writes the answer to disk must be able to tell the errors apart.
NETWORK_ERRORS = (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)


class TooLong(http.client.HTTPException):
    """The answer is larger than the caller accepts."""


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Limits(NamedTuple):
    """How long and how much an answer may be."""

    silence_seconds: float  # between two pieces of it, and for connecting
    answer_seconds: float  # from the request to the end of the answer
    bytes: int
    connect_seconds: float | None = None  # if it differs from the silence


class Reply:
    """An answer whose body is still on the line."""

    def __init__(self, response: http.client.HTTPResponse, most: int, late: threading.Event) -> None:
        self._response = response
        self._left = most
        self._late = late
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        # Otherwise it ends wherever the connection is cut.
        self.has_an_end = response.length is not None or response.chunked

    def read(self, count: int = CHUNK) -> bytes:
        """The next bytes; none at the end."""
        with _told_as_ours():
            return self._counted(self._response.read(count))

    def lines(self) -> Iterator[bytes]:
        """The lines as they come."""
        while True:
            with _told_as_ours():
                line = self._counted(self._response.readline(self._left + 1))
            if not line:
                return
            yield line

    def body(self) -> bytes:
        return b"".join(iter(self.read, b""))

    def _counted(self, piece: bytes) -> bytes:
        self._left -= len(piece)
        if self._left < 0:
            raise TooLong
        if not piece and self._response.length:  # promised, and not sent
            raise http.client.IncompleteRead(b"", self._response.length)
        if not piece and not self.has_an_end and self._late.is_set():  # this side has cut it
            raise TimeoutError
        return piece


class Client:
    """Sends requests to one server. Several threads may use it at once."""

    def __init__(
        self,
        url: str,
        limits: Limits,
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
        parts = urlsplit(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._limits = limits
        self._private = private
        self._keep_alive = keep_alive
        self._idle: list[http.client.HTTPConnection] = []
        self._headers = {"User-Agent": "scrubjay", **_basic("Authorization", parts), **(headers or {})}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._prefix = f"{parts.path}?{parts.query}" if parts.query else parts.path
        self._proxy = _proxy_for(parts) if proxies else None
        if self._proxy and not self._tls:  # it needs the whole address
            self._headers |= _basic("Proxy-Authorization", self._proxy)
            self._prefix = f"http://{_server(parts)}{self._prefix}"

    def ask(self, method: str, path: str = "", body: bytes | None = None) -> Answer:
        """:raises ConnectionError, TimeoutError, SSLError, HTTPException: `NETWORK_ERRORS`, if no full answer came"""
        with self.open(method, path, body) as reply:
            return Answer(reply.status, reply.headers, reply.body())

    @contextmanager
    def open(self, method: str, path: str = "", body: bytes | None = None) -> Iterator[Reply]:
        """As `ask`; a broken connection is noticed when reading."""
        connection = self._idle_connection() or self._new_connection()
        with self._in_time(connection) as late:
            with _told_as_ours():
                connection.request(method, f"{self._prefix}{path}", body=body, headers=self._headers)
                response = connection.getresponse()
            if late.is_set():  # headers that were cut off look complete
                raise TimeoutError
            with closing(response):
                yield Reply(response, self._limits.bytes, late)
                read_to_the_end = response.isclosed()
        if self._keep_alive and read_to_the_end and not response.will_close:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _in_time(self, connection: http.client.HTTPConnection) -> Iterator[threading.Event]:
        """However slowly data trickles in: after that long, this side closes the connection."""
        late = threading.Event()
        timer = threading.Timer(self._limits.answer_seconds, _cut, (connection.sock, late))
        timer.daemon = True
        timer.start()
        try:
            yield late
        except BaseException as error:
            connection.close()  # also after Ctrl-C: half an answer is still unread, so it cannot be reused
            if late.is_set() and isinstance(error, NETWORK_ERRORS):
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()

    # --- connecting --------------------------------------------------------------------------------------------------

    def _idle_connection(self) -> http.client.HTTPConnection | None:
        while self._idle:
            with suppress(IndexError):  # another thread has taken it
                connection = self._idle.pop()
                if _is_open(connection):
                    return connection
                connection.close()
        return None

    def _new_connection(self) -> http.client.HTTPConnection:
        with _told_as_ours():
            connection = self._by_proxy(self._proxy) if self._proxy else self._direct()
        connection.auto_open = 0  # every socket comes from here
        return connection

    def _direct(self) -> http.client.HTTPConnection:
        """To one of the host's addresses that were checked, not to what its name resolves to a moment later."""
        connection = http.client.HTTPConnection(self._host, self._port)
        connection.default_port = 443 if self._tls else 80  # omitted in Host
        refused: OSError = ConnectionError()
        for address in reachable(self._host, self._port, private=self._private):
            try:
                plain = socket.create_connection((address, self._port), timeout=self._connect_seconds)
            except OSError as error:
                refused = error
                continue
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(self._limits.silence_seconds)
            try:
                connection.sock = self._tls.wrap_socket(plain, server_hostname=self._host) if self._tls else plain
            except BaseException:  # wrap_socket leaves the plain one to us, whatever stopped it
                plain.close()
                raise
            return connection
        raise refused

    def _by_proxy(self, proxy: SplitResult) -> http.client.HTTPConnection:
        """The host's name is resolved by the proxy, in whose network its addresses mean something."""
        host = proxy.hostname or ""
        connection: http.client.HTTPConnection
        if self._tls:
            connection = http.client.HTTPSConnection(host, proxy.port, timeout=self._connect_seconds, context=self._tls)
            connection.set_tunnel(self._host, self._port, _basic("Proxy-Authorization", proxy))
        else:
            connection = http.client.HTTPConnection(host, proxy.port, timeout=self._connect_seconds)
        connection.connect()
        connection.sock.settimeout(self._limits.silence_seconds)
        return connection

    @property
    def _connect_seconds(self) -> float:
        return self._limits.connect_seconds or self._limits.silence_seconds


@contextmanager
def _told_as_ours() -> Iterator[None]:
    """Turns whatever goes wrong into one of `NETWORK_ERRORS`."""
    try:
        yield
    except NETWORK_ERRORS:
        raise
    except (OSError, ValueError) as error:  # no route, no such host; a name, key or path that HTTP cannot carry
        raise ConnectionError from error


def _proxy_for(parts: SplitResult) -> SplitResult | None:
    """The environment's proxy for this address."""
    if parts.hostname in LOOPBACK_NAMES:
        return None
    from urllib.request import getproxies, proxy_bypass  # only needed here

    found = getproxies().get(parts.scheme)
    if not found or proxy_bypass(_server(parts)):
        return None
    return urlsplit(found if "://" in found else f"http://{found}")


def _server(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has kept an idle connection open: a closed one has something to read, its end."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return not selector.select(0)


def _cut(line: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):  # it has already ended
        line.shutdown(socket.SHUT_RDWR)


def _basic(header: str, parts: SplitResult) -> dict[str, str]:
    """The name and password of an address, as a header."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {header: f"Basic {b64encode(pair.encode()).decode()}"}


# --- asking more than once -------------------------------------------------------------------------------------------


@contextmanager
def fetched(url: str, limits: Limits, headers: Mapping[str, str]) -> Iterator[Reply]:
    """The answer after following redirects, through the environment's proxies."""
    for _ in range(MAX_REDIRECTS + 1):
        with Client(url, limits, headers=headers, proxies=True).open("GET") as reply:
            if reply.status not in REDIRECTS or "location" not in reply.headers:
                yield reply
                return
            with _told_as_ours():
                url = urljoin(url, reply.headers["location"])
        if not is_address(url):
            break
    raise http.client.HTTPException("redirected too often, or to an invalid address")


def ask_again(
    ask: Callable[[], Answer],
    statuses: Collection[int],
    *,
    longest_seconds: float,
    cut_short: bool,
    pause: Callable[[float], None] = time.sleep,
) -> Answer:
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
