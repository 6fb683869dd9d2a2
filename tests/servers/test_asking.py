"""What a server says beside its answers: progress, and questions to the client's own model, in both eras."""

from __future__ import annotations

import json

import pytest

from scrubjay.dialects.table import find
from scrubjay.servers.http import build_app
from tests.servers.peer import CLIENT, ENVELOPE, HANDSHAKE, Peer
from tests.servers.sites import client_of

TEXTS = ("User is learning Spanish", "User is learning Spanish with Inés")
ANSWER = {"role": "assistant", "content": {"type": "text", "text": "User learns Spanish."}, "model": "m"}
MODERN = {
    "_meta": {**ENVELOPE["_meta"], "io.modelcontextprotocol/clientCapabilities": {"sampling": {}}},
}


@pytest.fixture
def peer(tmp_path):
    with Peer(tmp_path, "--dialect", "system") as peer:
        yield peer


def greeted(peer, **capabilities):
    peer.ask("initialize", {**HANDSHAKE, "capabilities": capabilities, "clientInfo": CLIENT})
    peer.send("notifications/initialized")


def stored(peer, **envelope):
    ids = []
    for text in TEXTS:
        params = {"name": "store_memory", "arguments": {"content": text}, **envelope}
        ids.append(peer.ask("tools/call", params)["result"]["structuredContent"]["memory_id"])
    return ids


def consolidation(ids, **envelope):
    arguments = {"memory_ids": ids, "consolidation_strategy": "ai_synthesis"}
    return {"name": "consolidate_memories", "arguments": arguments, **envelope}


def engine_of(result):
    return result["structuredContent"]["provenance"]["synthesis_engine"]


def test_a_client_with_a_model_is_asked_and_answers(peer):
    greeted(peer, sampling={})
    ids = stored(peer)
    peer.send("tools/call", consolidation(ids), id=100)
    question = peer.read()
    peer.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": ANSWER}).encode())
    result = peer.read()["result"]

    assert question["method"] == "sampling/createMessage"
    assert TEXTS[1] in question["params"]["messages"][0]["content"]["text"]
    assert (engine_of(result), result["structuredContent"]["content"]) == ("client", "User learns Spanish.")


def test_a_client_that_refuses_leaves_it_to_the_rules(peer):
    greeted(peer, sampling={})
    peer.send("tools/call", consolidation(stored(peer)), id=100)
    question = peer.read()
    refusal = {"code": -1, "message": "User rejected"}
    peer.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": refusal}).encode())

    assert engine_of(peer.read()["result"]) == "local"


def test_a_client_without_a_model_is_not_asked(peer):
    greeted(peer)

    assert engine_of(peer.ask("tools/call", consolidation(stored(peer)))["result"]) == "local"


def test_in_the_modern_era_the_question_is_the_answer_and_the_client_comes_back(peer):
    ids = stored(peer, **MODERN)
    asked = peer.ask("tools/call", consolidation(ids, **MODERN))["result"]
    request = asked["inputRequests"]["synthesis"]
    answered = {"inputResponses": {"synthesis": ANSWER}, "requestState": asked["requestState"]}
    result = peer.ask("tools/call", consolidation(ids, **MODERN, **answered))["result"]

    assert asked["resultType"] == "input_required"
    assert request["method"] == "sampling/createMessage"
    assert TEXTS[0] in request["params"]["messages"][0]["content"]["text"]
    assert (engine_of(result), result["structuredContent"]["content"]) == ("client", "User learns Spanish.")


def test_an_answer_to_another_question_is_asked_again(peer):
    ids = stored(peer, **MODERN)
    stale = {"inputResponses": {"synthesis": ANSWER}, "requestState": "of another question"}

    assert "inputRequests" in peer.ask("tools/call", consolidation(ids, **MODERN, **stale))["result"]
    listed = {"name": "list_memories", "arguments": {}, **MODERN}
    assert peer.ask("tools/call", listed)["result"]["structuredContent"]["total_count"] == 2


def test_a_reply_that_nobody_asked_for_does_no_harm(peer):
    greeted(peer)
    peer.write(json.dumps({"jsonrpc": "2.0", "id": 77, "result": ANSWER}).encode())

    assert stored(peer)


@pytest.mark.parametrize("envelope", [{}, ENVELOPE], ids=["handshake", "modern"])
def test_progress_is_told_to_a_client_that_asks_for_it(peer, envelope):
    if not envelope:
        greeted(peer)
    stored(peer, **envelope)
    meta = {**envelope.get("_meta", {}), "progressToken": "far"}
    arguments = {"auto_archive_criteria": {"low_importance": 1.0}}
    peer.send("tools/call", {"name": "archive_memory", "arguments": arguments, "_meta": meta}, id=100)
    told = peer.read()
    result = peer.read()["result"]

    assert told["method"] == "notifications/progress"
    assert told["params"]["progressToken"] == "far"
    assert (told["params"]["progress"], told["params"]["total"], told["params"]["message"]) == (2, 2, "archiving")
    assert result["structuredContent"]["archived_count"] == 2


# --- over HTTP: answers are plain JSON, so only the era whose questions are answers can ask ---------------------------


@pytest.fixture
def http(jay):
    with client_of(build_app(jay, [find("system")])) as client:
        yield client


def called(http, params, **headers):
    accept = {"accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return http.post("/mcp/system", json=body, headers={**accept, **headers}).json()["result"]


def test_over_http_the_modern_question_is_the_answer_too(http):
    def call(params):
        modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": params["name"]}
        return called(http, {**params, **MODERN}, **modern)

    ids = [
        call({"name": "store_memory", "arguments": {"content": text}})["structuredContent"]["memory_id"]
        for text in TEXTS
    ]
    asked = call(consolidation(ids))
    answered = {"inputResponses": {"synthesis": ANSWER}, "requestState": asked["requestState"]}
    result = call({**consolidation(ids), **answered})

    assert asked["inputRequests"]["synthesis"]["method"] == "sampling/createMessage"
    assert (engine_of(result), result["structuredContent"]["content"]) == ("client", "User learns Spanish.")


def test_over_http_a_client_of_the_handshake_era_is_not_kept_waiting_for_a_question(http, jay):
    ids = [jay.store(text).memory.id for text in TEXTS]
    hello = {**HANDSHAKE, "capabilities": {"sampling": {}}, "clientInfo": CLIENT}
    accept = {"accept": "application/json, text/event-stream"}
    opened = http.post(
        "/mcp/system", json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}, headers=accept
    )
    session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}

    assert engine_of(called(http, consolidation(ids), **session)) == "local"
