"""What all commands share: examples at the end of the help, and global options that work behind the command too."""

from __future__ import annotations

import inspect
from typing import Any

import click

from scrubjay.cli.session import Session


class Examples:
    """A command whose help ends with lines that one can type. Goes before a class of click's."""

    examples: str

    def __init__(self, *args: Any, examples: str, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.examples = inspect.cleandoc(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Examples"):
            for line in self.examples.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")


class Command(Examples, click.Command):
    """`scrubjay search … --json` means the same as `scrubjay --json search …`."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += global_options()


class Family(Examples, click.Group):
    """A command that has commands of its own, such as `spaces`."""

    command_class = Command

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.params += global_options()


def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Note a global option, wherever it was given; what was not given changes nothing."""
    if value:
        setattr(ctx.ensure_object(Session), str(param.name), value)


def global_options() -> list[click.Parameter]:
    """A fresh set for each command that takes them."""
    return [
        click.Option(
            ["--space"],
            metavar="NAME",
            callback=remember,
            expose_value=False,
            help="The space to work in; auto names it after the repository you stand in.",
        ),
        click.Option(
            ["--json", "as_json"],
            is_flag=True,
            is_eager=True,  # so that a bad value elsewhere is already reported as asked
            callback=remember,
            expose_value=False,
            help="Print one JSON document; errors are JSON on standard error.",
        ),
        click.Option(
            ["--home"],
            metavar="FOLDER",
            callback=remember,
            expose_value=False,
            help="Where memories are kept. Default: your data folder.",
        ),
        click.Option(
            ["--debug"],
            is_flag=True,
            is_eager=True,
            callback=remember,
            expose_value=False,
            help="Show where an error came from.",
        ),
    ]
