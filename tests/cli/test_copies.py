"""`scrubjay backup`, `restore` and `reembed`, as people type them."""

from __future__ import annotations

import pytest


def test_a_backup_is_made_refused_a_second_time_and_restored(call, stored, tmp_path):
    stored("User lives in Seattle")
    copy = tmp_path / "copy.db"
    made = call("backup", str(copy), "--json")
    again = call("backup", str(copy))
    elsewhere = call("--home", str(tmp_path / "elsewhere"), "restore", str(copy), "--json")
    listed = call("--home", str(tmp_path / "elsewhere"), "list", "--json")

    assert made.code == 0, made.err
    assert made.json["memories"] >= 1
    assert again.code == 1
    assert "already" in again.err
    assert elsewhere.code == 0, elsewhere.err
    assert elsewhere.json == {"restored": True, "replaced": None}
    assert listed.code == 0


def test_a_memory_is_replaced_only_when_asked_and_kept(call, stored, tmp_path):
    stored("User lives in Seattle")
    copy = tmp_path / "copy.db"
    call("backup", str(copy))

    refused = call("restore", str(copy))
    done = call("restore", str(copy), "--replace", "--json")

    assert refused.code == 1
    assert "--replace" in refused.err
    assert done.code == 0, done.err
    assert "replaced" in done.json["replaced"]


def test_a_damaged_backup_is_refused_in_plain_words(call, stored, tmp_path):
    stored("User lives in Seattle")
    copy = tmp_path / "copy.db"
    call("backup", str(copy))
    copy.write_bytes(copy.read_bytes()[:-4096])

    refused = call("--home", str(tmp_path / "elsewhere"), "restore", str(copy))

    assert refused.code == 1
    assert "checksum" in refused.err
    assert not (tmp_path / "elsewhere" / "memories.db").exists()


@pytest.mark.parametrize("content", [b"", b"an ordinary file, not a database at all", b'{"content": "an export"}'])
def test_restoring_what_is_not_a_backup_blames_the_file(call, stored, tmp_path, content):
    stored("User lives in Seattle")
    (tmp_path / "notes.txt").write_bytes(content)

    done = call("restore", "notes.txt", "--replace")

    assert done.code == 1
    assert "notes.txt is not a scrubjay backup" in done.err
    assert "The store" not in done.err
    assert "Seattle" in call("list").out


def test_reembedding_with_the_same_model_says_that_there_is_nothing_to_do(call, stored):
    stored("User lives in Seattle")
    done = call("reembed", "--json")

    assert done.code == 0, done.err
    assert done.json["memories"] == 0


def test_a_file_that_is_no_backup_is_told_before_anything_else(call, stored, tmp_path):
    stored("User likes tea")
    (tmp_path / "notes.txt").write_text("tea")

    missing, foreign = call("restore", "nope.db"), call("restore", "notes.txt")

    assert (missing.code, foreign.code) == (3, 1)
    assert "No backup nope.db." in missing.err
    assert "notes.txt is not a scrubjay backup" in foreign.err
