"""`scrubjay config`"""

from __future__ import annotations

from pathlib import Path

import click

from scrubjay.cli.command import Command
from scrubjay.cli.commands.install import find_server
from scrubjay.cli.output import note, show
from scrubjay.cli.session import CommandSession
from scrubjay.clients.catalogue import CLIENTS, PROJECT, USER
from scrubjay.clients.install import entry_for, entry_to_paste, find_wanted
from scrubjay.engine.store.intake import check_space
from scrubjay.machine.projects import project_root


@click.command(
    cls=Command,
    examples="""
    scrubjay config cursor
    scrubjay config vscode --project
    scrubjay config codex --space work
    scrubjay config gemini --url http://127.0.0.1:8377
    """,
)
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
@click.option("--user/--project", "for_user", default=True, help="For all of your projects (default), or this one.")
@click.option("--url", metavar="ADDRESS", help="For a server that runs there, instead of one that the client starts.")
@click.pass_obj
def config(session: CommandSession, client: str, for_user: bool, url: str | None) -> None:
    """Print what a client needs to connect, and change nothing.

    It is what `scrubjay install` would write into the client's file.
    """
    known, scope, folder = CLIENTS[client], USER if for_user else PROJECT, project_root(Path.cwd())
    if scope not in known.scopes:
        raise click.UsageError(f"{known.title} has no settings for a project. Leave out --project.")
    if session.narrowed:
        check_space(session.space)  # or the entry's server would start, and fail at every call
    server = find_server(url, session) if url else {}
    want = find_wanted(known, session.settings(), scope=scope, folder=folder, space=session.space, **server)
    file = known.file(scope, folder)
    note(f"{known.title}, {file}:", session)
    entry = entry_for(known, want)
    show(
        {"client": client, "file": str(file), "table": known.table, "entry": entry},
        entry_to_paste(known, want),
        session,
    )
