"""Two dialects at once: names with a prefix, also in the texts that name a tool, and one memory behind both."""

from __future__ import annotations

import pytest

from tests.servers.peer import Peer

pytestmark = pytest.mark.process


def test_texts_name_the_tool_as_it_is_served(tmp_path):
    with Peer(tmp_path, "--dialect", "memento", "--dialect", "system") as peer:
        peer.greet()
        names = [tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]]
        assert "memento_store_memory" in names
        assert "system_recall_memories" in names

        old = peer.call("memento_store_memory", content="User's favourite colour is red")["structuredContent"][
            "created"
        ]["id"]
        body = peer.call("memento_store_memory", content="User's favourite colour is now blue")["structuredContent"]

        new = body["created"]["id"]
        assert body["action_required"].startswith(f'Call memento_supersede_memory("{old}", "{new}")')


def test_what_one_stores_the_other_finds(tmp_path):
    with Peer(tmp_path, "--dialect", "memento", "--dialect", "system") as peer:
        peer.greet()
        stored = peer.call("system_store_memory", content="The ferry leaves at nine")["structuredContent"]

        found = peer.call("memento_search_memories", query="ferry")["structuredContent"]["memories"]

        assert [memory["id"] for memory in found] == [stored["memory_id"]]


def test_a_write_with_a_key_is_done_once_also_after_a_restart(tmp_path):
    request = {
        "name": "store_memory",
        "arguments": {"content": "The ferry leaves at nine"},
        "_meta": {"scrubjay/idempotency-key": "k1"},
    }
    replies = []
    for _ in range(2):
        with Peer(tmp_path, "--dialect", "system") as peer:
            peer.greet()
            replies.append(peer.ask("tools/call", request)["result"]["structuredContent"])

    assert replies[0]["success"] is True
    assert replies[0] == replies[1]


def test_an_expected_version_in_the_meta_data_is_honoured(tmp_path):
    with Peer(tmp_path, "--dialect", "system") as peer:
        peer.greet()
        memory = peer.call("store_memory", content="one")["structuredContent"]["memory_id"]
        request = {
            "name": "update_memory",
            "arguments": {"memory_id": memory, "updates": {"importance": 0.9}},
            "_meta": {"scrubjay/if-version": 7},
        }

        body = peer.ask("tools/call", request)["result"]["structuredContent"]

        assert body["error"]["status"] == 409
