"""Text at the door: refuse what could not be read back.

Half a surrogate pair can be written in JSON as an escape, but not as UTF-8: kept once, it would make every later answer
that holds it unreadable.
"""

from __future__ import annotations

from typing import Any

from scrubjay.errors import InvalidInput

MAX_DEPTH = 64  # levels of nesting; no argument of any dialect needs ten


def check_text(arguments: Any) -> None:
    """Walks without recursion, so that depth itself cannot hurt.

    :raises InvalidInput: naming the argument that is not text, or nested too deeply
    """
    rest: list[tuple[str, int, Any]] = [("", 0, arguments)]
    while rest:
        where, depth, value = rest.pop()
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{first_name(where)} is nested too deeply.", field=first_name(where))
        if isinstance(value, str) and not is_text(value):
            field = where or "arguments"
            raise InvalidInput(
                f"{field} holds half of a surrogate pair, which is not text.",
                hint="Send characters outside the basic plane as a whole pair, or as UTF-8.",
                field=field,
            )
        if isinstance(value, dict):
            for name in value:
                if not is_text(name):
                    raise InvalidInput("The name of an argument holds half of a surrogate pair, which is not text.")
            rest.extend((f"{where}.{name}" if where else name, depth + 1, inner) for name, inner in value.items())
        elif isinstance(value, list):
            rest.extend((f"{where}.{index}", depth + 1, inner) for index, inner in enumerate(value))


def is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_name(where: str) -> str:
    return where.partition(".")[0][:100]
