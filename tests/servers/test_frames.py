"""Lines that are no messages, each with the error it earns; then those that are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import jsonrpc_message_adapter

from scrubjay.servers.stdio.frames import BadFrame, decode, encode, too_long
from tests.servers.broken_frames import BROKEN

pytestmark = pytest.mark.process


@pytest.mark.parametrize(("line", "code", "id"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_earns_an_error_with_its_id_where_it_shows_one(line, code, id):
    with pytest.raises(BadFrame) as bad:
        decode(line)

    assert bad.value.reply()["error"]["code"] == code
    assert bad.value.reply()["id"] == id


@given(st.binary(max_size=200))
def test_no_bytes_at_all_break_the_reader(line):
    try:
        decode(line)
    except BadFrame as bad:
        encode(bad.reply())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(["ping", "tools/call", "initialize"]) | st.text()},
    optional={
        "id": st.integers() | st.text() | anything,
        "params": st.fixed_dictionaries({}, optional={"name": st.text(), "arguments": anything, "_meta": anything})
        | st.dictionaries(st.text() | st.just("\ud800"), anything),
    },
)


@given(messages)
def test_whatever_passes_is_a_message_to_the_library(message):
    try:
        parsed = decode(json.dumps(message).encode())
    except BadFrame:
        return

    jsonrpc_message_adapter.validate_python(parsed, by_name=False)


def test_an_error_never_quotes_the_line():
    with pytest.raises(BadFrame) as bad:
        decode(b'{"password": "hunter2", oops}')

    assert "hunter2" not in str(bad.value)


@pytest.mark.parametrize("start", [b'{"jsonrpc":"2.0","id":%b,"method":"x","params":{"a":"aaaa', b'{ "id" : %b , "x'])
@pytest.mark.parametrize("id", [7, "seven"])
def test_a_line_too_long_shows_its_id_at_its_start(start, id):
    assert too_long(start % json.dumps(id).encode(), b"aaaa").id == id


@pytest.mark.parametrize("end", [b'aaa"}},"jsonrpc":"2.0","id":%b}\n', b'aaa"}}, "id" : %b, "method":"x"}'])
@pytest.mark.parametrize("id", [7, "seven"])
def test_a_line_too_long_shows_its_id_at_its_end(end, id):
    assert too_long(b'{"method":"x","params":{"a":"aaa', end % json.dumps(id).encode()).id == id


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (b'{"params":{"id":7,"a":"', b'aaa"}}'),
        (b'{"params":{"a":"aaa', b'aaa","id":7}}'),
        (b'{"params":"aaa', b'aaa,\\"id\\":7}"}'),
        (b'{"id":"\xff","a":"', b'"}'),
    ],
)
def test_an_id_that_is_not_the_lines_own_is_not_taken_for_it(start, end):
    assert too_long(start, end).id is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"","method":"ping","params":{}}\r\n',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"content":"\\ud800"}}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud83e\\udd9c \\u0000"}}',
    ],
)
def test_a_message_is_what_it_says(line):
    assert decode(line) == json.loads(line)
