"""Words as a full-text index keeps them: lower case, without accents, cut down to their stems.

FTS5's own tokenizer does it, also for stores that are not SQLite: so all of them agree on what a word's stem is.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import apsw

from scrubjay.text.words import WORDS_REMEMBERED, term, words_to_index

TOKENIZER = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M* So"]  # behind porter, as in the schema

_thread = threading.local()  # a connection serves one thread at a time


def stems(words: Iterable[str]) -> dict[str, str]:
    """Query words with what the index has for each, without those in which the tokenizer sees no word."""
    return {word: stem for word in words if (stem := stem_of(word))}


@lru_cache(WORDS_REMEMBERED)
def stem_of(word: str) -> str:
    """What the index has for a query word; nothing if the tokenizer sees no word in it."""
    return "".join(_tokens(term(word), apsw.FTS5_TOKENIZE_QUERY))


def counted_stems(passage: str) -> Counter[str]:
    """The stems of a stretch of text, with how often each stands there."""
    return stems_of_row(words_to_index(passage))


def stems_of_row(text: str) -> Counter[str]:
    """The same of a text that is in the index as it is."""
    return Counter(_tokens(text, apsw.FTS5_TOKENIZE_DOCUMENT))


def _tokens(text: str, reason: int) -> list[str]:
    tokenize: Any = getattr(_thread, "tokenize", None)
    if tokenize is None:
        _thread.connection = apsw.Connection(":memory:")
        tokenize = _thread.tokenize = _thread.connection.fts5_tokenizer("porter", TOKENIZER)
    return [token for found in tokenize(text.encode(), reason, None, include_offsets=False) for token in found[:1]]
