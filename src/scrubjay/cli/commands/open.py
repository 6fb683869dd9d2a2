"""`scrubjay open`"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import note, show
from scrubjay.cli.session import CommandSession
from scrubjay.errors import NotFound
from scrubjay.lazy import json

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}  # noqa: S104 - where such a server is reached
SECONDS = 10.0


@click.command(
    "open",
    cls=Command,
    examples="""
    scrubjay open
    scrubjay open @1
    scrubjay open --print
    """,
)
@click.argument("id", required=False)
@click.option("--print", "only_print", is_flag=True, help="Print the address, and open nothing.")
@click.pass_obj
def open_(session: CommandSession, id: str | None, only_print: bool) -> None:
    """Open the page in your browser, at a memory if you name one.

    The page belongs to a running server: `scrubjay serve`.
    """
    settings = session.settings()
    host = EVERYWHERE.get(settings.host, settings.host)
    root = f"http://{f'[{host}]' if ':' in host and '[' not in host else host}:{settings.port}"
    if not answers(root):
        raise NotFound(f"No server answers at {root}.", hint="Start one in another terminal: `scrubjay serve`.")
    place = ""
    if id is not None:
        with session.engine(meaning=False, known_space=True) as engine:
            place = f"#/memories/{engine.get(resolve_id(engine, id, session)).id}"
    address = f"{root}/{place}"
    show({"address": address}, address, session)
    if not only_print and click.launch(address):
        note("No browser could be started here: open the address yourself.", session)


def answers(root: str) -> bool:
    """Whether a server of ours is there."""
    where = urlsplit(root)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz")
        reply = connection.getresponse()
        return reply.status == 200 and "status" in json.loads(reply.read(1000))
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
