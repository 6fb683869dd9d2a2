"""A space and its folder in step: every line of the design about folders, and what people do to files."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine import folders
from scrubjay.engine.archiving import Criteria
from scrubjay.engine.consolidation import Plan, Strategy
from scrubjay.engine.engine import Engine
from scrubjay.errors import Conflict, Error, FileDamaged, InvalidInput, NotFound, RegistryDamaged, StorageError
from scrubjay.folders.folder import MARKER, Folder
from scrubjay.folders.markdown import parsed
from scrubjay.folders.registry import Registered, Registry
from scrubjay.memory import Caller, Filter, Kind, LinkKind, Role, State, Status
from scrubjay.stores.sqlite import SqliteStore

STORE = "default"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "stores" / STORE


@pytest.fixture
def filed(jay, folder):
    """A memory that is a file: its id."""
    return jay.paths.add(STORE, "project/harbour", "The harbour master is called Ottilie", tags=["people"]).memory.id


def file(folder, path):
    return folder / f"{path}.md"


def document(folder, path):
    return parsed(file(folder, path).read_bytes())


def edit(place, old, new):
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new))


def look(jay):
    """What any call that reads does first."""
    jay.list(Filter())


def names(jay):
    return [memory.path for memory in jay.list(Filter(states=frozenset({State.ACTIVE, State.SUPERSEDED})), limit=100)]


# --- who wins --------------------------------------------------------------------------------------------------------


def test_memories_of_other_dialects_are_rows_only(jay, folder):
    jay.store("User moved to Austin")

    assert not folder.exists()


def test_a_changed_file_wins(jay, folder, filed):
    edit(file(folder, "project/harbour"), "Ottilie", "Ada")
    look(jay)

    memory = jay.get(filed)
    assert memory.content == "The harbour master is called Ada"
    assert [hit.memory.id for hit in jay.search("Ada")] == [filed]
    assert [version.memory.content for version in jay.history(filed)] == ["The harbour master is called Ottilie"]
    assert jay.get(filed).title == "The harbour master is called Ada"


def test_an_edited_file_is_not_written_again(jay, folder, filed):
    place = file(folder, "project/harbour")
    edit(place, "Ottilie", "Ada")
    before = place.read_bytes()
    look(jay)
    look(jay)

    assert place.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('["people"]', "[people, work]", "tags", ("people", "work")),
        ('["people"]', "people work", "tags", ("people", "work")),
    ],
)
def test_tags_are_read_from_the_file(jay, folder, filed, old, new, field, value):
    edit(file(folder, "project/harbour"), old, new)
    look(jay)

    assert getattr(jay.get(filed), field) == value


def test_expiry_is_read_from_the_file(jay, folder, filed, clock):
    edit(file(folder, "project/harbour"), "source: ", "expires_at: 2020-01-01\nsource: ")

    assert names(jay) == []
    assert jay.get(filed).expires_at.year == 2020


def test_a_changed_memory_is_written_out(jay, folder, filed):
    jay.update(filed, content="The harbour master is called Ada", tags=("people", "work"))

    assert document(folder, "project/harbour").content == "The harbour master is called Ada"
    assert document(folder, "project/harbour").tags == ("people", "work")


def test_when_both_changed_the_file_wins_and_the_memorys_text_stays_as_a_version(jay, folder, filed, open_engine):
    edit(file(folder, "project/harbour"), "Ottilie", "Ada")
    jay.update(filed, content="The harbour master is called Eve")

    assert jay.get(filed).content == "The harbour master is called Ada"
    assert document(folder, "project/harbour").content == "The harbour master is called Ada"
    assert [version.memory.content for version in jay.history(filed)][:2] == [
        "The harbour master is called Eve",
        "The harbour master is called Ottilie",
    ]


def test_keys_of_others_in_the_front_matter_stay(jay, folder, filed):
    place = file(folder, "project/harbour")
    edit(place, "source: ", "aliases:\n  - Hafen  # in German\ncssclass: wide\ndate: 2026-01-01\nsource: ")
    jay.list()
    jay.update(filed, content="New text")

    text = place.read_text()
    assert "aliases:\n  - Hafen  # in German\ncssclass: wide\ndate: 2026-01-01\n" in text
    assert text.endswith("---\n\nNew text\n")


def test_a_memory_that_did_not_change_is_not_written(jay, folder, filed):
    before = os.stat(file(folder, "project/harbour"))
    jay.update(filed, importance=0.9)

    assert document(folder, "project/harbour").content == "The harbour master is called Ottilie"
    assert jay.get(filed).importance == 0.9
    assert before.st_size


@pytest.mark.parametrize(
    "text",
    [
        "---\nnot: front matter\n---\n",
        "ends with newlines\n\n\n",
        "\n\nbegins with them",
        "\t",
        "a\r\nb",
        "x\0y",
        "🦜 日本語",
    ],
)
def test_any_text_survives_its_file(jay, folder, text):
    if not text.strip():
        return
    id = jay.paths.add(STORE, "a/b", text).memory.id
    os.utime(file(folder, "a/b"))
    look(jay)

    assert jay.get(id).content == text
    assert len(jay.history(id)) == 0
    assert document(folder, "a/b").content == text.replace("\r\n", "\n")


# --- new, renamed, gone, back ----------------------------------------------------------------------------------------


def test_a_new_file_is_a_new_memory(jay, folder, filed, clock):
    file(folder, "project/new").write_text(
        "---\ncreated_at: 2026-01-01T10:00:00Z\ntags: [a]\nsource: ada\n---\nBy hand\n"
    )

    [hit] = jay.search("hand")
    assert (hit.memory.path, hit.memory.content, hit.memory.tags) == ("project/new", "By hand", ("a",))
    assert hit.memory.created_at.month == 1
    assert (hit.memory.provenance.transport, hit.memory.provenance.client) == ("file", "ada")


def test_a_file_with_a_name_of_its_own_keeps_it(jay, folder, filed):
    (folder / "My Notes").mkdir()
    place = folder / "My Notes" / "Größe & Farbe_2.md"
    place.write_text("---\n---\nBlue\n")
    look(jay)
    [memory] = [memory for memory in jay.list() if memory.content == "Blue"]
    jay.update(memory.id, content="Green")

    assert memory.path == "my-notes/grosse-farbe-2" or memory.path == "my-notes/groe-farbe-2"
    assert parsed(place.read_bytes()).content == "Green"
    assert sorted(one.name for one in folder.rglob("*.md")) == ["Größe & Farbe_2.md", "harbour.md"]


def test_files_that_differ_in_case_only_are_two_memories(jay, folder, filed):
    (folder / "Same.md").write_text("---\n---\nOne\n")
    (folder / "same.md").write_text("---\n---\nTwo\n")
    look(jay)
    look(jay)

    assert {"same", "same-2"} <= set(names(jay))
    assert len(names(jay)) == 3


def test_a_file_without_front_matter_is_somebodys_own(jay, folder, filed):
    (folder / "README.md").write_text("# Notes\n")
    look(jay)

    assert names(jay) == ["project/harbour"]
    assert [problem.name for problem in jay.folders.problems(STORE)] == ["README.md"]


@pytest.mark.parametrize("edited", [False, True])
def test_a_renamed_file_is_the_same_memory(jay, folder, filed, edited):
    place = file(folder, "project/harbour")
    (folder / "people").mkdir()
    place.rename(folder / "people" / "ottilie.md")
    if edited:
        edit(folder / "people" / "ottilie.md", "Ottilie", "Ada")
    look(jay)

    memory = jay.get(filed)
    assert memory.path == "people/ottilie"
    assert memory.content.endswith("Ada" if edited else "Ottilie")
    assert names(jay) == ["people/ottilie"]
    assert len(jay.history(filed)) == 1
    assert jay.paths.get(STORE, "people/ottilie").id == filed
    with pytest.raises(NotFound):
        jay.paths.get(STORE, "project/harbour")


def test_a_renamed_file_without_an_id_is_told_by_its_bytes(jay, folder, filed):
    file(folder, "project/old").write_text("---\n---\nBy hand\n")
    look(jay)
    [before] = [memory.id for memory in jay.list() if memory.path == "project/old"]
    file(folder, "project/old").rename(file(folder, "project/new"))
    look(jay)

    assert jay.get(before).path == "project/new"


def test_a_copied_file_is_another_memory(jay, folder, filed):
    shutil.copy(file(folder, "project/harbour"), file(folder, "project/copy"))
    look(jay)

    assert sorted(names(jay)) == ["project/copy", "project/harbour"]
    assert jay.paths.get(STORE, "project/copy").id != filed


def test_a_deleted_file_softly_deletes_and_comes_back_as_the_same_memory(jay, folder, filed):
    place = file(folder, "project/harbour")
    kept = place.read_bytes()
    place.unlink()
    look(jay)
    assert jay.get(filed, deleted=True).status is Status.DELETED
    place.write_bytes(kept)
    look(jay)

    assert jay.get(filed).content == "The harbour master is called Ottilie"
    assert names(jay) == ["project/harbour"]


def test_a_removed_memory_comes_back_with_its_file(jay, folder, filed):
    kept = file(folder, "project/harbour").read_bytes()
    jay.paths.remove(STORE, "project/harbour")
    assert not (folder / "project").exists()
    (folder / "project").mkdir()
    file(folder, "project/harbour").write_bytes(kept.replace(b"Ottilie", b"Ada"))
    look(jay)

    assert jay.get(filed).content == "The harbour master is called Ada"


def test_an_unmounted_disk_is_not_a_deletion(jay, folder, filed, tmp_path):
    away = tmp_path / "away"
    folder.rename(away)
    look(jay)
    assert jay.get(filed).status is Status.ACTIVE
    folder.mkdir()  # an empty mount point
    look(jay)
    assert jay.get(filed).status is Status.ACTIVE
    folder.rmdir()
    away.rename(folder)
    look(jay)

    assert jay.get(filed).status is Status.ACTIVE
    assert names(jay) == ["project/harbour"]


def test_without_its_marker_a_folder_deletes_nothing(jay, folder, filed):
    (folder / MARKER).unlink()
    file(folder, "project/harbour").unlink()
    look(jay)

    assert jay.get(filed).status is Status.ACTIVE


def test_a_folder_made_anew_is_filled_again(jay, folder, filed):
    shutil.rmtree(folder)
    jay.paths.add(STORE, "project/second", "Another")
    look(jay)

    assert sorted(names(jay)) == ["project/harbour", "project/second"]
    assert document(folder, "project/harbour").id == filed


def test_another_folder_in_the_registry_deletes_nothing(jay, folder, filed, tmp_path):
    other = tmp_path / "other"
    Folder(other).prepare()
    (other / "x.md").write_text("---\n---\nSomething else\n")
    jay._registry.add(Registered(name=STORE, path=other))
    look(jay)
    look(jay)

    assert sorted(names(jay)) == ["project/harbour", "x"]
    assert document(other, "project/harbour").id == filed


def test_an_unreadable_part_deletes_nothing(jay, folder, filed, monkeypatch):
    scandir = os.scandir

    def failing(path):
        if str(path).endswith("project"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)
    look(jay)

    assert jay.get(filed).status is Status.ACTIVE


# --- what other verbs do to a file -----------------------------------------------------------------------------------


def test_forgetting_removes_the_file_and_recovering_writes_it(jay, folder, filed):
    jay.forget(filed)
    assert not file(folder, "project/harbour").exists()
    jay.recover(filed)

    assert document(folder, "project/harbour").id == filed


def test_a_hard_delete_leaves_nothing_of_the_text(jay, folder, filed):
    edit(file(folder, "project/harbour"), "Ottilie", "Ottilie Secret")
    jay.forget(filed, hard=True)

    assert [one for one in folder.rglob("*") if one.is_file() and b"Ottilie" in one.read_bytes()] == []
    look(jay)
    assert names(jay) == []


@pytest.mark.parametrize("by_criteria", [False, True])
def test_archiving_removes_the_file_and_restoring_writes_it(jay, folder, filed, by_criteria):
    written = file(folder, "project/harbour").read_bytes()
    if by_criteria:
        jay.cold_storage.archive_matching(Criteria(below_importance=1.0))
    else:
        jay.cold_storage.archive([filed])
    assert not file(folder, "project/harbour").exists()
    look(jay)
    assert jay.get(filed).status is Status.ARCHIVED
    jay.cold_storage.restore([filed])

    assert file(folder, "project/harbour").read_bytes() == written
    look(jay)
    assert jay.get(filed).status is Status.ACTIVE


def test_consolidating_leaves_the_results_file_alone(jay, folder, filed):
    other = jay.paths.add(STORE, "project/harbour-master", "The harbour master is called Ottilie Brandt").memory.id
    jay.consolidation.merge(Plan(ids=(filed, other), strategy=Strategy.KEEP_PRIMARY, primary=other))

    assert not file(folder, "project/harbour").exists()
    assert document(folder, "project/harbour-master").id == other


def test_superseding_adds_a_key_to_the_front_matter(jay, folder, filed):
    newer = jay.paths.add(STORE, "project/new-master", "The harbour master is called Ada").memory.id
    jay.supersede(old=filed, new=newer)

    assert 'superseded_by: "[[project/new-master]]"\n' in file(folder, "project/harbour").read_text()
    assert 'supersedes: ["[[project/harbour]]"]\n' in file(folder, "project/new-master").read_text()
    jay.paths.move(STORE, "project/new-master", "project/ada")
    assert 'superseded_by: "[[project/ada]]"\n' in file(folder, "project/harbour").read_text()
    jay.forget(newer)
    assert "superseded_by" not in file(folder, "project/harbour").read_text()


def test_a_forgotten_memory_whose_file_was_edited_meanwhile_comes_back(jay, folder, filed):
    edit(file(folder, "project/harbour"), "Ottilie", "Ada")
    jay.forget(filed)

    assert jay.get(filed).content == "The harbour master is called Ada"
    assert document(folder, "project/harbour").content == "The harbour master is called Ada"


def test_a_forgotten_memory_lets_go_of_a_name_that_another_has_taken(jay, folder, filed):
    jay.paths.remove(STORE, "project/harbour")
    second = jay.paths.add(STORE, "project/harbour", "Another text").memory.id
    jay.recover(filed)
    assert (jay.get(filed).path, jay.get(filed).content) == (
        "project/harbour-2",
        "The harbour master is called Ottilie",
    )
    assert document(folder, "project/harbour").id == second
    assert document(folder, "project/harbour-2").id == filed
    jay.forget(filed)
    assert document(folder, "project/harbour").id == second
    third = jay.paths.add(STORE, "project/harbour-2", "A third text").memory.id
    jay.forget(filed, hard=True)
    look(jay)

    assert document(folder, "project/harbour-2").id == third
    assert sorted(names(jay)) == ["project/harbour", "project/harbour-2"]


# --- a kill in between -----------------------------------------------------------------------------------------------


def test_a_row_whose_file_was_never_written_gets_it(jay, folder, filed):
    with jay._records.writing() as tx:
        current = jay.get(filed)
        jay._ledger.change(tx, replace(current, tags=("late",)), "updated", "tags")
    assert document(folder, "project/harbour").tags == ("people",)
    look(jay)

    assert document(folder, "project/harbour").tags == ("late",)
    assert jay._records.waiting() == {}


def test_an_entry_in_the_outbox_means_write_and_never_deleted(jay, folder, filed):
    with jay._records.writing() as tx:
        jay._ledger.change(tx, replace(jay.get(filed), tags=("late",)), "updated", "tags")
    file(folder, "project/harbour").unlink()
    look(jay)

    assert jay.get(filed).status is Status.ACTIVE
    assert document(folder, "project/harbour").tags == ("late",)


def test_a_file_written_but_not_noted_is_not_taken_for_an_edit(jay, folder, filed):
    """Killed after the rename, before the store knew; then the memory changed once more."""
    place = file(folder, "project/harbour")
    before = jay._records.file_of(filed)
    jay.update(filed, content="Second text")
    after = jay._records.file_of(filed)
    with jay._records.writing() as tx:
        tx.in_sync(filed, name=before.name, hash=before.hash, stamp="", version=before.agreed_version)
        tx.keep_as_file([filed])
        jay._ledger.change(tx, replace(jay.get(filed), content="Third text"), "updated", "content")
    assert parsed(place.read_bytes()).content == "Second text"
    assert after.hash != before.hash
    look(jay)

    assert jay.get(filed).content == "Third text"
    assert parsed(place.read_bytes()).content == "Third text"


def test_a_new_file_written_but_not_noted_is_not_doubled(jay, folder, filed):
    with jay._records.writing() as tx:
        tx.drop_files([filed])
        tx.keep_as_file([filed])
    look(jay)
    look(jay)

    assert names(jay) == ["project/harbour"]
    assert [one.name for one in folder.rglob("*.md")] == ["harbour.md"]


def test_a_foreign_file_is_never_overwritten(jay, folder, filed):
    place = file(folder, "a/b")
    place.parent.mkdir()
    place.write_text("my own notes, no front matter\n")
    with pytest.raises(FileDamaged):
        jay.paths.add(STORE, "a/b", "Text")
    memory = jay.store("Text", path="a/b", as_file=True).memory

    assert place.read_text() == "my own notes, no front matter\n"
    assert document(folder, "a/b-2").id == memory.id


# --- bad disks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_keeps_the_memory_and_writes_the_file_later(jay, small_disk):
    jay.folders.create("notes", path=small_disk / "notes")
    (small_disk / "ballast").write_bytes(b"x" * 50_000)
    placed = jay.paths.add("notes", "project/late", "Late text " * 2_000)
    assert "No room" in placed.waits
    assert jay.paths.get("notes", "project/late").content.startswith("Late text")
    assert list((small_disk / "notes").rglob("*.md")) == []
    (small_disk / "ballast").unlink()
    look(jay.bound_to(spaces=("notes",)))

    assert document(small_disk / "notes", "project/late").content.startswith("Late text")
    assert [one.name for one in (small_disk / "notes").rglob("*") if one.is_file()] == [MARKER, "late.md"]


def test_a_read_only_folder_refuses_a_memory_and_is_still_read(jay, small_disk):
    jay.folders.create("notes", path=small_disk / "notes")
    id = jay.paths.add("notes", "project/harbour", "Text").memory.id
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="cannot be written"):
        jay.paths.add("notes", "project/new", "Text")

    assert names(jay.bound_to(spaces=("notes",))) == ["project/harbour"]
    assert jay.paths.get("notes", "project/harbour").id == id
    jay.update(id, content="Changed elsewhere")
    assert jay.paths.get("notes", "project/harbour").content == "Changed elsewhere"
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    look(jay.bound_to(spaces=("notes",)))
    assert document(small_disk / "notes", "project/harbour").content == "Changed elsewhere"


@pytest.mark.parametrize("blocked", ["a link", "a file"])
def test_a_place_that_cannot_be_written_keeps_no_other_file_waiting(jay, folder, filed, tmp_path, blocked):
    place = folder / "archive"
    place.write_text("in the way") if blocked == "a file" else place.symlink_to(tmp_path)
    assert jay.paths.add(STORE, "archive/first", "Text").waits is not None

    assert jay.paths.add(STORE, "project/second", "Text").waits is None
    assert jay.paths.update(STORE, "project/harbour", {"content": "Changed"}).waits is None
    assert document(folder, "project/second").content == "Text"
    assert document(folder, "project/harbour").content == "Changed"
    place.unlink()
    look(jay)
    assert document(folder, "archive/first").content == "Text"


def test_a_file_that_vanishes_during_the_walk_is_no_error(jay, folder, filed, monkeypatch):
    file(folder, "project/new").write_text("---\n---\nText\n")
    read = Folder.read

    def vanishing(self, name):
        if name == "project/new.md":
            (self.root / name).unlink(missing_ok=True)
        return read(self, name)

    monkeypatch.setattr(Folder, "read", vanishing)
    look(jay)

    assert names(jay) == ["project/harbour"]


def test_a_broken_registry_stops_stores_but_not_searching(jay, folder, filed, tmp_path):
    broken = "stores:\n  work:\n    path: /x\n   bad: [\n"
    (tmp_path / "stores.yaml").write_text(broken)

    with pytest.raises(RegistryDamaged, match=r"line 4, column \d+"):
        jay.paths.get(STORE, "project/harbour")
    with pytest.raises(RegistryDamaged):
        jay.folders.create("new")
    assert (tmp_path / "stores.yaml").read_text() == broken
    assert [hit.memory.id for hit in jay.search("harbour master")] == [filed]


# --- nothing escapes -------------------------------------------------------------------------------------------------


def test_links_are_neither_read_nor_written_through(jay, folder, filed, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("---\n---\nSecret\n")
    (folder / "link.md").symlink_to(outside / "secret.md")
    (folder / "linked").symlink_to(outside)
    os.link(outside / "secret.md", folder / "hard.md")
    look(jay)

    assert names(jay) == ["project/harbour"]
    assert {problem.name for problem in jay.folders.problems(STORE)} == {"link.md", "hard.md"}
    for path in ("link", "hard", "linked/secret"):
        with pytest.raises((FileDamaged, NotFound)):
            jay.paths.get(STORE, path)
    placed = jay.paths.add(STORE, "linked/new", "Text")
    assert placed.waits is not None
    assert sorted(one.name for one in outside.iterdir()) == ["secret.md"]


def test_a_pipe_is_not_waited_for(jay, folder, filed):
    os.mkfifo(folder / "pipe.md")
    look(jay)

    assert names(jay) == ["project/harbour"]


def test_paths_of_imported_memories_stay_inside(jay, folder, tmp_path):
    jay.folders.mirror(STORE)
    jay.store("First")
    before = {one for one in tmp_path.rglob("*") if folder not in one.parents}
    for number, path in enumerate(
        ["../../../escape", "/etc/escape", "a/../../b", "CON", "x" * 300, "a\\..\\b", "~/x", ""]
    ):
        jay.store(f"Text {number}", path=path or None)

    assert {one for one in tmp_path.rglob("*") if folder not in one.parents} == before
    assert len(list(folder.rglob("*.md"))) == 9


def test_a_store_within_a_store_is_another_ones(jay, folder, filed):
    inner = folder / "inner"
    Folder(inner).prepare()
    (inner / "x.md").write_text("---\n---\nInner\n")
    look(jay)

    assert names(jay) == ["project/harbour"]


# --- mirrors ---------------------------------------------------------------------------------------------------------


def test_a_mirrored_space_is_kept_as_files_from_then_on(jay, tmp_path):
    before = jay.store("User moved to Austin", tags=("home",)).memory
    vault = tmp_path / "vault"
    jay.folders.mirror(STORE, vault)
    after = jay.store("User likes tea", related=(before.id,)).memory

    assert document(vault, before.path).id == before.id
    assert document(vault, after.path).type == "memory"
    assert f'related: ["[[{before.path}]]"]\n' in file(vault, after.path).read_text()
    jay.forget(before.id)
    assert not file(vault, before.path).exists()
    edit(file(vault, after.path), "tea", "coffee")
    assert [hit.memory.id for hit in jay.search("coffee")] == [after.id]


def test_a_mirror_of_many_is_complete(jay, tmp_path, monkeypatch):
    """However slow the disk is: who brings many waits until all their files are written."""
    monkeypatch.setattr(folders, "WRITE_SECONDS", 0.0)
    ids = jay.store_many({"content": f"Text number {n}"} for n in range(150))
    jay.folders.mirror(STORE, tmp_path / "vault")
    more = jay.store_many({"content": f"More {n}"} for n in range(70))
    jay.import_from([{"type": "memory", "id": f"mem_00000000000{n}", "content": f"Brought {n}"} for n in range(5)])
    brought = {f"mem_00000000000{n}" for n in range(5)}

    assert {parsed(one.read_bytes()).id for one in (tmp_path / "vault").rglob("*.md")} == {*ids, *more, *brought}
    assert jay._records.waiting() == {}


def test_what_stops_being_mirrored_stays(jay, tmp_path):
    jay.folders.mirror(STORE, tmp_path / "vault")
    first = jay.store("First").memory
    jay.folders.stop_mirroring(STORE)
    jay.store("Second")

    assert [one.stem for one in (tmp_path / "vault").rglob("*.md")] == [first.path.rpartition("/")[2]]


def test_a_clone_elsewhere_keeps_ids_times_and_levels(jay, tmp_path, open_engine, clock):
    memory = jay.store("User moved to Austin", tags=("home",), access_level="private").memory
    jay.folders.mirror(STORE, tmp_path / "vault")
    clock.move(days=1)
    shutil.copytree(tmp_path / "vault", tmp_path / "clone")
    home = tmp_path / "elsewhere"
    with Engine(SqliteStore(home / "m.db"), HashingEmbedder(), clock=clock, registry=Registry(home, home)) as other:
        other.folders.add("clone", tmp_path / "clone")
        there = other.bound_to(spaces=("clone",)).get(memory.id)

    assert (there.content, there.tags, there.created_at) == (memory.content, memory.tags, memory.created_at)
    assert (there.access_level, there.updated_at, there.path) == ("private", memory.updated_at, memory.path)


def test_a_store_taken_out_and_put_back_finds_its_memories(jay, tmp_path):
    jay.folders.create("notes", path=tmp_path / "notes")
    id = jay.paths.add("notes", "a/b", "Text").memory.id
    (tmp_path / "notes" / "hand.md").write_text("---\n---\nBy hand\n")
    before = {memory.id for memory in jay.bound_to(spaces=("notes",)).list()}
    jay.folders.remove("notes")
    assert file(tmp_path / "notes", "a/b").exists()
    assert jay.get(id).content == "Text"
    indexed = jay.folders.add("notes", tmp_path / "notes")

    assert {memory.id for memory in jay.bound_to(spaces=("notes",)).list()} == before
    assert indexed.new == 0


# --- who, when, how often --------------------------------------------------------------------------------------------


def test_what_people_do_to_files_is_the_owners_whoever_looks(jay, folder, filed):
    file(folder, "project/new").write_text("---\n---\nText\n")
    reader = jay.bound_to(caller=Caller(user="eve", role=Role.READER))
    look(reader)

    [memory] = [memory for memory in jay.list() if memory.path == "project/new"]
    assert memory.context.user_id == jay.caller.user


def test_only_the_machines_owner_names_a_folder(jay, tmp_path):
    member = jay.bound_to(caller=Caller(user="eve", role=Role.MEMBER))

    for attempt in (
        lambda: member.folders.create("x", path=tmp_path / "x"),
        lambda: member.folders.mirror("default", tmp_path / "x"),
        lambda: member.folders.remove("default"),
    ):
        with pytest.raises(Error):
            attempt()
    assert not (tmp_path / "x").exists()


def test_walks_run_at_most_once_in_a_while(open_engine, tmp_path, monkeypatch):
    jay = open_engine(registry=Registry(tmp_path, tmp_path, walk_seconds=3600))
    jay.paths.add(STORE, "a/b", "Text")
    walks = []
    walk = Folder.walk
    monkeypatch.setattr(Folder, "walk", lambda self: walks.append(1) or walk(self))
    for _ in range(5):
        look(jay)
        jay.search("Text")

    assert len(walks) == 1
    jay.paths.get(STORE, "a/b")
    file(tmp_path / "stores" / STORE, "a/b").write_text("---\n---\nEdited\n")
    assert jay.paths.get(STORE, "a/b").content == "Edited"


def test_a_folder_with_many_new_files_is_taken_in_over_several_looks(jay, folder, filed, monkeypatch):
    monkeypatch.setattr("scrubjay.engine.folders.LOOK_SECONDS", 0.0)
    for number in range(150):
        file(folder, f"project/n{number}").write_text(f"---\n---\nNote {number}\n")
    counts = []
    for _ in range(4):
        look(jay)
        counts.append(jay.list(counted=True).total)

    assert counts[-1] == 151
    assert counts == sorted(counts)


def test_threads_look_at_once_and_nothing_is_doubled(jay, folder, filed):
    for number in range(20):
        file(folder, f"project/n{number}").write_text(f"---\n---\nNote {number}\n")
    threads = [threading.Thread(target=look, args=(jay,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(names(jay)) == 21


def test_a_closed_engine_has_stopped_watching(jay, folder, filed):
    jay.folders.watch()
    jay.close()

    assert not jay._shared.shelves.watcher._thread.is_alive()


def test_a_watched_folder_is_taken_in_without_a_call(open_engine, tmp_path):
    from tests.reliability.rounds import wait_until

    jay = open_engine(registry=Registry(tmp_path, tmp_path, walk_seconds=3600))
    jay.paths.add(STORE, "a/b", "Text")
    look(jay)
    jay.folders.watch()
    place = file(tmp_path / "stores" / STORE, "a/watched")

    def seen():
        place.write_text("---\n---\nSeen by itself\n")
        return jay._records.at_path(STORE, "a/watched", jay._audience(Filter())) is not None

    wait_until(seen)


def test_a_relation_is_written_into_both_worlds(jay, folder, filed):
    other = jay.store("Beside it").memory
    with jay._records.writing() as tx:
        jay._ledger.link(tx, LinkKind.RELATED, jay.get(filed), other)
    jay._write_files()

    assert f'related: ["[[{other.path}]]"]' in file(folder, "project/harbour").read_text()


def test_a_description_has_an_end(jay):
    with pytest.raises(InvalidInput):
        jay.folders.create("x", description="y" * 501)


def test_a_store_has_one_folder(jay, tmp_path):
    jay.folders.create("notes", path=tmp_path / "one")
    with pytest.raises(Conflict):
        jay.folders.mirror("notes", tmp_path / "two")
    with pytest.raises(Conflict):
        jay.folders.create("notes", path=tmp_path / "three")


def test_an_expired_file_is_pruned_with_its_file(jay, folder, clock):
    jay.paths.add(STORE, "a/b", "Text", expires_at=clock() + timedelta(hours=1))
    clock.move(hours=2)
    jay.paths.prune(STORE)

    assert not file(folder, "a/b").exists()


# --- decisions -------------------------------------------------------------------------------------------------------


def test_a_decision_edited_by_hand_is_a_new_decision_on_its_topic(jay, folder):
    jay.folders.mirror(STORE)
    old = jay.decisions.save("database", "Use PostgreSQL", reasoning="We know it").memory
    place = file(folder, old.path)
    assert document(folder, old.path).content == "Use PostgreSQL\n\nWe know it"
    edit(place, "Use PostgreSQL", "Use SQLite")
    look(jay)

    [current] = [memory for memory in jay.list() if memory.topic == "database"]
    assert (current.content, current.detail["reasoning"]) == ("Use SQLite", "We know it")
    assert jay.get(old.id).superseded_by == current.id
    assert jay.get(old.id).content == "Use PostgreSQL"
    look(jay)
    assert document(folder, old.path).content == "Use PostgreSQL\n\nWe know it"
    assert document(folder, current.path).content == "Use SQLite\n\nWe know it"
    assert f'superseded_by: "[[{current.path}]]"' in place.read_text()


def test_a_chain_of_decisions_survives_a_clone(jay, tmp_path, clock):
    jay.folders.mirror(STORE, tmp_path / "vault")
    for choice in ("First", "Second", "Third"):
        clock.move(hours=1)
        jay.decisions.save("topic-a", choice, reasoning="Because")
    jay.decisions.checkpoint("Half done", next_steps="The rest")
    home = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "vault", tmp_path / "clone")
    with Engine(SqliteStore(home / "m.db"), HashingEmbedder(), clock=clock, registry=Registry(home, home)) as other:
        other.folders.add("clone", tmp_path / "clone")
        there = other.bound_to(spaces=("clone",))
        current = [memory.content for memory in there.list(Filter(kinds=frozenset({Kind.DECISION})))]
        everything = there.list(Filter(states=frozenset({State.ACTIVE, State.SUPERSEDED})))
        assert current == ["Third"]
        assert {memory.content for memory in everything} == {"First", "Second", "Third", "Half done"}
        assert {memory.id for memory in everything} == {
            memory.id for memory in jay.list(Filter(states=frozenset({State.ACTIVE, State.SUPERSEDED})))
        }
        [checkpoint] = [memory for memory in everything if memory.kind is Kind.CHECKPOINT]
        assert checkpoint.detail["next_steps"] == "The rest"


def test_a_checkpoint_edited_by_hand_is_left_alone(jay, folder):
    jay.folders.mirror(STORE)
    memory = jay.decisions.checkpoint("Half done").memory
    place = next(folder.rglob("*.md"))
    edit(place, "Half done", "All done")
    look(jay)

    assert jay.get(memory.id).content == "Half done"
    assert "checkpoint" in jay.folders.problems(STORE)[0].why
    assert "All done" in place.read_text()
