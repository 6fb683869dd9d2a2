"""`scrubjay serve`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.session import CommandSession
from scrubjay.dialects.table import DIALECTS
from scrubjay.servers.http.processes import count_of, keep_workers, read_worker


@click.command(
    cls=Command,
    without=("--json",),
    examples="""
    scrubjay serve
    scrubjay serve --port 9000 --space work
    scrubjay serve --workers auto
    """,
)
@click.option("--host", metavar="ADDRESS", help="The address to listen on. Default: 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on. Default: 8377.")
@click.option("--only", is_flag=True, help="Read only the space named by --space, instead of every space.")
@click.option("--workers", metavar="N", help="Processes that serve it together; auto: one per core. Default: 1.")
@click.option("--worker", is_flag=True, hidden=True)
@click.pass_obj
def serve(
    session: CommandSession, /, *, host: str | None, port: int | None, only: bool, workers: str | None, worker: bool
) -> None:
    """Serve the memory over HTTP.

    Prints its address and runs until Ctrl-C. It writes to the space default, wherever it is started, unless --space or
    a request names another.
    """
    settings = session.settings(host=host, port=port, workers=workers, only=only or None, dialects=tuple(DIALECTS))
    count = 1 if worker else count_of(settings.workers)
    if count > 1:
        click.get_current_context().exit(keep_workers(settings, count))
    from scrubjay.servers.http import app  # takes most of a second: after the settings are checked

    app.serve(settings, read_worker() if worker else None)
