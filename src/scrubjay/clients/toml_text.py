"""Changes one table of a TOML file that people write by hand; comments, order and everything else stay.

Only what clients write themselves is edited: a table under its own header, with keys on lines of their own. The result
is read again and compared with what it should say; whatever else a file does with our table is refused, not guessed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from scrubjay.clients.jsonc import Path, Unreadable, drop_at, newline, place_at


def read(text: str) -> dict[str, Any]:
    """:raises Unreadable: saying what is wrong where"""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"not TOML: {error}") from None


def put(text: str, path: Path, values: Mapping[str, str | list[str]]) -> str:
    """The text with these keys in the table; its other keys stay."""
    now = table(text, path)
    if all(now.get(name) == value for name, value in values.items()):
        return text
    line = newline(text)
    found = block(text, path)
    if found is None:
        header = f"[{'.'.join(path)}]"
        body = line.join([header, *(f"{name} = {literal(value)}" for name, value in values.items()), ""])
        gap = line if text and not text.endswith("\n") else ""
        changed = f"{text}{gap}{line if text.strip() else ''}{body}"
    else:
        lines = text[found[0] : found[1]].splitlines(keepends=True)
        for name, value in values.items():
            lines = with_key(lines, name, f"{name} = {literal(value)}{line}")
        changed = text[: found[0]] + "".join(lines) + text[found[1] :]
    return check_edit(text, changed, lambda data: place_at(data, path, {**now, **values}))


def table(text: str, path: Path) -> dict[str, Any]:
    """What the table says; nothing if there is none.

    :raises Unreadable: if it, or one that it is in, is something else, such as a list of tables
    """
    now = read(text)
    for place, name in enumerate(path, 1):
        now = now.get(name, {})
        if not isinstance(now, dict):
            raise Unreadable(f"{'.'.join(path[:place])} is not a table")
    return now


def remove(text: str, path: Path) -> str:
    """The text without the table and the tables below it."""
    table(text, path)
    changed = text
    while (found := block(changed, path, below=True)) is not None:
        start, end = found
        changed = changed[:start] + changed[end:] if changed[end:].strip() else ending_line(changed[:start])
    kept = len(path) - 1 if block(changed, path[:-1]) else 0  # a header of the user's own
    return check_edit(text, changed, lambda data: drop_at(data, path, kept))


def ending_line(text: str) -> str:
    """Without the blank line that was written before the table."""
    line = newline(text)
    return text.removesuffix(line) if text.endswith(line * 2) else text


def block(text: str, path: Path, *, below: bool = False) -> tuple[int, int] | None:
    """Where the table's header and keys are. The comments before the next header belong to that one."""
    steps = r"\s*\.\s*".join(rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')" for name in path)
    ending = r"(?:\s*\.[^\]\n]*)?" if below else ""
    found = re.search(rf"^[ \t]*\[\s*{steps}{ending}\s*\][ \t]*(?:#[^\n]*)?\r?(?:\n|$)", text, re.MULTILINE)
    if found is None:
        return None
    following = re.search(r"^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*\[", text[found.end() :], re.MULTILINE)
    return found.start(), found.end() + following.start() if following else len(text)


def with_key(lines: list[str], name: str, new: str) -> list[str]:
    """The table's lines with this key: in its place, else behind the header."""
    for start, line in enumerate(lines):
        if re.match(rf"[ \t]*(?:{name}|\"{name}\")[ \t]*=", line):
            for end in range(start + 1, len(lines) + 1):
                try:
                    tomllib.loads("".join(lines[start:end]))
                except tomllib.TOMLDecodeError:  # a list over several lines, not complete yet
                    continue
                return [*lines[:start], new, *lines[end:]]
    return [lines[0] if lines[0].endswith("\n") else lines[0] + "\n", new, *lines[1:]]


def literal(value: str | list[str]) -> str:
    """JSON's strings and lists of strings are TOML's too."""
    return json.dumps(value, ensure_ascii=False)


def check_edit(before: str, after: str, expected: Callable[[Any], Any]) -> str:
    try:
        said = read(after)
    except Unreadable:
        said = None
    if said != expected(read(before)):
        raise Unreadable("its layout is unusual")
    return after
