"""`tags`, `stats`, `edit` and `open`, as people type them."""

from __future__ import annotations

import re
import shlex
import sys

import pytest


def test_tags_are_listed_with_how_many_have_them(call, stored):
    stored("User drinks tea", "--tag", "taste", "--tag", "home")
    stored("User lives in Austin", "--tag", "home")

    assert call("tags").out == "home\t2\ntaste\t1\n"
    assert call("tags", "--limit", "1", "--json").json == [{"tag": "home", "memories": 2}]
    assert {"tag": "austin", "memories": 1} in call("tags", "--found", "--json").json


def test_statistics_are_shown(call, stored):
    stored("User drinks tea", "--category", "preference")
    call("forget", stored("User was in Rome"))
    older, newer = stored("User lives in Rome"), stored("User lives in Oslo")
    call("supersede", older, newer)

    shown = call("stats").out

    assert re.search(r"memories +2, 1 superseded, 1 forgotten", shown)
    assert len(call("list", "--json").json) == 2
    assert re.search(r"preference +▇+ 1", shown)
    assert call("stats", "--json").json["count"]["total"] == 4
    assert call("stats", "--everywhere").code == 0


@pytest.fixture
def editor(tmp_path, environment):
    """An editor that runs some Python over the file."""

    def editor(code):
        script = tmp_path / "editor.py"
        script.write_text(f"import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n{code}\n")
        environment.update(EDITOR=shlex.join([sys.executable, str(script)]), VISUAL="")

    return editor


def test_a_text_is_edited(call, stored, editor):
    id = stored("User lives in Seattle")
    editor("file.write_text(text.replace('Seattle', 'Austin'))")

    done = call("edit", id[:10], "--reason", "moved")

    assert done.code == 0, done.err
    assert call("show", id, "--json").json["memory"]["content"] == "User lives in Austin"
    assert "moved" in call("history", id).out


@pytest.mark.parametrize("code", ["pass", "file.write_text('')", "file.write_text(' \\n')"])
def test_an_unchanged_or_empty_text_changes_nothing(call, stored, editor, code):
    id = stored("User lives in Seattle")
    editor(code)

    assert "Nothing was changed" in call("edit", id).err
    assert call("show", id, "--json").json["memory"]["version"] == 1


def test_an_editor_that_fails_changes_nothing(call, stored, editor):
    id = stored("User lives in Seattle")
    editor("sys.exit(1)")

    assert call("edit", id).code == 1
    assert call("show", id, "--json").json["memory"]["version"] == 1


def test_what_was_changed_meanwhile_is_not_overwritten_and_what_was_written_is_shown(call, stored, editor, tmp_path):
    id = stored("User lives in Seattle")
    again = f"{[sys.executable, '-m', 'scrubjay', 'update', id, '--content', 'Theirs']!r}"
    editor(f"import subprocess\nsubprocess.run({again}, check=True)\nfile.write_text('Mine')")

    done = call("edit", id)

    assert done.code == 1
    assert "Mine" in done.err
    assert call("show", id, "--json").json["memory"]["content"] == "Theirs"


def test_what_an_editor_wrote_in_another_encoding_is_shown_and_not_saved(call, stored, editor):
    id = stored("User lives in Seattle")
    editor("file.write_bytes('User lives in Orléans'.encode('latin-1'))")

    done = call("edit", id)

    assert done.code == 1
    assert "not UTF-8, at byte 17" in done.err
    assert "User lives in Orl" in done.err
    assert "internal" not in done.err
    assert call("show", id, "--json").json["memory"]["version"] == 1


def test_the_page_needs_a_server(call):
    done = call("open", "--print")

    assert done.code == 3
    assert "scrubjay serve" in done.err
