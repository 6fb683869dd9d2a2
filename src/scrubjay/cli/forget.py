"""`scrubjay forget`"""

from __future__ import annotations

import sys

import click

from scrubjay.cli.command import Command
from scrubjay.cli.failures import FAILED
from scrubjay.cli.output import note, print_json, safe, when
from scrubjay.cli.session import Session
from scrubjay.errors import NotFound
from scrubjay.memory import Memory


@click.command(
    cls=Command,
    examples="""
    scrubjay forget mem_4x1k9c0d2m7q --reason "was a joke"
    scrubjay forget --undo mem_4x1k9c0d2m7q
    scrubjay forget --hard --yes mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    """,
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--hard", is_flag=True, help="Erase for good, with history, words and vectors.")
@click.option("--undo", is_flag=True, help="Bring back what was forgotten.")
@click.option("--reason", help="Why, for the history.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def forget(
    ctx: click.Context, /, *, ids: tuple[str, ...], hard: bool, undo: bool, reason: str | None, yes: bool
) -> None:
    """Forget memories: for thirty days they can be brought back.

    With --hard they are erased for good, which is asked first. Ids that are not there do not keep the others from
    being forgotten; the exit code is 3 then.
    """
    session: Session = ctx.obj
    if undo and hard:
        raise click.UsageError("--undo and --hard exclude each other.")
    ids = tuple(dict.fromkeys(ids))
    if hard and not yes and not agreed(ids):
        note("Nothing was forgotten.", session)
        ctx.exit(FAILED)
    done: list[Memory] = []
    missing: list[str] = []
    with session.engine(meaning=False) as engine:
        for one in ids:
            try:
                done.append(engine.recover(one) if undo else engine.forget(one, hard=hard, reason=reason).memory)
            except NotFound:
                missing.append(one)
    if session.as_json:
        from scrubjay.engine.values import plain

        print_json(plain(done))
    for memory in () if session.as_json else done:
        click.echo(sentence(memory, hard=hard, undo=undo))
    if missing:
        raise NotFound(f"Not found: {', '.join(missing)}.", hint="`scrubjay list --deleted` shows what is forgotten.")


def agreed(ids: tuple[str, ...]) -> bool:
    """Ask at a terminal; where nobody can be asked, refuse."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("--hard cannot be undone. Nobody can be asked here, so give --yes too.")
    what = "1 memory" if len(ids) == 1 else f"{len(ids)} memories"
    return click.confirm(f"Erase {what} for good?", err=True)


def sentence(memory: Memory, *, hard: bool, undo: bool) -> str:
    if undo:
        return f"{safe(memory.id)} is back."
    if hard:
        return f"{safe(memory.id)} is erased."
    until = when(memory.recoverable_until)
    return f"{safe(memory.id)} is forgotten. Until {until}: scrubjay forget --undo {safe(memory.id)}"
