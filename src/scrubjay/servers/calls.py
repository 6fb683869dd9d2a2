"""One call of one operation, in a worker thread, whichever protocol brought it: MCP and REST meet here.

    call ──> answered ──> Dialect.call ──> engine

Whatever happens, the client gets its dialect's answer. What nobody foresaw is told in the log under a number, and the
client learns the number.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Any

from scrubjay.dialects.base import Body, Dialect, Pieces, Reply, Stream
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, Internal
from scrubjay.frozen import dataclass
from scrubjay.memory import Provenance
from scrubjay.servers.text import check_text

log = logging.getLogger(__name__)

MAX_CLIENT_NAME = 100


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


def answered(call: Call, engine: Callable[[], Engine]) -> Reply:
    """The dialect's answer. `engine` may wait or raise."""
    try:
        return _answered(call, engine())
    except Error as error:  # the engine could not be opened, or the arguments are not text
        return call.dialect.failure(error, call.operation)
    except Exception:  # noqa: BLE001 -- the unforeseen is told in the log, with a number for the client
        return call.dialect.failure(fault(f"{call.operation} of {call.dialect.name}"), call.operation)


def fault(where: str) -> Internal:
    """The exception that is being handled, as what a client may know of it."""
    number = secrets.token_hex(4)
    log.exception("fault %s in %s", number, where)
    return Internal(f"Something went wrong inside scrubjay. The log tells more under {number}.")


def _answered(call: Call, engine: Engine) -> Reply:
    check_text(call.arguments)
    provenance = Provenance(
        client=call.client, caller=engine.caller.user, transport=call.transport, dialect=call.dialect.name
    )
    return call.dialect.call(
        engine.bound_to(provenance=provenance),
        call.operation,
        call.arguments,
        key=call.key,
        if_version=call.if_version,
        prefix=call.prefix,
    )


def whole(call: Call, reply: Reply) -> Reply:
    """The reply without a stream: its last piece, for a protocol that has none."""
    if reply.stream is None:
        return reply
    try:
        return Reply(_last(reply.stream))
    except Error as error:
        return call.dialect.failure(error, call.operation)


def _last(stream: Stream) -> Body:
    last: Body = {}
    for piece in stream.pieces:
        if piece is not None:
            last = piece
    return last["data"] if stream.kind is Pieces.EVENTS and last else last
