"""`scrubjay copy`"""

from __future__ import annotations

from contextlib import closing

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import count_of, note, print_json
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.errors import InvalidInput, NotFound
from scrubjay.machine.paths import SQLITE, store_address
from scrubjay.stores import copying
from scrubjay.wiring import copyable, open_store, sqlite_file


@click.command(
    cls=Command,
    without=("--space", "--home"),
    examples="""
    scrubjay copy memories.db postgresql://jay@db.example.org/memory
    scrubjay copy postgresql://jay@db.example.org/memory copy.db
    """,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.pass_obj
def copy(session: CommandSession, source: str, target: str) -> None:
    """Copy a whole store into a new one: a file or a postgresql:// address.

    Copies everything: memories with their vectors, earlier versions, links, feeds, credentials. First stop whatever
    writes to either. Nothing else can open the new store until both sides have been read back and their hashes
    compared. To resume an interrupted copy, run the same command again.
    """
    addresses = [store_address(source), store_address(target)]
    if addresses[0] == addresses[1]:
        raise InvalidInput("A store cannot be copied onto itself.")
    if addresses[0].startswith(SQLITE) and not sqlite_file(addresses[0]).exists():
        raise NotFound("No store to copy from.", hint="Give its file, or its postgresql:// address.")
    try:
        with (
            closing(open_store(addresses[0])) as one,
            closing(open_store(addresses[1], unfinished=True)) as other,
            progress("Copying", shown=not session.as_json) as report,
        ):
            sides = copyable(one), copyable(other)
            complete = copying.is_complete(*sides)
            counts = copying.copy(*sides, lambda _table, done, of: report(done, of))
    except KeyboardInterrupt as interrupt:
        interrupt.add_note("To resume, run the same command again.")
        raise
    if session.as_json:
        print_json({"copied": counts, "verified": True, "already_copied": complete})
    else:
        memories = count_of(counts["memories"], "memory", "memories")
        vectors = count_of(counts["vectors"], "vector", "vectors")
        copied = f"Already copied: {memories} and {vectors}" if complete else f"{memories} and {vectors} copied"
        note(f"{copied}; both sides are identical.", session)
