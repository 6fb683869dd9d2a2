"""Where a list or a feed goes on: signed, good only for the caller and the question that it came from.

Clients cannot read it: the numbers in it count what everyone writes, in private too.

    signature (16 bytes) · [value, seq] as JSON, filled up to whole blocks, veiled by a stream made from the signature
"""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256

from scrubjay.errors import InvalidInput
from scrubjay.stores.promises.memories import Position

SIGNATURE_BYTES = 16
BLOCK = 32  # bytes; its length tells nothing about what it says
INVALID = "The cursor is not valid for this list."
HINT = "Begin again without a cursor; filters and order must stay the same from page to page."


def written(position: Position, *, key: bytes, question: str) -> str:
    """The cursor behind a position; `question` is everything that must stay the same."""
    payload = json.dumps([position.value, position.seq], separators=(",", ":")).encode()
    payload = payload.ljust(-(-len(payload) // BLOCK) * BLOCK)
    signature = _signature(payload, key, question)
    return base64.urlsafe_b64encode(signature + _veiled(payload, key, signature)).decode().rstrip("=")


def read(cursor: str, *, key: bytes, question: str) -> Position:
    """:raises InvalidInput: if it was forged, or came from another caller or another list"""
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        signature, veiled = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
        payload = _veiled(veiled, key, signature)
        if not hmac.compare_digest(signature, _signature(payload, key, question)):
            raise ValueError
        value, seq = json.loads(payload)
    except (ValueError, TypeError):
        raise InvalidInput(INVALID, hint=HINT, field="cursor") from None
    return Position(value=value, seq=seq)


def _signature(payload: bytes, key: bytes, question: str) -> bytes:
    return hmac.new(key, question.encode() + b"\0" + payload, sha256).digest()[:SIGNATURE_BYTES]


def _veiled(payload: bytes, key: bytes, signature: bytes) -> bytes:
    """The payload under a stream that only this store can make; a second time, the payload itself."""
    blocks = range(-(-len(payload) // BLOCK))
    stream = b"".join(hmac.digest(key, b"veil\0" + signature + number.to_bytes(4), "sha256") for number in blocks)
    return bytes(one ^ other for one, other in zip(payload, stream, strict=False))
