"""`scrubjay conflicts`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import note, nothing, print_json, print_table, safe, show, when
from scrubjay.cli.session import Session
from scrubjay.values.memory import MAX_LIMIT, OpenConflict


@click.command(
    cls=Command,
    examples="""
    scrubjay conflicts
    scrubjay conflicts --supersede mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    scrubjay conflicts --keep mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    """,
)
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=20, help="Maximum number to show. Default: 20.")
@click.option("--supersede", nargs=2, metavar="OLD NEW", help="OLD is outdated: searches show only NEW.")
@click.option("--keep", nargs=2, metavar="OLD NEW", help="Both are true: do not ask again.")
@click.pass_obj
def conflicts(
    session: Session, /, *, limit: int, supersede: tuple[str, str] | None, keep: tuple[str, str] | None
) -> None:
    """List memories that a newer one may have outdated, or resolve them.

    Nothing is superseded automatically: a proposal stays open until someone decides.
    """
    if supersede and keep:
        raise click.UsageError("Use either --supersede or --keep, not both.")
    with session.engine(meaning=False, known_space=True) as engine:
        if pair := supersede or keep:
            old, new = engine.settle(old=pair[0], new=pair[1], keep=bool(keep))
            said = "Both are kept." if keep else f"{safe(old.id)} is outdated by {safe(new.id)}."
            show({"old": old.id, "new": new.id, "settled": "kept" if keep else "superseded"}, said, session)
            return
        found = engine.open_conflicts(limit=limit)
        if session.as_json:
            print_json(tuple(found))
        elif found:
            print_table(("likely", "old", "says", "new", "says", "stored"), [row(one) for one in found])
            note("Resolve one with --supersede OLD NEW or --keep OLD NEW.", session)
        else:
            nothing("No open conflicts.", engine, session)


def row(one: OpenConflict) -> tuple[str, ...]:
    return f"{one.score:.2f}", one.old.id, one.old.text, one.new.id, one.new.text, when(one.new.created_at)
