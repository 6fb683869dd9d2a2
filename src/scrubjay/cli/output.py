"""Results on standard output: tables for people, JSON for programs.

    a terminal          a table or, below 100 columns, stacked entries (tables.py); times as "3 days ago"
    a pipe or a file    a line per row, columns separated by tabs, no headings, times in full
    --json              one document, exact

Stored text is data. It may hold sequences that drive a terminal, so for people control characters are shown as
escapes, and nothing in it is read as markup. JSON has its own escapes and stays exact.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from scrubjay.lazy import json
from scrubjay.values.codec import plain
from scrubjay.values.frozen import dataclass

if TYPE_CHECKING:
    from scrubjay.cli.session import CommandSession
    from scrubjay.engine.engine import Engine
    from scrubjay.values.memory import Memory, OpenConflict

# Control characters, line separators, and marks that change the direction of text and so can disguise it.
CONTROL = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
CONTROL_BUT_LINES = CONTROL.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f")
LONG = 300  # characters of a text in a table
FLAGGED = {
    "secret": "it seems to contain a secret, which every agent that finds it will read.",
    "instruction": "it reads like instructions to a model; agents are shown it as data.",
}
BEGIN = (
    "The memory is empty. Store something with `scrubjay store TEXT`, import a list with `scrubjay import FILE`, or "
    "connect your agents with `scrubjay install`."
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A safe text with some of its letters marked, where a terminal has colours."""

    text: str
    spans: Sequence[tuple[int, int]] = ()
    style: str = "bold green"

    def __bool__(self) -> bool:
        return bool(self.text)


Cell = str | datetime | Marked | None


def safe(text: str, *, lines: bool = False) -> str:
    """The text on one line, with control characters shown as escapes; with `lines`, line ends and tabs stay as they
    are."""
    if text.isprintable():  # nearly always
        return text
    if not lines:
        text = re.sub("\r?\n", "⏎", text)
    return re.sub(CONTROL_BUT_LINES if lines else CONTROL, lambda found: ascii(found[0])[1:-1], text)


def when(moment: datetime | None) -> str:
    """A time for people, in UTC like every time that they type."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M") if moment else ""


def write_cell(cell: Cell) -> str:
    """A cell as programs read it."""
    if isinstance(cell, Marked):
        return cell.text
    return when(cell) if isinstance(cell, datetime) else safe(cell or "")


def on_terminal() -> bool:
    """Whether results go to a person."""
    return sys.stdout is not None and sys.stdout.isatty()


def print_json(value: Any) -> None:
    """One document in UTF-8, whatever the terminal's encoding; our own values by their field names."""
    write_bytes(json.dumps(plain(value), ensure_ascii=False, indent=2).encode() + b"\n")


def show(value: Any, text: object, session: CommandSession) -> None:
    """A result: a document for programs, a line for people."""
    if session.as_json:
        print_json(value)
    else:
        click.echo(text)


def show_note(value: Any, text: str, session: CommandSession) -> None:
    """What was done: a document for programs, a remark for people, who get no result."""
    if session.as_json:
        print_json(value)
    note(text, session)


def show_table(value: Any, columns: Sequence[str], rows: Sequence[Sequence[Cell]], session: CommandSession) -> None:
    """A list: a document for programs, a table for people."""
    if session.as_json:
        print_json(value)
    else:
        print_table(columns, rows)


def write_bytes(data: bytes) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def note(text: str, session: CommandSession) -> None:
    """A remark for people, not part of the result and never printed with --json."""
    if not session.as_json:
        click.echo(safe(text), err=True)


def count_of(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def confirm(question: str, *, otherwise: str) -> bool:
    """Ask at a terminal; elsewhere refuse, saying what to do."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(otherwise)
    return click.confirm(question, err=True)


@contextmanager
def announce_new_space(engine: Engine, session: CommandSession) -> Iterator[None]:
    """Mention that an operation created its space: perhaps the name was misspelt."""
    space = engine.spaces[0]
    there = engine.known_spaces.has(space)
    yield
    if not there and engine.known_spaces.has(space):
        note(f"Created space {space}.", session)


def tell_flags(memory: Memory, session: CommandSession) -> None:
    """Warn of what was found in a text that was just stored."""
    for flag in memory.flags:
        if flag in FLAGGED:
            note(f"Flagged: {FLAGGED[flag]} All of them: scrubjay list --flag {flag}", session)


def tell_owed(owed: Sequence[OpenConflict], session: CommandSession) -> None:
    """What was found since earlier commands had no time to compare what they stored."""
    if owed and session.as_json:  # beside the result, which is all that standard output has
        click.echo(json.dumps({"compared_since": plain(list(owed))}, ensure_ascii=False), err=True)
    for pair in owed:
        note(f"Compared since: {pair.new.title} ({pair.new.id})", session)
        note(f"  It may outdate: {pair.old.title}", session)
        note(f"  If so: scrubjay supersede {pair.old.id} {pair.new.id}", session)


def find_doubts(
    memories: Sequence[Memory], engine: Engine, session: CommandSession, *, worth: Collection[str] | None = None
) -> dict[str, str]:
    """The older memories of open pairs, each with the newer one, also of pairs over the spaces that --space left out.
    A note tells how many of these, or of those that are worth it, may outdate one that is not shown."""
    if session.narrowed:
        engine = engine.bound_to(only=False)
    doubts = engine.conflicts.doubts(memories)
    shown = {memory.id for memory in memories}
    if doubts and session.as_json:  # beside the list, which is all that standard output has
        click.echo(json.dumps({"doubts": doubts}), err=True)
    worthy = shown if worth is None else set(worth)
    hidden = [(old, new) for old, new in doubts.items() if old not in shown and new in worthy]
    if hidden:
        told = f"{len(hidden)} memories here may outdate what is not shown"
        told = f"{hidden[0][1]} may outdate {hidden[0][0]}, which is not shown" if len(hidden) == 1 else told
        note(f"Not settled: {told}; `scrubjay conflicts` lists both.", session)
    return doubts


def tell_same(same: Mapping[str, Sequence[str]], session: CommandSession) -> None:
    """Say which memories now have the words of others."""
    for memory, others in same.items():
        note(f"{safe(memory)} says the same as {safe(', '.join(others))}. To settle it: scrubjay conflicts", session)


def tell_empty(sentence: str, engine: Engine, session: CommandSession) -> None:
    """Say that there is no result, and where none was looked for; or, if there is no memory at all, how to begin."""
    anything = any(space.memories or space.superseded for space in engine.known_spaces.list())
    where = f" Only the space {engine.spaces[0]} was looked at." if engine.only else ""
    note(f"{sentence}{where}" if anything else BEGIN, session)


def space_cell(engine: Engine, *memories: Memory) -> tuple[str, ...]:
    """The last cell of a row, if not all of its memories are from the space that the command works in."""
    spaces = [memory.space for memory in memories]
    if {*spaces} == {engine.spaces[0]}:
        return ()
    return (f"from space{'s' if len({*spaces}) > 1 else ''} {' and '.join(dict.fromkeys(spaces))}",)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Rows for people on a terminal, without empty columns; otherwise tab-separated lines."""
    if not on_terminal():
        for row in rows:
            click.echo("\t".join(map(write_cell, row)))
    elif rows:
        from scrubjay.cli import tables

        tables.print_rows(columns, [(*row, *[""] * (len(columns) - len(row))) for row in rows])


def print_listed(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """A table of memories that were remembered (ids.py), with the names to type for them: @1, @2 …"""
    if on_terminal():
        columns, rows = ("", *columns), [(f"@{place}", *row) for place, row in enumerate(rows, 1)]
    print_table(columns, rows)


def print_facts(facts: Sequence[tuple[str, Cell]], room: int = 12) -> None:
    """Names and values below each other."""
    if on_terminal():
        from scrubjay.cli import tables

        tables.print_facts(facts, room)
    else:
        for name, value in facts:
            click.echo(f"{name:<{room}}  {write_cell(value)}")


def clip_text(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1]}…"
