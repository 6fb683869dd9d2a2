"""The memory over real HTTP: who is let in, both eras of the protocol, spaces, and how the server ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPResponse

import anyio
import apsw
import httpx
import pytest
import uvicorn
from mcp import Client

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import InvalidInput, StorageError
from scrubjay.servers.http.app import build_app, open_listener
from scrubjay.servers.http.connection import config_of
from scrubjay.stores.sqlite.store import SqliteStore
from tests.servers.peer import CLIENT, ENVELOPE, HANDSHAKE, environment
from tests.servers.sites import AS_JSON, authorities
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

SERVE = "from scrubjay.servers.http.app import serve; from scrubjay.settings import load; serve(load(port=0))"
ROUTES = ["/mcp", "/mcp/memento", "/healthz", "/readyz", "/no/such/page"]
JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CHUNKED = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
LIMIT = 2 * 1024 * 1024


@contextmanager
def real_server(home, **env) -> Iterator[tuple[str, subprocess.Popen]]:
    """`scrubjay serve` on a free port: its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, **env),
    )
    try:
        line = process.stderr.readline().decode()
        yield re.search(r"http://\S+", line)[0], process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Iterator[str]:
    with real_server(tmp_path_factory.mktemp("home")) as (address, _):
        yield address


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, headers=AS_JSON) as client:
        yield client


def modern(tool, id=1, **arguments):
    """A call in the modern era: its body and its headers."""
    body = {"jsonrpc": "2.0", "id": id, "method": "tools/call"}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool}
    return {
        "json": {**body, "params": {"name": tool, "arguments": arguments, **ENVELOPE}},
        "headers": {**JSON, **headers},
    }


def listed(http, url, **headers):
    call = modern("list_recent_memories", limit=50)
    reply = http.post(url, json=call["json"], headers={**call["headers"], **headers})
    return [memory["content"] for memory in reply.json()["result"]["structuredContent"]["memories"]]


# --- who is let in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8377",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "0.0.0.0",
        "192.168.1.7:8377",
        "localhost:port",
        "[::1",
        "",
        "example.com, localhost",
    ],
)
def test_a_foreign_host_is_refused_on_every_route(http, site, route, host):
    for method in ("GET", "POST"):
        reply = http.request(method, site + route, headers={"host": host})

        assert reply.status_code == 421, (method, reply.text)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1.evil.example",
        "null",
        "",
        "file://",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "chrome-extension://localhost",
        "http://localhost:5173",
        "http://127.0.0.1:1",
        "https://127.0.0.1",
        "http://[::1]:80",
    ],
)
def test_a_foreign_origin_is_refused_on_every_route(http, site, route, origin):
    for method in ("GET", "POST", "OPTIONS"):
        reply = http.request(method, site + route, headers={"origin": origin})

        assert reply.status_code == 403, (method, reply.text)
        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("route", ROUTES)
def test_no_origin_is_allowed_to_read_an_answer_unless_a_setting_says_so(http, site, route):
    """Not even our own, which need not ask."""
    headers = {"origin": site, "access-control-request-method": "POST"}

    for method in ("OPTIONS", "GET", "POST"):
        reply = http.request(method, site + route, headers=headers)

        assert not [name for name in reply.headers if name.startswith("access-control")]


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_that_says_it_is_too_large_is_refused_unread(site, route):
    """A gigabyte is announced, and the answer comes before any of it is sent."""
    with connection(site) as (sock, host):
        sock.sendall(f"POST {route} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000000\r\n\r\n".encode())

        assert sock.makefile("rb").readline().split()[1] == b"413"


@pytest.mark.parametrize("route", ROUTES)
def test_a_body_in_chunks_is_refused_as_soon_as_it_is_too_large(site, route):
    with connection(site) as (sock, host):
        sock.sendall(f"POST {route} HTTP/1.1\r\nHost: {host}\r\n{CHUNKED}\r\n".encode())
        sent = 0
        try:
            while sent < 40 * LIMIT:
                sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                sent += 65536
        except (BrokenPipeError, ConnectionResetError):
            pass

        assert sent < 20 * LIMIT  # pipes hold some; it did not read on


@pytest.mark.parametrize(
    "said",
    [
        b"GET /healthz?a=" + b"a" * 400_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 400_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"POST /api/memento/recent HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ],
    ids=["a long address", "a long header", "another protocol", "a broken body", "two lengths"],
)
def test_what_is_no_request_gets_an_error_like_any_other(site, said):
    with connection(site) as (sock, _):
        with suppress(ConnectionError):  # it is answered before its end
            sock.sendall(said)
        reply = HTTPResponse(sock)
        reply.begin()
        body = json.loads(reply.read())

    assert (reply.status, reply.headers["content-type"]) == (400, "application/json")
    assert body["error"]["code"] == "unreadable"
    assert httpx.get(site + "/healthz", timeout=60).is_success


def test_a_body_just_below_the_limit_is_read(http, site):
    call = modern("store_memory", content="x" * (LIMIT - 2000))

    reply = http.post(site + "/mcp/memento", **call)

    assert reply.status_code == 200
    assert reply.json()["result"]["structuredContent"]["error"]["code"] == "INVALID_PARAMETER"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", ""])
def test_an_address_beyond_this_machine_is_not_served(host):
    with pytest.raises(InvalidInput, match="Without a key"):
        open_listener(host, 0)


def test_a_port_in_use_is_said_in_a_sentence(site):
    port = int(site.rpartition(":")[2])

    with pytest.raises(InvalidInput, match=f"Port {port}"):
        open_listener("127.0.0.1", port)


@pytest.mark.parametrize("name", ["Upper", "has space", "../up", "", "x" * 500, "a\x00b"])
def test_a_space_with_a_bad_name_is_refused(http, site, name):
    reply = http.post(site + "/mcp/memento", params={"space": name}, **modern("list_recent_memories"))

    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "invalid_input"


def test_there_is_no_stream_to_get(http, site):
    reply = http.get(site + "/mcp/memento", headers={"accept": "text/event-stream"})

    assert reply.status_code == 405
    assert "POST" in reply.headers["allow"]


def test_broken_json_is_answered_in_both_eras(http, site):
    for headers in ({}, {"mcp-protocol-version": "2026-07-28"}):
        reply = http.post(site + "/mcp/memento", content=b"{oops", headers={**JSON, **headers})

        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == -32700


def test_half_a_surrogate_pair_is_refused(http, site):
    call = modern("store_memory", content="HALF")
    body = json.dumps(call["json"]).replace("HALF", "\\ud800")

    reply = http.post(site + "/mcp/memento", content=body, headers=call["headers"])

    assert reply.json()["result"]["structuredContent"]["error"]["code"] == "INVALID_PARAMETER"


# --- what it answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "127.1.2.3", "[::1]:8377"])
def test_this_machines_own_names_are_let_in(http, site, host):
    assert http.get(site + "/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8377", "http://localhost:8377"),
        ("LocalHost", "http://localhost"),
        ("127.0.0.1:80", "http://127.0.0.1"),
        ("[::1]:8377", "http://[::1]:8377"),
    ],
)
def test_pages_of_this_very_site_are_let_in(http, site, host, origin):
    assert http.get(site + "/healthz", headers={"host": host, "origin": origin}).status_code == 200


@pytest.mark.parametrize("body", [b"", b"{}"])
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "Text/Plain; charset=utf-8",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencoded",
        "application/json, text/plain",
        "json",
    ],
)
def test_what_a_form_could_send_changes_nothing(site, body, kind):
    headers = {} if kind is None else {"content-type": kind}
    for route in ("/api/v1/prune", "/api/v1/rebuild", "/api/v1/reembed", "/mcp", "/sign-out", "/nowhere"):
        reply = httpx.post(site + route, headers=headers, content=body)

        assert reply.status_code == 415, (route, reply.text)
        assert "application/json" in reply.text


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_what_no_form_can_send_needs_no_content_type(site, method):
    """A browser asks before it sends one of these to another site."""
    for route in ("/api/v1/prune", "/api/v1/keys/x", "/api/conversations/c/inject-memory/memory-x", "/nowhere"):
        assert httpx.request(method, site + route).status_code in (200, 404, 405), route


@pytest.mark.parametrize("header", [{"x-api-key": "sj_a_b"}, {"authorization": "Bearer sj_a_b"}])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_key_in_a_header_is_checked_before_the_content_type(site, method, header):
    """A form cannot send such a header either."""
    assert httpx.request(method, site + "/api/v1/prune", headers=header).status_code == 401


def test_a_session_of_mcp_ends_without_a_content_type(http, site):
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HANDSHAKE, "clientInfo": CLIENT}}
    session = http.post(site + "/mcp/memento", json=opening, headers=JSON).headers["mcp-session-id"]

    assert httpx.delete(site + "/mcp/memento", headers={"mcp-session-id": session}).status_code == 200


def test_health_says_nothing_but_that_it_is_well(http, site):
    reply = http.get(site + "/healthz")

    assert reply.content == b'{"status":"ok"}'
    assert "server" not in reply.headers


def test_ready_means_that_the_store_answers(http, site):
    assert http.get(site + "/readyz").status_code == 200


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_real_client_stores_and_finds(site, mode):
    content = f"The {mode} lighthouse"

    async def conversation():
        async with Client(site + "/mcp/memento", mode=mode) as client:
            tools = (await client.list_tools()).tools
            await client.call_tool("store_memory", {"content": content})
            found = await client.call_tool("search_memories", {"query": content, "limit": 1})
            return [tool.name for tool in tools], found.structured_content["memories"]

    names, [found] = anyio.run(conversation)

    assert names == ["store_memory", "supersede_memory", "search_memories", "list_recent_memories"]
    assert found["content"] == content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_without_a_name_the_tools_for_agents_answer_with_their_prompts_and_addresses(site, mode):
    content = f"The {mode} harbour master is called Ottilie"

    async def conversation():
        async with Client(site + "/mcp", mode=mode) as client:
            await client.call_tool("remember", {"facts": [{"content": content}]})
            found = await client.call_tool("recall", {"question": f"{mode} harbour master"})
            prompt = await client.get_prompt("brief")
            read = await client.read_resource("memory://brief")
            return found.content[0].text, prompt.messages[0].content.text, read.contents[0].text

    assert all(content in text for text in anyio.run(conversation))


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_fifty_clients_that_all_ask_under_id_1_get_their_own_answers(site, era):
    def mark(number):
        content = f"{era} mark {number}"
        call = modern("store_memory", id=1, content=content)
        with httpx.Client(timeout=60, verify=authorities()) as client:
            if era == "handshake":
                opened = client.post(
                    site + "/mcp/memento",
                    json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE},
                    headers=JSON,
                )
                session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
                del call["json"]["params"]["_meta"]
                call["headers"] = {**JSON, **session}
            reply = client.post(site + "/mcp/memento", **call).json()
        assert reply["id"] == 1
        return reply["result"]["structuredContent"]["created"]["content"] == content

    with ThreadPoolExecutor(50) as clients:
        assert all(clients.map(mark, range(50)))


def test_a_space_is_chosen_by_header_or_address_for_each_request(http, site):
    for name in ("attic", "cellar"):
        assert http.post(site + "/api/v1/spaces", json={"name": name}).status_code == 201
    store = modern("store_memory", content="Only in the attic.")
    store["headers"]["x-scrubjay-space"] = "attic"

    def stored(address, **headers):
        listed = http.get(site + "/api/v1/memories" + address, headers=headers).json()["memories"]
        return [memory["content"] for memory in listed]

    http.post(site + "/mcp/memento", **store)

    assert stored("?space=attic") == ["Only in the attic."]
    assert stored("", **{"x-scrubjay-space": "attic"}) == ["Only in the attic."]
    assert stored("?space=cellar", **{"x-scrubjay-space": "attic"}) == []
    assert "Only in the attic." in listed(http, site + "/mcp/memento")
    assert "Only in the attic." in listed(http, site + "/mcp/memento?space=cellar")


def test_what_comes_over_http_says_so(jay):
    with running_app(build_app(jay, [small_dialect()])) as (address, _):
        reply = httpx.post(address + "/mcp/small", **modern("search"), timeout=60)

    provenance = reply.json()["result"]["structuredContent"]["provenance"]
    assert "client='peer'" in provenance
    assert "transport='http'" in provenance
    assert "dialect='small'" in provenance


# --- how it ends -----------------------------------------------------------------------------------------------------


def test_a_signal_ends_the_server_and_nothing_went_to_stdout(tmp_path, http):
    with real_server(tmp_path) as (address, process):
        assert http.get(address + "/readyz").status_code == 200

        process.send_signal(signal.SIGTERM)

        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == b""
        assert b"claude mcp add" in process.stderr.read()


STUCK = """
import sys, threading
from scrubjay.engine.engine import Engine
from scrubjay.servers.http import app
from scrubjay.settings import load

def search(*_args, **_options):
    print("entered", file=sys.stderr, flush=True)
    threading.Event().wait()

Engine.search = search
app.SHUTDOWN_SECONDS = 2
app.serve(load(port=0))
"""


def test_a_call_that_never_ends_does_not_keep_the_server_alive(tmp_path, http):
    command = [sys.executable, "-c", STUCK]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment(tmp_path), text=True)
    try:
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.:]+", line)))
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(http.post, address + "/api/v1/search", json={"query": "tea"}, timeout=60)
            assert any("entered" in line for line in process.stderr)

            process.send_signal(signal.SIGTERM)

            assert process.wait(timeout=60) == 0
            with suppress(httpx.HTTPError):
                asked.result()
    finally:
        process.kill()
        process.communicate()


def test_a_running_call_is_finished_before_the_server_ends(jay):
    entered, go_on = threading.Event(), threading.Event()

    def wait(engine, args):
        """Waits."""
        entered.set()
        return {"finished": go_on.wait(60)}

    with running_app(build_app(jay, [small_dialect(wait=wait)])) as (address, server), ThreadPoolExecutor() as pool:
        reply = pool.submit(httpx.post, address + "/mcp", **modern("wait"), timeout=60)
        assert entered.wait(60)

        server.should_exit = True
        while still_takes(address):
            pass
        go_on.set()

        assert reply.result().json()["result"]["structuredContent"] == {"finished": True}


def test_not_ready_when_the_store_does_not_answer(jay):
    jay.close()

    with running_app(build_app(jay, [small_dialect()])) as (address, _):
        with pytest.raises(StorageError):
            jay.known_spaces.list()

        reply = httpx.get(address + "/readyz", timeout=60)

        assert (reply.status_code, reply.json()) == (503, {"status": "unavailable"})


def test_not_ready_any_more_once_a_call_has_met_damage(tmp_path, http):
    """The file was opened without a look at every page; the first call that comes upon a bad one turns it red."""
    path = tmp_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        jay.store_many({"content": f"fact {number} " + "and more " * 50} for number in range(100))
    with closing(apsw.Connection(str(path))) as con:
        [(page,)] = con.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memories_by_created'")
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))

    with real_server(tmp_path) as (address, _):
        call = modern("list_recent_memories")
        met = http.post(f"{address}/mcp/memento", json=call["json"], headers=call["headers"]).json()["result"]
        ready = http.get(address + "/readyz")
        stored = http.post(f"{address}/api/memento/store_memory", json={"content": "one more"})

    assert met["structuredContent"]["error"]["code"] == "STORAGE_ERROR"
    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable"})
    assert not stored.is_success


def still_takes(address):
    """Whether a new connection is answered."""
    try:
        return httpx.get(address + "/healthz", timeout=60).is_success
    except httpx.TransportError:
        return False


@contextmanager
def running_app(app) -> Iterator[tuple[str, uvicorn.Server]]:
    """An app of our own making on a free port."""
    listener = open_listener("127.0.0.1", 0)
    server = uvicorn.Server(config_of(app, timeout_graceful_shutdown=60))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def connection(site) -> Iterator[tuple[socket.socket, str]]:
    host = site.removeprefix("http://")
    name, _, port = host.partition(":")
    with socket.create_connection((name, int(port)), timeout=60) as sock:
        yield sock, host
