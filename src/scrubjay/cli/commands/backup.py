"""`scrubjay backup`"""

from __future__ import annotations

import os
from pathlib import Path

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import count_of, note, print_json, safe
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    without=("--space",),
    examples="""
    scrubjay backup memories-backup.db
    scrubjay backup /mnt/disk/monday.db --json
    """,
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.pass_obj
def backup(session: CommandSession, file: str) -> None:
    """Copy the whole store, every space of it, to a new file.

    Servers may keep writing meanwhile: the copy contains everything that was acknowledged before it began. It is read
    back in full before it gets its name, and FILE.sha256 is written next to it; `scrubjay restore` checks both.
    """
    with (
        session.engine(meaning=False) as engine,
        progress("Copying", shown=not session.as_json, total=None) as report,
    ):
        checkup = engine.upkeep.backup(Path(file), progress=report)
    size = os.path.getsize(file)
    if session.as_json:
        print_json({"file": os.path.abspath(file), "memories": checkup.memories, "bytes": size})
    else:
        memories = count_of(checkup.memories, "memory", "memories")
        note(f"{memories} in {safe(file)} ({size / 1e6:,.1f} MB).", session)
