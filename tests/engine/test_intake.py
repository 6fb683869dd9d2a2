"""What is refused at the door, and what is filled in."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from scrubjay.engine.store import intake
from scrubjay.errors import InvalidInput
from scrubjay.values.callers import Provenance
from scrubjay.values.memory import MAX_CONTENT, Kind, NewMemory

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


def admit(content="User lives in Seattle", **fields):
    new = intake.new_memory(content, fields)
    return intake.build_memory(
        new, id="mem_abcdef123456", space="default", user="local", provenance=Provenance(), now=NOW
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"content": ""}, "blank"),
        ({"content": " \t\n "}, "blank"),
        ({"content": "\x00"}, "blank"),
        ({"content": "\u200b \ufeff\u2060"}, "blank"),
        ({"content": "\u3164"}, "blank"),
        ({"content": "x" * (MAX_CONTENT + 1)}, "50,001"),
        ({"content": "half \ud83d"}, "surrogate"),
        ({"content": 5}, "text"),
        ({"content": None}, "text"),
        ({"confidence": 1.5}, "0 to 1"),
        ({"confidence": -0.1}, "0 to 1"),
        ({"confidence": float("nan")}, "0 to 1"),
        ({"confidence": True}, "0 to 1"),
        ({"importance": "high"}, "0 to 1"),
        ({"source": "other"}, "explicit, extracted"),
        ({"category": "foo"}, "preference"),
        ({"tags": ["x"] + [str(n) for n in range(20)]}, "at most 20"),
        ({"tags": "work"}, "list"),
        ({"tags": [""]}, "blank"),
        ({"tags": ["\u200b"]}, "blank"),
        ({"tags": ["t" * 101]}, "101"),
        ({"user_id": ""}, "not blank"),
        ({"user_id": "\u200b"}, "not blank"),
        ({"conversation_id": "a\x00b"}, "control"),
        ({"metadata": {"x": float("inf")}}, "metadata.x is not a finite number"),
        ({"metadata": {"x": "y" * 70_000}}, "bytes"),
        ({"metadata": {"x": object()}}, "JSON"),
        ({"created_at": datetime(2026, 1, 1)}, "zone"),
        ({"created_at": NOW + timedelta(days=1)}, "future"),
        ({"expires_at": "tomorrow"}, "time"),
        ({"title": ""}, "blank"),
        ({"contnet": "typo"}, "content"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_the_reason_said(fields, said):
    content = fields.pop("content", "fine")

    def hand_in():
        new = intake.new_memory(content, fields)
        user = new.user_id if new.user_id is not None else "local"
        intake.build_memory(new, id="mem_1", space="default", user=user, provenance=Provenance(), now=NOW)

    with pytest.raises(InvalidInput) as refusal:
        hand_in()

    assert said in f"{refusal.value.message} {refusal.value.hint}"


@pytest.mark.parametrize(
    "text",
    ["x", "x" * MAX_CONTENT, "nul \x00 inside", "👩‍👩‍👧", "‮right to left", "<script>", "'; drop table", "\u200b."],
)
def test_strange_text_is_kept_to_the_code_point(text):
    assert admit(text).content == text


def test_only_the_content_is_needed():
    memory = admit()

    assert (memory.confidence, str(memory.source), memory.tags) == (1.0, "extracted", ())
    assert memory.created_at == memory.updated_at == memory.accessed_at == NOW


@pytest.mark.parametrize(
    ("one", "other"),
    [("User  lives in\nSeattle", "user lives in seattle"), ("Ｕser lives in Seattle ", "User lives in Seattle")],
)
def test_texts_that_differ_in_case_width_or_space_are_twins(one, other):
    assert intake.fingerprint(admit(one)) == intake.fingerprint(admit(other))


def test_the_same_words_of_another_user_or_space_are_no_twins():
    memory = admit()

    others = [replace(memory, space="other"), replace(memory, context=replace(memory.context, user_id="ann"))]

    assert all(intake.fingerprint(other) != intake.fingerprint(memory) for other in others)


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({"content": "Short\ntext"}, "title", "Short text"),
        ({"content": "x" * 51}, "title", "x" * 50 + "..."),
        ({}, "path", "inbox/user-lives-in-seattle-123456"),
        ({"content": "你好"}, "path", "inbox/t670d9743-123456"),
        ({"content": "Use JWT", "kind": Kind.DECISION, "topic": "Auth strategy"}, "path",
         "decisions/auth-strategy/123456"),
        ({"created_at": datetime(2026, 11, 15, 2, 0, tzinfo=timezone(timedelta(hours=-7)))}, "created_at",
         datetime(2026, 11, 15, 9, 0, tzinfo=UTC)),
    ],
    ids=["a short text is its own title", "a long one gets dots", "a path that a person can read",
         "a hash where there are no letters", "a decision lies under its topic", "a time of another zone"],
)  # fmt: skip
def test_what_was_not_given_is_filled_in(given, field, expected):
    assert getattr(admit(**given), field) == expected


@pytest.mark.parametrize("limit", [0, -1, 1001, 1.5, True, None, "5"])
def test_an_impossible_limit_is_refused(limit):
    with pytest.raises(InvalidInput, match="limit"):
        intake.check_limit(limit)


@pytest.mark.parametrize("name", ["", "Upper", "a--b", "-a", "a_b", "../x", "a" * 101, "ü", None])
def test_a_space_has_a_plain_name(name):
    with pytest.raises(InvalidInput):
        intake.check_space(name)


@pytest.mark.parametrize(("fields", "said"), [({}, "No updates"), ({"version": 7}, "version is not known")])
def test_an_update_of_nothing_or_of_what_nobody_may_set_is_refused(fields, said):
    with pytest.raises(InvalidInput, match=said):
        intake.changes(fields)


def test_a_title_that_was_given_survives_a_new_text():
    memory = admit(title="Home")

    assert intake.retitle(memory, {"content": "User moved to Austin"}).title == "Home"
    assert intake.retitle(admit(), {"content": "User moved to Austin"}).title == "User moved to Austin"


def test_a_new_memory_may_be_a_mapping():
    assert intake.new_memory({"content": "x", "tags": ["a"]}, {}) == NewMemory(content="x", tags=("a",))


@pytest.mark.parametrize(
    "path",
    [
        *("../../x", "a/../../x", "..", "./x", "/etc/x", "a//x", "a/", "\\\\host\\x", "..\\x", "C:/x", "．．/x"),
        *("a\x00b", " ", "a/ .. /b", "x" * 401, 7),
    ],
)
def test_a_path_that_leaves_its_store_is_refused(jay, path):
    line = {"type": "memory", "content": "Tea at four.", "path": path}
    for take in (lambda: jay.store("Tea at four.", path=path), lambda: jay.transfer.import_from([line])):
        with pytest.raises(InvalidInput, match="path"):
            take()

    assert not jay.list()


def test_a_path_that_people_gave_in_their_own_letters_is_kept(jay):
    [memory] = [jay.store("Tea at four.", path="Notes/Tee & Kuchen").memory]

    assert memory.path == "Notes/Tee & Kuchen"
