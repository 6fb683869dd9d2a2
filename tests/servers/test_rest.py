"""Operations over real REST: where they are, what they take from path, query and body, and how they answer."""

from __future__ import annotations

import json
import threading

import pytest

from scrubjay.dialects.base import Dialect, Pieces, Route, Stream, object_schema
from scrubjay.dialects.system.definitions import CODES
from scrubjay.dialects.table import DIALECTS, find
from scrubjay.errors import Error, NotFound
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rest import addresses, status_of
from tests.servers.sites import client_of
from tests.test_errors import EVERY

pytestmark = pytest.mark.process

ANY = {"type": "object"}
EVERY_DIALECT = [find(name) for name in DIALECTS]


def routed() -> Dialect:
    """A table for tests, with addresses of its own."""
    dialect = Dialect(
        name="routed",
        title="Routed: a table for tests",
        server_name="routed",
        instructions="",
        error_body=lambda error, _: {"oops": error.code, "said": error.message},
        tools=False,
    )

    def operation(name, method, path, status=200, takes=ANY, changes=False, streams=None):
        route = Route(method, path, status)
        return dialect.operation(name, name=name, takes=takes, gives=ANY, changes=changes, route=route, streams=streams)

    shelf = {"shelf": {"type": "string"}, "row": {"type": "integer"}}
    filters = {
        "limit": {"type": "integer", "maximum": 50},
        "share": {"type": "number"},
        "exact": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "word": {"type": ["string", "null"]},
    }

    @operation("look", "GET", "/api/test/{shelf}/{row}", takes=object_schema({**shelf, **filters}))
    def look(engine, args):
        return {"got": args, "space": engine.spaces[0]}

    @operation("put", "PUT", "/api/test/{shelf}/{row}", 201, object_schema({**shelf, "book": {}}), changes=True)
    def put(engine, args):
        return {"got": args, "client": engine.provenance.client, "transport": engine.provenance.transport}

    @operation("named", "GET", "/api/test/shelves/all")
    def named(engine, args):
        return {"named": True}

    @operation("file", "GET", "/api/test/files/{path:path}", takes=object_schema({"path": {"type": "string"}}))
    def file(engine, args):
        return args

    @operation("missing", "GET", "/api/test/missing")
    def missing(engine, args):
        raise NotFound("No such book.")

    @operation("broken", "GET", "/api/test/broken")
    def broken(engine, args):
        raise RuntimeError("secret detail")

    @operation("events", "GET", "/api/test/events", streams=Pieces.EVENTS)
    def events(engine, args):
        return Stream(iter([{"event": "change", "id": "7", "data": {"a": "b\nc"}}, None, {"data": {"d": 1}}]))

    @operation("lines", "GET", "/api/test/lines", streams=Pieces.LINES)
    def lines(engine, args):
        def pieces():
            yield {"first": "é"}
            raise NotFound("The rest is gone.")

        return Stream(pieces(), Pieces.LINES)

    @operation("forever", "GET", "/api/test/forever", streams=Pieces.EVENTS)
    def forever(engine, args):
        return Stream(endless())

    return dialect


left = threading.Event()


def endless():
    try:
        yield {"data": "begun"}
        while True:
            yield None
    finally:
        left.set()


@pytest.fixture
def http(jay):
    with client_of(build_app(jay, EVERY_DIALECT, only_rest=[routed()])) as client:
        yield client


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"{oops", {}),
        (b"[1]", {}),
        (b'"text"', {}),
        (b'{"content": "\xff"}', {}),
        (b'{"content": "\\ud800"}', {}),
        (b'{"content": NaN}', {}),
        (b'{"content": "x"}', {"content-type": "application/xml"}),
        (b'{"content": "x"}', {"content-type": "application/x-ndjson"}),
        (b'{"content": ' + b"[" * 5000 + b"]" * 5000 + b"}", {}),
        (b'{"content": "x", "colour": "red"}', {}),
        (b"{}", {}),
        (b"", {}),
        (b'{"content": "x"}', {"if-match": "newest"}),
        (b'{"content": "x"}', {"idempotency-key": "a", "x-idempotency-key": "b"}),
        (b'{"content": "x"}', {"idempotency-key": "k" * 201}),
        (b'{"content": "x"}', {"idempotency-key": ""}),
    ],
)
def test_a_body_that_is_not_arguments_is_refused_in_the_dialects_words(http, jay, body, headers):
    reply = http.post("/api/system/store_memory", content=body, headers={"content-type": "application/json", **headers})

    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "INVALID_INPUT"
    assert not jay.list()


def test_a_body_takes_no_arguments_from_the_query(http):
    reply = http.post("/api/memento/store_memory?confidence=0.5", json={"content": "x"})

    assert reply.status_code == 400
    assert "confidence" in reply.json()["error"]["message"]


def test_an_argument_in_path_and_body_is_refused(http):
    reply = http.put("/api/test/top/3", json={"shelf": "bottom"})

    assert (reply.status_code, reply.json()["oops"]) == (400, "invalid_input")


@pytest.mark.parametrize(
    "query",
    ["limit=51", "limit=ten", "limit=1.5", "limit=", "limit=1&limit=2", "exact=yes", "share=1e3", "colour=red"],
)
def test_a_query_outside_the_schema_is_refused(http, query):
    assert http.get(f"/api/test/top/3?{query}").status_code == 400


@pytest.mark.parametrize("name", ["Upper", "../up", ""])
def test_a_space_with_a_bad_name_is_refused_in_the_dialects_words(http, name):
    reply = http.post("/api/system/list_memories", params={"space": name}, json={})

    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "INVALID_INPUT")


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/memento/store_memory"), ("DELETE", "/api/test/top/3")])
def test_another_method_is_told_which_there_are(http, method, path):
    reply = http.request(method, path)

    assert reply.status_code == 405
    assert reply.headers["allow"] == ("POST" if "memento" in path else "GET, PUT, HEAD")


@pytest.mark.parametrize("path", ["/api/memento/no_such_tool", "/api/routed/look", "/api/nobody/store_memory", "/api"])
def test_what_is_not_in_the_table_has_no_address(http, path):
    assert http.post(path, json={}).status_code == 404


def test_a_fault_of_ours_shows_nothing_of_itself(http):
    reply = http.get("/api/test/broken")

    assert (reply.status_code, reply.json()["oops"]) == (500, "internal")
    assert "secret" not in reply.text


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_has_the_status_that_system_says(kind):
    error: Error = kind("Something.")
    system = next(status for row, (_, status) in CODES.items() if isinstance(error, row))

    assert status_of(error) == system


# --- what is answered ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", list(addresses(EVERY_DIALECT)), ids=lambda one: f"{one.method} {one.path}")
def test_every_operation_has_an_address(http, address):
    path = address.path.replace("{", "").replace("}", "").replace(":path", "")

    reply = http.request(address.method, path)
    nothing_there = "ENDPOINT_NOT_FOUND" in reply.text or "Nothing has been changed" in reply.text
    assert reply.status_code not in (404, 405, 500) or "{" in address.path or nothing_there


def test_what_is_stored_over_rest_is_found_over_rest_by_another_dialect(http):
    stored = http.post("/api/memento/store_memory", json={"content": "The lighthouse is red."}).json()
    found = http.post("/api/system/recall_memories", json={"query": "lighthouse"}).json()

    assert found["memories"][0]["memory_id"] == stored["created"]["id"]


def test_path_query_and_types_make_the_arguments(http, jay):
    jay.known_spaces.create("attic")
    reply = http.get("/api/test/top/3?limit=7&share=0.5&exact=true&tags=a&tags=b&word=12&space=attic")

    expected = {"shelf": "top", "row": 3, "limit": 7, "share": 0.5, "exact": True, "tags": ["a", "b"], "word": "12"}
    assert reply.json() == {"got": expected, "space": "attic"}


def test_a_created_thing_answers_with_the_status_of_its_route(http):
    reply = http.put("/api/test/top/3", json={"book": "tea"}, headers={"user-agent": "reader/1.2 (linux)"})

    assert reply.status_code == 201
    assert reply.json() == {"got": {"shelf": "top", "row": 3, "book": "tea"}, "client": "reader", "transport": "http"}


def test_a_plain_path_is_not_hidden_by_one_with_arguments(http):
    assert http.get("/api/test/shelves/all").json() == {"named": True}


def test_an_argument_may_hold_slashes_where_its_route_says_so(http):
    assert http.get("/api/test/files/a/b%20c.md").json() == {"path": "a/b c.md"}


def test_head_is_get_without_the_body(http):
    reply = http.head("/api/test/shelves/all")

    assert (reply.status_code, reply.content) == (200, b"")


def test_what_is_missing_is_404(http):
    assert http.get("/api/test/missing").status_code == 404


def test_a_write_with_a_key_is_done_once(http, jay):
    def store(header, content="Tea at four."):
        return http.post("/api/memento/store_memory", json={"content": content}, headers={header: "k1"})

    first, again, other = store("idempotency-key"), store("x-idempotency-key"), store("idempotency-key", "Coffee.")

    assert first.json() == again.json()
    assert len(jay.list()) == 1
    assert other.status_code == 422


def test_a_change_happens_only_to_the_version_that_if_match_names(http, jay):
    id = jay.store("Tea at four.").memory.id

    def update(tag, importance=0.9):
        body = {"memory_id": id, "updates": {"importance": importance}}
        return http.post("/api/system/update_memory", json=body, headers={"if-match": tag})

    assert update('"7"').status_code == 409
    assert update('"1"').json()["version"] == 2
    assert update("*", 0.1).json()["version"] == 3


def test_what_takes_a_memory_away_asks_for_the_version_that_if_match_names_too(http, jay):
    old, new = jay.store("Tea at four.").memory.id, jay.store("Tea at five.").memory.id

    def supersede(tag):
        body = {"old_memory_id": old, "new_memory_id": new}
        return http.post("/api/memento/supersede_memory", json=body, headers={"if-match": tag})

    def forget(tag):
        return http.post("/api/system/forget_memory", json={"memory_id": old}, headers={"if-match": tag})

    assert supersede('"7"').status_code == 409
    assert jay.get(old).superseded_by is None
    assert supersede('"1"').status_code == 200
    assert forget('"1"').status_code == 409
    assert forget('"2"').status_code == 200


def test_a_large_reply_carries_fewer_items(http, jay):
    jay.store_many([{"content": f"{number} " + "x" * 40_000} for number in range(40)])

    reply = http.post("/api/system/list_memories", json={"pagination": {"limit": 40}})

    assert len(reply.content) <= 1_000_000
    assert reply.json()["left_out"] + len(reply.json()["memories"]) == 40


# --- streams ---------------------------------------------------------------------------------------------------------


def test_events_are_sent_as_such(http):
    reply = http.get("/api/test/events")

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.text == 'event: change\nid: 7\ndata: {"a":"b\\nc"}\n\ndata: {"d":1}\n\n'


def test_a_failure_on_the_way_is_the_last_piece(http):
    lines = [json.loads(line) for line in http.get("/api/test/lines").text.splitlines()]

    assert lines == [{"first": "é"}, {"oops": "not_found", "said": "The rest is gone."}]


def test_a_stream_ends_when_its_client_leaves(http):
    left.clear()
    with http.stream("GET", "/api/test/forever") as reply:
        assert next(reply.iter_lines()) == 'data: "begun"'

    assert left.wait(60)


@pytest.mark.parametrize("path", ["/api/v1/memories", "/session", "/healthz", "/api/v1/nowhere", "/openapi.json"])
def test_no_answer_is_kept_on_the_way(http, path):
    assert http.get(path).headers["cache-control"] == "no-store"


def test_no_answer_of_a_tool_is_kept_on_the_way(http):
    assert (
        http.post("/api/system/store_memory", json={"content": "Tea at four."}).headers["cache-control"] == "no-store"
    )
