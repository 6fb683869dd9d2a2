"""A memory's life on the command line: stored, found, changed, outdated, forgotten, brought back."""

from __future__ import annotations

import json
import subprocess

import pytest

import scrubjay
from scrubjay.values.callers import LOCAL_USER
from scrubjay.values.store import BulkOperation

pytestmark = pytest.mark.process


def test_what_one_process_stores_another_finds(run):
    id = run("store", "User moved to Austin", "--tag", "home").out.strip()

    [hit] = run("search", "Where is Austin?", "--json").json
    [by_words] = run("--json", "search", "--words", "Austin").json

    assert hit["memory"]["id"] == by_words["memory"]["id"] == id
    assert hit["memory"]["content"] == "User moved to Austin"
    assert hit["memory"]["tags"] == ["home"]
    assert hit["memory"]["source"] == "explicit"
    assert hit["memory"]["provenance"]["client"] == "scrubjay-cli"
    assert hit["memory"]["provenance"]["transport"] == "cli"


def test_the_id_alone_is_on_standard_output(call):
    done = call("store", "User moved to Austin")

    assert done.out.startswith("mem_")
    assert len(done.out.split()) == 1


def test_every_option_of_store_is_kept(call):
    done = call(
        "store", "The demo runs on port 8080", "--tag", "demo", "--tag", "port", "--category", "context",
        "--importance", "0.9", "--source", "extracted", "--expires", "2999-12-01", "--title", "Port", "--user", "ann",
        "--conversation", "c1", "--json",
    )  # fmt: skip

    memory = done.json["memory"]
    assert memory["tags"] == ["demo", "port"]
    assert memory["category"] == "context"
    assert memory["importance"] == 0.9
    assert memory["source"] == "extracted"
    assert memory["expires_at"] == "2999-12-01T00:00:00.000Z"
    assert memory["title"] == "Port"
    assert memory["context"] == {"user_id": "ann", "conversation_id": "c1"}


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"tea\n", "tea"),
        (b"tea\r\n", "tea"),
        (b"\xef\xbb\xbftea", "tea"),
        (b"tea\n\n", "tea\n"),
        (b" tea ", " tea "),
        ("お茶 👩‍👩‍👧".encode(), "お茶 👩‍👩‍👧"),
        (b"a\0b\x1b[31m", "a\0b\x1b[31m"),
        (f"{'é' * 49_999}!".encode(), f"{'é' * 49_999}!"),
    ],
)
def test_standard_input_is_kept_to_the_last_character_but_for_the_last_line_end(call, data, kept):
    id = call("store", "-", stdin=data).out.strip()

    assert call("show", id, "--json").json["memory"]["content"] == kept


def test_a_text_that_looks_like_an_option_goes_behind_two_dashes(call):
    id = call("store", "--", "--tag is how one tags").out.strip()

    assert call("show", id, "--json").json["memory"]["content"] == "--tag is how one tags"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("search --words zebra", "Nothing found"),
        ("list --tag unused", "No memories found"),
        ("decisions", "No decisions yet"),
        ("tags", "--tag"),
        ("archive --inactive 90d", "Nothing matches"),
        ("prune", "Nothing has expired"),
        ("jobs list", "No jobs"),
        ("conflicts", ""),
        ("duplicates", ""),
    ],
)
def test_nothing_to_show_is_a_sentence_and_no_error(call, stored, command, said):
    stored("User moved to Austin")

    done = call(*command.split())

    assert (done.code, done.out, said in done.err) == (0, "", True)


def test_a_search_where_there_is_no_store_yet_finds_nothing(call):
    assert call("search", "tea", "--json").json == []
    assert call("search", "tea", "--json").err == ""


def test_a_search_in_a_space_that_nobody_used_says_so(call, stored):
    stored("User moved to Austin")

    done = call("search", "Austin", "--space", "wrok")

    assert (done.code, done.out) == (3, "")
    assert "No space wrok" in done.err
    assert call("search", "Austin", "--space", "wrok", "--json").error["code"] == "space_not_found"


@pytest.mark.parametrize(
    "command", ["list", "search x", "brief", "conflicts", "duplicates", "decisions", "prune", "export"]
)
def test_an_empty_memory_says_how_to_begin_and_an_unknown_space_is_an_error(call, command):
    done, elsewhere = call(*command.split()), call(*command.split(), "--space", "wrok")

    assert (done.code, bool(done.out)) == (0, command == "export")
    assert "scrubjay store TEXT" in done.err or command in ("prune", "export")
    assert (elsewhere.code, elsewhere.out) == (3, "")
    assert "scrubjay spaces list" in elsewhere.err


def test_why_a_memory_was_found_can_be_asked(call, stored):
    stored("User moved to Austin")

    for_people = call("search", "Austin moved", "--explain")
    [hit] = call("search", "Austin moved", "--explain", "--json").json

    assert "words: Austin moved" in for_people.out
    assert set(hit["explanation"]["words"]) == {"Austin", "moved"}
    assert hit["score"] > 0


def test_filters_choose_what_is_listed_and_found(call, stored):
    tea = stored("User likes tea", "--tag", "taste", "--category", "preference", "--conversation", "c1")
    stored("User likes trains", "--user", "ann", "--category", "fact")

    for option in (["--tag", "taste"], ["--category", "preference"], ["--conversation", "c1"], ["--user", "local"]):
        assert ids(call("list", *option)) == [tea]
        assert [hit["memory"]["id"] for hit in call("search", "likes", *option, "--json").json] == [tea]
    assert ids(call("list", "--until", "1d")) == []
    assert ids(call("list", "--since", "2999-01-01")) == []
    assert len(ids(call("list", "--since", "1h", "--client", "scrubjay-cli"))) == 2
    assert ids(call("list", "--client", "another")) == []


def ids(done):
    return [line.partition("\t")[0] for line in done.out.splitlines()]


def test_lists_are_newest_first_and_can_be_turned_and_paged(call, stored):
    first, second, third = stored("one"), stored("two, longer"), stored("three")

    assert ids(call("list")) == [third, second, first]
    assert ids(call("list", "--reverse")) == [first, second, third]
    assert ids(call("list", "--order", "length", "--limit", "1")) == [second]
    page = call("list", "--limit", "1", "--offset", "1")
    assert ids(page) == [second]
    assert "1 of 3" in page.err


def test_outdated_expired_and_forgotten_ones_are_listed_when_asked_for(call, stored):
    old, new, gone = stored("User lives in Seattle"), stored("User lives in Austin"), stored("User was in Rome")
    expired = import_line(call, {"content": "The demo is today", "expires_at": "2020-01-01T00:00:00Z"})
    call("supersede", old, new)
    call("forget", gone)

    assert ids(call("list")) == [new]
    assert ids(call("list", "--superseded")) == [old]
    assert ids(call("list", "--deleted")) == [gone]
    assert ids(call("list", "--expired")) == [expired]
    assert set(ids(call("list", "--superseded", "--deleted"))) == {old, gone}
    assert set(ids(call("list", "--all"))) == {old, new, gone, expired}
    states = {line.split("\t")[4] for line in call("list", "--all").out.splitlines()}
    assert states == {"", "superseded", "deleted", "expired"}
    assert [hit["memory"]["id"] for hit in call("search", "--words", "demo", "--json").json] == []
    assert [hit["memory"]["id"] for hit in call("search", "--words", "demo", "--all", "--json").json] == [expired]


def import_line(call, line):
    done = call("import", "-", stdin=json.dumps(line))
    assert done.code == 0, done.err
    return call("list", "--all", "--json", "--limit", "1").json[0]["id"]


def test_show_tells_everything_with_links_and_chain(call, stored):
    first, second = stored("User lives in Seattle", "--tag", "home"), stored("User lives in Austin")
    third = stored("User lives in Boston")
    call("supersede", first, second)
    call("supersede", second, third)

    shown = call("show", second)
    document = call("show", second, "--json").json

    assert shown.out.startswith("User lives in Austin\n\n")
    assert "superseded" in shown.out
    assert "scrubjay-cli (cli)" in shown.out
    assert document["chain"] == [first, second, third]
    assert document["memory"]["superseded_by"] == third
    assert {link["kind"] for link in document["links"]} >= {"supersedes"}
    assert [line.split()[2] for line in shown.out.splitlines() if line.startswith("chain")] == [first, second, third]


def test_metadata_cannot_pose_as_one_of_our_fields(call):
    id = import_line(call, {"content": "tea", "metadata": {"space": "forged", "id": "mem_forged"}})

    lines = call("show", id).out.splitlines()

    assert [line for line in lines if line.startswith("space ")] == ["space         default"]
    assert [line for line in lines if line.startswith("id ")] == [f"id            {id}"]


def test_an_update_changes_what_is_named_and_nothing_else(call, stored):
    id = stored("User lives in Austin", "--tag", "home", "--tag", "old", "--expires", "30d", "--category", "fact")

    done = call("update", id, "--content", "User lives in Austin, Texas", "--tag", "texas", "--untag", "old",
                "--importance", "0.9", "--no-expiry", "--reason", "asked again", "--json")  # fmt: skip

    memory = done.json
    assert memory["content"] == "User lives in Austin, Texas"
    assert memory["tags"] == ["home", "texas"]
    assert memory["importance"] == 0.9
    assert "expires_at" not in memory
    assert memory["category"] == "fact"
    assert [hit["memory"]["id"] for hit in call("search", "Texas", "--json").json] == [id]


def test_an_update_can_read_its_text_from_standard_input(call, stored):
    id = stored("User likes tea")

    call("update", id, "--content", "-", stdin=b"User likes coffee\n")

    assert call("show", id, "--json").json["memory"]["content"] == "User likes coffee"


def test_history_tells_who_changed_what_and_why_and_restores(call, stored):
    id = stored("User likes tea")
    call("update", id, "--content", "User likes coffee", "--reason", "misheard")

    lines = [line.split("\t") for line in call("history", id).out.splitlines()]
    assert [line[0] for line in lines] == ["2", "1"]
    assert lines[0][2:5] == ["content, title", "local", "misheard"]
    assert lines[1][2] == "stored"
    assert lines[1][5] == "User likes tea"

    assert call("history", id, "--restore", "1").code == 0
    document = call("history", id, "--json").json
    assert document["current"]["content"] == "User likes tea"
    assert document["current"]["version"] == 3
    assert [former["memory"]["content"] for former in document["former"]] == ["User likes coffee", "User likes tea"]
    assert call("history", id, "--restore", "99").code == 3


def test_history_names_the_memory_that_was_superseded_and_the_one_that_did(call, stored):
    old, new = stored("User lives in Paris"), stored("User lives in Rome")
    call("supersede", old, new)

    told = {id: call("history", id).out.splitlines()[0].split("\t")[2] for id in (old, new)}

    assert told == {old: f"superseded_by {new}, valid_until", new: f"supersedes {old}"}


@pytest.mark.parametrize("id", ["bulk_7g2h4j6k8m0n", "deed_7g2h4j6k8m0n"])
def test_a_bulk_operation_is_undone_by_its_id_also_by_one_of_an_earlier_version(call, stored, home, id):
    memory = stored("User likes tea")
    with scrubjay.open(home / "memories.db") as jay:
        at = jay.forget(memory).memory.deleted_at
        done = BulkOperation(id=id, action="forgotten", user=LOCAL_USER, at=at, memories=(memory,))
        with jay.records.writing() as tx:
            tx.history.note_operation(done, goes_on=False)

    undone = call("forget", "--undo", id)

    assert (undone.code, undone.out) == (0, "1 memory restored.\n")
    assert call("show", memory).code == 0


def test_each_undo_takes_back_one_change_and_says_which(call, stored):
    old, new, newest = stored("User likes tea"), stored("User likes coffee"), stored("User likes cocoa")
    call("update", old, "--importance", "0.9")
    call("supersede", old, new)
    call("supersede", old, newest)
    call("forget", old)

    told = [call("undo", old).out for _ in range(4)]

    assert told[0] == f"{old} is back, but outdated by {newest}.\n"
    assert told[1] == f"{old} is no longer outdated by {newest}: it is still outdated by {new}.\n"
    assert told[2] == f"{old} is no longer outdated by {new}: it is current again.\n"
    assert told[3].startswith(f"{old} is as it was before its last update (importance); now at version")
    refused = call("undo", old)
    assert refused.code != 0
    assert "nothing to undo" in refused.err


def test_without_an_id_the_last_change_is_taken_back_whichever_it_was(call, stored):
    nothing = call("undo")
    old, new, other = (stored(f"User likes {what}", "--tag", what[0]) for what in ("tea", "coffee", "cocoa"))

    call("update", old, "--importance", "0.9")
    updated = call("undo")
    call("supersede", old, new)
    superseded = call("undo")
    call("forget", other)
    forgotten = call("undo")
    call("forget", "--tag", "c", "--yes")
    many = call("undo")
    last = stored("A slip")
    slip, again = call("undo"), call("undo")

    assert (nothing.code, nothing.err) == (3, "Error: Nothing has been changed yet.\n")
    assert updated.out.startswith(f"{old} is as it was before its last update (importance)")
    assert superseded.out == f"{old} is no longer outdated by {new}: it is current again.\n"
    assert forgotten.out == f"{other} is back.\n"
    assert many.out == "2 memories restored.\n"
    assert slip.out == f"{last} is forgotten.\n"
    assert "A slip" in slip.err
    assert again.out == f"{other} is forgotten.\n"
    assert len(call("list", "--json").json) == 2


def test_an_undo_is_told_to_programs(call, stored):
    id = stored("User likes tea")
    call("update", id, "--content", "User likes coffee")

    done = call("undo", id, "--json").json

    assert (done["memory"]["content"], done["undone"], done["changed"]) == ("User likes tea", "revised", ["content"])


def test_forgetting_can_be_undone(call, stored):
    id = stored("User likes tea")

    assert f"scrubjay forget --undo {id}" in call("forget", id, "--reason", "a joke").out
    assert call("show", id).code == 3
    assert "--undo" in call("show", id).err
    assert "a joke" in call("history", id).out
    assert call("forget", "--undo", id).out == f"{id} restored.\n"
    assert call("show", id).code == 0


def test_one_unknown_id_keeps_no_other_from_being_forgotten(call, stored):
    first, second = stored("tea"), stored("coffee")

    done = call("forget", first, "mem_000000000000", second, "--json")

    assert done.code == 3
    assert [memory["id"] for memory in done.json] == [first, second]
    assert "mem_000000000000" in done.error["message"]


def test_erasing_needs_a_yes_and_leaves_nothing(call, stored, home):
    id = stored("User likes Darjeeling")
    stored("User likes trains")

    assert call("forget", "--hard", id).code == 2
    assert call("show", id).code == 0
    assert call("forget", "--hard", "--yes", id).out == f"{id} erased.\n"
    assert call("forget", "--undo", id).code == 3
    assert b"Darjeeling" not in b"".join(path.read_bytes() for path in home.iterdir() if path.is_file())


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_erasing_asks_at_a_terminal(start, call, stored, answer, code, left):
    pty = pytest.importorskip("pty")
    id = stored("User likes tea")
    ours, theirs = pty.openpty()

    with open(ours, "r+b", buffering=0) as terminal, start("forget", "--hard", id, stdin=theirs) as process:
        terminal.write(answer)
        _, err = process.communicate()

    assert b"Erase 1 memory for good?" in err
    assert process.returncode == code
    assert len(call("list", "--json").json) == left


def test_prune_forgets_what_has_expired_and_a_dry_run_only_says_so(call, stored):
    stored("User likes tea")
    expired = import_line(call, {"content": "The demo is today", "expires_at": "2020-01-01T00:00:00Z"})

    assert ids(call("prune", "--dry-run")) == [expired]
    assert ids(call("list", "--expired")) == [expired]
    assert [memory["id"] for memory in call("prune", "--json").json] == [expired]
    assert ids(call("list", "--deleted")) == [expired]


def test_global_options_work_before_and_behind_the_command(call, tmp_path):
    other = str(tmp_path / "other")

    call("--home", other, "--space", "work", "store", "User likes tea")

    assert len(call("list", "--home", other, "--space", "work", "--json").json) == 1
    assert len(call("--json", "--space", "work", "list", "--home", other).json) == 1
    assert call("list", "--home", other, "--space", "default", "--json").json == []
    assert call("list", "--json").json == []


def test_a_space_is_made_by_creating_or_by_storing(call):
    assert call("spaces", "create", "work", "--description", "What the team knows").out == "work\n"
    assert "already exists" in call("spaces", "create", "work").err
    assert call("spaces", "create", "work", "--json").json == {"space": "work", "created": False}
    call("store", "User likes tea", "--space", "play")

    shown = {space["name"]: space["memories"] for space in call("spaces", "list", "--json").json}
    assert shown == {"default": 0, "work": 0, "play": 1}
    assert "What the team knows" in call("spaces", "list").out


def test_the_space_of_a_repository_is_found_and_every_other_is_read_too(call, stored, tmp_path, monkeypatch):
    stored("User likes tea")
    (tmp_path / "project" / ".git").mkdir(parents=True)

    monkeypatch.chdir(tmp_path / "project")
    call("store", "The project likes trains", "--space", "auto")
    found = call("search", "likes", "--space", "auto", "--json").json

    assert {hit["memory"]["space"] for hit in found} == {"project", "default"}
    assert {memory["space"] for memory in call("list", "--json").json} == {"project", "default"}
    assert [memory["content"] for memory in call("list", "--space", "default", "--json").json] == ["User likes tea"]


def test_output_is_utf8_json_whatever_the_terminal_speaks(run):
    id = run("store", "お茶").out.strip()

    as_json = run("show", id, "--json", env={"PYTHONIOENCODING": "latin-1"})
    for_people = run("show", id, env={"PYTHONIOENCODING": "latin-1"})

    assert as_json.json["memory"]["content"] == "お茶"
    assert for_people.code == 0
    assert "\\u304a" in for_people.out


def test_two_programs_at_once_lose_nothing(start, call):
    started = [start("store", f"Fact number {number}", stdin=subprocess.DEVNULL) for number in range(4)]
    for process in started:
        with process:
            process.communicate(timeout=60)

    assert [process.returncode for process in started] == [0] * 4
    assert len(call("list", "--json").json) == 4


def test_a_space_that_a_command_makes_is_told(call):
    assert "Created space work." in call("store", "User likes tea", "--space", "work").err
    assert "Created" not in call("store", "User likes coffee", "--space", "work").err
    assert "Created space copy." in call("import", "-", "--space", "copy", stdin='{"content": "Tea"}\n').err


# --- brief -----------------------------------------------------------------------------------------------------------


def test_a_brief_is_printed_within_its_budget(call):
    id = call("store", "The user drinks \x1b[31mtea").out.strip()

    assert f"[{id}, just now] The user drinks \\x1b[31mtea" in call("brief").out
    assert call("brief", "--json", "--budget", "200").json["tokens"] <= 200
    assert call("brief", "--budget", "5").code != 0


def test_a_memory_that_comes_to_say_the_same_as_another_is_told(call, stored):
    first = stored("The ferry leaves at nine")
    call("forget", first)
    second = stored("The ferry leaves at nine")

    for command in (("undo", first), ("update", second, "--content", "The  ferry leaves at nine")):
        done = call(*command)
        assert done.code == 0, done.err
        assert "says the same as" in done.err
        assert "scrubjay conflicts" in done.err
    assert first in call("conflicts").out
