"""Where a list or a feed goes on: signed, good only for the caller and the question that it came from.

Clients cannot read it: the numbers in it count what everyone writes, in private too.

    signature (16 bytes) · [value, seq] as JSON, filled up to whole blocks, veiled by a stream made from the signature
"""

from __future__ import annotations

import base64
import hmac
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput
from scrubjay.stores.promises.memories import Position, Reads, Store
from scrubjay.values.callers import Audience
from scrubjay.values.memory import Memory, Status
from scrubjay.values.search import NO_GLIMPSES, Filter, Order

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

SIGNATURE_BYTES = 16
BLOCK = 32  # bytes; its length tells nothing about what it says
INVALID = "The cursor is not valid for this list."
HINT = "Start again without a cursor; filters and order must stay the same from page to page."


def write_cursor(position: Position, *, key: bytes, question: str) -> str:
    """The cursor behind a position; `question` is everything that must stay the same."""
    payload = json.dumps([position.value, position.seq], separators=(",", ":")).encode()
    payload = payload.ljust(-(-len(payload) // BLOCK) * BLOCK)
    signature = _signature(payload, key, question)
    return base64.urlsafe_b64encode(signature + _veil(payload, key, signature)).decode().rstrip("=")


def read(cursor: str, *, key: bytes, question: str) -> Position:
    """:raises InvalidInput: if it was forged, or came from another caller or another list"""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        signature, veiled = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
        payload = _veil(veiled, key, signature)
        if not hmac.compare_digest(signature, _signature(payload, key, question)):
            raise ValueError
        value, seq = json.loads(payload)
    except (ValueError, TypeError):
        raise InvalidInput(INVALID, hint=HINT, field="cursor") from None
    return Position(value=value, seq=seq)


def _signature(payload: bytes, key: bytes, question: str) -> bytes:
    return hmac.new(key, question.encode() + b"\0" + payload, sha256).digest()[:SIGNATURE_BYTES]


def _veil(payload: bytes, key: bytes, signature: bytes) -> bytes:
    """The payload under a stream that only this store can make; a second time, the payload itself."""
    blocks = range(-(-len(payload) // BLOCK))
    stream = b"".join(hmac.digest(key, b"veil\0" + signature + number.to_bytes(4), "sha256") for number in blocks)
    return bytes(one ^ other for one, other in zip(payload, stream, strict=False))


# --- lists -----------------------------------------------------------------------------------------------------------


def question(engine: Engine, filter: Filter, order: Order, descending: bool) -> str:
    """Everything that must stay the same from page to page of a list."""
    asked = sorted((entry.name, repr(_plain_set(getattr(filter, entry.name)))) for entry in fields(filter))
    return repr((engine.identity.user, engine.spaces, engine.only, order, descending, asked))


def position_of(engine: Engine, cursor: str | None, question: str) -> Position | None:
    """Where a page begins that a cursor asks for."""
    return None if cursor is None else read(cursor, key=signing_key(engine.records), question=question)


def behind(engine: Engine, last: Memory, order: Order, question: str) -> str:
    """The cursor of the page that ended with this memory."""
    position = Position.of(last, order)
    if order is Order.LENGTH and last.id in (known := lengths(engine.records, [last])):
        position = Position(value=known[last.id], seq=last.seq)
    return write_cursor(position, key=signing_key(engine.records), question=question)


def lengths(reads: Reads, memories: Sequence[Memory]) -> dict[str, int]:
    """How long the contents are that are kept elsewhere."""
    away = [memory.id for memory in memories if not memory.content and memory.status is not Status.ACTIVE]
    known = reads.glimpses(away) if away else NO_GLIMPSES
    return dict(zip(known.memories, map(int, known.length), strict=True))


def signing_key(records: Store) -> bytes:
    """The store's own secret; made when it is first needed."""
    known = records.history.fact("cursor_key")
    if known is None:
        with records.writing() as tx:
            known = tx.history.fact("cursor_key") or os.urandom(32).hex()
            tx.history.set_fact("cursor_key", known)
    return bytes.fromhex(known)


def pages(
    reads: Reads, filter: Filter, audience: Audience, *, now: datetime, size: int, newest_first: bool = True
) -> Iterator[list[Memory]]:
    """Everything that a filter names, read a page at a time: for work on more memories than fit in one answer.

    In the order in which memories were made, which no change of them disturbs: each is met once.
    """
    after = None
    while page := reads.list(
        filter, audience, now=now, order=Order.CREATED, descending=newest_first, limit=size, after=after
    ):
        yield page
        after = Position.of(page[-1], Order.CREATED)


def _plain_set(value: object) -> object:
    return sorted(map(str, value)) if isinstance(value, frozenset) else value
