"""Finding by words: BM25 over `words`, a passage a row.

PostgreSQL finds the passages that hold a word (GIN over a tsvector that we make, see stems.py), and every number that
BM25 needs is at hand: how often a passage holds a word is its lexeme's label, or the number of its positions; how rare
a word is can be read in `vocabulary`, how long passages are in `spaces`. Both are counted within the spaces that are
searched, without what the caller may not see there (`audience_vocabulary`, `audience_passages`), or in the whole store
for those who see all of it. What most filters ask stands beside the words, so that only what they admit is weighed, and
no memory is read. The formula is FTS5's, so that both backends give the same order.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from scrubjay.stores.postgres.filters import CARRIED, SHARED, Restriction, source_of, spaces_of, visible_rows
from scrubjay.stores.postgres.values import Texts, fetch_rows, vector_bytes
from scrubjay.stores.tables.sql import View
from scrubjay.text.stems import counted_stems, stems
from scrubjay.text.words import DECIMALS, SMALL_ROWS, found_by, query_words, rarity_of, weights_of
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Memory
from scrubjay.values.search import Match

if TYPE_CHECKING:
    from scrubjay.embedders.base import Vector

Connection = psycopg.Connection[tuple[Any, ...]]

_DIFFERENT = "({}) IS DISTINCT FROM ({})".format(
    *(", ".join(f"{table}.{name}" for name in CARRIED) for table in ("words", "memories"))
)

COUNTS = {1: "", 2: "C", 3: "B"}  # a lexeme's label for how often a passage holds it; more often: A …
MOST_COUNTED = 255  # … and as many positions, of which a tsvector keeps no more
OFTEN = 5  # with only one position, as earlier versions write it


@dataclass(frozen=True, slots=True)
class Passage:
    """A row of `words`."""

    place: int
    stems: Counter[str]

    @property
    def length(self) -> int:
        return self.stems.total()

    def terms(self, space: str) -> str:
        """The literal of a tsvector."""
        counted = [
            f"'{stem}':1" if count == 1 and stem.isalnum() else f"{quote(stem)}:{_count_positions(count)}"
            for stem, count in self.stems.items()
        ]
        return " ".join([*counted, quote(_scope(space))])


def passages_of(memory: Memory) -> list[Passage]:
    return passages_in(found_by(memory))


def passages_in(found_by: Sequence[str]) -> list[Passage]:
    return [Passage(place, counted_stems(text)) for place, text in enumerate(found_by)]


class Vocabulary:
    """What a transaction adds to the counts of words and passages in each space, written once at its end: a hundred
    memories stored together would otherwise change the same rows a hundred times. Negative numbers take away."""

    def __init__(self) -> None:
        self._words: dict[str, Counter[str]] = {}  # by space
        self._passages: dict[str, list[int]] = {}  # how many, and of how many words

    def count(self, space: str, terms: Iterable[str], length: int, sign: int = 1) -> None:
        """Count a passage that came, or with a negative sign went."""
        known = self._words.setdefault(space, Counter())
        for term in terms:
            known[term] += sign
        passages, words = self._passages.get(space, (0, 0))
        self._passages[space] = [passages + sign, words + sign * length]

    def write(self, con: Connection) -> None:
        """Write what gathered, and start over."""
        gathered, passages = self._words, self._passages
        self._words, self._passages = {}, {}
        for space, terms in gathered.items():
            changed = {term: number for term, number in terms.items() if number}
            if changed or any(passages[space]):
                _add_words(con, space, changed, passages[space])


def _add_words(con: Connection, space: str, changed: Mapping[str, int], passages: list[int]) -> None:
    con.execute(
        # Stems hold no white space, and one text is read faster than an array of many.
        """
        WITH added AS (
            INSERT INTO vocabulary (space, term, passages)
            SELECT %s, *
            FROM unnest(string_to_array(%s, ' '), string_to_array(%s, ' ')::BIGINT[])
            ON CONFLICT (space, term) DO UPDATE SET passages = vocabulary.passages + excluded.passages
        )
        UPDATE spaces SET passages = passages + %s, passage_words = passage_words + %s WHERE name = %s
        """,
        (space, " ".join(changed), " ".join(map(str, changed.values())), *passages, space),
    )
    gone = [term for term, number in changed.items() if number < 0]
    if gone:  # a word that stands nowhere any more may be what was to be erased
        con.execute("DELETE FROM vocabulary WHERE space = %s AND term = ANY(%s) AND passages <= 0", (space, gone))


class Asked(NamedTuple):
    """What the words of a question are worth."""

    weights: Mapping[str, float]  # of the stems that any passage holds
    held_nowhere: frozenset[str]  # the others
    best: float  # what a passage could have at most
    scope: int  # 1 if the word that names the space counts
    average: float  # length of passages
    most_of_all: bool  # see `Statistics`

    def shares(self, scores: Iterable[float]) -> list[float]:
        """Of the best that could be; more than that, where words stand several times."""
        best = self.best
        return [round(score / best, DECIMALS) for score in scores]


def ask_words(text: str, told: Callable[[set[str]], Statistics]) -> Asked | None:
    """None if no passage holds any of the text's words; `told` says what is known of them."""
    words = stems(query_words(text))
    if not words:
        return None
    known = told(set(words.values()))
    if not any(known.frequencies.values()):
        return None
    weights = weights_of(known.frequencies, known.passages)
    # FTS5 counts the word that names the space, in an index that is not small.
    scope = int(known.passages >= SMALL_ROWS)
    return Asked(
        weights={stem: weight for stem, weight in weights.items() if known.frequencies[stem]},
        held_nowhere=frozenset(stem for stem in weights if not known.frequencies[stem]),
        best=sum(weights.values()),
        scope=scope,
        average=scope + known.words / known.passages,
        most_of_all=known.most_of_all,
    )


def match(con: Connection, text: str, restriction: Restriction, limit: int) -> list[Match]:
    found = compare_words(con, text, restriction, limit, None)
    return [Match(memory, score) for memory, score, _ in found]


def compare_words(
    con: Connection, text: str, restriction: Restriction, limit: int, vector: Vector | None
) -> list[tuple[str, float, float | None]]:
    """What words find, its score, and the cosine of the vector with each one's nearest part, if it has vectors of this
    length."""
    worth = ask_words(text, partial(statistics, con, restriction))
    if worth is None:
        return []
    score, scored = _score(worth.weights)
    cosine, compared_with = ("NULL", ()) if vector is None else (_COSINE, (vector_bytes(vector), len(vector)))
    where, values = restriction.condition()
    tables, passages = source_of("words", where)
    within = None if worth.most_of_all else restriction.spaces
    found = fetch_rows(
        con,
        # words_by_term. OFFSET lets damping and score be taken once, and first: what is grouped and sorted then carries
        # no terms along.
        # Numbers of memories are single in the whole store, and quicker to group by than texts.
        # Then, of the best, the primary key of vectors.
        f"""
        SELECT score, created_at, seq, id, {cosine}
        FROM (
            SELECT
                seq, max(score) AS score,
                any_value(space) AS space, any_value(id) AS id, any_value(created_at) AS created_at
            FROM (
                SELECT space, id, created_at, seq, {score} AS score
                FROM (
                    SELECT memories.space, memories.id, memories.created_at, memories.seq, {passages}.terms,
                        1.2::FLOAT8 * (0.25::FLOAT8 + 0.75::FLOAT8 * ({passages}.length + %s) / %s) AS damping
                    FROM {tables}
                    WHERE {passages}.terms @@ %s::TSQUERY
                    AND {where}
                    OFFSET 0
                ) AS passages
                OFFSET 0
            ) AS scored
            GROUP BY seq
            ORDER BY score DESC, created_at DESC, seq DESC
            LIMIT %s
        ) AS found
        """,
        (*compared_with, *scored, worth.scope, worth.average, _any_of(worth.weights, within), *values, limit),
        binary=True,
    )
    shares = worth.shares(score for score, *_ in found)
    ranked = sorted([(share, *row) for share, (_, *row) in zip(shares, found, strict=True)], reverse=True)
    return [(memory, min(score, 1.0), cosine) for score, _, _, memory, cosine in ranked]


_COSINE = """(
    SELECT -min(vectors.vector <#> %s)
    FROM vectors
    WHERE vectors.space = found.space AND vectors.memory = found.seq AND vectors.model = ''
    AND vector_dims(vectors.vector) = %s
)"""


def carry(con: Connection, memories: Collection[tuple[str, int]]) -> None:
    """Let the words of these memories, each a space and a number, follow what filters ask of them."""
    columns = [list(column) for column in zip(*memories, strict=True)]
    con.execute(
        f"""
        UPDATE words SET {", ".join(f"{name} = memories.{name}" for name in CARRIED)}
        FROM unnest(%s::TEXT[], %s::BIGINT[]) AS these (space, memory)
        JOIN memories ON memories.space = these.space AND memories.seq = these.memory
        WHERE words.space = these.space
        AND words.memory = these.memory
        AND {_DIFFERENT}
        """,
        columns,
    )


def count_anew(con: Connection) -> None:
    """In how many passages each word stands, and how many there are, from all of them."""
    for table in ("vocabulary", "audience_vocabulary", "audience_passages"):
        con.execute(f"DELETE FROM {table}")
    con.execute(
        f"""
        INSERT INTO vocabulary (space, term, passages)
        SELECT words.space, lexeme, count(*)
        FROM words
        CROSS JOIN unnest(terms)
        WHERE NOT starts_with(lexeme, '{_scope("")}')
        GROUP BY words.space, lexeme
        """
    )
    con.execute("UPDATE spaces SET passages = 0, passage_words = 0")
    con.execute(
        """
        UPDATE spaces SET passages = counted.passages, passage_words = counted.words
        FROM (SELECT space, count(*) AS passages, sum(length) AS words FROM words GROUP BY space) AS counted
        WHERE counted.space = spaces.name
        """
    )
    con.execute(
        """
        INSERT INTO audience_vocabulary (space, term, audience, passages)
        SELECT words.space, lexeme, audience, count(*)
        FROM words
        CROSS JOIN unnest(terms)
        WHERE audience <> 'shared'
        AND weights IS NOT NULL
        GROUP BY words.space, lexeme, audience
        ORDER BY words.space, lexeme, audience  -- as in the key, which then grows at its end only
        """
    )
    con.execute(
        """
        INSERT INTO audience_passages (space, audience, passages, words)
        SELECT space, audience, count(*), sum(length) FROM words WHERE audience <> 'shared' GROUP BY space, audience
        """
    )


def wrong(con: Connection) -> int:
    """How many passages do not carry what their memory says."""
    [(count,)] = con.execute(
        f"""
        SELECT count(*)
        FROM words
        LEFT JOIN memories ON memories.space = words.space AND memories.seq = words.memory
        WHERE {_DIFFERENT}
        """
    )
    return int(count)


def rarities(con: Connection, words: Sequence[str], views: Sequence[View], *, sees_all: bool) -> dict[str, float]:
    """How much each word tells."""
    known = stems(words)
    if not known:
        return {}
    found = _statistics(con, set(known.values()), views, sees_all=sees_all)
    return {word: rarity_of(found.frequencies[stem], found.passages) for word, stem in known.items()}


def words_held(con: Connection, text: str, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each memory the words of the text that it holds."""
    words = stems(query_words(text))
    if not words or not ids:
        return {}
    rows = con.execute(
        # memories_by_id, then the primary key of words
        """
        SELECT memories.id, asked.number
        FROM memories
        JOIN words ON words.space = memories.space AND words.memory = memories.seq
        JOIN unnest(%s::TSQUERY[]) WITH ORDINALITY AS asked (query, number) ON words.terms @@ asked.query
        WHERE memories.id = ANY(%s)
        GROUP BY memories.id, asked.number
        ORDER BY asked.number
        """,
        ([quote(stem) for stem in words.values()], Texts(ids)),
    )
    spelt, held = list(words), dict[str, tuple[str, ...]]()
    for memory, number in rows:
        held[memory] = (*held.get(memory, ()), spelt[number - 1])
    return held


class Statistics(NamedTuple):
    """What is known of the words that a caller sees."""

    frequencies: Mapping[str, int]  # in how many passages each word stands
    passages: int
    words: int  # in all of them
    most_of_all: bool  # at least half of the store's passages are in the spaces asked for, as the planner takes it


# What is not shared is counted by audience; what is shared is the rest.
_PASSAGES_BY_AUDIENCE = f"""
    (
        SELECT space, audience, passages, words
        FROM audience_passages
        UNION ALL
        SELECT name, '{SHARED}', passages - others.sum_passages, passage_words - others.sum_words
        FROM spaces
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(passages), 0) AS sum_passages, coalesce(sum(words), 0) AS sum_words
            FROM audience_passages
            WHERE audience_passages.space = spaces.name
        ) AS others
    )
    """
_VOCABULARY_BY_AUDIENCE = f"""
    (
        SELECT space, audience, term, passages
        FROM audience_vocabulary
        UNION ALL
        SELECT space, '{SHARED}', term, passages - coalesce(
            (
                SELECT sum(passages)
                FROM audience_vocabulary AS others
                WHERE others.space = vocabulary.space AND others.term = vocabulary.term
            ),
            0
        )
        FROM vocabulary
    )
    """
# The planner is not told how many there are: it would make another plan each time, which takes longer than the rest.
_ANY = "ANY(ARRAY(SELECT unnest(%s::TEXT[])))"
_PASSAGES = "(SELECT name AS space, passages, passage_words AS words FROM spaces)"
_VOCABULARY = "(SELECT space, term, passages FROM vocabulary)"


def statistics(con: Connection, restriction: Restriction, terms: Iterable[str]) -> Statistics:
    return _statistics(con, terms, restriction.views, sees_all=restriction.sees_all)


def _statistics(con: Connection, terms: Iterable[str], views: Sequence[View], *, sees_all: bool) -> Statistics:
    asked, asked_for = visible_rows([View(view.space, None) for view in views], "counted")
    if sees_all:
        views = [View(None, None)]
    spaces = spaces_of(views)
    within, values = ("ANY(ARRAY(SELECT name FROM spaces))", []) if spaces is None else (_ANY, [Texts(spaces)])
    passages, vocabulary, visible = _PASSAGES, _VOCABULARY, ("TRUE", list[Any]())
    if any(view.audiences is not None for view in views):
        passages, vocabulary, visible = _PASSAGES_BY_AUDIENCE, _VOCABULARY_BY_AUDIENCE, visible_rows(views, "counted")
    wanted = sorted(terms)
    [(_, rows, length, most_of_all), *found] = con.execute(
        # the primary keys
        f"""
        SELECT
            NULL, sum(passages)::BIGINT, sum(words)::BIGINT,
            2 * coalesce(sum(passages) FILTER (WHERE {asked}), 0)
            >= (SELECT reltuples FROM pg_class WHERE oid = 'words'::REGCLASS)
        FROM {passages} AS counted
        WHERE space = {within}
        AND {visible[0]}
        UNION ALL
        (
            SELECT term, sum(passages)::BIGINT, 0, NULL
            FROM {vocabulary} AS counted
            WHERE space = {within}
            AND term = {_ANY}
            AND {visible[0]}
            GROUP BY term
        )
        """,
        (*asked_for, *values, *visible[1], *values, Texts(wanted), *visible[1]),
    )
    known = {term: count for term, count, _, _ in found}
    return Statistics(
        frequencies={term: known.get(term, 0) for term in wanted},
        passages=rows or 0,
        words=length or 0,
        most_of_all=most_of_all,
    )


def _score(weights: Mapping[str, float]) -> tuple[str, list[Any]]:
    """BM25 of a passage as an expression: each word's weight, damped by how often and in how long a text it stands."""
    one_word = f"""%s * CASE
        WHEN NOT terms @@ %s::TSQUERY THEN 0
        WHEN terms @@ %s::TSQUERY THEN 2.2 / (1 + damping)
        WHEN terms @@ %s::TSQUERY THEN 4.4 / (2 + damping)
        WHEN terms @@ %s::TSQUERY THEN 6.6 / (3 + damping)
        ELSE (
            SELECT count * 2.2 / (count + damping)
            FROM unnest(terms) AS often
            CROSS JOIN LATERAL (SELECT coalesce(nullif(cardinality(positions), 1), {OFTEN}) AS count) AS counted
            WHERE lexeme = %s
        )
        END"""
    values: list[Any] = []
    for stem, weight in weights.items():
        lexeme = quote(stem)
        values += [weight, lexeme, f"{lexeme}:D", f"{lexeme}:C", f"{lexeme}:B", stem]
    return "\n+ ".join([one_word] * len(weights)), values


def _any_of(terms: Iterable[str], spaces: list[str] | None) -> str:
    """The literal of a tsquery: any of the terms, in one of the spaces."""
    wanted = " | ".join(map(quote, terms))
    if spaces is None:
        return wanted
    within = " | ".join(quote(_scope(space)) for space in spaces)
    return f"({wanted}) & ({within})"


def _scope(space: str) -> str:
    """A private-use character keeps it apart from words in the text."""
    return f"\ue000{space}"


def _count_positions(count: int) -> str:
    """A lexeme's positions, whose label or number tells how often a passage holds it."""
    if count in COUNTS:
        return f"1{COUNTS[count]}"
    return ",".join(f"{place}A" for place in range(1, min(count, MOST_COUNTED) + 1))


def quote(text: str) -> str:
    """Quoted, so that nothing in it is syntax."""
    if text.isalnum():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def stems_of(terms: Sequence[str]) -> list[str]:
    """Without the lexeme that names the space."""
    return [term for term in terms if not term.startswith("\ue000")]
