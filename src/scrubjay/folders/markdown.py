"""A memory as a Markdown file: front matter between two lines of dashes, an empty line, the text.

    ---
    created_at: 2026-11-15T10:00:00.000Z
    updated_at: 2026-11-15T10:00:00.000Z
    tags: ["api"]
    also: ["rate limit"]                phrases under which someone may look for it
    source: mcp
    id: mem_4k2j9x0a7b1c
    type: memory
    title: The API allows 60 requests a minute.
    category: fact
    superseded_by: "[[project/api/new-limits]]"
    aliases: [limits]                   what people or other programs wrote does not change
    ---

    The API allows 60 requests a minute.

Text, tags, phrases, expiry and title are read back; the rest is for people and for recognising a renamed file. A file
without front matter is a memory too: its title is the first heading, its tags are the #tags in its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from scrubjay.errors import FileDamaged, InvalidInput
from scrubjay.lazy import yaml
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import MAX_PHRASE, MAX_PHRASES, Category, Kind
from scrubjay.values.times import iso, parse_time

MAX_HEAD = 8_192  # characters of front matter
MAX_BRACKETS = 100
KEY = re.compile(r"^([A-Za-z_][\w-]*)[ \t]*:", re.MULTILINE)
END = re.compile(r"^---[ \t]*$", re.MULTILINE)
NESTED = re.compile(r"(?:[-?][ \t]+){20}")  # a sequence of sequences of … on one line
FRONT_MATTER = re.compile(r"\s*(?:[#\[{\"'&*!?|>%@]|-[ \t-]|[^\s:][^:\n]*:(?:\s|\Z))")  # begins front matter
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")  # what needs no quotes
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
NOT_PLAIN = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"})

CATEGORIES = tuple(str(category) for category in Category)
TIMES = ("created_at", "updated_at", "expires_at")
LISTS = ("tags", "also")
TEXTS = ("source", "id", "type", "topic", "access_level")
MORE = ("title", "category", "outcome", "outcome_reason")  # whatever they contain, the file is still valid
LINKS = ("superseded_by", "related", "supersedes", "builds_on", "debates", "synthesizes", "consolidated_from")
OURS = (*TIMES, *LISTS, *TEXTS, *MORE, *LINKS)
KINDS = tuple(str(kind) for kind in Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The fields of a file; None for those it does not have."""

    content: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    tags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    source: str | None = None
    id: str | None = None
    type: str | None = None
    topic: str | None = None
    access_level: str | None = None
    title: str | None = None
    category: str | None = None  # one of ours; any other value is ignored
    outcome: str | None = None  # of a decision; written, never read
    outcome_reason: str | None = None
    plain: bool = False  # it has no front matter
    links: Mapping[str, Sequence[str]] = field(default_factory=dict)  # kind: paths; written, never read
    superseded_by: str | None = None  # as are these
    above: str = ""  # front matter that is not ours but uses our names, as written
    others: str = ""  # front matter that is not ours, as written


def parse_file(data: bytes) -> Document:
    """:raises FileDamaged: with what is wrong with the file"""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise FileDamaged("It is not UTF-8 text.") from None
    if not text.startswith("---\n") or not FRONT_MATTER.match(text, 4):  # otherwise the dashes are a horizontal rule
        content = text.removesuffix("\n")
        return Document(content=content, plain=True, title=heading_in(content), tags=tags_in(content))
    end = END.search(text, 4)
    if end is None:
        raise FileDamaged("Its front matter is not closed.", hint="Close it with a line of three dashes.")
    content = text[end.end() :].removeprefix("\n").removeprefix("\n").removesuffix("\n")
    document = Document(content=content, **_read_head(text[4 : end.start()]))
    if document.id is not None:
        return document
    tags = tuple(dict.fromkeys((*document.tags, *tags_in(content))))[: max(MOST_TAGS, len(document.tags))]
    return replace(document, title=document.title or heading_in(content), tags=tags)


# --- what the text itself says ---

CODE = re.compile(r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}[ \t](.*)$", re.MULTILINE)
TAG = re.compile(r"(?:^|(?<=\s))#([\w/-]*[^\W\d][\w/-]*)", re.MULTILINE)
WIKI_LINK = re.compile(r"\[\[([^\[\]|#\n]+)(?:[|#][^\[\]\n]*)?\]\]")
MOST_TAGS, LONGEST_TAG, LONGEST_TITLE, MOST_LINKS, LONGEST_SOURCE = 20, 100, 200, 100, 100


def heading_in(text: str) -> str | None:
    """The first heading, on one line."""
    found = (" ".join(match[1].rstrip("# \t").split()) for match in HEADING.finditer(CODE.sub("", text)))
    return next((title[:LONGEST_TITLE] for title in found if title), None)


def tags_in(text: str) -> tuple[str, ...]:
    """Every #tag, once, without its mark; headings and code do not count."""
    found = dict.fromkeys(match[1].strip("/-") for match in TAG.finditer(CODE.sub("", text)))
    return tuple(tag for tag in found if 0 < len(tag) <= LONGEST_TAG)[:MOST_TAGS]


def links_in(text: str) -> tuple[str, ...]:
    """The names of the notes that [[links]] point to, without headings and aliases."""
    found = dict.fromkeys(match[1].strip() for match in WIKI_LINK.finditer(CODE.sub("", text)))
    return tuple(name for name in found if name)[:MOST_LINKS]


def render_file(document: Document) -> bytes:
    theirs = {match[1] for match in KEY.finditer(document.above + document.others)}
    lines = [f"{name}: {iso(at)}" for name in TIMES[:2] if (at := getattr(document, name)) is not None]
    lines.append(f"tags: [{', '.join(map(_quote, document.tags))}]")
    if document.also and "also" not in theirs:
        lines.append(f"also: [{', '.join(map(_quote, document.also))}]")
    if "source" not in theirs:
        lines.append(f"source: {_scalar(document.source or 'file')}")
    if document.expires_at is not None:
        lines.append(f"expires_at: {iso(document.expires_at)}")
    lines += [
        f"{name}: {_scalar(value)}"
        for name in (*TEXTS[1:], *MORE)
        if name not in theirs and (value := getattr(document, name)) is not None
    ]
    if document.superseded_by is not None and "superseded_by" not in theirs:
        lines.append(f"superseded_by: {_quote(_wiki(document.superseded_by))}")
    lines += [
        f"{kind}: [{', '.join(_quote(_wiki(path)) for path in paths)}]"
        for kind, paths in document.links.items()
        if kind not in theirs
    ]
    head = document.above + "".join(f"{line}\n" for line in lines) + document.others
    return f"---\n{head}---\n\n{document.content}\n".encode()


def _wiki(path: str) -> str:
    return f"[[{path}]]"


def _scalar(text: str) -> str:
    """Plain where that means the same text, otherwise quoted; a JSON string is valid YAML."""
    plain = PLAIN.fullmatch(text) and text.lower() not in NOT_PLAIN
    return text if plain else _quote(text)


def _quote(text: str) -> str:
    """As JSON writes it, which YAML reads, plus escapes for characters that YAML requires escaped."""
    return UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _read_head(head: str) -> dict[str, Any]:
    given = _mapping(head)
    strangers = _strangers(given)
    above = [key for key in strangers if key in ("id", *LINKS)]
    read: dict[str, Any] = {
        "above": _write_keys(above, head, given),
        "others": _write_keys([key for key in strangers if key not in above], head, given),
    }
    for name in TIMES:
        if given.get(name) is not None:
            read[name] = _time(given[name], name)
    for name in TEXTS:
        value = given.get(name)
        theirs = name in strangers and name not in ("source", "topic")
        if value is not None and not theirs and (name == "access_level" or (isinstance(value, str) and value.strip())):
            read[name] = _text(value, name)
    read["tags"] = _tags(given.get("tags"))
    if "also" in given and "also" not in strangers:
        read["also"] = tuple(given["also"])
    if isinstance(title := given.get("title"), str) and title.strip():
        read["title"] = " ".join(title.split())[:LONGEST_TITLE]
    if given.get("category") in CATEGORIES:
        read["category"] = given["category"]
    return read


def _mapping(head: str) -> dict[Any, Any]:
    """YAML, as far as it is harmless: no custom tags, no aliases, no duplicate keys, no deep nesting.

    The parser of choice is written in C and recurses without a limit: deep nesting is refused before it.
    """
    if len(head) > MAX_HEAD:
        raise FileDamaged(f"Its front matter is too long (maximum {MAX_HEAD:,} characters).")
    if head.count("[") + head.count("{") > MAX_BRACKETS or NESTED.search(head):
        raise FileDamaged("Its front matter is nested too deeply.")

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(head)
        try:
            node = loader.get_single_node()
            _check_nodes(node)
            value = None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise FileDamaged(f"Its front matter is not YAML: {error.problem or 'a mistake'}{where}.") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError, RecursionError):
        raise FileDamaged("Its front matter is not YAML.") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FileDamaged("Its front matter is not a mapping.")
    return value | {key.value: _as_written(part) for key, part in node.value if key.value in (*LISTS, "title", *TEXTS)}


def _as_written(node: Any) -> Any:
    """The text as written. To YAML the tag `no` is a boolean, 3.10 is the number 3.1 and 12:30 is 750."""
    if isinstance(node.value, str):
        return None if node.tag == "tag:yaml.org,2002:null" else node.value
    return {} if node.id == "mapping" else [_as_written(part) for part in node.value]


def _check_nodes(top: Any) -> None:
    """:raises FileDamaged: for a duplicate key, or an alias (the same node in two places)"""
    met: set[int] = set()
    rest = [top] if top is not None else []
    while rest:
        node = rest.pop()
        if id(node) in met:
            raise FileDamaged("Its front matter has an alias.", hint="Write the value out.")
        met.add(id(node))
        if isinstance(node.value, list):
            pairs = [pair if isinstance(pair, tuple) else (pair,) for pair in node.value]
            keys = [pair[0].value for pair in pairs if len(pair) == 2 and isinstance(pair[0].value, str)]
            twice = next((key for key in keys if keys.count(key) > 1), None) if len(keys) < 200 else None
            if twice is not None or len(keys) != len(set(keys)):
                raise FileDamaged(f"Its front matter has the key {str(twice)[:40]} twice.")
            rest += [part for pair in pairs for part in pair]


def _strangers(given: Mapping[Any, Any]) -> list[Any]:
    """The keys that are not ours. Other programs have a type, an id or related notes too: ours are recognised by their
    values, or by coming after the time that every file of ours begins with."""
    keys = list(given)
    begin = keys.index("created_at") if "created_at" in keys else 0
    behind = {key for key in keys[begin:] if key in OURS}
    source, title, kind = given.get("source"), given.get("title"), given.get("type")
    named = isinstance(given.get("id"), str) and given["id"].startswith("mem_")
    mine = kind in KINDS or named
    own = {
        "also": _are_phrases(given.get("also")),
        "category": given.get("category") in CATEGORIES,
        "id": named or (mine and "id" in behind and isinstance(given["id"], str)),
        "type": kind in KINDS,
        "topic": kind == Kind.DECISION,
        "source": isinstance(source, str) and len(source) <= LONGEST_SOURCE,
        "title": isinstance(title, str) and len(title) <= LONGEST_TITLE,
        "outcome": kind == Kind.DECISION,
        "outcome_reason": kind == Kind.DECISION,
        **{key: mine and key in behind for key in LINKS},
    }
    return [key for key in keys if key not in OURS or (given[key] is not None and not own.get(key, True))]


def _are_phrases(value: object) -> bool:
    """Whether it is a list that a memory can have; other programs have lists of the same name."""
    fits = isinstance(value, list) and len(value) <= MAX_PHRASES
    return fits and all(isinstance(one, str) and 0 < len(one.strip()) <= MAX_PHRASE for one in value)  # type: ignore[attr-defined]


def _write_keys(strangers: Sequence[Any], head: str, given: Mapping[Any, Any]) -> str:
    """These keys, to be written back: word for word if they are on their own lines."""
    if not strangers:
        return ""
    starts = [match.start() for match in KEY.finditer(head)]
    blocks = {KEY.match(block)[1]: block for block in _cut_lines(head, starts)}  # type: ignore[index]
    if all(key in blocks for key in given):
        text = "".join(blocks[key] for key in strangers)
        return text if text.endswith("\n") else f"{text}\n"

    dumped: str = yaml.safe_dump({key: given[key] for key in strangers}, sort_keys=False, allow_unicode=True)
    return dumped


def _cut_lines(text: str, starts: Sequence[int]) -> list[str]:
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=bool(starts))]


def _time(value: Any, name: str) -> datetime:
    """YAML parses times itself; one without a zone, and a date, are in UTC."""
    written = value.isoformat() if hasattr(value, "isoformat") else str(value)
    if "T" in written and not re.search(r"(?:Z|[+-]\d\d:?\d\d)$", written):
        written += "Z"
    try:
        return parse_time(written, field=name)
    except InvalidInput as error:
        raise FileDamaged(f"Its front matter's {error.message}", hint=error.hint) from None


def _text(value: Any, name: str) -> str:
    if isinstance(value, dict | list) or not str(value).strip():
        raise FileDamaged(f"Its front matter's {name} must be a single word.")
    return str(value)


def _tags(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):  # Obsidian writes one tag, or several, like this
        value = [tag for tag in re.split(r"[,\s]+", value) if tag]
    if not isinstance(value, list) or any(isinstance(tag, dict | list) or tag is None for tag in value):
        raise FileDamaged("Its front matter's tags must be a list of words.")
    return tuple(str(tag) for tag in value)
