"""Where a list goes on: opaque to clients, signed, good only for the caller and the question that it came from."""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256

from scrubjay.errors import InvalidInput
from scrubjay.stores.base import Position

SIGNATURE_BYTES = 16
INVALID = "The cursor is not valid for this list."
HINT = "Begin again without a cursor; filters and order must stay the same from page to page."


def written(position: Position, *, key: bytes, question: str) -> str:
    """The cursor behind a position; `question` is everything that must stay the same."""
    payload = json.dumps([position.value, position.seq], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_signature(payload, key, question) + payload).decode().rstrip("=")


def read(cursor: str, *, key: bytes, question: str) -> Position:
    """:raises InvalidInput: if it was forged, or came from another caller or another list"""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        signature, payload = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, _signature(payload, key, question)):
            raise ValueError
        value, seq = json.loads(payload)
    except (ValueError, TypeError):
        raise InvalidInput(INVALID, hint=HINT, field="cursor") from None
    return Position(value=value, seq=seq)


def _signature(payload: bytes, key: bytes, question: str) -> bytes:
    return hmac.new(key, question.encode() + b"\0" + payload, sha256).digest()[:SIGNATURE_BYTES]
