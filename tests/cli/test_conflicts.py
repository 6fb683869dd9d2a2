"""Doubts and duplicates on the command line, and the memories of a day."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

import scrubjay
from scrubjay.cli import durations
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


def test_an_open_pair_is_listed_and_settled_by_keeping(call, pair):
    [line] = call("conflicts").out.splitlines()
    assert line.split("\t")[1::2][:2] == list(pair)

    assert "kept" in call("conflicts", "--keep", *pair).out

    assert call("conflicts", "--json").json == []


def test_a_pair_over_two_spaces_is_marked_and_told_wherever_one_of_it_is_shown(call, home):
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        older = jay.bound_to(spaces=("acme-shop",)).store("The demo runs on port 8080").memory
        newer = jay.store("The demo runs on port 9090 now").memory
        open_conflict(jay, newer, older)

    for command in (("list",), ("search", "--words", "demo")):
        assert f"may be outdated by {newer.id}" in call(*command, "--space", "acme-shop").out, command
        narrow = call(*command, "--space", "default")
        assert f"Not settled: {newer.id} may outdate {older.id}, which is not shown;" in narrow.err, command
        assert "Not settled" not in call(*command).err, command
        for space in ("acme-shop", "default"):
            told = call(*command, "--json", "--space", space).err
            assert json.loads(told) == {"doubts": {older.id: newer.id}}, (command, space)


def test_the_older_of_an_open_pair_is_shown_and_marked_until_it_is_settled(call, pair):
    old, new = pair
    for command in (("list",), ("search", "--words", "drinks")):
        assert f"may be outdated by {new}" in call(*command).out, command

    call("conflicts", "--keep", old, new)
    assert "may be outdated" not in call("list").out


def test_an_open_pair_is_settled_by_superseding(call, pair):
    done = call("conflicts", "--supersede", *pair, "--json")

    assert done.json == {"old": pair[0], "new": pair[1], "settled": "superseded"}
    assert [memory["id"] for memory in call("list", "--json").json] == [pair[1]]


@pytest.fixture
def group(stored, home):
    """Two older memories that one newer may outdate."""
    older = stored("User drinks tea"), stored("ユーザーは緑茶を飲む")
    newer = stored("User drinks coffee")
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        for one in older:
            open_conflict(jay, jay.get(newer), jay.get(one))
    return (*older, newer)


@pytest.mark.parametrize("answer", ["--keep", "--supersede", "--same"])
def test_an_answer_is_taken_back(call, pair, answer):
    assert call("conflicts", answer, *pair).code == 0
    assert call("conflicts", "--json").json == []

    assert call("conflicts", "--undo", *pair).code == 0

    assert len(call("conflicts", "--json").json) == 1
    assert len(call("list", "--json").json) == 2


def test_what_was_never_proposed_is_not_taken_back(call, pair, stored):
    assert call("conflicts", "--undo", stored("User has a dog"), pair[1]).code == 3


def test_a_whole_group_is_settled_at_once(call, group):
    done = call("conflicts", "--group", group[2], "--as", "replaces", "--json")

    assert {one["old"] for one in done.json} == set(group[:2])
    assert [memory["id"] for memory in call("list", "--json").json] == [group[2]]
    assert call("conflicts", "--group", group[2], "--as", "replaces").code == 3


@pytest.mark.parametrize(
    ("keys", "listed", "left"),
    [
        ("r\nb\n", 2, 0),
        ("R\n", 1, 0),
        ("s\n\n", 2, 1),
        ("\n\n", 3, 2),
        ("x\nq\n", 3, 2),
        ("u\nb\nu\nq\n", 3, 2),
        ("r\nu\nb\nb\n", 3, 0),
    ],
)
def test_at_a_terminal_conflicts_are_a_review(call, terminal, group, keys, listed, left):
    done = terminal("conflicts", columns=60, keys=keys)

    assert done.code == 0
    assert f"{left} left." in done.out
    assert len(call("conflicts", "--json").json) == left
    assert len(call("list", "--json").json) == listed


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_what_differs_is_marked_and_nothing_is_cut_off(terminal, group, columns):
    coloured = terminal("conflicts", "--plain", columns=columns).out
    plain = terminal("conflicts", "--plain", columns=columns, NO_COLOR="1").out

    assert "\x1b[1;31mtea" in coloured
    assert "\x1b[1;32mcoffee" in coloured
    assert "User drinks [-tea-]" in plain
    assert "User drinks {+coffee+}" in plain
    assert "緑茶" in plain
    assert max(map(len, plain.splitlines())) <= columns


def test_duplicates_are_listed(call, stored):
    twins = stored("User drinks tea"), stored("User drinks tea")

    [found] = call("duplicates", "--json").json

    assert (found["older"]["id"], found["newer"]["id"]) == twins
    assert "drinks tea" in call("duplicates").out


def test_doctor_tells_of_duplicates(call, stored):
    for _ in range(2):
        stored("User drinks tea")

    findings = {one["check"]: one for one in call("doctor", "--json").json["findings"]}

    assert findings["duplicates"]["state"] == "warning"
    assert findings["duplicates"]["do"] == "scrubjay duplicates"


def test_a_day_is_listed_without_a_query(call, stored, monkeypatch):
    then = '{"content": "then", "created_at": "2026-05-07T12:00:00Z"}'
    later = '{"content": "later", "created_at": "2026-05-08T00:00:00Z"}'
    call("import", "-", stdin=f"{then}\n{later}")
    id = stored("today")
    stored_at = datetime.fromisoformat(call("show", id, "--json").json["memory"]["created_at"])
    monkeypatch.setattr(durations, "utc_now", lambda: stored_at)  # whatever the test takes, the day does not end

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
