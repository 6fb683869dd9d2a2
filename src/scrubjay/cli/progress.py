"""A progress bar on standard error, when that is a terminal: how far, how many, how fast, and what takes the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

NARROW = 70  # columns below which there is no room for a bar


SPINNER_SECONDS = 0.5  # after which a person sees what the command waits for


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A spinner on standard error while the block takes long, if that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()

    def spin() -> None:
        if not ended.wait(SPINNER_SECONDS):
            from scrubjay.cli.tables import console

            with console(stderr=True).status(title):
                ended.wait()

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class Report(Protocol):
    """Called with what is done so far and with the total, if known; `count`, if what is done is not what is counted;
    with another `title`, something else begins."""

    def __call__(self, done: int, total: int | None, count: int | None = None, title: str | None = None) -> None: ...


@contextmanager
def progress(
    title: str,
    *,
    shown: bool,
    total: int | None = None,
    in_bytes: bool = False,
    unit: str = "",
    embedding: Callable[[], float] | None = None,
) -> Iterator[Report]:
    """A bar while the block runs; nothing for pipes and log files. `embedding` says how many seconds that took."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield ignore_progress
        return
    from rich.filesize import decimal
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    from scrubjay.cli.tables import console

    terminal, begun = console(stderr=True), monotonic()
    wide = terminal.width >= NARROW

    class Bytes(DownloadColumn):
        """Says nothing of a total that is not known, as while another program downloads."""

        def render(self, task: Task) -> Text:
            so_far = decimal(int(task.completed)) if task.completed else ""
            return Text(so_far) if task.total is None else super().render(task)

    whole, last = Column(no_wrap=True), Column(no_wrap=True)  # where room is short, the bar gives way
    counts = Bytes(table_column=whole) if in_bytes else MofNCompleteColumn(table_column=whole)
    columns = (TextColumn("{task.description}"), *((BarColumn(),) if wide else ()), counts)
    more = (TextColumn("{task.fields[rate]}"), *((TimeRemainingColumn(table_column=last),) if wide else ()))
    with Progress(*columns, *more, console=terminal, transient=True) as bar:
        task, expected = bar.add_task(title, total=total, rate=""), total

        def report(done: int, total: int | None, count: int | None = None, title: str | None = None) -> None:
            nonlocal task, begun
            if title is not None and title != bar.tasks[0].description:
                bar.refresh()  # how the one before ended
                bar.remove_task(task)
                task, begun = bar.add_task(title, total=expected, rate=""), monotonic()
            seconds = monotonic() - begun
            rate = progress_sentence(done if count is None else count, unit, seconds, embedding() if embedding else 0.0)
            bar.update(task, completed=done, total=expected if total is None else total, rate=rate if unit else "")

        yield report


def ignore_progress(done: int, total: int | None, count: int | None = None, title: str | None = None) -> None:
    """No one is looking."""


def progress_sentence(count: int, unit: str, seconds: float, embedding: float) -> str:
    """1,200 lines, 85/s, mostly embedding (92 %)"""
    rate = f", {count / seconds:,.0f}/s" if seconds >= 1 else ""
    slow = f", mostly embedding ({embedding / seconds:.0%})" if seconds >= 2 and embedding > seconds / 2 else ""
    return f"{count:,} {unit}{rate}{slow}"
