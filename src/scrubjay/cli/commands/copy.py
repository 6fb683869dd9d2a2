"""`scrubjay copy`"""

from __future__ import annotations

from contextlib import closing

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import counted, note, print_json
from scrubjay.cli.progress import progress
from scrubjay.cli.session import Session
from scrubjay.errors import InvalidInput, NotFound
from scrubjay.machine.paths import SQLITE, store_address


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
def copy(session: Session, source: str, target: str) -> None:
    """Copy a whole store into a new one: a file or a postgresql:// address.

    Memories with their vectors, former states, links, feeds, credentials: everything. Stop what writes to either first.
    Until both sides were read at the end and compared by hashes, nothing else opens the new store. A copy that was cut
    off goes on when the same command is given again.
    """
    from scrubjay.stores import copying  # the rest of the program has no use for it
    from scrubjay.wiring import copyable, open_store, sqlite_file

    addresses = [store_address(source), store_address(target)]
    if addresses[0] == addresses[1]:
        raise InvalidInput("A store cannot be copied onto itself.")
    if addresses[0].startswith(SQLITE) and not sqlite_file(addresses[0]).exists():
        raise NotFound("There is no store to copy from.", hint="Give its file, or its postgresql:// address.")
    with (
        closing(open_store(addresses[0])) as one,
        closing(open_store(addresses[1], unfinished=True)) as other,
        progress("Copying", shown=not session.as_json) as report,
    ):
        counts = copying.copy(copyable(one), copyable(other), lambda _table, done, of: report(done, of))
    if session.as_json:
        print_json({"copied": counts, "verified": True})
    else:
        memories = counted(counts["memories"], "memory", "memories")
        vectors = counted(counts["vectors"], "vector", "vectors")
        note(f"{memories} and {vectors} copied; both sides are the same.", session)
