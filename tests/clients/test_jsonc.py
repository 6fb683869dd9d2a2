"""A value is changed in a file that people write by hand; nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.clients.jsonc import Unreadable, put, put_item, read, remove, remove_items

PLACE = ("mcpServers", "scrubjay")
ENTRY = {"command": "/bin/scrubjay", "args": ["mcp"]}
BY_HAND = [
    '{"a": 1}',
    '{\n  // hello\n  "a": 1 // about a\n}\n',
    '{\r\n\t"mcpServers": {\r\n\t\t"other": {"command": "y"}, // theirs\r\n\t},\r\n}\r\n',
    '{\n "a": [1],\n "mcpServers": {\n  "z": {} /* z */\n  // the last line\n }\n}',
    '\ufeff{\n    "mcpServers": {\n        "other": {"url": "http://x//y", "note": "/* no comment */"}\n    }\n}',
]


@pytest.mark.parametrize("text", BY_HAND)
def test_what_was_added_can_be_taken_out_again_and_leaves_every_byte_as_it_was(text):
    added = put(text, PLACE, ENTRY)

    assert read(added)["mcpServers"]["scrubjay"] == ENTRY
    assert put(added, PLACE, ENTRY) == added
    assert remove(added, PLACE) == text


@pytest.mark.parametrize("text", ["", "\n", "// only a comment\n", "{}", "{ }", '{"mcpServers": {}}', '{"a": 1,}'])
def test_a_file_that_says_nothing_yet_gets_its_first_entry(text):
    added = put(text, PLACE, ENTRY)

    assert read(added)["mcpServers"] == {"scrubjay": ENTRY}
    assert added.startswith(text.rstrip("{} \n,")[:2])
    assert "scrubjay" not in remove(added, PLACE)


def test_comments_stay_with_what_they_are_about():
    text = '{\n  "a": 1 // about a\n  // the end\n}'

    assert put(text, ("b",), 2) == '{\n  "a": 1, // about a\n  "b": 2\n  // the end\n}'


def test_only_the_value_that_differs_is_written_anew():
    text = '{"mcpServers": {"scrubjay": {"command": "old", /* mine */ "env": {"A": "1"}}}}'

    assert put(text, (*PLACE, "command"), "new") == text.replace('"old"', '"new"')


def test_items_of_others_in_a_list_stay():
    text = '{\n  "hooks": {\n    "Stop": [\n      {"command": "theirs"} // theirs\n    ]\n  }\n}'
    place = ("hooks", "Stop")

    added = put_item(text, place, {"command": "ours"}, ours=lambda one: one["command"] == "ours")
    changed = put_item(added, place, {"command": "ours", "n": 1}, ours=lambda one: one["command"] == "ours")

    assert read(changed)["hooks"]["Stop"] == [{"command": "theirs"}, {"command": "ours", "n": 1}]
    assert remove_items(changed, place, ours=lambda one: one["command"] == "ours") == text


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("{", "line 1, column 2"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ('{"a": "\\x"}', "line 1, column 7"),
        ("[" * 300, "line 1, column 202"),
        ("{} {}", "line 1, column 4"),
        ("[1]", "the file is not an object"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_place_named(text, where):
    with pytest.raises(Unreadable, match=where):
        put(text, PLACE, ENTRY)


DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), DATA, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_any_object_keeps_what_it_has(data, indent):
    text = json.dumps(data, indent=indent)
    if not isinstance(data.get("mcpServers", {}), dict):
        return

    added = put(text, PLACE, ENTRY)

    assert read(added) == {**data, "mcpServers": {**data.get("mcpServers", {}), "scrubjay": ENTRY}}
    assert read(remove(added, PLACE)) == {name: value for name, value in data.items() if name != "mcpServers" or value}
