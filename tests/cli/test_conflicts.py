"""Doubts and duplicates on the command line, and the memories of a day."""

from __future__ import annotations

import pytest

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from tests.conflict import open_conflict


@pytest.fixture
def pair(stored, home):
    older, newer = stored("User drinks tea"), stored("User drinks coffee")
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        open_conflict(jay, jay.get(newer), jay.get(older))
    return older, newer


def test_the_same_said_again_is_noted_and_opens_no_conflict(call, stored):
    older = stored("User drinks tea")

    done = call("store", "user drinks tea")

    assert f"It says the same as: User drinks tea ({older})" in done.err
    assert "supersede" not in done.err
    assert call("conflicts", "--json").json == []


def test_nothing_is_in_doubt_in_an_empty_memory(call):
    done = call("conflicts")

    assert (done.code, done.out) == (0, "")


def test_an_open_pair_is_listed_and_settled_by_keeping(call, pair):
    [line] = call("conflicts").out.splitlines()
    assert line.split("\t")[1::2][:2] == list(pair)

    assert "kept" in call("conflicts", "--keep", *pair).out

    assert call("conflicts", "--json").json == []


def test_an_open_pair_is_settled_by_superseding(call, pair):
    done = call("conflicts", "--supersede", *pair, "--json")

    assert done.json == {"old": pair[0], "new": pair[1], "settled": "superseded"}
    assert [memory["id"] for memory in call("list", "--json").json] == [pair[1]]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--keep", "mem_1"), 2),
        (("--keep", "mem_1", "mem_2"), 3),
        (("--supersede", "mem_1", "mem_2"), 3),
        (("--keep", "a", "b", "--supersede", "a", "b"), 2),
        (("--limit", "0"), 2),
    ],
)
def test_a_wrong_pair_is_refused(call, pair, options, code):
    assert call("conflicts", *options).code == code
    assert len(call("conflicts", "--json").json) == 1


def test_duplicates_are_listed(call, stored):
    twins = stored("User drinks tea"), stored("User drinks tea")

    [found] = call("duplicates", "--json").json

    assert (found["older"]["id"], found["newer"]["id"]) == twins
    assert "drinks tea" in call("duplicates").out


def test_no_duplicates_is_no_error(call, stored):
    stored("User drinks tea")

    assert (call("duplicates").code, call("duplicates").out) == (0, "")


def test_doctor_tells_of_duplicates(call, stored):
    for _ in range(2):
        stored("User drinks tea")

    findings = {one["check"]: one for one in call("doctor", "--json").json["findings"]}

    assert findings["duplicates"]["state"] == "warning"
    assert findings["duplicates"]["do"] == "scrubjay duplicates"


def test_a_day_is_listed_without_a_query(call, stored):
    then = '{"content": "then", "created_at": "2026-05-07T12:00:00Z"}'
    later = '{"content": "later", "created_at": "2026-05-08T00:00:00Z"}'
    call("import", "-", stdin=f"{then}\n{later}")
    stored("today")

    def listed(*options):
        return [memory["content"] for memory in call("list", *options, "--json").json]

    assert listed("--on", "2026-05-07") == ["then"]
    assert listed("--on", "2026-05") == ["later", "then"]
    assert listed("--on", "May 2026") == ["later", "then"]
    assert listed("--on", "today") == ["today"]
    assert listed("--since", "2026-05-08", "--until", "2026-05-08") == ["later"]
    assert listed("--on", "2026-05", "--since", "2026-05-08") == ["later"]


@pytest.mark.parametrize("when", ["", "whenever", "2026-13-01", "99", "in", "2026-05-07 and 2026-05-08"])
def test_what_is_no_day_is_refused(call, when):
    done = call("list", "--on", when)

    assert done.code == 2
    assert "not a day" in done.err
