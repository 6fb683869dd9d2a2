"""A stream lasts no longer than what let its caller in."""

from __future__ import annotations

import itertools
import threading
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest

from scrubjay.dialects.base import Pieces, Route, Stream
from scrubjay.dialects.table import ONLY_REST, find
from scrubjay.servers.http.admission import RECHECK_SECONDS
from scrubjay.servers.http.app import build_app
from scrubjay.values.callers import Role
from scrubjay.values.memory import AccessLevel
from tests.servers.peer import CLIENT, HANDSHAKE
from tests.servers.sites import client_of
from tests.servers.small_dialect import ANY, small_dialect

pytestmark = pytest.mark.process

PATIENCE = 60.0  # seconds without a byte, after which a stream counts as one that goes on
LAST = "That was the last one."


@pytest.fixture
def site(jay):
    done = threading.Event()
    small = small_dialect()

    @small.reads("Long", takes=ANY, gives=ANY, asks=True)
    def long(engine, args):
        """Says that it has begun, and then nothing until the test is over."""
        engine.progress(1, 2, "half of it")
        done.wait(PATIENCE)
        return {}

    @small.reads(
        "Lines", takes=ANY, gives=ANY, streams=Pieces.LINES,
        route=Route("GET", "/api/test/lines"),
    )  # fmt: skip
    def lines(engine, args):
        """A line, and then nothing."""
        return Stream(itertools.chain([{"line": 1}], itertools.repeat(None)), Pieces.LINES)

    app = build_app(jay, [small], only_rest=[find(name) for name in ONLY_REST], recheck_seconds=0.05)
    with client_of(app) as http:
        yield http
        done.set()


@contextmanager
def following(http, **headers):
    """The lines of a caller's stream, once it has begun."""
    with http.stream("GET", "/api/v1/events", headers=headers, params={"after": 0}, timeout=PATIENCE) as reply:
        assert reply.status_code == 200
        lines = reply.iter_lines()
        assert any("data:" in line for line in lines), "the stream has not begun"
        yield lines


@pytest.fixture
def alice(jay):
    jay.store("Tea is at four.", access_level=AccessLevel.SHARED)
    return jay.callers.create("alice")


def test_what_is_promised_is_kept():
    assert RECHECK_SECONDS <= 5, "promised are ten seconds, with a busy machine and a slow store"


def test_the_stream_of_a_revoked_key_ends(site, jay, alice):
    with following(site, **{"x-api-key": alice.secret}) as lines:
        jay.callers.revoke(alice.credential.id)

        assert not any("data:" in line for line in lines)


def test_a_stream_that_never_said_anything_ends_too(site, jay, alice):
    with site.stream("GET", "/api/v1/events", headers={"x-api-key": alice.secret}, timeout=PATIENCE) as reply:
        jay.callers.revoke(alice.credential.id)

        assert list(reply.iter_lines()) == []


def test_the_stream_of_a_rotated_key_ends(site, jay, alice):
    with following(site, **{"x-api-key": alice.secret}) as lines:
        jay.callers.rotate(alice.credential.id)

        assert not any("data:" in line for line in lines)


def test_the_stream_of_an_expired_key_ends(site, jay, alice, clock):
    brief = jay.callers.create("alice", expires_at=clock() + timedelta(hours=1))
    with following(site, **{"x-api-key": brief.secret}) as lines:
        clock.move(hours=2)

        assert not any("data:" in line for line in lines)


def test_a_stream_ends_when_its_grant_is_withdrawn(site, jay, alice):
    with following(site, **{"x-api-key": alice.secret}) as lines:
        jay.callers.withdraw("default", "alice")

        assert not any("data:" in line for line in lines)


def test_a_stream_ends_with_its_session(site, jay, alice):
    cookie = jay.callers.sign_in(key=alice.secret).cookie
    with following(site, cookie=f"scrubjay_session={cookie}") as lines:
        jay.callers.sign_out(cookie)

        assert not any("data:" in line for line in lines)


def test_the_first_key_ends_the_streams_that_needed_none(site, jay):
    jay.store("Tea is at four.")
    with following(site) as lines:
        jay.callers.create("alice")

        assert not any("data:" in line for line in lines)


def test_the_streams_of_others_go_on(site, jay, alice):
    bob = jay.callers.create("bob", role=Role.READER)
    with following(site, **{"x-api-key": bob.secret}) as his:
        with following(site, **{"x-api-key": alice.secret}) as hers:
            jay.callers.revoke(alice.credential.id)
            assert not any("data:" in line for line in hers)
        jay.store(LAST, access_level=AccessLevel.SHARED)

        assert any("data:" in line for line in his)


def test_a_part_of_an_export_does_not_look_like_the_whole(site, jay, alice):
    """It is cut off, which every client of HTTP notices."""
    with site.stream("GET", "/api/test/lines", headers={"x-api-key": alice.secret}, timeout=PATIENCE) as reply:
        lines = reply.iter_lines()
        assert next(lines) == '{"line":1}'
        jay.callers.revoke(alice.credential.id)

        with pytest.raises(httpx.RemoteProtocolError):
            list(lines)


def test_the_stream_of_an_mcp_call_ends(site, jay, alice):
    key = {"x-api-key": alice.secret, "accept": "application/json, text/event-stream"}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HANDSHAKE, "clientInfo": CLIENT}}
    session = site.post("/mcp", json=opening, headers=key).headers["mcp-session-id"]
    params = {"name": "long", "arguments": {}, "_meta": {"progressToken": "p"}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    with site.stream("POST", "/mcp", json=call, headers={**key, "mcp-session-id": session}, timeout=PATIENCE) as reply:
        lines = reply.iter_lines()
        assert any("progress" in line for line in lines)
        jay.callers.revoke(alice.credential.id)

        assert not any('"result"' in line for line in lines)
