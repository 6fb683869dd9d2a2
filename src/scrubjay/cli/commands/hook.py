"""`scrubjay hook`, for when options come before it on the command line.

`scrubjay hook …` itself never gets here: it is answered before click is imported (see `__main__.py`).
"""

from __future__ import annotations

import click

from scrubjay.cli.commands.mcp import Elsewhere, run_again
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Elsewhere,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    examples="""
    scrubjay install claude-code --hooks
    echo '{"prompt": "Where do backups go?"}' | scrubjay hook prompt
    """,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def hook(session: CommandSession, arguments: tuple[str, ...]) -> None:
    """What a client's hooks run; it answers in time, or not at all."""
    run_again("hook", session, arguments)
