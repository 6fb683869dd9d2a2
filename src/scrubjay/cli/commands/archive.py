"""`scrubjay archive`

`--undo` restores, as with `forget`: `scrubjay restore` is for backups.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.durations import read_since, span
from scrubjay.cli.failures import FAILED
from scrubjay.cli.filters import CATEGORIES, NAMES
from scrubjay.cli.ids import resolve_ids
from scrubjay.cli.output import note, print_json, show_table, tell_same
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.engine.archive.archiving import Criteria, Terms
from scrubjay.engine.archive.cold_storage import Place
from scrubjay.values.memory import Category, Tier
from scrubjay.wiring import archives_in_store

if TYPE_CHECKING:
    from scrubjay.engine.archive.archiving import Archived
    from scrubjay.engine.archive.restoring import Restored

TIERS = click.Choice([tier.value for tier in Tier])


@click.command(
    cls=Command,
    examples="""
    scrubjay archive mem_4x1k9c0d2m7q
    scrubjay archive --inactive 90d --below 0.3 --category event --dry-run
    scrubjay archive --before 2026-01-01 --tier glacier
    scrubjay archive --undo mem_4x1k9c0d2m7q
    scrubjay archive --to database
    scrubjay archive --accept-folder
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option("--inactive", metavar="SPAN", help="Memories not returned for this long: 90d, 1y.")
@click.option("--below", type=click.FloatRange(0, 1), metavar="SHARE", help="Memories less important than this.")
@click.option(
    "--category",
    "categories",
    multiple=True,
    type=CATEGORIES,
    metavar="NAME",
    help=f"Memories of this category: {NAMES}.",
)
@click.option("--before", callback=read_since, metavar="WHEN", help="Memories stored before this: 1y, 2026-01-01.")
@click.option(
    "--tier", type=TIERS, default="cold", show_default=True, help="Storage tier; see docs/explanation/archive.md."
)
@click.option("--keep-vectors", is_flag=True, help="Keep vectors, so that they are still found by meaning.")
@click.option("--reason", help="Reason, kept in the history.")
@click.option("--dry-run", is_flag=True, help="Only show what would be archived.")
@click.option("--undo", is_flag=True, help="Restore archived or forgotten memories.")
@click.option(
    "--to", type=click.Choice(["database", "folder"]), help="Move everything in glacier and deep_archive there."
)
@click.option("--accept-folder", is_flag=True, help="Accept the archive folder as the right one, whatever it contains.")
@click.pass_obj
def archive(
    session: CommandSession,
    /,
    *,
    ids: tuple[str, ...],
    inactive: str | None,
    below: float | None,
    categories: tuple[str, ...],
    before: datetime | None,
    tier: str,
    keep_vectors: bool,
    reason: str | None,
    dry_run: bool,
    undo: bool,
    to: str | None,
    accept_folder: bool,
) -> None:
    """Move memories to cold storage, or restore them.

    Give ids, or select by criteria, all of which must match. Searches leave archived memories out unless asked.
    """
    wanted = bool(inactive or below is not None or categories or before)
    if accept_folder or to:
        if any((ids, wanted, undo, dry_run, accept_folder and to)):
            raise click.UsageError(
                "--to and --accept-folder apply to all archived memories and cannot be combined with anything."
            )
        return accept(session) if to is None else move(session, to)
    if bool(ids) == wanted:
        raise click.UsageError("Give ids, or select memories with --inactive, --below, --category or --before.")
    if undo and (wanted or dry_run):
        raise click.UsageError("--undo takes only ids.")

    terms = Terms(tier=Tier(tier), keep_vectors=keep_vectors, reason=reason)
    with (
        session.engine(meaning=undo, known_space=True) as engine,
        progress("Archiving", shown=not session.as_json) as report,
    ):
        cold = engine.bound_to(progress=lambda done, total, _: report(done, total)).cold_storage
        ids = resolve_ids(engine, ids, session)
        if undo:
            done = cold.restore(ids, reason=reason)
            show_restored(done, session)
            tell_same(engine.conflicts.same_as(*(one.memory for one in done.memories)), session)
            if done.left_away:
                raise SystemExit(FAILED)
        elif ids:
            show_archived(cold.archive(ids, terms, dry_run=dry_run), session, dry_run=dry_run)
        else:
            criteria = read_criteria(inactive, below, categories, before)
            show_archived(cold.archive_matching(criteria, terms, dry_run=dry_run), session, dry_run=dry_run)


def accept(session: CommandSession) -> None:
    """A folder that was moved, restored or abandoned is used again only when its owner says so."""
    with session.engine(meaning=False, known_space=True) as engine:
        accepted = engine.cold_storage.accept_folder()
    if session.as_json:
        print_json({"tiers": {str(tier): {"holds_most": there} for tier, there in accepted.items()}})
        return
    for tier, there in accepted.items():
        if not there:
            click.echo(f"{tier}: most archived memories are missing from this folder and cannot be restored from it.")
    note("Archive folder accepted.", session)


def move(session: CommandSession, to: str) -> None:
    """Interrupted at any point, it resumes when run again."""
    with (
        session.engine(meaning=False, known_space=True) as engine,
        progress("Moving", shown=not session.as_json) as report,
    ):
        moved = engine.bound_to(progress=lambda done, total, _: report(done, total)).cold_storage.move(Place(to))
    if session.as_json:
        print_json(moved)
    for name in () if session.as_json else moved.damaged:
        click.echo(f"{name} is damaged and was not moved.")
    note(f"{moved.memories:,} moved, {moved.bytes:,} bytes.", session)
    if moved.busy:
        note(f"{len(moved.busy):,} are in use by other processes: run this again.", session)
    if archives_in_store(session.settings()) is not (to == "database"):
        place = "database" if to == "database" else "the folder's full path"
        note(f"New archives still go elsewhere: set SCRUBJAY_ARCHIVE to {place}.", session)
    if moved.damaged or moved.busy:
        raise SystemExit(FAILED)


def read_criteria(
    inactive: str | None, below: float | None, categories: tuple[str, ...], before: datetime | None
) -> Criteria:
    idle = None if inactive is None else span(inactive)
    if inactive is not None and (idle is None or idle.days < 1):
        raise click.UsageError("--inactive must be a duration in days, weeks or years: 90d, 6w, 1y.")
    return Criteria(
        inactive_days=None if idle is None else idle.days,
        below_importance=below,
        categories=frozenset(map(Category, categories)) or None,
        before=before,
    )


def show_archived(done: Archived, session: CommandSession, *, dry_run: bool) -> None:
    rows = [(one.memory, one.archive or "", f"{one.hot_bytes:,}", f"{one.packed_bytes:,}") for one in done.memories]
    show_table(done, ("memory", "archive", "bytes before", "packed"), rows, session)
    verb = "would be archived" if dry_run else "archived"
    note(f"{len(done.memories):,} {verb}, {done.saved_bytes:,} bytes less." if rows else "Nothing matches.", session)


def show_restored(done: Restored, session: CommandSession) -> None:
    if session.as_json:
        print_json(done)
        return
    for one in done.memories:
        click.echo(f"{one.memory} restored.")
    for damaged in done.left_away:
        click.echo(f"{damaged.memory} was not restored: {damaged.why}")
