"""Which passages of a scope hold a word, in memory; and BM25 over them: the same numbers as the server's (words.py).

A word's passages are read when a question first has it, and stay. So the next question with that word reads none of
them. What has changed since is noted by the scope, which is told by the server (scopes.py), and put in when a word is
next asked for.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from scrubjay.lazy import numpy as np
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import Restriction, looked_at
from scrubjay.stores.postgres.values import Texts, fetched
from scrubjay.stores.postgres.words import OFTEN, Asked, quoted
from scrubjay.stores.tables.sql import Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

MOST_HELD = 1_000_000  # passages of words that a scope keeps, 24 bytes each; a passage counts for each of its words
MOST_NOTED = 500  # changed memories before all words catch up
PLACES = 16  # bits of a key that say which passage of its memory it is
TIMES = 8  # bits that say how often a passage holds a word, behind how long it is


class Held(NamedTuple):
    """The passages that hold a word, each once, in the order of their keys."""

    # Keys; when the memory was made; how long the passage is and how often it holds the word, as one number: the fewer
    # the server sends, the better.
    columns: Numbers
    expiring: Numbers  # keys of those whose memory expires, and when
    upto: int = 0  # how many noted changes are in it

    @property
    def keys(self) -> Numbers:
        keys: Numbers = self.columns[0]
        return keys


class Passage(NamedTuple):
    """A passage that has come or changed."""

    key: int
    created_at: int
    expires_at: int | None
    length: int
    counts: Mapping[str, int]


class Heavy(NamedTuple):
    """Memories that words found, each by its heaviest passage; as columns."""

    scores: Sequence[float]
    created_at: Sequence[int]
    memories: Sequence[int]


class Postings:
    """Of one scope; what it does happens under the scope's lock."""

    def __init__(self) -> None:
        self._kept: dict[str, Held] = {}  # the one that was asked for last comes last
        self._rows = 0
        self._noted: list[tuple[int, Sequence[Passage]]] = []  # memories that have changed, with what they hold now

    def __bool__(self) -> bool:
        return bool(self._kept)

    @property
    def bytes(self) -> int:
        return 24 * self._rows

    def held(self, stem: str) -> Held | None:
        """What is kept of a word, with all that was noted."""
        known = self._kept.get(stem)
        if known is not None:
            self.keep(stem, known)
        return self._kept.get(stem)

    def keep(self, stem: str, held: Held) -> None:
        former = self._kept.pop(stem, None)
        current = self._kept[stem] = self._caught_up(stem, held)
        self._rows += len(current.keys) - (0 if former is None else len(former.keys))
        while self._rows > MOST_HELD:
            self._rows -= len(self._kept.pop(next(iter(self._kept))).keys)

    def note(self, memories: Iterable[int], passages: Iterable[Passage]) -> None:
        """These memories have changed; of those that are in the scope, the passages as they are."""
        by_memory: dict[int, list[Passage]] = {memory: [] for memory in memories}
        for passage in passages:
            by_memory[passage.key >> PLACES].append(passage)
        self._noted += by_memory.items()
        if len(self._noted) > MOST_NOTED:
            for stem, held in [*self._kept.items()]:
                self.keep(stem, held)
            self._noted = []
            self._kept = {stem: held._replace(upto=0) for stem, held in self._kept.items()}

    def newest(self, held: Held) -> Held:
        """What was read just now."""
        return held._replace(upto=len(self._noted))

    def _caught_up(self, stem: str, held: Held) -> Held:
        if held.upto == len(self._noted):
            return held
        changed = dict(self._noted[held.upto :])
        came = [one for passages in changed.values() for one in passages if stem in one.counts]
        return Held(
            _changed(
                held.columns,
                changed,
                [(one.key, one.created_at, one.length << TIMES | one.counts[stem]) for one in came],
            ),
            _changed(held.expiring, changed, [(one.key, one.expires_at) for one in came if one.expires_at is not None]),
            len(self._noted),
        )


def _changed(columns: Numbers, gone: Collection[int], came: Sequence[tuple[int, ...]]) -> Numbers:
    """Without the passages of some memories, and with others; in the order of their keys."""
    stays = ~np.isin(columns[0] >> PLACES, [*gone])
    kept = columns if stays.all() else columns[:, stays]
    return _in_order(np.concatenate((kept, np.array(came, np.int64).T), axis=1)) if came else kept


def heaviest(words: Mapping[str, Held], asked: Asked, limit: int, *, unexpired_at: int | None) -> Heavy:
    """The memories that hold most of what is asked for, best first, equal ones newest first."""
    keys, created_at, _ = np.concatenate([held.columns for held in words.values()], axis=1)
    scores = np.concatenate([_weighed(held, asked.weights[stem], asked) for stem, held in words.items()])
    order = keys.argsort(kind="stable")  # merges what is in order already, and adds up as the server does
    if len(expired := _expired(words.values(), unexpired_at)):
        order = order[~np.isin(keys[order], expired)]
    passages = _firsts(keys[order])
    sums = np.add.reduceat(scores[order], passages) if len(order) else scores[order]
    order = order[passages]
    memories = keys[order] >> PLACES
    firsts = _firsts(memories)
    best = np.maximum.reduceat(sums, firsts) if len(order) else sums
    memories, created = memories[firsts], created_at[order[firsts]]
    if limit < len(best):
        front = best >= np.partition(best, len(best) - limit)[len(best) - limit]
        memories, created, best = memories[front], created[front], best[front]
    order = np.lexsort((memories, created, best))[::-1][:limit]
    return Heavy(best[order].tolist(), created[order].tolist(), memories[order].tolist())


def holders(held: Held, memories: Sequence[int]) -> list[bool]:
    """Whether each of these memories holds the word."""
    found: list[bool] = np.isin(memories, held.keys >> PLACES).tolist()
    return found


def _expired(words: Iterable[Held], at: int | None) -> Any:
    """The keys of those that have expired by then."""
    keys, times = np.concatenate([held.expiring for held in words], axis=1)
    return keys[:0] if at is None else keys[times <= at]


def _weighed(held: Held, weight: float, asked: Asked) -> Any:
    """What each passage has by this word, as the server takes it step by step."""
    length, count = held.columns[2] >> TIMES, held.columns[2] & (1 << TIMES) - 1
    damping = 1.2 * (0.25 + 0.75 * (length + asked.scope) / asked.average)
    return weight * (22 * count / 10 / (count + damping))


def _firsts(values: Any) -> Any:
    """Where each of these begins, which are in order."""
    return np.flatnonzero(np.diff(values, prepend=-1))


def read(con: Connection, restriction: Restriction, stems: Collection[str]) -> list[Held]:
    """For each of these words the passages that hold it."""
    where, values = restriction.lasting()
    tables, words = looked_at("words", where)
    lexemes = [quoted(stem) for stem in stems]
    labelled = [Texts(f"{lexeme}:{label}" for lexeme in lexemes) for label in "DCB"]
    rows = con.execute(
        # words_by_term for each. As arrays in binary form, which numpy reads.
        f"""
        SELECT {", ".join(f"array_send(coalesce({name}, ARRAY[]::BIGINT[]))" for name in (*COLUMNS, *EXPIRING))}
        FROM unnest(%s::TEXT[], %s::TSQUERY[], %s::TSQUERY[], %s::TSQUERY[], %s::TSQUERY[])
        WITH ORDINALITY AS asked (stem, any_times, once, twice, thrice, number)
        CROSS JOIN LATERAL (
            SELECT
                {", ".join(f"array_agg({name}) AS {name}" for name in COLUMNS)},
                array_agg(key) FILTER (WHERE expires_at IS NOT NULL) AS expiring,
                array_agg(expires_at) FILTER (WHERE expires_at IS NOT NULL) AS expires_at
            FROM (
                SELECT
                    memories.seq << {PLACES} | {words}.place AS key,
                    memories.created_at,
                    memories.expires_at,
                    {words}.length::BIGINT << {TIMES} | CASE
                        WHEN {words}.terms @@ asked.once THEN 1
                        WHEN {words}.terms @@ asked.twice THEN 2
                        WHEN {words}.terms @@ asked.thrice THEN 3
                        ELSE (
                            SELECT coalesce(nullif(cardinality(positions), 1), {OFTEN})
                            FROM unnest({words}.terms)
                            WHERE lexeme = asked.stem
                        )
                    END AS held
                FROM {tables}
                WHERE {words}.terms @@ asked.any_times
                AND {where}
            ) AS passages
        ) AS held
        ORDER BY number
        """,
        (Texts(stems), Texts(lexemes), *labelled, *values),
        binary=True,
    ).fetchall()
    return [_held([_numbers(sent) for sent in row]) for row in rows]


COLUMNS, EXPIRING = ("key", "created_at", "held"), ("expiring", "expires_at")


def passages_of(con: Connection, restriction: Restriction, among: Condition) -> list[Passage]:
    """What these memories hold, those of them that are in the scope."""
    where, values = restriction.lasting()
    tables, words = looked_at("words", where)
    these, named = among
    rows = fetched(
        con,
        # the primary key of words
        f"""
        SELECT
            memories.seq << {PLACES} | {words}.place, memories.created_at, memories.expires_at, {words}.length,
            coalesce(held.stems, ARRAY[]::TEXT[]), held.counts
        FROM {tables}
        CROSS JOIN LATERAL (
            SELECT
                array_agg(lexeme) AS stems,
                array_agg(
                    CASE weights[1]
                        WHEN 'D' THEN 1 WHEN 'C' THEN 2 WHEN 'B' THEN 3
                        ELSE coalesce(nullif(cardinality(positions), 1), {OFTEN})
                    END
                ) AS counts
            FROM unnest({words}.terms)
            WHERE weights IS NOT NULL
        ) AS held
        WHERE {these}
        AND {where}
        """,
        (*named, *values),
        binary=True,
    )
    return [
        Passage(key, created_at, expires_at, length, dict(zip(stems, counts or (), strict=True)))
        for key, created_at, expires_at, length, stems, counts in rows
    ]


def _held(columns: Sequence[Numbers]) -> Held:
    return Held(_in_order(np.stack(columns[: len(COLUMNS)])), np.stack(columns[len(COLUMNS) :]))


def _in_order(columns: Numbers) -> Numbers:
    ordered: Numbers = columns[:, columns[0].argsort()]
    return ordered


def _numbers(sent: bytes) -> Any:
    """An array of whole numbers: behind its head each with its length in front."""
    if len(sent) <= 12:  # the head of an empty one
        return np.zeros(0, np.int64)
    return np.frombuffer(sent, [("size", ">i4"), ("value", ">i8")], offset=20)["value"].astype(np.int64)
