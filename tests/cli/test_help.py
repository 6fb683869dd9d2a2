"""Help that teaches: every command has examples that work, and the list of commands is complete and instant."""

from __future__ import annotations

import shlex
import subprocess
import sys

import click
import pytest

from scrubjay.cli.command import Examples
from scrubjay.cli.main import COMMANDS, main
from scrubjay.cli.session import CommandSession

pytestmark = pytest.mark.process


def walk(command=main, path=()):
    """Every command and its path, down to the last."""
    yield path, command
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            yield from walk(command.get_command(ctx, name), (*path, name))


ALL = [pytest.param(path, command, id=" ".join(path) or "scrubjay") for path, command in walk()]


@pytest.mark.parametrize(("path", "command"), ALL)
def test_the_help_of_every_command_has_an_example(call, path, command):
    assert isinstance(command, Examples)
    if path in (("mcp",), ("hook",)):  # answered before this program starts; see servers/stdio/options.py
        return

    done = call(*path, "--help")

    assert done.code == 0
    _, _, examples = done.out.partition("\nExamples:\n")
    assert "scrubjay" in examples


@pytest.mark.parametrize(("path", "command"), ALL)
def test_every_example_is_understood(path, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("memories.jsonl", "Downloads"):
        (tmp_path / name).touch()
    for line in command.examples.splitlines():
        words = shlex.split(line.replace("~/Downloads/arctic-embed-s", "Downloads"), comments=True)
        if "scrubjay" in words and "mcp" not in words:
            words = words[words.index("scrubjay") + 1 :]
            words = words[: min((words.index(end) for end in "|>" if end in words), default=None)]
            parse(main, words)


def parse(command, words):
    """Raises if the words are not understood; runs nothing."""
    with command.make_context("scrubjay", list(words), obj=CommandSession()) as ctx:
        if isinstance(command, click.Group):
            _, below, rest = command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
            parse(below, rest)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says_of_itself(name):
    command = main.get_command(click.Context(main), name)

    assert command.help.partition("\n")[0] == COMMANDS[name]
    assert command.name == name


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "Remember:"),
        (["serach", "tea"], "Did you mean 'search'?"),
        (["search", "tea", "--limt", "3"], "--limit"),
    ],
    ids=["nothing", "a mistyped command", "a mistyped option"],
)
def test_what_cannot_be_understood_is_answered_with_what_was_probably_meant(call, typed, said):
    done = call(*typed)

    assert done.code == 2
    assert said in done.out + done.err


def test_what_other_programs_call_it_works_too(call):
    assert call("--version").out.startswith("scrubjay 0.")
    assert call("version").out == call("--version").out
    assert call("help").out == call("--help").out
    assert call("help", "keys", "create").out == call("keys", "create", "--help").out
    assert "Unknown command 'nonsense'" in call("help", "nonsense").err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(call, shell):
    done = call("completion", shell)

    assert done.code == 0
    assert "_SCRUBJAY_COMPLETE" in done.out


@pytest.mark.parametrize(("words", "expected"), [("scrubjay sea", "search"), ("scrubjay store x --cat", "--category")])
def test_completion_completes(environment, words, expected):
    asked = {"_SCRUBJAY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    done = subprocess.run(
        [sys.executable, "-m", "scrubjay"], env=environment | asked, capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines() == [f"plain,{expected}"]
    assert done.returncode == 0


def test_the_bash_script_is_understood_by_bash(call):
    script = call("completion", "bash").out

    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
