"""`scrubjay serve`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.session import Session
from scrubjay.dialects.table import DIALECTS


@click.command(
    cls=Command,
    without=("--json",),
    examples="""
    scrubjay serve
    scrubjay serve --port 9000 --space work
    """,
)
@click.option("--host", metavar="ADDRESS", help="The address to listen on. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on. Default: 8377.")
@click.option("--only", is_flag=True, help="Read only the space named by --space, instead of every space.")
@click.pass_obj
def serve(session: Session, host: str | None, port: int | None, only: bool) -> None:
    """Serve the memory over HTTP.

    Prints its address and runs until Ctrl-C. It writes to the space default, wherever it is started, unless --space or
    a request names another.
    """
    settings = session.settings(host=host, port=port, only=only or None, dialects=tuple(DIALECTS))
    from scrubjay.servers.http import app  # takes most of a second: after the settings are checked

    app.serve(settings)
