"""One client that opens a session for every call keeps nobody else out."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from scrubjay.dialects.table import find
from scrubjay.servers.http.app import build_app
from scrubjay.servers.mcp import sessions
from scrubjay.values.callers import Role
from tests.servers.sites import client_of

pytestmark = pytest.mark.process

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@pytest.fixture
def client(jay, monkeypatch):
    monkeypatch.setattr(sessions, "MOST", 3)
    return Client(jay)


class Client:
    def __init__(self, jay):
        self._jay = jay
        self.keys = {name: jay.callers.create(name, role=Role.MEMBER).secret for name in ("ann", "bob")}

    @contextmanager
    def site(self):
        with client_of(build_app(self._jay, [find("memento")])) as http:
            self._http = http
            yield self

    def post(self, name, body, **headers):
        accepted = {"accept": "application/json, text/event-stream", "x-api-key": self.keys[name], **headers}
        return self._http.post("/mcp", json=body, headers=accepted)

    def opened(self, name):
        reply = self.post(name, HELLO)
        assert reply.status_code == 200
        return {"mcp-session-id": reply.headers["mcp-session-id"]}

    def works(self, name, session):
        return self.post(name, TOOLS, **session).status_code == 200


def test_whoever_has_most_sessions_loses_the_least_used(client):
    with client.site():
        bobs = client.opened("bob")
        first, second = client.opened("ann"), client.opened("ann")
        assert client.works("ann", first)
        third = client.opened("ann")

        assert client.works("bob", bobs)
        assert [client.works("ann", one) for one in (first, second, third)] == [True, False, True]


def test_a_client_that_never_ends_a_session_keeps_nobody_out(client, monkeypatch):
    monkeypatch.setattr("scrubjay.servers.mcp.server.MAX_SESSIONS", 4)
    with client.site():
        for _ in range(20):
            client.opened("ann")

        assert client.works("bob", client.opened("bob"))


def test_another_callers_session_is_neither_used_nor_kept_alive(client):
    with client.site():
        first, second = client.opened("ann"), client.opened("ann")
        assert not client.works("bob", first)
        client.opened("ann"), client.opened("ann")

        assert [client.works("ann", one) for one in (first, second)] == [False, True]
