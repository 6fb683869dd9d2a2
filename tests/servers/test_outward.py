"""What a server never does for a caller: reach out to an address that it was given, or open itself to other pages."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import contextmanager

import pytest

from scrubjay.dialects.base import Pieces
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rest import IN_QUERY, addresses
from scrubjay.values.callers import Role
from tests.servers.samples import sample
from tests.servers.sites import client_of

pytestmark = pytest.mark.process

TOOLS, REST = [find(name) for name in DIALECTS], [find(name) for name in ONLY_REST]


@contextmanager
def listening_post():
    """A port of this machine that notes who comes."""
    visits = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def wait():
            try:
                while True:
                    connection, address = listener.accept()
                    visits.append(address)
                    connection.close()
            except OSError:
                return

        threading.Thread(target=wait, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/x", visits
        listener.shutdown(socket.SHUT_RDWR)


def test_an_address_in_any_field_is_text_and_nobody_calls_there(jay):
    """By an owner who calls from afar; what endpoints are for is this machine's owner's alone."""
    key = jay.callers.create("ann", role=Role.OWNER).secret
    with (
        listening_post() as (url, visits),
        client_of(build_app(jay, TOOLS, only_rest=REST), headers={"x-api-key": key}) as http,
    ):
        for one in addresses([*TOOLS, *REST]):
            if one.operation.streams is Pieces.EVENTS:
                continue
            given = sample(one.operation.takes, {"": url}, everything=True)
            path = re.sub(r"\{\w+(?::path)?\}", "x", one.path)
            options = {"params": flat(given)} if one.method in IN_QUERY else {"json": given}
            assert http.request(one.method, path, **options).status_code < 500, one.path

    assert not visits


def flat(arguments):
    return {name: value for name, value in arguments.items() if not isinstance(value, dict)}


def test_no_answer_lets_another_origin_read_it(jay):
    """Neither to a request of a foreign page nor to the question that a browser asks before it."""
    foreign = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    with client_of(build_app(jay, TOOLS, only_rest=REST)) as http:
        for path in ("/healthz", "/openapi.json", "/api/v1/memories", "/mcp", "/", "/nowhere"):
            replies = [http.request(method, path, headers=foreign) for method in ("GET", "OPTIONS")]
            replies.append(http.get(path, headers={"origin": str(http.base_url).rstrip("/")}))

            assert [reply.status_code for reply in replies[:2]] == [403, 403]
            assert not any(name.startswith("access-control-") for reply in replies for name in reply.headers)
