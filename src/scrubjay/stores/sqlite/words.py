"""Finding by words: BM25 over the FTS5 table `words`.

Query text never becomes FTS5 syntax: it is reduced to words, and each word is asked for as a quoted phrase.

What a caller may not see must not show in its scores. FTS5 counts words over the whole table, which is right and fast
where nothing is hidden. Else frequencies and lengths come from `passages`, which says whose each row is, and the same
formula is computed here.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import apsw

from scrubjay.stores.sqlite.filters import MANY, SMALL, Found, Members, Scores, Within, as_carray, look_up, visible_rows
from scrubjay.stores.tables.sql import Condition, View
from scrubjay.text.stems import stem_of
from scrubjay.text.words import (
    DECIMALS,
    MAX_PASSAGES,
    SMALL_ROWS,
    found_by,
    query_words,
    rarity_of,
    term,
    weights_of,
    words_to_index,
)
from scrubjay.values.memory import Memory, State

NARROW = 4  # how many times as many rows there are as the caller sees, so that its spaces are asked for first


def register(con: apsw.Connection) -> None:
    """Give a connection the functions that the statements here use."""
    con.register_fts5_function("own_bm25", _own_bm25)


def count_passages(con: apsw.Connection, memory: int) -> None:
    """Make the rows of `passages` for a memory's words again."""
    con.execute("DELETE FROM passages WHERE id BETWEEN ?1 * 256 AND ?1 * 256 + 255", (memory,))
    add_passages(con, memory)


def add_passages(con: apsw.Connection, first: int, last: int | None = None) -> None:
    """Add the rows of `passages` for a memory that has none, or for all from one to another."""
    con.execute(
        """
        INSERT INTO passages (id, space, audience, archived, length)
        SELECT id, space, audience, archived, length
        FROM indexed_passages
        WHERE id BETWEEN ?1 * 256 AND ?2 * 256 + 255
        """,
        (first, first if last is None else last),
    )


def count_all_passages(con: apsw.Connection) -> None:
    con.execute("DELETE FROM passages")
    con.execute("UPDATE passage_totals SET passages = 0, words = 0, changes = changes + 1")
    con.execute(
        """
        INSERT INTO passages (id, space, audience, archived, length)
        SELECT id, space, audience, archived, length FROM indexed_passages
        """
    )


def scope_token(space: int) -> str:
    """The value of the `scope` column; private-use characters keep it apart from words in the text."""
    return f"\ue000{space}"


class Index(NamedTuple):
    """One of the two tables of words, and the words that it holds."""

    table: str
    vocabulary: str
    archived: int  # as in `passages`


HOT = Index("words", "vocabulary", 0)
ARCHIVED = Index("archived_words", "archived_vocabulary", 1)  # of archived memories


class VisibleRows(NamedTuple):
    """The rows of an index that a caller sees, and how many there are."""

    views: tuple[View, ...]
    rows: int
    words: int  # in these rows
    everything: bool  # nothing in the index is hidden
    narrow: bool  # most of it is

    def condition(self) -> Condition:
        return visible_rows(self.views, "passages")


class WeighedWords(NamedTuple):
    """The words of a question that some row holds, with the weight of each."""

    table: str
    shown: VisibleRows
    weights: Mapping[str, float]


def match(members: Members, text: str, limit: int) -> list[Found]:
    """Find the best by words; scores may be above one."""
    found = _match(members, text, limit, HOT)
    if State.ARCHIVED in members.restriction.states:
        found = sorted(found + _match(members, text, limit, ARCHIVED), reverse=True)
    return found[:limit]


def _match(members: Members, text: str, limit: int, index: Index) -> list[Found]:
    con, restriction = members.con, members.restriction
    shown = _visible_rows(con, restriction.views, index, sees_all=restriction.sees_all)
    frequencies = _frequencies(con, query_words(text), shown, index)
    if not any(frequencies.values()):
        return []
    weights = weights_of(frequencies, shown.rows)
    asked = WeighedWords(index.table, shown, {word: weight for word, weight in weights.items() if frequencies[word]})
    most = sum(weights.values())  # a score of one

    def score(depth: int, within: Within) -> Scores:
        passages = _weigh(con, asked, depth, within)
        # Of a memory's passages the best counts, which is the first.
        scores = {row // MAX_PASSAGES: round(weight / most, DECIMALS) for row, weight in reversed(passages)}
        return scores, len(passages) < depth

    return members.find_best(limit, score, few_at_most=SMALL if shown.rows >= MANY else 0)


def _weigh(con: apsw.Connection, asked: WeighedWords, depth: int, within: Within) -> list[tuple[int, float]]:
    """Find so many of the rows that weigh most, heaviest first."""
    words, shown, weights = asked.table, asked.shown, asked.weights
    values: list[Any] = [_formula(shown, [*weights.values()]), _expression(weights, _spaces_of(shown))]
    ranking = f"-bm25({words}, 1.0, 0.0)" if shown.everything and shown.rows >= SMALL_ROWS else f"own_bm25({words}, ?1)"
    source, conditions = words, [f"{words} MATCH ?2"]
    if not shown.everything:
        where, hidden = shown.condition()
        source = f"{words} CROSS JOIN passages ON passages.id = {words}.rowid"
        conditions.append(where)
        values += hidden
    if within is not None:
        conditions.append(f"{words}.rowid / {MAX_PASSAGES} IN (SELECT value FROM carray(?))")
        values.append(as_carray(within))
    rows: list[Any] = con.execute(
        f"""
        SELECT {words}.rowid, {ranking} AS score
        FROM {source}
        WHERE {" AND ".join(conditions)}
        ORDER BY score DESC, {words}.rowid DESC
        LIMIT {depth}
        """,
        values,
    ).fetchall()
    return rows


def _visible_rows(con: apsw.Connection, views: tuple[View, ...], index: Index, *, sees_all: bool) -> VisibleRows:
    rows, words = _read_totals(con, index, ("TRUE", []))
    if sees_all:
        return VisibleRows(views, rows, words, everything=True, narrow=False)
    visible, its_words = _read_totals(con, index, visible_rows(views, "passage_totals"))
    return VisibleRows(views, visible, its_words, everything=visible == rows, narrow=visible * NARROW < rows)


def _read_totals(con: apsw.Connection, index: Index, condition: Condition) -> tuple[int, int]:
    """Read how many rows meet a condition, and how many words they hold."""
    where, values = condition
    statement = f"""
        SELECT coalesce(sum(passages), 0), coalesce(sum(words), 0)
        FROM passage_totals
        WHERE archived = ?
        AND {where}
        """  # the primary key
    given = (index.archived, *values)
    rows: list[Any] = look_up(con, (statement, *given), lambda: con.execute(statement, given).fetchall())
    return int(rows[0][0]), int(rows[0][1])


def _formula(shown: VisibleRows, weights: Sequence[float]) -> str:
    """Make the parameter of `own_bm25`: the columns that hold a row's length, the average, and the weight of each word.

    As FTS5 does it, where there are enough rows: the scope's one word counts as well.
    """
    column, words = (0, shown.words) if shown.rows < SMALL_ROWS else (-1, shown.words + shown.rows)
    return " ".join(map(repr, (column, words / max(shown.rows, 1), *weights)))


def rarities(
    con: apsw.Connection, words: Sequence[str], views: tuple[View, ...], *, sees_all: bool
) -> dict[str, float]:
    """Compute how rare each word is among the visible rows."""
    stems = {word: stem for word in words if (stem := stem_of(word))}
    if not stems:
        return {}
    shown = _visible_rows(con, views, HOT, sees_all=sees_all)
    known = _count_rows_with(con, {stem: word for word, stem in stems.items()}, shown, HOT)
    return {word: rarity_of(known.get(stem, 0), shown.rows) for word, stem in stems.items()}


def words_held(con: apsw.Connection, text: str, wanted: Mapping[int, str]) -> dict[str, tuple[str, ...]]:
    """Find the words of the text that each memory holds; memories come by their numbers."""
    held: dict[str, list[str]] = {}
    for word in query_words(text) if wanted else ():
        for index in (HOT, ARCHIVED) if stem_of(word) else ():
            rows = con.execute(
                f"""
                SELECT DISTINCT rowid / {MAX_PASSAGES}
                FROM {index.table}
                WHERE {index.table} MATCH ?
                AND rowid / {MAX_PASSAGES} IN (SELECT value FROM carray(?))
                """,
                (_expression([word], ()), as_carray(wanted)),
            )
            for (seq,) in rows:
                held.setdefault(wanted[seq], []).append(word)
    return {memory: tuple(words) for memory, words in held.items()}


def _own_bm25(api: apsw.FTS5ExtensionApi, *arguments: apsw.SQLiteValue) -> float:
    """BM25 with weights and an average length that are handed in (see `_formula`), step by step as FTS5 computes it.

    FTS5's own gives a word in half of the rows no weight at all, so that a store of three memories would find nothing,
    and it knows no rows but all. Where neither matters the two agree, and FTS5's is faster.
    """
    if api.aux_data is None:
        column, average, *weights = str(arguments[0]).split()
        api.aux_data = int(column), float(average), [*enumerate(map(float, weights))]
    known, average_length, weighed = cast("tuple[int, float, list[tuple[int, float]]]", api.aux_data)
    damping = 1.2 * (1 - 0.75 + 0.75 * api.column_size(known) / average_length)
    score, offsets = 0.0, api.phrase_column_offsets
    for number, weight in weighed:
        if count := len(offsets(number, 0)):
            score += weight * ((count * 2.2) / (count + damping))
    return score


def _frequencies(con: apsw.Connection, words: Iterable[str], shown: VisibleRows, index: Index) -> dict[str, int]:
    """Count the rows that hold each word; of words with the same stem only the first is kept."""
    by_stem: dict[str, str] = {}
    for word in words:
        by_stem.setdefault(stem_of(word), word)
    by_stem.pop("", None)  # the tokenizer sees no word
    known = _count_rows_with(con, by_stem, shown, index) if shown.rows else {}
    return {word: known.get(stem, 0) for stem, word in by_stem.items()}


def _count_rows_with(
    con: apsw.Connection, stems: Mapping[str, str], shown: VisibleRows, index: Index
) -> dict[str, int]:
    """Count the visible rows that hold each stem; stems that no row holds are left out."""
    rows = con.execute(
        f"""
        SELECT known.term, known.doc
        FROM json_each(?) AS wanted
        CROSS JOIN {index.vocabulary} AS known ON known.term = wanted.value
        WHERE known.col = 'text'
        """,
        (json.dumps([*stems]),),
    )
    known = {str(stem): int(count) for stem, count in rows}
    if shown.everything:
        return known
    # A count that is nearly right would tell by its error what is hidden.
    where, values = shown.condition()
    statement = f"""
        SELECT count(*)
        FROM {index.table}
        CROSS JOIN passages ON passages.id = {index.table}.rowid
        WHERE {index.table} MATCH ?
        AND {where}
        """
    spaces = _spaces_of(shown)
    return {stem: con.execute(statement, (_expression([stems[stem]], spaces), *values)).get for stem in known}


def _spaces_of(shown: VisibleRows) -> tuple[int, ...]:
    """Choose the spaces to ask for by token; none where that would not leave far fewer rows."""
    spaces = tuple(view.space for view in shown.views if view.space is not None)
    return spaces if shown.narrow and len(spaces) == len(shown.views) else ()


def _expression(words: Iterable[str], spaces: tuple[int, ...]) -> str:
    """Make the FTS5 expression for any of the words, in one of the spaces."""
    text = " OR ".join(map(_phrase, map(term, words)))
    scope = " OR ".join(map(_phrase, map(scope_token, spaces)))
    return f"text : ({text}) AND scope : ({scope})" if spaces else f"text : ({text})"


def _phrase(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'


def words_of(seq: int, memory: Memory, space: int) -> list[tuple[int, str, str]]:
    """The rows by which it is found."""
    scope = scope_token(space)
    found = enumerate(found_by(memory))
    return [(seq * MAX_PASSAGES + place, words_to_index(passage), scope) for place, passage in found]
