"""Rows on a terminal: a table where the window is wide enough, stacked entries where it is not.

    from 100 columns    a table
    below               an entry per row: what is short on the first line, then the text, then the rest, headed;
                        ids are shortened, and any beginning that is unique can be typed

A table without texts that fits as it is stays a table. Nothing is left out for lack of room, wide letters included.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scrubjay.cli.output import Cell, Marked, clip_text, safe, when
from scrubjay.values.times import ago, utc_now

WIDE = 100  # columns
NARROWEST = 20  # columns of a text in a table
WHOLE = 24  # columns up to which a cell is not wrapped in a table: ids and times are copied
SHORT = 6  # of an id's twelve random characters
ID = re.compile(r"(mem_[0-9a-z]{12})(?![0-9a-z])")
SAYS_ITSELF = {
    "",
    "score",
    "id",
    "stored",
    "category",
    "tags",
    "state",
    "check",
    "when",
    "user",
    "action",
    "status",
    "space",
}
TEXTS = ("memory", "found", "meaning", "description", "problem")  # shown without a heading, below the first line
STATES = {
    "ok": "green", "good": "green", "completed": "green",
    "warning": "yellow", "superseded": "yellow", "expired": "yellow", "waiting": "yellow", "archived": "blue",
    "note": "blue",
    "running": "cyan", "problem": "bold red", "deleted": "red", "revoked": "red", "failed": "red",
}  # fmt: skip


def console(*, stderr: bool = False) -> Console:
    """The terminal. With NO_COLOR it gets no escape sequence at all."""
    return Console(stderr=stderr, highlight=False, color_system=None if os.environ.get("NO_COLOR") else "auto")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    terminal = console()
    used = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    names = [columns[place] for place in used]
    cells = [[style_cell(columns[place], row[place]) for place in used] for row in rows]
    widths = [
        max(cell_len(name), *(text.cell_len for text in column))
        for name, column in zip(names, zip(*cells, strict=True), strict=True)
    ]
    as_it_is = sum(widths) + 2 * len(widths) <= terminal.width and "memory" not in names
    needed = sum(width if width <= WHOLE else NARROWEST for width in widths) + 2 * len(widths)
    if as_it_is or needed <= terminal.width >= WIDE:
        terminal.print(table(names, cells, widths))
        return
    for entry in cells:
        for line in stack_row(names, entry, terminal):
            terminal.print(line)


def table(names: Sequence[str], cells: Sequence[Sequence[Text]], widths: Sequence[int]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, width in zip(names, widths, strict=True):
        least = width if width <= WHOLE else NARROWEST
        made.add_column(name, min_width=least, no_wrap=width <= WHOLE, overflow="fold")
    for row in cells:
        made.add_row(*row)
    return made


def stack_row(names: Sequence[str], cells: Sequence[Text], terminal: Console) -> Iterator[Text]:
    """One row as several lines."""
    first = [place for place in range(len(names)) if place == 0 or names[place] in SAYS_ITSELF]
    texts = [place for place in range(len(names)) if names[place] in TEXTS and place not in first]
    head = [add_heading(names[place], shorten_ids(cells[place])) for place in first if cells[place].plain]
    yield from wrap_text(Text("  ").join(head), terminal, indent=0)
    for place in texts:
        yield from wrap_text(cells[place], terminal, indent=2)
    for place in range(len(names)):
        if place not in first and place not in texts and cells[place].plain:
            label = Text(f"{names[place]}  ", style="dim")
            yield from wrap_text(label + shorten_ids(cells[place]), terminal, indent=2, hanging=4)


def add_heading(name: str, cell: Text) -> Text:
    """A bare number says nothing without its heading."""
    return Text(f"{name} ") + cell if cell.plain.isdecimal() else cell


def wrap_text(text: Text, terminal: Console, *, indent: int, hanging: int | None = None) -> Iterator[Text]:
    """The text in lines that fit, every line of it indented."""
    rest = indent if hanging is None else hanging
    lines = text.wrap(terminal, max(2, terminal.width - rest), overflow="fold", tab_size=4)
    for number, line in enumerate(lines):
        line.rstrip()
        yield Text(" " * (indent if number == 0 else rest)) + line


def print_facts(facts: Sequence[tuple[str, Cell]], room: int) -> None:
    """Names and values below each other."""
    terminal = console()
    narrow = terminal.width < 60
    for name, value in facts:
        label = Text(f"{name}  " if narrow else f"{name:<{room}}  ", style="dim")
        hanging = 2 if narrow else room + 2
        shown = f"{when(value)} ({ago(value, utc_now())})" if isinstance(value, datetime) else value
        for line in wrap_text(label + style_cell(name, shown, whole=True), terminal, indent=0, hanging=hanging):
            terminal.print(line)


def style_cell(column: str, cell: Cell, *, whole: bool = False) -> Text:
    """A cell with the colour of what it says."""
    match cell:
        case Marked():
            text = Text(clip_text(cell.text))
            for start, end in cell.spans:
                text.stylize(cell.style, start, end)
            return text
        case datetime():
            return Text(ago(cell, utc_now()), style="dim")
        case _:
            shown = safe(cell or "")
            text = Text(shown if whole else clip_text(shown), style=style_of(column, shown))
            text.highlight_regex(ID, "dim")
            return text


def style_of(column: str, text: str) -> str:
    match column:
        case "tags":
            return "cyan"
        case "score" | "likely":
            return "green" if text >= "0.60" else "yellow" if text >= "0.30" else ""
        case "" | "state" | "status":
            return STATES.get(text.partition(",")[0], "")
        case _:
            return ""


def shorten_ids(text: Text) -> Text:
    """The text with ids cut to a beginning that is practically always unique."""
    for found in reversed(list(ID.finditer(text.plain))):
        text = text[: found.start() + len("mem_") + SHORT] + text[found.end() :]
    return text
