"""Texts that a pattern matches, drawn at random from the pattern itself.

For code that looks for a pattern only where a text holds certain words: whatever the pattern matches has to hold them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

ANY = {"category_word": "abcdefgxyz09é", "category_space": " ", "category_digit": "0123456789٣"}
REPEATS = 4  # more than the least number


def texts_matching(pattern: re.Pattern[str], count: int, *, seed: int = 1) -> Iterator[str]:
    """Most of them do match: what a pattern looks ahead or back for is left to chance."""
    draw = random.Random(seed)
    parsed = re._parser.parse(pattern.pattern, pattern.flags)  # type: ignore[attr-defined]
    for _ in range(count):
        text = draw_text(parsed, draw)
        if pattern.search(text):
            yield text


def draw_text(parts: Any, draw: random.Random) -> str:
    return "".join(one(str(kind).lower(), value, draw) for kind, value in parts)


def one(kind: str, value: Any, draw: random.Random) -> str:
    if kind == "literal":
        return chr(value)
    if kind in ("at", "assert", "assert_not"):
        return ""
    if kind == "in":
        return among(value, draw)
    if kind in ("any", "not_literal"):
        return draw.choice(" ,")
    if kind == "branch":
        return draw_text(draw.choice(value[1]), draw)
    if kind == "subpattern":
        return draw_text(value[-1], draw)
    if kind in ("max_repeat", "min_repeat", "possessive_repeat"):
        least, most, inner = value
        return "".join(draw_text(inner, draw) for _ in range(draw.randint(least, min(int(most), least + REPEATS))))
    if kind == "atomic_group":
        return draw_text(value, draw)
    raise AssertionError(kind)


def among(choices: Any, draw: random.Random) -> str:
    if str(choices[0][0]).lower() == "negate":
        others = re.compile(f"[^{''.join(map(spell, choices[1:]))}]")
        return draw.choice([sign for sign in " ,-" if others.match(sign)] or ["x"])  # what keeps words apart, if it may
    kind, value = draw.choice(choices)
    name = str(kind).lower()
    if name == "literal":
        return chr(value)
    if name == "range":
        return chr(draw.randint(*value))
    return draw.choice(ANY.get(str(value).lower(), "-,;"))


def spell(choice: Any) -> str:
    kind, value = choice
    return re.escape(chr(value)) if str(kind).lower() == "literal" else r"\s"
