"""Facts of which several hold together: what a person uses, owns or speaks, and the groups they belong to."""

from __future__ import annotations

import re
from functools import lru_cache

from scrubjay.text.tokens import first_clause, stems, word_set

OF_SEVERAL = word_set(
    "uses offers supports speaks has owns sells likes loves enjoys plays collects volunteers subscribes coaches "
    "includes accepts provides contains takes teaches covers knows member"
)
SEVERAL = frozenset(stems(OF_SEVERAL))
GAINED = word_set("joined got bought adopted acquired learned learnt added")
JOINED_A_GROUP = re.compile(
    r"\bjoin(?:s|ed)? (?:[\w'’-]+ ){1,4}?(?:club|committee|choir|band|council|board|society|association|union|gym|"
    r"group|party|orchestra|quartet|league|church|network|forum)\b",
    re.IGNORECASE,
)


def holds_beside(old: str, new: str) -> bool:
    """Whether a new text only adds to what one can have several of: it uses Y, too, or joined another club."""
    if JOINED_A_GROUP.search(new):
        return True
    if not (verb := verb_of_several(old)):
        return False
    said = first_clause(new)
    tells_more = set(stems(first_clause(old))) <= set(stems(said))
    return not tells_more and (verb == verb_of_several(new) or not GAINED.isdisjoint(said))


@lru_cache(maxsize=256)
def verb_of_several(text: str) -> str:
    """The stem of the verb of a first clause, if that may have several objects; otherwise an empty string."""
    return next((word for word in stems(first_clause(text))[1:] if word in SEVERAL), "")
