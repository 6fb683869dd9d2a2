"""Stored text never drives a terminal; programs get it exactly."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.cli.output import safe
from scrubjay.values.times import ago

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


def test_a_memory_is_one_line_in_a_pipe(call, stored):
    stored("first\nsecond\r\n\nthird\tfourth")

    assert "\tfirst⏎second⏎⏎third\\tfourth\t" in call("search", "second").out
    [line] = call("list").out.splitlines()
    assert line.endswith("\tfirst⏎second⏎⏎third\\tfourth")


def test_control_characters_are_shown_as_escapes_and_lines_may_be_kept():
    assert safe("a\x1b[31mb\nc\td\u202e") == "a\\x1b[31mb⏎c\\td\\u202e"
    assert safe("a\n\tb\x1b", lines=True) == "a\n\tb\\x1b"


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


def test_a_terminal_shows_a_table_and_takes_markup_for_text(stored, terminal):
    stored(EVIL)
    stored("A plain one", "--tag", "home")

    for columns in (60, 120):
        shown = terminal("list", columns=columns).out

        assert ("memory" in shown.splitlines()[1]) == (columns == 120)
        assert "[bold]not" in shown
        assert "\x1b]0;" not in shown
        assert "\x1b[2J" not in shown


LONG_TEXTS = (
    "ユーザーは東京に引っ越し、毎朝、緑茶を飲みながら新聞を読む。",
    "🎉 The release party is on Friday with cake 🍰🍰 and a long list of people who said they would come",
    "한국어도 있고 中文也有, side by side with https://example.org/a/rather/long/address/that/has/no/spaces/at/all",
)


def test_nothing_vanishes_and_nothing_is_wider_than_the_window(stored, terminal):
    for text in LONG_TEXTS:
        stored(text, "--tag", "住所")

    for columns, command in product((40, 60, 80, 120), (["list"], ["search", "--words", "東京 party 中文 新聞"])):
        shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal(*command, columns=columns).out)

        assert max(width(line) for line in shown.splitlines()) <= columns
        for text in LONG_TEXTS:
            for letter in {*text} - {" "}:
                assert shown.count(letter) >= text.count(letter), f"{letter} in {command} at {columns}"
        if columns < 100:
            assert " ".join(LONG_TEXTS[1].split()) in " ".join(shown.split())


def width(line):
    """Columns on a terminal, told by Unicode itself."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def test_ids_are_shortened_below_a_hundred_columns_and_whole_above(stored, terminal):
    id = stored("The quick brown fox jumps over the lazy dog", "--tag", "a-rather-long-tag-for-a-fox")

    narrow = terminal("search", "fox", "--explain", columns=80).out
    wide = terminal("search", "fox", columns=120).out

    assert id[:10] in narrow
    assert id not in narrow
    assert id in wide


def test_colours_tell_state_score_tags_and_found_words(stored, call, terminal):
    old, new = stored("User drinks tea", "--tag", "taste"), stored("User drinks coffee now", "--tag", "taste")
    call("supersede", old, new)

    shown = terminal("search", "who drinks tea or coffee", "--all", columns=80).out

    assert "\x1b[33msuperseded" in shown
    assert "\x1b[36mtaste" in shown
    assert "\x1b[1;32mcoffee\x1b[0m" in shown
    assert re.search(r"\x1b\[3[23]m0\.\d\d", shown)


def test_times_are_relative_on_a_terminal_and_whole_in_a_pipe(call, terminal):
    long_ago = (datetime.now(UTC) - timedelta(days=21, hours=1)).isoformat()
    call("import", "-", stdin=json.dumps({"content": "then", "created_at": long_ago}))

    assert "3 weeks ago" in terminal("list").out
    assert call("list").out.split("\t")[1] == long_ago[:16].replace("T", " ")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"), (59, "just now"), (60, "1 min ago"), (7199, "119 min ago"), (7200, "2 h ago"),
        (3 * 86_400, "3 days ago"), (20 * 86_400, "2 weeks ago"), (100 * 86_400, "3 months ago"),
        (800 * 86_400, "2 years ago"), (-30, "in a moment"), (-3 * 86_400, "in 3 days"),
    ],
)  # fmt: skip
def test_how_long_ago(seconds, said):
    now = datetime(2026, 11, 17, tzinfo=UTC)

    assert ago(now - timedelta(seconds=seconds), now) == said


@pytest.mark.parametrize("more", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_color_is_honoured(stored, terminal, more):
    stored("A plain one", "--tag", "home")

    assert "\x1b[" not in terminal("list", **more).out


def test_json_on_a_terminal_is_plain_json(stored, terminal):
    stored("A plain one")

    assert terminal("list", "--json").json[0]["content"] == "A plain one"


@pytest.mark.parametrize("command", ["settings", "doctor", "spaces list", "model list"])
def test_every_kind_of_table_fits_a_narrow_window(stored, terminal, command):
    stored("A plain one")

    shown = re.sub(r"\x1b\[[0-9;]*m", "", terminal(*command.split(), columns=40).out)

    assert max(width(line) for line in shown.splitlines()) <= 40
