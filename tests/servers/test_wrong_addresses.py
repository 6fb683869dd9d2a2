"""Below a dialect's addresses even a wrong one is answered in its words: its clients know no others."""

from __future__ import annotations

import pytest

from scrubjay.dialects.system.definitions import code_of
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.errors import every_kind
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rest import status_of
from tests.servers.sites import client_of

pytestmark = pytest.mark.process


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
    ("headers", "status", "code"),
    [
        ({"content-type": "text/plain"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"host": "evil.example"}, 421, "MISDIRECTED"),
        ({"origin": "https://evil.example"}, 403, "FORBIDDEN"),
    ],
)
def test_a_refusal_by_the_guard_says_its_status_in_the_body(http, headers, status, code):
    answer = http.post("/api/system/store_memory", content=b"{}", headers=headers)

    assert answer.status_code == answer.json()["error"]["status"] == status
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_the_status_in_a_body_is_that_of_the_answer(kind):
    assert code_of(kind)[1] == status_of(kind())


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
