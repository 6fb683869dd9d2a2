"""Finding by words: BM25 over the FTS5 table `words`, filtered before the cut.

Query text never becomes FTS5 syntax: it is reduced to words, and each word is asked for as a quoted phrase.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log

import apsw

from scrubjay.memory import Match
from scrubjay.stores.sqlite_filters import Restriction, among
from scrubjay.stores.words import query_words, term

COMMON_SHARE = 0.1  # a word in more rows than this share says little and costs much …
COMMON_FROM_ROWS = 5_000  # … in an index of this size
_TOKENIZER = ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co M* So"]  # behind porter, as in the schema


def register(con: apsw.Connection) -> None:
    """Give a connection the functions that the statements here use."""
    con.register_fts5_function("indexed_rows", lambda api: api.row_count)
    con.register_fts5_function("phrases_held", _phrases_held)


def scope_token(space: int) -> str:
    """What stands in the `scope` column; private-use characters keep it apart from words in the text."""
    return f"\ue000{space}"


def match(con: apsw.Connection, text: str, restriction: Restriction, limit: int) -> list[Match]:
    frequencies = _frequencies(con, query_words(text))
    if not any(frequencies.values()):
        return []
    [(rows,)] = con.execute("SELECT indexed_rows(words) FROM words LIMIT 1")
    asked = _distinctive(frequencies, rows)
    best = sum(_idf(frequency, rows) for frequency in asked.values())
    known = {word: frequency for word, frequency in asked.items() if frequency}
    where, values = restriction.condition()
    found = con.execute(
        # CROSS JOIN keeps the order: first the words, then each row's filters by its primary key.
        f"""
        SELECT memories.id, -bm25(words, 1.0, 0.0) AS score
        FROM words
        CROSS JOIN memories ON memories.seq = words.rowid
        WHERE words MATCH ?
        AND {where}
        ORDER BY score DESC, memories.created_at DESC, memories.seq DESC
        LIMIT ?
        """,
        (_expression(known, _scope(con, restriction, sum(known.values()))), *values, limit),
    )
    return [Match(id, min(score / best, 1.0)) for id, score in found]


def words_held(con: apsw.Connection, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each memory the words of the text that it holds."""
    words = [word for word in query_words(text) if _stem(con, word)]
    if not words or not ids:
        return {}
    which, values = among("memories.id", ids)
    found = con.execute(
        f"""
        SELECT memories.id, phrases_held(words)
        FROM memories
        CROSS JOIN words ON words.rowid = memories.seq
        WHERE words MATCH ?
        AND {which}
        """,
        (_expression(words, ()), *values),
    )
    return {id: tuple(words[int(number)] for number in held.split()) for id, held in found}


def _phrases_held(api: apsw.FTS5ExtensionApi) -> str:
    return " ".join(str(number) for number in range(api.phrase_count) if api.phrase_columns(number))


def _frequencies(con: apsw.Connection, words: Iterable[str]) -> dict[str, int]:
    """In how many rows each word stands; of words with the same stem only the first is kept."""
    frequencies: dict[str, int] = {}
    stems: set[str] = set()
    for word in words:
        stem = _stem(con, word)
        if stem and stem not in stems:
            stems.add(stem)
            row = con.execute("SELECT doc FROM vocabulary WHERE term = ? AND col = 'text'", (stem,)).fetchone()
            frequencies[word] = row[0] if row else 0
    return frequencies


def _stem(con: apsw.Connection, word: str) -> str:
    """The word as the index keeps it; empty if its tokenizer sees no word there."""
    tokenize = con.fts5_tokenizer("porter", _TOKENIZER)
    tokens = tokenize(term(word).encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
    return "".join(token for colocated in tokens for token in colocated[:1])


def _distinctive(frequencies: dict[str, int], rows: int) -> dict[str, int]:
    """Leave common words out, if the index is large and rarer ones are found in it."""
    if rows < COMMON_FROM_ROWS:
        return frequencies
    rare = {word: frequency for word, frequency in frequencies.items() if frequency <= rows * COMMON_SHARE}
    return rare if any(rare.values()) else frequencies


def _idf(frequency: int, rows: int) -> float:
    """As FTS5 computes it: a word in more than half of the rows is worth next to nothing, never less."""
    idf = log((rows - frequency + 0.5) / (frequency + 0.5))
    return idf if idf > 0 else 1e-6


def _scope(con: apsw.Connection, restriction: Restriction, matching_rows: int) -> tuple[int, ...]:
    """The spaces to look in by token, if that leaves fewer rows to weigh than the words alone do."""
    if restriction.spaces is None:
        return ()
    where, values = among("space", restriction.spaces)
    few = matching_rows // 2
    [(rows,)] = con.execute(
        # memories_by_created
        f"""
        SELECT count(*)
        FROM (SELECT 1 FROM memories WHERE {where} LIMIT ?)
        """,
        (*values, few + 1),
    )
    return restriction.spaces if rows <= few else ()


def _expression(words: Iterable[str], spaces: tuple[int, ...]) -> str:
    """An FTS5 expression: any of the words, in one of the spaces."""
    text = " OR ".join(map(_phrase, map(term, words)))
    scope = " OR ".join(map(_phrase, map(scope_token, spaces)))
    return f"text : ({text}) AND scope : ({scope})" if spaces else f"text : ({text})"


def _phrase(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
