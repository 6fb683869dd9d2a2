"""`scrubjay export`"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.filters import ALL_STATES
from scrubjay.cli.output import count_of, note, print_json, safe
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.engine.transfer import first_line, line_of
from scrubjay.errors import Conflict, InvalidInput
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from scrubjay.wiring import salvage_memories

Write = Callable[[bytes], object]


@click.command(
    cls=Command,
    examples="""
    scrubjay export memories.jsonl
    scrubjay export --space work | gzip > work.jsonl.gz
    scrubjay export --salvage rescued.jsonl
    """,
)
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--replace", is_flag=True, help="Replace FILE if it exists.")
@click.option("--salvage", is_flag=True, help="Rescue every readable memory from a damaged store.")
@click.pass_obj
def export(session: CommandSession, file: str, replace: bool, salvage: bool) -> None:
    """Write every memory of a space as JSON lines.

    Includes outdated, expired, archived and forgotten memories and the links between them, but no earlier versions.
    FILE appears when it is complete, or not at all; without one the lines go to standard output. An existing file is
    replaced only if you agree, or with --replace.

    With --salvage the file of a damaged store is read page by page, and never written: each readable page is saved
    whatever happened to the others. Exports every space, without links and archived texts.
    """
    if salvage:
        rescue(session, check_target(file, replace))
        return
    counts = {"scrubjay": 0, "memory": 0, "link": 0}
    with session.engine(meaning=False, known_space=True) as engine, destination(check_target(file, replace)) as write:
        here = engine.bound_to(only=True)
        total = here.list(Filter(states=ALL_STATES, expired=None), limit=1, counted=True).total
        with progress("Exporting", shown=not session.as_json, total=total, unit="memories") as report:
            for line in engine.transfer.export():
                write(as_line(line))
                counts[line["type"]] += 1
                report(counts["memory"], None)
    if file == "-":
        return
    if session.as_json:
        print_json({"file": os.path.abspath(file), "memories": counts["memory"], "links": counts["link"]})
    else:
        memories, links = count_of(counts["memory"], "memory", "memories"), count_of(counts["link"], "link", "links")
        note(f"{memories} and {links} of space {engine.spaces[0]} in {safe(file)}.", session)


def check_target(file: str, replace: bool) -> str:
    """:raises Conflict: if there is a file with something in it, and no one agreed to replace it"""
    path = Path(file)
    if file == "-" or replace or not path.is_file() or not path.stat().st_size:
        return file
    asked = sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
    if not asked or not click.confirm(f"{safe(file)} exists. Replace it?", err=True):
        raise Conflict(f"{file} already exists.", hint="Choose another name, or pass --replace.")
    return file


def rescue(session: CommandSession, file: str) -> None:
    saved, changed = 0, []
    with destination(file) as write:
        write(as_line(first_line(utc_now())))
        for found in salvage_memories(session.settings()):
            write(as_line(line_of(found.memory)))
            saved += 1
            changed += [] if found.sound else [found.memory.id]
    if file == "-":
        return
    if session.as_json:
        print_json({"file": os.path.abspath(file), "memories": saved, "changed": changed})
    note(f"{count_of(saved, 'memory', 'memories')} in {safe(file)}.", session)
    if changed:
        note(f"{len(changed):,} texts differ from what was stored: {', '.join(changed[:20])}", session)


def as_line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


@contextmanager
def destination(file: str) -> Iterator[Write]:
    """Where the lines go. A file gets its name only when all of them are on the disk; only its owner may read it."""
    path = Path(os.path.realpath(file))
    if file == "-":
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():  # a device or a pipe must not be replaced by a file
        with path.open("wb") as stream:
            yield stream.write
    else:
        with open_draft(path) as draft:
            try:
                yield draft.write
                draft.flush()
                os.fsync(draft.fileno())
                os.replace(draft.name, path)
            except BaseException:  # also Ctrl-C: a partial file never gets the name, and is removed
                os.unlink(draft.name)
                raise


def open_draft(path: Path) -> IO[bytes]:
    """An open file next to the one that it will become.

    :raises InvalidInput: if there can be none
    """
    try:
        return tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)
    except FileNotFoundError:
        raise InvalidInput(f"{path} cannot be written: there is no folder {path.parent}.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
