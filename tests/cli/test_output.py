"""Stored text never drives a terminal; programs get it exactly."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.cli.output import safe

EVIL = "\x1b]0;owned\x07\x1b[2Jred \x1b[31m \x9b31m \u202etxt.exe [bold]not markup[/bold] [/]"


@given(st.text(st.characters(codec=None)))
def test_nothing_that_drives_a_terminal_survives(text):
    shown = safe(text)

    assert not any(ord(one) < 32 or 0x7F <= ord(one) < 0xA0 for one in shown)
    assert not set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029") & set(shown)
    shown.encode()


@pytest.mark.parametrize("text", ["plain", "naïve – “quoted”", "日本語", "👩‍👩‍👧", "שלום", "a\u00a0b"])
def test_text_that_does_no_harm_stays_as_it_is(text):
    assert safe(text) == text


def test_control_characters_are_shown_as_escapes():
    assert safe("a\x1b[31mb\nc\td\u202e") == "a\\x1b[31mb\\nc\\td\\u202e"


def test_lines_may_be_kept():
    assert safe("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


def test_lines_of_a_pipe_are_one_per_memory(call, stored):
    stored("first\nsecond\tthird")

    [line] = call("list").out.splitlines()

    assert line.endswith("\tfirst\\nsecond\\tthird")


@pytest.mark.parametrize("command", ["list", "search", "show", "history"])
def test_an_escape_sequence_in_a_memory_reaches_no_terminal_and_every_program(call, stored, command):
    id = stored(EVIL)
    argument = {"list": [], "search": ["owned"]}.get(command, [id])

    for_people, for_programs = call(command, *argument), call(command, *argument, "--json")

    assert "\x1b" not in for_people.out + for_people.err
    assert "\x9b" not in for_people.out + for_people.err
    assert "owned" in for_people.out
    assert EVIL in everything(for_programs.json)


def everything(value):
    """All texts in a document."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in everything(one)]
    if isinstance(value, list):
        return [text for one in value for text in everything(one)]
    return [value]


def test_an_unknown_id_in_a_message_is_shown_safely(call):
    done = call("show", "mem_\u202eevil")

    assert "\u202e" not in done.err
    assert "\\u202e" in done.err


def test_a_terminal_shows_a_table_and_takes_markup_for_text(stored, environment):
    stored(EVIL)
    stored("A plain one", "--tag", "home")

    shown = on_a_terminal(environment, "list")

    assert "memory" in shown.splitlines()[1]
    assert "[bold]not" in shown.replace("\r\n", "")
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown


def test_ids_stay_whole_on_a_narrow_terminal(stored, environment):
    id = stored("The quick brown fox jumps over the lazy dog", "--tag", "a-rather-long-tag-for-a-fox")

    shown = on_a_terminal({**environment, "COLUMNS": "80"}, "search", "fox", "--explain")

    assert id in shown


def test_no_color_is_honoured(stored, environment):
    stored("A plain one")

    assert "\x1b[" not in on_a_terminal({**environment, "NO_COLOR": "1", "TERM": "dumb"}, "list")


def test_json_on_a_terminal_is_plain_json(stored, environment):
    stored("A plain one")

    assert json.loads(on_a_terminal(environment, "list", "--json"))[0]["content"] == "A plain one"


def on_a_terminal(environment, *args):
    """What the program writes when it sees a terminal 100 columns wide."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "scrubjay", *args]
    env = {"TERM": "xterm", "COLUMNS": "100", **environment}
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while chunk := read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode()


def read(descriptor):
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other end is closed
        return b""
