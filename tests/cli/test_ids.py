"""Which memory is meant: an id, the beginning of one, or a place in the last list."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def three(call):
    """Ids that are known beforehand."""
    lines = [json.dumps({"id": id, "content": f"Fact {id}"}) for id in ("mem_abc000000000", "mem_abd000000000", "note")]
    assert call("import", "-", stdin="\n".join(lines)).code == 0


@pytest.mark.parametrize("typed", ["mem_abc", "abc", "mem_abc000000000", "mem_abc00000000"])
def test_a_beginning_that_no_other_id_has_is_enough(call, three, typed):
    assert call("show", typed, "--json").json["memory"]["id"] == "mem_abc000000000"


@pytest.mark.parametrize("typed", ["mem_a", "ab", "mem_"])
def test_an_ambiguous_beginning_names_the_candidates_and_changes_nothing(call, three, typed):
    done = call("forget", typed)

    assert done.code == 1
    assert "mem_abc000000000 (Fact" in done.err
    assert "mem_abd000000000" in done.err
    assert len(call("list", "--json").json) == 3


def test_an_id_of_another_shape_is_itself_even_if_others_begin_with_it(call, three):
    call("import", "-", stdin='{"id": "note2", "content": "Another"}')

    assert call("show", "note", "--json").json["memory"]["content"] == "Fact note"


@pytest.mark.parametrize("typed", ["zz", "mem_zz", "%", "mem_abc0000000001"])
def test_what_no_id_begins_with_is_not_found(call, three, typed):
    assert call("show", typed).code == 3


@pytest.mark.parametrize(
    "words", ["show", "history", "update --importance 0.5", "forget", "archive", "audit --memory", "forget --undo"]
)
def test_every_command_takes_beginnings(call, three, words):
    if "--undo" in words:
        call("forget", "abc")

    assert call(*words.split(), "abc").code == 0


def test_the_last_list_of_a_terminal_is_remembered(terminal, stored, tmp_path):
    first, second = stored("User drinks tea"), stored("User drinks coffee")
    listed = terminal("list").out

    assert "@1" in listed
    assert terminal("show", "@1", "--json").json["memory"]["id"] == second
    assert terminal("show", "@2", "--json").json["memory"]["id"] == first
    terminal("search", "--words", "tea")
    assert terminal("show", "@1", "--json").json["memory"]["id"] == first
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600]
    assert json.loads(files[0].read_text()) == [first]  # never a text


def test_a_place_that_the_list_lacks_is_refused(terminal, stored):
    stored("User drinks tea")
    terminal("list")

    for typed in ("@0", "@2", "@x", "@", "@-1", "@99999999"):
        done = terminal("forget", typed)
        assert (done.code, "from @1 to @1" in done.out) == (1, True), typed


def test_another_store_has_another_list(terminal, stored, tmp_path):
    stored("User drinks tea")
    terminal("list")

    assert "has shown none yet" in terminal("show", "@1", "--home", str(tmp_path / "other")).out


def test_a_broken_list_is_no_list(terminal, stored, tmp_path):
    stored("User drinks tea")
    terminal("list")
    [file] = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]

    for content in (b"", b"{", b"{}", b"[]", b"[[1]]"):
        file.write_bytes(content)
        assert terminal("show", "@1").code in (1, 3), content


def test_without_a_terminal_there_is_no_last_list(run, stored, tmp_path):
    stored("User drinks tea")
    alone = {"XDG_STATE_HOME": str(tmp_path / "state")}

    assert run("list", env=alone, start_new_session=True).code == 0
    assert run("show", "@1", env=alone, start_new_session=True).code == 1
    assert not (tmp_path / "state").exists()
