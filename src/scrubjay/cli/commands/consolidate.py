"""`scrubjay consolidate`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id, resolve_ids
from scrubjay.cli.output import note, print_json, safe
from scrubjay.cli.session import CommandSession
from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy

STRATEGIES = click.Choice(["ai_synthesis", "merge_all", "keep_primary"])


@click.command(
    cls=Command,
    examples="""
    scrubjay consolidate mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    scrubjay consolidate mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t --into mem_4x1k9c0d2m7q
    scrubjay consolidate mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t --strategy merge_all
    """,
)
@click.argument("ids", nargs=-1, required=True, metavar="ID ID...")
@click.option("--strategy", type=STRATEGIES, help="Default: ai_synthesis, or with --into keep_primary.")
@click.option("--into", metavar="ID", help="The memory to merge the others into; its text does not change.")
@click.option("--forget", is_flag=True, help="Forget the originals instead of archiving them.")
@click.option("--instructions", help="Instructions for the configured language model.")
@click.pass_obj
def consolidate(
    session: CommandSession,
    /,
    *,
    ids: tuple[str, ...],
    strategy: str | None,
    into: str | None,
    forget: bool,
    instructions: str | None,
) -> None:
    """Merge several related memories into one.

    The originals are archived and can be restored with `scrubjay archive --undo`. Without a configured model the
    text is merged by rules: every sentence once, the newest of contradictory ones.
    """
    chosen = Strategy(strategy) if strategy else Strategy.KEEP_PRIMARY if into else Strategy.AI_SYNTHESIS
    with session.engine(known_space=True) as engine:
        into = None if into is None else resolve_id(engine, into, session)
        given = resolve_ids(engine, ids, session)
        done = engine.consolidation.merge(
            ConsolidationPlan(
                ids=given, strategy=chosen, primary=into, instructions=instructions, keep_originals=not forget
            )
        )
    if session.as_json:
        print_json(done)
        return
    click.echo(done.memory.id)
    for sentence in done.notes:
        note(sentence, session)
    note(safe(done.memory.text, lines=True), session)
