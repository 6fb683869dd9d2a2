"""Who may do what, over the whole table: every operation over REST and over MCP, and every route of the site.

The rows come from the table of operations, so an operation cannot be forgotten; what is expected of each cell comes
from what the operation declares (`changes`, `reach`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from scrubjay.dialects.base import Dialect, Operation, Pieces, Reach
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.admission import is_open
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rate_limits import Limits, Windows
from scrubjay.servers.http.rest import IN_QUERY, addresses
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Role
from scrubjay.values.memory import AccessLevel
from tests.conftest import Clock
from tests.servers.peer import ENVELOPE
from tests.servers.samples import sample
from tests.servers.sites import AS_JSON, running

pytestmark = pytest.mark.process

TOOLS = [find(name) for name in DIALECTS]
TABLES = [*TOOLS, *map(find, ONLY_REST)]
MARK = "zanzibar-4711"  # in every private text of alice


@dataclass(frozen=True)
class Row:
    """An operation at an address of REST, or as a tool of MCP (no path)."""

    dialect: Dialect
    operation: Operation
    method: str = "POST"
    path: str | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}" if self.path else f"mcp {self.dialect.name}.{self.operation.name}"

    def ask(self, http: httpx.Client, arguments=None, *, headers=None, space=None) -> httpx.Response:
        arguments, headers = dict(arguments or {}), dict(headers or {})
        params = {} if space is None else {"space": space}
        if self.path is None:
            name = self.operation.name
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            sent = {**body, "params": {"name": name, "arguments": arguments, **ENVELOPE}}
            modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}
            modern["accept"] = "application/json, text/event-stream"
            return http.post(f"/mcp/{self.dialect.name}", json=sent, headers={**modern, **headers}, params=params)

        def filled(found: re.Match[str]) -> str:
            return str(arguments.pop(found[1], "x")) or "x"

        path = re.sub(r"\{(\w+)(?::path)?\}", filled, self.path)
        if self.method in IN_QUERY:
            flat = {name: value for name, value in arguments.items() if not isinstance(value, dict)}
            return http.request(self.method, path, params={**flat, **params}, headers=headers)
        return http.request(self.method, path, json=arguments, headers=headers, params=params)


# A second name of an operation is the same operation (tests/dialects/test_cortex.py): what a role may
# do under it is tried, what each caller could be shown by it is not tried once more.
FIRST_NAMES = {operation.run: operation.name for table in TABLES for operation in reversed(table.operations.values())}
ROWS = [
    *(Row(one.dialect, one.operation, one.method, one.path) for one in addresses(TABLES)),
    *(Row(dialect, operation) for dialect in TOOLS for operation in dialect.operations.values()),
]
SITE = [("GET", "/openapi.json"), ("GET", "/docs"), ("GET", "/metrics"), ("GET", "/session"), ("POST", "/sign-out")]
UNKNOWN = [("GET", "/nowhere"), ("POST", "/api/memento/nothing"), ("GET", "/mcp"), ("GET", "/healthz/")]


@dataclass
class House:
    """One store with two tenants, and everybody's key."""

    jay: Engine
    http: httpx.Client
    windows: Windows  # of the rate limits
    keys: dict[str, str]
    private: str  # alice's, in the space of both
    apart: str  # alice's shared one, in a space of her own

    def changes(self) -> int:
        return sum(self.jay.records.history.last_event(space.name) for space in self.jay.known_spaces.list())


@pytest.fixture(autouse=True)
def fresh_budgets(house):
    """A quick machine makes more calls in a minute than one caller may; what is asked here is not how many."""
    house.windows.clear()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    clock = Clock()
    with engine_on(SqliteStore(tmp_path_factory.mktemp("house") / "m.db"), HashingEmbedder(), clock=clock) as jay:
        callers = jay.callers
        for space in ("attic", "cellar"):
            jay.known_spaces.create(space)
        soon = clock() + timedelta(days=1)
        made = {
            "expired": callers.create("alice", expires_at=soon),
            "revoked": callers.create("alice"),
            "alice": callers.create("alice", spaces=["default", "attic"]),
            "bob": callers.create("bob", spaces=["default"]),
            "rita": callers.create("rita", role=Role.READER, spaces=["default"]),
            "nobody": callers.create("nobody", spaces=["cellar"]),
            "olga": callers.create("olga", role=Role.OWNER),
            "otto": callers.create("otto", role=Role.OWNER, spaces=["cellar"]),
        }
        clock.move(days=2)
        callers.revoke(made["revoked"].credential.id)
        alice = jay.bound_to(caller=callers.by_key(made["alice"].secret))
        private = alice.store(f"Private {MARK}", access_level=AccessLevel.PRIVATE, conversation_id="c1").memory.id
        apart = alice.bound_to(spaces=("attic",)).store(f"Attic {MARK}").memory.id
        jay.store("Everybody may read this.", access_level=AccessLevel.SHARED)
        windows = Windows()
        app = build_app(jay, TOOLS, only_rest=TABLES[len(TOOLS) :], limits=Limits(windows=windows))
        with running(app) as address, httpx.Client(base_url=address, headers=AS_JSON, timeout=60) as http:
            keys = {name: one.secret for name, one in made.items()}
            yield House(jay=jay, http=http, windows=windows, keys=keys, private=private, apart=apart)


def bad_credentials(house: House) -> list[dict[str, str]]:
    key = house.keys["alice"]
    return [
        {},
        {"x-api-key": "garbage"},
        {"x-api-key": ""},
        {"authorization": f"Basic {key}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."},
        {"authorization": f"Bearer {key[:-1]}"},
        {"authorization": f"Bearer {house.keys['expired']}"},
        {"x-api-key": house.keys["revoked"]},
        {"x-api-key": key, "authorization": f"Bearer {house.keys['bob']}"},
        {"cookie": "scrubjay_session=made-up"},
    ]


# --- nobody ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_nobody_calls_an_operation(house, row):
    before = house.changes()
    for headers in bad_credentials(house):
        reply = row.ask(house.http, headers=headers)

        assert reply.status_code == 401, headers
        assert reply.headers["www-authenticate"] == "Bearer"
    assert house.changes() == before


@pytest.mark.parametrize(("method", "path"), [*SITE, *UNKNOWN])
def test_nobody_sees_the_site(house, method, path):
    for headers in bad_credentials(house):
        assert house.http.request(method, path, headers=headers).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_anybody_may_ask_for_health_and_learns_nothing_more(house, path):
    assert house.http.get(path).content == b'{"status":"ok"}'


def test_only_these_are_open(house):
    """A new route asks for a credential unless it is named here."""
    routes = [route.path for route in build_app(house.jay, TOOLS, only_rest=TABLES[len(TOOLS) :]).routes]

    page = {"/", "/sign-in", "/sign-in/{word}"}
    assert {path for path in routes if is_open(path)} == page | {"/healthz", "/readyz"}


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [("host", "evil.example", 421), ("origin", "http://evil.example", 403), ("origin", "null", 403)],
)
def test_a_good_key_does_not_help_a_foreign_host_or_origin(house, row, header, value, status):
    reply = row.ask(house.http, headers={"x-api-key": house.keys["olga"], header: value})

    assert reply.status_code == status


# --- somebody --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_role_reaches_as_far_as_the_operation_declares(house, row):
    """Whatever the arguments: the answer is no before they are read."""
    denied = {
        "rita": row.operation.changes or row.operation.reach is not Reach.MEMORY,
        "bob": row.operation.reach is not Reach.MEMORY,
        "olga": row.operation.reach is Reach.LOCAL,
    }
    before = house.changes()
    for who in (name for name, no in denied.items() if no):
        reply = row.ask(house.http, {"anything": 1}, headers={"x-api-key": house.keys[who]})
        if row.path is None:
            assert reply.json()["result"]["isError"], who
            assert "owner" in reply.text or "reader" in reply.text
        else:
            assert reply.status_code == 403, (who, reply.text)
    assert house.changes() == before


ANSWERING = [
    row
    for row in ROWS
    if row.operation.streams is not Pieces.EVENTS and FIRST_NAMES[row.operation.run] == row.operation.name
]


OTHERS = ["bob", "rita", "nobody", "otto"]


@pytest.mark.parametrize("row", ANSWERING, ids=str)
@pytest.mark.parametrize("who", OTHERS)
def test_no_answer_to_others_holds_what_is_private(house, row, who):
    """Alice's ids and words stand in every field that could take them, in the body, the path and the query. Each memory
    is asked for in its own space, and in the caller's own where that is another."""
    spaces = [] if who in ("bob", "rita") else [None]
    asked = [(house.private, "default"), (house.apart, "attic")]
    nothing_is_told(house, row, who, asked + [(memory, space) for memory, _ in asked for space in spaces])


@pytest.mark.long
@pytest.mark.parametrize("row", ANSWERING, ids=str)
@pytest.mark.parametrize("who", OTHERS)
def test_no_answer_to_others_holds_what_is_private_in_another_space(house, row, who):
    nothing_is_told(house, row, who, [(house.private, "attic"), (house.apart, "default")])


def nothing_is_told(house, row, who, asked):
    headers = {"x-api-key": house.keys[who]}
    alice = {id: house.jay.get(id) for id in (house.private, house.apart)}
    for memory, space in asked:
        words = {"id": memory, "query": "zanzibar", "user": "alice", "conversation": "c1", "content": "Mine."}
        for everything in (False, True):
            arguments = sample(row.operation.takes, words, everything=everything)
            reply = row.ask(house.http, arguments, headers=headers, space=space)

            assert MARK not in reply.text
            assert reply.status_code != 500, reply.text
    for id, memory in alice.items():
        assert house.jay.get(id) == memory, "somebody else's memory was changed"


@pytest.mark.parametrize("row", [row for row in ROWS if row.operation.changes], ids=str)
def test_a_space_of_others_takes_no_writes(house, row):
    before = house.jay.records.history.last_event("attic")
    for who in ("bob", "rita", "otto"):
        for everything in (False, True):
            arguments = sample(row.operation.takes, {"id": house.apart}, everything=everything)
            row.ask(house.http, arguments, headers={"x-api-key": house.keys[who]}, space="attic")

    assert house.jay.records.history.last_event("attic") == before


def test_naming_another_user_is_refused(house):
    headers = {"x-api-key": house.keys["bob"]}
    asked = [
        ("store_memory", {"content": "Mine.", "context": {"user_id": "alice"}}),
        ("recall_memories", {"query": "tea", "filters": {"user_id": "alice"}}),
        ("list_memories", {"filters": {"user_id": "alice"}}),
        ("get_memory_stats", {"scope": "user", "scope_id": "alice"}),
    ]
    for tool, arguments in asked:
        assert house.http.post(f"/api/system/{tool}", json=arguments, headers=headers).status_code == 403, tool


def test_a_memory_one_may_not_see_is_not_there(house):
    for who in ("bob", "nobody"):
        reply = house.http.post(
            "/api/system/update_memory",
            json={"memory_id": house.private, "updates": {"importance": 0.9}},
            headers={"x-api-key": house.keys[who]},
        )

        assert reply.status_code == 404


def test_a_cursor_of_another_caller_is_refused(house):
    for number in range(3):
        house.jay.store(f"Shared fact {number}")
    body = {"pagination": {"limit": 1}}
    first = house.http.post("/api/system/list_memories", json=body, headers={"x-api-key": house.keys["alice"]}).json()
    body["pagination"]["cursor"] = first["pagination"]["next_cursor"]

    reply = house.http.post("/api/system/list_memories", json=body, headers={"x-api-key": house.keys["bob"]})

    assert reply.status_code == 400


def test_an_idempotency_key_belongs_to_its_caller(house):
    def store(who):
        headers = {"x-api-key": house.keys[who], "idempotency-key": "the same"}
        reply = house.http.post("/api/memento/store_memory", json={"content": "The kettle is on."}, headers=headers)
        return reply.json()["created"]["id"]

    assert store("alice") == store("alice")
    assert store("bob") != store("alice")


def test_counts_hold_only_what_their_caller_may_see(house):
    def counted(who, space="attic"):
        headers = {"x-api-key": house.keys[who]}
        reply = house.http.post(f"/api/system/get_memory_stats?space={space}", json={}, headers=headers)
        return reply.json()["statistics"]["count"]["total"]

    assert counted("alice") == counted("olga") == 1
    assert counted("bob") == counted("otto") == counted("rita") == 0


# --- MCP's own sessions ----------------------------------------------------------------------------------------------


def test_a_session_of_mcp_is_its_callers_own(house):
    opened = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "peer", "version": "1"},
        },
    }
    accept = {"accept": "application/json, text/event-stream"}
    reply = house.http.post("/mcp/memento", json=opened, headers={**accept, "x-api-key": house.keys["alice"]})
    session = {**accept, "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "search_memories", "arguments": {"query": MARK}},
    }

    mine = house.http.post("/mcp/memento", json=call, headers={**session, "x-api-key": house.keys["alice"]})
    stolen = house.http.post("/mcp/memento", json=call, headers={**session, "x-api-key": house.keys["bob"]})
    bare = house.http.post("/mcp/memento", json=call, headers=session)

    assert MARK in mine.text
    assert stolen.status_code == 404
    assert bare.status_code == 401
