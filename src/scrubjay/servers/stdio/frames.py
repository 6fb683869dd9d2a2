"""Lines of JSON-RPC: what a client sent, or which error it gets for it.

Nothing a client sends may stop the server or be silently ignored, so every line that is not a message raises
`BadFrame`, with the id of the request if the line still shows one. Errors never quote the line: it may contain secrets.
"""

from __future__ import annotations

import json
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Message = dict[str, Any]
    Id = int | str | None

MAX_LINE = 8 * 1024 * 1024  # bytes; the longest memory, escaped in the worst way, is 600 kB

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603  # of JSON-RPC


class BadFrame(Exception):
    """A line that is not a message."""

    def __init__(self, code: int, message: str, id: Id = None) -> None:
        super().__init__(message)
        self.code = code
        self.id = id

    def reply(self) -> Message:
        return {"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": str(self)}}


def encode(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line: a request, a notification or a reply.

    :raises BadFrame: if there is none
    """
    try:
        return _check(line, _parse(line))
    except RecursionError:
        raise BadFrame(PARSE_ERROR, "The JSON is nested too deeply.") from None


def _check(line: bytes, value: Any) -> Message:
    if isinstance(value, list):
        raise BadFrame(INVALID_REQUEST, "Batches are not part of this protocol: send one message per line.")
    if not isinstance(value, dict):
        raise BadFrame(INVALID_REQUEST, "A message must be a JSON object.")
    request_id = _checked_id(value)
    if value.get("jsonrpc") != "2.0":
        raise BadFrame(INVALID_REQUEST, 'The member jsonrpc must be "2.0".', request_id)
    if "method" not in value and "id" in value and ("result" in value) != ("error" in value):
        return value
    if "method" not in value:
        raise BadFrame(INVALID_REQUEST, "The member method is missing.", request_id)
    if not isinstance(value["method"], str) or not value["method"]:
        raise BadFrame(INVALID_REQUEST, "The member method must be a name.", request_id)
    params = {} if value.get("params") is None else value["params"]
    if not isinstance(params, dict):
        raise BadFrame(INVALID_REQUEST, "The member params must be an object.", request_id)
    # Broken text in a tool's arguments is passed on: its dialect says which argument it was. Anywhere else it is
    # refused here, because it might be quoted in an error that then could not be written.
    if not _is_text(line, {**value, "params": {**params, "arguments": None}}):
        raise BadFrame(INVALID_REQUEST, LONE_SURROGATE, request_id)
    return value


LONE_SURROGATE = "The message contains a lone surrogate, which is not valid text."


def _parse(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode())
    except UnicodeDecodeError as error:
        raise BadFrame(PARSE_ERROR, f"The line is not UTF-8 (byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise BadFrame(PARSE_ERROR, f"The line is not JSON: {error.msg} (character {error.pos}).") from None
    except ValueError as error:  # from the two number parsers below
        raise BadFrame(PARSE_ERROR, f"The line is not JSON: {error}.") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


MAX_DIGITS = 1_000


def whole_number(text: str) -> int:
    """Python refuses to read thousands of digits. Cut off, the number is still beyond 64 bits, so the check of the
    arguments refuses it by name."""
    return int(text[:MAX_DIGITS])


# Python reads NaN, Infinity and 1e999; JSON has none of them, and no later part of the server expects them.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, parse_int=whole_number)


def _checked_id(value: Message) -> Id:
    request_id: Id = value.get("id")
    if "id" in value and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        raise BadFrame(INVALID_REQUEST, "The member id must be a string or a whole number.")
    if isinstance(request_id, int) and abs(request_id) >= 2**63:
        raise BadFrame(INVALID_REQUEST, "The member id is beyond 64 bits.")
    if isinstance(request_id, str) and not _encodes(request_id):
        raise BadFrame(INVALID_REQUEST, LONE_SURROGATE)
    return request_id


def _is_text(line: bytes, value: Message) -> bool:
    """Whether every string is valid text. Lone surrogates can only come from an escape, and those are rare."""
    if b"\\ud" not in line and b"\\uD" not in line:
        return True
    return _encodes(json.dumps(value, ensure_ascii=False))


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --- lines too long to be read ---------------------------------------------------------------------------------------

# Members that may come before or after the id in the outermost object without a brace in between.
_PLAIN = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,200}"'
_ID = rb'"id"\s*:\s*(-?[0-9]{1,18}|"[^"\\\x00-\x1f]{0,200}")'
_ID_AT_START = rb"\s*\{\s*(?:%b\s*,\s*){0,2}%b\s*[,}]" % (_PLAIN, _ID)
_ID_AT_END = rb",\s*%b\s*(?:,\s*%b\s*){0,2}\}\s*$" % (_ID, _PLAIN)


def too_long(start: bytes, end: bytes) -> BadFrame:
    """The error for a line of which only both ends were kept: clients write the id in one of them."""
    found = re.match(_ID_AT_START, start) or re.search(_ID_AT_END, end)
    try:
        request_id: Id = json.loads(found[1]) if found else None
    except ValueError:
        request_id = None
    return BadFrame(INVALID_REQUEST, f"The line is too long (maximum {MAX_LINE // 1024 // 1024} MiB).", request_id)
