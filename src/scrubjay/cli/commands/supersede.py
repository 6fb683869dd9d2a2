"""`scrubjay supersede`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import safe, show
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    examples="""
    scrubjay supersede mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    """,
)
@click.argument("old")
@click.argument("new")
@click.pass_obj
def supersede(session: CommandSession, old: str, new: str) -> None:
    """Mark a memory as outdated by a newer one.

    Both are kept; searches show only NEW. Forgetting NEW makes OLD current again.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        outdated, successor = engine.supersede(
            old=resolve_id(engine, old, session), new=resolve_id(engine, new, session)
        )
    show({"old": outdated, "new": successor}, f"{safe(outdated.id)} is outdated by {safe(successor.id)}.", session)
