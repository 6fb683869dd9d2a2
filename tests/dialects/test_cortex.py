"""The cortex dialect: the contract's acceptance cases C1 to C26, and what is settled beside them."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import timedelta

import pytest

from scrubjay.dialects.cortex import PAGE, cortex
from scrubjay.dialects.table import find
from scrubjay.engine.parts import engine_on
from scrubjay.errors import SectionNotFound
from scrubjay.folders.paths import to_slug
from scrubjay.folders.registry import Registry
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import AccessLevel
from scrubjay.values.times import iso

SEVEN = {
    "add_memory": {"path": "a/b", "content": "x"},
    "get_memory": {"path": "a/b"},
    "update_memory": {"path": "a/b", "content": "x"},
    "remove_memory": {"path": "a/b"},
    "move_memory": {"from_path": "a/b", "to_path": "a/c"},
    "list_memories": {},
    "prune_memories": {},
}


class Client:
    def __init__(self, engine, store="default"):
        self.engine = engine
        self.store = store

    def call(self, tool, *, key=None, **arguments):
        return cortex.call(self.engine, tool, {"store": self.store, **arguments}, key=key)

    def ok(self, tool, **arguments):
        reply = self.call(tool, **arguments)
        assert not reply.failed, reply.text
        return reply.body

    def fails(self, tool, **arguments):
        reply = self.call(tool, **arguments)
        assert reply.failed, reply.text
        assert reply.text.startswith("MCP error -326")
        assert reply.body["error"]["message"] in reply.text
        return reply.text

    def bare(self, tool, **arguments):
        """A call that names no store."""
        return cortex.call(self.engine, tool, arguments)

    def plain(self, tool, **arguments):
        reply = self.bare(tool, **arguments)
        assert not reply.failed, reply.text
        return reply.body

    def add(self, path, content="Some text", **more):
        return self.ok("add_memory", path=path, content=content, **more)

    def get(self, path, **more):
        return self.ok("get_memory", path=path, **more)

    def paths(self, category=None, **more):
        named = {} if category is None else {"category": category}
        return [memory["path"] for memory in self.ok("list_memories", **named, **more)["memories"]]


@pytest.fixture
def client(jay):
    return Client(jay)


# --- C1 to C5: adding ------------------------------------------------------------------------------------------------


def test_c1_an_added_memory_is_read_back(client):
    reply = client.call("add_memory", path="project/test-memory", content="# Title\n\nText\n")
    got = client.get("project/test-memory")

    assert reply.text == "Memory created at project/test-memory"
    assert got["content"] == "# Title\n\nText\n"
    assert got["metadata"]["tags"] == []
    assert got["metadata"]["created_at"] == got["metadata"]["updated_at"]


def test_c2_tags_and_expiry_are_kept(client, clock):
    client.add("project/x", tags=["test", "example"], expires_at="2030-01-01T00:00:00Z")

    metadata = client.get("project/x")["metadata"]
    assert metadata["tags"] == ["test", "example"]
    assert metadata["expires_at"] == "2030-01-01T00:00:00.000Z"


@pytest.mark.parametrize("tool", [name for name in SEVEN if name != "add_memory"])
def test_c3_an_unknown_store_is_refused_and_leaves_no_trace(client, tmp_path, tool):
    client.store = "elsewhere"

    assert "Store 'elsewhere' is not registered" in client.fails(tool, **SEVEN[tool])
    assert not (tmp_path / "stores").exists()
    assert not (tmp_path / "stores.yaml").exists()


def test_c3_the_first_memory_makes_its_store(client, tmp_path):
    client.store = "elsewhere"
    client.add("a/b")

    assert (tmp_path / "stores" / "elsewhere" / "a" / "b.md").is_file()
    assert "elsewhere" in [store["name"] for store in client.plain("list_stores")["stores"]]
    assert "elsewhere" in (tmp_path / "stores.yaml").read_text()


def test_c3_a_closed_registry_refuses_a_first_memory_too(open_engine, tmp_path):
    closed = Client(open_engine(registry=Registry(tmp_path, tmp_path, auto_register=False)), "elsewhere")

    assert "not registered" in closed.fails("add_memory", path="a/b", content="x")
    assert not (tmp_path / "stores").exists()
    Client(closed.engine).add("a/b")


@pytest.mark.parametrize("name", ["Work", "my_store", "-a", "a--b", "../x", "a/b", "ünï", "a" * 101])
def test_c3_a_badly_formed_store_name_makes_nothing(client, tmp_path, name):
    client.store = name
    error = client.fails("add_memory", path="a/b", content="x")

    assert "store" in error
    assert not (tmp_path / "stores").exists()


@pytest.mark.parametrize("path", ["../x/y", "A/b", "index"])
def test_c3_a_refused_memory_registers_no_store(client, tmp_path, path):
    client.store = "elsewhere"
    client.fails("add_memory", path=path, content="x")

    assert not (tmp_path / "stores.yaml").exists()


def test_c4_the_folder_of_a_registered_store_is_made_as_needed(client, tmp_path):
    client.plain("create_store", name="notes", path=str(tmp_path / "far" / "notes"))
    (tmp_path / "far" / "notes" / ".scrubjay-store").unlink()
    (tmp_path / "far" / "notes").rmdir()
    client.store = "notes"
    client.add("a/b", "Kept")

    assert "Kept" in (tmp_path / "far" / "notes" / "a" / "b.md").read_text()


def test_a_reply_says_what_waits_for_a_folder_that_is_away(client, tmp_path):
    client.plain("create_store", name="notes", path=str(tmp_path / "notes"))
    client.store = "notes"
    client.add("a/b")
    (tmp_path / "notes").rename(tmp_path / "away")

    added, removed = client.add("a/c"), client.ok("remove_memory", path="a/b")

    assert added["message"].startswith("Memory created at a/c. Its file is not written yet: ")
    assert removed["message"].startswith("Memory removed at a/b. Its file is still there: ")


def test_c5_every_level_of_a_path_appears_in_listings(client):
    client.add("a/b/c/d")

    assert client.paths("a") == client.paths("a/b") == client.paths("a/b/c") == ["a/b/c/d"]
    assert client.ok("list_memories")["subcategories"] == [{"path": "a", "memory_count": 1}]
    assert client.ok("list_memories", category="a/b")["subcategories"] == [{"path": "a/b/c", "memory_count": 1}]


# --- C6: paths -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["Project/X", "../../etc/x", "/etc/x", "\\x\\y", "project/index", "index", "my_mem/x", "-a/b", "a--b/c", "a\\b",
     ".", "..", "a/../b", "a/b.md", "con", "a/nul", "x" * 101, "a/" * 300 + "b", "a/b\0c", "ä/b", " / ", "//a/b",
     "a/.git/b", "ﬁ/a", "a/b\n", "C:/x", "~/x", "%2e%2e/x"],
)  # fmt: skip
@pytest.mark.parametrize("tool", ["add_memory", "get_memory", "update_memory", "remove_memory"])
def test_c6_what_is_not_a_path_is_refused_and_writes_nothing(client, tmp_path, tool, path):
    before = sorted(tmp_path.rglob("*"))
    reply = client.call(tool, path=path, **({"content": "x"} if tool in ("add_memory", "update_memory") else {}))

    if path == "a/b\n":  # blanks around segments are cut
        assert not reply.failed or "not found" in reply.text
        return
    assert reply.failed
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("path", "clean"), [("a//b", "a/b"), ("working/ /memory", "working/memory"), (" a / b ", "a/b")]
)
def test_c6_paths_are_cleaned(client, path, clean):
    assert client.call("add_memory", path=path, content="x").text == f"Memory created at {clean}"
    assert client.get(clean)["path"] == client.get(path)["path"] == clean


def test_c6_one_segment_is_a_memory_at_the_root(client, tmp_path):
    client.add("solo")

    assert client.paths() == ["solo"]
    assert (tmp_path / "stores" / "default" / "solo.md").is_file()


# --- C7 to C14 -------------------------------------------------------------------------------------------------------


def test_c7_missing_and_expired_memories(client, clock):
    client.add("a/b", "Still here", expires_at=iso(clock() + timedelta(hours=1)))
    clock.move(hours=2)

    assert "not found" in client.fails("get_memory", path="a/none")
    assert "Memory expired: a/b" in client.fails("get_memory", path="a/b")
    assert client.get("a/b", include_expired=True)["content"] == "Still here"


def test_c8_what_expires_now_has_expired(client, clock):
    client.add("a/b", expires_at=iso(clock() + timedelta(hours=1)))
    clock.move(hours=1)

    assert "expired" in client.fails("get_memory", path="a/b")
    assert client.paths(include_expired=True) == ["a/b"]


def test_c8_a_date_is_its_midnight_and_the_past_is_accepted(client):
    client.add("a/b", expires_at="2020-01-01")

    assert client.get("a/b", include_expired=True)["metadata"]["expires_at"] == "2020-01-01T00:00:00.000Z"


@pytest.mark.parametrize("time", ["soon", "", "2026-13-01", "2026-01-01T00:00:00", "9999-12-31T23:59:59-14:00"])
def test_what_is_no_time_is_refused(client, time):
    assert "expires_at" in client.fails("add_memory", path="a/b", content="x", expires_at=time)
    assert client.paths() == []


def test_c9_new_content_keeps_the_rest(client, clock):
    client.add("a/b", tags=["t"], expires_at="2030-01-01")
    before = client.get("a/b")["metadata"]
    clock.move(minutes=5)
    assert client.call("update_memory", path="a/b", content="New").text == "Memory updated at a/b"

    got = client.get("a/b")
    assert got["content"] == "New"
    assert got["metadata"].pop("updated_at") > before.pop("updated_at")
    assert got["metadata"] == before


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"tags": ["new"]}, {"tags": ["new"]}),
        ({"tags": []}, {"tags": []}),
        ({"expires_at": "2031-01-01"}, {"expires_at": "2031-01-01T00:00:00.000Z"}),
        ({"clear_expiry": True}, {"expires_at": None}),
        ({"expires_at": None, "clear_expiry": False, "tags": ["z"]}, {"tags": ["z"]}),  # null means not given
        ({"expires_at": None, "clear_expiry": True}, {"expires_at": None}),
        ({"clear_expiry": True, "expires_at": "2031-01-01"}, {"expires_at": None}),
        ({"tags": ["z"], "clear_expiry": True, "content": "C"}, {"tags": ["z"], "expires_at": None, "content": "C"}),
    ],
)
def test_c10_only_what_is_named_changes(client, clock, update, expected):
    client.add("a/b", tags=["t"], expires_at="2030-01-01")
    clock.move(minutes=5)
    client.ok("update_memory", path="a/b", **update)

    got = client.get("a/b")
    said = {"content": got["content"], "tags": got["metadata"]["tags"], "expires_at": got["metadata"].get("expires_at")}
    assert said == {"content": "Some text", "tags": ["t"], "expires_at": "2030-01-01T00:00:00.000Z", **expected}
    assert got["metadata"]["updated_at"] == iso(clock())


def test_c11_nothing_to_update_and_nothing_there(client):
    client.add("a/b")

    assert "No updates" in client.fails("update_memory", path="a/b")
    assert "No updates" in client.fails("update_memory", path="a/b", clear_expiry=False)
    assert "No updates" in client.fails("update_memory", path="a/b", expires_at=None, clear_expiry=False)
    assert "importance" not in client.fails("update_memory", path="a/b")  # nothing is named that the tool has not
    assert "not found" in client.fails("update_memory", path="a/c", content="x")


def test_c12_a_removed_memory_is_gone(client, tmp_path):
    client.add("a/b")
    assert client.call("remove_memory", path="a/b").text == "Memory removed at a/b"

    assert "not found" in client.fails("get_memory", path="a/b")
    assert "not found" in client.fails("remove_memory", path="a/b")
    assert not (tmp_path / "stores" / "default" / "a").exists()


def test_c13_a_moved_memory_is_the_same_elsewhere(client, clock, tmp_path):
    client.add("a/b", "Text", tags=["t"], expires_at="2030-01-01")
    before = client.get("a/b")
    clock.move(hours=1)
    assert client.call("move_memory", from_path="a/b", to_path="c/d/e").text == "Memory moved from a/b to c/d/e"

    assert "not found" in client.fails("get_memory", path="a/b")
    assert client.get("c/d/e") == {**before, "path": "c/d/e"}
    assert not (tmp_path / "stores" / "default" / "a").exists()
    assert (tmp_path / "stores" / "default" / "c" / "d" / "e.md").is_file()


def test_c14_where_a_memory_can_move(client):
    client.add("a/b")
    client.add("a/c", "Other")

    assert "already exists" in client.fails("move_memory", from_path="a/b", to_path="a/c")
    assert "not found" in client.fails("move_memory", from_path="a/x", to_path="a/y")
    client.ok("move_memory", from_path="a/b", to_path="very/deep/place/b")
    assert client.paths("very/deep") == ["very/deep/place/b"]
    client.ok("move_memory", from_path="a/c", to_path="a/c")
    assert client.get("a/c")["content"] == "Other"


@pytest.mark.parametrize(("source", "destination"), [("source", "destination"), ("source_path", "destination_path")])
def test_other_spellings_of_a_move_are_accepted(client, source, destination):
    client.add("a/b")
    client.ok("move_memory", **{source: "a/b", destination: "a/c"})

    assert client.paths() == ["a/c"]
    assert "from_path" in client.fails("move_memory", to_path="a/d")
    assert "twice" in client.fails("move_memory", from_path="a/c", source="a/c", to_path="a/d")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"from_path": "A/b", "to_path": "a/c"}, "Invalid from_path: segments"),
        ({"from_path": "a/b", "to_path": "/a/c"}, "Invalid to_path: it must not begin"),
        ({"from_path": "a/b", "to_path": "a/index"}, "Invalid to_path: index is a reserved name"),
        ({"source": "A/b", "destination": "a/c"}, "Invalid source: segments"),
        ({"from_path": "a/b", "destination_path": "A"}, "Invalid destination_path: segments"),
    ],
)
def test_a_refused_move_names_the_path_as_it_was_written(client, arguments, named):
    client.add("a/b")
    reply = client.call("move_memory", **arguments)

    assert named in reply.text
    assert reply.body["error"]["code"] == "INVALID_PATH"


@pytest.mark.parametrize("tool", [operation for operation in cortex.operations.values() if operation.listed])
def test_no_schema_promises_longer_paths_than_there_are(tool):
    lengths = {
        name: field["maxLength"]
        for name, field in tool.takes["properties"].items()
        if name in ("path", "category", "from_path", "to_path") and tool.name != "create_store"
    }

    assert set(lengths.values()) <= {400}


def test_a_path_of_400_characters_is_the_longest(client):
    longest = "/".join(["a" * 99] * 4) + "b"
    client.add(longest)

    assert client.paths() == [longest]
    assert "path" in client.fails("add_memory", path=longest + "c", content="x")


def write_notes(tmp_path, count):
    folder = tmp_path / "stores" / "default" / "notes"
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"n{number:03}.md").write_text(f"Note {number}\n")


def test_a_list_of_more_than_200_comes_in_pages(client, tmp_path, monkeypatch):
    monkeypatch.setattr("scrubjay.dialects.cortex.PAGE", 20)
    write_notes(tmp_path, 45)
    first = client.call("list_memories").body
    second = client.call("list_memories", cursor=first["next_cursor"]).body
    gone = second["memories"][-1]["path"]
    client.call("remove_memory", path=gone)
    third = client.call("list_memories", cursor=second["next_cursor"]).body

    assert [len(page["memories"]) for page in (first, second, third)] == [20, 20, 5]
    assert [page["count"] for page in (first, second, third)] == [20, 20, 5]
    assert [(page.get("has_more"), page.get("total")) for page in (first, second, third)] == [
        (True, 45), (True, 45), (None, 44)
    ]  # fmt: skip
    seen = [one["path"] for page in (first, second, third) for one in page["memories"]]
    assert seen == [f"notes/n{number:03}" for number in range(45)]
    assert [one["memory_count"] for one in first["subcategories"]] == [45]
    assert "next_cursor" not in third


def test_a_list_of_a_page_is_whole(client, tmp_path, monkeypatch):
    assert PAGE == 200
    monkeypatch.setattr("scrubjay.dialects.cortex.PAGE", 20)
    write_notes(tmp_path, 20)
    body = client.call("list_memories", category="notes").body

    assert body["count"] == 20
    assert not {"next_cursor", "has_more", "total"} & body.keys()


def test_a_cursor_that_is_none_is_refused(client):
    client.add("a/b")

    assert "cursor" in client.fails("list_memories", cursor="nonsense")


def test_adding_where_something_lies_is_refused(client):
    client.add("a/b", "First")

    text = client.fails("add_memory", path="a/b", content="Second")
    assert "already exists" in text
    assert "update_memory" in text
    assert client.get("a/b")["content"] == "First"


# --- C15 to C19: lists, prune, store ---------------------------------------------------------------------------------


def test_c15_a_category_and_everything(client):
    for path in ("project/a", "project/b", "human/c", "root"):
        client.add(path)

    assert client.ok("list_memories", category="project")["count"] == 2
    everything = client.ok("list_memories")
    assert (everything["category"], everything["count"]) == ("all", 4)
    assert [memory["path"] for memory in everything["memories"]] == ["root", "human/c", "project/a", "project/b"]
    assert [section["path"] for section in everything["subcategories"]] == ["human", "project"]


def test_c15_an_unknown_category_is_empty_and_says_so(client):
    unknown = client.ok("list_memories", category="nothing/here")

    assert (unknown["count"], unknown["exists"]) == (0, False)


def test_c16_expired_ones_are_listed_when_asked_for(client, clock):
    client.add("a/b", expires_at=iso(clock() + timedelta(hours=1)))
    client.add("a/c")
    clock.move(hours=2)

    assert client.paths() == ["a/c"]
    with_expired = client.ok("list_memories", include_expired=True)["memories"]
    assert [(memory["path"], memory["is_expired"]) for memory in with_expired] == [("a/b", True), ("a/c", False)]


def test_c17_any_root_is_listed_and_pruned(client, clock):
    client.add("notes/b", expires_at=iso(clock() + timedelta(hours=1)))
    clock.move(hours=2)

    assert client.paths(include_expired=True) == ["notes/b"]
    assert client.ok("prune_memories")["pruned"] == [
        {"path": "notes/b", "expires_at": iso(clock() - timedelta(hours=1))}
    ]


def test_c18_prune(client, clock):
    client.add("a/b", expires_at="2020-01-01")
    client.add("a/c", expires_at="2020-01-02")
    client.add("a/d")

    dry = client.ok("prune_memories", dry_run=True)
    assert (dry["dry_run"], dry["would_prune_count"], len(dry["would_prune"])) == (True, 2, 2)
    assert len(client.paths(include_expired=True)) == 3
    pruned = client.ok("prune_memories")
    assert (pruned["success"], pruned["count"], pruned["pruned_count"], len(pruned["pruned"])) == (True, 2, 2, 2)
    assert client.paths(include_expired=True) == ["a/d"]
    assert client.ok("prune_memories")["pruned_count"] == 0


@pytest.mark.parametrize("tool", SEVEN)
def test_c19_store_is_required(jay, tool):
    reply = cortex.call(jay, tool, SEVEN[tool])

    assert reply.failed
    assert "store is required" in reply.text
    assert jay.list().memories == ()


# --- C20 to C26 ------------------------------------------------------------------------------------------------------

BROKEN = {
    "no end": b"---\ntags: []\ntext\n",
    "not yaml": b"---\ntags: [a\n---\n\ntext\n",
    "key twice": b"---\ntags: []\ntags: [a]\n---\n\ntext\n",
    "bad time": b"---\ncreated_at: yesterday\n---\n\ntext\n",
    "bad expiry": b"---\nexpires_at: [1]\n---\n\ntext\n",
    "custom tag": b"---\nx: !!python/object/apply:os.system [true]\n---\n\ntext\n",
    "alias": b"---\na: &x [1]\nb: *x\n---\n\ntext\n",
    "a list": b"---\n- a\n---\n\ntext\n",
    "tags of maps": b"---\ntags: [{a: b}]\n---\n\ntext\n",
    "binary": bytes(range(256)) * 10,
    "not utf-8": b"---\ntags: []\n---\n\n\xff\xfe\n",
    "blank": b"---\ntags: []\n---\n\n  \n",
    "ten megabytes": b"---\ntags: []\n---\n\n" + b"x" * 10_000_000,
    "fifty thousand and one": b"---\ntags: []\n---\n\n" + b"x" * 50_001,
    "deep": b"---\nx: " + b"[" * 3000 + b"\n---\n\ntext\n",
    "deep blocks": b"---\nx:\n  " + b"- " * 3000 + b"a\n---\n\ntext\n",
    "long head": b"---\n" + b"a: b\n" * 3000 + b"---\n\ntext\n",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_c20_a_new_file_that_cannot_be_read_is_left_alone(client, tmp_path, data):
    client.add("a/good")
    place = tmp_path / "stores" / "default" / "a" / "bad.md"
    place.write_bytes(data)

    text = client.fails("get_memory", path="a/bad")
    assert "corrupted" in text
    assert text.startswith("MCP error -32603")
    assert client.paths() == ["a/good"]
    assert client.ok("list_memories")["unreadable_files"] == 1
    assert client.get("a/good")["content"] == "Some text"
    assert [line.partition(":")[0] for line in client.ok("reindex_store")["warnings"]] == ["a/bad.md"]
    assert place.read_bytes() == data


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_c20_a_memory_whose_file_was_broken_is_neither_shown_nor_lost(client, tmp_path, data):
    client.add("a/b", "Before")
    client.add("a/good")
    place = tmp_path / "stores" / "default" / "a" / "b.md"
    place.write_bytes(data)

    assert "corrupted" in client.fails("get_memory", path="a/b")
    assert "corrupted" in client.fails("update_memory", path="a/b", content="x")
    assert client.paths() == ["a/good"]
    assert place.read_bytes() == data
    place.write_text("---\ntags: []\n---\n\nMended\n")
    assert client.get("a/b")["content"] == "Mended"
    assert client.paths() == ["a/b", "a/good"]


def test_c20_a_file_without_front_matter_is_a_memory(client, tmp_path):
    client.add("a/good")
    (tmp_path / "stores" / "default" / "a" / "My Note.md").write_bytes(b"just text\n")

    assert client.get("a/my-note")["content"] == "just text"
    assert client.paths() == ["a/good", "a/my-note"]


def test_c20_undoing_what_broke_a_file_brings_its_memory_back(client, tmp_path):
    client.add("a/b", "Before")
    place = tmp_path / "stores" / "default" / "a" / "b.md"
    good = place.read_bytes()
    place.write_bytes(b"---\nbroken: [")
    assert "corrupted" in client.fails("get_memory", path="a/b")
    place.write_bytes(good)

    assert client.get("a/b")["content"] == "Before"
    assert client.paths() == ["a/b"]
    assert "unreadable_files" not in client.ok("list_memories")


def test_c20_a_file_is_read_again_once_its_second_name_is_gone(client, tmp_path):
    client.add("a/b", "Before")
    place = tmp_path / "stores" / "default" / "a" / "b.md"
    os.link(place, tmp_path / "backup")
    assert "corrupted" in client.fails("get_memory", path="a/b")
    (tmp_path / "backup").unlink()

    assert client.get("a/b")["content"] == "Before"
    assert client.paths() == ["a/b"]


def test_c6_the_paths_of_categories_are_cleaned(client):
    assert client.ok("create_category", path=" a // b ") == {"path": "a/b", "created": True}
    assert client.ok("set_category_description", path="a/b/", description="x")["path"] == "a/b"
    assert client.ok("delete_category", path="a//b")["path"] == "a/b"


def test_c21_descriptions_of_categories(client):
    described = {"path": "a/b", "description": "x" * 500}

    assert client.ok("set_category_description", **described) == described
    assert client.ok("list_memories", category="a")["subcategories"] == [
        {"path": "a/b", "memory_count": 0, "description": "x" * 500}
    ]
    assert "500" in client.fails("set_category_description", path="a/b", description="x" * 501)
    assert client.ok("set_category_description", path="a/b", description="  ")["description"] is None
    assert client.ok("list_memories", category="a/b")["exists"] is True


def test_c22_creating_and_deleting_categories(client, tmp_path):
    assert client.ok("create_category", path="a/b") == {"path": "a/b", "created": True}
    assert client.ok("create_category", path="a/b")["created"] is False
    client.add("a/b/c/one")
    client.add("a/b/two")
    client.add("a/three")

    assert "not found" in client.fails("delete_category", path="a/none")
    assert "root" in client.fails("delete_category", path="a")
    assert client.ok("delete_category", path="a/b") == {"path": "a/b", "deleted": True, "memory_count": 2}
    assert client.paths() == ["a/three"]
    assert client.ok("list_memories", category="a/b")["exists"] is False
    assert client.ok("list_memories", category="a")["subcategories"] == []
    assert not (tmp_path / "stores" / "default" / "a" / "b").exists()


def test_c24_a_hand_edit_is_seen_at_once(client, tmp_path):
    client.add("a/b", "Before", tags=["old"])
    place = tmp_path / "stores" / "default" / "a" / "b.md"
    place.write_text(place.read_text().replace("Before", "After").replace('["old"]', "[new]"))

    assert client.get("a/b")["content"] == "After"
    assert client.get("a/b")["metadata"]["tags"] == ["new"]
    place.with_name("new.md").write_text("---\n---\nBy hand\n")
    assert client.paths() == ["a/b", "a/new"]
    assert client.get("a/new")["content"] == "By hand"


def test_c25_stores_do_not_share_paths(jay):
    one, two = Client(jay, "one"), Client(jay, "two")
    one.add("a/b", "First")
    two.add("a/b", "Second")

    assert (one.get("a/b")["content"], two.get("a/b")["content"]) == ("First", "Second")


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("My Folder", "my-folder"),
        ("snake_case_name", "snake-case-name"),
        ("a---b", "a-b"),
        ("special@chars", "specialchars"),
        ("@#$%", ""),
    ],
)
def test_c26_slugs(text, slug):
    assert to_slug(text) == slug


# --- what is settled beside them -------------------------------------------------------------------------------------


def test_every_tool_has_its_longer_name(client):
    short = {name: one for name, one in cortex.operations.items() if not name.startswith("cortex_")}
    assert len(cortex.operations) == 2 * len(short)
    for name, operation in short.items():
        longer = cortex.operations[f"cortex_{name}"]
        assert replace(longer, name=name, listed=operation.listed) == operation
    assert client.ok("cortex_add_memory", path="a/b", content="x")["path"] == "a/b"
    listed = [name for name, operation in cortex.operations.items() if operation.listed]
    assert listed == [*SEVEN, "list_stores", "create_store"]


def test_what_other_dialects_store_is_listed_and_read(client):
    created = find("memento").call(client.engine, "store_memory", {"content": "User moved to Austin"}).body["created"]
    [path] = client.paths()

    assert path.startswith("inbox/user-moved-to-austin-")
    assert client.get(path)["content"] == "User moved to Austin"
    assert client.get(created["id"])["path"] == path


def test_what_cortex_adds_others_find(client):
    client.add("a/b", "The harbour master is called Ottilie")

    found = find("memento").call(client.engine, "search_memories", {"query": "harbour master"}).body["memories"]
    assert [memory["content"] for memory in found] == ["The harbour master is called Ottilie"]


def test_another_persons_private_memory_is_not_found_by_its_path(client):
    engine = client.engine
    path = engine.store("Secret", access_level=AccessLevel.PRIVATE).memory.path
    other = Client(engine.bound_to(caller=Caller(user="eve", role=Role.MEMBER)))

    assert "not found" in other.fails("get_memory", path=path)
    assert other.paths() == []
    assert "not found" in other.fails("remove_memory", path=path)


def test_a_path_where_another_person_keeps_something_private_is_free(client):
    """Saying that it is taken would tell that something is there."""
    ann, eve = (Client(client.engine.bound_to(caller=Caller(user=user, role=Role.MEMBER))) for user in ("ann", "eve"))
    secret = ann.engine.store("Secret", path="a/b", access_level=AccessLevel.PRIVATE).memory

    eve.add("a/b", "For all")
    eve.add("a/c", "Movable")
    eve.ok("remove_memory", path="a/b")
    eve.ok("move_memory", from_path="a/c", to_path="a/b")

    assert eve.get("a/b")["content"] == "Movable"
    assert eve.paths() == ["a/b"]
    assert ann.get("a/b")["content"] == secret.content


def test_at_a_path_ones_own_private_memory_comes_before_the_shared_one(client):
    ann = Client(client.engine.bound_to(caller=Caller(user="ann", role=Role.MEMBER)))
    eve = Client(client.engine.bound_to(caller=Caller(user="eve", role=Role.MEMBER)))
    secret = ann.engine.store("Secret", path="a/b", access_level=AccessLevel.PRIVATE).memory
    eve.add("a/b", "For all")

    ann.ok("update_memory", path="a/b", content="Still secret")
    assert eve.get("a/b")["content"] == "For all"
    assert client.get("a/b")["content"] == "For all"
    ann.ok("remove_memory", path="a/b")
    assert ann.get("a/b")["content"] == "For all"
    assert [memory.content for memory in eve.engine.list()] == ["For all"]
    assert client.engine.recover(secret.id).path == "a/b"


def test_what_one_could_not_address_afterwards_is_not_added(client):
    client.engine.store("Secret", path="a/b", access_level=AccessLevel.PRIVATE)
    client.add("a/c")

    assert "already exists" in client.fails("add_memory", path="a/b", content="x")
    assert "already exists" in client.fails("move_memory", from_path="a/c", to_path="a/b")


def test_an_owner_reaches_by_path_what_is_private_to_another(client):
    ann = client.engine.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    ann.store("Secret", path="a/b", access_level=AccessLevel.PRIVATE)

    assert client.get("a/b")["content"] == "Secret"


def test_a_category_that_holds_only_what_others_keep_private_is_not_there(client):
    ann = client.engine.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    ann.store("Secret", path="hidden/deep/b", access_level=AccessLevel.PRIVATE)
    eve = client.engine.bound_to(caller=Caller(user="eve", role=Role.MEMBER))

    with pytest.raises(SectionNotFound):
        eve.paths.delete_section("default", "hidden/deep")
    assert eve.paths.create_section("default", "hidden/deep") == ("hidden/deep", True)


def test_a_store_that_was_not_granted_looks_the_same_whether_there_or_not(client):
    client.store = "there"
    client.add("a/b")
    eve = client.engine.bound_to(caller=Caller(user="eve", role=Role.MEMBER, spaces=frozenset({"default"})))

    for store in ("there", "nowhere"):
        stranger = Client(eve, store)
        assert "Memory not found: a/b" in stranger.fails("get_memory", path="a/b")
        assert stranger.paths() == []
        assert "not allowed to write" in stranger.fails("add_memory", path="a/c", content="x")
    assert [store["name"] for store in Client(eve).plain("list_stores")["stores"]] == ["default"]


def test_a_reader_changes_nothing(client):
    client.add("a/b")
    reader = Client(client.engine.bound_to(caller=Caller(user="eve", role=Role.READER)))

    assert reader.get("a/b")["content"] == "Some text"
    for tool, arguments in SEVEN.items():
        if tool not in ("get_memory", "list_memories", "prune_memories"):
            assert "FORBIDDEN" in str(
                reader.call(tool, **{**arguments, **({"path": "a/z"} if tool == "add_memory" else {})}).body
            )


def test_create_store_really_registers(client, tmp_path):
    made = client.plain("create_store", name="notes", description="What I learn")
    assert made == {"name": "notes"}
    assert "STORE_ALREADY_EXISTS" in str(client.bare("create_store", name="notes").body)

    client.store = "notes"
    client.add("a/b")
    listed = {store["name"]: store for store in client.plain("list_stores")["stores"]}
    assert listed["notes"]["description"] == "What I learn"
    assert listed["notes"]["memory_count"] == 1


def test_over_http_no_folder_is_chosen_or_shown(client, tmp_path):
    client.engine = client.engine.bound_to(provenance=Provenance(transport="http"))

    refused = client.bare("create_store", name="notes", path=str(tmp_path / "x"))
    assert "FORBIDDEN" in str(refused.body)
    assert not (tmp_path / "x").exists()
    client.plain("create_store", name="notes")
    assert (tmp_path / "stores" / "notes").is_dir()
    assert all("path" not in store for store in client.plain("list_stores")["stores"])


def test_stores_that_lie_within_each_other_are_refused(client, tmp_path):
    client.plain("create_store", name="outer", path=str(tmp_path / "x"))

    assert client.bare("create_store", name="inner", path=str(tmp_path / "x" / "y")).failed
    assert client.bare("create_store", name="above", path=str(tmp_path)).failed
    client.plain("create_store", name="sibling", path=str(tmp_path / "x-evil"))


def test_a_strict_store_wants_its_categories_made(open_engine, tmp_path):
    strict = Client(open_engine(registry=Registry(tmp_path, tmp_path, strict_sections=True, walk_seconds=0)))

    assert "Category not found: a" in strict.fails("add_memory", path="a/b", content="x")
    strict.ok("create_category", path="a")
    strict.add("a/b")
    strict.add("root")
    assert "Category not found: new" in strict.fails("move_memory", from_path="a/b", to_path="new/b")
    strict.ok("move_memory", from_path="a/b", to_path="a/c")
    strict.ok("move_memory", from_path="a/c", to_path="c")
    assert strict.paths() == ["c", "root"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_memory", {"path": "a/new", "content": "x"}),
        ("update_memory", {"path": "a/b", "content": "New"}),
        ("remove_memory", {"path": "a/b"}),
        ("move_memory", {"from_path": "a/b", "to_path": "a/c"}),
        ("prune_memories", {}),
    ],
)
def test_a_write_with_a_key_is_done_once(client, clock, tool, arguments):
    client.add("a/b")
    client.add("a/old", expires_at="2020-01-01")
    first = client.call(tool, key="k", **arguments)
    clock.move(minutes=1)

    assert not first.failed
    assert client.call(tool, key="k", **arguments) == first


def test_recent_memories_come_newest_first(client, clock):
    for path in ("a/one", "b/two", "a/three"):
        client.add(path)
        clock.move(minutes=1)
    client.ok("update_memory", path="a/one", tags=["x"])

    recent = client.ok("get_recent_memories", limit=2)["memories"]
    assert [memory["path"] for memory in recent] == ["a/one", "a/three"]
    assert client.ok("get_recent_memories", category="b")["count"] == 1


def test_without_a_home_stores_are_rows_only(open_engine, tmp_path):
    plain = Client(open_engine(registry=None), "notes")
    plain.add("a/b")

    assert plain.get("a/b")["content"] == "Some text"
    assert not (tmp_path / "stores").exists()


def test_a_reply_is_json_where_no_sentence_is_fixed(client):
    client.add("a/b")

    assert json.loads(client.call("get_memory", path="a/b").text)["path"] == "a/b"


def test_a_store_is_not_made_at_a_path_that_depends_on_where_the_server_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    with engine_on(SqliteStore(home / "memories.db"), None, registry=Registry(home, home)) as engine:
        reply = find("cortex").call(engine, "create_store", {"name": "notes", "path": "notes"})

    assert reply.failed
    assert "absolute" in reply.text
    assert not (tmp_path / "notes").exists()


def test_an_update_into_another_memorys_text_says_so(client):
    client.add("a/b", content="The ferry leaves at nine")
    client.add("a/c", content="The ferry leaves at ten")
    other = client.get("a/b")["id"]

    told = client.call("update_memory", path="a/c", content="The ferry leaves at nine").text
    assert told == f"Memory updated at a/c. It says the same as {other}: keep one of them"
