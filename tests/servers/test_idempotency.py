"""A write with a key is done once, however often and however much at once it is sent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from scrubjay.dialects.base import Pieces
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rest import addresses
from scrubjay.values.callers import Role
from tests.conflict import open_conflict
from tests.servers.samples import sample
from tests.servers.sites import client_of
from tests.servers.test_auth_matrix import Row

pytestmark = pytest.mark.process

TOOLS = [find(name) for name in DIALECTS]
TABLES = [*TOOLS, *map(find, ONLY_REST)]
WRITES = [
    Row(one.dialect, one.operation, one.method, one.path)
    for one in addresses(TABLES)
    if one.operation.changes and one.operation.streams is not Pieces.EVENTS
]


@pytest.fixture
def app(jay):
    return build_app(jay, TOOLS, only_rest=TABLES[len(TOOLS) :])


def events(jay):
    return sum(jay.records.history.last_event(space.name) for space in jay.known_spaces.list())


@pytest.mark.parametrize("row", WRITES, ids=str)
def test_every_write_sent_again_is_answered_alike_and_changes_nothing(jay, app, row):
    ids = [jay.store(f"Fact number {number}").memory.id for number in range(2)]
    words = {"old": ids[0], "new": ids[1], "id": ids[0]}
    with client_of(app, headers={"x-api-key": jay.callers.create("olga", role=Role.OWNER).secret}) as http:
        arguments = sample(row.operation.takes, words)
        first = row.ask(http, arguments, headers={"idempotency-key": "once"})
        before = events(jay), len(jay.list(limit=1000))
        again = row.ask(http, arguments, headers={"x-idempotency-key": "once"})

        if first.status_code < 300:
            assert (again.status_code, without_secret(again)) == (first.status_code, without_secret(first))
        assert (events(jay), len(jay.list(limit=1000))) == before


def without_secret(reply):
    """A key is shown once: a replay tells everything else."""
    return {name: value for name, value in reply.json().items() if name != "secret"}


def test_fifty_at_once_make_one_memory_and_get_one_answer(jay, app):
    with client_of(app) as http:

        def store(number):
            headers = {"idempotency-key": f"key {number % 4}"}
            reply = http.post("/api/memento/store_memory", json={"content": f"Fact {number % 4}"}, headers=headers)
            return number % 4, reply.text

        with ThreadPoolExecutor(50) as clients:
            answers = set(clients.map(store, range(200)))

    assert len(answers) == 4
    assert len(jay.list(limit=100)) == 4


def test_after_a_day_a_key_is_new(jay, app, clock):
    with client_of(app) as http:

        def store(content):
            headers = {"idempotency-key": "k"}
            return http.post("/api/memento/store_memory", json={"content": content}, headers=headers).status_code

        assert store("Tea") == 200
        assert store("Coffee") == 422
        clock.time += timedelta(hours=24)
        assert store("Coffee") == 200


def test_over_mcp_and_rest_a_key_is_the_same_key(jay, app):
    memento = find("memento")
    row = Row(memento, memento.operations["store_memory"])
    with client_of(app) as http:
        over_rest = http.post(
            "/api/memento/store_memory", json={"content": "Tea at four."}, headers={"idempotency-key": "k"}
        )
        sent = row.ask(http, {"content": "Tea at four."}).request
        body = sent.content.replace(b'"_meta":{', b'"_meta":{"scrubjay/idempotency-key":"k",')
        headers = {name: value for name, value in sent.headers.items() if name != "content-length"}
        over_mcp = http.post("/mcp/memento", content=body, headers=headers)

    assert over_mcp.json()["result"]["structuredContent"] == over_rest.json()


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Idempotency-Key"])
def test_a_key_in_a_header_counts_over_mcp_too(jay, app, header):
    """An append that a client sends again after a broken line is done once."""
    memory = jay.store("Tea").memory
    system = find("system")
    row = Row(system, system.operations["update_memory"])
    arguments = {"memory_id": memory.id, "updates": {"content": "at four"}, "merge_strategy": "append"}
    with client_of(app) as http:
        first = row.ask(http, arguments, headers={header: "once"})
        again = row.ask(http, arguments, headers={header: "once"})

    assert jay.get(memory.id).version == memory.version + 1
    assert again.json()["result"]["structuredContent"] == first.json()["result"]["structuredContent"]


def test_two_different_keys_for_one_call_are_refused(app):
    memento = find("memento")
    row = Row(memento, memento.operations["store_memory"])
    with client_of(app) as http:
        sent = row.ask(http, {"content": "Tea"}).request
        body = sent.content.replace(b'"_meta":{', b'"_meta":{"scrubjay/idempotency-key":"k",')
        headers = {name: value for name, value in sent.headers.items() if name != "content-length"}
        answer = http.post("/mcp/memento", content=body, headers={**headers, "idempotency-key": "another"})

    assert "Idempotency-Key" in answer.json()["result"]["structuredContent"]["error"]["message"]


def test_if_match_counts_over_mcp_too(jay, app):
    memory = jay.store("Tea").memory
    system = find("system")
    row = Row(system, system.operations["update_memory"])
    with client_of(app) as http:
        answer = row.ask(http, {"memory_id": memory.id, "updates": {"content": "Coffee"}}, headers={"if-match": '"7"'})

    assert answer.json()["result"]["structuredContent"]["error"]["code"] == "CONFLICT"
    assert jay.get(memory.id).content == "Tea"


def test_if_match_counts_for_a_memory_that_is_restored(jay, app):
    memory = jay.store("Tea").memory
    version = jay.forget(memory.id).memory.version
    path = f"/api/v1/memories/{memory.id}/recover"
    with client_of(app) as http:
        answers = [http.post(path, json={}, headers={"if-match": f'"{number}"'}) for number in (version - 1, version)]

    assert [answer.status_code for answer in answers] == [409, 200]


@pytest.mark.parametrize(
    ("path", "several", "one"),
    [
        ("/api/system/archive_memory", lambda ids: {"memory_ids": ids}, True),
        ("/api/system/archive_memory", lambda _: {"auto_archive_criteria": {"low_importance": 1.0}}, False),
        ("/api/system/restore_memory", lambda ids: {"memory_ids": ids}, True),
        ("/api/v1/bulk/forget", lambda ids: {"ids": ids}, True),
        ("/api/v1/bulk/update", lambda ids: {"filter": {"ids": ids}, "importance": 0.9}, True),
        ("/api/v1/bulk/update", lambda _: {"filter": {"categories": ["fact"]}, "importance": 0.9}, False),
    ],
)
def test_if_match_is_for_one_memory_and_never_ignored(jay, app, path, several, one):
    ids = [jay.store(f"The pier opens at {hour}", category="fact").memory.id for hour in ("nine", "ten")]
    if "restore" in path:
        jay.cold_storage.archive(ids)
    before = [jay.get(id) for id in ids]
    with client_of(app) as http:
        many = http.post(path, json=several(ids), headers={"if-match": '"1"'})
        other = http.post(path, json=several(ids[:1]), headers={"if-match": '"7"'})

        assert (many.status_code, other.status_code) == (400, 409 if one else 400)
        assert "If-Match" in many.text
        assert [jay.get(id) for id in ids] == before
        if one:
            version = f'"{before[0].version}"'
            assert http.post(path, json=several(ids[:1]), headers={"if-match": version}).status_code == 200


@pytest.mark.parametrize("row", WRITES, ids=str)
def test_if_match_is_honoured_or_refused_by_every_write(jay, app, row):
    """Whoever sends it believes to be protected by it."""
    old, new = (jay.store(f"Fact number {number}").memory for number in range(2))
    open_conflict(jay, new, old)
    before = events(jay)
    with client_of(app, headers={"x-api-key": jay.callers.create("olga", role=Role.OWNER).secret}) as http:
        words = {"old": old.id, "new": new.id, "id": old.id}
        arguments = sample(row.operation.takes, words) or sample(row.operation.takes, words, everything=True)
        answer = row.ask(http, arguments, headers={"if-match": '"7"'})

    if answer.status_code == 400 and not row.operation.of_one_version:
        assert "If-Match" in answer.text
    assert answer.status_code >= 400 or answer.json()["result"]["isError"]
    assert (events(jay), len(jay.list(limit=1000))) == (before, 2)


@pytest.mark.parametrize("said", ["keep", "same", "reopen"])
def test_a_conflict_is_settled_only_at_the_version_that_is_expected(jay, app, said):
    old, new = (jay.store(f"Fact number {number}").memory for number in range(2))
    open_conflict(jay, new, old)
    with client_of(app) as http:

        def settle(version):
            body = {"old": old.id, "new": new.id}
            return http.post(f"/api/v1/conflicts/{said}", json=body, headers={"if-match": f'"{version}"'}).status_code

        assert [settle(old.version + 1), settle(old.version)] == [409, 200]


def test_a_category_described_again_with_its_key_keeps_what_it_was_given_since(jay, app):
    jay.known_spaces.create("notes")
    with client_of(app) as http:

        def describe(text, **headers):
            body = {"store": "notes", "path": "project/api", "description": text}
            return http.post("/api/cortex/set_category_description", json=body, headers=headers).json()

        first = describe("Routes", **{"idempotency-key": "once"})
        describe("Routes and their errors")
        again = describe("Routes", **{"idempotency-key": "once"})

    assert first == again == {"path": "project/api", "description": "Routes"}
    assert jay.records.files.sections("notes")["project/api"] == "Routes and their errors"


def test_a_category_created_again_with_its_key_is_answered_alike(jay, app):
    jay.known_spaces.create("notes")
    with client_of(app) as http:
        asked = {"json": {"store": "notes", "path": "project/api"}, "headers": {"idempotency-key": "once"}}
        replies = [http.post("/api/cortex/create_category", **asked).json() for _ in range(2)]

    assert replies == 2 * [{"path": "project/api", "created": True}]
