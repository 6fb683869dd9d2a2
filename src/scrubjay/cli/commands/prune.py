"""`scrubjay prune`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import note, show_table
from scrubjay.cli.session import CommandSession
from scrubjay.values.memory import AT_HAND
from scrubjay.values.search import Filter


@click.command(
    cls=Command,
    examples="""
    scrubjay prune --dry-run
    scrubjay prune
    """,
)
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@click.pass_obj
def prune(session: CommandSession, dry_run: bool) -> None:
    """Forget expired memories.

    Only those of the current space, or of the one that --space names. They are already hidden; pruned ones can be
    restored for thirty days, then they are erased.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        pruned = engine.prune(dry_run=dry_run)
        others = not pruned and engine.list(Filter(states=AT_HAND, expired=True), limit=1).memories
        where = f" in space {engine.spaces[0]}. Others hold some: name one with --space" if others else ""
    show_table(
        list(pruned), ("id", "expired", "memory"), [(one.id, one.expires_at, one.text) for one in pruned], session
    )
    verb = "would be forgotten" if dry_run else "forgotten"
    note(f"{len(pruned):,} {verb}." if pruned else f"Nothing has expired{where}.", session)
