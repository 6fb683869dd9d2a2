"""`scrubjay forget`"""

from __future__ import annotations

import sys
from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.failures import FAILED
from scrubjay.cli.filters import chosen, filter_options
from scrubjay.cli.output import counted, note, print_json, print_table, safe, when
from scrubjay.cli.session import Session
from scrubjay.errors import NotFound
from scrubjay.values.memory import Memory


@click.command(
    cls=Command,
    examples="""
    scrubjay forget mem_4x1k9c0d2m7q --reason "was a joke"
    scrubjay forget --undo mem_4x1k9c0d2m7q
    scrubjay forget --hard --yes mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    scrubjay forget --client evil-agent --since 7d --preview
    scrubjay forget --undo deed_7g2h4j6k8m0n
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--hard", is_flag=True, help="Erase for good, with history, words and vectors.")
@click.option("--undo", is_flag=True, help="Bring back what was forgotten, one memory or a whole deed.")
@click.option("--preview", is_flag=True, help="Only show what the filters name.")
@click.option("--reason", help="Why, for the history.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@filter_options
@click.pass_context
def forget(
    ctx: click.Context,
    /,
    *,
    ids: tuple[str, ...],
    hard: bool,
    undo: bool,
    preview: bool,
    reason: str | None,
    yes: bool,
    **filters: Any,
) -> None:
    """Forget memories: for thirty days they can be brought back.

    With --hard they are erased for good, which is asked first. Ids that are not there do not keep the others from
    being forgotten; the exit code is 3 then.

    Instead of ids, filters name many at once, such as all that one program stored: --preview shows them, and one --undo
    brings all of them back.
    """
    session: Session = ctx.obj
    if any(filters.values()):
        if ids or hard or undo:
            raise click.UsageError("Name memories by their ids or by filters, and erase or bring back by ids only.")
        return forget_many(ctx, filters, preview=preview, reason=reason, yes=yes)
    if not ids:
        raise click.UsageError("Say which memories: ids, or filters such as --client.")
    if undo and ids[0].startswith("deed_"):
        return undo_deed(session, ids[0])
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
        print_json(done)
    for memory in () if session.as_json else done:
        click.echo(sentence(memory, hard=hard, undo=undo))
    if missing:
        raise NotFound(f"Not found: {', '.join(missing)}.", hint="`scrubjay list --deleted` shows what is forgotten.")


def forget_many(ctx: click.Context, filters: dict[str, Any], *, preview: bool, reason: str | None, yes: bool) -> None:
    """Everything that the filters name, as one deed; shown and asked first."""
    session: Session = ctx.obj
    which = chosen(**filters)
    with session.engine(meaning=False) as engine:
        named = engine.bulk.preview(which)
        if preview:
            if session.as_json:
                return print_json(named)
            rows = [(one.id, when(one.created_at), one.provenance.client, one.text) for one in named.memories]
            print_table(("id", "stored", "came from", "memory"), rows)
            return note(f"{counted(named.total, 'memory', 'memories')}.", session)
        if not yes and not agreed_to(named.total):
            note("Nothing was forgotten.", session)
            ctx.exit(FAILED)
        done = engine.bulk.forget_all(which, reason=reason)
    if session.as_json:
        print_json({"deed": done.deed, "forgotten": done.count})
    else:
        forgotten = counted(done.count, "memory is", "memories are")
        click.echo(f"{forgotten} forgotten. For thirty days: scrubjay forget --undo {done.deed}")


def undo_deed(session: Session, deed: str) -> None:
    with session.engine(meaning=False) as engine:
        done = engine.bulk.undo(deed)
        count = done.count
        while done.left:
            done = engine.bulk.undo(deed)
            count += done.count
    if session.as_json:
        print_json({"deed": deed, "recovered": count})
    else:
        click.echo(f"{counted(count, 'memory is', 'memories are')} back.")


def agreed_to(count: int) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here, so look with --preview and then give --yes.")
    return click.confirm(f"Forget {counted(count, 'memory', 'memories')}?", err=True)


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
