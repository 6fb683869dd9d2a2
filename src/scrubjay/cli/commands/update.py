"""`scrubjay update`"""

from __future__ import annotations

from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.durations import read_ahead
from scrubjay.cli.filters import CATEGORIES, NAMES
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import safe, show, tell_flags, tell_same
from scrubjay.cli.session import CommandSession
from scrubjay.cli.texts import given_text
from scrubjay.engine.store.intake import TagChange


@click.command(
    cls=Command,
    examples="""
    scrubjay update mem_4x1k9c0d2m7q --content "User lives in Austin, Texas" --reason "asked again"
    scrubjay update mem_4x1k9c0d2m7q --tag home --untag travel --importance 0.9
    scrubjay update mem_4x1k9c0d2m7q --no-expiry
    """,
)
@click.argument("id")
@click.option("--content", metavar="TEXT", help="The new text; - reads standard input.")
@click.option("--title", help="The new title.")
@click.option("--tag", "tags", multiple=True, help="A tag to add; repeat for several.")
@click.option("--untag", "untags", multiple=True, metavar="TAG", help="A tag to remove.")
@click.option(
    "--also",
    multiple=True,
    metavar="PHRASE",
    help="A phrase under which someone may look for it; repeat it for all of them. They replace the earlier ones.",
)
@click.option("--no-also", is_flag=True, help="Let it have no such phrases.")
@click.option("--category", type=CATEGORIES, metavar="NAME", help=f"One of {NAMES}.")
@click.option("--importance", type=click.FloatRange(0, 1), help="From 0 to 1.")
@click.option(
    "--expires", "expires_at", callback=read_ahead, metavar="WHEN", help="Hide it after 30d, 12h, or on 2026-12-01."
)
@click.option("--no-expiry", is_flag=True, help="Never hide it.")
@click.option("--reason", help="Reason, kept in the history.")
@click.pass_obj
def update(
    session: CommandSession,
    /,
    *,
    id: str,
    content: str | None,
    tags: tuple[str, ...],
    untags: tuple[str, ...],
    also: tuple[str, ...],
    no_also: bool,
    no_expiry: bool,
    reason: str | None,
    **given: Any,
) -> None:
    """Update a memory; the earlier version stays in the history.

    New phrases alone make no version; `undo` takes them back.

    If the fact itself has changed, store the new one and `supersede` the old: then both can be found.
    """
    if given["expires_at"] is not None and no_expiry:
        raise click.UsageError("--expires and --no-expiry cannot be combined.")
    fields = {name: value for name, value in given.items() if value is not None}
    if no_expiry:
        fields["expires_at"] = None
    if also and no_also:
        raise click.UsageError("--also and --no-also cannot be combined.")
    if also or no_also:
        fields["also"] = also
    if content is not None:
        fields["content"] = given_text(content)
    if not fields and not tags and not untags:
        raise click.UsageError("Nothing to update: pass --content, --tag, --also, --importance … (see --help).")

    retag = TagChange(add=tags, remove=untags) if tags or untags else None
    with session.engine(meaning="content" in fields or "also" in fields, known_space=True) as engine:
        memory = engine.revise(resolve_id(engine, id, session), tag_change=retag, reason=reason, **fields).memory
        same = engine.conflicts.same_as(memory.id) if content is not None else {}
    show(memory, f"{safe(memory.id)} is now at version {memory.version}.", session)
    tell_flags(memory, session)
    tell_same(same, session)
