"""Connections: those that say nothing end, those that are too many make room, and health is always answered."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from ipaddress import ip_network

import httpx
import pytest

from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.crowd import ConnectionLimiter, address_of
from scrubjay.servers.http.guard import Guard
from tests.servers.sites import running
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

PATIENCE = 60.0
NEVER = 3600.0
JSON = b"Content-Type: application/json\r\n"
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le"
HALF_A_BODY = b"POST /api/small/search HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 99\r\n\r\n{"
HOLD = b"POST /api/small/hold HTTP/1.1\r\nHost: localhost\r\n" + JSON + b"Content-Length: 0\r\n\r\n"
HEALTHZ = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


class Site:
    """A small server: one call answers at once, another holds its connection until the test lets go."""

    def __init__(self, stack, jay, crowd):
        self._stack = stack
        self._entered, self._go_on = threading.Semaphore(0), threading.Event()
        self.address = stack.enter_context(running(build_app(jay, [small_dialect(hold=self._hold)]), crowd=crowd))
        stack.callback(self._go_on.set)

    def _hold(self, engine, args):
        """Waits."""
        self._entered.release()
        self._go_on.wait(PATIENCE)
        return {"done": True}

    def connected(self, said, *, source="127.0.0.1"):
        port = int(self.address.rpartition(":")[2])
        sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE, source_address=(source, 0))
        sock.sendall(said)
        return self._stack.enter_context(sock)

    def held(self):
        sock = self.connected(HOLD)
        assert self._entered.acquire(timeout=PATIENCE)
        return sock

    def let_go(self):
        self._go_on.set()

    def echo(self, *, source="127.0.0.1"):
        transport = httpx.HTTPTransport(local_address=source)
        with httpx.Client(base_url=self.address, timeout=PATIENCE, transport=transport) as http:
            return http.post("/api/small/echo_words", json={"words": ["a"]})


@pytest.fixture
def site(stack, jay):
    return lambda **bounds: Site(stack, jay, ConnectionLimiter(**{"idle_seconds": NEVER, **bounds}))


def rest_of(sock):
    """All that still comes until the server ends the connection."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            said += piece
    return said


# --- deadlines -------------------------------------------------------------------------------------------------------


def told_to_the_idle(site, said):
    """What a connection hears that says this much and no more. On a busy machine it may be late even with that."""
    for seconds in (0.2, 2.0, 20.0):
        if heard := rest_of(site(idle_seconds=seconds).connected(said)):
            break
    return heard


def test_a_head_that_is_not_finished_in_time_is_told_so_and_ends(site):
    said = told_to_the_idle(site, HALF)

    assert said.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"too_slow"' in said


def test_a_connection_that_says_nothing_ends_without_a_word(site):
    assert rest_of(site(idle_seconds=0.2).connected(b"")) == b""


@pytest.mark.parametrize("first", [b"", HEALTHZ])
def test_a_head_that_drips_in_has_no_longer(site, first):
    sock = site(idle_seconds=0.3).connected(first + HALF)
    until = time.monotonic() + PATIENCE

    with suppress(ConnectionError):
        while time.monotonic() < until:
            sock.sendall(b"x")
            time.sleep(0.02)

    assert time.monotonic() < until


def test_a_connection_that_was_answered_ends_when_nothing_more_is_asked(site):
    said = told_to_the_idle(site, HEALTHZ)

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1") == 1


def test_a_call_that_takes_longer_is_answered_all_the_same(site):
    small = site(idle_seconds=2.0)  # a busy machine may take a while to say the whole request
    sock = small.held()
    assert rest_of(small.connected(b"")) == b""  # by now the deadline of the idle is over

    small.let_go()

    assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_stops_arriving_is_not_waited_for(jay):
    app = Guard(build_app(jay, [small_dialect()]), seconds=NEVER, silence_seconds=0.2)
    with running(app) as address, socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as sock:
        sock.settimeout(PATIENCE)
        sock.sendall(HALF_A_BODY)

        assert rest_of(sock).startswith(b"HTTP/1.1 408 ")


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [{"most": 20}, {"of_one_address": 20}])
@pytest.mark.parametrize("said", [b"", HALF, HALF_A_BODY], ids=["silence", "head", "body"])
def test_unfinished_requests_keep_nobody_out(site, bounds, said):
    small = site(**bounds)
    held = small.held()
    silent = [small.connected(said) for _ in range(60)]

    assert small.echo().status_code == 200
    assert httpx.get(f"{small.address}/readyz", timeout=PATIENCE).status_code == 200
    assert not rest_of(silent[0]).startswith(b"HTTP/1.1 5")  # the oldest made room
    small.let_go()
    assert held.recv(65536).startswith(b"HTTP/1.1 200 ")  # and nobody who is being answered did


@pytest.mark.parametrize("bounds", [{"most": 3}, {"of_one_address": 3}])
def test_where_all_are_being_answered_the_next_is_told_to_come_again_and_health_is_answered(site, bounds):
    small = site(**bounds)
    held = [small.held() for _ in range(3)]

    refused = small.echo()
    health = [httpx.get(f"{small.address}{path}", timeout=PATIENCE).status_code for path in ("/healthz", "/readyz")]

    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "overloaded"
    assert int(refused.headers["retry-after"]) >= 1
    assert health == [200, 200]
    small.let_go()
    for sock in held:
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        sock.close()
    assert small.echo().status_code == 200


def test_what_is_kept_in_reserve_has_a_bound_too(site):
    small = site(most=2, reserved=1)
    for _ in range(2):
        small.held()
    silent = [small.connected(b"") for _ in range(5)]

    assert rest_of(silent[0]) == b""
    assert httpx.get(f"{small.address}/healthz", timeout=PATIENCE).status_code == 200


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has more than one loopback address from the start")
def test_one_address_does_not_take_the_place_of_others(site):
    small = site(of_one_address=2)
    for _ in range(2):
        small.held()

    assert small.echo().status_code == 503
    assert small.echo(source="127.0.0.2").status_code == 200


def test_a_proxy_is_not_bounded_like_one_client(site):
    small = site(of_one_address=2, proxies=[ip_network("127.0.0.1/32")])
    for _ in range(2):
        small.held()

    assert small.echo().status_code == 200


def test_of_ipv6_a_network_counts_as_one_address():
    assert address_of(("2001:db8::1", 1)) == address_of(("2001:db8::ffff", 2))
    assert address_of(("2001:db8::1", 1)) != address_of(("2001:db8:0:1::1", 1))
    assert address_of(("::1", 1)) == "::1"
    assert address_of(("10.0.0.1", 1)) != address_of(("10.0.0.2", 1))
