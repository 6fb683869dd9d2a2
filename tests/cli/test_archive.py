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


def test_two_become_one(call, stored):
    one, two = stored("User is learning Spanish"), stored("User is learning Spanish with Inés")
    done = call("consolidate", one, two, "--json").json

    assert (done["sources"], done["writer"]) == ([one, two], "local")
    assert done["memory"]["id"] in call("list").out
    assert call("archive", "--undo", one).code == 0


def test_unlike_memories_are_refused_unless_one_takes_the_other_in(call, stored):
    one, two = stored(TEXT), stored("Quarterly revenue grew")

    refused = call("consolidate", one, two, "--json")
    assert (refused.code, refused.error["code"]) == (1, "too_dissimilar")
    assert call("consolidate", one, two, "--into", one, "--forget").out == f"{one}\n"
    assert two in call("list", "--deleted").out


def test_a_damaged_object_is_named_by_doctor_the_move_and_the_way_back_which_restores_the_others(call, stored, home):
    one, two = stored(TEXT), stored("Quarterly revenue grew")
    call("archive", one, "--tier", "glacier")
    assert "can be restored" in call("doctor", "--deep").out
    for path in home.glob("archive/glacier/*/arch_*"):
        path.write_bytes(b"")
    call("archive", two, "--tier", "glacier")

    told = call("doctor", "--deep")
    moved = call("archive", "--to", "database")
    restored = call("archive", "--undo", one, two)

    assert (told.code, moved.code, restored.code) == (1, 1, 1)
    assert one in told.out
    assert f"{one} is damaged and was not moved.\n" in moved.out
    assert f"{one} was not restored: The archived copy is damaged.\n" in restored.out
    assert f"{two} restored.\n" in restored.out
