"""Memento's acceptance cases, M1 to M15, and the ambiguities A1-1 to A1-12, as its contract settles them."""

from __future__ import annotations

import pytest

from scrubjay.dialects.memento import memento
from scrubjay.dialects.validation import Checker
from scrubjay.errors import StorageFull
from scrubjay.values.memory import MAX_CONTENT

WHOLE = {"id", "content", "confidence", "source", "created_at", "updated_at", "accessed_at"}


def call(engine, tool, **arguments):
    """One call through the dialect; every body must lie inside the tool's output schema."""
    reply = memento.call(engine, tool, arguments)
    Checker(memento.operations[tool].gives).check(reply.body)
    return reply


def ok(engine, tool, **arguments):
    reply = call(engine, tool, **arguments)
    assert not reply.failed, reply.body
    return reply.body


def refused(engine, tool, **arguments):
    reply = call(engine, tool, **arguments)
    assert reply.failed, reply.body
    return reply.body["error"]


def stored(engine, content, **arguments):
    return ok(engine, "store_memory", content=content, **arguments)["created"]["id"]


def found(engine, query, **arguments):
    return [memory["id"] for memory in ok(engine, "search_memories", query=query, **arguments)["memories"]]


def recent(engine, **arguments):
    return [memory["id"] for memory in ok(engine, "list_recent_memories", **arguments)["memories"]]


# --- unhappy paths ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "   "},
        {"content": "x" * (MAX_CONTENT + 1)},
        {"content": "half \ud83d"},
    ],
)
def test_m5_what_cannot_be_stored_is_refused_and_nothing_is_kept(jay, arguments):
    error = refused(jay, "store_memory", **arguments)

    assert error["code"] == "INVALID_PARAMETER"
    assert recent(jay) == []


def test_an_unknown_argument_is_answered_with_the_nearest_known_one(jay):
    assert "Did you mean content?" in refused(jay, "store_memory", contnet="x", content="y")["message"]


def test_m7_superseding_an_unknown_memory_says_which(jay):
    known = stored(jay, "User lives in Seattle")

    for arguments in ({"old_memory_id": "mem_nope", "new_memory_id": known},
                      {"old_memory_id": known, "new_memory_id": "mem_nope"}):  # fmt: skip
        error = refused(jay, "supersede_memory", **arguments)
        assert error == {"code": "MEMORY_NOT_FOUND", "message": "Memory with ID mem_nope not found"}


def test_a1_5_a_failed_supersede_carries_both_shapes(jay):
    body = call(jay, "supersede_memory", old_memory_id="a", new_memory_id="b").body

    assert body["success"] is False
    assert body["message"] == body["error"]["message"]


def test_m9_defaults_are_five_and_ten(jay):
    for number in range(12):
        stored(jay, f"The lamp in room {number} is broken")

    assert len(found(jay, "broken lamp in a room")) == 5
    assert len(recent(jay)) == 10


def test_m11_a_blank_query_is_refused(jay):
    assert refused(jay, "search_memories", query="  \n")["code"] == "INVALID_PARAMETER"


def test_a1_7_a_memory_cannot_supersede_itself(jay):
    only = stored(jay, "User lives in Seattle")

    error = refused(jay, "supersede_memory", old_memory_id=only, new_memory_id=only)

    assert error["code"] == "INVALID_PARAMETER"


def test_a1_7_a_circle_is_refused_also_through_a_third(jay):
    one, two, three = (stored(jay, f"User lives in town {n}") for n in range(3))
    ok(jay, "supersede_memory", old_memory_id=one, new_memory_id=two)
    ok(jay, "supersede_memory", old_memory_id=two, new_memory_id=three)

    error = refused(jay, "supersede_memory", old_memory_id=three, new_memory_id=one)

    assert error["code"] == "INVALID_PARAMETER"
    assert recent(jay) == [three]


def test_m13_a_failing_store_is_a_storage_error_that_names_no_path(jay):
    reply = memento.failure(StorageFull(), "store_memory")

    assert reply.body["error"]["code"] == "STORAGE_ERROR"
    assert "/" not in reply.body["error"]["message"]


def test_m13_a_store_without_any_model_still_answers_and_is_found_by_words(open_engine):
    jay = open_engine(None)

    body = ok(jay, "store_memory", content="The spare key hangs behind the boiler")

    assert "degraded" in body
    reply = ok(jay, "search_memories", query="boiler key")
    assert [memory["id"] for memory in reply["memories"]] == [body["created"]["id"]]
    assert "degraded" in reply


# --- storing ---------------------------------------------------------------------------------------------------------


def test_m1_a_move_proposes_the_old_home(real_jay):
    """The hard gate: the default offline model, the seed's own pair."""
    old = stored(real_jay, "User lives in Seattle")

    body = ok(real_jay, "store_memory", content="User moved to Austin")

    assert [memory["id"] for memory in body["similar"]] == [old]
    new = body["created"]["id"]
    assert body["action_required"] == (f'Call supersede_memory("{old}", "{new}") to mark the old memory as outdated.')


def test_m2_the_first_memory_is_similar_to_nothing(jay):
    body = ok(jay, "store_memory", content="User lives in Seattle")

    assert body["similar"] == []
    assert body["action_required"] is None


def test_m3_a_created_memory_is_shown_whole_and_is_not_similar_to_itself(jay):
    body = ok(jay, "store_memory", content="User lives in Seattle")

    assert set(body["created"]) == WHOLE
    assert body["created"]["id"] not in [memory["id"] for memory in body["similar"]]


def test_m4_content_alone_means_full_confidence_and_extracted(jay):
    created = ok(jay, "store_memory", content="User lives in Seattle")["created"]

    assert (created["confidence"], created["source"]) == (1.0, "extracted")


@pytest.mark.parametrize(("spelling", "shown"), [("user_requested", "explicit"), ("auto_captured", "extracted")])
def test_later_spellings_of_the_source_are_accepted_and_the_seeds_are_shown(jay, spelling, shown):
    assert ok(jay, "store_memory", content="x", source=spelling)["created"]["source"] == shown


def test_m14_strange_and_very_long_text_is_stored_and_found(jay):
    long = "nothing much happens here. " * 1_800 + "The vault code is 7341."
    stored(jay, "🦜 emoji and العربية and 漢字 together")
    last = stored(jay, long)

    assert last in found(jay, "vault code 7341")
    assert len(found(jay, "漢字")) == 1


def test_twins_are_listed_as_the_same_and_ask_for_nothing(jay):
    """An identical text is a repetition, not an outdated fact (A1-3 and A1-11 of the contract are replaced)."""
    twins = [stored(jay, "User lives in Seattle") for _ in range(4)]

    body = ok(jay, "store_memory", content="user lives in seattle")

    assert body["created"]["id"] not in twins
    assert [(memory["id"], memory["same"]) for memory in body["similar"]] == [(id, True) for id in twins[:0:-1]]
    assert body["action_required"] is None


def test_the_action_names_one_memory_and_the_twin_comes_after_it(real_jay):
    outdated = stored(real_jay, "User is allergic to peanuts")
    twin = stored(real_jay, "User is no longer allergic to peanuts")

    body = ok(real_jay, "store_memory", content="user is no longer allergic to peanuts")

    assert [memory["id"] for memory in body["similar"]] == [outdated, twin]
    assert [memory.get("same") for memory in body["similar"]] == [None, True]
    assert body["action_required"].count("supersede_memory") == 1
    assert outdated in body["action_required"]


def test_times_are_utc_with_milliseconds(jay):
    created = ok(jay, "store_memory", content="x")["created"]

    assert created["created_at"] == "2026-11-15T10:00:00.000Z"


# --- superseding -----------------------------------------------------------------------------------------------------


def test_m6_a_superseded_memory_is_gone_at_once_and_the_new_one_says_what_it_replaced(jay):
    old, new = stored(jay, "User lives in Seattle"), stored(jay, "User lives in Austin")

    body = ok(jay, "supersede_memory", old_memory_id=old, new_memory_id=new)

    assert body == {"success": True, "message": f"Memory {old} marked as superseded by {new}"}
    assert found(jay, "Where does the user live") == [new]
    [only] = ok(jay, "list_recent_memories")["memories"]
    assert only["id"] == new
    assert only["supersedes"] == old


def test_a1_7_superseding_twice_changes_nothing(jay):
    old, new = stored(jay, "User lives in Seattle"), stored(jay, "User lives in Austin")
    ok(jay, "supersede_memory", old_memory_id=old, new_memory_id=new)
    before = jay.get(old)

    ok(jay, "supersede_memory", old_memory_id=old, new_memory_id=new)

    assert jay.get(old) == before


def test_a1_7_another_successor_is_pointed_at_and_the_first_relation_is_kept(jay):
    old, first, second = (stored(jay, f"User lives in {town}") for town in ("Seattle", "Austin", "Boston"))
    ok(jay, "supersede_memory", old_memory_id=old, new_memory_id=first)

    ok(jay, "supersede_memory", old_memory_id=old, new_memory_id=second)

    assert jay.get(old).superseded_by == second
    supersessions = {(link.source, link.state) for link in jay.links(old) if link.kind == "supersedes"}
    assert supersessions == {(first, "replaced"), (second, "open")}


def test_a1_8_a_memory_that_replaces_many_shows_the_most_recent(jay):
    one, two, new = (stored(jay, f"User lives in {town}") for town in ("Seattle", "Austin", "Boston"))
    ok(jay, "supersede_memory", old_memory_id=one, new_memory_id=new)

    ok(jay, "supersede_memory", old_memory_id=two, new_memory_id=new)

    assert ok(jay, "list_recent_memories")["memories"][0]["supersedes"] == two


# --- finding ---------------------------------------------------------------------------------------------------------


def test_m8_a_limited_search_gives_the_best_in_order_with_their_scores(real_jay):
    for text in ("User has a cat", "User has a dog called Rex", "User walks the dog at seven"):
        stored(real_jay, text)

    memories = ok(real_jay, "search_memories", query="What pets does the user have?", limit=2)["memories"]

    scores = [memory["relevance_score"] for memory in memories]
    assert len(memories) == 2
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_m10_an_empty_memory_answers_with_an_empty_list(jay):
    assert ok(jay, "search_memories", query="anything")["memories"] == []


@pytest.mark.parametrize("query", ["quantum chromodynamics lattice spacing", "proof of Fermat's last theorem"])
def test_m10_nothing_relevant_is_an_empty_list(real_jay, query):
    for text in ("User lives in Seattle", "User likes hiking", "User works as a nurse"):
        stored(real_jay, text)

    assert ok(real_jay, "search_memories", query=query)["memories"] == []


def test_m12_recent_memories_come_newest_first_without_scores(jay, clock):
    ids = []
    for text in ("one", "two", "three"):
        ids.append(stored(jay, text))
        clock.move(seconds=1)
    ok(jay, "supersede_memory", old_memory_id=ids[1], new_memory_id=ids[2])

    memories = ok(jay, "list_recent_memories")["memories"]

    assert [memory["id"] for memory in memories] == [ids[2], ids[0]]
    assert all("relevance_score" not in memory for memory in memories)


def test_accessed_at_is_refreshed_by_a_search_but_not_by_looking_back(jay, clock):
    only = stored(jay, "User lives in Seattle")
    clock.move(hours=1)
    recent(jay)
    assert jay.get(only).accessed_at == jay.get(only).created_at

    found(jay, "Seattle")

    assert jay.get(only).accessed_at == clock()
    assert jay.get(only).updated_at < clock()


def test_memories_are_found_by_meaning_without_a_shared_word(real_jay):
    home = stored(real_jay, "User lives in Seattle")
    stored(real_jay, "The build takes nine minutes")

    assert found(real_jay, "In which city is their apartment?")[0] == home


# --- the table itself ------------------------------------------------------------------------------------------------


def test_the_four_tools_are_advertised_in_the_seeds_order():
    assert list(memento.operations) == [
        "store_memory",
        "supersede_memory",
        "search_memories",
        "list_recent_memories",
    ]


def test_the_seeds_descriptions_of_what_a_tool_gives_are_ours():
    stored = memento.operations["store_memory"].gives["anyOf"][0]["properties"]
    done, not_done = (one["properties"] for one in memento.operations["supersede_memory"].gives["anyOf"])

    assert {name: stored[name]["description"] for name in ("created", "similar", "action_required")} == {
        "created": "The newly created memory with id, content, confidence, etc.",
        "similar": "Array of similar existing memories that might be outdated",
        "action_required": "Specific action to take if conflicts found, e.g., 'Call supersede_memory(old_id, new_id)'",
    }
    for shape in (done, not_done):
        assert shape["success"]["description"] == "Whether the operation succeeded"
        assert shape["message"]["description"] == "Confirmation or error message"


def test_the_instructions_fit_what_clients_keep():
    assert len(memento.instructions) <= 2_048
