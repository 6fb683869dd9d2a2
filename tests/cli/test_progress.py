"""What a person sees while something takes long: how far it is, how fast, and what takes the time."""

from __future__ import annotations

import json

import pytest

from scrubjay.cli.progress import said


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
    assert said(count, "lines", seconds, embedding) == text


@pytest.mark.parametrize("columns", [40, 120])
def test_at_a_terminal_an_import_shows_its_lines_and_clears_the_bar(terminal, tmp_path, columns):
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"content": f"Fact number {number}"}) + "\n" for number in range(300)))

    shown = terminal("import", str(file), columns=columns).out

    assert "Importing" in shown
    assert "300 lines" in shown
    assert ("━" in shown) == (columns == 120), "without room there is no bar"
    assert "\x1b[2K" in shown, "the bar goes when it is done"
    assert "300" in shown.splitlines()[-1]


def test_a_pipe_sees_nothing_of_it(run, tmp_path):
    file = tmp_path / "many.jsonl"
    file.write_text("".join(json.dumps({"content": f"Fact number {number}"}) + "\n" for number in range(300)))

    done = run("import", str(file))

    assert "Importing" not in done.out + done.err
