"""What all commands share: examples at the end of the help, and global options that work after the command too.

A command names the global options that do not apply to it (`without`), and refuses them wherever they are given:
`keys create --space work` would otherwise create a key for a different space than its caller expects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import click

from scrubjay.cli.session import CommandSession


class Examples:
    """A command whose help ends with examples to type. Comes before a click class in the bases."""

    examples: str

    def __init__(self, *args: Any, examples: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.examples = inspect.cleandoc(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Examples"):
            for line in self.examples.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


class Choosy(Examples):
    """A command that refuses the global options named in `without`; `meant` says what to use instead."""

    without: tuple[str, ...]
    meant: dict[str, str]

    def __init__(
        self, *args: Any, without: tuple[str, ...] = (), meant: dict[str, str] | None = None, **attrs: Any
    ) -> None:
        super().__init__(*args, **attrs)
        self.without = without
        self.meant = meant or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options; those that all commands share are explained once, by `scrubjay --help`."""
        super().format_options(ctx, formatter)  # type: ignore[misc]  # click's
        shared = [names[0] for names in GLOBAL_OPTIONS if names[0] not in self.without]
        formatter.write_paragraph()
        formatter.write_text(f"Options of all commands, explained by `scrubjay --help`: {', '.join(shared)}.")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        check_given(ctx)  # those before the command's name; those after it are checked as they are parsed
        parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]  # click's, which comes behind
        return parsed


class Command(Choosy, click.Command):
    """`scrubjay search … --json` means the same as `scrubjay --json search …`."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += global_options(hidden=self.without)


class Family(Choosy, click.Group):
    """A command with subcommands, such as `spaces`. Options that do not apply to it do not apply to them."""

    command_class = Command

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += global_options(hidden=self.without)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Whole sentences; click would cut them to one line."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (one.help or "").partition("\n")[0]) for name, one in commands if one is not None]
            )

    def command(  # type: ignore[override]  # click's also takes a bare function; ours never do
        self, *args: Any, **attrs: Any
    ) -> Callable[[Callable[..., Any]], click.Command]:
        attrs.setdefault("without", self.without)
        made: Callable[[Callable[..., Any]], click.Command] = super().command(*args, **attrs)
        return made


class SharedOption(click.Option):
    """An option of all commands, which only the program itself lists in its help."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        return None if isinstance(ctx.command, Choosy) else super().get_help_record(ctx)


def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Record a global option, wherever it was given; an option not given changes nothing."""
    if value:
        session = ctx.ensure_object(CommandSession)
        setattr(session, str(param.name), value)
        session.given[param.opts[0]] = value
        check_given(ctx)


def check_given(ctx: click.Context) -> None:
    """:raises click.UsageError: if a global option was given that does not apply to this command"""
    command = ctx.command
    if not isinstance(command, Choosy) or ctx.resilient_parsing:
        return
    for option, value in ctx.ensure_object(CommandSession).given.items():
        if option in command.without:
            said = f"{option} does not apply to `{ctx.command_path}`."
            if option in command.meant:
                said += f" Did you mean {command.meant[option]} {value}?"
            raise click.UsageError(said, ctx)


# All are read before anything else: a refused --space is reported before missing arguments, and a bad value elsewhere
# already as JSON.
GLOBAL_OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    ("--space",): {"metavar": "NAME", "help": "Only this space; auto is the current project's."},
    ("--json", "as_json"): {"is_flag": True, "help": "Print one JSON document; errors are JSON on standard error."},
    ("--home",): {"metavar": "FOLDER", "help": "Where memories are kept. Default: your data folder."},
    ("--debug",): {"is_flag": True, "help": "Show a traceback for errors."},
}


def global_options(hidden: tuple[str, ...] = ()) -> list[click.Option]:
    """A fresh set for each command that takes them."""
    return [
        SharedOption(names, is_eager=True, callback=remember, expose_value=False, hidden=names[0] in hidden, **more)
        for names, more in GLOBAL_OPTIONS.items()
    ]
