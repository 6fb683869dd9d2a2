"""Another scrubjay server over HTTP, as a peer to sync with.

    RemotePeer    asks its REST routes what a `Peer` can be asked (dialects/native/sync_peer.py, engine/sync/syncing.py)
    HttpLine      how it is reached (machine/http_client.py)

Every request can safely be repeated, so transient failures (no connection, a timeout, a broken connection, 429, 502,
503) are retried a few times. A run that is interrupted anyway resumes the next time. Answers are checked as if a
stranger had written them, and never quoted in messages; nor are the key and the address.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Protocol, TypeVar

from scrubjay.dialects.base import Body, Operation
from scrubjay.dialects.native.sync_peer import MAX_IDS
from scrubjay.dialects.table import find
from scrubjay.dialects.validation import Checker
from scrubjay.engine.sync import wire
from scrubjay.engine.sync.local import MENDING
from scrubjay.engine.sync.merge import Winner
from scrubjay.engine.sync.peer import Changes, Peer, SyncBatch, Taken, TakeOptions
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
from scrubjay.machine.http_client import JSON, NETWORK_ERRORS, Client, HttpAnswer, HttpLimits, ask_again
from scrubjay.machine.outgoing import is_address, is_bare, is_unencrypted
from scrubjay.stores.promises.sync import Heard, Replica, Stamp
from scrubjay.values.memory import Link

Value = TypeVar("Value")

LONGEST_PAUSE_SECONDS = 15.0  # even if the server asks for more; the lease of a sync lasts longer
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
ANSWER_SECONDS = 90.0  # from the question to the end of the answer
LARGEST_ANSWER = 8 * 1024 * 1024
TRY_AGAIN = {408, 429, 502, 503, 504}
TOLD: dict[str, type[Error]] = {one.code: one for one in (Locked, StorageBusy, StorageFull)}


class Line(Protocol):
    def ask(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        """Raises one of `NETWORK_ERRORS` if no complete answer came."""
        ...

    def close(self) -> None: ...


class RemotePeer(Peer):
    """Opened by a greeting: the other side must be a scrubjay server with the same protocol that accepts the key.

    :raises EndpointUnreachable: :raises Forbidden: :raises StorageTooNew:
    """

    def __init__(self, name: str, line: Line, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._name = name
        self._line = line
        self._pause = pause
        try:
            self._greeting = self._greet()
        except BaseException:  # whatever it was, there is no peer yet that the caller could close
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
        return self._built(Changes, self._ask("sync_changes", asked))

    def stamps(self, ids: Sequence[str]) -> dict[str, Stamp]:
        found: dict[str, Stamp] = {}
        for some in _parts(ids):
            told = self._ask("sync_stamps", {"ids": some})["stamps"]
            found |= {name: self._built(Stamp, one) for name, one in told.items()}
        return found

    def links(self, ids: Sequence[str]) -> Sequence[Link]:
        found: list[Link] = []
        for some in _parts(ids):
            offset, more = 0, True
            while more:
                told = self._ask("sync_links", {"ids": some, "offset": offset})
                links = self._read({"links": told["links"]}).links
                more = bool(told["more"]) and bool(links)
                offset += len(links)
                found += links
        return found

    def parcel(self, ids: Sequence[str], *, vectors: bool) -> SyncBatch:
        batch = SyncBatch()
        for some in _parts(ids):
            left: Sequence[str] = some
            while left:
                told = self._ask("sync_fetch", {"ids": list(left), "vectors": vectors})
                if len(told["left"]) >= len(left):
                    raise self._not_scrubjay()
                parcel, left = self._read(told["parcel"]), told["left"]
                batch = SyncBatch(
                    replicas=batch.replicas + parcel.replicas,
                    unreadable=tuple(dict.fromkeys(batch.unreadable + parcel.unreadable)),
                    spaces={**batch.spaces, **parcel.spaces},
                    model=parcel.model,
                )
        if {one.memory.id for one in batch.replicas} - set(ids):
            raise self._not_scrubjay()
        return batch

    def take(self, parcel: SyncBatch, options: TakeOptions) -> Sequence[Taken]:
        taken: list[Taken] = []
        pieces: list[Replica | Link] = [*parcel.replicas, *parcel.links]
        for batch in wire.batches(pieces, wire.size_of):
            taken += self._take(_of(parcel, batch), options)
        undecided = [one.memory for one in taken if one.winner is Winner.NONE]
        if not undecided:
            return taken
        there = {one.memory.id: one for one in self.parcel(undecided, vectors=False).replicas}
        return [replace(one, current=there.get(one.memory)) for one in taken]

    def _take(self, parcel: SyncBatch, options: TakeOptions) -> Sequence[Taken]:
        asked = {
            "parcel": wire.write_value(parcel),
            "policy": options.policy,
            "named": options.named,
            "sender": options.sender,
            "dry_run": options.dry_run,
        }
        told = self._ask("sync_take", asked)["taken"]
        return [self._built(Taken, one) for one in told]

    def mark(self) -> str | None:
        return self._greet().mark

    def renew(self) -> None:
        self._ask("sync_renew", {"origin": self.origin})
        self._greeting = self._greet()

    def close(self) -> None:
        self._line.close()

    # --- asking ------------------------------------------------------------------------------------------------------

    def _greet(self) -> wire.Greeting:
        told = self._ask("sync_greet", None)
        if told["protocol"] > wire.PROTOCOL:
            raise StorageTooNew(
                f"Endpoint {self._name} runs a newer scrubjay.", hint="Update scrubjay on this machine."
            )
        if told["protocol"] < wire.PROTOCOL:
            raise EndpointUnreachable(
                f"Endpoint {self._name} runs an older scrubjay.", hint="Update scrubjay on that machine."
            )
        known = {entry.name for entry in fields(wire.Greeting)}
        return self._built(wire.Greeting, {name: told[name] for name in told.keys() & known})

    def _ask(self, operation: str, arguments: Body | None) -> Body:
        """The other side's answer, checked against its schema."""
        asked = find("native").operations[operation]
        assert asked.route is not None
        body = None if arguments is None else json.dumps(arguments, ensure_ascii=False).encode()
        answer = self._send(asked.route.method, asked.route.path, body)
        if answer.status != 200:
            raise self._refusal(answer)
        told = _json(answer.body)
        with self._ours():
            _checker(asked).check(told)
        return dict(told)

    def _send(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        """An answer of any status; transient failures are retried."""
        try:
            return ask_again(
                lambda: self._line.ask(method, path, body),
                TRY_AGAIN,
                longest_seconds=LONGEST_PAUSE_SECONDS,
                cut_short=False,
                pause=self._pause,
            )
        except ssl.SSLCertVerificationError:
            raise EndpointUnreachable(
                f"The certificate of endpoint {self._name} is not valid.",
                hint="Fix it there, or set SSL_CERT_FILE to your own certificate authority.",
            ) from None
        except NETWORK_ERRORS:
            raise EndpointUnreachable(
                f"Endpoint {self._name} does not answer.", hint="Check that the server is running, then try again."
            ) from None

    def _refusal(self, answer: HttpAnswer) -> Error:  # noqa: PLR0911 -- one line per reason
        code = _code(answer.body)
        if answer.status == 401:
            return Forbidden(
                f"Endpoint {self._name} does not accept the key.",
                hint=f"Get a valid one there, then run: scrubjay sync add {self._name} URL",
            )
        if answer.status == 403 and code == Forbidden.code:
            return Forbidden(
                f"The key for endpoint {self._name} does not allow syncing.", hint="Ask for a key with the role owner."
            )
        if code == ClockAhead.code:
            return ClockAhead(
                f"Endpoint {self._name} refuses changes with timestamps more than an hour ahead of its clock.",
                hint=MENDING,
            )
        if code in TOLD:
            return TOLD[code](f"Endpoint {self._name}: {TOLD[code]().message}", hint="Try again later.")
        if answer.status in TRY_AGAIN:
            return EndpointUnreachable(f"Endpoint {self._name} is busy.", hint="Try again later.")
        if answer.status >= 500 or code is not None:
            return SyncFailed(f"Endpoint {self._name} refused with status {answer.status}.", hint="Its log says why.")
        return self._not_scrubjay()

    def _not_scrubjay(self) -> EndpointUnreachable:
        return EndpointUnreachable(
            f"Endpoint {self._name} is not a scrubjay server that can be synced with.",
            hint="Check that the address is right (the part before /api), and that scrubjay is up to date there.",
        )

    @contextmanager
    def _ours(self) -> Iterator[None]:
        """What the other side sent must be what a scrubjay server sends."""
        try:
            yield
        except InvalidInput:
            raise self._not_scrubjay() from None

    def _read(self, body: Body) -> SyncBatch:
        with self._ours():
            return wire.read(body)

    def _built(self, kind: type[Value], body: Body) -> Value:
        with self._ours():
            return wire.build_value(kind, body)


def _parts(ids: Sequence[str]) -> list[list[str]]:
    return [list(ids[start : start + MAX_IDS]) for start in range(0, len(ids), MAX_IDS)]


def _of(parcel: SyncBatch, batch: Sequence[Replica | Link]) -> SyncBatch:
    """The part of a parcel with these."""
    replicas = tuple(one for one in batch if isinstance(one, Replica))
    names = {one.memory.space for one in replicas}
    return SyncBatch(
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


def check_url(url: str, *, key: str) -> str:
    """The address without a slash at its end.

    :raises InvalidInput: if it cannot be used, or would send memories unencrypted
    """
    if not is_address(url) or not is_bare(url):
        raise InvalidInput(
            "Invalid address of the scrubjay server.", hint="Write it like https://memory.example.", field="url"
        )
    if is_unencrypted(url):
        raise InvalidInput("Refusing to send memories over unencrypted HTTP.", hint="Use https.", field="url")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput("The key has a character that is not allowed in keys.", field="key")
    return url.rstrip("/")


class HttpLine:
    """The connection to one scrubjay server: kept between requests, without proxies or redirects."""

    def __init__(self, url: str, *, key: str = "", private: bool = False, seconds: float = ANSWER_SECONDS) -> None:
        """:raises InvalidInput: if the address cannot be used"""
        limits = HttpLimits(SILENCE_SECONDS, seconds, LARGEST_ANSWER, connect_seconds=CONNECT_SECONDS)
        self._client = Client(check_url(url, key=key), limits, key=key, headers=JSON, private=private, keep_alive=True)

    def ask(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        with self._client.open(method, path, body) as reply:
            if not reply.has_an_end:
                raise ConnectionError("the answer has no end")
            return HttpAnswer(reply.status, reply.headers, reply.body())

    def close(self) -> None:
        self._client.close()
