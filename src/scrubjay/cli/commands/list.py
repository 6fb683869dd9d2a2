"""`scrubjay list`"""

from __future__ import annotations

from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.filters import ALL_STATES, filter_options, read_filter, state_of
from scrubjay.cli.ids import remember_list
from scrubjay.cli.output import Cell, find_doubts, note, print_json, print_listed, space_cell, tell_empty
from scrubjay.cli.session import CommandSession
from scrubjay.values.memory import AT_HAND, Memory, State
from scrubjay.values.search import MAX_LIMIT, Order

ORDERS = {
    "created": Order.CREATED,
    "updated": Order.UPDATED,
    "accessed": Order.ACCESSED,
    "importance": Order.IMPORTANCE,
    "length": Order.LENGTH,
}


@click.command(
    "list",
    cls=Command,
    examples="""
    scrubjay list --limit 50
    scrubjay list --tag home --since 7d
    scrubjay list --on yesterday
    scrubjay list --deleted
    """,
)
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=20, help="Maximum number to show. Default: 20.")
@click.option("--offset", type=click.IntRange(0), default=0, help="How many to skip.")
@click.option("--order", type=click.Choice([*ORDERS]), default="created", help="What to sort by. Default: created.")
@click.option("--reverse", is_flag=True, help="Oldest, least or shortest first.")
@click.option("--superseded", is_flag=True, help="Only memories that a newer one has outdated.")
@click.option("--expired", is_flag=True, help="Only expired memories.")
@click.option("--deleted", is_flag=True, help="Only forgotten memories that can still be restored.")
@click.option("--all", "all_states", is_flag=True, help="Include all of these.")
@filter_options
@click.pass_obj
def list_(
    session: CommandSession,
    /,
    *,
    limit: int,
    offset: int,
    order: str,
    reverse: bool,
    superseded: bool,
    expired: bool,
    deleted: bool,
    all_states: bool,
    **filters: Any,
) -> None:
    """List memories, newest first."""
    named = {State.SUPERSEDED} if superseded else set()
    named |= {State.DELETED} if deleted else set()
    if all_states:
        which = read_filter(**filters, states=ALL_STATES, expired=None)
    elif expired:
        which = read_filter(**filters, states=frozenset(named or AT_HAND), expired=True)
    elif named:
        which = read_filter(**filters, states=frozenset(named), expired=None)
    else:
        which = read_filter(**filters)
    with session.engine(meaning=False, known_space=True) as engine:
        page = engine.list(which, order=ORDERS[order], descending=not reverse, limit=limit, offset=offset, counted=True)
        remember_list([memory.id for memory in page], session)
        doubts = find_doubts(page.memories, engine, session)
        if session.as_json:
            print_json(page.memories)
        elif page.memories:
            rows = [(*row(memory, doubts.get(memory.id)), *space_cell(engine, memory)) for memory in page]
            print_listed(("id", "stored", "category", "tags", "state", "memory", "space"), rows)
            if len(page) < (page.total or 0):
                note(f"{len(page):,} of {page.total:,}. More: --limit and --offset.", session)
        else:
            tell_empty("No memories found.", engine, session)


def row(memory: Memory, newer: str | None) -> tuple[Cell, ...]:
    return (
        memory.id,
        memory.created_at,
        memory.category,
        ", ".join(memory.tags),
        state_of(memory, newer),
        memory.shown_text,
    )
