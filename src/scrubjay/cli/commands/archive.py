"""`scrubjay archive`

Bringing back is `--undo`, as it is with `forget`: `scrubjay restore` is for backups.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.durations import read_since, span
from scrubjay.cli.failures import FAILED
from scrubjay.cli.filters import CATEGORIES, NAMES
from scrubjay.cli.output import note, print_json, print_table
from scrubjay.cli.progress import progress
from scrubjay.cli.session import Session
from scrubjay.values.memory import Category, Tier

if TYPE_CHECKING:
    from scrubjay.engine.archive.archiving import Archived, Criteria
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
@click.option("--inactive", metavar="SPAN", help="What was not handed out for so long: 90d, 1y.")
@click.option("--below", type=click.FloatRange(0, 1), metavar="SHARE", help="What is less important than this.")
@click.option(
    "--category", "categories", multiple=True, type=CATEGORIES, metavar="NAME", help=f"What is of this one: {NAMES}."
)
@click.option("--before", callback=read_since, metavar="WHEN", help="What was stored before then: 1y, 2026-01-01.")
@click.option("--tier", type=TIERS, default="cold", show_default=True, help="Where to: docs/explanation/archive.md.")
@click.option("--keep-vectors", is_flag=True, help="So that it is still found by meaning.")
@click.option("--reason", help="Why, for the history.")
@click.option("--dry-run", is_flag=True, help="Only show what would be archived.")
@click.option("--undo", is_flag=True, help="Bring archived or forgotten memories back.")
@click.option("--to", type=click.Choice(["database", "folder"]), help="Move all of glacier and deep_archive there.")
@click.option("--accept-folder", is_flag=True, help="Take the archive folder for the right one, whatever it holds.")
@click.pass_obj
def archive(
    session: Session,
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
    """Put memories into cold storage, or bring them back.

    Name them, or say which: all that you say must hold. Archived memories are not found unless asked for.
    """
    wanted = bool(inactive or below is not None or categories or before)
    if accept_folder or to:
        if ids or wanted or undo or dry_run or (accept_folder and to):
            raise click.UsageError("--to and --accept-folder are about all archived memories, and go alone.")
        accept(session) if to is None else move(session, to)
        return
    if bool(ids) == wanted:
        raise click.UsageError("Name memories, or say which with --inactive, --below, --category and --before.")
    if undo and (wanted or dry_run):
        raise click.UsageError("--undo takes ids alone.")
    from scrubjay.engine.archive.archiving import Terms

    terms = Terms(tier=Tier(tier), keep_vectors=keep_vectors, reason=reason)
    with (
        session.engine(meaning=undo) as engine,
        progress("Archiving", shown=not session.as_json) as report,
    ):
        cold = engine.bound_to(progress=lambda done, total, _: report(done, total)).cold_storage
        if undo:
            show_restored(cold.restore(ids, reason=reason), session)
        elif ids:
            show_archived(cold.archive(ids, terms, dry_run=dry_run), session, dry_run=dry_run)
        else:
            criteria = described(inactive, below, categories, before)
            show_archived(cold.archive_matching(criteria, terms, dry_run=dry_run), session, dry_run=dry_run)


def accept(session: Session) -> None:
    """A folder that was moved, restored or given up is used again only when its owner says so."""
    with session.engine(meaning=False) as engine:
        accepted = engine.cold_storage.accept_folder()
    if session.as_json:
        print_json({"tiers": {str(tier): {"holds_most": there} for tier, there in accepted.items()}})
        return
    for tier, there in accepted.items():
        if not there:
            click.echo(f"{tier}: most of what was archived is not there; it cannot be restored from this folder.")
    note("The archive folder is accepted.", session)


def move(session: Session, to: str) -> None:
    """Ended at any point, it goes on when it is started again."""
    from scrubjay.engine.archive.moving import Place
    from scrubjay.wiring import archives_in_store

    with (
        session.engine(meaning=False) as engine,
        progress("Moving", shown=not session.as_json) as report,
    ):
        moved = engine.bound_to(progress=lambda done, total, _: report(done, total)).cold_storage.move(Place(to))
    if session.as_json:
        print_json(moved)
    for name in () if session.as_json else moved.damaged:
        click.echo(f"{name} is damaged and stays where it is.")
    note(f"{moved.memories:,} moved, {moved.bytes:,} bytes.", session)
    if moved.busy:
        note(f"{len(moved.busy):,} are being worked on by others: run this again.", session)
    if archives_in_store(session.settings()) is not (to == "database"):
        place = "database" if to == "database" else "the folder's full path"
        note(f"New ones still go elsewhere: set SCRUBJAY_ARCHIVE to {place}.", session)
    if moved.damaged or moved.busy:
        raise SystemExit(FAILED)


def described(
    inactive: str | None, below: float | None, categories: tuple[str, ...], before: datetime | None
) -> Criteria:
    from scrubjay.engine.archive.archiving import Criteria

    idle = None if inactive is None else span(inactive)
    if inactive is not None and (idle is None or idle.days < 1):
        raise click.UsageError("--inactive is a span of days: 90d, 6w, 1y.")
    return Criteria(
        inactive_days=None if idle is None else idle.days,
        below_importance=below,
        categories=frozenset(map(Category, categories)) or None,
        before=before,
    )


def show_archived(done: Archived, session: Session, *, dry_run: bool) -> None:
    if session.as_json:
        print_json(done)
        return
    rows = [(one.memory, one.archive or "", f"{one.hot_bytes:,}", f"{one.packed_bytes:,}") for one in done.memories]
    print_table(("memory", "archive", "bytes before", "packed"), rows)
    verb = "would be archived" if dry_run else "archived"
    note(f"{len(done.memories):,} {verb}, {done.saved_bytes:,} bytes less." if rows else "Nothing fits.", session)


def show_restored(done: Restored, session: Session) -> None:
    if session.as_json:
        print_json(done)
        return
    for one in done.memories:
        click.echo(f"{one.memory} is back.")
