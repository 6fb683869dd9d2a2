"""What another program's file looks like, told by its first line, and how to import what it holds."""

from __future__ import annotations

import os
import re

from scrubjay.lazy import json

EACH = "import one object per line"
KINDS = (  # how the first line begins or reads, what the file looks like, and what to do
    (rb"SQLite format 3\0", "a SQLite database", "`scrubjay restore` takes a backup, `scrubjay copy` a whole store."),
    (rb"PK\x03\x04|\x1f\x8b|BZh|\xfd7zXZ|\x28\xb5\x2f\xfd", "a compressed file", "Unpack it first."),
    (rb"\[", "one JSON list", f"To {EACH}: jq -c '.[]' FILE | scrubjay import -"),
    (
        rb'\{.*"type": *"(entity|relation)".*\}$',
        "a knowledge graph of server-memory",
        "To import what it says of each: jq -c '.name as $name | .observations[]? | {content: \"\\($name): \\(.)\"}' "
        "FILE | scrubjay import -",
    ),
    (rb"\{(?!.*\}$)", "one JSON document over several lines", f"To {EACH}: jq -c . FILE | scrubjay import -"),
    (rb"(---|#+ .*|[-*] .*)$", "Markdown", "`scrubjay folders add NAME FOLDER` reads a folder of it."),
    (rb"[^,;\t]+([,;\t][^,;\t. ]+)+$", "a table", f'To {EACH}, write {{"content": "…"}} for every row.'),
    (rb"[^{\x00-\x08]*$", "plain text", "`scrubjay store - < FILE` keeps it as one memory."),
)


def describe_foreign(file: str) -> str:
    """Two sentences about a file; empty if nothing is known of it, or if it cannot be read twice."""
    if not os.path.isfile(file):
        return ""
    with open(file, "rb") as stream:
        line = stream.read(65_536).removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0].rstrip()
    for pattern, kind, do in KINDS:
        if re.match(pattern, line):
            return f"It looks like {kind}. {do}"
    try:
        texts = {name: text for name, text in json.loads(line).items() if isinstance(text, str) and name.isidentifier()}
    except (ValueError, AttributeError, RecursionError):
        return ""
    if not texts or "content" in texts or texts.get("type") in ("memory", "link", "scrubjay"):
        return ""
    longest = max(texts, key=lambda name: (name in ("text", "memory"), len(texts[name])))
    return (
        f"It looks like another program's list. If {longest} is its text: jq -c '{{content: .{longest}}}' FILE | "
        "scrubjay import -"
    )
