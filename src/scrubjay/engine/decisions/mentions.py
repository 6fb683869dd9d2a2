"""How a decision names others in its reasoning, found in one pass over the text.

builds_on: decision_auth_1732530000_k3x9        in any case, bold or not, also as "builds on", and without the colon
**debates**: `decision_…`                       as code, in quotes or any brackets, after a full-width colon or an arrow
synthesizes: [decision_a, decision_b]           one or many, joined by commas, + or "and", as a list or numbered lines
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scrubjay.values.memory import LinkKind

ID = re.compile(r"(?:decision|mem)_[a-z0-9_]+", re.IGNORECASE | re.ASCII)
_MARKS = r"[*`'\"]{0,3}"  # what people put around a word
_OPENED, _CLOSED = r"[*`'\"(<\[{]{0,4}+[ \t]*+", r"(?:[ \t]*+[*`'\")>\]}]{1,4}+)?+"  # and around an id
_NAME = rf"{_OPENED}{ID.pattern}{_CLOSED}"
_BULLET = r"(?:[-*•]|\d{1,3}[.)])[ \t]++"
# Every turn of the list begins with a sign or a word of its own, and white space is taken whole (possessive): no text
# makes the pattern try twice.
_PATTERN = re.compile(
    rf"(?<![a-z0-9_])(builds[_ -]on|debates|synthesizes){_MARKS}[ \t]*+(?:[:：=]|->|=>|→)?{_MARKS}\s*+(?:{_BULLET})?"
    rf"({_NAME}(?:(?:[ \t]*[,;，、；&+][ \t]*(?:and[ \t]+)?|[ \t]+and[ \t]+|[ \t]*[,;]?\n[ \t]*{_BULLET}){_NAME})*)",
    re.IGNORECASE | re.ASCII,
)
_JOINT = re.compile("[ -]")

_WORD = re.compile(
    r"(?<![a-z0-9_])(?:builds_on|(?:debates|synthesizes|supersedes)(?=[*`'\"]{0,3}[ \t]*[:：]))(?![a-z0-9_])",
    re.IGNORECASE | re.ASCII,
)


class Edge(NamedTuple):
    kind: LinkKind
    target: str  # an id as it was written, in lower case like all ids


def edges_in(reasoning: str | None) -> list[Edge]:
    """What a text builds on, debates or synthesizes, each once, in the order of the text."""
    found = [
        Edge(LinkKind(_JOINT.sub("_", one[1].lower())), name.lower())
        for one in _PATTERN.finditer(reasoning or "")
        for name in ID.findall(one[2])
    ]
    return list(dict.fromkeys(found))


def without_edges(text: str) -> str:
    """The text without what names other decisions: that is not what it is about."""
    return _WORD.sub(".", _PATTERN.sub(".", text))
