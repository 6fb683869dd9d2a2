"""MAMA's acceptance cases, A1 to A18, and the ambiguities A4-1 to A4-17, as its contract settles them."""

from __future__ import annotations

import json
import re

import pytest

from scrubjay.dialects.mama import mama
from scrubjay.dialects.memento import memento
from scrubjay.dialects.system.memories import system
from scrubjay.dialects.validation import Checker


def call(engine, tool, **arguments):
    """One call through the dialect; every body must lie inside the tool's output schema."""
    reply = mama.call(engine, tool, arguments)
    Checker(mama.operations[tool].gives).check(reply.body)
    return reply


def ok(engine, tool, **arguments):
    reply = call(engine, tool, **arguments)
    assert not reply.failed, reply.body
    assert json.loads(reply.text) == reply.body
    return reply.body


def refused(engine, tool, **arguments):
    reply = call(engine, tool, **arguments)
    assert reply.failed, reply.body
    assert reply.body["success"] is False
    assert reply.text == f"Error: {reply.body['error']['message']}"
    return reply.text


def decide(engine, topic, decision, reasoning="Because", **more):
    return ok(engine, "save", type="decision", topic=topic, decision=decision, reasoning=reasoning, **more)["id"]


def results(engine, **arguments):
    body = ok(engine, "search", **arguments)
    assert body["count"] == len(body["results"])
    return body["results"]


# --- unhappy paths ---------------------------------------------------------------------------------------------------

DECISION = {"type": "decision", "topic": "a", "decision": "b", "reasoning": "c"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({**DECISION, "topic": ""}, "topic"),
        ({**DECISION, "topic": "  "}, "topic"),
        ({"type": "decision", "decision": "b", "reasoning": "c"}, "topic"),
        ({"type": "decision", "topic": "a", "reasoning": "c"}, "decision"),
        ({"type": "decision", "topic": "a", "decision": "b"}, "reasoning"),
        ({"type": "decision", "topic": "a"}, "decision and reasoning"),
        ({"type": "checkpoint"}, "summary"),
        ({"type": "checkpoint", "summary": " "}, "summary"),
        ({"type": "checkpoint", "summary": "x", "topic": "a"}, "topic"),
        ({**DECISION, "summary": "x"}, "summary"),
        ({**DECISION, "reasonning": "x"}, "reasoning"),
    ],
)
def test_a13_a14_what_cannot_be_saved_is_refused_by_name(jay, arguments, named):
    assert named in refused(jay, "save", **arguments)
    assert results(jay) == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"id": "decision_x_1_abcd", "outcome": "success"}, "Decision not found: decision_x_1_abcd"),
        ({"id": "decision_x_1_abcd", "outcome": "pending"}, "success, failed, partial"),
        ({"id": "decision_x_1_abcd", "outcome": " "}, "success, failed, partial"),
    ],
)
def test_a7_a8_a18_an_update_that_cannot_be_made_says_why(jay, arguments, named):
    text = refused(jay, "update", **arguments)
    assert all(word in text for word in named.split(", "))


def test_a8_a_checkpoint_has_no_outcome(jay):
    ok(jay, "save", type="checkpoint", summary="Here")

    assert "checkpoint" in refused(jay, "update", id="checkpoint_1", outcome="success")


def test_a_plain_memory_has_no_outcome(jay):
    memory = jay.store("The sky is blue").memory.id

    assert "not a decision" in refused(jay, "update", id=memory, outcome="success")


# --- saving ----------------------------------------------------------------------------------------------------------


def test_a1_the_seeds_example(jay):
    body = ok(
        jay,
        "save",
        type="decision",
        topic="auth_strategy",
        decision="Use JWT with refresh tokens",
        reasoning="Need stateless auth for API scaling. Session-based auth failed under load.",
        confidence=0.85,
    )

    assert re.fullmatch(r"decision_auth_strategy_\d{10}_[a-z0-9]+", body["id"])
    assert body["type"] == "decision"
    assert body["message"] == "Decision saved: auth_strategy"
    assert body["reasoning_graph"] == {"topic": "auth_strategy", "depth": 1, "latest": body["id"]}


def test_a2_checkpoints_count_and_the_last_is_loaded(jay):
    steps, files = "1. Rotate\n2. Test", ["src/auth/jwt.ts", "tests/auth.test.ts"]
    first = ok(jay, "save", type="checkpoint", summary="First")
    second = ok(jay, "save", type="checkpoint", summary="Second", next_steps=steps, open_files=files)
    loaded = ok(jay, "load_checkpoint")["checkpoint"]

    assert (first["id"], second["id"]) == ("checkpoint_1", "checkpoint_2")
    assert (second["type"], second["message"]) == ("checkpoint", "Checkpoint saved")
    assert loaded["id"] == 2
    assert (loaded["summary"], loaded["next_steps"], loaded["open_files"]) == ("Second", steps, files)
    assert isinstance(loaded["timestamp"], int)
    assert len(str(loaded["timestamp"])) == 10


def test_a4_an_unknown_reference_makes_no_edge(jay):
    decide(jay, "a", "b", reasoning="builds_on: decision_nowhere_1_abcd")

    [row] = results(jay, query="b", type="decision") or results(jay)
    assert "edges" not in row


@pytest.mark.parametrize("confidence", [0, 0.5, 1])
def test_a14_a_confidence_is_kept_as_given(jay, confidence):
    decide(jay, "a", "b", confidence=confidence)

    assert results(jay)[0]["confidence"] == confidence


def test_a14_the_default_confidence(jay):
    decide(jay, "a", "b")

    assert results(jay)[0]["confidence"] == 0.5


def test_a15_a_korean_topic(jay):
    first, second = decide(jay, "인증 전략", "JWT를 쓴다"), decide(jay, "인증 전략", "세션을 쓴다")

    assert re.fullmatch(r"decision_t[0-9a-f]{8}_\d+_[a-z0-9]+", first)
    assert first.split("_")[1] == second.split("_")[1]


def test_a16_without_a_model_everything_works_and_says_so(open_engine):
    jay = open_engine(embedder=None)
    saved = ok(jay, "save", type="decision", topic="caching", decision="Use Redis", reasoning="Fast")
    found = ok(jay, "search", query="caching")

    assert saved["degraded"]
    assert found["degraded"]
    assert found["results"][0]["id"] == saved["id"]


def test_a4_12_a_nearly_equal_decision_elsewhere_is_mentioned(real_jay):
    text = "Use PostgreSQL with read replicas for the analytics dashboard"
    first = decide(real_jay, "database", text, reasoning="It scales")
    body = ok(real_jay, "save", type="decision", topic="storage_engine", decision=text, reasoning="It scales")

    assert body["similar_decisions"][0]["id"] == first
    assert "database" in body["warning"]
    assert "builds_on" in body["collaboration_hint"]


def test_the_similarity_of_a_decision_mentioned_is_calibrated_like_that_of_a_search(real_jay, model):
    text = "Use PostgreSQL with read replicas for the analytics dashboard"
    decide(real_jay, "database", text, reasoning="It scales")
    body = ok(real_jay, "save", type="decision", topic="storage_engine", decision=text, reasoning="It scales")

    first, second = model.embed([f"{topic}\n{text}\n\nIt scales" for topic in ("database", "storage_engine")])
    assert body["similar_decisions"][0]["similarity"] == pytest.approx(model.calibrate(first @ second), abs=0.001)


def test_unlike_decisions_are_not_mentioned(real_jay):
    decide(real_jay, "database", "Use PostgreSQL")
    body = ok(real_jay, "save", type="decision", topic="lunch", decision="Soup on Mondays", reasoning="It is cold")

    assert "similar_decisions" not in body
    assert "warning" not in body


# --- searching -------------------------------------------------------------------------------------------------------


def test_a5_a_topics_evolution_newest_first(real_jay):
    ids = [decide(real_jay, "caching", text) for text in ("Use Redis", "Use Memcached", "Use a local LRU cache")]

    rows = results(real_jay, query="caching")

    assert [row["id"] for row in rows] == ids[::-1]
    assert [row.get("superseded_by") for row in rows] == [None, ids[2], ids[1]]
    assert [row.get("supersedes") for row in rows] == [ids[1], ids[0], None]


def test_a4_5_relevance_first_then_the_chain(real_jay):
    old = decide(real_jay, "caching", "Use Redis for sessions")
    decide(real_jay, "lunch", "Soup on Mondays")
    new = decide(real_jay, "caching", "Keep everything in the process")
    decide(real_jay, "colours", "The logo is teal")

    rows = results(real_jay, query="Redis for sessions")

    assert [row["id"] for row in rows][:2] == [new, old]


def test_a6_a_linked_decision_appears_on_both_ends(real_jay):
    base = decide(real_jay, "auth_strategy", "Use JWT with refresh tokens")
    grown = decide(real_jay, "wine_cellar", "Store bottles lying down", reasoning=f"builds_on: {base}. Corks stay wet.")

    rows = {row["id"]: row for row in results(real_jay, query="JWT refresh tokens")}

    assert rows[base]["related_to"] == grown
    assert rows[grown]["related_to"] == base
    assert "builds_on" in rows[grown]["edge_reason"]
    assert [(edge["type"], edge["direction"]) for edge in rows[base]["edges"]] == [("builds_on", "in")]


def test_a8_outcome_and_reason_are_shown_and_failures_flagged(jay):
    good, bad = decide(jay, "database", "Use PostgreSQL"), decide(jay, "caching", "Use Redis clusters")
    ok(jay, "update", id=good, outcome="SUCCESS")
    ok(jay, "update", id=bad, outcome="failure", reason="Too much to operate")

    rows = {row["id"]: row for row in results(jay)}

    assert (rows[good]["outcome"], rows[good]["outcome_reason"]) == ("success", None)
    assert (rows[bad]["outcome"], rows[bad]["outcome_reason"]) == ("failed", "Too much to operate")
    assert "warning" not in rows[good]
    assert "Too much to operate" in rows[bad]["warning"]


def test_a9_the_newest_items_without_a_query(jay, clock):
    for number in range(12):
        decide(jay, f"topic {number}", "Yes")
        clock.move(seconds=1)
    ok(jay, "save", type="checkpoint", summary="Here")
    jay.store("A plain memory")

    assert results(jay)[0]["id"] == "checkpoint_1"
    assert len(results(jay)) == 10
    assert {row["_type"] for row in results(jay, type="decision", limit=50)} == {"decision"}
    assert len(results(jay, type="decision", limit=50)) == 12
    assert [row["_type"] for row in results(jay, type="checkpoint")] == ["checkpoint"]
    assert results(jay, query="  ") == results(jay)
    times = [row["created_at"] for row in results(jay, limit=50)]
    assert times == sorted(times, reverse=True)


def test_a4_6_superseded_decisions_are_listed_marked(jay):
    old, new = decide(jay, "a", "One"), decide(jay, "a", "Two")

    assert [(row["id"], row.get("superseded_by")) for row in results(jay)] == [(new, None), (old, new)]


def test_a5_only_the_last_is_current_also_when_one_before_it_is_forgotten(jay):
    ids = [decide(jay, "caching", text) for text in ("Use Redis", "Use Memcached", "Use a local LRU cache")]
    jay.forget(ids[1])

    assert [(row["id"], row.get("superseded_by")) for row in results(jay)] == [(ids[2], None), (ids[0], ids[2])]
    assert [one["content"] for one in memento.call(jay, "list_recent_memories", {}).body["memories"]] == [
        "Use a local LRU cache\n\nBecause"
    ]


def test_a10_an_unrelated_question_finds_no_checkpoint(real_jay):
    ok(real_jay, "save", type="checkpoint", summary="Refactoring the auth module, refresh flow still to do")

    assert results(real_jay, query="How long is the tunnel under the fjord?") == []


def test_a4_9_checkpoints_are_ranked_like_anything_else(real_jay):
    ok(real_jay, "save", type="checkpoint", summary="Refactoring the auth module, token refresh still to do")
    decide(real_jay, "lunch", "Soup on Mondays")

    [row] = results(real_jay, query="token refresh in the auth module")
    assert (row["id"], row["_type"]) == ("checkpoint_1", "checkpoint")
    assert 0 < row["similarity"] <= 1


def test_plain_memories_are_found_with_a_query(real_jay):
    memory = real_jay.store("The API is written in Go").memory

    [row] = results(real_jay, query="Which language is the API written in?")
    assert (row["id"], row["_type"], row["topic"], row["decision"]) == (
        memory.id,
        "memory",
        None,
        "The API is written in Go",
    )
    assert results(real_jay, query="Which language is the API written in?", type="decision") == []
    assert len(results(real_jay, query="Which language is the API written in?", type="memory")) == 1


# --- outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("success", "success"),
        ("SUCCESS", "success"),
        ("Success", "success"),
        ("failed", "failed"),
        ("FAILED", "failed"),
        ("failure", "failed"),
        ("Partial", "partial"),
    ],
)
def test_a7_outcomes_in_any_case(jay, word, shown):
    id = decide(jay, "a", "b")

    assert ok(jay, "update", id=id, outcome=word) == {"success": True, "message": f"Updated {id} -> {word.lower()}"}
    assert results(jay)[0]["outcome"] == shown


def test_a18_two_thousand_characters_of_reason_are_kept(jay):
    id = decide(jay, "a", "b")
    ok(jay, "update", id=id, outcome="failed", reason="x" * 2000)

    assert results(jay)[0]["outcome_reason"] == "x" * 2000


# --- resuming --------------------------------------------------------------------------------------------------------


def test_a11_nothing_to_load_is_no_error(jay):
    body = ok(jay, "load_checkpoint")

    assert body["checkpoint"] is None
    assert "No checkpoint" in body["message"]


def test_a12_next_steps_as_given_and_as_a_list(jay):
    ok(jay, "save", type="checkpoint", summary="Here", next_steps="[ ] a\n[ ] b\n[x] c")
    body = ok(jay, "load_checkpoint")

    assert body["checkpoint"]["next_steps"] == "[ ] a\n[ ] b\n[x] c"
    assert body["open_steps"] == ["a", "b"]


def test_the_decisions_around_a_checkpoint_come_with_it(jay, clock):
    decide(jay, "ancient", "Long ago")
    clock.move(hours=5)
    near = decide(jay, "near", "Just before")
    clock.move(minutes=10)
    ok(jay, "save", type="checkpoint", summary="Here")
    clock.move(days=2)
    since = decide(jay, "since", "Later")

    assert [row["id"] for row in ok(jay, "load_checkpoint")["decisions"]] == [since, near]


# --- names, extras, other dialects -----------------------------------------------------------------------------------


def test_a17_the_old_names_still_work(jay):
    saved = ok(jay, "save_decision", topic="caching", decision="Use Redis", reasoning="Fast")["id"]
    ok(jay, "save_checkpoint", summary="Here")
    ok(jay, "update_outcome", id=saved, outcome="success")

    assert ok(jay, "recall_decision", topic="caching")["results"][0]["outcome"] == "success"
    assert ok(jay, "suggest_decision", question="caching with Redis?")["results"][0]["id"] == saved
    assert ok(jay, "list_decisions")["count"] == 1


def test_a17_only_the_four_are_listed():
    listed = [one.name for one in mama.operations.values() if one.listed]
    assert listed == ["save", "search", "update", "load_checkpoint"]


def test_the_seeds_descriptions_are_ours():
    described = {name: mama.operations[name].description for name in ("search", "update", "load_checkpoint")}

    assert described == {
        "search": "Search decisions and checkpoints. Semantic search with query, or list recent items without query.",
        "update": "Update an existing decision's outcome. Use after trying a decision to track what worked.",
        "load_checkpoint": "Load the latest checkpoint to resume a previous session. Use at session start.",
    }
    assert mama.operations["save"].description.startswith("Save a decision or checkpoint to MAMA's memory.")


def test_a4_13_the_servers_name():
    assert mama.server_name == "mama-server"


def test_other_dialects_see_decision_and_reasoning_as_one_text(real_jay):
    decide(real_jay, "database", "Always use PostgreSQL", reasoning="The team knows it")
    ok(real_jay, "save", type="checkpoint", summary="Half way through the migration", next_steps="Copy the users")

    found = memento.call(real_jay, "search_memories", {"query": "Which database is used?"}).body["memories"]
    listed = system.call(real_jay, "list_memories", {}).body["memories"]

    assert found[0]["content"] == "Always use PostgreSQL\n\nThe team knows it"
    assert {one["category"] for one in listed} <= {"instruction", "fact", "context"}
    assert {one["content"] for one in listed} == {
        "Always use PostgreSQL\n\nThe team knows it",
        "Half way through the migration\n\nCopy the users",
    }


def test_a_checkpoint_is_never_offered_as_outdated(real_jay):
    ok(real_jay, "save", type="checkpoint", summary="User lives in Seattle")

    stored = memento.call(real_jay, "store_memory", {"content": "User lives in Seattle"}).body
    assert stored["similar"] == []


HOSTILE = ["<script>alert(1)</script>", "'; DROP TABLE memories; --", "a\u0000b", "\u202egnirts"]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_comes_back_to_the_code_point(jay, text):
    decide(jay, "a", text, reasoning=text)

    assert (results(jay)[0]["decision"], results(jay)[0]["reasoning"]) == (text, text)


def test_save_says_which_edges_it_found_and_which_names_it_did_not_know(jay):
    first = ok(jay, "save", type="decision", topic="auth", decision="Use JWT", reasoning="Simple")["id"]

    body = ok(
        jay,
        "save",
        type="decision",
        topic="login",
        decision="Use sessions",
        reasoning=f"builds_on: `{first}`, decision_nobody_1_x",
    )

    assert body["edges"] == [{"type": "builds_on", "id": first}]
    assert body["unknown_edges"] == ["decision_nobody_1_x"]


def test_a_topic_is_the_same_however_its_words_are_joined(jay):
    first = decide(jay, "auth_strategy", "Use JWT")
    second = decide(jay, "Auth Strategy", "Use sessions")
    third = decide(jay, " auth-_ strategy", "Use passkeys")

    assert [one.get("superseded_by") for one in results(jay)] == [None, third, second]
    assert {one["id"] for one in results(jay)} == {first, second, third}
    assert decide(jay, "authstrategy", "Use nothing")
    assert results(jay)[1].get("superseded_by") is None


def test_the_same_save_sent_again_makes_no_second_step(jay, clock):
    base = decide(jay, "base", "Use Python")
    given = {"topic": "auth", "decision": "Use JWT", "reasoning": f"builds_on {base}"}
    first = ok(jay, "save", type="decision", **given)
    clock.move(seconds=30)

    assert ok(jay, "save", type="decision", **given) == first
    assert ok(jay, "save", type="decision", **{**given, "topic": "Auth"})["id"] == first["id"]
    assert ok(jay, "save", type="decision", **given, confidence=0.9)["id"] != first["id"]
    clock.move(seconds=61)
    assert ok(jay, "save", type="decision", **given)["reasoning_graph"]["depth"] == 3


def test_the_patterns_are_in_the_tools_description():
    described = mama.operations["save"].takes["properties"]["reasoning"]["description"]

    assert all(f"{kind}:" in described for kind in ("builds_on", "debates", "synthesizes"))


def test_a_long_reasoning_is_cut_in_a_search_and_whole_by_its_id(jay):
    long = "Because of the following. " * 200
    id = ok(jay, "save", type="decision", topic="auth", decision="Use JWT", reasoning=long)["id"]

    [found] = ok(jay, "search", query="JWT")["results"]
    [whole] = ok(jay, "search", query=id)["results"]

    assert (len(found["reasoning"]), found["reasoning_truncated"]) == (1_000, True)
    assert whole["reasoning"] == long
    assert "reasoning_truncated" not in whole


def test_ten_long_decisions_make_a_reply_that_a_model_can_read(jay):
    for number in range(10):
        decide(jay, f"topic {number}", f"Use tool {number}", "why " * 1_500)

    reply = call(jay, "search", query="Use tool")

    assert len(reply.text) < 25_000


@pytest.mark.parametrize(
    "decisions",
    [
        ("결제는 매월 첫째 날에 처리한다", "회의실은 삼층에 있다", "로그는 삼십일 동안 보관한다"),
        ("請求は毎月一日に処理する", "会議室は三階にある", "ログは三十日間保存する", "昼食は十二時に食べる"),
        ("Счета выставляются первого числа", "Переговорная на третьем этаже", "Журналы хранятся тридцать дней"),
    ],
    ids=["korean", "japanese", "russian"],
)
def test_unrelated_decisions_in_scripts_that_the_model_does_not_read_get_no_warning(real_jay, decisions):
    for number, decision in enumerate(decisions):
        body = ok(real_jay, "save", type="decision", topic=f"주제 {number}", decision=decision, reasoning=decision)
        assert "warning" not in body
        assert "similar_decisions" not in body
