"""Headers that say how a change is made: only once, or only to one version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput

if TYPE_CHECKING:
    from starlette.datastructures import Headers


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
