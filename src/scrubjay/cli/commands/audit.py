"""`scrubjay audit`"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.durations import read_since, read_until
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import note, print_json, print_table
from scrubjay.cli.session import CommandSession
from scrubjay.values.callers import ActFilter


@click.command(
    cls=Command,
    without=("--space",),
    meant={"--space": "--in"},
    examples="""
    scrubjay audit --since 7d
    scrubjay audit --user alice --action forgotten
    scrubjay audit --memory mem_4x1k9c0d2m7q
    scrubjay audit --shown mem_4x1k9c0d2m7q
    """,
)
@click.option("--user", help="Only what this user did.")
@click.option("--action", help="Only this action: stored, updated, forgotten, credential created …")
@click.option("--client", help="Only what came through this program.")
@click.option("--memory", metavar="ID", help="Only what happened to this memory.")
@click.option("--shown", metavar="ID", help="List who was shown this memory, instead of who did what.")
@click.option("--in", "spaces", multiple=True, metavar="SPACE", help="Only in this space; repeat for several.")
@click.option("--since", callback=read_since, metavar="WHEN", help="Only since then: 7d, 2026-12-01 …")
@click.option("--until", callback=read_until, metavar="WHEN", help="Only until then.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, help="Maximum number of lines. Default: 50.")
@click.pass_obj
def audit(
    session: CommandSession, /, *, shown: str | None, spaces: tuple[str, ...], limit: int, **filters: Any
) -> None:
    """Show who did what, newest first.

    Changes to memories in every space, and changes to permissions. Texts are never included. With --shown: who
    received a memory, for when it turns out to be wrong or poisoned.
    """
    if shown is not None:
        return show_recalls(session, shown, limit)

    wanted = ActFilter(**filters, spaces=frozenset(spaces) or None)
    with session.engine(meaning=False) as engine:
        engine.known_spaces.check(spaces)
        if wanted.memory is not None:
            wanted = replace(wanted, memory=resolve_id(engine, wanted.memory, session))
        acts = engine.callers.audit(wanted, limit=limit)
    if session.as_json:
        print_json(list(acts))
    elif acts:
        rows = [
            (
                act.at,
                act.user,
                act.action,
                act.memory or act.subject or "",
                act.space or "",
                f"{act.client} ({act.transport})" if act.client else "",
                act.reason or "",
                f"{act.credential} by {act.credential_by}" if act.credential_by else act.credential or "",
            )
            for act in acts
        ]
        print_table(("when", "user", "action", "what", "space", "through", "reason", "credential"), rows)
    else:
        note("No matching entries.", session)


def show_recalls(session: CommandSession, memory: str, limit: int) -> None:
    with session.engine(meaning=False) as engine:
        recalls = engine.curation.shown_to(resolve_id(engine, memory, session), limit=limit)
    if session.as_json:
        print_json(list(recalls))
    elif recalls:
        rows = [(one.at, one.user, one.client, one.space, str(len(one.memories))) for one in recalls]
        print_table(("when", "user", "through", "space", "memories"), rows)
    else:
        note("Not shown to anyone, as far back as the log goes.", session)
