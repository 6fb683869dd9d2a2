"""`scrubjay archive` and `scrubjay consolidate`."""

from __future__ import annotations

import pytest

TEXT = "The harbour master is called Ottilie"


@pytest.mark.parametrize("tier", ["cold", "glacier", "deep_archive"])
def test_a_memory_is_archived_and_brought_back(call, stored, home, tier):
    id = stored(TEXT)

    done = call("archive", id, "--tier", tier, "--reason", "quiet")
    assert (done.code, done.out.split("\t")[0]) == (0, id)
    assert call("search", "harbour master").out == ""
    assert TEXT in call("show", id).out
    assert "quiet" in call("history", id).out
    assert bool([*home.glob(f"archive/{tier}/*/arch_*")]) is (tier != "cold")

    assert call("archive", "--undo", id).out == f"{id} restored.\n"
    assert id in call("search", "harbour master").out
    assert not [*home.glob(f"archive/{tier}/*/arch_*")]


def test_a_dry_run_only_shows(call, stored):
    id = stored(TEXT, "--importance", "0.1")

    assert id in call("archive", "--below", "0.3", "--dry-run").out
    assert id in call("list").out
    assert call("archive", "--below", "0.3", "--json").json["memories"][0]["memory"] == id
    assert id not in call("list").out


def test_nothing_that_fits_is_said(call, stored):
    stored(TEXT)

    assert "Nothing matches" in call("archive", "--inactive", "90d").err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("mem_x", "--below", "0.3"),
        ("--undo",),
        ("--undo", "--below", "0.3"),
        ("--undo", "mem_x", "--dry-run"),
        ("--inactive", "5h"),
        ("--tier", "warm", "mem_x"),
        ("--to", "moon"),
        ("--to", "database", "mem_x"),
        ("--to", "database", "--accept-folder"),
        ("--accept-folder", "--undo"),
    ],
)
def test_wrong_usage(call, arguments):
    assert call("archive", *arguments).code == 2


def test_archives_move_to_the_database_and_back(call, stored, home, monkeypatch):
    id = stored(TEXT)
    call("archive", id, "--tier", "glacier")

    moved = call("archive", "--to", "database")
    assert (moved.code, [*home.glob("archive/glacier/*/arch_*")]) == (0, [])
    assert "1 moved" in moved.err
    assert "set SCRUBJAY_ARCHIVE to database" in moved.err
    assert TEXT in call("show", id).out

    monkeypatch.setenv("SCRUBJAY_ARCHIVE", "database")
    assert "SCRUBJAY_ARCHIVE" not in call("archive", "--to", "database").err
    other = stored("The lighthouse is red")
    call("archive", other, "--tier", "deep_archive")
    assert [*home.glob("archive/*/*/arch_*")] == []
    assert call("archive", "--to", "folder", "--json").json["memories"] == 2
    assert len([*home.glob("archive/*/*/arch_*")]) == 2


def test_a_damaged_object_is_named_by_the_move_and_fails_it(call, stored, home):
    id = stored(TEXT)
    call("archive", id, "--tier", "glacier")
    for path in home.glob("archive/glacier/*/arch_*"):
        path.write_bytes(b"")

    moved = call("archive", "--to", "database")

    assert (moved.code, moved.out) == (1, f"{id} is damaged and was not moved.\n")


def test_a_damaged_object_is_named_and_the_others_are_restored(call, stored, home):
    one, two = stored(TEXT), stored("Quarterly revenue grew")
    call("archive", one, two, "--tier", "glacier")
    next(home.glob("archive/glacier/*/arch_*")).write_bytes(b"")

    done = call("archive", "--undo", one, two)

    assert done.code == 1
    assert sorted(line.partition(" ")[2] for line in done.out.splitlines()) == [
        "restored.",
        "was not restored: The archived copy is damaged.",
    ]


def test_an_unknown_memory_is_exit_code_3(call, stored):
    stored(TEXT)

    assert call("archive", "mem_unknown").code == 3


def test_two_become_one(call, stored):
    one, two = stored("User is learning Spanish"), stored("User is learning Spanish with Inés")
    done = call("consolidate", one, two, "--json").json

    assert (done["sources"], done["writer"]) == ([one, two], "local")
    assert done["memory"]["id"] in call("list").out
    assert call("archive", "--undo", one).code == 0


def test_one_takes_the_other_in(call, stored):
    one, two = stored(TEXT), stored("Quarterly revenue grew")

    assert call("consolidate", one, two, "--into", one, "--forget").out == f"{one}\n"
    assert two in call("list", "--deleted").out


def test_unlike_memories_are_refused(call, stored):
    one, two = stored(TEXT), stored("Quarterly revenue grew")
    done = call("consolidate", one, two, "--json")

    assert (done.code, done.error["code"]) == (1, "too_dissimilar")


def test_a_key_is_not_shown(call, monkeypatch):
    monkeypatch.setenv("SCRUBJAY_SYNTHESIS_KEY", "sk-secret")

    assert "sk-secret" not in call("settings").out
    assert "synthesis_key" in call("settings").out


def test_doctor_finds_a_damaged_archive(call, stored, home):
    id = stored(TEXT)
    call("archive", id, "--tier", "glacier")
    assert "can be restored" in call("doctor", "--deep").out
    [path] = home.glob("archive/glacier/*/arch_*")
    path.write_bytes(b"")

    done = call("doctor", "--deep")

    assert done.code == 1
    assert id in done.out
