"""Memories read by address, over the real wire."""

from __future__ import annotations

import json

import pytest

from tests.servers.peer import Peer

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """One server for all that only read."""
    with Peer(tmp_path_factory.mktemp("home"), "--dialect", "cortex") as peer:
        said = peer.greet()
        assert set(said["capabilities"]) == {"tools", "resources", "completions"}
        for path in ("project/api/limits", "project/db", "human/name"):
            assert not peer.call("add_memory", store="default", path=path, content=f"About {path}")["isError"]
        peer.call("add_memory", store="default", path="a/old", content="x", expires_at="2020-01-01")
        yield peer


def read(peer, uri):
    [content] = peer.ask("resources/read", {"uri": uri})["result"]["contents"]
    assert content["uri"] == uri
    return content


def completed(peer, argument, value, **known):
    reply = peer.ask(
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "cortex://memory/{store}/{path}"},
            "argument": {"name": argument, "value": value},
            "context": {"arguments": known},
        },
    )
    return reply["result"]["completion"]["values"]


def test_a_memory_is_read_by_its_address(peer):
    content = read(peer, "cortex://memory/default/project/db")

    assert (content["mimeType"], content["text"]) == ("text/plain", "About project/db")
    assert read(peer, "cortex://memory/default/project%2Fdb")["text"] == "About project/db"


def test_a_category_is_read_with_the_address_of_everything_in_it(peer):
    listing = json.loads(read(peer, "cortex://memory/default/project/")["text"])

    assert [one["uri"] for one in listing["memories"]] == [
        "cortex://memory/default/project/api/limits",
        "cortex://memory/default/project/db",
    ]
    assert [one["uri"] for one in listing["subcategories"]] == ["cortex://memory/default/project/api/"]
    assert json.loads(read(peer, "cortex://memory/default/")["text"])["count"] == 3


def test_stores_are_listed_and_read(peer):
    listed = peer.ask("resources/list")["result"]["resources"]
    assert [one["uri"] for one in listed] == ["cortex://store/", "cortex://store/default"]
    templates = peer.ask("resources/templates/list")["result"]["resourceTemplates"]
    assert "cortex://memory/{store}/{path}" in [one["uriTemplate"] for one in templates]

    assert json.loads(read(peer, "cortex://store/")["text"])["stores"][0]["name"] == "default"
    assert json.loads(read(peer, "cortex://store/default")["text"])["count"] == 3


@pytest.mark.parametrize(
    "uri",
    ["cortex://memory/default/none", "cortex://memory/nowhere/a/b", "cortex://memory/default/../../etc/passwd",
     "cortex://memory/default/%2e%2e/x", "file:///etc/passwd", "cortex://other", "cortex://memory/", "cortex://store/x"],
)  # fmt: skip
def test_what_is_not_there_is_an_error(peer, uri):
    error = peer.ask("resources/read", {"uri": uri})["error"]

    assert error["code"] == -32602


def test_an_expired_memory_is_not_read(peer):
    assert "expired" in peer.ask("resources/read", {"uri": "cortex://memory/default/a/old"})["error"]["message"]


def test_stores_and_paths_are_completed(peer):
    assert completed(peer, "store", "de") == ["default"]
    assert completed(peer, "store", "x") == []
    assert completed(peer, "path", "project/", store="default") == ["project/api/limits", "project/db"]
    assert completed(peer, "path", "project/") == []
    assert completed(peer, "something", "a") == []


def test_a_dialect_without_resources_offers_none(start):
    peer = start("--dialect", "memento")

    assert set(peer.greet()["capabilities"]) == {"tools"}
    assert "error" in peer.ask("resources/list")
