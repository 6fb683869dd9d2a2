"""A progress bar on standard error, when that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int | None], None]
"""Called with what is done so far, and with the total, if known."""


@contextmanager
def progress(title: str, *, shown: bool, total: int | None = None, in_bytes: bool = False) -> Iterator[Report]:
    """A bar while the block runs; nothing for pipes and log files."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    counts = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done, known: bar.update(task, completed=done, total=total if known is None else known)
