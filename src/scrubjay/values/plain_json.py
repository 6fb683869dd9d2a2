"""JSON that every reader can read back: what callers hand in is looked through before any of it is kept.

    half a surrogate pair       can be escaped in JSON but not written as UTF-8
    a whole number > 64 bits    readers and writers differ: refused, rounded, or exact
    NaN, Infinity, 1e999        not JSON
    hundreds of levels          more than most readers and writers follow

Kept once, any of them would spoil every later answer that holds it. The walk does not recurse, so depth cannot hurt it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from scrubjay.errors import InvalidInput

MAX_DEPTH = 64  # levels of nesting; no argument of any dialect needs ten
LEAST, MOST = -(2**63), 2**64 - 1  # what 64 bits hold, with a sign or without

Path = tuple[str | int, ...]


def check(value: Any, *, within: str = "", large: bool = False) -> None:
    """Refuse what cannot be read back; `large` admits whole numbers of any size, which another store already holds.

    :raises InvalidInput: naming the place, such as metadata.a.b[3]
    """
    if not (isinstance(value, dict) and _all_text(value)):  # as most lines of an import are
        _walk(value, within, large)


def _walk(value: Any, within: str, large: bool) -> None:
    rest: list[tuple[Path, Any]] = [((within,) if within else (), value)]
    base = len(rest[0][0])
    while rest:
        path, one = rest.pop()
        if len(path) - base > MAX_DEPTH:
            raise InvalidInput(f"{path[0]!s:.100} is nested too deeply.", field=f"{path[0]!s:.100}")
        if isinstance(one, str):
            if not is_text(one):
                raise half_a_pair(path)
        elif isinstance(one, float):
            if not math.isfinite(one):
                raise refusal(path, "is not a finite number.")
        elif isinstance(one, int):
            if not LEAST <= one <= MOST and not large:
                raise refusal(path, f"is beyond 64 bits: a whole number goes from {LEAST:,} to {MOST:,}.")
        elif isinstance(one, dict | Mapping):  # a dict is recognised fastest
            for name in one:
                if isinstance(name, str) and not is_text(name):
                    raise InvalidInput("The name of an argument has a lone surrogate, which is not valid text.")
            rest.extend(((*path, str(name)), inner) for name, inner in one.items())
        elif isinstance(one, list | tuple):
            rest.extend(((*path, index), inner) for index, inner in enumerate(one))


def _all_text(value: dict[Any, Any]) -> bool:
    """Whether names and values are text and nothing else, and all of it can be written."""
    texts = (*value, *value.values())
    return all(type(one) is str for one in texts) and is_text("".join(texts))


def place(path: Iterable[str | int]) -> str:
    """A place in JSON as people write it: metadata.a.b[3]."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def refusal(path: Path, why: str) -> InvalidInput:
    field = place(path)[:200] or "arguments"
    return InvalidInput(f"{field} {why}", hint="Send it as text if its digits matter.", field=field)


def half_a_pair(path: Path) -> InvalidInput:
    field = place(path)[:200] or "arguments"
    return InvalidInput(
        f"{field} has a lone surrogate, which is not valid text.",
        hint="Send characters outside the basic plane as a surrogate pair, or as UTF-8.",
        field=field,
    )
