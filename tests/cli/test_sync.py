"""`scrubjay sync`, as people type it."""

from __future__ import annotations

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder


def changed_on_both_sides(call, file) -> str:
    memory = call("store", "User lives in Austin").out.strip()
    call("sync", "add", "drive", str(file))
    call("sync", "run", "drive")
    with scrubjay.open(file, embedder=HashingEmbedder()) as drive:
        drive.update(memory, content="User lives in Paris")
    call("update", memory, "--content", "User lives in Rome")
    return memory


def test_a_store_is_named_synced_listed_and_removed(call, tmp_path):
    call("store", "User lives in Austin")

    assert call("sync", "add", "drive", str(tmp_path / "drive.db")).out == "drive\n"
    assert call("sync", "run", "drive", "--dry-run").out.startswith("Would be: 1 created")
    assert call("sync", "run", "drive").out == "Synced: 1 created, 0 updated, 0 deleted; 1 compared.\n"
    [endpoint] = call("sync", "list", "--json").json
    assert endpoint["name"] == "drive"
    assert endpoint["synced_at"]
    assert call("sync", "remove", "drive").code == 0
    assert call("sync", "list", "--json").json == []


def test_json_says_everything_of_a_call(call, tmp_path):
    call("store", "User lives in Austin")
    call("sync", "add", "drive", str(tmp_path / "drive.db"))

    done = call("sync", "run", "drive", "--json").json

    assert (done["created"], done["checked"], done["conflicts"]) == (1, 1, [])


def test_an_unknown_store_is_3_and_told_how_to_add(call):
    done = call("sync", "run", "nowhere")

    assert done.code == 3
    assert "scrubjay sync add nowhere FILE" in done.err


def test_a_store_that_is_not_there_is_1(call, tmp_path):
    call("sync", "add", "drive", str(tmp_path / "drive.db"))
    (tmp_path / "drive.db").unlink()

    done = call("sync", "run", "drive")

    assert done.code == 1
    assert "cannot be reached" in done.err


def test_a_conflict_is_listed_and_decided(call, tmp_path):
    memory = changed_on_both_sides(call, tmp_path / "drive.db")

    left = call("sync", "run", "drive", "--on-conflict", "manual")
    assert left.code == 1
    assert "1 conflict waits" in left.err
    [conflict] = call("sync", "conflicts", "--json").json
    assert conflict["memory"] == memory
    assert (conflict["ours"]["content"], conflict["theirs"]["content"]) == ("User lives in Rome", "User lives in Paris")
    assert "User lives in Rome" in call("sync", "conflicts").out
    assert call("sync", "resolve", str(conflict["number"]), "--keep", "theirs").code == 0
    assert call("sync", "run", "drive").code == 0

    assert "User lives in Paris" in call("show", memory).out
    [settled] = call("sync", "conflicts", "--settled", "--json").json
    assert settled["outcome"] == "theirs"


def test_a_decision_about_nothing_is_3(call):
    assert call("sync", "resolve", "7", "--keep", "ours").code == 3


def test_a_restored_store_signs_under_another_origin(call, home, tmp_path):
    memory = call("store", "User lives in Austin").out.strip()
    call("sync", "add", "drive", str(tmp_path / "drive.db"))
    call("backup", str(tmp_path / "backup.db"))
    call("update", memory, "--content", "User lives in Paris")
    call("sync", "run", "drive")
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        before = jay._records.origin

    assert call("restore", str(tmp_path / "backup.db"), "--replace").code == 0
    assert call("sync", "run", "drive").code == 0

    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        assert jay._records.origin != before
        assert jay.get(memory).content == "User lives in Paris"
