"""`scrubjay brief`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import print_json, safe, tell_empty, tell_owed
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    examples="""
    scrubjay brief
    scrubjay brief --space auto --budget 500
    """,
)
@click.option("--budget", type=int, default=1_500, metavar="TOKENS", help="Most tokens to print. Default: 1500.")
@click.pass_obj
def brief(session: CommandSession, /, *, budget: int) -> None:
    """Show what an agent should know at the start of a session.

    The project first, then what is personal, decisions that are open and the last checkpoint.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        found = engine.brief(budget=budget)
        tell_owed(engine.take_owed(), session)
        if session.as_json:
            print_json(found)
        elif found.text:
            click.echo(safe(found.text, lines=True))
        else:
            tell_empty("Nothing is stored yet.", engine, session)
