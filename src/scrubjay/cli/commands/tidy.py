"""`scrubjay tidy`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import count_of, note, print_json, print_table, safe
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession


@click.command(
    cls=Command,
    examples="""
    scrubjay tidy --preview
    scrubjay tidy
    scrubjay tidy --background
    """,
)
@click.option("--preview", is_flag=True, help="Show what the model writes for the newest twenty; change nothing.")
@click.option("--background", is_flag=True, help="Let a running server do it; prints the job's id.")
@click.pass_obj
def tidy(session: CommandSession, *, preview: bool, background: bool) -> None:
    """Let a language model write phrases to find memories by.

    The configured model (synthesis_url) writes them for memories that have none. `undo` takes them back one by one.
    Texts with flags are not sent to the model.
    """
    if preview and background:
        raise click.UsageError("--preview and --background cannot be combined.")
    with session.engine(known_space=True) as engine:
        if background:
            click.echo(engine.tidying.start().id)
        elif preview:
            written = engine.tidying.preview()
            if session.as_json:
                print_json(written)
            else:
                rows = [(one.memory.id, safe(one.memory.title), safe("; ".join(one.also))) for one in written]
                print_table(("id", "memory", "also"), rows)
        else:
            with progress("Writing phrases", shown=not session.as_json, unit="memories") as report:
                done = engine.tidying.write(report)
            if session.as_json:
                print_json({"memories": done})
            else:
                note(f"{count_of(done, 'memory has', 'memories have')} phrases now.", session)
