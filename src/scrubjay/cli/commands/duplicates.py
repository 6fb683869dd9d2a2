"""`scrubjay duplicates`"""

from __future__ import annotations

from itertools import islice

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import remember_list
from scrubjay.cli.output import note, on_terminal, print_json, print_table, space_cell, tell_empty
from scrubjay.cli.pairs import print_pair
from scrubjay.cli.session import CommandSession
from scrubjay.values.search import MAX_LIMIT


@click.command(
    cls=Command,
    examples="""
    scrubjay duplicates
    scrubjay duplicates --limit 100 --json
    """,
)
@click.option(
    "--limit", type=click.IntRange(1, MAX_LIMIT), default=20, help="Maximum number of pairs to show. Default: 20."
)
@click.pass_obj
def duplicates(session: CommandSession, /, *, limit: int) -> None:
    """List memories that say the same in the same words.

    Spelling, case and punctuation may differ. Changes nothing: forget one of a pair, or let the newer supersede the
    older.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        found = list(islice(engine.conflicts.duplicates(), limit))
        remember_list([memory.id for one in found for memory in (one.older, one.newer)], session)
        if session.as_json:
            print_json([{"newer": one.newer, "older": one.older, "cosine": one.cosine} for one in found])
        elif found and on_terminal():
            for place, one in enumerate(found):
                print_pair(f"{place + 1} of {len(found)}", one.older, one.newer, ("older", "newer"), 2 * place + 1)
            note("scrubjay conflicts --same OLDER NEWER, or scrubjay forget ID.", session)
        elif found:
            print_table(
                ("older", "says", "newer", "says", "stored", "space"),
                [
                    (
                        one.older.id,
                        one.older.text,
                        one.newer.id,
                        one.newer.text,
                        one.newer.created_at,
                        *space_cell(engine, one.older, one.newer),
                    )
                    for one in found
                ],
            )
            note("scrubjay supersede OLDER NEWER, or scrubjay forget ID.", session)
        elif engine.records.upkeep.pending(limit=1):  # only what has a vector was compared
            note("None among memories with vectors; others wait for the model. See `scrubjay doctor`.", session)
        else:
            tell_empty("No duplicates.", engine, session)
