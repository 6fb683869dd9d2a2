"""Ways to break a line: the bytes, the error code they earn, and the id that can still be read from them."""

from __future__ import annotations

PARSE_ERROR = -32700
INVALID_REQUEST = -32600

BROKEN: dict[str, tuple[bytes, int, int | str | None]] = {
    "not JSON": (b"hello", PARSE_ERROR, None),
    "empty": (b"", PARSE_ERROR, None),
    "blank": (b"   \t", PARSE_ERROR, None),
    "cut off": (b'{"jsonrpc":"2.0","id":1,"method"', PARSE_ERROR, None),
    "not UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE_ERROR, None),
    "UTF-16": ('{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le"), PARSE_ERROR, None),
    "byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}', PARSE_ERROR, None),
    "surrogate in UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', PARSE_ERROR, None),
    "NUL": (b'{"jsonrpc":"2.0","id":1,\x00"method":"ping"}', PARSE_ERROR, None),
    "control character": (b'{"jsonrpc":"2.0","id":1,"method":"pi\x07ng"}', PARSE_ERROR, None),
    "NaN": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', PARSE_ERROR, None),
    "Infinity": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', PARSE_ERROR, None),
    "number too large": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e999}}', PARSE_ERROR, None),
    "integer of 5,000 digits": (b'{"jsonrpc":"2.0","id":1' + b"0" * 5000 + b"}", INVALID_REQUEST, None),
    "nested 100,000 deep": (b"[" * 100_000, PARSE_ERROR, None),
    "nested 900 deep with half a pair": (
        b'{"jsonrpc":"2.0","method":"x","params":' + b'{"a":' * 900 + b'"\\ud800"' + b"}" * 901,
        INVALID_REQUEST,
        None,
    ),
    "two on a line": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0"}', PARSE_ERROR, None),
    "trailing comma": (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', PARSE_ERROR, None),
    "batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
    "empty batch": (b"[]", INVALID_REQUEST, None),
    "string": (b'"ping"', INVALID_REQUEST, None),
    "number": (b"7", INVALID_REQUEST, None),
    "null": (b"null", INVALID_REQUEST, None),
    "no jsonrpc": (b'{"id":7,"method":"ping"}', INVALID_REQUEST, 7),
    "other jsonrpc": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', INVALID_REQUEST, 7),
    "jsonrpc as a number": (b'{"jsonrpc":2.0,"id":"seven","method":"ping"}', INVALID_REQUEST, "seven"),
    "no method": (b'{"jsonrpc":"2.0","id":7}', INVALID_REQUEST, 7),
    "method is no string": (b'{"jsonrpc":"2.0","id":7,"method":["ping"]}', INVALID_REQUEST, 7),
    "method is empty": (b'{"jsonrpc":"2.0","id":7,"method":""}', INVALID_REQUEST, 7),
    "id is null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
    "id is a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', INVALID_REQUEST, None),
    "id is a truth": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
    "id is an object": (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', INVALID_REQUEST, None),
    "id is half a pair": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', INVALID_REQUEST, None),
    "method is half a pair": (b'{"jsonrpc":"2.0","id":7,"method":"\\uDFFF"}', INVALID_REQUEST, 7),
    "a tool's name is half a pair": (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\\ud800","arguments":{}}}',
        INVALID_REQUEST,
        7,
    ),
    "params is an array": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', INVALID_REQUEST, 7),
    "params is a string": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"x"}', INVALID_REQUEST, 7),
    "result and error": (b'{"jsonrpc":"2.0","id":7,"result":{},"error":{}}', INVALID_REQUEST, 7),
}
