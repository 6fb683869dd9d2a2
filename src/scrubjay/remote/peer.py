"""Another scrubjay over HTTP, as a place to sync with.

    RemotePeer    asks its REST routes what a `Peer` can be asked (dialects/native/sync_peer.py, engine/sync/host.py)
    HttpLine      one connection: TLS checked, no redirects, no proxy, an end to every wait

Every question may be asked again without harm, so what fails for a moment (no connection, a timeout, a cut in the
middle, 429, 502, 503) is, a few times. A run that breaks off all the same goes on where it was the next time. What
comes back is checked as if a stranger had written it, and its words are never repeated to anybody; the key and the
address stand in no message.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from scrubjay.dialects.base import Body, Operation
from scrubjay.dialects.native.sync_peer import MAX_IDS
from scrubjay.dialects.table import find
from scrubjay.dialects.validation import Checker
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.local import MENDING
from scrubjay.engine.sync.merge import Winner
from scrubjay.engine.sync.peer import Changes, Manner, Parcel, Peer, Taken
from scrubjay.errors import (
    ClockAhead,
    EndpointUnreachable,
    Error,
    Forbidden,
    InvalidInput,
    Locked,
    StorageBusy,
    StorageFull,
    StorageTooNew,
    SyncFailed,
)
from scrubjay.machine import outgoing
from scrubjay.stores.promises.sync import Heard, Replica, Stamp
from scrubjay.values.memory import Link

ATTEMPTS = 4
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0  # also of what the server asks for; the lease of a sync lasts longer
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
ANSWER_SECONDS = 90.0  # from the question to the end of the answer
LARGEST_ANSWER = 8 * 1024 * 1024
TRY_AGAIN = {408, 429, 502, 503, 504}
TOLD: dict[str, type[Error]] = {one.code: one for one in (Locked, StorageBusy, StorageFull)}
NETWORK_ERRORS = (OSError, http.client.HTTPException)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Line(Protocol):
    def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        """:raises OSError: :raises http.client.HTTPException: if no whole answer came"""
        ...

    def close(self) -> None: ...


class RemotePeer(Peer):
    """Opened by greeting: whoever is there must be a scrubjay of the same protocol that takes the key.

    :raises EndpointUnreachable: :raises Forbidden: :raises StorageTooNew:
    """

    def __init__(self, name: str, line: Line, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._name = name
        self._line = line
        self._pause = pause
        try:
            self._greeting = self._greeted()
        except BaseException:  # whatever it was, nobody has got a peer that could be closed
            line.close()
            raise

    @property
    def origin(self) -> str:
        return self._greeting.origin

    def model(self) -> str | None:
        return self._greeting.model

    def spaces(self) -> Sequence[str]:
        return self._greeting.spaces

    def admits(self, space: str) -> bool:
        return self._greeting.every_space or space in self._greeting.spaces

    def sealed(self, space: str) -> bool:
        return space in (self._greeting.sealed or ())

    def changes(self, space: str, after: Heard, *, limit: int) -> Changes:
        asked = {"space": space, "after": {"number": after.number, "proof": after.proof}, "limit": limit}
        changes: Changes = self._built(Changes, self._asked("sync_changes", asked))
        return changes

    def stamps(self, ids: Sequence[str]) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        for some in _parts(ids):
            told = self._asked("sync_stamps", {"ids": some})["stamps"]
            found |= {name: self._built(Stamp, one) for name, one in told.items()}
        return found

    def links(self, ids: Sequence[str]) -> Sequence[Link]:
        found: list[Link] = []
        for some in _parts(ids):
            offset, more = 0, True
            while more:
                told = self._asked("sync_links", {"ids": some, "offset": offset})
                links = self._read({"links": told["links"]}).links
                more = bool(told["more"]) and bool(links)
                offset += len(links)
                found += links
        return found

    def parcel(self, ids: Sequence[str], *, vectors: bool) -> Parcel:
        whole = Parcel()
        for some in _parts(ids):
            left: Sequence[str] = some
            while left:
                told = self._asked("sync_fetch", {"ids": list(left), "vectors": vectors})
                if len(told["left"]) >= len(left):
                    raise self._no_scrubjay()
                parcel, left = self._read(told["parcel"]), told["left"]
                whole = Parcel(
                    replicas=whole.replicas + parcel.replicas,
                    unreadable=tuple(dict.fromkeys(whole.unreadable + parcel.unreadable)),
                    spaces={**whole.spaces, **parcel.spaces},
                    model=parcel.model,
                )
        if {one.memory.id for one in whole.replicas} - set(ids):
            raise self._no_scrubjay()
        return whole

    def take(self, parcel: Parcel, manner: Manner) -> Sequence[Taken]:
        taken: list[Taken] = []
        pieces: list[Replica | Link] = [*parcel.replicas, *parcel.links]
        for batch in wire.batches(pieces, wire.size_of):
            taken += self._take(_of(parcel, batch), manner)
        undecided = [one.memory for one in taken if one.winner is Winner.NONE]
        if not undecided:
            return taken
        there = {one.memory.id: one for one in self.parcel(undecided, vectors=False).replicas}
        return [replace(one, current=there.get(one.memory)) for one in taken]

    def _take(self, parcel: Parcel, manner: Manner) -> Sequence[Taken]:
        asked = {
            "parcel": wire.written(parcel),
            "policy": manner.policy,
            "named": manner.named,
            "sender": manner.sender,
            "dry_run": manner.dry_run,
        }
        told = self._asked("sync_take", asked)["taken"]
        return [self._built(Taken, one) for one in told]

    def mark(self) -> str | None:
        return self._greeted().mark

    def renew(self) -> None:
        self._asked("sync_renew", {"origin": self.origin})
        self._greeting = self._greeted()

    def close(self) -> None:
        self._line.close()

    # --- asking ------------------------------------------------------------------------------------------------------

    def _greeted(self) -> wire.Greeting:
        told = self._asked("sync_greet", None)
        if told["protocol"] > wire.PROTOCOL:
            raise StorageTooNew(
                f"Endpoint {self._name} runs a newer scrubjay.", hint="Update scrubjay on this machine."
            )
        if told["protocol"] < wire.PROTOCOL:
            raise EndpointUnreachable(
                f"Endpoint {self._name} runs an older scrubjay.", hint="Update scrubjay on that machine."
            )
        known = {entry.name for entry in fields(wire.Greeting)}
        greeting: wire.Greeting = self._built(wire.Greeting, {name: told[name] for name in told.keys() & known})
        return greeting

    def _asked(self, operation: str, arguments: Body | None) -> Body:
        """What the other side answers, as its schema promises."""
        asked = find("native").operations[operation]
        assert asked.route is not None
        body = None if arguments is None else json.dumps(arguments, ensure_ascii=False).encode()
        answer = self._answered(asked.route.method, asked.route.path, body)
        if answer.status != 200:
            raise self._refusal(answer)
        told = _json(answer.body)
        try:
            _checker(asked).check(told)
        except InvalidInput:
            raise self._no_scrubjay() from None
        return dict(told)

    def _answered(self, method: str, path: str, body: bytes | None) -> Answer:
        """An answer of any status; waits and asks again as long as there is hope."""
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            wait = pause
            try:
                answer = self._line.ask(method, path, body)
                asked_to_wait = answer.headers.get("retry-after", "")
                wait = float(asked_to_wait) if asked_to_wait.isdecimal() else pause
                if answer.status not in TRY_AGAIN or attempt == ATTEMPTS or wait > LONGEST_PAUSE_SECONDS:
                    return answer
            except ssl.SSLCertVerificationError:
                raise EndpointUnreachable(
                    f"The certificate of endpoint {self._name} is not good.",
                    hint="Mend it there, or let SSL_CERT_FILE name an authority of your own.",
                ) from None
            except NETWORK_ERRORS:
                if attempt == ATTEMPTS:
                    raise EndpointUnreachable(
                        f"Endpoint {self._name} does not answer.", hint="Is the server running? Then try again."
                    ) from None
            self._pause(wait * random.uniform(0.8, 1.2))  # noqa: S311 -- no secret
            pause *= 2
        raise AssertionError("the last attempt has returned or raised")

    def _refusal(self, answer: Answer) -> Error:  # noqa: PLR0911 -- one line per reason
        code = _code(answer.body)
        if answer.status == 401:
            return Forbidden(
                f"Endpoint {self._name} does not take the key that it was given.",
                hint=f"Get a good one there, then: scrubjay sync add {self._name} URL",
            )
        if answer.status == 403 and code == Forbidden.code:
            return Forbidden(
                f"The key for endpoint {self._name} may not sync there.", hint="Ask for a key with the role owner."
            )
        if code == ClockAhead.code:
            return ClockAhead(
                f"Endpoint {self._name} refuses changes that are stamped more than an hour ahead of its clock.",
                hint=MENDING,
            )
        if code in TOLD:
            return TOLD[code](f"Endpoint {self._name}: {TOLD[code]().message}", hint="Try again later.")
        if answer.status in TRY_AGAIN:
            return EndpointUnreachable(f"Endpoint {self._name} is busy.", hint="Try again later.")
        if answer.status >= 500 or code is not None:
            return SyncFailed(f"Endpoint {self._name} refused with status {answer.status}.", hint="Its log says why.")
        return self._no_scrubjay()

    def _no_scrubjay(self) -> EndpointUnreachable:
        return EndpointUnreachable(
            f"What answers for endpoint {self._name} is no scrubjay that can be synced with.",
            hint="Is the address right, up to where /api begins, and scrubjay there up to date?",
        )

    def _read(self, body: Body) -> Parcel:
        try:
            return wire.read(body)
        except InvalidInput:
            raise self._no_scrubjay() from None

    def _built(self, kind: Any, body: Body) -> Any:
        try:
            return wire.built(kind, body)
        except InvalidInput:
            raise self._no_scrubjay() from None


def _parts(ids: Sequence[str]) -> list[list[str]]:
    return [list(ids[start : start + MAX_IDS]) for start in range(0, len(ids), MAX_IDS)]


def _of(parcel: Parcel, batch: Sequence[Replica | Link]) -> Parcel:
    """The part of a parcel that holds these."""
    replicas = tuple(one for one in batch if isinstance(one, Replica))
    names = {one.memory.space for one in replicas}
    return Parcel(
        replicas=replicas,
        links=tuple(one for one in batch if isinstance(one, Link)),
        spaces={name: told for name, told in parcel.spaces.items() if name in names},
        model=parcel.model,
    )


_checkers: dict[str, Checker] = {}


def _checker(operation: Operation) -> Checker:
    if operation.name not in _checkers:
        _checkers[operation.name] = Checker(operation.gives["anyOf"][0])  # of a success
    return _checkers[operation.name]


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _code(body: bytes) -> str | None:
    """The code of one of our errors."""
    told = _json(body)
    error = told.get("error") if isinstance(told, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else None


# --- the connection --------------------------------------------------------------------------------------------------


def checked_url(url: str, *, key: str) -> str:
    """The address without a slash at its end.

    :raises InvalidInput: if it cannot be used, or would carry memories in the clear
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.username or parts.password or parts.query or parts.fragment or not url.isprintable():
        raise InvalidInput(
            "The address of that scrubjay is not understood.", hint="Write it like https://memory.example.", field="url"
        )
    if parts.scheme == "http" and parts.hostname not in outgoing.LOOPBACK_NAMES:
        raise InvalidInput("Memories would travel in the clear.", hint="Use https.", field="url")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput("The key holds a character that no key has.", field="key")
    return url.rstrip("/")


class HttpLine:
    """One connection, made when it is needed and made anew after a fault."""

    def __init__(self, url: str, *, key: str = "", private: bool = False, seconds: float = ANSWER_SECONDS) -> None:
        """:raises InvalidInput: if the address cannot be used"""
        parts = urlsplit(checked_url(url, key=key))
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._prefix = parts.path
        self._private = private
        self._seconds = seconds
        self._headers = {"Accept": "application/json", "User-Agent": "scrubjay"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: bytes | None) -> Answer:
        if self._connection is not None:
            try:
                return self._ask(method, path, body)
            except ConnectionError:
                pass  # the other side does not keep idle connections for ever
        return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: bytes | None) -> Answer:
        headers = {**self._headers, "Content-Type": "application/json"}
        connection = self._connected()
        # However slowly it drips: after so long the line is cut from this side.
        end = threading.Timer(self._seconds, _cut, (connection.sock,))
        end.daemon = True
        end.start()
        try:
            connection.request(method, f"{self._prefix}{path}", body=body, headers=headers)
            reply = connection.getresponse()
            if reply.length is None and not reply.chunked:  # it would end wherever the line is cut
                raise http.client.IncompleteRead(b"")
            told = reply.read(LARGEST_ANSWER + 1)
            if len(told) > LARGEST_ANSWER:
                raise http.client.HTTPException("too long")
            if reply.length:  # promised, and not sent
                raise http.client.IncompleteRead(b"", reply.length)
            answer = Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, told)
        except BaseException:  # also Ctrl-C: half an answer is still on the line, which the next call must not read
            self.close()
            raise
        finally:
            end.cancel()
        if reply.will_close:
            self.close()
        return answer

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            connection = http.client.HTTPConnection(self._host, self._port)
            connection.default_port = 443 if self._tls else 80  # not said in Host
            connection.sock = self._socket()
            self._connection = connection
        return self._connection

    def _socket(self) -> socket.socket:
        """To one of the host's addresses that were looked at, not to what its name means a moment later."""
        refused: OSError = ConnectionError()
        for address in outgoing.reachable(self._host, self._port, private=self._private):
            try:
                plain = socket.create_connection((address, self._port), timeout=CONNECT_SECONDS)
            except OSError as error:
                refused = error
                continue
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.settimeout(SILENCE_SECONDS)
            if self._tls is None:
                return plain
            try:
                return self._tls.wrap_socket(plain, server_hostname=self._host)
            except BaseException:  # wrap_socket leaves the plain one to us, whatever stopped it
                plain.close()
                raise
        raise refused

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _cut(line: socket.socket | None) -> None:
    try:
        if line is not None:
            line.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended by itself
