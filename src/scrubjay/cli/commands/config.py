"""`scrubjay config`"""

from __future__ import annotations

from pathlib import Path

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import note, show
from scrubjay.cli.session import Session
from scrubjay.clients.catalogue import CLIENTS, PROJECT, USER
from scrubjay.clients.install import printed, wanted
from scrubjay.machine.projects import project_root


@click.command(
    cls=Command,
    examples="""
    scrubjay config cursor
    scrubjay config vscode --project
    scrubjay config codex --space work
    """,
)
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
@click.option("--user/--project", "for_user", default=True, help="For all of your projects (default), or this one.")
@click.pass_obj
def config(session: Session, client: str, for_user: bool) -> None:
    """Print what a client needs to connect, and change nothing.

    It is what `scrubjay install` would write into the client's file.
    """
    known, scope, folder = CLIENTS[client], USER if for_user else PROJECT, project_root(Path.cwd())
    if scope not in known.scopes:
        raise click.UsageError(f"{known.title} has no settings for a project. Leave out --project.")
    want = wanted(known, session.settings(), scope=scope, folder=folder, space=session.space)
    file = known.file(scope, folder)
    note(f"{known.title}, {file}:", session)
    entry = known.entry(want.command, want.arguments)
    show({"client": client, "file": str(file), "table": known.table, "entry": entry}, printed(known, want), session)
