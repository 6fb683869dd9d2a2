"""Whether a text tells what may come, rather than what is."""

from __future__ import annotations

import re
from functools import lru_cache

from scrubjay.text.tokens import first_clause

PLAN = re.compile(
    r"\b(?:may|might|could) (?!not\b|only\b|now\b|be\b)\w+|\b(?:maybe|perhaps|possibly|considers?|considering)\b"
    r"|\b(?:thinks?|thinking|dreams?|dreaming) (?:about|of)\b"
    r"|\b(?:plans?|planning|planned|wants?|hopes?|hoping|intends?|intending|would (?:like|love)) to\b"
    r"|\b(?:will|going to|plans?)\b.* next (?:spring|summer|autumn|fall|winter|year)\b"
)
DECIDED = re.compile(r"\b(?:now|again|not|no longer|anymore)\b|n't\b")


@lru_cache(maxsize=256)
def is_plan(text: str) -> bool:
    """Whether a text begins with what a person thinks of doing, or what may happen: nothing has changed yet."""
    plain = " ".join(first_clause(text))
    return PLAN.search(plain) is not None and DECIDED.search(plain) is None
