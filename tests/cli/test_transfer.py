"""Export and import on the command line: whole files, named lines, work that goes on where it stopped."""

from __future__ import annotations

import json
import os
import stat

import pytest


@pytest.fixture
def lines(tmp_path):
    """Writes a file of lines, each an object or raw bytes."""

    def lines(*each):
        path = tmp_path / "lines.jsonl"
        raw = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in each)
        path.write_bytes(b"".join(line + b"\n" for line in raw))
        return str(path)

    return lines


TEA = {"content": "User likes tea"}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (b"{not json", "Line 3 is not JSON"),
        (b'{"content": "caf\xe9"}', "Line 3 is not UTF-8"),
        (b"[" * 100_000, "Line 3 is not JSON"),
        (b"[]", "Line 3 is not a memory"),
        (b'"tea"', "Line 3 is not a memory"),
        (b"null", "Line 3 is not a memory"),
        (b"{}", "Line 3: content is required"),
        (b'{"content": " "}', "Line 3: content must not be empty"),
        (b'{"content": 5}', "Line 3: content must be text"),
        (b'{"content": "tea", "colour": "green"}', "Line 3: colour is not known"),
        (b'{"content": "tea", "expires_at": "soon"}', "Line 3: expires_at"),
        (b'{"content": "\\ud800"}', "Line 3: content has a lone surrogate"),
        (b'{"type": "scrubjay", "format": 99}', "Line 3"),
        (b'{"type": "link", "kind": "loves"}', "Line 3 is not a memory"),
        (b'{"content": "' + b"x" * 5_000_000 + b'"}', "Line 3 is longer"),
    ],
)
def test_a_broken_line_is_named_by_its_number(call, lines, broken, said):
    done = call("import", lines(TEA, b"", broken, TEA))

    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"type": "entity", "name": "Ann", "observations": ["likes tea"]}\n', "a knowledge graph of server-memory"),
        (b'{"memory": "likes tea", "user_id": "ann"}\n', "jq -c '{content: .memory}'"),
        (b'[{"content": "likes tea"}]', "one JSON list"),
        (b'{\n  "memories": []\n}', "one JSON document"),
        (b"content,tags\nlikes tea,taste\n", "a table"),
        (b"# Notes\n\n- likes tea\n", "Markdown"),
        (b"The user likes tea.\n", "plain text"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"PK\x03\x04\xff\xfe", "a compressed file"),
        (b'{"type": "scrubjay", "format": 99}\n', "in another format; this scrubjay reads format 1"),
    ],
)
def test_a_foreign_file_is_told_by_what_it_looks_like_and_what_to_do(call, tmp_path, data, said):
    file = tmp_path / "their list"
    file.write_bytes(data)

    done = call("import", str(file))

    assert done.code == 1
    assert said in done.err
    assert "Nothing was imported." in done.err


def test_a_broken_import_says_where_to_go_on_and_then_brings_each_line_once(call, lines):
    many = [{"content": f"Fact number {number}"} for number in range(100)]

    done = call("import", lines(*many[:80], b"{broken", *many[80:]))
    assert done.code == 1
    assert "Lines 1 to 64 are imported; to resume, repeat the command with --from-line 65." in done.err

    done = call("import", lines(*many[:80], b"", *many[80:]), "--from-line", "65", "--json")
    assert done.json == {"stored": 36, "already_here": 0, "links": 0, "links_left_out": 0}
    contents = [memory["content"] for memory in call("list", "--limit", "1000", "--json").json]
    assert sorted(contents) == sorted(one["content"] for one in many)


def test_an_import_that_would_begin_behind_the_last_line_says_so(call, lines):
    done = call("import", lines(TEA, TEA), "--from-line", "7")

    assert (done.code, done.out) == (0, "0 memories and 0 links imported.\n")
    assert "The file has only 2 lines." in done.err
    assert call("import", lines(TEA, TEA), "--from-line", "7", "--json").json["lines_in_file"] == 2


@pytest.mark.parametrize(
    ("quota", "said"),
    [
        ("70", "Lines 1 to 64 are imported; to resume, repeat the command with --from-line 65."),
        ("5", "Nothing was imported."),
    ],
)
def test_an_import_beyond_the_quota_says_what_was_kept(call, environment, lines, quota, said):
    environment["SCRUBJAY_QUOTA"] = quota

    done = call("import", lines(*({"content": f"Fact number {number}"} for number in range(100))))

    assert done.code == 1
    assert "The limit is reached" in done.err
    assert said in " ".join(done.err.split())


def test_forgotten_memories_that_wait_for_vectors_are_no_reason_to_warn(call, lines):
    """Nothing embeds them while they are forgotten, and nothing needs to."""
    forgotten = {"content": "User likes milk", "status": "deleted", "recoverable_until": "2099-01-01T00:00:00Z"}

    call("import", lines(TEA, forgotten), "--embed", "later")
    call("doctor", "--rebuild")

    assert "All 2 are found by meaning." in call("doctor").out


def test_what_is_to_be_embedded_later_is_found_by_words_at_once_and_by_meaning_then(call, lines):
    done = call("import", lines(TEA, {"content": "User plays the cello"}), "--embed", "later")

    assert done.out == "2 memories and 0 links imported.\n"
    assert "`scrubjay doctor --rebuild`" in done.err
    assert [hit["memory"]["content"] for hit in call("search", "--words", "cello", "--json").json] == [
        "User plays the cello"
    ]
    assert "0 of 2 are found by meaning; 2 wait" in call("doctor").out
    assert "None of the 2 memories that were searched has vectors yet" in call("search", "string instrument").err
    call("store", "User plays chess")
    told = " ".join(call("search", "plays").err.split())
    assert told.startswith("2 of the 3 memories that were searched have no vectors yet: they are found by their words")

    call("doctor", "--rebuild")
    assert "wait for the model" not in call("doctor").out
    found = call("search", "cello")
    assert "User plays the cello" in found.out
    assert "by words only" not in found.err


def test_a_program_that_searches_is_told_what_waits_for_vectors(call, lines):
    call("import", lines(TEA, {"content": "User plays the cello"}), "--embed", "later")

    none = call("search", "string instrument", "--json")
    call("store", "User plays chess")
    some = call("search", "plays", "--json")
    call("doctor", "--rebuild")
    all_ = call("search", "plays", "--json")

    assert none.json == []
    assert "has vectors yet" in json.loads(none.err)["degraded"]
    told = json.loads(some.err)
    assert told["degraded"].startswith("2 of the 3 memories that were searched have no vectors yet")
    assert told["partly"] is True
    assert len(all_.json) == 3
    assert all_.err == ""


def test_an_import_without_its_model_says_that_vectors_are_missing(call, lines, environment, tmp_path):
    environment |= {"SCRUBJAY_EMBEDDER": "arctic-embed-s", "SCRUBJAY_MODELS": str(tmp_path / "models")}

    said = call("import", lines(TEA, {"content": "User plays the cello"}))
    told = call("import", lines({"content": "User plays the oboe"}), "--json")
    nothing_new = call("import", lines({"type": "scrubjay", "format": 1}))

    assert "2 memories have no vectors yet: they are found by words only." in " ".join(said.err.split())
    assert "scrubjay model pull" in said.err
    assert told.json["without_vectors"] == 1
    assert "vectors" not in nothing_new.err


def test_who_wants_no_model_is_not_told_to_wait_for_vectors(call, lines, environment):
    environment |= {"SCRUBJAY_EMBEDDER": "none"}

    said = call("import", lines(TEA))

    assert "vectors" not in said.err


def test_duplicates_among_what_waits_for_vectors_are_not_said_to_be_none(call, lines):
    call("import", lines(TEA, TEA), "--embed", "later")

    assert "others wait for the model" in call("duplicates").err
    findings = {one["check"]: one for one in call("doctor", "--json").json["findings"]}
    assert findings["duplicates"]["found"] == "None among the newest 300 memories that have vectors."


def test_an_export_comes_back_whole_in_another_home(call, stored, tmp_path):
    old, new = stored("User lives in Seattle", "--tag", "home"), stored("User lives in Austin \x1b[31m 日本")
    call("supersede", old, new)
    call("forget", stored("User was in Rome"))
    file, home = str(tmp_path / "all.jsonl"), str(tmp_path / "elsewhere")

    assert "3 memories" in call("export", file).err
    done = call("import", file, "--home", home)

    assert done.code == 0
    assert done.out.startswith("3 memories")
    before, after = (list_all(call, *where) for where in ([], ["--home", home]))
    assert before == after
    assert len(call("list", "--deleted", "--json", "--home", home).json) == 1
    [hit] = call("search", "where does the user live", "--json", "--home", home).json
    assert hit["memory"]["id"] == new


def list_all(call, *where):
    memories = call("list", "--all", "--json", *where).json
    return {memory["id"]: (memory["content"], memory["tags"], memory["created_at"]) for memory in memories}


def test_an_import_says_what_was_forgotten_and_stays_so(call, stored, tmp_path):
    name = stored("User likes tea")
    file = str(tmp_path / "all.jsonl")
    call("export", file)
    call("forget", name)

    done = call("import", file)

    assert "1 was already there" in done.out
    assert "Of these, 1 was forgotten and stays so: `scrubjay list --deleted`, `scrubjay undo ID`." in done.err
    assert call("import", file, "--json").json["forgotten"] == 1


def test_importing_twice_changes_nothing(call, stored, tmp_path):
    stored("User likes tea")
    file = str(tmp_path / "all.jsonl")
    call("export", file)

    done = call("import", file, "--json")

    assert done.json == {"stored": 0, "already_here": 1, "links": 0, "links_left_out": 0}
    assert "1 was already there" in call("import", file).out
    assert "1 was already in the space default" in call("import", file, "--space", "copy").out
    assert call("import", file, "--space", "copy", "--json").json["in_other_spaces"] == ["default"]


def test_an_export_to_standard_output_can_be_piped_into_an_import(run, tmp_path):
    run("store", "User likes お茶")

    exported = run("export")
    done = run("import", "-", "--home", str(tmp_path / "other"), stdin=exported.out.encode())

    assert [json.loads(line)["type"] for line in exported.out.splitlines()] == ["scrubjay", "memory"]
    assert exported.err == ""
    assert done.out == "1 memory and 0 links imported.\n"


@pytest.mark.parametrize("more", [[], ["--salvage"]])
def test_an_export_replaces_a_file_only_when_asked(call, stored, tmp_path, more):
    stored("User moved to Austin")
    file = tmp_path / "all.jsonl"
    file.write_text("something else")

    refused = call("export", str(file), *more)

    assert refused.code == 1
    assert "--replace" in refused.err
    assert file.read_text() == "something else"
    assert call("export", str(file), "--replace", *more).code == 0
    assert "Austin" in file.read_text()


@pytest.mark.parametrize(("answer", "code"), [("n", 1), ("y", 0)])
def test_at_a_terminal_replacing_is_asked_about(stored, terminal, tmp_path, answer, code):
    stored("User moved to Austin")
    file = tmp_path / "all.jsonl"
    file.write_text("something else")

    done = terminal("export", str(file), keys=f"{answer}\n")

    assert "Replace it?" in done.out
    assert done.code == code
    assert ("Austin" in file.read_text()) == (answer == "y")


def test_an_export_that_fails_leaves_the_former_file(call, filled, tmp_path, home):
    """The store is cut in the middle of what the export has to read."""
    filled(40, 20_000)
    file = tmp_path / "all.jsonl"
    file.write_text("the former export")
    store = home / "memories.db"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])

    done = call("export", str(file), "--replace")

    assert done.code == 1
    assert file.read_text() == "the former export"
    assert [path.name for path in tmp_path.iterdir() if "all.jsonl" in path.name] == ["all.jsonl"]


def test_what_a_damaged_store_still_holds_is_salvaged_and_comes_in_elsewhere(call, filled, tmp_path, home):
    filled(40, 20_000)
    file, store = tmp_path / "rescued.jsonl", home / "memories.db"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    before = store.read_bytes()

    advice = [one["do"] for one in call("doctor", "--json").json["findings"] if one["state"] == "problem"]
    saved = call("export", "--salvage", str(file), "--json")
    taken_in = call("--home", str(tmp_path / "elsewhere"), "import", str(file), "--json")

    assert any("scrubjay export --salvage" in one for one in advice)
    assert 10 < saved.json["memories"] < 40
    assert taken_in.code == 0, taken_in.err
    assert taken_in.json["stored"] == saved.json["memories"]
    assert store.read_bytes() == before
    assert (
        "texts differ from what was stored" in call("export", "--salvage", "--replace", str(file)).err
        or not saved.json["changed"]
    )


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
def test_an_export_is_readable_by_its_owner_only(call, stored, tmp_path):
    stored("User likes tea")

    done = call("export", str(tmp_path / "all.jsonl"), "--json")

    assert stat.S_IMODE((tmp_path / "all.jsonl").stat().st_mode) == 0o600
    assert done.json == {"file": str(tmp_path / "all.jsonl"), "memories": 1, "links": 0}


@pytest.mark.skipif(os.name == "nt", reason="there are no such devices")
def test_a_device_is_written_to_and_not_replaced(call, stored):
    stored("User likes tea")

    assert call("export", "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_export_into_a_missing_folder_is_an_error_of_one_line_that_names_it(call, tmp_path):
    place = tmp_path / "missing" / "all.jsonl"

    done = call("export", str(place))

    assert done.code == 1
    assert done.err.startswith(f"Error: {place} cannot be written: there is no folder {place.parent}.\n")
    assert ".all.jsonl" not in done.err


def test_an_export_holds_one_space(call, stored):
    stored("User likes tea")
    stored("The team likes coffee", "--space", "work")

    [_, line] = call("export", "--space", "work").out.splitlines()

    assert json.loads(line)["content"] == "The team likes coffee"


@pytest.mark.parametrize("to", ["-", "former.jsonl"])
def test_an_export_of_a_misspelt_space_is_an_error_and_leaves_the_former_file(call, stored, tmp_path, to):
    stored("The team likes coffee", "--space", "work")
    former = tmp_path / "former.jsonl"
    call("export", "--space", "work", str(former))
    before = former.read_text()

    done = call("export", "--space", "wrok", to if to == "-" else str(former))

    assert (done.code, done.out) == (3, "")
    assert "No space wrok." in done.err
    assert "`scrubjay spaces list`" in done.err
    assert former.read_text() == before


def test_the_default_space_is_exported_before_anything_is_stored_in_it(call):
    assert len(call("export").out.splitlines()) == 1
