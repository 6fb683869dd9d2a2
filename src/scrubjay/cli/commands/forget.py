"""`scrubjay forget`"""

from __future__ import annotations

from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.failures import FAILED
from scrubjay.cli.filters import filter_options, read_filter
from scrubjay.cli.ids import remember_list, resolve_ids
from scrubjay.cli.output import confirm, count_of, note, print_json, print_listed, safe, show, tell_same, when
from scrubjay.cli.session import CommandSession
from scrubjay.errors import NotFound
from scrubjay.values.memory import Memory

BULK = ("bulk_", "deed_")  # how ids of bulk operations begin, those of earlier versions too


@click.command(
    cls=Command,
    examples="""
    scrubjay forget mem_4x1k9c0d2m7q --reason "was a joke"
    scrubjay forget --undo mem_4x1k9c0d2m7q
    scrubjay forget --hard --yes mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    scrubjay forget --client evil-agent --since 7d --preview
    scrubjay forget --undo bulk_7g2h4j6k8m0n
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--hard", is_flag=True, help="Erase for good, with history, words and vectors.")
@click.option("--undo", is_flag=True, help="Restore what was forgotten: a memory, or a whole bulk operation.")
@click.option("--preview", is_flag=True, help="Only show what the filters match.")
@click.option("--reason", help="Reason, kept in the history.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
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
    """Forget memories; they can be restored for thirty days.

    With --hard they are erased for good, after confirmation. If some ids are not found, the others are forgotten
    anyway and the exit code is 3.

    Instead of ids, filters select many at once, such as everything that one program stored: --preview shows them, and
    a single --undo restores them all.
    """
    session: CommandSession = ctx.obj
    if any(value or value is False for value in filters.values()):
        if ids or hard or undo:
            raise click.UsageError("Give either ids or filters; --hard and --undo work with ids only.")
        return forget_many(ctx, filters, preview=preview, reason=reason, yes=yes)
    if not ids:
        raise click.UsageError("Give ids, or filters such as --client.")
    if undo and ids[0].startswith(BULK):
        return undo_bulk(session, ids[0])
    if undo and hard:
        raise click.UsageError("--undo and --hard cannot be combined.")
    forget_named(ctx, tuple(dict.fromkeys(ids)), hard=hard, undo=undo, reason=reason, yes=yes)


def forget_named(
    ctx: click.Context, ids: tuple[str, ...], *, hard: bool, undo: bool, reason: str | None, yes: bool
) -> None:
    """Forget or restore those of these memories that are found, and then say which were not."""
    session: CommandSession = ctx.obj
    if hard and not yes and not confirm_erasing(ids):
        note("Nothing was forgotten.", session)
        ctx.exit(FAILED)
    done: list[Memory] = []
    missing: list[str] = []
    with session.engine(meaning=False, known_space=True) as engine:
        for one in resolve_ids(engine, ids, session):
            try:
                done.append(engine.recover(one) if undo else engine.forget(one, hard=hard, reason=reason).memory)
            except NotFound:
                missing.append(one)
        same = engine.conflicts.same_as(*(memory.id for memory in done)) if undo else {}
    if session.as_json:
        print_json(done)
    for memory in () if session.as_json else done:
        click.echo(sentence(memory, hard=hard, undo=undo))
    tell_same(same, session)
    if missing:
        raise NotFound(f"Not found: {', '.join(missing)}.", hint="`scrubjay list --deleted` shows forgotten memories.")


def forget_many(ctx: click.Context, filters: dict[str, Any], *, preview: bool, reason: str | None, yes: bool) -> None:
    """Everything that the filters match, as one bulk operation, after confirmation."""
    session: CommandSession = ctx.obj
    which = read_filter(**filters)
    with session.engine(meaning=False, known_space=True) as engine:
        named = engine.bulk.preview(which)
        if preview:
            if session.as_json:
                return print_json(named)
            remember_list([one.id for one in named.memories], session)
            rows = [(one.id, one.created_at, one.provenance.client, one.text) for one in named.memories]
            print_listed(("id", "stored", "came from", "memory"), rows)
            return note(f"{count_of(named.total, 'memory', 'memories')}.", session)
        if not yes and not confirm_forgetting(named.total):
            note("Nothing was forgotten.", session)
            ctx.exit(FAILED)
        done = engine.bulk.forget_all(which, reason=reason)
    if session.as_json:
        print_json({"deed": done.deed, "forgotten": done.count})
    else:
        forgotten = count_of(done.count, "memory", "memories")
        click.echo(f"{forgotten} forgotten. To undo within thirty days: scrubjay forget --undo {done.deed}")


def undo_bulk(session: CommandSession, deed: str) -> None:
    with session.engine(meaning=False, known_space=True) as engine:
        done = engine.bulk.undo(deed)
        count = done.count
        while done.left:
            done = engine.bulk.undo(deed)
            count += done.count
    show({"deed": deed, "recovered": count}, f"{count_of(count, 'memory', 'memories')} restored.", session)


def confirm_forgetting(count: int) -> bool:
    question = f"Forget {count_of(count, 'memory', 'memories')}?"
    return confirm(question, otherwise="Not a terminal: check with --preview, then pass --yes to confirm.")


def confirm_erasing(ids: tuple[str, ...]) -> bool:
    question = f"Erase {count_of(len(ids), 'memory', 'memories')} for good?"
    return confirm(question, otherwise="--hard cannot be undone. Not a terminal: pass --yes to confirm.")


def sentence(memory: Memory, *, hard: bool, undo: bool) -> str:
    if undo:
        return f"{safe(memory.id)} restored."
    if hard:
        return f"{safe(memory.id)} erased."
    until = when(memory.recoverable_until)
    return f"{safe(memory.id)} forgotten. To undo until {until}: scrubjay forget --undo {safe(memory.id)}"
