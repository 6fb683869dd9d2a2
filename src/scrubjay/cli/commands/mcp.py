"""`scrubjay mcp`, for when options come before it on the command line.

`scrubjay mcp …` itself never gets here: it is answered before click is imported (see `__main__.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys

import click

from scrubjay.cli.command import Choosy
from scrubjay.cli.session import CommandSession


class Elsewhere(Choosy, click.Command):
    """A command that reads its own options."""


@click.command(
    cls=Elsewhere,
    without=("--json",),
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    examples="""
    claude mcp add scrubjay -- scrubjay mcp --dialect scrubjay --space auto
    """,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def mcp(session: CommandSession, arguments: tuple[str, ...]) -> None:
    """Run an MCP server on standard input and output; your client starts this."""
    run_again("mcp", session, arguments)


def run_again(name: str, session: CommandSession, arguments: tuple[str, ...]) -> None:
    """Start the program again with the options where they belong."""
    given = {"--home": session.home, "--space": session.space}
    flags = [word for flag, value in given.items() if value for word in (flag, value)]
    command = [sys.executable, "-m", "scrubjay", name, *arguments, *flags]
    if sys.platform == "win32":  # there, exec returns to the shell at once
        sys.exit(subprocess.call(command))
    os.execv(sys.executable, command)  # noqa: S606 - our own program, without a shell
