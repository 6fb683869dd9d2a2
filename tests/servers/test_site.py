"""The site around the operations: names of requests, logs, numbers, limits of time, and how it ends."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading

import anyio
import httpx
import pytest

from scrubjay.dialects.base import Pieces, Route, Stream
from scrubjay.dialects.system.memories import system
from scrubjay.engine.parts import engine_on
from scrubjay.errors import TimedOut
from scrubjay.servers.http.access_log import JsonLines
from scrubjay.servers.http.app import Server, build_app, open_listener
from scrubjay.servers.http.connection import config_of
from scrubjay.servers.http.guard import Guard
from scrubjay.servers.http.streams import Streams
from scrubjay.servers.workers import Workers
from scrubjay.stores.sqlite.store import SqliteStore
from tests.servers.peer import environment
from tests.servers.sites import client_of, running
from tests.servers.small_dialect import ANY, small_dialect

pytestmark = pytest.mark.process

REQUEST = b"POST /api/small/search HTTP/1.1\r\nContent-Type: application/json\r\n"

# --- names and logs --------------------------------------------------------------------------------------------------


def test_a_request_is_called_the_same_in_reply_error_body_and_log(jay, caplog):
    caplog.set_level(logging.INFO, "scrubjay.requests")
    with client_of(build_app(jay, [system])) as http:
        own = http.post("/api/system/forget_memory", json={"memory_id": "mem_x"}, headers={"x-request-id": "job-7"})
        given = http.post("/api/system/forget_memory", json={"memory_id": "mem_x"})
        bad = http.get("/healthz", headers={"x-request-id": "a b\tc" + "x" * 100})

    assert own.headers["x-request-id"] == own.json()["error"]["request_id"] == "job-7"
    assert given.headers["x-request-id"] == given.json()["error"]["request_id"]
    assert bad.headers["x-request-id"].startswith("req_")
    logged = [record.fields["request_id"] for record in caplog.records if hasattr(record, "fields")]
    assert logged[:2] == ["job-7", given.headers["x-request-id"]]


def test_the_log_holds_neither_texts_nor_ids_nor_keys(jay, caplog):
    caplog.set_level(logging.DEBUG)
    key = jay.callers.create("alice").secret
    with client_of(build_app(jay, [system])) as http:
        http.post("/api/system/store_memory", json={"content": "zanzibar"}, headers={"x-api-key": key})
        http.get("/sign-in/some-word")
        http.get("/api/v1/memories/mem_secret?q=zanzibar", headers={"authorization": "Bearer sj_bad_secret"})

    ours = [record for record in caplog.records if record.name.startswith("scrubjay")]
    written = "\n".join(JsonLines().format(record) for record in ours)
    assert "alice" in written
    for secret in ("zanzibar", key, "sj_bad_secret", "some-word", "mem_secret"):
        assert secret not in written


def test_a_line_of_the_log_is_one_json_object():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.Logger("scrubjay.test")
    logger.addHandler(handler)

    try:
        raise RuntimeError("two\nlines")
    except RuntimeError:
        logger.exception("It broke: %s", "x\ny")

    [line] = stream.getvalue().splitlines()
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("error", "It broke: x\ny")
    assert "RuntimeError" in told["trace"]


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_calls_and_requests_are_counted_by_what_the_table_names(jay):
    with client_of(build_app(jay, [small_dialect()])) as http:
        http.post("/api/small/echo_words", json={"words": ["a"]})
        http.post("/api/small/echo_words", json={"words": 1})
        for number in range(3):
            http.get(f"/made/up/{number}")
        told = http.get("/metrics").text

    assert 'scrubjay_calls_total{dialect="small",operation="echo_words",outcome="ok",transport="http"} 1.0' in told
    assert 'outcome="invalid_input"' in told
    assert 'scrubjay_http_requests_total{method="GET",route="other",status="404"} 3.0' in told
    assert "process_resident_memory_bytes" in told
    assert "made/up" not in told


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_call_that_takes_too_long_is_answered_without_its_result(jay):
    go_on, done = threading.Event(), threading.Event()

    def slow(engine, args):
        """Slow."""
        go_on.wait(60)
        done.set()
        return {}

    with client_of(build_app(jay, [small_dialect(slow=slow)], call_seconds=0.2)) as http:
        reply = http.post("/api/small/slow", json={})
        go_on.set()

    assert reply.status_code == 503
    assert reply.headers["retry-after"]
    assert "0.2 seconds" in reply.json()["oops"]
    assert done.wait(60)


def test_a_body_that_does_not_come_is_not_waited_for(jay):
    with running(Guard(build_app(jay, [small_dialect()]), seconds=0.2)) as address:
        host = address.removeprefix("http://")
        with socket.create_connection(("127.0.0.1", int(host.partition(":")[2])), timeout=60) as sock:
            sock.sendall(REQUEST + f"Host: {host}\r\nContent-Length: 10\r\n\r\n{{".encode())

            assert sock.makefile("rb").readline().split()[1] == b"408"


def test_one_user_does_not_take_every_thread():
    async def main():
        workers, go_on = Workers(readers=4, readers_of_one_user=2), threading.Event()
        running, most = [], []

        def rude():
            running.append(1)
            most.append(len(running))
            go_on.wait(60)
            running.pop()

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(workers.run, "rude", rude)
            while len(running) < 2:
                await anyio.sleep(0.01)
            await anyio.sleep(0.1)  # a third would begin now
            assert await workers.run("polite", lambda: "served") == "served"
            go_on.set()
        return max(most)

    assert anyio.run(main) == 2


def test_a_worker_that_is_late_is_told_of():
    told = threading.Event()

    async def main():
        try:
            await Workers(seconds=0.05).run("alice", lambda: told.wait(60))
        finally:
            told.set()

    with pytest.raises(TimedOut):
        anyio.run(main)


def test_a_rude_client_does_not_keep_others_from_being_served(jay):
    """Two hundred connections that say half a request, and others are answered as before."""
    with running(build_app(jay, [small_dialect()])) as address:
        host, port = "127.0.0.1", int(address.rpartition(":")[2])
        rude = [socket.create_connection((host, port), timeout=60) for _ in range(200)]
        try:
            for sock in rude:
                sock.sendall(REQUEST + b"Host: localhost\r\nContent-Length: 1000\r\n\r\n{")

            reply = httpx.post(f"{address}/api/small/echo_words", json={"words": ["a"]}, timeout=60)

            assert reply.json() == {"words": ["a"]}
        finally:
            for sock in rude:
                sock.close()


# --- how it begins and ends ------------------------------------------------------------------------------------------


def test_open_streams_do_not_keep_the_server_from_ending(jay):
    dialect = small_dialect()

    @dialect.reads(
        "Follow",
        takes=ANY,
        gives=ANY,
        route=Route("GET", "/api/follow"),
        streams=Pieces.EVENTS,
    )
    def follow(engine, args):
        """Follows."""

        def pieces():
            yield {"data": "begun"}
            while True:
                yield None

        return Stream(pieces())

    streams = Streams()
    with open_listener("127.0.0.1", 0) as listener:
        app = build_app(jay, [dialect], streams=streams)
        server = Server(config_of(app, timeout_graceful_shutdown=60), streams)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        with httpx.stream("GET", f"http://127.0.0.1:{listener.getsockname()[1]}/api/follow", timeout=60) as reply:
            lines = reply.iter_lines()
            assert next(lines) == 'data: "begun"'
            server.should_exit = True

            assert list(lines) == [""]
        thread.join(60)

        assert not thread.is_alive()


def start(home, **env):
    return subprocess.Popen(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(home), **env},
    )


def test_without_a_key_other_addresses_are_refused_at_the_start(tmp_path):
    with start(tmp_path, SCRUBJAY_HOST="0.0.0.0") as process:
        _, err = process.communicate(timeout=60)

    assert process.returncode != 0
    assert b"scrubjay keys create" in err


def test_a_store_with_only_revoked_keys_starts_locked_and_says_what_to_do(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), None) as jay:
        jay.callers.revoke(jay.callers.create("alice").credential.id)
    process = start(tmp_path)
    try:
        site = re.search(rb"http://\S+", process.stderr.readline())[0].decode()

        assert httpx.get(f"{site}/session", timeout=60).status_code == 401
        process.send_signal(signal.SIGTERM)
        err = process.stderr.read()
        assert b"Locked" in err
        assert b"scrubjay keys open" in err
    finally:
        process.kill()
        process.communicate()


def test_with_a_key_other_addresses_are_served_under_the_names_that_are_allowed(tmp_path):
    with engine_on(SqliteStore(tmp_path / "memories.db"), None) as jay:
        key = jay.callers.create("alice").secret
    process = start(tmp_path, SCRUBJAY_HOST="0.0.0.0", SCRUBJAY_ALLOWED_HOSTS="memory.example")
    try:
        port = re.search(rb":(\d+)", process.stderr.readline())[1].decode()
        site = f"http://127.0.0.1:{port}"

        def status(host, **headers):
            return httpx.get(f"{site}/session", headers={"host": host, **headers}, timeout=60).status_code

        known = {"x-api-key": key}
        assert status("memory.example") == 401
        assert status("memory.example", **known) == 200
        assert status(f"10.1.2.3:{port}", **known) == 200
        assert status("evil.example", **known) == 421
        assert status("memory.example", origin="http://memory.example", **known) == 200
        assert status("memory.example", origin="http://10.1.2.3", **known) == 403
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert b"/sign-in/" in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
