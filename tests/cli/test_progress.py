"""What a person sees while something takes long: how far it is, how fast, and what takes the time."""

from __future__ import annotations

import io
import json
import re
import threading
from contextlib import closing
from functools import partial

import pytest
from rich.console import Console

from scrubjay.cli import progress as bars
from scrubjay.cli.progress import progress, progress_sentence, waiting
from scrubjay.wiring import open_store


@pytest.fixture
def many(tmp_path):
    """A file of three hundred facts."""
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"content": f"Fact number {number}"}) + "\n" for number in range(300)))
    return file


@pytest.mark.parametrize(
    ("count", "seconds", "embedding", "text"),
    [
        (12, 0.4, 0.3, "12 lines"),  # too early to say how fast
        (1_200, 1.0, 0.9, "1,200 lines, 1,200/s"),
        (1_200, 10.0, 2.0, "1,200 lines, 120/s"),
        (1_200, 10.0, 9.2, "1,200 lines, 120/s, mostly embedding (92%)"),
    ],
)
def test_it_says_how_many_how_fast_and_what_is_slow(count, seconds, embedding, text):
    assert progress_sentence(count, "lines", seconds, embedding) == text


@pytest.mark.parametrize("columns", [40, 120])
def test_at_a_terminal_an_import_shows_its_lines_and_clears_the_bar(terminal, many, columns):
    shown = terminal("import", str(many), columns=columns).out

    assert "Importing" in shown
    assert "300 lines" in shown
    assert ("━" in shown) == (columns == 120), "without room there is no bar"
    assert "\x1b[2K" in shown, "the bar goes when it is done"
    assert "300" in shown.splitlines()[-1]


def test_at_a_terminal_a_rebuild_shows_what_it_is_at(terminal, call, many):
    call("import", str(many), "--embed", "later")

    piped = call("doctor", "--rebuild")
    call("import", "-", "--embed", "later", stdin=many.read_bytes().replace(b"Fact", b"Event"))
    shown = terminal("doctor", "--rebuild").out

    assert "Rebuilding words " in shown
    assert "600/600" in shown
    assert "Rebuilding vectors and hints " in shown
    assert "300/300" in shown
    assert "0/" not in piped.err


def test_a_rebuild_says_that_it_waits_for_another_process(terminal, call, home):
    call("import", "-", "--embed", "later", stdin=b'{"content": "User likes tea"}\n')
    said = "Waiting for another process that makes vectors"
    with closing(open_store(f"sqlite:///{home / 'memories.db'}")) as other:
        other.upkeep.lease("embedding", holder="another process", seconds=600)
        go_on = partial(other.upkeep.release, "embedding", holder="another process")
        shown = terminal("doctor", "--rebuild", waits_with=said, go_on=go_on).out

    assert "Rebuilding vectors and hints " in shown
    assert shown.index(said) < shown.index("Rebuilding vectors and hints ")


@pytest.mark.parametrize("columns", [70, 80, 100])
def test_the_bar_is_one_line_whatever_it_says(monkeypatch, columns):
    shown, clock = io.StringIO(), iter([0.0, 10.0])
    shown.isatty = lambda: True
    monkeypatch.setattr(bars.sys, "stderr", shown)
    monkeypatch.setattr(bars, "monotonic", lambda: next(clock))
    terminal = Console(file=shown, force_terminal=True, width=columns)
    monkeypatch.setattr("scrubjay.cli.tables.console", lambda **_: terminal)

    with progress("Importing", shown=True, total=209_100, in_bytes=True, unit="lines", embedding=lambda: 9.5) as report:
        report(109_100, None, 1_333)

    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line).strip() for line in re.split(r"[\r\n]+", shown.getvalue())]
    assert any("mostly" in line for line in lines)
    assert [line for line in lines if line and "Import" not in line] == []
    assert columns < 80 or any("109.1/209.1 kB" in line for line in lines)


def test_a_pipe_sees_nothing_of_it(call, many):
    done = call("import", str(many))

    assert "Importing" not in done.out + done.err


class Terminal(io.StringIO):
    """Standard error of a person, who waits for a text."""

    def __init__(self, text):
        super().__init__()
        self.text, self.read = text, threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        if self.text in text:
            self.read.set()
        return super().write(text)


def test_a_spinner_says_what_is_waited_for(monkeypatch):
    shown = Terminal("Searching")
    monkeypatch.setattr(bars.sys, "stderr", shown)
    monkeypatch.setattr(bars, "SPINNER_SECONDS", 0.0)
    monkeypatch.setattr("scrubjay.cli.tables.console", lambda **_: Console(file=shown, force_terminal=True))

    with waiting("Searching"):
        assert shown.read.wait(60)


def test_what_does_not_take_long_shows_no_spinner(monkeypatch):
    shown = Terminal("Searching")
    monkeypatch.setattr(bars.sys, "stderr", shown)
    monkeypatch.setattr(bars, "SPINNER_SECONDS", 600.0)

    with waiting("Searching"):
        pass

    assert shown.getvalue() == ""


def test_without_a_terminal_there_is_no_spinner(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(bars.sys, "stderr", shown)
    monkeypatch.setattr(bars, "SPINNER_SECONDS", 0.0)

    with waiting("Searching"):
        pass

    assert shown.getvalue() == ""
