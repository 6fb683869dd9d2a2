"""`scrubjay history`"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import resolve_id
from scrubjay.cli.output import Cell, print_json, print_table, safe, tell_same
from scrubjay.cli.session import CommandSession
from scrubjay.values.memory import FormerPhrases, Memory, Version

TOLD = (
    "content", "title", "tags", "category", "importance", "confidence", "access_level", "expires_at", "metadata",
    "status", "superseded_by", "supersedes", "valid_from", "valid_until", "verified_at", "path", "also",
)  # fmt: skip
NAMES = ("supersedes", "superseded_by")  # of other memories


@click.command(
    cls=Command,
    examples="""
    scrubjay history mem_4x1k9c0d2m7q
    scrubjay history mem_4x1k9c0d2m7q --restore 2
    """,
)
@click.argument("id")
@click.option("--restore", type=click.IntRange(1), metavar="VERSION", help="Make this version the current one again.")
@click.pass_obj
def history(session: CommandSession, id: str, restore: int | None) -> None:
    """Show a memory's earlier versions, or restore one.

    Newest first. Restoring loses nothing: the current version joins the history.
    """
    with session.engine(meaning=restore is not None, known_space=True) as engine:
        named = resolve_id(engine, id, session)
        memory = engine.get(named, deleted=True) if restore is None else engine.restore_version(named, restore)
        former, phrases = engine.history(memory.id), engine.curation.former_phrases(memory.id)
        same = {} if restore is None else engine.conflicts.same_as(memory.id)
    if session.as_json:
        print_json({"current": memory, "former": list(former), "phrases": list(phrases)})
    elif restore is not None:
        click.echo(f"{safe(memory.id)} restored to version {restore}; it is now at version {memory.version}.")
        tell_same(same, session)
    else:
        print_table(("version", "since", "changed", "by", "reason", "memory"), list(rows(memory, former)))
        if phrases:
            print_table(("also until", "by", "reason", "phrases"), [row_of(one) for one in phrases])


def rows(memory: Memory, former: Sequence[Version]) -> Iterator[tuple[Cell, ...]]:
    """One per version, newest first. A change's reason is shown with the version that it replaced."""
    states = [memory, *(version.memory for version in former)]
    for state, before in zip(states, [*former, None], strict=True):
        yield (
            str(state.version),
            state.updated_at,
            "stored" if before is None else ", ".join(changed_fields(before.memory, state)),
            state.context.user_id if before is None else before.replaced_by,
            (before.reason or "") if before else "",
            state.text,
        )


def row_of(one: FormerPhrases) -> tuple[Cell, ...]:
    return (one.replaced_at, one.replaced_by, one.reason or "", "; ".join(one.also) or "none")


def changed_fields(before: Memory, after: Memory) -> list[str]:
    """The fields that differ; of those that name another memory, which one."""
    names = [name for name in TOLD if getattr(before, name) != getattr(after, name)]
    return [f"{name} {other}" if name in NAMES and (other := getattr(after, name)) else name for name in names]
