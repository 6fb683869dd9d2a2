"""Below a dialect's addresses even a wrong one is answered in its words: its clients know no others."""

from __future__ import annotations

import pytest

from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.servers.http.app import build_app
from tests.servers.sites import client_of


@pytest.fixture
def http(jay):
    app = build_app(
        jay, [find(name) for name in DIALECTS], only_rest=[find(name) for name in ONLY_REST], max_body_bytes=10_000
    )
    with client_of(app) as client:
        yield client


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/api/system/no_such_tool", 404, "NOT_FOUND"),
        ("GET", "/api/system", 404, "NOT_FOUND"),
        ("GET", "/api/system/store_memory", 405, "METHOD_NOT_ALLOWED"),
        ("POST", "/api/system/store_memory", 413, "PAYLOAD_TOO_LARGE"),
    ],
)
def test_the_system_says_what_is_wrong_in_its_own_format(http, method, path, status, code):
    body = b"x" * 20_000 if status == 413 else b"{}"
    answer = http.request(method, path, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == status
    told = answer.json()
    assert (told["api_version"], told["success"]) == ("1.0.0", False)
    assert (told["error"]["code"], told["error"]["status"]) == (code, status)
    assert told["error"]["request_id"]


@pytest.mark.parametrize(
    "path", ["/api/conversations/c/nothing/here", "/api/conversations/", "/api/memories/x/y/z", "/api/mcp/nothing"]
)
def test_chimera_keeps_its_envelope(http, path):
    answer = http.get(path)

    assert answer.status_code == 404
    assert set(answer.json()) == {"ok", "data", "error"}


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/nothing", "/api/v1/nothing"])
def test_where_no_dialect_has_the_word_the_answer_is_plain(http, path):
    answer = http.get(path)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "no_such_address"
