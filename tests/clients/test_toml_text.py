"""A table is changed in a TOML file that people write by hand; nothing else is."""

from __future__ import annotations

import pytest

from scrubjay.clients.jsonc import Unreadable
from scrubjay.clients.toml_text import put, read, remove

PLACE = ("mcp_servers", "scrubjay")
ENTRY = {"command": "/bin/scrubjay", "args": ["mcp"]}
BY_HAND = """\
# mine
model = "m" # a comment
prompt = '''
[mcp_servers.scrubjay]
'''

[mcp_servers.other] # theirs
command = "npx"
args = [
  "-y", # yes
]

# about the profile
[profiles.p]
model = "n"
"""


@pytest.mark.parametrize("text", ["", "a = 1\n", BY_HAND.replace("[mcp_servers.scrubjay]", ""), "a = 1\r\n"])
def test_what_was_added_can_be_taken_out_again_and_leaves_every_byte_as_it_was(text):
    added = put(text, PLACE, ENTRY)

    assert read(added)["mcp_servers"]["scrubjay"] == ENTRY
    assert put(added, PLACE, ENTRY) == added
    assert remove(added, PLACE) == text


def test_an_entry_in_the_middle_keeps_its_own_keys_and_its_neighbours():
    text = (
        '[mcp_servers.scrubjay]\nstartup_timeout_sec = 20 # slow\nargs = [\n  "old",\n]\n\n'
        '[mcp_servers.scrubjay.env]\nA = "1"\n\n# next\n[next]\nb = 2\n'
    )

    added = put(text, PLACE, ENTRY)

    assert read(added)["mcp_servers"]["scrubjay"] == {**ENTRY, "startup_timeout_sec": 20, "env": {"A": "1"}}
    assert "# slow" in added
    assert remove(added, PLACE).lstrip() == "# next\n[next]\nb = 2\n"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = ", "line 1|end of document"),
        (BY_HAND, "layout is unusual"),  # a header inside a string
        ('mcp_servers = { scrubjay = { command = "x" } }\n', "layout is unusual"),
        ("mcp_servers.scrubjay.command = 'x'\n", "layout is unusual"),
        ("[mcp_servers]\nscrubjay = 1\n", "mcp_servers.scrubjay is not a table"),
        ("[[mcp_servers]]\nname = 'other'\n", "mcp_servers is not a table"),
        ("[[mcp_servers.scrubjay]]\ncommand = 'x'\n", "mcp_servers.scrubjay is not a table"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text, where):
    with pytest.raises(Unreadable, match=where):
        put(text, PLACE, ENTRY)


@pytest.mark.parametrize("text", ["[[mcp_servers]]\nname = 'other'\n", "mcp_servers = 1\n"])
def test_nothing_is_taken_out_of_what_is_not_a_table(text):
    with pytest.raises(Unreadable, match="mcp_servers is not a table"):
        remove(text, PLACE)
