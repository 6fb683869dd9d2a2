"""`scrubjay undo`"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from scrubjay.cli.command import Command
from scrubjay.cli.commands.forget import BULK, undo_bulk
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import clip_text, note, safe, show, tell_same
from scrubjay.cli.session import CommandSession
from scrubjay.values.memory import Undone


@click.command(
    cls=Command,
    examples="""
    scrubjay undo
    scrubjay undo mem_4x1k9c0d2m7q
    scrubjay undo @1
    scrubjay undo bulk_7g2h4j6k8m0n
    """,
)
@click.argument("id", required=False)
@click.pass_obj
def undo(session: CommandSession, id: str | None) -> None:
    """Take back the last change to a memory.

    That it was forgotten, outdated by another, settled with another as both true, or updated; its history loses
    nothing. Once more takes back the change before. The id that `scrubjay forget` gave for many memories brings all
    of them back.

    Without an ID, whatever you or an agent of yours did last; a memory that was just stored is forgotten.

    `scrubjay history` shows earlier versions and restores any of them.
    """
    if id is None:
        return undo_last(session)
    if id.startswith(BULK):
        return undo_bulk(session, id)
    undo_change(session, id)


def undo_change(session: CommandSession, id: str) -> None:
    with session.engine(known_space=True) as engine:  # an earlier text is embedded again
        done = engine.curation.undo(resolve_id(engine, id, session))
        same = engine.conflicts.same_as(done.memory.id)
    tell_undone(done, same, session)


def tell_undone(done: Undone, same: Mapping[str, Sequence[str]], session: CommandSession) -> None:
    value = {"memory": done.memory, "undone": done.what, "other": done.other, "changed": list(done.fields)}
    show(value, safe(sentence(done)), session)
    tell_same(same, session)


def undo_last(session: CommandSession) -> None:
    """What this user did last, through whichever program."""
    with session.engine(known_space=True) as engine:
        last = engine.curation.last_change()
        deed = engine.curation.bulk_operation_of(last)
        done = engine.curation.undo_last() if deed is None else None
        same = engine.conflicts.same_as(done.memory.id) if done is not None else {}
    if deed is not None:
        return undo_bulk(session, deed)
    assert done is not None
    tell_undone(done, same, session)
    if done.what == "stored":
        note(f"It said: {clip_text(done.memory.content)}", session)


def sentence(done: Undone) -> str:
    memory, newer = done.memory, done.memory.superseded_by
    if done.what == "stored":
        return f"{memory.id} is forgotten."
    if done.what == "forgotten":
        return f"{memory.id} is back" + (f", but outdated by {newer}." if newer else ".")
    if done.what == "superseded":
        still = f"still outdated by {newer}" if newer else "current again"
        return f"{memory.id} is no longer outdated by {done.other}: it is {still}."
    if done.what == "settled":
        return f"{memory.id} and {done.other} are no longer settled as both true."
    return (
        f"{memory.id} is as it was before its last update ({', '.join(done.fields)}); now at version {memory.version}."
    )
