"""Finding by words: BM25 over the FTS5 table `words`, filtered before the cut.

Query text never becomes FTS5 syntax: it is reduced to words, and each word is asked for as a quoted phrase.

What a caller may not see must not show in its scores. FTS5 counts words over the whole table, which is right and fast
where nothing is hidden. Else frequencies and lengths come from `passages`, which says whose each row is, and the same
formula is computed here.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import apsw

from scrubjay.stores.sqlite import filters as sqlite_filters
from scrubjay.stores.sqlite.filters import Restriction, Value, among, change_of, looked_up, seen
from scrubjay.stores.tables.sql import Condition, View
from scrubjay.text.stems import stem_of
from scrubjay.text.words import COMMON_FROM_ROWS, DECIMALS, SMALL_ROWS, query_words, rarity_of, term, weights_of
from scrubjay.values.frozen import replace
from scrubjay.values.memory import State
from scrubjay.values.search import Column, Match

if TYPE_CHECKING:  # a search by words alone needs no numpy
    import numpy as np
    from numpy.typing import NDArray

    from scrubjay.stores.sqlite.postings import Postings

    Ints = NDArray[np.int64]

STEADY = 20  # a word is counted again when a twentieth of the rows that hold it may have come or gone
MOST_REMEMBERED = 10_000  # counts of words, per connection
NARROW = 4  # how many times as many rows there are as the caller sees, so that its spaces are asked for first
Admitted = tuple[int, int, str]  # a memory: order and time of arrival, id


class Found(NamedTuple):
    """What words found, best first, equal ones newest first, as columns: lists, or arrays of an index."""

    scores: Column  # may be above one
    created: Column
    seqs: Column
    ids: Any

    @classmethod
    def of(cls, scores: Mapping[int, float], admitted: Iterable[Admitted]) -> Found:
        rows = sorted(((scores[seq], created, seq, memory) for seq, created, memory in admitted), reverse=True)
        return cls(*zip(*rows, strict=True)) if rows else NOTHING

    def first(self, limit: int) -> Found:
        return self if len(self.seqs) <= limit else Found(*(column[:limit] for column in self))


NOTHING = Found((), (), (), ())


class Weighed(NamedTuple):
    """What words found, best first, as columns: lists, or arrays of postings."""

    rows: Column  # of FTS5's table
    weights: Column
    best: float  # the weight that is worth one

    def scores(self) -> dict[int, float]:
        """By memory. Of a memory's passages the best counts, which is the first."""
        passages = zip(map(int, reversed(self.rows)), map(float, reversed(self.weights)), strict=True)
        return {rowid // 256: round(weight / self.best, DECIMALS) for rowid, weight in passages}


Admit = Callable[[Restriction, Weighed], Found]
Count = Callable[[Sequence[str]], dict[str, int]]  # in how many rows each of these stems stands
Weigh = Callable[[int, bool], tuple[Column, Column]]  # so many of the best; only of memories that pass, or of all


def register(con: apsw.Connection) -> None:
    """Give a connection the functions that the statements here use."""
    con.register_fts5_function("own_bm25", _own_bm25)


def count_passages(con: apsw.Connection, memory: int) -> None:
    """Let `passages` follow the rows of words that a memory has now."""
    con.execute("DELETE FROM passages WHERE id BETWEEN ?1 * 256 AND ?1 * 256 + 255", (memory,))
    add_passages(con, memory)


def add_passages(con: apsw.Connection, first: int, last: int | None = None) -> None:
    """The same for a memory that has none counted, or for all from one to another."""
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


class Seen(NamedTuple):
    """What a caller sees of an index."""

    views: tuple[View, ...] | None  # None: all of it, whatever the views that it asks for
    rows: int
    words: int  # in these rows; 0 if not needed
    everything: bool  # nothing in the index is hidden
    narrow: bool  # most is
    changes: int  # while it stays, so do all counts

    def condition(self) -> Condition:
        return ("TRUE", []) if self.views is None else seen(self.views, "passages")


_remembered: WeakKeyDictionary[apsw.Connection, dict[tuple[Index, str], tuple[int, int, int]]] = WeakKeyDictionary()
_counted: WeakKeyDictionary[apsw.Connection, dict[tuple[Index, str, tuple[View, ...]], tuple[int, int]]] = (
    WeakKeyDictionary()
)


READ_FOR_FEW = 30_000  # rows of words that are read for a question to few memories, if the next may have them too
READ_AT_ONCE = 20_000  # rows, up to which those with a word are read to count them; of more, if they will be weighed
SCANNED = 50  # rows with a word that are looked through rather than one memory looked up

HOT = Index("words", "vocabulary", 0)
ARCHIVED = Index("archived_words", "archived_vocabulary", 1)  # of archived memories


def match(
    con: apsw.Connection,
    text: str,
    restriction: Restriction,
    limit: int,
    *,
    admit: Admit | None = None,
    postings: Callable[[], Postings] | None = None,
) -> list[Match]:
    # Few rows are weighed by FTS5 sooner than what was added is read for them.
    weigh = postings if _totals(con, HOT)[0] >= COMMON_FROM_ROWS else None
    found = matched(con, text, restriction, limit, admit or partial(found_by_rows, con), postings=weigh)
    return [Match(memory, min(float(score), 1.0)) for score, memory in zip(found.scores, found.ids, strict=True)]


def matched(
    con: apsw.Connection,
    text: str,
    restriction: Restriction,
    limit: int,
    admit: Admit,
    *,
    within: Ints | None = None,
    postings: Callable[[], Postings] | None = None,
) -> Found:
    """The best by words. `admit` says which memories a restriction lets pass; `within` are all that it may let pass,
    where they are few and known. `postings` weigh in a large store, if given."""
    ask = partial(_matched, con, text, restriction, limit, admit=admit, within=within)
    found = ask(index=HOT, postings=postings)
    if State.ARCHIVED in restriction.states:
        found = _together(found, ask(index=ARCHIVED))
    return found.first(limit)  # before what is above one becomes one, or the newest of the best would come first


def _together(one: Found, other: Found) -> Found:
    rows = sorted((*zip(*one, strict=True), *zip(*other, strict=True)), reverse=True)
    return Found(*zip(*rows, strict=True)) if rows else NOTHING


def _matched(
    con: apsw.Connection,
    text: str,
    restriction: Restriction,
    limit: int,
    *,
    index: Index,
    admit: Admit,
    within: Ints | None,
    postings: Callable[[], Postings] | None = None,
) -> Found:
    shown = _seen(con, restriction.views, index, sees_all=restriction.sees_all)
    spaces = restriction.spaces
    will_be_read = within is None and _in_most(con, spaces, index)
    at_once = shown.everything and (will_be_read or shown.rows <= READ_AT_ONCE)
    count = _counting(con, index, postings, to_weigh=at_once)
    frequencies = _frequencies(con, query_words(text), shown, count, index)
    if not shown.rows or not any(frequencies.values()):  # the first row may have come since rows were counted
        return NOTHING
    weights = weights_of(frequencies, shown.rows)
    heavy = {word: weight for word, weight in weights.items() if frequencies[word]}
    matching_rows = sum([frequencies[word] for word in heavy])
    scope = _scope(con, spaces, shown, index, matching_rows=matching_rows)
    best = sum(weights.values())
    weigh = None
    if postings is not None and (not scope or (within is not None and shown.everything)):
        few = matching_rows <= READ_FOR_FEW
        weigh = _by_postings(con, restriction, heavy, few=few, shown=shown, within=within, postings=postings())
    if weigh is None:
        weigh = _by_fts5(con, restriction, heavy, scope=scope, shown=shown, within=within, index=index)
    depth = limit + limit // 4
    narrowed = within is None and shown.rows >= COMMON_FROM_ROWS and sqlite_filters.is_small(con, restriction)
    if within is None and postings is not None and restriction.selects:
        narrowed = narrowed or postings().scopes.knows(restriction)
    while True:
        # The best passages first, then their memories' filters: reading the memory of every match costs far more.
        # Where the filters take most of them out, the memories that they admit come first.
        passages = Weighed(*weigh(depth, narrowed), best)
        found = admit(replace(restriction, by_rows=()) if narrowed else restriction, passages)
        if len(found.seqs) >= limit or len(passages.rows) < depth:
            return found
        # Filters took many out, or long memories took several places each.
        narrowed = narrowed or (within is None and 2 * len(found.seqs) < limit)
        depth *= 4 if narrowed else 3


def _by_fts5(
    con: apsw.Connection,
    restriction: Restriction,
    weights: Mapping[str, float],
    *,
    scope: tuple[int, ...],
    shown: Seen,
    within: Ints | None,
    index: Index,
) -> Weigh:
    words = index.table
    asked = (_formula(shown, [*weights.values()]), _expression(weights, scope))
    ranking = f"-bm25({words}, 1.0, 0.0)" if shown.everything and shown.rows >= SMALL_ROWS else f"own_bm25({words}, ?1)"
    tables, visible, hidden_out = words, "", list[Value]()
    if not shown.everything:
        where, hidden_out = shown.condition()
        tables, visible = f"{words} CROSS JOIN passages ON passages.id = {words}.rowid", f"AND {where}"

    def weigh(depth: int, narrowed: bool) -> tuple[Column, Column]:
        inside, values = "", list[Any]()
        if within is not None:
            inside, values = f"AND {words}.rowid / 256 IN (SELECT value FROM carray(?))", [apsw.carray(within)]
        elif narrowed:
            admitted, values = _admitted_by(restriction)
            inside = f"AND {words}.rowid / 256 IN ({admitted})"
        statement = f"""
            SELECT {words}.rowid, {ranking} AS score
            FROM {tables}
            WHERE {words} MATCH ?2
            {visible}
            {inside}
            ORDER BY score DESC, {words}.rowid DESC
            LIMIT {depth}
            """
        passages: list[Any] = con.execute(statement, (*asked, *hidden_out, *values)).fetchall()
        rows, scores = zip(*passages, strict=True) if passages else ((), ())
        return rows, scores

    return weigh


def _by_postings(
    con: apsw.Connection,
    restriction: Restriction,
    weights: Mapping[str, float],
    *,
    few: bool,
    shown: Seen,
    within: Ints | None,
    postings: Postings,
) -> Weigh | None:
    """None if FTS5 is quicker: where few memories are meant and the rows of words, unless they are `few` as well, would
    be read for them alone; and for a reader whose snapshot is older than what others have read."""
    _, all_words, version = _totals(con, HOT)
    if shown.everything:
        shown = shown._replace(views=None, words=all_words)
    heavy = {stem_of(word): weight for word, weight in weights.items()}
    again = postings.are_of(version) and few
    if within is not None and not again and not postings.keeps(heavy, shown):
        return None
    rows = postings.weights(con, heavy, shown, version)
    if rows is None:
        return None
    if within is not None:
        rows = rows.of(within)

    def weigh(depth: int, narrowed: bool) -> tuple[Column, Column]:
        return (rows.of(postings.scopes.members(con, restriction)) if narrowed else rows).best(depth)

    return weigh


def _seen(con: apsw.Connection, views: tuple[View, ...], index: Index, *, sees_all: bool) -> Seen:
    rows, all_words, _ = _totals(con, index)
    if sees_all:
        words = all_words if rows < SMALL_ROWS else 0
        return Seen(views=None, rows=rows, words=words, everything=True, narrow=False, changes=0)
    visible, words, changes = _summed(con, seen(views, "passage_totals"), index)
    return Seen(
        views=views,
        rows=visible,
        words=words,
        everything=visible == rows,
        narrow=visible * NARROW < rows,
        changes=changes,
    )


def _summed(con: apsw.Connection, condition: Condition, index: Index) -> tuple[int, int, int]:
    where, values = condition
    [(rows, words, changes)] = con.execute(
        # the primary key
        f"""
        SELECT coalesce(sum(passages), 0), coalesce(sum(words), 0), coalesce(sum(changes), 0)
        FROM passage_totals
        WHERE archived = ?
        AND {where}
        """,
        (index.archived, *values),
    )
    return int(rows), int(words), int(changes)


def _totals(con: apsw.Connection, index: Index) -> tuple[int, int, int]:
    """How many rows there are, how many words they hold, and a number that rises with every change of them."""
    return looked_up(con, index, lambda: _summed(con, ("TRUE", []), index))


def _formula(shown: Seen, weights: Sequence[float]) -> str:
    """What `own_bm25` needs: by which columns a row's length is told, the average, and the weight of each word.

    As FTS5 does it, where there are enough rows: the scope's one word counts as well.
    """
    column, words = (0, shown.words) if shown.rows < SMALL_ROWS else (-1, shown.words + shown.rows)
    return " ".join(map(repr, (column, words / max(shown.rows, 1), *weights)))


def _admitted_by(restriction: Restriction) -> tuple[str, list[Any]]:
    where, values = restriction.condition()
    return f"SELECT seq FROM {sqlite_filters.small_table(restriction)} WHERE {where}", [*values]


def admitted(con: apsw.Connection, restriction: Restriction, seqs: Sequence[int]) -> list[Admitted]:
    """Those of these memories that the restriction admits."""
    where, values = restriction.condition()
    rows: list[Any] = con.execute(
        # CROSS JOIN keeps the order: each memory by its primary key.
        f"""
        SELECT memories.seq, memories.created_at, memories.id
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.seq = wanted.value
        WHERE {where}
        """,
        (json.dumps(seqs), *values),
    ).fetchall()
    return rows


def found_by_rows(con: apsw.Connection, restriction: Restriction, weighed: Weighed) -> Found:
    scores = weighed.scores()
    return Found.of(scores, admitted(con, restriction, [*scores]))


def rarities(
    con: apsw.Connection,
    words: Sequence[str],
    views: tuple[View, ...],
    *,
    sees_all: bool,
    postings: Callable[[], Postings] | None = None,
) -> dict[str, float]:
    """How much each word tells."""
    if not words:
        return {}
    shown = _seen(con, views, HOT, sees_all=sees_all)
    stems = {word: stem for word in words if (stem := stem_of(word))}
    known = _rows_with(con, {stem: word for word, stem in stems.items()}, shown, _counting(con, HOT, postings), HOT)
    return {word: rarity_of(known.get(stem, 0), shown.rows) for word, stem in stems.items()}


def numbers_of(con: apsw.Connection, ids: Sequence[str]) -> dict[int, str]:
    """Memories by their number in this store, which never changes."""
    rows: Iterable[Any] = con.execute(
        # the unique index of ids
        "SELECT seq, memories.id FROM json_each(?) AS wanted CROSS JOIN memories ON memories.id = wanted.value",
        (json.dumps(list(ids)),),
    )
    return dict(rows)


def words_held(
    con: apsw.Connection, text: str, wanted: Mapping[int, str], postings: Postings | None = None
) -> dict[str, tuple[str, ...]]:
    """For each memory, by its number, the words of the text that it holds. What `postings` have is not looked for."""
    stems = {word: stem for word in query_words(text) if (stem := stem_of(word))}
    if not stems or not wanted:
        return {}
    held: dict[str, dict[str, None]] = {}
    for index in (HOT, ARCHIVED):
        indexed, _, version = _totals(con, index)
        if not indexed:
            continue  # most stores have archived nothing
        known = postings.holding(stems.values(), wanted, version) if postings is not None and index is HOT else {}
        others = [stem for stem in stems.values() if stem not in known]
        counts = _common_remembered(con, others, indexed, partial(vocabulary, con, index), index) if others else {}
        for word, stem in stems.items():
            found: Iterable[int] = known.get(stem, ())
            if stem in counts:
                # One look through all rows that hold a word, or, if there are very many of them, one for each memory.
                common = counts[stem] > SCANNED * len(wanted)
                found = _memories_with(con, word, wanted, index, each=common)
            for seq in found:
                held.setdefault(wanted[seq], {})[word] = None
    return {memory: tuple(words) for memory, words in held.items()}


def _memories_with(
    con: apsw.Connection, word: str, wanted: Iterable[int], index: Index, *, each: bool
) -> Iterator[int]:
    """Of the memories that are wanted those with a word; each is looked for, or all rows with it are looked through."""
    table = index.table
    if each:
        near = f"{table}.rowid BETWEEN wanted.value * 256 AND wanted.value * 256 + 255"
        sql = f"SELECT {table}.rowid FROM carray(?) AS wanted CROSS JOIN {table} ON {near} WHERE {table} MATCH ?"
    else:
        sql = f"SELECT rowid FROM {table} WHERE rowid / 256 IN (SELECT value FROM carray(?)) AND {table} MATCH ?"
    those = apsw.carray(array("q", wanted))
    rows: list[Any] = con.execute(sql, (those, _expression([word], ()))).fetchall()
    return (rowid // 256 for (rowid,) in rows)


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


def _counting(
    con: apsw.Connection, index: Index, postings: Callable[[], Postings] | None, *, to_weigh: bool = False
) -> Count:
    """How the rows that hold a word are counted: by FTS5, or where it can be told from what was counted before."""
    if postings is None:
        return partial(vocabulary, con, index)
    _, _, version = _totals(con, index)
    return partial(postings().counted, con, version, to_weigh=to_weigh)


def _frequencies(con: apsw.Connection, words: Iterable[str], shown: Seen, count: Count, index: Index) -> dict[str, int]:
    """In how many rows each word stands; of words with the same stem only the first is kept."""
    by_stem: dict[str, str] = {}
    for word in words:
        by_stem.setdefault(stem_of(word), word)
    by_stem.pop("", None)  # the tokenizer sees no word
    known = _rows_with(con, by_stem, shown, count, index)
    return {word: int(known.get(stem, 0)) for stem, word in by_stem.items()}


def _rows_with(
    con: apsw.Connection, stems: Mapping[str, str], shown: Seen, count: Count, index: Index
) -> dict[str, int]:
    """In how many rows that are seen each of these stems stands; those in none may be left out."""
    if shown.views is None:
        return _common_remembered(con, stems, shown.rows, count, index)
    known = count([*stems])
    if shown.everything:
        return known
    return {stem: _visible_rows_with(con, stem, stems[stem], shown, index) for stem in known}


def _common_remembered(
    con: apsw.Connection, stems: Iterable[str], rows: int, count_rows: Count, index: Index
) -> dict[str, int]:
    """In how many rows of all: remembered until so much has changed that it might matter. Counting reads them all."""
    remembered = _remembered.setdefault(con, {})
    change = change_of(con)
    known: dict[str, int] = {}
    unknown: list[str] = []
    for stem in stems:
        count, of_rows, of_change = remembered.get((index, stem), (0, -1, -1))
        if count >= STEADY * max(abs(rows - of_rows), abs(change - of_change)):
            known[stem] = count
        else:
            unknown.append(stem)
    if unknown:
        if len(remembered) + len(unknown) > MOST_REMEMBERED:
            remembered.clear()
        counted = count_rows(unknown)
        known |= counted
        remembered.update({(index, stem): (counted.get(stem, 0), rows, change) for stem in unknown})
    return {stem: count for stem, count in known.items() if count}


def vocabulary(con: apsw.Connection, index: Index, stems: Sequence[str]) -> dict[str, int]:
    """In how many rows each of these stems stands, without those in none."""
    rows = con.execute(
        f"""
        SELECT known.term, known.doc
        FROM json_each(?) AS wanted
        CROSS JOIN {index.vocabulary} AS known ON known.term = wanted.value
        WHERE known.col = 'text'
        """,
        (json.dumps(stems),),
    )
    return {str(stem): int(count) for stem, count in rows}


def _visible_rows_with(con: apsw.Connection, stem: str, word: str, shown: Seen, index: Index) -> int:
    """Counted by looking at each row with the word; remembered for as long as nothing changes that the caller sees.
    A count that is nearly right would tell by its error what is hidden."""
    assert shown.views is not None
    remembered = _counted.setdefault(con, {})
    count, changes = remembered.get((index, stem, shown.views), (0, -1))
    if changes != shown.changes:
        if len(remembered) >= MOST_REMEMBERED:
            remembered.clear()
        where, values = shown.condition()
        [(count,)] = con.execute(
            f"""
            SELECT count(*)
            FROM {index.table}
            CROSS JOIN passages ON passages.id = {index.table}.rowid
            WHERE {index.table} MATCH ?
            AND {where}
            """,
            (_expression([word], _spaces_of(shown)), *values),
        )
        remembered[index, stem, shown.views] = count, shown.changes
    return int(count)


def _spaces_of(shown: Seen) -> tuple[int, ...]:
    """The spaces to ask for by token; none where that would not leave far fewer rows."""
    spaces = tuple(view.space for view in shown.views or () if view.space is not None)
    return spaces if shown.narrow and len(spaces) == len(shown.views or ()) else ()


def _in_most(con: apsw.Connection, spaces: tuple[int, ...] | None, index: Index) -> bool:
    """Whether most rows are in the spaces that are asked for: then no space narrows down what words find."""
    return spaces is None or 2 * _rows_in(con, spaces, index) > _totals(con, index)[0]


def _rows_in(con: apsw.Connection, spaces: tuple[int, ...], index: Index) -> int:
    return looked_up(con, (index, spaces), lambda: _summed(con, among("space", spaces), index))[0]


def _scope(
    con: apsw.Connection, spaces: tuple[int, ...] | None, shown: Seen, index: Index, *, matching_rows: int
) -> tuple[int, ...]:
    """The spaces to look in by token, if that leaves fewer rows to weigh than the words alone do."""
    if not shown.everything:
        return _spaces_of(shown)
    if spaces is None:
        return ()
    return spaces if 2 * _rows_in(con, spaces, index) <= matching_rows else ()


def _expression(words: Iterable[str], spaces: tuple[int, ...]) -> str:
    """An FTS5 expression: any of the words, in one of the spaces."""
    text = " OR ".join(map(_phrase, map(term, words)))
    scope = " OR ".join(map(_phrase, map(scope_token, spaces)))
    return f"text : ({text}) AND scope : ({scope})" if spaces else f"text : ({text})"


def _phrase(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
