"""`scrubjay sync`"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from scrubjay.cli.command import Family
from scrubjay.cli.output import Cell, note, print_json, show, show_note, show_table
from scrubjay.cli.session import CommandSession
from scrubjay.dialects.native.store import conflict_body, endpoint_body
from scrubjay.engine.sync.run import Resolution, SyncRequest, SyncType
from scrubjay.machine.outgoing import without_password
from scrubjay.wiring import open_sync_keys

if TYPE_CHECKING:
    from scrubjay.engine.sync.run import Synced
    from scrubjay.stores.promises.sync import Endpoint, SyncConflict

TYPES = ("incremental", "full", "push", "pull")
RESOLUTIONS = ("newest_wins", "merge", "source_wins", "destination_wins", "manual")
KEPT = ("ours", "theirs", "newest", "merged")


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay sync add drive /mnt/drive/memories.db
    scrubjay sync run drive
    scrubjay sync conflicts
    """,
)
def sync() -> None:
    """Keep several stores in sync: a second machine, a shared drive.

    What is stored, changed, forgotten or erased on one side reaches the other. Both sides may be used meanwhile, and
    their clocks may be wrong.
    """


@sync.command(
    examples="""
    scrubjay sync add drive /mnt/drive/memories.db
    scrubjay sync add work /mnt/team/work.db --only work
    scrubjay sync add cloud https://memory.example
    """
)
@click.argument("name")
@click.argument("url", metavar="FILE")
@click.option("--only", "spaces", multiple=True, metavar="SPACE", help="Sync only this space; repeat for several.")
@click.pass_obj
def add(session: CommandSession, name: str, url: str, spaces: tuple[str, ...]) -> None:
    """Add a store to sync with: another file (created if its folder exists), a database, or another scrubjay server.

    A store that began as a copy of this one is recognised and gets its own identity. The key of another server is
    asked for, or read from standard input, and kept in a file in the home that only you can read. A key in
    SCRUBJAY_SYNC_KEY (NAME=KEY) is used instead and not kept: it must be set for every sync.
    """
    with with_stored_key(session, name, url), session.engine(meaning=False) as engine:
        added = engine.sync.add(name, url, spaces=spaces or None)
    show(shown_endpoint(added), added.name, session)


@contextmanager
def with_stored_key(session: CommandSession, name: str, url: str) -> Iterator[None]:
    """Ask for another server's key, unless the settings have it; a key that does not work is not kept."""
    keys = open_sync_keys(session.settings())
    if not url.startswith(("http://", "https://")) or keys.named(name):
        yield
        return
    known = keys.of(name, url)
    keys.keep(url, ask_for_key(name) or known)
    try:
        yield
    except BaseException:  # also Ctrl-C while connecting: a key that was never tried is not kept
        keys.keep(url, known)
        raise


def ask_for_key(name: str) -> str:
    """From a terminal without echo, or the first line of standard input; None if that is empty."""
    if sys.stdin is not None and not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    asked = f"Key for {name} (Enter to keep the known one, or for none)"
    return str(click.prompt(asked, default="", hide_input=True, show_default=False, err=True))


@sync.command("list", examples="scrubjay sync list")
@click.pass_obj
def list_endpoints(session: CommandSession) -> None:
    """List the stores to sync with."""
    with session.engine(meaning=False) as engine:
        found = engine.sync.endpoints()
    show_table(
        [shown_endpoint(one) for one in found],
        ("endpoint", "where", "spaces", "last synced"),
        [row_of(one) for one in found],
        session,
    )
    if not found:
        note("None yet. Add one with `scrubjay sync add NAME FILE`.", session)


@sync.command(examples="scrubjay sync remove drive")
@click.argument("name")
@click.pass_obj
def remove(session: CommandSession, name: str) -> None:
    """Remove a store to sync with; its memories stay on both sides."""
    with session.engine(meaning=False) as engine:
        former = [one.url for one in engine.sync.endpoints() if one.name == name]
        engine.sync.remove(name)
        kept = {one.url for one in engine.sync.endpoints()}

    keys = open_sync_keys(session.settings())
    for url in former:
        if url not in kept:
            keys.keep(url, "")
    show_note({"removed": name}, f"{name} removed.", session)


@sync.command(
    examples="""
    scrubjay sync run drive
    scrubjay sync run drive --dry-run
    scrubjay sync run drive --type pull --on-conflict manual
    """
)
@click.argument("name")
@click.option(
    "--type", "kind", type=click.Choice(TYPES), default="incremental", show_default=True, help="Kind of sync."
)
@click.option(
    "--on-conflict", type=click.Choice(RESOLUTIONS), default="newest_wins", show_default=True,
    help="Which side wins when both changed the same memory; this store is the source.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@click.pass_obj
def run(session: CommandSession, name: str, kind: str, on_conflict: str, dry_run: bool) -> None:
    """Sync with a store, in both directions unless --type says otherwise.

    When both sides changed a memory, the newer change wins by default; the other is kept in the record that `sync
    conflicts --settled` shows. An interrupted sync resumes when it is run again.
    """
    request = SyncRequest(type=SyncType(kind), destination=name, resolution=Resolution(on_conflict), dry_run=dry_run)
    with session.engine() as engine:
        done = engine.sync.run(request)
    show(done, sentence(done), session)


@sync.command(
    examples="""
    scrubjay sync conflicts
    scrubjay sync conflicts --settled
    """
)
@click.option("--settled", is_flag=True, help="Show resolved conflicts and what was kept.")
@click.pass_obj
def conflicts(session: CommandSession, settled: bool) -> None:
    """List unresolved conflicts: memories that were changed on both sides."""
    with session.engine(meaning=False) as engine:
        found = engine.sync.conflicts(settled=settled)
    rows = [
        (str(one.number), one.memory, one.endpoint, text_of(one.ours), text_of(one.theirs), one.outcome or "")
        for one in found
    ]
    show_table(
        [show_endpoint(one) for one in found], ("number", "memory", "endpoint", "ours", "theirs", "kept"), rows, session
    )
    if not found:
        note("No conflicts.", session)


@sync.command(
    examples="""
    scrubjay sync resolve 3 --keep theirs
    scrubjay sync resolve 4 --keep merged
    """
)
@click.argument("number", type=int)
@click.option("--keep", type=click.Choice(KEPT), required=True, help="Which version to keep.")
@click.pass_obj
def resolve(session: CommandSession, number: int, keep: str) -> None:
    """Resolve a conflict. The next sync passes it on to the other side."""
    with session.engine() as engine:
        memory = engine.sync.resolve(number, keep)
    show(memory, "The memory was erased." if memory is None else f"{memory.id} resolved.", session)


@sync.command("mend-clock", examples="scrubjay sync mend-clock")
@click.pass_obj
def mend_clock(session: CommandSession) -> None:
    """Reset the store's clock after a wrong one has moved it ahead: another store's, or this machine's own.

    Until then, other stores refuse to sync with it. The order of changes is kept. Run it for every store with wrong
    timestamps, then sync; what still differs counts as a conflict once.
    """
    with session.engine(meaning=False) as engine:
        mended = engine.sync.mend_clock()
    if session.as_json:
        print_json({"mended": mended})
    else:
        said = f"{mended:,} timestamp{'s' * (mended > 1)} fixed."
        note(said if mended else "The clock is not ahead; nothing to fix.", session)


def shown_endpoint(endpoint: Endpoint) -> Any:
    return endpoint_body(endpoint)


def row_of(endpoint: Endpoint) -> tuple[Cell, ...]:
    spaces = ", ".join(endpoint.spaces or ("all",))
    return (endpoint.name, without_password(endpoint.url), spaces, endpoint.synced_at)


def show_endpoint(conflict: SyncConflict) -> dict[str, Any]:
    return conflict_body(conflict)


def text_of(told: str | None) -> str:
    return "" if told is None else str(json.loads(told)["memory"]["content"])


def sentence(done: Synced) -> str:
    began = "Would be" if done.request.dry_run else "Synced"
    parts = [f"{done.created:,} created", f"{done.updated:,} updated", f"{done.deleted:,} deleted"]
    if done.conflicts:
        parts.append(f"{len(done.conflicts):,} conflicts")
    return f"{began}: {', '.join(parts)}; {done.checked:,} compared."
