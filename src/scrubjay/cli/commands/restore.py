"""`scrubjay restore`"""

from __future__ import annotations

from pathlib import Path

import click

from scrubjay import wiring
from scrubjay.cli.command import Command
from scrubjay.cli.output import note, print_json, safe
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    without=("--space",),
    examples="""
    scrubjay restore memories-backup.db
    scrubjay restore memories-backup.db --replace
    scrubjay --home ~/other restore memories-backup.db
    """,
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--replace", is_flag=True, help="Replace the current memory, which is moved aside and kept.")
@click.pass_obj
def restore(session: CommandSession, file: str, replace: bool) -> None:
    """Restore the store from a backup.

    The backup is read in full first; a damaged one is refused and nothing changes. Stop every server before you
    replace a memory: while one has it open, the command refuses.
    """
    with progress("Restoring", shown=not session.as_json, total=None) as report:
        aside = wiring.restore(session.settings(), Path(file), replace=replace, progress=report)
    if session.as_json:
        print_json({"restored": True, "replaced": None if aside is None else str(aside)})
    note(f"Restored from {safe(file)}.", session)
    if aside is not None:
        note(f"The previous memory was moved to {safe(str(aside))}.", session)
