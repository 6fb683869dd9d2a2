"""A space and its folder in step: every line of the design about folders, and what people do to files."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.archive.archiving import Criteria
from scrubjay.engine.files import stores
from scrubjay.engine.files.links import NoteLinks
from scrubjay.engine.files.two_way import FolderReader
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy
from scrubjay.engine.parts import engine_on
from scrubjay.errors import (
    Conflict,
    Error,
    FileDamaged,
    Forbidden,
    InvalidInput,
    NotFound,
    RegistryDamaged,
    StillReading,
    StorageError,
)
from scrubjay.folders.folder import MARKER, Folder
from scrubjay.folders.markdown import parse_file
from scrubjay.folders.registry import Registered, Registry
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import Kind, LinkKind, State, Status
from scrubjay.values.search import Filter
from tests.reliability.rounds import wait_until

pytestmark = pytest.mark.process

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
    return parse_file(file(folder, path).read_bytes())


def edit(place, old, new):
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new))


def look(jay):
    """What a call that lists does first."""
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


def test_phrases_are_in_the_file_and_read_from_it(jay, folder, filed):
    place = file(folder, "project/harbour")
    assert "also:" not in place.read_text()
    jay.update(filed, also=["who runs the port?", "pier: four"])

    assert parse_file(place.read_bytes()).also == ("who runs the port?", "pier: four")
    edit(place, 'also: ["who runs the port?", "pier: four"]', "also: [captain, no]")
    look(jay)
    assert (jay.get(filed).also, jay.get(filed).version) == (("captain", "no"), 1)
    assert [hit.memory.id for hit in jay.search("captain")] == [filed]
    assert jay.curation.undo(filed).memory.also == ("who runs the port?", "pier: four")
    edit(place, 'also: ["who runs the port?", "pier: four"]\n', "")
    look(jay)
    assert jay.get(filed).also == ()


def test_another_programs_list_of_that_name_stays_its_own(jay, folder, filed):
    place = file(folder, "project/harbour")
    edit(place, "source: ", "also: see the other note\nsource: ")
    look(jay)
    jay.update(filed, content="The harbour master is called Ada", also=["captain"])

    assert "also: see the other note\n" in place.read_text()
    assert place.read_text().count("also:") == 1


TITLE = 'title: "The harbour master is called Ottilie"'
EDITS = {
    "tags as a list": ([('["people"]', "[people, work]")], {"tags": ("people", "work")}),
    "tags as words": ([('["people"]', "people work")], {"tags": ("people", "work")}),
    "an end": ([("source: ", "expires_at: 2020-01-01\nsource: ")], {"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}),
    "a title": ([(f"{TITLE}\ncategory: ", "title: Who keeps it\ncategory: ")], {"title": "Who keeps it"}),
    "a text twice, with the title left behind": (
        [("called Ottilie\n", "called Ada\n"), ("called Ada\n", "called Eve\n")],
        {"content": "The harbour master is called Eve", "title": "The harbour master is called Eve"},
    ),
}


@pytest.mark.parametrize(("edits", "said"), EDITS.values(), ids=EDITS)
def test_what_is_edited_in_a_file_its_memory_says(jay, folder, filed, edits, said):
    for old, new in edits:
        edit(file(folder, "project/harbour"), old, new)
        look(jay)

    memory = jay.get(filed)
    assert {name: getattr(memory, name) for name in said} == said


NEW_FILES = {
    "with phrases": ("---\ntags: []\nalso: [yacht, berth]\n---\n\nMoored\n", {"also": ("yacht", "berth")}),
    "with a name longer than a title can be": ("Text\n", {"title": "x" * 200}),
    "with properties of its own, but no title": (
        "---\naliases: [x]\ntags: [work]\n---\n# The Harbour\n\nAt noon #sea\n",
        {"title": "The Harbour", "tags": ("work", "sea")},
    ),
}


@pytest.mark.parametrize(("text", "said"), NEW_FILES.values(), ids=NEW_FILES)
def test_what_a_new_file_says_its_memory_says_and_it_stays_the_same_memory(jay, folder, text, said):
    folder.mkdir(parents=True)
    place = file(folder, "x" * 240)
    place.write_text(text)
    look(jay)
    [memory] = jay.list()
    assert {name: getattr(memory, name) for name in said} == said

    place.write_text(text.replace("# The Harbour", "# The Port") if "# The" in text else f"{text}# The Port\n")
    look(jay)
    assert jay.get(memory.id).title == "The Port"


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
        "a\r\nb",
        "x\0y",
        "🦜 日本語",
    ],
)
def test_any_text_survives_its_file(jay, folder, text):
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

    hit = jay.search("hand").hits[0]
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
    assert parse_file(place.read_bytes()).content == "Green"
    assert sorted(one.name for one in folder.rglob("*.md")) == ["Größe & Farbe_2.md", "harbour.md"]


def test_files_that_differ_in_case_only_are_two_memories(jay, folder, filed):
    (folder / "Same.md").write_text("---\n---\nOne\n")
    (folder / "same.md").write_text("---\n---\nTwo\n")
    look(jay)
    look(jay)

    assert {"same", "same-2"} <= set(names(jay))
    assert len(names(jay)) == 3


# --- files without front matter --------------------------------------------------------------------------------------

PLAIN = """\
Before any heading.

# The  Harbour #

See [[Tide Table]], [[people/Ottilie#Phone|her number]] and [[nowhere]]. #work #work/boats

```sh
# not a heading #nottag [[not a link]]
```
A #2 is no tag, nor is a#b or `#code`.
"""


@pytest.fixture
def vault(folder):
    """A folder of notes that another program made."""
    (folder / "people").mkdir(parents=True)
    for name, text in {
        "Harbour Notes": PLAIN,
        "Tide Table": "High at noon",
        "people/Ottilie": "Ottilie keeps the harbour.\n",
    }.items():
        file(folder, name).write_text(text)
        os.utime(file(folder, name), (1_700_000_000, 1_700_000_000))
    return folder


def everything(folder):
    return {place: place.read_bytes() for place in folder.rglob("*.md")}


def test_plain_markdown_is_a_memory(jay, vault):
    look(jay)

    note = jay.paths.get(STORE, "harbour-notes")
    assert note.content == PLAIN.removesuffix("\n")
    assert note.title == "The Harbour"
    assert note.tags == ("work", "work/boats")
    assert note.created_at == note.updated_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert jay.paths.get(STORE, "tide-table").title == "Tide Table"
    ends = {jay.get(link.target).path for link in jay.records.history.links([note.id]) if link.source == note.id}
    assert ends == {"tide-table", "people/ottilie"}
    assert not jay.folders.problems(STORE)


def test_reading_plain_markdown_writes_nothing(jay, vault):
    before = everything(vault)
    for _ in range(3):
        look(jay)
        jay.search("harbour")
        jay.write_files(patient=True)
    file(vault, "Tide Table").rename(file(vault, "Tides"))
    look(jay)
    look(jay)

    before[file(vault, "Tides")] = before.pop(file(vault, "Tide Table"))
    assert everything(vault) == before
    assert jay.records.files.waiting() == {}
    assert jay.paths.get(STORE, "tides").content == "High at noon"


def test_plain_markdown_gets_front_matter_when_its_memory_is_changed_here(jay, vault):
    look(jay)
    note = jay.paths.get(STORE, "people/ottilie")
    jay.update(note.id, tags=("people",))

    text = file(vault, "people/Ottilie").read_text()
    assert text.startswith("---\n")
    assert text.endswith("---\n\nOttilie keeps the harbour.\n")
    assert parse_file(text.encode()).id == note.id
    assert not file(vault, "people/ottilie").exists()


def test_a_new_note_is_found_by_its_path_whatever_its_file_is_called(jay, vault):
    look(jay)
    for name in ("Bell Buoy", "people/Amadou D."):
        file(vault, name).write_text("Written by hand\n")

    assert jay.paths.get(STORE, "bell-buoy").content == "Written by hand"
    assert jay.paths.move(STORE, "people/amadou-d", "people/deputy").memory.path == "people/deputy"


def test_an_edit_of_plain_markdown_is_an_edit(jay, vault):
    look(jay)
    id = jay.paths.get(STORE, "harbour-notes").id
    place = file(vault, "Harbour Notes")
    place.write_text(PLAIN.replace("#work/boats", "#ships").replace("The  Harbour", "The Port"))
    look(jay)

    assert jay.get(id).tags == ("work", "ships")
    assert jay.get(id).title == "The Port"
    assert [version.memory.title for version in jay.history(id)] == ["The Harbour"]


def test_a_file_that_loses_its_front_matter_stays_the_same_memory(jay, folder, clock):
    expiry = clock() + timedelta(days=1)
    id = jay.paths.add(STORE, "a/b", "Text", tags=["kept"], expires_at=expiry).memory.id
    file(folder, "a/b").write_text("Other text\n")
    look(jay)

    memory = jay.get(id)
    assert (memory.content, memory.tags, memory.expires_at) == ("Other text", ("kept",), expiry)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_vault_of_1000_notes_opens_as_a_store(bare, tmp_path, read_only):
    vault, count = tmp_path / "vault", 1_000 if read_only else 100
    (vault / "Daily Notes").mkdir(parents=True)
    for number in range(count):
        text = f"# Day {number}\n\nAfter [[Day {number - 1}]] #day\n"
        (vault / "Daily Notes" / f"Day {number}.md").write_text(text)
    before = everything(vault)

    assert bare.folders.add("vault", vault, read_only=read_only).new == count
    found = bare.paths.list("vault")
    assert (len(found.entries), found.unreadable) == (count, 0)
    note = bare.paths.get("vault", "daily-notes/day-7")
    assert note.title == "Day 7"
    assert {link.source == note.id for link in bare.records.history.links([note.id])} == {True, False}
    assert everything(vault) == before
    assert bare.records.files.waiting() == {}
    assert (vault / MARKER).exists() is not read_only


PROPERTIES = """\
id: 12345
type: meeting
topic: Physics
source: [a, b]
related: "[[Nowhere]]"
outcome: good
title: [x]
category: Lecture
date: 2024-05-01
"""


@pytest.mark.parametrize("left_out", ["", "id", "type", "id type"])
def test_properties_of_other_programs_survive_every_change_here(jay, folder, left_out):
    lines = [line for line in PROPERTIES.splitlines() if line.partition(":")[0] not in left_out.split()]
    folder.mkdir(parents=True)
    file(folder, "n").write_text("\n".join(["---", *lines, "---", "Text", ""]))
    look(jay)
    id = jay.paths.get(STORE, "n").id
    other = jay.store("Another").memory.id
    for tag in ("first", "second", "third"):
        jay.update(id, tags=(tag,), related=(other,))
        look(jay)

    text = file(folder, "n").read_text()
    assert set(lines) <= set(text.splitlines())
    assert not jay.folders.problems(STORE)
    assert jay.get(id).tags == ("third",)


def related(jay, path):
    """Where the links of a memory lead."""
    id = jay.paths.get(STORE, path).id
    links = jay.records.history.links([id], kinds=frozenset({LinkKind.RELATED}))
    return {jay.get(link.target).path for link in links if link.source == id and link.stands}


def test_a_link_waits_for_the_note_that_it_leads_to(jay, folder):
    folder.mkdir(parents=True)
    file(folder, "plan").write_text("See [[Crème Brûlée]]\n")
    look(jay)
    assert related(jay, "plan") == set()

    file(folder, "Crème Brûlée").write_text("Eggs\n")
    look(jay)
    assert related(jay, "plan") == {"creme-brulee"}
    assert file(folder, "plan").read_text() == "See [[Crème Brûlée]]\n"


def test_a_link_that_is_taken_out_of_a_text_is_a_relation_no_longer(jay, vault):
    look(jay)
    given = jay.store("Another", related=(jay.paths.get(STORE, "tide-table").id,)).memory
    file(vault, "Harbour Notes").write_text("See [[people/Ottilie]]\n")
    look(jay)

    assert related(jay, "harbour-notes") == {"people/ottilie"}
    assert related(jay, given.path) == {"tide-table"}
    assert jay.records.files.waiting() == {}


def test_links_in_a_note_that_got_front_matter_here_are_followed(jay, vault):
    look(jay)
    jay.update(jay.paths.get(STORE, "tide-table").id, tags=("sea",))
    edit(file(vault, "Tide Table"), "High at noon", "High at noon, says [[Ottilie]]")
    look(jay)

    assert related(jay, "tide-table") == {"people/ottilie"}


def test_links_in_a_text_that_is_changed_here_are_followed(jay, vault):
    look(jay)
    jay.paths.update(STORE, "harbour-notes", {"content": "See [[people/Ottilie]] and [[bell-buoy]]"})
    jay.paths.update(STORE, "tide-table", {"content": "High at noon, says [[Ottilie]]"})

    assert related(jay, "harbour-notes") == related(jay, "tide-table") == {"people/ottilie"}
    assert 'related: ["[[people/Ottilie]]"]\n' in file(vault, "Harbour Notes").read_text()
    assert 'related: ["[[people/Ottilie]]"]\n' in file(vault, "Tide Table").read_text()
    jay.paths.add(STORE, "bell-buoy", "It rings beside [[Tide Table]]")

    assert related(jay, "bell-buoy") == {"tide-table"}
    assert related(jay, "harbour-notes") == {"people/ottilie", "bell-buoy"}
    jay.paths.update(STORE, "tide-table", {"content": "High at noon"})

    assert related(jay, "tide-table") == set()
    assert "related" not in file(vault, "Tide Table").read_text()
    assert jay.records.files.waiting() == {}


def test_links_of_a_text_that_was_written_before_a_kill_are_followed_later(open_engine, vault, monkeypatch):
    jay = open_engine()
    look(jay)
    with monkeypatch.context() as patched:
        patched.setattr(NoteLinks, "follow_written", lambda *_: None)
        jay.paths.update(STORE, "tide-table", {"content": "High at noon, says [[Ottilie]]"})
    jay.close()
    jay = open_engine()
    look(jay)

    assert related(jay, "tide-table") == {"people/ottilie"}


def test_links_are_followed_though_the_first_reading_was_interrupted(open_engine, folder, hasty):
    folder.mkdir(parents=True)
    for number in range(150):
        file(folder, f"n{number}").write_text(f"See [[n{(number + 75) % 150}]]\n")
    jay = open_engine()
    with pytest.raises(StillReading):
        look(jay)
    jay.close()
    jay = open_engine()
    wait_until(lambda: is_read(jay))

    assert all(related(jay, f"n{number}") == {f"n{(number + 75) % 150}"} for number in (0, 20, 74, 75, 149))


# --- folders that are only read --------------------------------------------------------------------------------------


@pytest.fixture
def sealed(jay, vault, tmp_path):
    """An engine at a store whose folder is never written into."""
    vault.rename(tmp_path / "vault")
    jay.folders.add("vault", tmp_path / "vault", read_only=True)
    return jay.bound_to(spaces=("vault",))


CHANGES = {
    "add": lambda jay, one: jay.paths.add("vault", "new", "Text"),
    "update": lambda jay, one: jay.paths.update("vault", "tide-table", {"content": "Other"}),
    "remove": lambda jay, one: jay.paths.remove("vault", "tide-table"),
    "move": lambda jay, one: jay.paths.move("vault", "tide-table", "tides"),
    "prune": lambda jay, one: jay.paths.prune("vault"),
    "create_section": lambda jay, one: jay.paths.create_section("vault", "x"),
    "delete_section": lambda jay, one: jay.paths.delete_section("vault", "people/x"),
    "mirror": lambda jay, one: jay.folders.mirror("vault"),
    "store": lambda jay, one: jay.store("Text"),
    "change": lambda jay, one: jay.update(one, content="Other"),
    "tag": lambda jay, one: jay.update(one, tags=("x",)),
    "forget": lambda jay, one: jay.forget(one),
    "erase": lambda jay, one: jay.forget(one, hard=True),
    "decide": lambda jay, one: jay.decisions.save("topic", "Text", reasoning="Why"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nothing_is_changed_in_a_read_only_store(sealed, tmp_path, change):
    before = everything(tmp_path / "vault")
    with pytest.raises(Forbidden, match="Store vault is read-only"):
        change(sealed, sealed.paths.get("vault", "tide-table").id)

    assert everything(tmp_path / "vault") == before
    assert sorted(one.name for one in (tmp_path / "vault").iterdir()) == ["Harbour Notes.md", "Tide Table.md", "people"]
    assert sealed.records.files.waiting() == {}


def test_a_read_only_folder_is_followed(sealed, tmp_path):
    vault = tmp_path / "vault"
    id = sealed.paths.get("vault", "tide-table").id
    file(vault, "Tide Table").write_text("Low at noon")
    file(vault, "people/Ottilie").unlink()
    file(vault, "New").write_text("A new note")
    look(sealed)

    assert sealed.get(id).content == "Low at noon"
    assert {entry.path for entry in sealed.paths.list("vault").entries} == {"harbour-notes", "new", "tide-table"}
    file(vault, "Tide Table").rename(file(vault, "Tides"))
    look(sealed)
    assert sealed.paths.get("vault", "tides").id == id


def test_an_empty_read_only_folder_may_be_a_disk_that_is_not_there(sealed, tmp_path):
    shutil.move(tmp_path / "vault", tmp_path / "away")
    (tmp_path / "vault").mkdir()
    look(sealed)

    assert len(sealed.paths.list("vault").entries) == 3


@pytest.mark.parametrize("change", [{"content": "Changed here"}, {"tags": ("here",)}])
def test_what_was_changed_before_a_folder_became_read_only_is_read_from_its_file_again(jay, folder, filed, change):
    registry = jay.registry
    edited = jay.update(filed, **change)
    place = file(folder, "project/harbour")
    with jay.records.writing() as tx:
        tx.files.keep([filed])
    place.write_text("---\ntags: [people]\n---\nWhat the file says\n")
    registry.add(Registered(name=STORE, path=folder, read_only=True))
    before = place.read_bytes()
    look(jay)
    look(jay)

    assert edited.version < jay.get(filed).version
    assert (jay.get(filed).content, jay.get(filed).tags) == ("What the file says", ("people",))
    assert place.read_bytes() == before
    assert jay.records.files.waiting() == {}


def test_read_only_stands_in_the_registry_and_in_lists(sealed, tmp_path):
    assert "    read_only: true\n" in (tmp_path / "stores.yaml").read_text()
    assert {store.name: store.read_only for store in sealed.folders.list()} == {"default": False, "vault": True}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_to_write_can_be_added_read_only(jay, vault, tmp_path):
    vault.rename(tmp_path / "vault")
    (tmp_path / "vault").chmod(0o555)
    with pytest.raises(StorageError, match="cannot be written to") as error:
        jay.folders.add("vault", tmp_path / "vault")
    assert "--read-only" in str(error.value.hint)

    assert jay.folders.add("vault", tmp_path / "vault", read_only=True).new == 3


# --- what files say of their memories --------------------------------------------------------------------------------


def test_a_category_of_somebody_elses_stays(jay, folder, filed):
    file(folder, "soup").write_text("---\ncategory: Recipes\ntitle: Soup\n---\nLeek\n")
    look(jay)
    memory = jay.paths.get(STORE, "soup")
    jay.update(memory.id, content="Leek and potatoes")

    assert memory.title == "Soup"
    text = file(folder, "soup").read_text()
    assert "category: Recipes\n" in text
    assert text.count("category:") == text.count("title:") == 1


def test_the_file_of_a_decision_tells_how_it_went(jay, tmp_path):
    saved = jay.decisions.save("auth", "Use sessions", reasoning="Simple").memory
    jay.folders.mirror(STORE, tmp_path / "vault")
    jay.decisions.mark(saved.id, "failed", reason="Too slow")

    [place] = (tmp_path / "vault").rglob("*.md")
    assert 'outcome: failed\noutcome_reason: "Too slow"\n' in place.read_text()
    look(jay)
    assert jay.get(saved.id).text == "Use sessions\n\nSimple"


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


@pytest.fixture(params=["added here", "made by hand"])
def three(request, jay, folder):
    """The ids of three memories at a, b and c, whose files carry ids or not."""
    for name in "abc":
        if request.param == "added here":
            jay.paths.add(STORE, name, f"Text of {name}")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            file(folder, name).write_text(f"---\n---\nText of {name}\n")
    look(jay)
    return {name: jay.paths.get(STORE, name).id for name in "abc"}


def rename(folder, **to):
    for old in to:
        file(folder, old).rename(folder / f"{old}.away")
    for old, new in to.items():
        (folder / f"{old}.away").rename(file(folder, new))


@pytest.mark.parametrize("to", [{"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}])
def test_ids_and_histories_follow_the_text_of_files_that_were_swapped(jay, folder, three, to):
    jay.update(three["a"], tags=("first",))
    before = {path: file(folder, path).read_bytes() for path in three}
    rename(folder, **to)
    look(jay)
    look(jay)

    for old, new in to.items():
        memory = jay.paths.get(STORE, new)
        assert (memory.id, memory.content) == (three[old], f"Text of {old}")
        assert {version.memory.content for version in jay.history(memory.id)} == {f"Text of {old}"}
        assert file(folder, new).read_bytes() == before[old]
    assert sorted(names(jay)) == ["a", "b", "c"]


def test_swapped_files_that_were_edited_too_are_told_by_their_ids(jay, folder):
    ids = [jay.paths.add(STORE, path, f"Text of {path}").memory.id for path in "ab"]
    rename(folder, a="b", b="a")
    edit(file(folder, "b"), "Text of a", "Edited text of a")
    look(jay)

    assert (jay.paths.get(STORE, "b").id, jay.get(ids[0]).content) == (ids[0], "Edited text of a")
    assert (jay.paths.get(STORE, "a").id, jay.get(ids[1]).content) == (ids[1], "Text of b")


def test_a_file_moved_over_another_keeps_its_id_and_the_other_is_deleted_softly(jay, folder, three):
    file(folder, "a").replace(file(folder, "b"))
    look(jay)
    look(jay)

    assert sorted(names(jay)) == ["b", "c"]
    assert (jay.paths.get(STORE, "b").id, jay.get(three["a"]).content) == (three["a"], "Text of a")
    assert jay.get(three["b"], deleted=True).status is Status.DELETED
    assert sorted(one.name for one in folder.rglob("*.md")) == ["b.md", "c.md"]


def test_what_another_file_was_moved_over_is_a_file_again_when_it_comes_back(jay, folder, three):
    a, b = file(folder, "a"), file(folder, "b")
    lost = jay.paths.get(STORE, "a").id
    b.replace(a)
    look(jay)
    text = jay.recover(lost).content

    back = jay.paths.get(STORE, jay.get(lost).path)
    assert document(folder, back.path).content == text
    jay.update(lost, content="Said later")
    assert document(folder, back.path).content == "Said later"


def test_a_file_copied_over_another_is_an_edit(jay, folder, three):
    shutil.copy(file(folder, "a"), file(folder, "b"))
    look(jay)

    assert jay.get(three["a"]).path == "a"
    assert (jay.paths.get(STORE, "b").id, jay.get(three["b"]).content) == (three["b"], "Text of a")


def test_a_swap_that_a_kill_interrupted_is_finished(jay, folder, monkeypatch):
    ids = [jay.paths.add(STORE, path, f"Text of {path}").memory.id for path in "ab"]
    rename(folder, a="b", b="a")
    revise, calls = FolderReader.revise, []

    def killed_after_one(*args, **more):
        calls.append(1)
        return len(calls) < 2 and revise(*args, **more)

    monkeypatch.setattr(FolderReader, "revise", killed_after_one)
    look(jay)
    monkeypatch.undo()
    look(jay)
    look(jay)

    assert sorted(jay.get(id).path.removesuffix("-2") for id in ids) == ["a", "b"]
    assert [jay.get(id).content for id in ids] == ["Text of a", "Text of b"]
    assert len(names(jay)) == 2


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


def refuse_to_read(monkeypatch):
    scandir = os.scandir

    def failing(path):
        if str(path).endswith("project"):
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", failing)


NO_DELETIONS = {
    "a disk that is not mounted": lambda folder, _: folder.rename(folder.with_name("away")),
    "an empty mount point": lambda folder, _: (folder.rename(folder.with_name("away")), folder.mkdir()),
    "no marker": lambda folder, _: ((folder / MARKER).unlink(), file(folder, "project/harbour").unlink()),
    "a part that cannot be read": lambda _, monkeypatch: refuse_to_read(monkeypatch),
}


@pytest.mark.parametrize("happens", NO_DELETIONS.values(), ids=NO_DELETIONS)
def test_a_file_that_is_only_not_seen_deletes_nothing(jay, folder, filed, monkeypatch, happens):
    happens(folder, monkeypatch)
    look(jay)
    look(jay)
    assert jay.get(filed).status is Status.ACTIVE

    monkeypatch.undo()
    if folder.with_name("away").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name("away").rename(folder)
    look(jay)
    assert names(jay) == ["project/harbour"]


@pytest.mark.parametrize("place", ["nothing", "an empty folder"])
def test_a_file_waits_for_a_folder_that_is_away(jay, folder, filed, tmp_path, place):
    (folder / "plain.md").write_text("A note without front matter\n")
    look(jay)
    away = tmp_path / "away"
    folder.rename(away)
    if place == "an empty folder":
        folder.mkdir()
    added = jay.paths.add(STORE, "project/second", "Stored meanwhile")
    changed = jay.paths.update(STORE, "plain", {"tags": ["t"]})

    for placed in (added, changed):
        assert "disk may not be mounted" in placed.waits
    assert not folder.exists() or list(folder.iterdir()) == []
    [store] = [one for one in jay.folders.list() if one.name == STORE]
    assert (store.away, store.waiting) == (True, 2)
    assert jay.paths.get(STORE, "project/second").content == "Stored meanwhile"
    with pytest.raises(StorageError, match="mounted"):
        jay.folders.mirror(STORE)

    if place == "an empty folder":
        folder.rmdir()
    away.rename(folder)
    look(jay)
    assert sorted(names(jay)) == ["plain", "project/harbour", "project/second"]
    assert sorted(one.name for one in folder.rglob("*.md")) == ["harbour.md", "plain.md", "second.md"]
    assert document(folder, "project/second").content == "Stored meanwhile"
    assert not jay.folders.list()[0].away


def test_a_file_waits_where_nothing_may_be_created(jay, folder, filed):
    folder.rename(folder.with_name("away"))
    folder.parent.chmod(0o500)
    try:
        assert "mounted" in jay.paths.add(STORE, "project/second", "Another").waits
    finally:
        folder.parent.chmod(0o700)


def test_a_folder_that_is_gone_for_good_is_filled_again(jay, folder, filed):
    shutil.rmtree(folder)
    jay.paths.add(STORE, "project/second", "Another")
    assert not folder.exists()
    jay.folders.reindex(STORE, new_folder=True)

    assert sorted(names(jay)) == ["project/harbour", "project/second"]
    assert document(folder, "project/harbour").id == filed
    assert document(folder, "project/second").content == "Another"


def test_a_new_store_does_not_wait_for_the_folder_of_a_former_one(jay, tmp_path):
    jay.folders.create("notes", path=tmp_path / "notes")
    jay.paths.add("notes", "first", "One")
    jay.folders.remove("notes")
    shutil.rmtree(tmp_path / "notes")

    assert jay.paths.add("notes", "second", "Two").waits is None


def test_another_folder_in_the_registry_deletes_nothing(jay, folder, filed, tmp_path):
    other = tmp_path / "other"
    Folder(other).prepare()
    (other / "x.md").write_text("---\n---\nSomething else\n")
    jay.registry.add(Registered(name=STORE, path=other))
    look(jay)
    look(jay)

    assert sorted(names(jay)) == ["project/harbour", "x"]
    assert document(other, "project/harbour").id == filed


# --- what other verbs do to a file -----------------------------------------------------------------------------------


BY_CRITERIA = Criteria(below_importance=1.0)
AWAY_AND_BACK = {
    "forgotten": (lambda jay, one: jay.forget(one), lambda jay, one: jay.recover(one)),
    "archived": (lambda jay, one: jay.cold_storage.archive([one]), lambda jay, one: jay.cold_storage.restore([one])),
    "archived by criteria": (
        lambda jay, _: jay.cold_storage.archive_matching(BY_CRITERIA),
        lambda jay, one: jay.cold_storage.restore([one]),
    ),
}


@pytest.mark.parametrize(("away", "back"), AWAY_AND_BACK.values(), ids=AWAY_AND_BACK)
def test_a_file_goes_with_its_memory_and_comes_back_with_it(jay, folder, filed, away, back):
    written = parse_file(file(folder, "project/harbour").read_bytes())
    away(jay, filed)
    assert not file(folder, "project/harbour").exists()
    look(jay)
    assert jay.get(filed, deleted=True).status in (Status.DELETED, Status.ARCHIVED)
    back(jay, filed)

    now = document(folder, "project/harbour")
    assert replace(now, updated_at=None) == replace(written, updated_at=None)
    look(jay)
    assert jay.get(filed).status is Status.ACTIVE


def test_a_hard_delete_leaves_nothing_of_the_text(jay, folder, filed):
    edit(file(folder, "project/harbour"), "Ottilie", "Ottilie Secret")
    jay.forget(filed, hard=True)

    assert [one for one in folder.rglob("*") if one.is_file() and b"Ottilie" in one.read_bytes()] == []
    look(jay)
    assert names(jay) == []


def test_consolidating_leaves_the_results_file_alone(jay, folder, filed):
    other = jay.paths.add(STORE, "project/harbour-master", "The harbour master is called Ottilie Brandt").memory.id
    jay.consolidation.merge(ConsolidationPlan(ids=(filed, other), strategy=Strategy.KEEP_PRIMARY, primary=other))

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


def change_row(jay, id, **fields):
    """As a process does that is killed before it writes the file."""
    with jay.records.writing() as tx:
        jay.ledger.change(tx, replace(jay.get(id), **fields), "updated", *fields)


def test_a_row_whose_file_was_never_written_gets_it(jay, folder, filed):
    change_row(jay, filed, tags=("late",))
    assert document(folder, "project/harbour").tags == ("people",)
    look(jay)

    assert document(folder, "project/harbour").tags == ("late",)
    assert jay.records.files.waiting() == {}


def test_a_search_writes_no_file_that_waits(jay, folder, filed):
    """It takes in what people changed; what we owe to files is written by those who change or list something."""
    look(jay)
    change_row(jay, filed, tags=("late",))
    jay.search("harbour")

    assert document(folder, "project/harbour").tags == ("people",)
    assert jay.records.files.waiting() == {STORE: 1}
    look(jay)
    assert document(folder, "project/harbour").tags == ("late",)


@pytest.mark.parametrize("seen_before", [True, False])
def test_a_search_finds_what_was_edited_by_hand(open_engine, jay, folder, filed, seen_before):
    """Without a server's watcher, and be it the first thing that a process does."""
    other = jay if seen_before else open_engine().bound_to(spaces=(STORE,))
    file(folder, "project/harbour").write_text("The pilot's name is Zacharias\n")

    assert [hit.memory.id for hit in other.search("Zacharias")] == [filed]


def test_a_search_finds_that_a_file_was_deleted_or_added_by_hand(jay, folder, filed):
    file(folder, "project/harbour").unlink()
    (folder / "new.md").write_text("Cranes are painted blue\n")

    assert [hit.memory.content for hit in jay.search("Cranes are painted")] == ["Cranes are painted blue"]
    assert jay.get(filed, deleted=True).status is Status.DELETED


def test_files_are_looked_at_once_a_second(tmp_path):
    assert Registry(tmp_path, tmp_path).walk_seconds <= 1.0


def test_an_entry_in_the_outbox_means_write_and_never_deleted(jay, folder, filed):
    change_row(jay, filed, tags=("late",))
    file(folder, "project/harbour").unlink()
    look(jay)

    assert jay.get(filed).status is Status.ACTIVE
    assert document(folder, "project/harbour").tags == ("late",)


def test_a_file_written_but_not_noted_is_not_taken_for_an_edit(jay, folder, filed):
    """Killed after the rename, before the store knew; then the memory changed once more."""
    place = file(folder, "project/harbour")
    before = jay.records.files.of(filed)
    jay.update(filed, content="Second text")
    after = jay.records.files.of(filed)
    with jay.records.writing() as tx:
        tx.files.in_sync(filed, name=before.name, hash=before.hash, stamp="", version=before.agreed_version)
        tx.files.keep([filed])
        jay.ledger.change(tx, replace(jay.get(filed), content="Third text"), "updated", "content")
    assert parse_file(place.read_bytes()).content == "Second text"
    assert after.hash != before.hash
    look(jay)

    assert jay.get(filed).content == "Third text"
    assert parse_file(place.read_bytes()).content == "Third text"


def test_a_new_file_written_but_not_noted_is_not_doubled(jay, folder, filed):
    with jay.records.writing() as tx:
        tx.files.drop([filed])
        tx.files.keep([filed])
    look(jay)
    look(jay)

    assert names(jay) == ["project/harbour"]
    assert [one.name for one in folder.rglob("*.md")] == ["harbour.md"]


def test_a_foreign_file_is_never_overwritten(jay, folder, filed):
    place = file(folder, "a/b")
    place.parent.mkdir()
    place.write_text("---\nmine: broken front matter\n")
    with pytest.raises(FileDamaged):
        jay.paths.add(STORE, "a/b", "Text")
    memory = jay.store("Text", path="a/b", as_file=True).memory

    assert place.read_text() == "---\nmine: broken front matter\n"
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
    assert "No space" in placed.waits
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


@pytest.mark.parametrize("stranger", ["a pipe", "a store"])
def test_a_pipe_is_not_waited_for_and_a_store_within_a_store_is_another_ones(jay, folder, filed, stranger):
    if stranger == "a pipe":
        os.mkfifo(folder / "pipe.md")
    else:
        Folder(folder / "inner").prepare()
        (folder / "inner" / "x.md").write_text("---\n---\nInner\n")
    look(jay)

    assert names(jay) == ["project/harbour"]


def test_paths_of_imported_memories_stay_inside(jay, folder, tmp_path):
    jay.folders.mirror(STORE)
    jay.store("First")
    before = {one for one in tmp_path.rglob("*") if folder not in one.parents}
    for path in ["../../../escape", "/etc/escape", "a/../../b", "a\\..\\b"]:
        with pytest.raises(InvalidInput, match="path must stay inside its store"):
            jay.store("Text", path=path)
    inside = ["CON", "x" * 300, "~/x", ""]
    for number, path in enumerate(inside):
        jay.store(f"Text {number}", path=path or None)

    assert {one for one in tmp_path.rglob("*") if folder not in one.parents} == before
    assert len(list(folder.rglob("*.md"))) == 1 + len(inside)


# --- mirrors ---------------------------------------------------------------------------------------------------------


def test_a_mirrored_space_is_kept_as_files_from_then_on(jay, tmp_path):
    before = jay.store("User moved to Austin", tags=("home",)).memory
    vault = tmp_path / "vault"
    jay.folders.mirror(STORE, vault)
    after = jay.store("User likes tea", related=(before.id,)).memory

    assert document(vault, "inbox/User moved to Austin").id == before.id
    assert document(vault, "inbox/User likes tea").type == "memory"
    assert 'related: ["[[inbox/User moved to Austin]]"]\n' in file(vault, "inbox/User likes tea").read_text()
    jay.forget(before.id)
    assert not file(vault, "inbox/User moved to Austin").exists()
    edit(file(vault, "inbox/User likes tea"), "tea\n", "coffee\n")
    assert [hit.memory.id for hit in jay.search("coffee")] == [after.id]


def test_a_mirror_of_many_is_complete(jay, tmp_path, monkeypatch):
    """However slow the disk is: who brings many waits until all their files are written."""
    monkeypatch.setattr(stores, "WRITE_SECONDS", 0.0)
    ids = jay.store_many({"content": f"Text number {n}"} for n in range(150))
    jay.folders.mirror(STORE, tmp_path / "vault")
    more = jay.store_many({"content": f"More {n}"} for n in range(70))
    jay.transfer.import_from(
        [{"type": "memory", "id": f"mem_00000000000{n}", "content": f"Brought {n}"} for n in range(5)]
    )
    brought = {f"mem_00000000000{n}" for n in range(5)}

    assert {parse_file(one.read_bytes()).id for one in (tmp_path / "vault").rglob("*.md")} == {*ids, *more, *brought}
    assert jay.records.files.waiting() == {}


def test_what_stops_being_mirrored_stays(jay, tmp_path):
    jay.folders.mirror(STORE, tmp_path / "vault")
    jay.store("First")
    jay.folders.stop_mirroring(STORE)
    jay.store("Second")

    assert [one.name for one in (tmp_path / "vault").rglob("*.md")] == ["First.md"]


TITLES = {
    "User moved to Austin": "User moved to Austin",
    "# Onboarding\n\nRead **this** first": "Onboarding Read this first",
    "a/b: what? \"x\" <y> | [[z]]": "a b what x y z",
    "회의는 화요일입니다": "회의는 화요일입니다",
    "हिन्दी में लिखो": "हिन्दी में लिखो",
    "...hidden": "hidden",
    "One two three four five six seven eight nine ten eleven twelve thirteen":
        "One two three four five six seven eight nine ten eleven",
}  # fmt: skip


AWKWARD = ["CON", "index", "???", "\u202e?\u202e", "長" * 500, "🙂" * 200, "x" * 3000, "."]


@pytest.mark.parametrize(("text", "name"), [*TITLES.items(), *((text, None) for text in AWKWARD)])
def test_a_mirrored_file_is_called_what_its_memory_says(jay, folder, text, name):
    jay.folders.mirror(STORE)
    id = jay.store(text).memory.id

    [called] = files_below(folder)
    assert len(called.encode()) < 250
    assert name is None or called == f"inbox/{name}.md"
    look(jay)
    assert jay.get(id).content == text
    assert not jay.records.files.waiting()


def test_a_decision_is_filed_under_its_topic_and_a_path_that_was_chosen_is_kept(jay, folder):
    jay.folders.mirror(STORE)
    jay.decisions.save("Session store", "Use Redis for sessions", reasoning="Quick")
    jay.paths.add(STORE, "project/limits", "Sixty a minute")

    assert files_below(folder) == ["decisions/session-store/Use Redis for sessions.md", "project/limits.md"]


def test_memories_of_the_same_words_have_files_of_their_own_and_links_lead_to_them(jay, folder):
    jay.folders.mirror(STORE)
    start = "The harbour master said that the quay will be swept on "
    _, second = (jay.store(f"{start}{day} and then some more words follow").memory for day in ("Monday", "Friday"))
    jay.store("See the other", related=(second.id,))
    jay.write_files(patient=True)
    look(jay)

    tail = second.id[-6:]
    assert files_below(folder)[1:] == [f"inbox/{start.strip()} ({tail}).md", f"inbox/{start.strip()}.md"]
    assert f'related: ["[[inbox/{start.strip()} ({tail})]]"]' in file(folder, "inbox/See the other").read_text()


def test_links_written_before_their_file_had_its_name_are_put_right(jay, tmp_path):
    start = "The harbour master said that the quay will be swept on "
    target = jay.store(f"{start}Monday and then some more words follow").memory
    jay.store("A note", related=(target.id,))
    (tmp_path / "vault" / "inbox").mkdir(parents=True)
    file(tmp_path / "vault", f"inbox/{start.strip()}").write_text("Mine\n")
    jay.folders.mirror(STORE, tmp_path / "vault")
    look(jay)

    named = f"[[inbox/{start.strip()} ({target.id[-6:]})]]"
    assert named in file(tmp_path / "vault", "inbox/A note").read_text()
    assert file(tmp_path / "vault", f"inbox/{start.strip()}").read_text() == "Mine\n"


def test_a_clone_elsewhere_keeps_ids_times_and_levels(jay, tmp_path, open_engine, clock):
    memory = jay.store("User moved to Austin", tags=("home",), access_level="private").memory
    jay.folders.mirror(STORE, tmp_path / "vault")
    clock.move(days=1)
    shutil.copytree(tmp_path / "vault", tmp_path / "clone")
    home = tmp_path / "elsewhere"
    with engine_on(SqliteStore(home / "m.db"), HashingEmbedder(), clock=clock, registry=Registry(home, home)) as other:
        other.folders.add("clone", tmp_path / "clone")
        there = other.bound_to(spaces=("clone",)).get(memory.id)

    assert (there.content, there.tags, there.created_at) == (memory.content, memory.tags, memory.created_at)
    assert (there.access_level, there.updated_at, there.path) == ("private", memory.updated_at, memory.path)


# --- what is private -------------------------------------------------------------------------------------------------


@pytest.fixture
def ann(jay):
    return jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))


def files_below(folder):
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*.md"))


def test_what_another_user_keeps_private_is_not_written_into_a_folder(jay, ann, tmp_path):
    vault = tmp_path / "vault"
    before = ann.store("Known before", path="a/before", access_level="private").memory
    jay.folders.mirror(STORE, vault)
    later = ann.store("Stored later", path="a/later", access_level="private").memory
    ann.store("For all", path="a/b")
    look(jay)

    assert files_below(vault) == ["a/b.md"]
    assert jay.records.files.waiting() == {}
    assert [ann.get(one.id).content for one in (before, later)] == ["Known before", "Stored later"]
    ann.revise(later.id, access_level="shared")
    assert files_below(vault) == ["a/b.md", "a/later.md"]


def test_a_memory_made_private_leaves_the_folder_and_stays(jay, ann, folder):
    id = ann.paths.add(STORE, "a/b", "Text").memory.id
    ann.revise(id, access_level="private")

    assert files_below(folder) == []
    look(jay)
    assert ann.get(id).content == "Text"
    ann.revise(id, access_level="shared")
    assert files_below(folder) == ["a/b.md"]


def test_an_edit_of_a_file_that_leaves_is_not_lost(jay, ann, folder):
    id = ann.paths.add(STORE, "a/b", "Text").memory.id
    edit(file(folder, "a/b"), "Text", "Edited")
    ann.revise(id, access_level="private")

    assert files_below(folder) == []
    assert ann.get(id).content == "Edited"


def test_private_files_leave_a_folder_that_became_part_of_a_repository(jay, folder):
    id = jay.store("Text", path="a/b", access_level="private", as_file=True).memory.id
    assert files_below(folder) == ["a/b.md"]
    (folder.parent / ".git").mkdir()
    jay.folders.reindex(STORE)

    assert files_below(folder) == []
    assert jay.get(id).content == "Text"


def test_ones_own_private_memories_are_files_unless_the_folder_is_in_a_repository(jay, tmp_path):
    for name, made in (("vault", False), ("repository", True)):
        (tmp_path / name / ".git" if made else tmp_path / name).mkdir(parents=True)
        here = jay.bound_to(spaces=(name,))
        here.folders.mirror(name, tmp_path / name / "notes")
        here.store("Mine", path="a/mine", access_level="private")
        here.store("For all", path="a/b")

    assert files_below(tmp_path / "vault" / "notes") == ["a/b.md", "a/mine.md"]
    assert files_below(tmp_path / "repository" / "notes") == ["a/b.md"]


def test_a_private_file_in_a_repository_is_left_alone_and_reported(jay, tmp_path):
    (tmp_path / ".git").mkdir()
    jay.folders.create("notes", path=tmp_path / "notes")
    (tmp_path / "notes" / "mine.md").write_text("---\naccess_level: private\n---\nMine\n")
    indexed = jay.folders.reindex("notes")

    assert [(problem.name, "private" in problem.why) for problem in indexed.problems] == [("mine.md", True)]
    assert (tmp_path / "notes" / "mine.md").exists()
    assert list(jay.bound_to(spaces=("notes",)).list()) == []


def test_a_file_names_no_memory_that_may_not_lie_beside_it(jay, ann, folder):
    shared = ann.paths.add(STORE, "a/b", "Text").memory
    secret = ann.store("Secret", path="hidden/words", access_level="private").memory
    with jay.records.writing() as tx:
        jay.ledger.link(tx, LinkKind.RELATED, shared, secret)
    look(jay)

    assert "hidden/words" not in file(folder, "a/b").read_text()
    assert secret.id not in file(folder, "a/b").read_text()


def test_a_new_file_does_not_become_the_private_memory_of_another(jay, ann, folder):
    jay.paths.add(STORE, "a/x", "So that there is a folder")
    secret = ann.store("The same text", path="a/b", access_level="private").memory
    for name, id in (("a/b", ""), ("a/c", f"id: {secret.id}\n")):
        file(folder, name).write_text(f"---\n{id}---\n\nThe same text\n")
    look(jay)

    assert jay.records.files.of(secret.id) is None
    assert jay.paths.get(STORE, "a/b").id != secret.id
    assert jay.paths.get(STORE, "a/c").access_level == "shared"


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


# --- many files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch):
    """Calls that wait for nothing: what a call has time for is one batch of files."""
    monkeypatch.setattr("scrubjay.engine.files.stores.READ_SECONDS", 0.0)


def write_notes(folder, count):
    for category in range(20):
        (folder / f"c{category}").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"c{number % 20}" / f"Note {number}.md").write_text(f"---\n---\nNote {number}\n")


@pytest.fixture
def patient(monkeypatch):
    """Calls that wait however slow the machine is."""
    monkeypatch.setattr("scrubjay.engine.files.stores.READ_SECONDS", 3600.0)


@pytest.fixture
def bare(tmp_path):
    """An engine that finds nothing by meaning: quick with many files."""
    with engine_on(SqliteStore(tmp_path / "m.db"), None, registry=Registry(tmp_path, tmp_path, walk_seconds=0)) as bare:
        yield bare


@pytest.mark.usefixtures("patient")
def test_a_store_of_2000_files_is_complete_before_it_is_answered_from(bare, folder):
    write_notes(folder, 2_000)
    told = []

    found = bare.bound_to(progress=lambda *now: told.append(now)).paths.list(STORE)

    assert len(found.entries) == 2_000
    assert [section.memories for section in found.sections] == [100] * 20
    assert told[0] == (0, 2_000, "reading files")
    assert told[-1] == (2_000, 2_000, "reading files")
    assert told == sorted(told)


def test_nothing_is_told_of_a_folder_in_which_nothing_changed(jay, folder, filed):
    look(jay)
    told = []
    jay.bound_to(progress=lambda *now: told.append(now)).paths.list(STORE)

    assert told == []


@pytest.mark.long
def test_a_store_of_10000_files_is_read_while_its_calls_say_so(jay, folder, monkeypatch):
    monkeypatch.setattr("scrubjay.engine.files.stores.READ_SECONDS", 1.0)
    write_notes(folder, 10_000)
    answers, refusals = [], []

    def complete():
        try:
            answers.append(len(jay.paths.list(STORE).entries))
        except StillReading as error:
            refusals.append(error.message)
        return bool(answers)

    wait_until(complete, seconds=1800)
    assert answers == [10_000]
    assert all(message.startswith("Still reading: ") for message in refusals)
    assert refusals[-1].endswith(" of 10,000 files.")


@pytest.mark.parametrize(
    "ask",
    [
        lambda jay: jay.paths.list(STORE),
        lambda jay: jay.paths.list(STORE, "c3"),
        lambda jay: jay.paths.get(STORE, "c3/note-143"),
        lambda jay: jay.paths.add(STORE, "c3/note-143", "Another"),
        lambda jay: jay.paths.move(STORE, "c1/note-1", "c3/note-143"),
        lambda jay: jay.paths.remove(STORE, "c3/note-143"),
        lambda jay: jay.paths.prune(STORE),
        lambda jay: jay.paths.create_section(STORE, "c3"),
        lambda jay: jay.paths.delete_section(STORE, "c3/x"),
        lambda jay: jay.paths.recent(STORE),
        lambda jay: jay.search("Note"),
        lambda jay: jay.list(),
    ],
)
def test_a_store_that_is_not_read_whole_gives_no_answer(jay, folder, hasty, ask):
    write_notes(folder, 150)

    with pytest.raises(StillReading, match="Still reading: 64 of 150 files"):
        ask(jay)


def test_what_is_not_read_yet_is_neither_overwritten_nor_swapped(jay, folder, hasty):
    write_notes(folder, 150)
    with pytest.raises(StillReading):
        jay.paths.add(STORE, "c3/note-143", "Another")
    wait_until(lambda: is_read(jay))

    with pytest.raises(Conflict):
        jay.paths.add(STORE, "c3/note-143", "Another")
    assert jay.paths.get(STORE, "c3/note-143").content == "Note 143"
    assert (folder / "c3" / "Note 143.md").read_text() == "---\n---\nNote 143\n"
    assert len(list(folder.rglob("*.md"))) == 150


def is_read(jay):
    try:
        return len(jay.paths.list(STORE).entries) == 150
    except StillReading:
        return False


def test_whoever_waits_for_another_look_is_told_how_far_it_is(jay, folder, filed, hasty):
    shelf = jay.parts.shelves.of(STORE)
    shelf.read = (640, 2_000)

    with shelf.lock, pytest.raises(StillReading, match="Still reading: 640 of 2,000 files"):
        look(jay)


def test_closing_does_not_wait_for_files_that_are_still_to_be_read(open_engine, folder, hasty):
    jay = open_engine()
    write_notes(folder, 600)
    with pytest.raises(StillReading):
        look(jay)
    jay.close()

    assert not any(thread.name == f"reading {STORE}" for thread in threading.enumerate())
    assert 64 <= len(open_engine().records.files.entries(STORE, "", EVERYTHING)) < 600


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

    wait_until(lambda: not jay.parts.shelves.watcher._thread.is_alive())  # a busy machine may outlast the two seconds


def test_a_watched_folder_is_taken_in_without_a_call(open_engine, tmp_path):
    jay = open_engine(registry=Registry(tmp_path, tmp_path, walk_seconds=3600))
    jay.paths.add(STORE, "a/b", "Text")
    look(jay)
    jay.folders.watch()
    place = file(tmp_path / "stores" / STORE, "a/watched")

    def seen():
        place.write_text("---\n---\nSeen by itself\n")
        return jay.records.files.at_path(STORE, "a/watched", jay.audience(Filter())) is not None

    wait_until(seen)


def test_a_relation_is_written_into_both_worlds(jay, folder, filed):
    other = jay.store("Beside it").memory
    with jay.records.writing() as tx:
        jay.ledger.link(tx, LinkKind.RELATED, jay.get(filed), other)
    jay.write_files()

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


def test_of_a_memory_that_is_erased_in_time_no_file_name_is_kept(jay, filed, clock):
    jay.forget(filed)
    assert jay.records.files.of(filed).name == "project/harbour.md"

    clock.move(days=31)
    assert jay.parts.housekeeper.purge() == 1

    assert jay.records.files.of(filed) is None


def test_the_file_of_a_memory_that_is_erased_while_its_folder_is_away_is_removed_later(jay, folder, filed, clock):
    folder.rename(folder.with_name("away"))
    jay.forget(filed)
    clock.move(days=31)
    assert jay.parts.housekeeper.purge() == 1

    folder.with_name("away").rename(folder)
    jay.write_files()

    assert not file(folder, "project/harbour").exists()
    assert jay.records.files.of(filed) is None


def test_an_expired_file_is_pruned_with_its_file(jay, folder, clock):
    jay.paths.add(STORE, "a/b", "Text", expires_at=clock() + timedelta(hours=1))
    clock.move(hours=2)
    jay.paths.prune(STORE)

    assert not file(folder, "a/b").exists()


# --- decisions -------------------------------------------------------------------------------------------------------


def test_a_decision_edited_by_hand_is_a_new_decision_on_its_topic(jay, folder):
    jay.folders.mirror(STORE)
    old = jay.decisions.save("database", "Use PostgreSQL", reasoning="We know it").memory
    place = file(folder, "decisions/database/Use PostgreSQL")
    assert parse_file(place.read_bytes()).content == "Use PostgreSQL\n\nWe know it"
    edit(place, "Use PostgreSQL\n", "Use SQLite\n")
    look(jay)

    [current] = [memory for memory in jay.list() if memory.topic == "database"]
    assert (current.content, current.detail["reasoning"]) == ("Use SQLite", "We know it")
    assert jay.get(old.id).superseded_by == current.id
    assert jay.get(old.id).content == "Use PostgreSQL"
    look(jay)
    assert parse_file(place.read_bytes()).content == "Use PostgreSQL\n\nWe know it"
    assert document(folder, "decisions/database/Use SQLite").content == "Use SQLite\n\nWe know it"
    assert 'superseded_by: "[[decisions/database/Use SQLite]]"' in place.read_text()


def test_a_chain_of_decisions_survives_a_clone(jay, tmp_path, clock):
    jay.folders.mirror(STORE, tmp_path / "vault")
    for choice in ("First", "Second", "Third"):
        clock.move(hours=1)
        jay.decisions.save("topic-a", choice, reasoning="Because")
    jay.decisions.checkpoint("Half done", next_steps="The rest")
    home = tmp_path / "elsewhere"
    shutil.copytree(tmp_path / "vault", tmp_path / "clone")
    with engine_on(SqliteStore(home / "m.db"), HashingEmbedder(), clock=clock, registry=Registry(home, home)) as other:
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
