"""One call of one operation, in a worker thread, whichever protocol brought it: MCP and REST meet here. And how large
its answer may be: fewer items, best first, rather than a megabyte that no model can read; and how deep.

    Service.answer ──> a thread ──> rate ──> Dialect.call ──> engine ──> shape

Whatever happens, the client gets its dialect's answer. Unexpected errors go to the log under a number, and the client
gets the number.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from scrubjay.dialects.base import Body, Dialect, Pieces, Reply, Stream, name_request
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, Internal, InvalidInput, RateLimited, TimedOut
from scrubjay.lazy import orjson
from scrubjay.servers.stdio.profile import served_name, without_also
from scrubjay.servers.workers import Workers
from scrubjay.values import plain_json
from scrubjay.values.callers import LOCAL_USER, Provenance
from scrubjay.values.frozen import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from scrubjay.engine.jobs import Progress
    from scrubjay.servers.http.rate_limits import Limits, Rate
    from scrubjay.values.store import Prompt

log = logging.getLogger(__name__)

Shaped = TypeVar("Shaped")
Shape = Callable[[Reply, "Rate | None"], Shaped]  # a reply as the protocol sends it, and its caller's rate

MAX_CLIENT_NAME = 100
MAX_BYTES = 1_000_000  # of the body as JSON
MAX_LEVELS = 200  # of nesting that stay where an answer is nested too deeply …
ENVELOPE = 20  # … for the protocol's library: it writes 255 levels, some of them its own
KEY = "scrubjay/idempotency-key"  # in the _meta of an MCP call: do this write only once
NOTICES = "scrubjay/notices"  # in the _meta of a reply: what was not done in time, and what came of it since
IF_VERSION = "scrubjay/if-version"  # make this change only to that version


class Unanswered(BaseException):
    """No answer yet, and no error either: the client must be asked something first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    dialect: Dialect
    operation: str
    arguments: Any
    client: str  # the program that calls, by its own name
    transport: str
    key: str | None = None  # do this write once
    if_version: int | None = None  # do this change only to that version
    prefix: str = ""  # before the names of tools, where several dialects are served
    request_id: str | None = None
    progress: Progress | None = None  # called with how far long work is
    client_model: Callable[[Prompt], str] | None = None  # asks the language model of whoever calls

    @property
    def changes(self) -> bool:
        return self.dialect.operations[self.operation].changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What all calls of a server share."""

    workers: Workers
    limits: Limits | None = None
    watch: Callable[[Call, Error | None, float], None] = lambda _call, _error, _seconds: None

    async def answer(
        self, call: Call, engine: Callable[[], Engine], shape: Shape[Shaped], *, user: str = LOCAL_USER
    ) -> Shaped:
        """The dialect's answer, shaped in the same thread. `engine` may wait or raise."""
        begun = perf_counter()
        errors: list[Error | None] = []

        def work() -> Shaped:
            reply, rate = self._answered(call, engine)
            errors.append(reply.error)
            return shape(reply, rate)

        try:
            return await self.workers.run(user, work, changes=call.changes)
        except Unanswered:
            errors[:] = [None]
            raise
        except TimedOut as error:
            errors[:] = [error]
            return shape(call.dialect.failure(error, call.operation), None)
        finally:
            self.watch(call, errors[0] if errors else Internal(), perf_counter() - begun)

    def _answered(self, call: Call, engine: Callable[[], Engine]) -> tuple[Reply, Rate | None]:
        rate = None
        if call.request_id is not None:
            name_request(call.request_id)
        try:
            opened = engine()
            if self.limits is not None:
                operation = call.dialect.operations[call.operation]
                rate = self.limits.call(opened.caller, call.dialect, operation, call.arguments)
            return answer_call(call, opened), rate
        except Error as error:  # the engine could not be opened, the arguments cannot be stored, or a limit is reached
            return call.dialect.failure(error, call.operation), refused_rate(error)
        except Exception:  # noqa: BLE001 -- the unforeseen goes to the log, with a number for the client
            return call.dialect.failure(fault(f"{call.operation} of {call.dialect.name}"), call.operation), rate


def answer_call(call: Call, engine: Engine) -> Reply:
    plain_json.check(call.arguments, large=call.dialect.operations[call.operation].replicates)
    provenance = Provenance(
        client=call.client, caller=engine.identity.user, transport=call.transport, dialect=call.dialect.name
    )
    return call.dialect.call(
        engine,
        call.operation,
        call.arguments,
        key=call.key,
        if_version=call.if_version,
        prefix=call.prefix,
        provenance=provenance,
        progress=call.progress,
        client_model=call.client_model,
    )


def refused_rate(error: Error) -> Rate | None:
    if not isinstance(error, RateLimited):
        return None
    from scrubjay.servers.http.rate_limits import rate_of

    return rate_of(error)


def fault(where: str) -> Internal:
    """The exception being handled, reduced to what a client may know."""
    number = secrets.token_hex(4)
    log.exception("fault %s in %s", number, where)
    return Internal(f"Something went wrong inside scrubjay. The log has the details under {number}.")


def fit_reply(reply: Reply, call: Call | None = None) -> Reply:
    """The reply for protocols without streams, of which the last piece remains: not too large, and not too deep."""
    if call is not None and reply.stream is not None:
        try:
            reply = Reply(_last(reply.stream))
        except Error as error:
            reply = call.dialect.failure(error, call.operation)
    return replace(reply, body=shallow(bound_body(reply.body)))


def _last(stream: Stream) -> Body:
    last: Body = {}
    for piece in stream.pieces:
        if piece is not None:
            last = piece
    return last["data"] if stream.kind is Pieces.EVENTS and last else last


# --- how large an answer may be ---------------------------------------------------------------------------------------


def bound_body(body: Body, *, max_bytes: int = MAX_BYTES) -> Body:
    """The body, if it is small enough; otherwise with its largest list cut at the end, and how many items were cut.

    At least one item stays, and no item is ever altered: a body may remain too large rather than become wrong.
    """
    total = size(body)
    path = max(lists(body), key=lambda found: size(at(body, found)), default=None) if total > max_bytes else None
    if path is None:
        return body
    items = at(body, path)
    dropped = 0
    for kept in range(len(items) - 1, 0, -1):
        total -= size(items[kept]) + len(",")
        dropped += 1
        if total + len(f',"left_out":{dropped}') <= max_bytes:
            break
    return {**replace_list(body, path, items[: len(items) - dropped]), "left_out": dropped} if dropped else body


def shallow(body: Body) -> Body:
    """The body; what is nested too deeply for the protocol's library is included as JSON text.

    Callers can no longer store such values, but older stores may have them.
    """
    enveloped: Any = body
    for _ in range(ENVELOPE):
        enveloped = [enveloped]
    try:  # its limit is the library's, and checking level by level would cost as much as writing the answer
        orjson.dumps(enveloped, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # or a number beyond 64 bits, which the library writes
        return {name: _shallow(value, MAX_LEVELS) for name, value in body.items()}
    return body


def _shallow(value: Any, levels: int) -> Any:
    if not isinstance(value, dict | list | tuple):
        return value
    if not levels:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return {name: _shallow(inner, levels - 1) for name, inner in value.items()}
    return [_shallow(inner, levels - 1) for inner in value]


def size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def lists(body: Body, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where lists are in a body; those inside items belong to their items."""
    for name, value in body.items():
        if isinstance(value, list):
            yield (*path, name)
        elif isinstance(value, dict):
            yield from lists(value, (*path, name))


def at(body: Body, path: tuple[str, ...]) -> Any:
    value: Any = body
    for name in path:
        value = value[name]
    return value


def replace_list(body: Body, path: tuple[str, ...], items: list[Any]) -> Body:
    first, *rest = path
    return {**body, first: replace_list(body[first], tuple(rest), items) if rest else items}


# --- tools of MCP, with its library and without ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Served:
    """A tool as clients see it, and the operation behind it."""

    dialect: Dialect
    operation: str
    prefix: str  # before the operation's name, where several dialects are served


def offered_dialect(dialect: Dialect, *, also: bool, by_client: bool = False) -> Dialect:
    """The dialect as it is served; without `also` with the schemas of its paper alone. `by_client` lets operations that
    store facts ask the client's model for phrases."""
    if also and not by_client:
        return dialect
    if also:
        asking = {name: replace(one, asks=one.asks or one.may_ask) for name, one in dialect.operations.items()}
        return replace(dialect, operations=asking)
    operations = {
        name: replace(one, takes=without_also(one.takes), accepts=without_also(one.accepts))
        for name, one in dialect.operations.items()
    }
    return replace(dialect, operations=operations)


def served_tools(dialects: Sequence[Dialect]) -> dict[str, Served]:
    """Every operation under the name that clients call it by."""
    alone = len(dialects) == 1
    return {
        served_name(dialect.name, operation, alone=alone): Served(
            dialect, operation, "" if alone else f"{dialect.name}_"
        )
        for dialect in dialects
        for operation in dialect.operations
    }


def client_called(name: str) -> str:
    """A client's own name, as far as it has one."""
    return name.strip()[:MAX_CLIENT_NAME] or "unknown"


# --- how a change is made: only once, or only to one version ---------------------------------------------------------


def idempotency_key(headers: Headers) -> str | None:
    """:raises InvalidInput: if there are two"""
    keys = {*headers.getlist("idempotency-key"), *headers.getlist("x-idempotency-key")}
    if len(keys) > 1:
        raise InvalidInput("Send only one idempotency key.", field="Idempotency-Key")
    return keys.pop() if keys else None


def expected_version(headers: Headers) -> int | None:
    """:raises InvalidInput: if it is not a version"""
    tag = headers.get("if-match")
    if tag is None or tag == "*":
        return None
    found = re.fullmatch(r'(?:W/)?"?([1-9][0-9]{0,8})"?', tag)
    if found is None:
        raise InvalidInput('If-Match must be a version, for example "3".', field="If-Match")
    return int(found[1])


def conditions_in(meta: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """The key under which a write is done once, and the version that a change expects.

    :raises InvalidInput: if one of them is something else
    """
    key, version = meta.get(KEY), meta.get(IF_VERSION)
    if key is not None and not isinstance(key, str):
        raise InvalidInput(f"_meta {KEY} must be text.", field=KEY)
    if version is not None and (isinstance(version, bool) or not isinstance(version, int) or version < 1):
        raise InvalidInput(f"_meta {IF_VERSION} must be a whole number of at least 1.", field=IF_VERSION)
    return key, version


# --- the engine ------------------------------------------------------------------------------------------------------


class Opening:
    """An engine that opens while its server already talks to a client: when it is first needed, or ahead of that in the
    background.

    The caller reports a failure, and the next call tries again: a full disk or a busy store may have recovered.
    """

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open = open_engine
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """:raises Error: if it cannot be opened"""
        with self._lock:
            if self._engine is None:
                engine = self._open()
                engine.warm(model=False)  # not before a text must become a vector
                self._engine = engine
            return self._engine

    def close(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine.close()
