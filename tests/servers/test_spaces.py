"""A space that is not there: over HTTP nobody makes one by misspelling it, except where an interface paper says so."""

from __future__ import annotations

import httpx
import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.values.callers import Role
from tests.conflict import open_conflict
from tests.servers.peer import ENVELOPE
from tests.servers.sites import client_of
from tests.servers.test_http import real_server

pytestmark = pytest.mark.process


@pytest.fixture
def http(jay):
    app = build_app(jay, [find(name) for name in DIALECTS], only_rest=[find(name) for name in ONLY_REST])
    with client_of(app) as client:
        yield client


def spaces(jay):
    return [space.name for space in jay.known_spaces.list()]


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
    jay.known_spaces.create("attic")
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


# --- which space is written to, and which are read -------------------------------------------------------------------


FACT = "The demo runs on port 8080"


@pytest.fixture
def told(jay):
    return jay.bound_to(spaces=("acme",)).store(FACT).memory.id


def recall(http, address, tool="recall", **arguments):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    envelope = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
    call["params"] |= ENVELOPE
    return http.post(address, json=call, headers={**envelope, "accept": "application/json, text/event-stream"}).text


def test_a_read_that_names_no_space_looks_in_all(http, told):
    assert [one["id"] for one in http.get("/api/v1/memories").json()["memories"]] == [told]


@pytest.mark.parametrize("door", [{"params": {"space": "default"}}, {"headers": {"x-scrubjay-space": "default"}}])
def test_a_read_over_rest_that_names_a_space_stays_in_it(http, told, door):
    assert http.get("/api/v1/memories", **door).json()["memories"] == []
    found = http.post("/api/memento/search_memories", json={"query": FACT}, **door).json()
    assert found["memories"] == []


def test_a_write_that_names_a_space_is_compared_with_all(http, jay, told):
    jay.known_spaces.create("notes")

    stored = http.post("/api/memento/store_memory?space=notes", json={"content": FACT}).json()

    assert [one["id"] for one in stored["similar"]] == [told]


def test_an_address_of_mcp_names_the_space_of_a_client_which_reads_all(http, jay, told):
    jay.known_spaces.create("notes")

    assert "from space acme" in recall(http, "/mcp?space=notes", question="Which port does the demo run on?")
    recall(http, "/mcp?space=notes", tool="remember", facts=["Tea is at four"])

    assert [memory.content for memory in jay.bound_to(spaces=("notes",), only=True).list()] == ["Tea is at four"]


def test_a_further_grant_moves_no_write_and_spoils_no_replay(http, jay, clock):
    """A key that was granted one space goes on writing there when its user is granted another."""
    jay.known_spaces.create("work")
    jay.known_spaces.create("attic")
    jay.callers.grant("work", "alice")
    headers = {"x-api-key": jay.callers.create("alice").secret, "idempotency-key": "once"}
    address, memory = "/api/memento/store_memory", {"content": "Tea is at four."}
    first = http.post(address, json=memory, headers=headers)

    clock.move(seconds=1)
    jay.callers.grant("attic", "alice")
    again = http.post(address, json=memory, headers=headers)
    other = http.post(address, json={"content": "The cat is grey."}, headers=headers | {"idempotency-key": "twice"})

    assert (again.status_code, again.json()) == (200, first.json())
    assert other.status_code == 200
    assert len(jay.bound_to(spaces=("work",), only=True).list()) == 2


def test_who_has_several_spaces_is_told_to_name_one(http, jay):
    jay.known_spaces.create("work")
    jay.known_spaces.create("attic")
    key = {"x-api-key": jay.callers.create("bob", spaces=["work", "attic"]).secret}

    refused = http.post("/api/v1/memories", json={"content": "Tea is at four."}, headers=key)

    assert refused.status_code == 403
    assert refused.json()["error"]["hint"] == "Name one of yours (attic, work), or ask an owner for a grant."


def test_a_server_writes_to_default_wherever_it_is_started(tmp_path, monkeypatch):
    (tmp_path / "rocket" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "rocket")

    for setting, space in (("", "default"), ("auto", "default"), ("work", "work")):
        with real_server(tmp_path / f"home {setting}", SCRUBJAY_SPACE=setting) as (address, _):
            stored = httpx.post(f"{address}/api/v1/memories", json={"content": "Tea is at four."}, timeout=60)
        assert stored.json()["memory"]["space"] == space


@pytest.mark.parametrize("server_narrows", [False, True])
def test_an_open_pair_is_marked_where_a_request_names_only_one_of_its_spaces(jay, server_narrows):
    """A server that is narrowed itself says nothing of other spaces."""
    older = jay.bound_to(spaces=("acme",)).store("The demo runs on port 8080").memory
    newer = jay.store("The demo runs on port 9090 now").memory
    open_conflict(jay, newer, older)
    app = build_app(jay.bound_to(only=server_narrows), [find("memento")], only_rest=[find("native")])

    with client_of(app) as http:
        listed = http.get("/api/v1/memories?space=acme").json()
        found = http.post("/api/v1/search?space=acme", json={"query": "demo port"}).json()

    assert [one["id"] for one in listed["memories"]] == [one["memory"]["id"] for one in found["hits"]] == [older.id]
    assert listed["doubts"] == found["doubts"] == ({} if server_narrows else {older.id: newer.id})
