"""System's acceptance cases S1 to S15, S18, S24, S26 and S27, as its contract settles them."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import product

import pytest

from scrubjay.dialects import base
from scrubjay.dialects.memento import memento
from scrubjay.dialects.system.memories import system
from scrubjay.dialects.validation import Checker
from scrubjay.errors import NotFound
from scrubjay.values.callers import Caller, Role
from scrubjay.values.times import iso


def call(engine, tool, arguments, **terms):
    """One call through the dialect; every body must lie inside the tool's output schema."""
    reply = system.call(engine, tool, arguments, **terms)
    Checker(system.operations[tool].gives).check(reply.body)
    assert reply.body["api_version"] == "1.0.0"
    assert reply.body["success"] is not reply.failed
    return reply


def ok(engine, tool, arguments=None, **terms):
    reply = call(engine, tool, arguments or {}, **terms)
    assert not reply.failed, reply.body
    return reply.body


def refused(engine, tool, arguments=None, **terms):
    reply = call(engine, tool, arguments or {}, **terms)
    assert reply.failed, reply.body
    return reply.body["error"]


def stored(engine, content, **more):
    return ok(engine, "store_memory", {"content": content, **more})["memory_id"]


def recalled(engine, query, **more):
    return ok(engine, "recall_memories", {"query": query, **more})["memories"]


def ids(memories):
    return [memory["memory_id"] for memory in memories]


def member(engine, user):
    return engine.bound_to(caller=Caller(user=user, role=Role.MEMBER, spaces=frozenset({"default"})))


# --- S1, S24: what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"content": "x" * 50_001},
        {"metadata": {"tags": [str(n) for n in range(21)]}},
        {"context": {"timestamp": "2026-11-15T10:00:00"}},
        {"context": {"timestamp": "2030-01-01T00:00:00Z"}},
        {"related_memory_ids": ["mem_unknown"]},
    ],
)
def test_s1_what_cannot_be_stored_is_refused_and_nothing_is_kept(jay, more):
    error = refused(jay, "store_memory", {"content": "x", **more})

    assert error["status"] == 400
    assert ok(jay, "list_memories")["total_count"] == 0


@pytest.mark.parametrize("content", ["x", "x" * 50_000])
def test_s1_the_shortest_and_the_longest_text_are_stored(jay, content):
    assert ok(jay, "store_memory", {"content": content})["content"] == content


def test_s1_twenty_tags_are_stored(jay):
    assert stored(jay, "x", metadata={"tags": [str(n) for n in range(20)]})


def test_s24_an_error_has_every_field(jay):
    error = refused(jay, "update_memory", {"memory_id": "mem_unknown", "updates": {"importance": 1}})

    assert error["code"] == "MEMORY_NOT_FOUND"
    assert error["status"] == 404
    assert error["details"]["memory_id"] == "mem_unknown"
    assert error["details"]["searched_in"] == ["active", "archived"]
    assert re.fullmatch(r"req_[a-z0-9]{12}", error["request_id"])


@pytest.mark.parametrize("id", ["", "   ", "x" * 257, "a\x00b"])
@pytest.mark.parametrize("tool", ["update_memory", "forget_memory"])
def test_an_impossible_id_is_400_and_an_unknown_one_404(jay, tool, id):
    more = {"updates": {"importance": 0.5}} if tool == "update_memory" else {}

    assert refused(jay, tool, {"memory_id": id, **more})["status"] == 400
    assert refused(jay, tool, {"memory_id": "mem_unknown", **more})["status"] == 404


def test_more_than_a_hundred_filter_values_are_413(jay):
    tags = {"filters": {"tags": [str(number) for number in range(101)]}}

    assert refused(jay, "recall_memories", {"query": "x", **tags})["status"] == 413
    assert refused(jay, "list_memories", tags)["code"] == "QUERY_TOO_COMPLEX"


# --- S2 to S4: storing -----------------------------------------------------------------------------------------------


def test_s2_a_memory_is_enriched(real_jay):
    body = ok(real_jay, "store_memory", {"content": "User prefers dark mode in all applications"})

    assert body["category"] == "preference"
    assert 0 < len(body["auto_tags"]) <= 5
    assert 0 <= body["importance"] <= 1
    assert body["embeddings_generated"] is True
    assert body["links_created"] == 0
    assert re.fullmatch(r"mem_[a-z0-9]{12}", body["memory_id"])


def test_what_is_given_is_not_overridden(jay):
    body = ok(
        jay,
        "store_memory",
        {"content": "User prefers dark mode", "metadata": {"category": "custom", "importance": 0.9, "tags": ["ui"]}},
    )

    assert (body["category"], body["importance"]) == ("custom", 0.9)
    [memory] = ok(jay, "list_memories")["memories"]
    assert memory["tags"] == ["ui"]


def test_s3_the_same_content_twice_is_409_with_the_first_id(jay):
    first = stored(jay, "User lives in Seattle")

    reply = call(jay, "store_memory", {"content": "user lives  in SEATTLE"})

    assert reply.body["error"]["code"] == "DUPLICATE_MEMORY"
    assert reply.body["error"]["status"] == 409
    assert reply.body["memory_id"] == reply.body["error"]["details"]["memory_id"] == first
    assert ok(jay, "list_memories")["total_count"] == 1


def test_a3_8_superseded_expired_and_deleted_twins_do_not_block(jay, clock):
    stored(jay, "The permit is valid", metadata={"expires_at": iso(clock() + timedelta(hours=1))})
    clock.move(hours=2)
    second = stored(jay, "The permit is valid")
    ok(jay, "forget_memory", {"memory_id": second})

    assert stored(jay, "The permit is valid")


def test_the_same_words_of_another_user_are_no_duplicate(jay):
    stored(jay, "User lives in Seattle", context={"user_id": "ann"})

    assert stored(jay, "User lives in Seattle", context={"user_id": "bob"})


def test_s4_related_memories_are_linked_or_nothing_is_stored(jay):
    one = stored(jay, "The lamp is broken")

    assert ok(jay, "store_memory", {"content": "Buy bulbs", "related_memory_ids": [one]})["links_created"] == 1
    error = refused(jay, "store_memory", {"content": "Buy more", "related_memory_ids": [one, "mem_nope"]})
    assert error["details"]["memory_id"] == "mem_nope"
    assert ok(jay, "list_memories")["total_count"] == 2


def test_without_weights_the_new_fact_comes_before_the_stale_one(real_jay):
    for name in ("Mara", "Jonas", "Ilse", "Tariq", "Oona"):
        stored(real_jay, f"{name} works at the harbour office")
        stored(real_jay, f"{name} no longer works at the harbour office but at the mill")

        first, *_ = recalled(real_jay, f"Where does {name} work?")

        assert first["content"] == f"{name} no longer works at the harbour office but at the mill"


# --- S5 to S10: recall -----------------------------------------------------------------------------------------------


def test_recall_says_how_far_each_memory_is_an_answer(jay):
    stored(jay, "The lamp is broken")
    stored(jay, "Anna plays chess on Mondays")

    found = ok(jay, "recall_memories", {"query": "broken lamp"})

    assert found["verdict"] == found["memories"][0]["verdict"] == "strong"
    assert found["memories"][1]["verdict"] != "strong"


def test_s5_weights_that_are_left_out_count_nothing(jay):
    stored(jay, "The lamp is broken")
    weights = {"semantic_similarity": 0.6, "recency": 0.1, "importance": 0.3}

    [memory] = recalled(jay, "broken lamp", ranking={"weights": weights})

    scores = memory["scores"]
    expected = 0.6 * scores["semantic_similarity"] + 0.1 * scores["recency"] + 0.3 * scores["importance"]
    assert scores["combined"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("rest", [0.399, 0.4, 0.401])
def test_a3_1_weights_may_miss_their_sum_by_a_thousandth(jay, rest):
    assert ok(jay, "recall_memories", {"query": "x", "ranking": {"weights": {"recency": 0.6, "importance": rest}}})


@pytest.mark.parametrize(
    "weights",
    [
        {"recency": 0.6},
        {"recency": 0.6, "importance": 0.6},
        {"recency": 1.2},
        {"recency": 0.6, "importance": 0.3989},
        {"recency": 0.6, "importance": 0.4011},
    ],
)
def test_s6_weights_that_do_not_sum_to_one_are_refused(jay, weights):
    assert refused(jay, "recall_memories", {"query": "x", "ranking": {"weights": weights}})["status"] == 400


def test_s7_the_default_weights_reproduce_the_combined_score(jay, clock):
    stored(jay, "The lamp is broken", metadata={"importance": 0.9})
    clock.move(days=90)

    [memory] = recalled(jay, "broken lamp")

    scores = memory["scores"]
    assert scores["recency"] == 0.5
    expected = (
        0.5 * scores["semantic_similarity"]
        + 0.2 * scores["recency"]
        + 0.2 * scores["importance"]
        + 0.1 * scores["access_frequency"]
    )
    assert scores["combined"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "filters",
    [
        {"categories": ["goal"]},
        {"tags": ["attic", "unused"]},
        {"date_range": {"start": "2026-11-10T00:00:00Z", "end": "2026-11-11T00:00:00+02:00"}},
        {"min_importance": 0.85},
        {"user_id": "ann"},
        {"conversation_id": "c1"},
        {"access_level": ["public"]},
    ],
    ids=lambda filters: next(iter(filters)),
)
def test_s8_each_filter_narrows(jay, filters):
    for number in range(5):
        stored(jay, f"The lamp in room {number} is broken", metadata={"importance": 0.5, "category": "fact"})
    wanted = stored(
        jay,
        "The lamp in the attic is broken",
        context={"user_id": "ann", "conversation_id": "c1", "timestamp": "2026-11-10T12:00:00Z"},
        metadata={"category": "goal", "tags": ["attic"], "importance": 0.9, "access_level": "public"},
    )

    body = ok(jay, "recall_memories", {"query": "broken lamp", "filters": filters})

    assert ids(body["memories"]) == [wanted]
    assert body["total_results"] == 1


def test_s8_a_reversed_range_is_refused(jay):
    reversed_range = {"start": "2026-11-11T00:00:00Z", "end": "2026-11-10T00:00:00Z"}

    assert refused(jay, "recall_memories", {"query": "x", "filters": {"date_range": reversed_range}})["status"] == 400


def test_s8_totals_are_counted_before_paging(jay):
    for number in range(12):
        stored(jay, f"The lamp in room {number} is broken")

    body = ok(jay, "recall_memories", {"query": "broken lamp", "limit": 5, "offset": 10})

    assert (body["total_results"], body["returned_count"], len(body["memories"])) == (12, 2, 2)


def test_s9_access_counts_grow_and_the_next_call_sees_them(jay, clock):
    stored(jay, "The lamp is broken")
    [first] = recalled(jay, "lamp")
    assert (first["access_count"], first["last_accessed"]) == (0, first["created_at"])
    clock.move(hours=1)

    recalled(jay, "lamp")
    [third] = recalled(jay, "lamp")

    assert third["access_count"] == 2
    assert third["last_accessed"] == iso(clock())
    assert third["scores"]["access_frequency"] > 0


@pytest.mark.parametrize("decay", ["linear", "exponential", "logarithmic"])
def test_s9_every_decay_is_one_when_new_and_falls_with_age(jay, clock, decay):
    stored(jay, "The lamp is broken")
    seen = []
    for days in (0, 1, 10, 90, 100):
        clock.move(days=days)
        [memory] = recalled(jay, "lamp", ranking={"recency_decay": decay})
        seen.append(memory["scores"]["recency"])

    assert seen[0] == 1.0
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen)


def test_s10_expired_and_deleted_memories_are_absent(jay, clock):
    stored(jay, "The lamp is rented", metadata={"expires_at": iso(clock() + timedelta(hours=1))})
    gone = stored(jay, "The lamp is stolen")
    ok(jay, "forget_memory", {"memory_id": gone})
    clock.move(hours=2)

    assert recalled(jay, "lamp", include_archived=True) == []


# --- S11 to S13: updating --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "text"),
    [("replace", "two"), ("append", "one\ntwo"), ("prepend", "two\none")],
)
def test_s11_texts_are_merged_as_asked(jay, strategy, text):
    memory = stored(jay, "one")

    body = ok(
        jay,
        "update_memory",
        {"memory_id": memory, "updates": {"content": "two"}, "merge_strategy": strategy, "reason": "more is known"},
    )

    assert body["version"] == 2
    assert body["embeddings_regenerated"] is True
    assert jay.get(memory).content == text
    [former] = jay.history(memory)
    assert (former.id, former.memory.content, former.reason) == (body["previous_version_id"], "one", "more is known")


def test_a3_25_white_space_at_the_joint_is_enough(jay):
    memory = stored(jay, "one ")

    ok(jay, "update_memory", {"memory_id": memory, "updates": {"content": "two"}, "merge_strategy": "append"})

    assert jay.get(memory).content == "one two"


def test_s11_vectors_are_made_anew_only_when_the_text_changed(jay):
    memory = stored(jay, "one")

    body = ok(jay, "update_memory", {"memory_id": memory, "updates": {"importance": 0.9}})

    assert body["embeddings_regenerated"] is False
    assert body["updated_fields"] == ["importance"]


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"add": ["c"], "remove": ["a"]}, ["b", "c"]),
        ({"replace": ["x"]}, ["x"]),
        ({"replace": ["x"], "add": ["y"]}, ["x", "y"]),
        ({"replace": ["x"], "add": ["y"], "remove": ["x"]}, ["y"]),
        ({"add": ["a"]}, ["a", "b"]),
    ],
)
def test_s12_tags_are_replaced_then_added_then_removed(jay, change, left):
    memory = stored(jay, "one", metadata={"tags": ["a", "b"]})

    ok(jay, "update_memory", {"memory_id": memory, "updates": {"tags": change}})

    assert list(jay.get(memory).tags) == left


def test_s12_more_than_twenty_tags_are_refused(jay):
    memory = stored(jay, "one", metadata={"tags": [str(n) for n in range(15)]})

    error = refused(jay, "update_memory", {"memory_id": memory, "updates": {"tags": {"add": list("abcdef")}}})

    assert error["status"] == 400
    assert jay.get(memory).version == 1


def test_s13_a_null_expiry_clears_it(jay, clock):
    memory = stored(jay, "one", metadata={"expires_at": iso(clock() + timedelta(days=1))})

    ok(jay, "update_memory", {"memory_id": memory, "updates": {"expires_at": None}})

    assert jay.get(memory).expires_at is None


def test_a_change_against_another_version_is_409(jay):
    memory = stored(jay, "one")
    ok(jay, "update_memory", {"memory_id": memory, "updates": {"importance": 0.9}})
    again = {"memory_id": memory, "updates": {"importance": 0.1}}

    assert refused(jay, "update_memory", {**again, "expected_version": 1})["status"] == 409
    assert refused(jay, "update_memory", again, if_version=1)["code"] == "CONFLICT"
    assert ok(jay, "update_memory", again, if_version=2)["version"] == 3


def test_the_text_of_a_decision_is_422(jay):
    decision = jay.store("Use JWT", kind="decision", topic="auth").memory.id

    error = refused(jay, "update_memory", {"memory_id": decision, "updates": {"content": "Use sessions"}})

    assert error["status"] == 422
    assert "Store a new decision" in error["details"]["hint"]


# --- S14, S15: forgetting --------------------------------------------------------------------------------------------


def test_s14_a_soft_delete_says_until_when_and_how_to_get_it_back(jay, clock):
    memory = stored(jay, "one")

    body = ok(jay, "forget_memory", {"memory_id": memory, "reason": "outdated", "reason_details": "moved"})

    assert body["deletion_type"] == "soft"
    assert body["recoverable_until"] == iso(clock() + timedelta(days=30))
    assert re.fullmatch(r"backup_[a-z0-9]{8,}", body["backup_id"])
    assert jay.recover(body["backup_id"]).id == memory
    assert refused(jay, "forget_memory", {"memory_id": "mem_gone"})["status"] == 404


def test_a3_28_why_a_memory_was_changed_and_forgotten_is_read_in_its_history(jay):
    memory = stored(jay, "one")
    ok(jay, "update_memory", {"memory_id": memory, "updates": {"content": "two"}, "reason": "more is known"})
    ok(jay, "forget_memory", {"memory_id": memory, "reason": "privacy", "reason_details": "asked by mail"})

    assert [former.reason for former in jay.history(memory)] == ["privacy: asked by mail", "more is known"]
    ok(jay, "forget_memory", {"memory_id": memory, "hard_delete": True})
    with pytest.raises(NotFound):
        jay.history(memory)


def test_s14_forgetting_again_is_404_but_erasing_for_good_works(jay):
    memory = stored(jay, "one")
    ok(jay, "forget_memory", {"memory_id": memory})

    assert refused(jay, "forget_memory", {"memory_id": memory})["status"] == 404
    body = ok(jay, "forget_memory", {"memory_id": memory, "hard_delete": True})
    assert body["deletion_type"] == "hard"
    assert not {"recoverable_until", "backup_id"} & set(body)


def test_s14_without_retention_it_is_purged_by_itself(jay, clock):
    memory = stored(jay, "one")
    ok(jay, "forget_memory", {"memory_id": memory, "retention_period_days": 0})
    later = stored(jay, "two")
    ok(jay, "forget_memory", {"memory_id": later})

    assert jay.parts.housekeeper.purge() == 1
    clock.move(days=31)
    assert jay.parts.housekeeper.purge() == 1
    assert jay.parts.housekeeper.purge() == 0


def test_s15_cascade_forgets_what_a_client_linked_one_step_far(jay):
    far = stored(jay, "far")
    near = stored(jay, "near", related_memory_ids=[far])
    memory = stored(jay, "it", related_memory_ids=[near])

    body = ok(jay, "forget_memory", {"memory_id": memory, "cascade_related": True})

    assert body["related_memories_affected"] == 1
    assert ids(ok(jay, "list_memories")["memories"]) == [far]


def test_links_with_what_one_may_not_see_are_not_counted(jay):
    team = frozenset({"default"})
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, spaces=team))
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=team))
    shared = stored(ann, "the report is due", metadata={"access_level": "shared"})
    stored(bob, "of which nobody may know", related_memory_ids=[shared])

    def counted(engine):
        return ok(engine, "list_memories", {"include_stats": True})["memories"][-1]["stats"]["link_count"]

    assert counted(bob) == 1
    assert counted(ann) == 0
    assert ok(ann, "forget_memory", {"memory_id": shared})["related_memories_affected"] == 0


def test_s15_without_cascade_the_links_touched_are_counted(jay):
    near = stored(jay, "near")
    memory = stored(jay, "it", related_memory_ids=[near])

    assert ok(jay, "forget_memory", {"memory_id": memory})["related_memories_affected"] == 1
    assert ids(ok(jay, "list_memories")["memories"]) == [near]


# --- S18: listing ----------------------------------------------------------------------------------------------------

SORTS = ["created_at", "updated_at", "last_accessed", "importance", "access_count", "content_length"]


def varied(engine, clock, number=25):
    made = []
    for n in range(number):
        made.append(stored(engine, f"memory {n} " + "x" * (n * 7 % 13), metadata={"importance": (n * 3 % 10) / 10}))
        clock.move(seconds=n % 3)
    return made


def walk(engine, sort, *, by):
    """All pages of a list, by cursor or by offset."""
    pages, pagination = [], {"limit": 4}
    while True:
        body = ok(engine, "list_memories", {"sort": sort, "pagination": pagination})
        pages.append(body)
        if not body["pagination"]["has_more"]:
            assert body["pagination"]["next_cursor"] is None
            assert body["pagination"]["next_offset"] is None
            return pages
        pagination = {"limit": 4, by: body["pagination"][f"next_{by}"]}


@pytest.mark.parametrize("field", SORTS)
def test_s18_every_walk_shows_every_memory_once(jay, clock, field):
    made = varied(jay, clock)

    for order, by in product(("asc", "desc"), ("cursor", "offset")):
        pages = walk(jay, {"field": field, "order": order}, by=by)

        shown = [memory for page in pages for memory in page["memories"]]
        assert sorted(ids(shown)) == sorted(made)
        values = [len(memory["content"]) if field == "content_length" else memory[field] for memory in shown]
        assert values == sorted(values, reverse=order == "desc")
        assert {page["total_count"] for page in pages} == {25}


@pytest.mark.parametrize("by", ["cursor", "offset"])
def test_s18_a_page_without_room_for_all_goes_on_with_what_it_left_out(jay, clock, monkeypatch, by):
    monkeypatch.setattr(base, "ROOM", 1000)  # for two or three of these, though four were asked for
    made = varied(jay, clock, 10)

    pages = walk(jay, {}, by=by)

    assert sorted(ids(memory for page in pages for memory in page["memories"])) == sorted(made)
    assert {page["total_count"] for page in pages} == {10}
    for page in pages:
        assert page["returned_count"] == len(page["memories"])
    assert pages[0]["left_out"] == 4 - len(pages[0]["memories"]) > 0


def test_a_recall_without_room_for_all_counts_what_it_returned(jay, clock, monkeypatch):
    monkeypatch.setattr(base, "ROOM", 1500)
    varied(jay, clock, 10)

    body = ok(jay, "recall_memories", {"query": "memory", "limit": 8})

    assert body["total_results"] == 10
    assert body["returned_count"] == len(body["memories"]) == 8 - body["left_out"] > 0


def test_s18_a_cursor_neither_repeats_nor_skips_under_inserts(jay, clock):
    made = varied(jay, clock, 12)
    first = ok(jay, "list_memories", {"pagination": {"limit": 5}})
    varied(jay, clock, 0)
    stored(jay, "came in between")

    rest = ok(jay, "list_memories", {"pagination": {"limit": 50, "cursor": first["pagination"]["next_cursor"]}})

    assert sorted(ids(first["memories"] + rest["memories"])) == sorted(made)


SPOILT = [lambda c: c[:-2], lambda c: ("B" if c[0] == "A" else "A") + c[1:], lambda _: "nonsense", lambda _: ""]


@pytest.mark.parametrize("spoil", SPOILT)
def test_a_forged_cursor_is_refused(jay, clock, spoil):
    varied(jay, clock, 6)
    cursor = ok(jay, "list_memories", {"pagination": {"limit": 2}})["pagination"]["next_cursor"]

    error = refused(jay, "list_memories", {"pagination": {"limit": 2, "cursor": spoil(cursor)}})

    assert error["status"] == 400


def test_a_cursor_of_another_caller_or_another_list_is_refused(jay, clock):
    varied(jay, clock, 6)
    cursor = ok(jay, "list_memories", {"pagination": {"limit": 2}})["pagination"]["next_cursor"]
    other = jay.bound_to(caller=Caller(user="eve"))
    pagination = {"pagination": {"limit": 2, "cursor": cursor}}

    assert refused(other, "list_memories", pagination)["status"] == 400
    assert refused(jay, "list_memories", {"sort": {"order": "asc"}, **pagination})["status"] == 400
    assert refused(jay, "list_memories", {"pagination": {"cursor": cursor, "offset": 2}})["status"] == 400


def test_s18_metadata_only_and_statistics(jay, clock):
    one = stored(jay, "one")
    stored(jay, "four", related_memory_ids=[one])
    clock.move(days=20.8)

    body = ok(jay, "list_memories", {"include_content": False, "include_stats": True, "sort": {"order": "asc"}})

    assert all("content" not in memory for memory in body["memories"])
    assert body["memories"][0]["stats"] == {
        "content_length": 3,
        "link_count": 1,
        "days_since_creation": 21,
        "days_since_access": 21,
    }


def test_s18_only_active_memories_are_listed_unless_asked(jay):
    kept, gone = stored(jay, "kept"), stored(jay, "gone")
    ok(jay, "forget_memory", {"memory_id": gone})

    assert ids(ok(jay, "list_memories")["memories"]) == [kept]
    [deleted] = ok(jay, "list_memories", {"filters": {"status": ["deleted"]}})["memories"]
    assert (deleted["memory_id"], deleted["status"]) == (gone, "deleted")


def test_s18_what_has_expired_is_hidden_among_the_active_and_not_among_the_archived_and_deleted(jay, clock):
    expiry = {"metadata": {"expires_at": iso(clock() + timedelta(days=1))}}
    names = {status: stored(jay, status, **expiry) for status in ("active", "archived", "deleted")}
    ok(jay, "archive_memory", {"memory_id": names["archived"]})
    clock.move(days=2)

    def listed(status):
        return ids(ok(jay, "list_memories", {"filters": {"status": [status]}})["memories"])

    assert (listed("active"), listed("archived"), listed("deleted")) == ([], [names["archived"]], [])
    jay.prune()
    assert set(listed("deleted")) == {names["active"], names["deleted"]}


def test_an_importance_range_whose_ends_are_swapped_is_refused(jay):
    swapped = {"filters": {"importance_range": {"min": 0.9, "max": 0.1}}}

    assert refused(jay, "list_memories", swapped)["status"] == 400


# --- S26: idempotency ------------------------------------------------------------------------------------------------


def test_s26_the_same_key_twice_is_one_memory_and_the_same_answer(jay, clock):
    first = ok(jay, "store_memory", {"content": "one"}, key="k1")
    clock.move(hours=1)

    again = ok(jay, "store_memory", {"content": "one"}, key="k1")

    assert again == first
    assert ok(jay, "list_memories")["total_count"] == 1


def test_the_same_key_for_another_space_is_422_and_not_taken_for_done(jay):
    ok(jay, "store_memory", {"content": "one"}, key="k1")

    assert refused(jay.bound_to(spaces=("work",)), "store_memory", {"content": "one"}, key="k1")["status"] == 422


def test_the_same_key_with_another_body_is_422(jay):
    ok(jay, "store_memory", {"content": "one"}, key="k1")

    assert refused(jay, "store_memory", {"content": "two"}, key="k1")["status"] == 422
    assert refused(jay, "forget_memory", {"memory_id": "mem_x"}, key="k1")["status"] == 422


def test_keys_of_two_callers_are_independent(jay):
    first = ok(jay, "store_memory", {"content": "one"}, key="k1")
    other = ok(jay.bound_to(caller=Caller(user="bob")), "store_memory", {"content": "one"}, key="k1")

    assert first["memory_id"] != other["memory_id"]


def test_after_a_day_a_key_is_free(jay, clock):
    ok(jay, "update_memory", {"memory_id": stored(jay, "one"), "updates": {"importance": 0.9}}, key="k1")
    clock.move(hours=25)

    assert ok(jay, "store_memory", {"content": "two"}, key="k1")["memory_id"]


def test_updates_and_forgets_are_replayed_too(jay):
    memory = stored(jay, "one")
    change = {"memory_id": memory, "updates": {"content": "two"}, "merge_strategy": "append"}
    first = ok(jay, "update_memory", change, key="k1")
    assert ok(jay, "update_memory", change, key="k1") == first
    assert jay.get(memory).content == "one\ntwo"

    gone = ok(jay, "forget_memory", {"memory_id": memory}, key="k2")
    assert ok(jay, "forget_memory", {"memory_id": memory}, key="k2") == gone
    assert ok(jay, "update_memory", change, key="k1") == first


def test_an_update_is_replayed_though_the_memory_would_not_take_it_twice(jay):
    change = {"memory_id": stored(jay, "x" * 20_000), "updates": {"content": "y" * 20_000}, "merge_strategy": "append"}
    first = ok(jay, "update_memory", change, key="k1")

    assert ok(jay, "update_memory", change, key="k1") == first


# --- S27 and the other dialects --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "seen"), [("private", False), ("shared", True), ("public", True)])
def test_s27_who_recalls_anothers_memory(jay, level, seen):
    team = frozenset({"default"})
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, spaces=team))
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.MEMBER, spaces=team))
    memory = stored(ann, "The lamp is broken", metadata={"access_level": level})

    assert (ids(recalled(bob, "lamp")) == [memory]) is seen
    assert (ids(ok(bob, "list_memories")["memories"]) == [memory]) is seen
    change = {"memory_id": memory, "updates": {"importance": 0.9}}
    if not seen:
        assert refused(bob, "update_memory", change)["status"] == 404
    assert refused(bob, "recall_memories", {"query": "x", "filters": {"user_id": "ann"}})["status"] == 403
    assert refused(bob, "store_memory", {"content": "x", "context": {"user_id": "ann"}})["status"] == 403


@pytest.mark.parametrize(("level", "status"), [("private", 404), ("shared", 404), ("public", 403)])
def test_s27_without_a_grant_what_is_public_in_a_named_space_is_seen_and_not_changed(jay, level, status):
    memory = stored(jay, "The lamp is broken", metadata={"access_level": level})
    guest = Caller(user="otto", role=Role.MEMBER, spaces=frozenset({"elsewhere"}))
    naming, silent = jay.bound_to(caller=guest, spaces=("default",)), jay.bound_to(caller=guest, spaces=("elsewhere",))

    updates = {"updates": {"importance": 0.9}}
    for tool, more in (("update_memory", updates), ("forget_memory", {}), ("archive_memory", {})):
        assert refused(naming, tool, {"memory_id": memory, **more})["status"] == status
        assert refused(silent, tool, {"memory_id": memory, **more})["status"] == 404
    assert ok(naming, "list_memories")["total_count"] == (level == "public")
    related = {"content": "Another lamp", "related_memory_ids": [memory]}
    assert refused(naming, "store_memory", related)["status"] == 403  # it may not write there at all


def test_s27_a_reader_may_see_but_not_change(jay):
    team = frozenset({"default"})
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, spaces=team))
    rae = jay.bound_to(caller=Caller(user="rae", role=Role.READER, spaces=team))
    memory = stored(ann, "The lamp is broken", metadata={"access_level": "shared"})

    assert refused(rae, "update_memory", {"memory_id": memory, "updates": {"importance": 0.9}})["status"] == 403
    assert refused(rae, "forget_memory", {"memory_id": memory})["status"] == 403
    assert refused(rae, "store_memory", {"content": "x"})["status"] == 403


def test_what_one_dialect_stores_the_other_finds(jay):
    by_system = stored(jay, "The spare key hangs behind the boiler")
    by_memento = memento.call(jay, "store_memory", {"content": "The boiler is serviced in May"}).body["created"]["id"]

    found = memento.call(jay, "search_memories", {"query": "boiler"}).body["memories"]

    assert {memory["id"] for memory in found} == {by_system, by_memento}
    assert set(ids(recalled(jay, "boiler"))) == {by_system, by_memento}


# --- S19: statistics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ({"scope": "user"}, 400),
        ({"scope": "conversation"}, 400),
        ({"scope": "user", "scope_id": "nobody"}, 404),
        ({"scope_id": "nobody"}, 404),
        ({"scope": "conversation", "scope_id": "nowhere"}, 404),
        ({"scope": "category", "scope_id": "foo"}, 404),
        ({"time_range": {"start": "2026-11-11T00:00:00Z", "end": "2026-11-10T00:00:00Z"}}, 400),
    ],
)
def test_s19_what_cannot_be_counted_is_refused(jay, arguments, status):
    stored(jay, "one")

    assert refused(jay, "get_memory_stats", arguments)["status"] == status


def test_s19_only_the_metrics_asked_for_are_shown(jay):
    body = ok(jay, "get_memory_stats", {"metrics": ["count", "health_score"]})

    assert set(body["statistics"]) == {"count", "health_score"}


def test_s19_all_ten_metrics_are_shown_by_default_and_add_up(jay, clock):
    kept = stored(jay, "kept", metadata={"category": "goal", "importance": 0.9})
    soft = stored(jay, "soft", metadata={"category": "fact", "importance": 0.5})
    hard = stored(jay, "hard", metadata={"category": "fact", "importance": 0.1})
    ok(jay, "forget_memory", {"memory_id": soft})
    ok(jay, "forget_memory", {"memory_id": hard, "hard_delete": True})
    recalled(jay, "kept")
    clock.move(hours=1)

    body = ok(jay, "get_memory_stats", {"include_trends": True})
    numbers = body["statistics"]

    assert len(numbers) == 10
    assert numbers["count"] == {"total": 3, "active": 1, "archived": 0, "deleted": 2, "expired": 0}
    assert numbers["category_distribution"] == {"fact": 2, "goal": 1}
    assert numbers["importance_distribution"] == {"high": 1, "medium": 1, "low": 1}
    assert (numbers["deletion_rate"]["soft_deletes"], numbers["deletion_rate"]["hard_deletes"]) == (1, 1)
    assert numbers["access_patterns"]["most_accessed_memory_id"] == kept
    assert numbers["access_patterns"]["total_recalls"] == 1
    assert body["trends"]["memory_count"][-1]["value"] == 3


@pytest.mark.parametrize("granularity", ["hour", "day", "week", "month"])
def test_s19_the_last_point_of_every_trend_is_the_total(jay, clock, granularity):
    for number in range(5):
        stored(jay, f"memory {number}")
        clock.move(days=9)

    body = ok(jay, "get_memory_stats", {"include_trends": True, "granularity": granularity, "metrics": ["count"]})

    values = [point["value"] for point in body["trends"]["memory_count"]]
    assert values == sorted(values)
    assert values[-1] == body["statistics"]["count"]["total"] == 5


def counted(engine, **arguments):
    return ok(engine, "get_memory_stats", {"metrics": ["count"], **arguments})["statistics"]["count"]["total"]


def test_s19_a_member_counts_only_what_it_may_see(jay):
    ann, bob = member(jay, "ann"), member(jay, "bob")
    stored(ann, "private to Ann")
    stored(ann, "for all", metadata={"access_level": "shared"})

    assert counted(bob, scope="global") == 1
    assert refused(bob, "get_memory_stats", {"scope": "user", "scope_id": "ann"})["status"] == 403
    assert refused(bob, "get_memory_stats", {"scope_id": "ann"})["status"] == 403
    assert counted(jay, scope="global") == 2


def test_a3_9_without_a_scope_it_is_what_the_caller_owns(jay):
    ann, bob = member(jay, "ann"), member(jay, "bob")
    stored(ann, "private to Ann")
    stored(ann, "for all", metadata={"access_level": "shared"})

    assert (counted(ann), counted(bob), counted(jay)) == (2, 0, 2)


def test_a3_9_an_id_without_a_scope_is_a_users(jay):
    stored(jay, "of one user", context={"user_id": "ann"})
    stored(jay, "of another", context={"user_id": "bob"})

    body = ok(jay, "get_memory_stats", {"scope_id": "ann", "metrics": ["count"]})

    assert (body["scope"], body["scope_id"]) == ("user", "ann")
    assert body["statistics"]["count"]["total"] == 1


# --- the rarer errors ------------------------------------------------------------------------------------------------


def test_where_words_are_not_to_be_enough_an_absent_model_is_503(open_engine):
    jay = open_engine(None, strict_embedding=True)

    assert refused(jay, "store_memory", {"content": "one"})["status"] == 503
    assert refused(jay, "recall_memories", {"query": "one"})["code"] == "UNAVAILABLE"
    assert ok(jay, "list_memories")["total_count"] == 0


def test_past_the_quota_a_store_is_507_and_forgetting_makes_room(open_engine):
    jay = open_engine(quota=2)
    one, _ = stored(jay, "one"), stored(jay, "two")

    error = refused(jay, "store_memory", {"content": "three"})
    assert (error["code"], error["status"]) == ("QUOTA_EXCEEDED", 507)
    assert stored(jay, "three", context={"user_id": "ann"})

    ok(jay, "forget_memory", {"memory_id": one})
    assert stored(jay, "three")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("store_memory", {"content": "one"}),
        ("recall_memories", {"query": "one"}),
        ("update_memory", {"memory_id": "mem_1", "updates": {"importance": 0.9}}),
        ("forget_memory", {"memory_id": "mem_1"}),
        ("list_memories", {}),
        ("get_memory_stats", {}),
    ],
)
def test_a_store_that_fails_is_500_and_names_no_path(jay, tmp_path, tool, arguments):
    jay.close()

    error = refused(jay, tool, arguments)

    assert error["status"] == 500
    assert str(tmp_path) not in str(error)


def test_it_says_when_a_memory_expires(jay, clock):
    at = iso(clock() + timedelta(days=1))
    made = ok(jay, "store_memory", {"content": "The lamp is rented", "metadata": {"expires_at": at}})
    kept = ok(jay, "store_memory", {"content": "The lamp is red"})

    assert made["expires_at"] == at
    assert "expires_at" not in kept
    shown = [
        *ok(jay, "list_memories", {})["memories"],
        *ok(jay, "recall_memories", {"query": "lamp"})["memories"],
    ]
    assert {one["memory_id"]: one.get("expires_at") for one in shown} == {
        made["memory_id"]: at, kept["memory_id"]: None,
    }  # fmt: skip
    later = iso(clock() + timedelta(days=2))
    assert (
        ok(jay, "update_memory", {"memory_id": kept["memory_id"], "updates": {"expires_at": later}})["expires_at"]
        == later
    )
