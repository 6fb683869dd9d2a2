"""Changes one value in a JSON file that people write by hand; comments, spacing and everything else stay.

    {                                  put(text, ("mcpServers", "scrubjay"), {...})
      // mine                          finds the deepest object on the path that is there and adds a member behind its
      "mcpServers": { ... }            last one, with that one's indentation
    }

Read like the editors' own readers: comments and a comma behind the last value are allowed. The result is read again and
compared with what it should say, so a mistake here refuses to write rather than damaging a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
SKIPPED = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)?")
DEEPEST = 200


class Unreadable(ValueError):
    """The text is not JSON, or not of the shape that was asked for; the message says where."""


@dataclass(slots=True)
class JsonNode:
    """A value and where it is; an object has named parts, a list has unnamed ones."""

    start: int
    end: int = 0
    value: Any = None
    parts: list[JsonPart] = field(default_factory=list)
    comma: bool = False  # behind the last part

    def part(self, name: str) -> JsonPart | None:
        return next((part for part in reversed(self.parts) if part.name == name), None)


@dataclass(slots=True)
class JsonPart:
    name: str | None
    start: int
    node: JsonNode


def read(text: str) -> Any:
    """What the text says; a text without a value is an empty object.

    :raises Unreadable: naming line and column
    """
    return {} if is_blank(text) else parse_document(text).value


def is_blank(text: str) -> bool:
    """Whether there is no value, but at most comments."""
    return not SKIPPED.sub("", text, count=1)


def put(text: str, path: Path, value: Any) -> str:
    """The text with this value at the path; objects on the way are created."""
    if is_blank(text):
        text += ("" if text in ("", "\ufeff") or text.endswith("\n") else "\n") + "{}\n"
    node, rest = deepest_object(parse_document(text), path)
    if not rest:
        changed = (
            splice_text(text, node.start, node.end, render_value(text, node.start, value))
            if node.value != value
            else text
        )
    else:
        new = value
        for name in reversed(rest[1:]):
            new = {name: new}
        changed = add_part(text, node, new, name=rest[0])
    return check_edit(text, changed, lambda data: place_at(data, path, value))


def put_item(text: str, path: Path, value: Any, *, ours: Callable[[Any], bool]) -> str:
    """The text with this value in the list at the path, in the place of the one that is ours or as the last one."""
    node, rest = (JsonNode(0), path) if is_blank(text) else deepest_object(parse_document(text), path)
    if rest:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise Unreadable(f"{'.'.join(path)} is not a list")
    own = [part for part in node.parts if ours(part.node.value)]
    if not own:
        changed = add_part(text, node, value)
    elif own[0].node.value == value:
        changed = text
    else:
        changed = splice_text(text, own[0].node.start, own[0].node.end, render_value(text, own[0].start, value))
    replaced = [value if own and item is own[0].node.value else item for item in node.value]
    return check_edit(text, changed, lambda data: place_at(data, path, replaced if own else [*node.value, value]))


def remove(text: str, path: Path, *, kept: int = 0) -> str:
    """The text without the value at the path, and without objects on the way that become empty, unless they are among
    the first `kept` steps."""
    changed = text
    for length in range(len(path), kept, -1):
        holder, rest = deepest_object(parse_document(changed), path[: length - 1])
        part = holder.part(path[length - 1]) if not rest else None
        if part is None or (length < len(path) and part.node.value):
            break
        changed = without(changed, holder, part)
    return check_edit(text, changed, lambda data: drop_at(data, path, kept))


def remove_items(text: str, path: Path, *, ours: Callable[[Any], bool], kept: int = 0) -> str:
    """The text without what is ours in the list at the path."""
    changed = text
    while True:
        node, rest = deepest_object(parse_document(changed), path)
        own = [part for part in node.parts if ours(part.node.value)] if not rest else []
        if not own:
            break
        if len(node.parts) == 1 and kept < len(path):
            return remove(changed, path, kept=kept)
        changed = without(changed, node, own[0])
    others = [item for item in node.value if not ours(item)] if not rest else None
    return changed if rest else check_edit(text, changed, lambda data: place_at(data, path, others))


def hollow(text: str | None, path: Path) -> int:
    """How many steps of the path lead to an object or list that is there but empty; 0 if none do."""
    try:
        value = read(text or "")
    except Unreadable:
        return 0
    for steps, name in enumerate(path, 1):
        value = value.get(name) if isinstance(value, dict) else None
        if value in ({}, []):
            return steps
    return 0


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_document(text: str) -> JsonNode:
    node = value_at(text, skip(text, 0), 0)
    if skip(text, node.end) != len(text):
        raise unreadable(text, skip(text, node.end))
    return node


def skip(text: str, at: int) -> int:
    found = SKIPPED.match(text, at)
    assert found
    return found.end()


def value_at(text: str, at: int, depth: int) -> JsonNode:
    if depth > DEEPEST:
        raise unreadable(text, at)
    if text[at : at + 1] in ("{", "["):
        return holder_at(text, at, depth)
    found = STRING.match(text, at) or SCALAR.match(text, at)
    if found is None:
        raise unreadable(text, at)
    return JsonNode(at, found.end(), decode_value(text, at, found[0]))


def decode_value(text: str, at: int, literal: str) -> Any:
    try:
        return json.loads(literal)
    except ValueError:  # such as an unknown escape
        raise unreadable(text, at) from None


def holder_at(text: str, at: int, depth: int) -> JsonNode:
    """An object or a list."""
    named, closing = text[at] == "{", "}" if text[at] == "{" else "]"
    node = JsonNode(at)
    at = skip(text, at + 1)
    while text[at : at + 1] != closing:
        if node.parts and not node.comma:
            raise unreadable(text, at)
        start, name = at, None
        if named:
            found = STRING.match(text, at)
            if found is None:
                raise unreadable(text, at)
            name = decode_value(text, at, found[0])
            at = skip(text, found.end())
            if text[at : at + 1] != ":":
                raise unreadable(text, at)
            at = skip(text, at + 1)
        part = JsonPart(name, start, value_at(text, at, depth + 1))
        node.parts.append(part)
        at = skip(text, part.node.end)
        node.comma = text[at : at + 1] == ","
        at = skip(text, at + 1) if node.comma else at
    node.end = at + 1
    node.value = (
        {part.name: part.node.value for part in node.parts} if named else [part.node.value for part in node.parts]
    )
    return node


def unreadable(text: str, at: int) -> Unreadable:
    line = text.count("\n", 0, at) + 1
    place = f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
    rest = text[at : at + 20].partition("\n")[0].rstrip()
    return Unreadable(f"not JSON: {place} has {rest!r} in the wrong place" if rest else f"not JSON: it ends at {place}")


def deepest_object(node: JsonNode, path: Path) -> tuple[JsonNode, Path]:
    """The last value on the path that is there, and the rest of the path."""
    for place, name in enumerate(path):
        if not isinstance(node.value, dict):
            raise Unreadable(f"{'.'.join(path[:place]) or 'the file'} is not an object")
        part = node.part(name)
        if part is None:
            return node, path[place:]
        node = part.node
    return node, ()


# --- writing ---------------------------------------------------------------------------------------------------------


def add_part(text: str, holder: JsonNode, value: Any, *, name: str | None = None) -> str:
    """The text with one more part at the end of an object or list."""
    line = newline(text)
    outer = indentation(text, holder.start)
    label = "" if name is None else f"{json.dumps(name, ensure_ascii=False)}: "
    if not holder.parts:
        inner = outer + step(text)
        body = f"{line}{inner}{label}{format_value(value, inner, text)}{line}{outer}"
        comments = text[holder.start + 1 : holder.end - 1].rstrip()  # there may be some, and nothing else
        return splice_text(text, holder.start + 1, holder.end - 1, comments + body)
    last, comma = holder.parts[-1], "," if holder.comma else ""
    at = text.index(",", skip(text, last.node.end)) + 1 if holder.comma else last.node.end
    if "\n" not in text[holder.start : last.start]:  # all on one line
        return splice_text(
            text, at, at, f"{comma or ','} {label}{json.dumps(value, ensure_ascii=False)}"[len(comma) :] + comma
        )
    inner = indentation(text, last.start)
    found = REST_OF_LINE.match(text, at)
    assert found
    behind = found.end() if found[0].strip() else at  # a comment on that line belongs to the last part
    text = splice_text(text, behind, behind, f"{line}{inner}{label}{format_value(value, inner, text)}{comma}")
    return text if holder.comma else splice_text(text, last.node.end, last.node.end, ",")


def without(text: str, holder: JsonNode, part: JsonPart) -> str:
    """The text without one part of an object or list, its comma and, if it had one to itself, its line."""
    start, end = part.start, part.node.end
    if len(holder.parts) == 1 and not (text[holder.start + 1 : start] + text[end : holder.end - 1]).strip(" \t\r\n,"):
        return splice_text(text, holder.start + 1, holder.end - 1, "")
    if part is not holder.parts[-1] or holder.comma:
        end = text.index(",", skip(text, end)) + 1
    elif len(holder.parts) > 1:  # the last one, without a comma behind it: the one before it goes
        comma = text.index(",", skip(text, holder.parts[-2].node.end))
        if not text[comma + 1 : start].strip():
            return splice_text(text, comma, end, "")
        text = splice_text(text, comma, comma + 1, "")
        start, end = start - 1, end - 1
    opening = text.rfind("\n", 0, start) + 1
    if not text[opening:start].strip() and (rest := re.match(r"[ \t]*\r?\n", text[end:])):
        return splice_text(text, opening, end + rest.end(), "")
    return splice_text(text, start, end + (text[end : end + 1] == " "), "")


def render_value(text: str, at: int, value: Any) -> str:
    return format_value(value, indentation(text, at), text)


def format_value(value: Any, indent: str, text: str) -> str:
    lines = json.dumps(value, indent=step(text), ensure_ascii=False).split("\n")
    return (newline(text) + indent).join(lines)


def indentation(text: str, at: int) -> str:
    """What the line of this place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def step(text: str) -> str:
    found = re.search(r'^([ \t]+)"', text, re.MULTILINE)
    if found is None:
        return "  "
    return "\t" if found[1].startswith("\t") else found[1]


def newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def splice_text(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


# --- what it should say ----------------------------------------------------------------------------------------------


def check_edit(before: str, after: str, expected: Callable[[Any], Any]) -> str:
    """:raises Unreadable: if the text does not say what it should"""
    if read(after) != expected(read(before)):
        raise Unreadable("its layout is unusual")
    return after


def place_at(data: Any, path: Sequence[str], value: Any) -> Any:
    return {**data, path[0]: place_at(data.get(path[0], {}), path[1:], value)} if path else value


def drop_at(data: Any, path: Sequence[str], kept: int = 0) -> Any:
    if not isinstance(data, dict) or path[0] not in data:
        return data
    left = drop_at(data[path[0]], path[1:], kept - 1) if len(path) > 1 else None
    if left is data[path[0]] and len(path) > 1:  # it was not there
        return data
    rest = {name: value for name, value in data.items() if name != path[0]}
    return {**data, path[0]: left} if left or kept > 0 else rest
