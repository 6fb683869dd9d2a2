"""`scrubjay edit`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import note, safe, show, tell_flags, tell_same
from scrubjay.cli.session import CommandSession
from scrubjay.errors import InvalidInput


@click.command(
    cls=Command,
    examples="""
    scrubjay edit mem_4x1k9c0d2m7q
    EDITOR="code --wait" scrubjay edit @1 --reason "asked again"
    """,
)
@click.argument("id")
@click.option("--reason", help="Reason, kept in the history.")
@click.pass_obj
def edit(session: CommandSession, id: str, reason: str | None) -> None:
    """Edit a memory's text in your editor; the earlier version stays in the history.

    VISUAL or EDITOR names the editor. A text that is unchanged or empty changes nothing, and one that was changed
    elsewhere meanwhile is not overwritten.
    """
    with session.engine(meaning=False, known_space=True) as engine:
        memory = engine.get(resolve_id(engine, id, session))
    content = edit_text(memory.content)
    if content.strip() in ("", memory.content.strip()):
        note("Nothing was changed.", session)
        return
    try:
        with session.engine() as engine:
            changed = engine.revise(memory.id, reason=reason, expected_version=memory.version, content=content).memory
            same = engine.conflicts.same_as(changed.id)
    except Exception:
        tell_unsaved(content)
        raise
    show(changed, f"{safe(changed.id)} is now at version {changed.version}.", session)
    tell_flags(changed, session)
    tell_same(same, session)


def edit_text(text: str) -> str:
    """What the user's editor makes of it.

    :raises InvalidInput: if that is not UTF-8
    """
    try:
        written = click.edit(f"{text}\n", extension=".md", require_save=False)
    except UnicodeDecodeError as error:
        tell_unsaved(error.object.decode("utf-8", "replace"))
        hint = "Let it write UTF-8."
        raise InvalidInput(f"Your editor wrote a text that is not UTF-8, at byte {error.start}.", hint=hint) from None
    return (written or "").removesuffix("\n")


def tell_unsaved(text: str) -> None:
    click.echo(f"Not saved. This is what you wrote:\n{safe(text, lines=True)}", err=True)
