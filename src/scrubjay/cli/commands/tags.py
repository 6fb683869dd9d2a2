"""`scrubjay tags`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import print_json, print_table, tell_empty
from scrubjay.cli.session import CommandSession
from scrubjay.values.search import MAX_LIMIT


@click.command(
    cls=Command,
    examples="""
    scrubjay tags
    scrubjay tags --found --limit 50
    scrubjay list --tag home
    """,
)
@click.option("--found", is_flag=True, help="Include tags that were found in texts.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=100, help="Maximum number to show. Default: 100.")
@click.pass_obj
def tags(session: CommandSession, found: bool, limit: int) -> None:
    """List tags, the most frequent first."""
    with session.engine(meaning=False, known_space=True) as engine:
        counts = list(engine.tags(found=found, limit=limit))
        if session.as_json:
            print_json(counts)
        elif counts:
            print_table(("tags", "memories"), [(one.tag, f"{one.memories:,}") for one in counts])
        else:
            tell_empty("No tags. Give some with `scrubjay store TEXT --tag NAME`, or try --found.", engine, session)
