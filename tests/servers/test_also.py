"""SCRUBJAY_ALSO=off: a real server leaves its schemas as the dialects' papers have them."""

from __future__ import annotations

import json

import pytest

from scrubjay.dialects.table import DIALECTS
from scrubjay.errors import InvalidInput
from scrubjay.servers.stdio.profile import compose, shipped_sheet, without_also
from scrubjay.settings import load
from tests.servers.peer import Peer

pytestmark = pytest.mark.process


def named(value):
    """Every name in some JSON."""
    if isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from named(inner)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_manifest_offers_can_be_taken_out_of_it(dialect):
    sheet = shipped_sheet(dialect)
    plain = without_also(sheet)

    assert "also" in named(sheet)
    assert "also" not in named(plain)
    assert len(json.dumps(plain)) < len(json.dumps(sheet))
    kept = {name: value for name, value in sheet.items() if name != "tools"}
    assert {name: value for name, value in plain.items() if name != "tools"} == kept
    assert [tool["name"] for tool in plain["tools"]] == [tool["name"] for tool in sheet["tools"]]


@pytest.mark.parametrize("switch", ["off", ""])
def test_a_real_server_offers_it_or_refuses_it_as_unknown(tmp_path, switch):
    with Peer(tmp_path, "--dialect", "memento", SCRUBJAY_ALSO=switch) as peer:
        peer.greet()
        tools = peer.ask("tools/list")["result"]["tools"]
        stored = peer.call("store_memory", content="The Ottilie is moored at pier four", also=["berth"])
        found = peer.call("search_memories", query="berth")

        assert ("also" in named(tools)) is (switch == "")
        assert stored["isError"] is (switch == "off")
        if switch == "off":
            assert "also is not known" in stored["content"][0]["text"]
            assert tools == compose([without_also(shipped_sheet("memento"))])["tools"]
        else:
            assert "pier four" in found["content"][0]["text"]


def test_it_is_read_before_any_file_so_a_file_cannot_set_it(tmp_path):
    (tmp_path / "config.toml").write_text("also = false")

    with pytest.raises(InvalidInput, match=r"also cannot be set in config.toml"):
        load({"SCRUBJAY_HOME": str(tmp_path)})
    (tmp_path / "config.toml").unlink()
    assert load({"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_ALSO": "off"}).also is False
