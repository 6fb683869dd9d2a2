"""Finding by words: BM25 over the FTS5 table `words`, filtered before the cut.

Query text never becomes FTS5 syntax: it is reduced to words, and each word is asked for as a quoted phrase.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast
from weakref import WeakKeyDictionary

import apsw

from scrubjay.memory import Match, State
from scrubjay.stores import sqlite_scope
from scrubjay.stores.sqlite_filters import Condition, Restriction, among
from scrubjay.stores.stems import TOKENIZER
from scrubjay.stores.words import COMMON_FROM_ROWS, SMALL_ROWS, query_words, rarity_of, term, weights_of

COMMON_FROM_COUNT = 1_000  # how often a word stands that is not counted each time …
STEADY = 20  # … but anew when as many rows as a twentieth of that have come or gone
Found = tuple[float, int, int, str]  # score, time and order of arrival, id


def register(con: apsw.Connection) -> None:
    """Give a connection the functions that the statements here use."""
    con.register_fts5_function("indexed_rows", _indexed_rows)
    con.register_fts5_function("phrases_held", _phrases_held)
    con.register_fts5_function("small_bm25", _small_bm25)


def scope_token(space: int) -> str:
    """What stands in the `scope` column; private-use characters keep it apart from words in the text."""
    return f"\ue000{space}"


class Index(NamedTuple):
    """One of the two tables of words, and the words that it holds."""

    table: str
    vocabulary: str


_remembered: WeakKeyDictionary[apsw.Connection, dict[tuple[Index, str], tuple[int, int]]] = WeakKeyDictionary()


HOT = Index("words", "vocabulary")
ARCHIVED = Index("archived_words", "archived_vocabulary")  # of memories that were put away


def match(con: apsw.Connection, text: str, restriction: Restriction, limit: int) -> list[Match]:
    found = _matched(con, text, restriction, limit, HOT)
    if State.ARCHIVED in restriction.states:
        found += _matched(con, text, restriction, limit, ARCHIVED)
    found.sort(reverse=True)  # before what is above one becomes one, or the newest of the best would come first
    return [Match(memory, min(score, 1.0)) for score, _, _, memory in found[:limit]]


def _matched(con: apsw.Connection, text: str, restriction: Restriction, limit: int, index: Index) -> list[Found]:
    words = index.table
    rows = _rows(con, index)
    frequencies = _frequencies(con, query_words(text), rows, index)
    if not any(frequencies.values()):
        return []
    weights = weights_of(frequencies, rows)
    known = [word for word in weights if frequencies[word]]
    scope = _scope(con, restriction, sum(frequencies[word] for word in known))
    ranking = f"small_bm25({words}, ?1)" if rows < SMALL_ROWS else f"-bm25({words}, 1.0, 0.0)"
    best = sum(weights.values())
    asked = (" ".join(str(weights[word]) for word in known), _expression(known, scope))
    depth = limit + limit // 4
    narrow = rows >= COMMON_FROM_ROWS and sqlite_scope.small(con, restriction)
    within, values = _within(restriction) if narrow else ("", [])
    while True:
        # The best passages first, then their memories' filters: reading the memory of every match costs far more.
        # Where the filters take most of them out, the memories that they admit come first.
        statement = f"""
            SELECT rowid, {ranking} AS score
            FROM {words}
            WHERE {words} MATCH ?2
            {within}
            ORDER BY score DESC, rowid DESC
            LIMIT {depth}
            """
        passages = [*con.execute(statement, (*asked, *values))]
        found = _admitted(con, passages, restriction)
        if len(found) >= limit or len(passages) < depth:
            return [(score / best, created, seq, memory) for score, created, seq, memory in found]
        depth *= 4  # filters took many out, or long memories took several places each
        within, values = _within(restriction)


def _within(restriction: Restriction) -> Condition:
    where, values = restriction.condition()
    return f"AND rowid / 256 IN (SELECT seq FROM {sqlite_scope.memories(restriction)} WHERE {where})", values


def _admitted(
    con: apsw.Connection, passages: Iterable[tuple[int, float]], restriction: Restriction
) -> list[Found]:
    """The memories of these passages that the restriction admits: best score, time and order of arrival, id."""
    scores: dict[int, float] = {}
    for rowid, score in passages:
        scores.setdefault(rowid // 256, score)
    where, values = restriction.condition()
    rows = con.execute(
        # CROSS JOIN keeps the order: each memory by its primary key.
        f"""
        SELECT memories.seq, memories.created_at, memories.id
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value
        WHERE {where}
        """,
        (json.dumps(list(scores)), *values),
    )
    return [(scores[seq], created, seq, memory) for seq, created, memory in rows]


def rarities(con: apsw.Connection, words: Sequence[str]) -> dict[str, float]:
    """How much each word tells."""
    if not words:
        return {}
    rows = _rows(con, HOT)
    stems = _stems(con, words)
    known = _rows_with(con, set(stems.values()), rows, HOT)
    return {word: rarity_of(known.get(stem, 0), rows) for word, stem in stems.items()}


def words_held(con: apsw.Connection, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each memory the words of the text that it holds."""
    words = [*_stems(con, query_words(text))]
    if not words or not ids:
        return {}
    which, values = among("memories.id", ids)
    numbers: dict[str, set[int]] = {}
    for table, _ in (HOT, ARCHIVED):
        found = con.execute(
            f"""
            SELECT memories.id, phrases_held({table})
            FROM memories
            CROSS JOIN {table} ON {table}.rowid BETWEEN memories.seq * 256 AND memories.seq * 256 + 255
            WHERE {table} MATCH ?
            AND {which}
            """,
            (_expression(words, ()), *values),
        )
        for memory, held in found:
            numbers.setdefault(memory, set()).update(map(int, held.split()))
    return {memory: tuple(words[number] for number in sorted(held)) for memory, held in numbers.items()}


def _indexed_rows(api: apsw.FTS5ExtensionApi, *_: apsw.SQLiteValue) -> int:
    return api.row_count


def _phrases_held(api: apsw.FTS5ExtensionApi, *_: apsw.SQLiteValue) -> str:
    return " ".join(str(number) for number in range(api.phrase_count) if api.phrase_columns(number))


def _small_bm25(api: apsw.FTS5ExtensionApi, *arguments: apsw.SQLiteValue) -> float:
    """BM25 with weights that are handed in, one for each word of the expression.

    FTS5's own gives a word in half of the rows no weight at all, so that a store of three memories would find
    nothing. In an index of more rows the two agree, and FTS5's is faster.
    """
    if api.aux_data is None:
        weights = [float(weight) for weight in str(arguments[0]).split()]
        api.aux_data = weights, api.column_total_size(0) / api.row_count
    weights, average = cast("tuple[list[float], float]", api.aux_data)
    damping = 1.2 * (0.25 + 0.75 * api.column_size(0) / average)
    counts = (len(api.phrase_locations(number)[0]) for number in range(len(weights)))
    return sum(weight * count * 2.2 / (count + damping) for weight, count in zip(weights, counts, strict=True))


def _rows(con: apsw.Connection, index: Index) -> int:
    counted = con.execute(f"SELECT indexed_rows({index.table}) FROM {index.table} LIMIT 1")
    return next((int(rows) for (rows,) in counted), 0)


def _frequencies(con: apsw.Connection, words: Iterable[str], rows: int, index: Index) -> dict[str, int]:
    """In how many rows each word stands; of words with the same stem only the first is kept."""
    by_stem: dict[str, str] = {}
    for word, stem in _stems(con, words).items():
        by_stem.setdefault(stem, word)
    known = _rows_with(con, by_stem, rows, index)
    return {word: int(known.get(stem, 0)) for stem, word in by_stem.items()}


def _rows_with(con: apsw.Connection, stems: Iterable[str], rows: int, index: Index) -> dict[str, int]:
    """In how many rows each of these stems stands; those in none are left out.

    Common ones are remembered until the index has so many more rows that it might matter: counting reads them all.
    """
    remembered = _remembered.setdefault(con, {})
    known: dict[str, int] = {}
    unknown: list[str] = []
    for stem in stems:
        count, of_rows = remembered.get((index, stem), (0, 0))
        if count > STEADY * abs(rows - of_rows):
            known[stem] = count
        else:
            unknown.append(stem)
    counted = con.execute(
        f"""
        SELECT known.term, known.doc
        FROM json_each(?) AS wanted
        CROSS JOIN {index.vocabulary} AS known ON known.term = wanted.value
        WHERE known.col = 'text'
        """,
        (json.dumps(unknown),),
    )
    for stem, count in counted:
        known[stem] = count
        if count >= COMMON_FROM_COUNT:
            remembered[index, stem] = count, rows
    return known


def _stems(con: apsw.Connection, words: Iterable[str]) -> dict[str, str]:
    """The words as the index keeps them, without those in which its tokenizer sees no word."""
    tokenize = con.fts5_tokenizer("porter", TOKENIZER)
    stems = {}
    for word in words:
        tokens = tokenize(term(word).encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
        stems[word] = "".join(str(token[0]) for token in tokens)
    return {word: stem for word, stem in stems.items() if stem}


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
