"""How a decision names others in its reasoning, found in one pass over the text.

    builds_on: decision_auth_1732530000_k3x9        in any case, bold or not, with or without a space
    **debates**: decision_…
    synthesizes: [decision_a, decision_b]           brackets or not, one or many
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scrubjay.memory import LinkKind

_ID = r"(?:decision|mem)_[a-z0-9_]+"
# No two parts of a pattern can match the same character, so no text makes it try twice.
_ONE = re.compile(
    rf"(?<![a-z0-9_])(builds_on|debates)\*{{0,2}}:\*{{0,2}}\s*({_ID})",
    re.IGNORECASE | re.ASCII,
)
_MANY = re.compile(
    rf"(?<![a-z0-9_])synthesizes\*{{0,2}}:\*{{0,2}}\s*\[?\s*({_ID}(?:\s*,\s*{_ID})*)",
    re.IGNORECASE | re.ASCII,
)


class Edge(NamedTuple):
    kind: LinkKind
    target: str  # an id as it was written, in lower case like all ids


def edges_in(reasoning: str | None) -> list[Edge]:
    """What a text builds on, debates or synthesizes, each once, in the order of kinds and then of the text."""
    if not reasoning:
        return []
    found = [Edge(LinkKind(one[1].lower()), one[2].lower()) for one in _ONE.finditer(reasoning)]
    for many in _MANY.finditer(reasoning):
        found += [Edge(LinkKind.SYNTHESIZES, one.strip().lower()) for one in many[1].split(",")]
    return list(dict.fromkeys(found))
