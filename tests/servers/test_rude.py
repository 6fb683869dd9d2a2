"""Rude and hostile clients: they get their answer or lose their connection, and nobody else notices."""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import ExitStack

import anyio
import httpx
import pytest

from scrubjay.dialects.base import Pieces
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.guard import Guard
from scrubjay.servers.http.rest import addresses
from scrubjay.values.callers import Role
from tests.reliability.usage import MIB, usage
from tests.servers.samples import sample
from tests.servers.sites import AS_JSON, client_of, running
from tests.servers.small_dialect import small_dialect
from tests.servers.test_auth_matrix import Row
from tests.servers.test_http import real_server

pytestmark = pytest.mark.process

TOOLS = [find(name) for name in DIALECTS]
TABLES = [*TOOLS, *map(find, ONLY_REST)]
TYPE = b"Content-Type: application/json\r\n"


def test_a_client_that_never_reads_loses_its_connection_and_others_are_served(jay, caplog):
    caplog.set_level(logging.INFO)

    def large(engine, args):
        """A large answer."""
        return {"items": ["x" * 1000] * 900}

    app, given_up = Guard(build_app(jay, [small_dialect(large=large)]), seconds=2.0), threading.Semaphore(0)

    async def watched(scope, receive, send):
        async def noticed(message):
            try:
                await send(message)
            except anyio.get_cancelled_exc_class():
                given_up.release()
                raise

        await app(scope, receive, noticed)

    with running(watched) as address:
        port = int(address.rpartition(":")[2])
        request = b"POST /api/small/large HTTP/1.1\r\nHost: localhost\r\n" + TYPE + b"\r\n"
        deaf = []
        for _ in range(20):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", port))
            sock.sendall(request * 20)
            deaf.append(sock)

        for _ in range(5):
            assert httpx.post(f"{address}/api/small/echo_words", json={"words": ["a"]}, timeout=60).is_success
        for _ in deaf:
            assert given_up.acquire(timeout=60)
        for sock in deaf:
            sock.settimeout(60)
            got = 0
            try:
                while piece := sock.recv(1 << 20):
                    got += len(piece)
            except ConnectionResetError:
                pass
            sock.close()
            assert got < 20 * 900_000  # cut off before all was said
    assert [one for one in caplog.records if one.levelno > logging.INFO or one.exc_info] == []
    assert sum("stopped reading" in one.getMessage() for one in caplog.records) == len(deaf)


def test_five_hundred_silent_connections_and_one_that_reads_a_byte_at_a_time_keep_nobody_waiting(tmp_path):
    with real_server(tmp_path) as (address, process), ExitStack() as stack:
        port = int(address.rpartition(":")[2])

        def connected(said: bytes) -> socket.socket:
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            sock.sendall(said)
            return sock

        for number in range(500):
            connected(b"" if number % 2 else b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        slow = connected(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with httpx.Client(base_url=address, headers=AS_JSON, timeout=60) as http:
            for number in range(20):
                assert slow.recv(1)
                reply = http.post("/api/memento/store_memory", json={"content": f"Fact {number}"})
                assert reply.is_success, reply.text
            found = http.post("/api/memento/list_recent_memories", json={"limit": 50}).json()

        assert len(found["memories"]) == 20
        assert usage(process.pid).memory < 400 * MIB


def test_a_client_that_leaves_mid_call_leaves_a_whole_write(jay):
    entered, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def slow(engine, args):
        """Stores, slowly."""
        entered.set()
        go_on.wait(60)
        engine.store("Finished anyway.")
        done.set()
        return {}

    with running(build_app(jay, [small_dialect(slow=slow)])) as address:
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as sock:
            sock.sendall(b"POST /api/small/slow HTTP/1.1\r\nHost: localhost\r\n" + TYPE + b"Content-Length: 0\r\n\r\n")
            assert entered.wait(60)
        go_on.set()
        assert done.wait(60)

        assert httpx.get(f"{address}/healthz", timeout=60).is_success

    assert [memory.content for memory in jay.list()] == ["Finished anyway."]


@pytest.mark.parametrize(
    "row",
    [Row(one.dialect, one.operation, one.method, one.path) for one in addresses(TABLES)],
    ids=str,
)
def test_no_field_makes_the_server_call_somewhere(jay, row):
    if row.operation.streams is Pieces.EVENTS:
        return
    key = jay.callers.create("olga", role=Role.OWNER).secret
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/secret"
        with client_of(build_app(jay, TOOLS, only_rest=TABLES[len(TOOLS) :])) as http:
            row.ask(http, sample(row.operation.takes, {"": url}, everything=True), headers={"x-api-key": key})

        with pytest.raises(TimeoutError):
            listener.accept()


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../index.html",
        "/assets/%2e%2e/index.html",
        "/assets/..%2f..%2fsettings.py",
        "/assets//etc/passwd",
        "/assets/%00",
        "/assets/....//....//etc/passwd",
        "/assets/..%5c..%5csettings.py",
    ],
)
def test_no_path_leads_out_of_the_pages_files(jay, path):
    with running(build_app(jay, TOOLS)) as address:
        port = int(address.rpartition(":")[2])
        sock = socket.create_connection(("127.0.0.1", port), timeout=60)
        with sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            status = sock.makefile("rb").readline().split()[1]

    assert status in (b"404", b"400", b"405")


def test_a_full_quota_is_507(open_engine):
    jay = open_engine(quota=2)
    with client_of(build_app(jay, TOOLS)) as http:
        replies = [http.post("/api/system/store_memory", json={"content": f"Fact {number}"}) for number in range(3)]

    assert [reply.status_code for reply in replies] == [200, 200, 507]
    assert replies[-1].json()["error"]["code"] == "QUOTA_EXCEEDED"
