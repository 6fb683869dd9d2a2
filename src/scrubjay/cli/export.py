"""`scrubjay export`"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from scrubjay.cli.command import Command
from scrubjay.cli.filters import ALL_STATES
from scrubjay.cli.output import note, print_json, safe
from scrubjay.cli.progress import progress
from scrubjay.cli.session import Session
from scrubjay.memory import Filter

Write = Callable[[bytes], object]


@click.command(
    cls=Command,
    examples="""
    scrubjay export memories.jsonl
    scrubjay export --space work | gzip > work.jsonl.gz
    """,
)
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@click.pass_obj
def export(session: Session, file: str) -> None:
    """Write every memory of a space as lines of JSON.

    With what is outdated, expired, archived or forgotten, and with the links between them; former states stay behind.
    FILE appears when it is complete, or not at all; without one the lines go to standard output.
    """
    counts = {"scrubjay": 0, "memory": 0, "link": 0}
    with session.engine(meaning=False) as engine, destination(file) as write:
        total = engine.list(Filter(states=ALL_STATES, expired=None), limit=1, counted=True).total
        with progress("Exporting", shown=not session.as_json, total=total) as report:
            for line in engine.export():
                write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                counts[line["type"]] += 1
                report(counts["memory"], None)
    if file == "-":
        return
    if session.as_json:
        print_json({"file": os.path.abspath(file), "memories": counts["memory"], "links": counts["link"]})
    else:
        note(f"{counts['memory']:,} memories and {counts['link']:,} links in {safe(file)}.", session)


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
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
            try:
                yield draft.write
                draft.flush()
                os.fsync(draft.fileno())
                os.replace(draft.name, path)
            except BaseException:
                os.unlink(draft.name)
                raise
