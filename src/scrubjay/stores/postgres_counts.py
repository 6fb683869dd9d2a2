"""What a transaction adds to totals, activity and vocabulary: added up in the process, written once at its end.

A hundred memories stored together would otherwise change the same hundred rows a hundred times. The schema (0002) says
what a part is. Negative numbers take away.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import psycopg

from scrubjay.stores.sqlite_tally import HOUR

Connection = psycopg.Connection[tuple[Any, ...]]

DAY = 24  # hours


class Counted(NamedTuple):
    """What statistics see of a memory's row; `postgres_rows.COUNTED` reads it."""

    space: str
    audience: str
    user_id: str
    conversation_id: str | None
    category: str
    state: int
    importance: float
    text_bytes: int
    vector_bytes: int
    reads: int
    agreed: int | None
    repeat: int
    created_at: int

    @property
    def level(self) -> str:
        return "high" if self.importance >= 0.7 else "low" if self.importance < 0.3 else "medium"

    def parts(self) -> Iterator[str]:
        yield ""
        yield f"user:{self.user_id}"
        yield f"category:{self.category}"
        if self.conversation_id is not None:
            yield f"conversation:{self.conversation_id}"

    def numbers(self) -> tuple[int, ...]:
        """The columns of `totals` behind its key."""
        judged, agreed = int(self.agreed is not None), self.agreed or 0
        reads = self.reads
        return 1, self.text_bytes, self.vector_bytes, reads, reads * reads, int(reads > 0), judged, agreed, self.repeat


TOTALS = (
    "memories", "text_bytes", "vector_bytes", "reads", "squared_reads", "read_memories", "judged", "agreed", "repeats",
)  # fmt: skip
ACTIVITY = ("created", "reads", "consolidations", "consolidated")


class Counts:
    """Changes that are not written yet."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], list[int]] = {}
        self._activity: dict[tuple[Any, ...], list[int]] = {}
        self._vocabulary: Counter[tuple[str, str]] = Counter()
        self._passages: dict[str, list[int]] = {}

    def arrived(self, row: Counted) -> None:
        self._total(row, 1)
        self.happened(row, row.created_at // HOUR, created=1)

    def replaced(self, old: Counted, new: Counted) -> None:
        self._total(old, -1)
        self._total(new, 1)
        if old[:5] != new[:5] or old.created_at != new.created_at:
            self.happened(old, old.created_at // HOUR, created=-1)
            self.happened(new, new.created_at // HOUR, created=1)

    def happened(
        self,
        row: Counted,
        hour: int,
        *,
        created: int = 0,
        reads: int = 0,
        consolidations: int = 0,
        consolidated: int = 0,
    ) -> None:
        hour = max(hour, 0)
        for part in row.parts():
            for hours in (1, DAY):
                key = (row.space, part, hours, hour // hours * hours, row.audience)
                _add(self._activity, key, (created, reads, consolidations, consolidated))

    def words(self, space: str, terms: Iterable[str], length: int, sign: int = 1) -> None:
        """A passage that came, or with a negative sign went."""
        for term in terms:
            self._vocabulary[space, term] += sign
        _add(self._passages, space, (sign, sign * length))

    def write(self, con: Connection) -> None:
        """Write what gathered, and begin anew."""
        totals, activity = _changes(self._totals), _changes(self._activity)
        vocabulary = {key: number for key, number in self._vocabulary.items() if number}
        passages = _changes(self._passages)
        self.__init__()  # type: ignore[misc]
        if totals:
            _upsert(con, "totals", ("space", "part", "audience", "state", "category", "level"), TOTALS, totals)
        if activity:
            _upsert(con, "activity", ("space", "part", "hours", "at", "audience"), ACTIVITY, activity)
        if vocabulary:
            _write_vocabulary(con, vocabulary)
        if passages:
            con.cursor().executemany(
                "UPDATE spaces SET passages = passages + %s, passage_words = passage_words + %s WHERE name = %s",
                [(*numbers, space) for space, numbers in passages.items()],
            )

    def _total(self, row: Counted, sign: int) -> None:
        numbers = [sign * number for number in row.numbers()]
        for part in row.parts():
            _add(self._totals, (row.space, part, row.audience, row.state, row.category, row.level), numbers)


_TYPES = {"state": "SMALLINT", "hours": "SMALLINT", "at": "BIGINT"}


def _upsert(
    con: Connection, table: str, key: tuple[str, ...], numbers: tuple[str, ...], changes: Mapping[Any, list[int]]
) -> None:
    columns = [*key, *numbers]
    types = [_TYPES.get(name, "TEXT") for name in key] + ["BIGINT"] * len(numbers)
    rows = sorted((*where, *added) for where, added in changes.items())  # one order for all: nobody waits in a circle
    con.execute(
        f"""
        INSERT INTO {table} ({", ".join(columns)})
        SELECT * FROM unnest({", ".join(f"%s::{name}[]" for name in types)})
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET
            {", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in numbers)}
        """,
        [list(column) for column in zip(*rows, strict=True)],
    )


def _write_vocabulary(con: Connection, changes: Mapping[tuple[str, str], int]) -> None:
    _upsert(con, "vocabulary", ("space", "term"), ("passages",), {key: [number] for key, number in changes.items()})
    gone = [key for key, number in changes.items() if number < 0]
    if gone:  # a word that stands nowhere any more may be what was to be erased
        con.execute(
            """
            DELETE FROM vocabulary
            WHERE (space, term) IN (SELECT * FROM unnest(%s::TEXT[], %s::TEXT[]))
            AND passages <= 0
            """,
            [list(column) for column in zip(*gone, strict=True)],
        )


def _add(sums: dict[Any, list[int]], key: Any, numbers: Iterable[int]) -> None:
    known = sums.get(key)
    sums[key] = list(numbers) if known is None else [one + more for one, more in zip(known, numbers, strict=True)]


def _changes(sums: Mapping[Any, list[int]]) -> dict[Any, list[int]]:
    return {key: numbers for key, numbers in sums.items() if any(numbers)}
