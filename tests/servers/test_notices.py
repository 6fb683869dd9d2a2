"""What there was no time for reaches a client also where a dialect's body has no room for it."""

from __future__ import annotations

import json

import pytest

from scrubjay.dialects.base import Reply
from scrubjay.dialects.table import find
from scrubjay.servers.calls import NOTICES
from scrubjay.servers.http.app import build_app
from scrubjay.servers.mcp.server import shape_result
from tests.servers.sites import client_of

pytestmark = pytest.mark.process

OLD, NEW = "The demo runs on port 8080", "The demo runs on port 9090 now"
SAID = "Not compared yet: 1 memory; ask `scrubjay conflicts` later what they may outdate."


def test_over_stdio_it_is_in_the_meta_of_the_result(start):
    peer = start("--dialect", "cortex", SCRUBJAY_JUDGE_WAIT="0.000001")
    peer.greet()
    first = peer.call("add_memory", store="default", path="a/one", content=OLD)
    second = peer.call("add_memory", store="default", path="a/two", content=NEW)

    assert "_meta" not in first
    assert second["_meta"] == {NOTICES: [SAID]}


def test_the_librarys_result_has_it_too():
    assert shape_result(Reply({}, notices=(SAID,))).meta == {NOTICES: [SAID]}
    assert shape_result(Reply({})).meta is None


@pytest.fixture
def site(jay):
    jay.parts.judge_seconds = 0.0
    with client_of(build_app(jay, [find("cortex"), find("scrubjay")], only_rest=[find("native")])) as client:
        yield client


def test_over_rest_it_is_a_header(site):
    place = {"store": "default", "path": "a/one"}
    first = site.post("/api/cortex/add_memory", json={**place, "content": OLD})
    second = site.post("/api/cortex/add_memory", json={**place, "path": "a/two", "content": NEW})

    assert "scrubjay-notices" not in first.headers
    assert json.loads(second.headers["scrubjay-notices"]) == [SAID]


def test_over_rest_a_body_with_room_has_it_and_no_header(site):
    site.post("/api/v1/memories", json={"content": OLD})
    reply = site.post("/api/v1/memories", json={"content": NEW})

    assert [sentence.partition(";")[0] for sentence in reply.json()["notices"]] == ["Not compared yet: 1 memory"]
    assert "scrubjay-notices" not in reply.headers
