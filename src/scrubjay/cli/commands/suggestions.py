"""`scrubjay suggestions`"""

from __future__ import annotations

from datetime import UTC, datetime

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import note, show_note, show_table, when
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    without=("--space",),
    examples="""
    scrubjay suggestions
    scrubjay suggestions --accept sug_1f2e3d4c
    scrubjay suggestions --drop sug_1f2e3d4c --drop sug_5b6a7980
    """,
)
@click.option("--accept", multiple=True, metavar="ID", help="Store it as a memory; repeat for several.")
@click.option("--drop", multiple=True, metavar="ID", help="Drop it; repeat for several.")
@click.pass_obj
def suggestions(session: CommandSession, accept: tuple[str, ...], drop: tuple[str, ...]) -> None:
    """List what hooks suggest to remember; accept or drop it.

    Sentences in which you said remember, always, never or decided, and what a session did. They are kept on this
    machine, apart from memories; no search finds them, and after 30 days they are gone.
    """
    with session.engine(meaning=bool(accept)) as engine:
        if accept or drop:
            stored = [engine.suggestions.accept(one).memory for one in accept]
            for one in drop:
                engine.suggestions.drop(one)
            done = {"stored": stored, "dropped": list(drop)}
            said = [f"Stored {memory.id} in {memory.space}." for memory in stored] + [f"Dropped {one}." for one in drop]
            return show_note(done, " ".join(said), session)
        found = engine.suggestions.list()
    if found or session.as_json:
        rows = [(it.id, when(datetime.fromtimestamp(it.at, UTC)), it.kind, it.space, it.text) for it in found]
        return show_table(found, ("id", "when", "kind", "space", "text"), rows, session)
    return note("No suggestions.", session)
