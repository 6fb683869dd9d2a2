"""What a server says beside its answers: progress, and questions to the client's own model, in both eras."""

from __future__ import annotations

import json

import anyio
import pytest
from mcp import Client
from mcp.types import CreateMessageResult, TextContent

from scrubjay.dialects.table import find
from scrubjay.engine.parts import engine_on
from scrubjay.servers.http.app import build_app
from scrubjay.servers.http.rate_limits import Limits
from scrubjay.servers.mcp.server import build_server
from scrubjay.stores.sqlite.store import SqliteStore
from tests.servers.peer import CLIENT, ENVELOPE, HANDSHAKE, Peer
from tests.servers.sites import client_of, running

pytestmark = pytest.mark.process

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


def total(peer):
    listed = {"name": "list_memories", "arguments": {}, **MODERN}
    return peer.ask("tools/call", listed)["result"]["structuredContent"]["total_count"]


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


def test_a_forged_state_is_refused_and_changes_nothing(peer):
    ids = stored(peer, **MODERN)
    state = peer.ask("tools/call", consolidation(ids, **MODERN))["result"]["requestState"]

    middle = len(state) // 2  # the last characters may hold bits that no byte takes up
    changed = state[:middle] + ("B" if state[middle] == "A" else "A") + state[middle + 1 :]

    for forged, asked in [("forged", ids), (changed, ids), (state * 2, ids), (state, ids[::-1])]:
        answered = {"inputResponses": {"synthesis": ANSWER}, "requestState": forged}
        assert peer.ask("tools/call", consolidation(asked, **MODERN, **answered))["error"]["code"] == -32602
    assert total(peer) == 2


def test_what_changed_meanwhile_is_asked_again(peer):
    ids = stored(peer, **MODERN)
    state = peer.ask("tools/call", consolidation(ids, **MODERN))["result"]["requestState"]
    arguments = {"memory_id": ids[0], "updates": {"content": "User is learning Catalan"}}
    changed = peer.ask("tools/call", {"name": "update_memory", "arguments": arguments, **MODERN})["result"]
    stale = {"inputResponses": {"synthesis": ANSWER}, "requestState": state}

    assert not changed["isError"], changed
    assert "inputRequests" in peer.ask("tools/call", consolidation(ids, **MODERN, **stale))["result"]
    assert total(peer) == 2


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


# --- over HTTP -------------------------------------------------------------------------------------------------------


def over_http(jay, conversation, mode, *, call_seconds=60.0, **options):
    async def main(address):
        async with Client(f"{address}/mcp/system", mode=mode, **options) as client:
            return await conversation(client)

    with running(build_app(jay, [find("system")], call_seconds=call_seconds)) as address:
        return anyio.run(main, address)


async def consolidated(client):
    stored = [await client.call_tool("store_memory", {"content": text}) for text in TEXTS]
    ids = [(one.structured_content or {}).get("memory_id", "") for one in stored]
    return (await client.call_tool("consolidate_memories", consolidation(ids)["arguments"])).structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_model_behind_http_is_asked_and_answers(jay, mode):
    questions = []

    async def sampled(_context, params):
        questions.append(params.messages[0].content.text)
        content = TextContent(type="text", text="User learns Spanish.")
        return CreateMessageResult(role="assistant", content=content, model="m")

    result = over_http(jay, consolidated, mode, sampling_callback=sampled)

    assert TEXTS[1] in questions[0]
    assert (result["provenance"]["synthesis_engine"], result["content"]) == ("client", "User learns Spanish.")


async def silent(_context, _params):
    await anyio.sleep_forever()


def test_a_model_behind_http_that_never_answers_leaves_it_to_the_rules_before_the_call_is_over(jay):
    for seconds in (4.0, 60.0):  # a busy machine may need more than the quarter that the rules have
        result = over_http(jay, consolidated, "legacy", call_seconds=seconds, sampling_callback=silent)
        if result and "provenance" in result:
            break

    assert result["provenance"]["synthesis_engine"] == "local"


def test_a_model_that_never_answers_holds_its_client_up_for_so_long_only(jay):
    server = build_server([find("system")], lambda _ctx: jay, transport="stdio", ask_seconds=0.2)

    async def main():
        async with Client(server, mode="legacy", sampling_callback=silent) as client:
            with anyio.fail_after(60):
                return await consolidated(client)

    assert anyio.run(main)["provenance"]["synthesis_engine"] == "local"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_progress_is_told_over_http(jay, mode):
    told = []

    async def progress(done, total, note):
        told.append((done, total, note))

    async def conversation(client):
        for text in TEXTS:
            await client.call_tool("store_memory", {"content": text})
        arguments = {"auto_archive_criteria": {"low_importance": 1.0}}
        return await client.call_tool("archive_memory", arguments, progress_callback=progress)

    assert over_http(jay, conversation, mode).structured_content["archived_count"] == 2
    assert told == [(2, 2, "archiving")]


def test_a_streamed_answer_says_how_often_its_caller_may_call(jay):
    """Headers go before a stream; these wait for its first piece."""
    with client_of(build_app(jay, [find("system")], limits=Limits(local=True))) as client:
        ask = {"accept": "application/json, text/event-stream"}
        opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {**HANDSHAKE, "clientInfo": CLIENT}}
        session = client.post("/mcp", json=opening, headers=ask).headers["mcp-session-id"]
        call = {"name": "store_memory", "arguments": {"content": "Tea"}}
        reply = client.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
            headers={**ask, "mcp-session-id": session},
        )

    assert reply.headers["content-type"].startswith("text/event-stream")
    assert (reply.headers["x-ratelimit-limit"], reply.headers["x-ratelimit-remaining"]) == ("100", "99")


FACTS = {"facts": [{"content": "The Ottilie is moored at pier four"}, {"content": "Ada bakes", "also": ["baker"]}]}
PHRASES = {**ANSWER, "content": {"type": "text", "text": "1: berth; yacht harbour"}}


def phrases_in(home):
    with engine_on(SqliteStore(home / "memories.db"), None) as jay:
        return {memory.content: memory.also for memory in jay.list()}


def test_where_a_setting_allows_it_the_clients_model_writes_phrases(tmp_path):
    with Peer(tmp_path, "--dialect", "scrubjay", SCRUBJAY_ALSO_BY_CLIENT="on") as peer:
        greeted(peer, sampling={})
        peer.send("tools/call", {"name": "remember", "arguments": FACTS}, id=100)
        question = peer.read()
        peer.write(json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": PHRASES}).encode())
        assert not peer.read()["result"].get("isError")

    text = question["params"]["messages"][0]["content"]["text"]
    assert ("pier four" in text, "bakes" in text) == (True, False)
    assert phrases_in(tmp_path) == {
        "The Ottilie is moored at pier four": ("berth", "yacht harbour"),
        "Ada bakes": ("baker",),
    }


def test_if_it_refuses_the_facts_are_kept_without(tmp_path):
    with Peer(tmp_path, "--dialect", "scrubjay", SCRUBJAY_ALSO_BY_CLIENT="on") as peer:
        greeted(peer, sampling={})
        peer.send("tools/call", {"name": "remember", "arguments": FACTS}, id=100)
        refusal = {"code": -1, "message": "User rejected"}
        peer.write(json.dumps({"jsonrpc": "2.0", "id": peer.read()["id"], "error": refusal}).encode())
        assert not peer.read()["result"].get("isError")

    assert phrases_in(tmp_path)["The Ottilie is moored at pier four"] == ()


def test_by_default_no_client_is_asked_for_phrases(tmp_path):
    with Peer(tmp_path, "--dialect", "scrubjay") as peer:
        greeted(peer, sampling={})
        assert not peer.call("remember", **FACTS).get("isError")
