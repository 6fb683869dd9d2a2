"""A global option means something to a command, or is refused there: nothing that was typed is passed over."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import click
import pytest

from scrubjay.cli.command import Choosy
from scrubjay.cli.main import main

VALUES = {"--space": ["work"], "--json": [], "--home": ["elsewhere"], "--debug": []}
# Commands that work in one space: what they store, find, change, take in or write out is there, or named there.
IN_ONE_SPACE = {
    "store", "update", "supersede", "conflicts", "consolidate", "tidy", "search", "list", "show", "history",
    "duplicates", "decisions", "forget", "prune", "archive", "export", "import", "mcp", "serve", "settings",
    "brief", "install", "config", "hook", "tags", "stats", "edit", "open", "undo",
}  # fmt: skip


def commands(group: click.Group, *before: str):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield (*before, name), command


COMMANDS = dict(commands(main))
REFUSED = [(words, option) for words, command in COMMANDS.items() for option in command.without]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_says_which_options_mean_nothing_to_it(words):
    command = COMMANDS[words]
    assert isinstance(command, Choosy)
    assert set(command.without) <= {*VALUES} - {"--debug"}, "an error can be looked into anywhere"

    source = inspect.getsource(import_module(command.callback.__module__))
    assert ("--space" in command.without) == (words[0] not in IN_ONE_SPACE)
    prints_json = words == ("hook",) or re.search(r"\b(as_json|show|show_note|show_table)\b", source)
    assert ("--json" in command.without) == (not prints_json)


@pytest.mark.parametrize(("words", "option"), REFUSED, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_an_option_without_a_meaning_is_refused_wherever_it_stands(call, words, option):
    typed = [option, *VALUES[option]]
    places = [[*typed, *words], *([[*words, *typed]] if words not in (("mcp",), ("hook",)) else [])]
    if len(words) > 1:
        places.append([words[0], *typed, *words[1:]])
    for place in places:
        done = call(*place)

        assert done.code == 2, place
        assert f"{option} does not apply to `scrubjay {words[0]}" in done.err.replace("\n", " ")


@pytest.mark.parametrize(("words", "option"), REFUSED, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_the_help_shows_no_option_that_would_be_refused(words, option):
    command = COMMANDS[words]
    lines = command.get_help(click.Context(command)).splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("  -")]

    assert option not in shown


def test_what_was_probably_meant_is_said(call):
    done = call("keys", "create", "--user", "alice", "--space", "work")

    assert done.code == 2
    assert "Did you mean --in work?" in done.err
    assert call("keys", "list", "--json").json == []
