"""The name that was probably meant by one that does not exist. No suggestion beats a bad one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from scrubjay.lazy import difflib

CLOSE = 0.8  # "memoryId" and "memory_id" are 0.82 alike, "evidence" and "confidence" 0.67
SWAPPED = 4  # minimum length of a name for two swapped letters to be recognised

# What other interfaces call the same thing.
SYNONYMS = {
    "content": ("text", "memory", "fact", "note", "body"),
    "text": ("content", "memory", "fact", "note", "body"),
    "query": ("q", "question", "text", "search", "search_query"),
    "limit": ("top_k", "k", "n", "count", "max_results", "n_results", "page_size"),
    "memory_id": ("id",),
    "store": ("space", "workspace", "database", "database_url", "db"),
    "workspace_id": ("space", "store", "workspace"),
}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one is a misspelling or synonym of, if there is one."""
    names = list(known)
    for meant in names:
        if name.lower() in SYNONYMS.get(meant, ()):
            return meant
    close = difflib.get_close_matches(name, names, n=1, cutoff=CLOSE)
    return close[0] if close else next((meant for meant in names if has_swapped_letters(name, meant)), None)


def has_swapped_letters(name: str, meant: str) -> bool:
    """Whether two letters are swapped, however far apart, as in "desicion"."""
    if len(name) != len(meant) or len(name) < SWAPPED:
        return False
    differing = [(one, other) for one, other in zip(name.lower(), meant.lower(), strict=True) if one != other]
    return len(differing) == 2 and differing[0] == differing[1][::-1]


def missing_field(field: str, given: Iterable[str], known: Collection[str], *, within: str = "") -> str:
    """A sentence saying that a field is missing and, if so, that another was given instead."""
    written = next((name for name in given if name not in known and nearest(name, known) == field), None)
    full = f"{within}.{field}" if within else field
    if written is None:
        return f"{full} is required."
    return f"{full} is required, and {written[:100]} is not known. Did you mean {field}?"
