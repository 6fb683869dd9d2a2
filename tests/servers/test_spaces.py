"""A space that is not there: over HTTP nobody makes one by misspelling it, except where an interface paper says so."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.values.memory import Role
from tests.servers.sites import client_of


@pytest.fixture
def http(jay):
    app = build_app(jay, [find(name) for name in DIALECTS], only_rest=[find(name) for name in ONLY_REST])
    with client_of(app) as client:
        yield client


def spaces(jay):
    return [space.name for space in jay.list_spaces()]


@pytest.mark.parametrize("door", [{"params": {"space": "nospace"}}, {"headers": {"x-scrubjay-space": "nospace"}}])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/memento/store_memory", {"content": "Tea is at four."}),
        ("POST", "/api/system/list_memories", {}),
        ("POST", "/api/v1/memories", {"content": "Tea is at four."}),
        ("POST", "/api/v1/import", {"lines": []}),
        ("GET", "/api/v1/memories", None),
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ("GET", "/session", None),
    ],
)
def test_a_misspelt_space_is_not_found_and_not_made(http, jay, door, method, path, body):
    owner = jay.callers.create("olga", role=Role.OWNER).secret

    options = {**door, "headers": {"x-api-key": owner, **door.get("headers", {})}}
    reply = http.request(method, path, json=body, **options)

    assert reply.status_code == 404, reply.text
    assert "nospace" in reply.text
    assert spaces(jay) == ["default"]


def test_the_local_owner_is_told_the_same(http, jay):
    assert http.post("/api/memento/store_memory?space=nospace", json={"content": "Tea"}).status_code == 404
    assert spaces(jay) == ["default"]


def test_a_space_of_others_does_not_tell_whether_it_is_there(http, jay):
    jay.create_space("attic")
    member = {"x-api-key": jay.callers.create("alice", spaces=["default"]).secret}

    seen = [http.get(f"/api/v1/memories?space={space}", headers=member) for space in ("attic", "nowhere")]

    assert seen[0].status_code == seen[1].status_code
    assert seen[0].json() == seen[1].json()


def test_a_space_that_is_made_first_is_there(http, jay):
    assert http.post("/api/v1/spaces", json={"name": "work"}).status_code == 201

    assert http.post("/api/v1/memories?space=work", json={"content": "Tea is at four."}).status_code == 201


def test_a_key_over_rest_is_for_spaces_that_are_there(http, jay):
    made = http.post("/api/v1/keys", json={"user": "alice", "spaces": ["doesnotexist"]})

    assert made.status_code == 404
    assert not jay.callers.locked()


def test_what_an_interface_paper_makes_is_made(http, jay):
    memory = {"store": "notes", "path": "tea/time", "content": "Tea is at four."}
    assert http.post("/api/cortex/create_store", json={"name": "books"}).status_code == 200
    assert http.post("/api/cortex/add_memory", json=memory).status_code == 200
    assert http.post("/api/workspaces", json={"name": "Harbour"}).status_code < 300

    assert spaces(jay) == ["books", "default", "harbour", "notes"]
