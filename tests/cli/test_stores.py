"""`scrubjay folders`, as people type it."""

from __future__ import annotations

import pytest

NOTE = "---\ntags: [harbour]\n---\n\nThe harbour master is called Ottilie\n"


@pytest.fixture
def notes(tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "harbour.md").write_text(NOTE)
    (folder / "README.md").write_text("# My notes\n")
    (folder / "broken.md").write_text("---\ntags: []\n")
    return folder


@pytest.fixture
def added(call, notes):
    """What the command says that adds the folder."""
    return call("folders", "add", "notes", str(notes))


def test_a_folder_is_added_and_searched_and_an_edit_found_without_another_command(call, added, notes):
    assert added.code == 0, added.err
    assert "2 new, 0 changed" in added.err
    assert "Skipped: broken.md: Its front matter is not closed." in added.err
    assert "Ottilie" in call("search", "harbour master", "--space", "notes").out

    (notes / "harbour.md").write_text(NOTE.replace("Ottilie", "Ada"))

    assert "Ada" in call("search", "harbour master", "--space", "notes").out


def test_the_list_says_where_stores_are(call, notes):
    call("folders", "add", "notes", str(notes), "--description", "What I learn")
    listed = {store["name"]: store for store in call("folders", "list", "--json").json}

    assert listed["notes"]["path"] == str(notes)
    assert listed["notes"]["description"] == "What I learn"
    assert listed["notes"]["memories"] == 2
    assert "no folder yet" in call("folders", "list").out


def test_a_folder_that_is_not_there_is_not_added(call, tmp_path):
    done = call("folders", "add", "notes", str(tmp_path / "none"), "--json")

    assert done.code == 1
    assert done.error["code"] == "invalid_input"
    assert "notes" not in call("folders", "list").out


def test_a_store_is_created_where_one_says_or_under_the_home(call, home, tmp_path):
    assert call("folders", "create", "one").out.strip() == str(home / "stores" / "one")
    assert call("folders", "create", "two", str(tmp_path / "two")).code == 0

    assert (home / "stores" / "one" / ".scrubjay-store").is_file()
    assert (tmp_path / "two" / ".scrubjay-store").is_file()
    again = call("folders", "create", "two")
    assert again.code == 1
    assert "Space two already has a folder." in again.err
    assert call("folders", "create", "Bad_Name").code == 1
    assert call("folders", "create").code == 2


def test_whoever_creates_a_folder_is_told_which_memories_become_files(call):
    assert "scrubjay folders mirror one" in call("folders", "create", "one").err
    assert "mirror" in call("folders", "--help").out


def test_a_project_has_a_store_of_its_own(call, tmp_path, monkeypatch):
    (tmp_path / "my project" / ".git").mkdir(parents=True)
    (tmp_path / "my project" / "src").mkdir()
    monkeypatch.chdir(tmp_path / "my project" / "src")
    made = call("folders", "create", "--project")

    assert made.out.strip() == str(tmp_path / "my project" / ".scrubjay")
    assert [store["name"] for store in call("folders", "list", "--json").json if store["project"]] == ["my-project"]


def test_a_cloned_project_brings_its_store(call, tmp_path, monkeypatch):
    """Nobody has registered it here; it is found from the working folder upwards."""
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    (tmp_path / "clone" / ".scrubjay").mkdir()
    (tmp_path / "clone" / ".scrubjay" / "harbour.md").write_text(NOTE)
    (tmp_path / "clone" / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "clone" / "deep")

    assert "Ottilie" in call("search", "harbour master", "--space", "auto").out


def test_a_removed_store_leaves_files_and_memories(call, added, notes):
    assert call("folders", "remove", "notes").code == 0

    assert (notes / "harbour.md").read_text() == NOTE
    assert "Ottilie" in call("search", "harbour master", "--space", "notes").out
    assert call("folders", "remove", "notes").code == 3


def test_reindexing_says_what_it_did(call, added, notes):
    (notes / "more.md").write_text("---\n---\nMore\n")
    (notes / "harbour.md").unlink()
    done = call("folders", "reindex", "notes", "--json").json

    assert (done["new"], done["gone"]) == (1, 1)
    assert [problem["name"] for problem in done["problems"]] == ["broken.md"]


def test_a_vault_is_added_read_only(call, notes):
    before = {place.name: place.read_bytes() for place in notes.iterdir()}
    assert call("folders", "add", "vault", str(notes), "--read-only").code == 0

    assert "read-only" in call("folders", "list").out
    assert "Ottilie" in call("search", "harbour master", "--space", "vault").out
    refused = call("store", "Something", "--space", "vault")
    assert refused.code != 0
    assert "Store vault is read-only." in refused.err
    assert {place.name: place.read_bytes() for place in notes.iterdir()} == before


def test_a_mirrored_space_is_a_folder(call, stored, tmp_path):
    stored("User moved to Austin")
    told = call("folders", "mirror", "default", str(tmp_path / "vault")).err
    assert f"1 file written to {tmp_path / 'vault'}" in told
    stored("User likes tea")
    texts = [file.read_text() for file in (tmp_path / "vault").rglob("*.md")]

    assert sorted(text.splitlines()[-1] for text in texts) == ["User likes tea", "User moved to Austin"]
    assert call("folders", "mirror", "default", "--stop").code == 0
    stored("User has a dog")
    assert len(list((tmp_path / "vault").rglob("*.md"))) == 2


def test_a_repositorys_space_is_mirrored_where_its_folder_is_and_a_misspelt_one_nowhere(call, tmp_path, monkeypatch):
    (tmp_path / "crane" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "crane")
    call("folders", "create", "--project")

    misspelt = call("folders", "mirror", "cranes")
    call("folders", "mirror")
    call("store", "The crane is on pier 4")

    assert misspelt.code == 3
    assert "No space cranes." in misspelt.err
    assert [line.split("\t")[0] for line in call("folders", "list").out.splitlines()] == ["crane", "default"]
    assert len(list((tmp_path / "crane" / ".scrubjay").rglob("*.md"))) == 1


def test_a_broken_registry_names_the_line_and_is_left_alone(call, home):
    home.mkdir()
    (home / "stores.yaml").write_text("stores:\n  notes: {path: [\n")
    done = call("folders", "list", "--json")

    assert done.code == 1
    assert done.error["code"] == "registry_damaged"
    assert "line 3, column 1" in done.error["message"]
    assert call("folders", "create", "other").code == 1
    assert (home / "stores.yaml").read_text() == "stores:\n  notes: {path: [\n"
    assert call("store", "Still works").code == 0


def test_the_registry_lies_where_cortex_looks_for_it(call, tmp_path, notes):
    env = {"CORTEX_DATA_PATH": str(tmp_path / "cortex")}
    (tmp_path / "cortex").mkdir()
    (tmp_path / "cortex" / "stores.yaml").write_text(f'notes:\n  path: "{notes}"\n')

    assert "Ottilie" in call("search", "harbour master", "--space", "notes", env=env).out


def test_the_former_name_of_the_command_still_works(call):
    assert call("stores", "list").code == 0
    assert "  stores" not in call("--help").out


def test_a_folder_that_is_away_is_listed_and_found_by_doctor_until_it_is_back_or_created_again(
    call, added, notes, tmp_path
):
    call("folders", "mirror", "notes")
    notes.rename(tmp_path / "away")
    assert call("store", "The crane is on pier 4", "--space", "notes").code == 0

    row = next(line for line in call("folders", "list").out.splitlines() if line.startswith("notes"))
    assert "1 to write, not there: its disk may not be mounted" in row
    finding = next(one for one in call("doctor", "--json").json["findings"] if one["check"] == "folders")
    assert (finding["state"], finding["do"]) == (
        "warning",
        "Mount its disk; if it is gone for good: scrubjay folders reindex notes --new-folder",
    )
    assert "1 file waits to be written" in finding["found"]
    assert call("folders", "reindex", "notes", "--new-folder").code == 0
    assert len(list(notes.rglob("*.md"))) == 3
    assert "folders" not in [one["check"] for one in call("doctor", "--json").json["findings"]]
