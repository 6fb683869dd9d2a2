"""`scrubjay reembed`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import count_of, note, print_json
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    without=("--space",),
    examples="""
    scrubjay reembed
    SCRUBJAY_EMBEDDER=folder:/models/mine scrubjay reembed
    """,
)
@click.pass_obj
def reembed(session: CommandSession) -> None:
    """Rebuild every vector with the configured model.

    Until it is done, memories are found by words only; they can be stored, changed and forgotten meanwhile. If it is
    interrupted, run it again: it resumes where it stopped.
    """
    with session.engine() as engine, progress("Embedding", shown=not session.as_json, unit="memories") as report:
        result = engine.upkeep.reembed(progress=report)
    if session.as_json:
        print_json(
            {
                "model": result.model,
                "memories": result.memories,
                "failed": result.failed,
                "other_languages": result.further,
            }
        )
        return
    if result.further is None:
        found = "Not embedded for other languages: their model is missing, or another process is embedding."
        note(f"{found} See: scrubjay doctor", session)
    elif result.further:
        note(f"{result.further:,} memories have vectors of the model for other languages.", session)
    if not result.memories and not result.failed:
        note("All vectors are already from this model.", session)
    else:
        note(f"{count_of(result.memories, 'memory has', 'memories have')} new vectors.", session)
        if result.failed:
            note(f"{result.failed:,} could not be embedded: scrubjay doctor", session)
