"""What a transaction adds to totals, activity and vocabulary: added up in the process, written once at its end.

A hundred memories stored together would otherwise change the same hundred rows a hundred times. Negative numbers take
away. `tables/statistics.py` reads what comes of it.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import add
from typing import Any, NamedTuple

from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.sql import COUNTED
from scrubjay.stores.postgres.values import Numbers, Texts, text_to_keep
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.statistics import DAY, LEVEL, SUMS
from scrubjay.stores.tables.tally import HOUR, KEPT_RECALLS, Batch
from scrubjay.values.times import milliseconds


class Counted(NamedTuple):
    """What statistics see of a memory's row; `sql.COUNTED` reads it."""

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


def counted_of(columns: Mapping[str, Any]) -> Counted:
    """Of a row that is to be written."""
    return Counted(
        space=columns["space"],
        audience=columns["audience"],
        user_id=columns["user_id"],
        conversation_id=columns["conversation_id"],
        category=str(columns["category"]),
        state=columns["state"],
        importance=columns["importance"],
        text_bytes=sum(len(text_to_keep(columns[name]).encode()) for name in ("content", "metadata", "detail")) - 4,
        vector_bytes=columns["vector_bytes"],
        reads=columns["access_count"],
        agreed=columns.get("category_agreed"),
        repeat=columns.get("repeat", 0),
        created_at=columns["created_at"],
    )


ACTIVITY = ("created", "reads", "consolidations", "consolidated")


class Counts:
    """Changes that are not written yet."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], list[int]] = {}
        self._activity: dict[tuple[Any, ...], list[int]] = {}
        self._vocabulary: dict[str, Counter[str]] = {}  # by space
        self._passages: dict[str, list[int]] = {}

    def arrived(self, row: Counted) -> None:
        self._total(row, 1)
        self.happened(row, row.created_at // HOUR, created=1)

    def all_arrived(self, rows: Iterable[Counted]) -> None:
        """The same as `arrived` for each; what is alike in all but its numbers is added up first."""
        sums: dict[tuple[Any, ...], tuple[int, ...]] = {}
        alike: dict[tuple[Any, ...], Counted] = {}
        for row in rows:
            key = (*row[:6], row.level, row.created_at // HOUR)
            alike[key] = row
            known = sums.get(key)
            sums[key] = row.numbers() if known is None else tuple(map(add, known, row.numbers()))
        for key, row in alike.items():
            for part in row.parts():
                _add(self._totals, (row.space, part, row.audience, row.state, row.category, row.level), sums[key])
            self.happened(row, row.created_at // HOUR, created=sums[key][0])

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
        known = self._vocabulary.setdefault(space, Counter())
        for term in terms:
            known[term] += sign
        _add(self._passages, space, (sign, sign * length))

    def write(self, con: Connection) -> None:
        """Write what gathered, and start over."""
        totals, activity = _changes(self._totals), _changes(self._activity)
        vocabulary, passages = self._vocabulary, _changes(self._passages)
        self.__init__()  # type: ignore[misc]
        if totals or activity:
            con.execute(_ADD_UP, [*_columns(totals, 15), *_columns(activity, 9)])
        for space, terms in vocabulary.items():
            changed = {term: number for term, number in terms.items() if number}
            if changed or space in passages:
                _write_vocabulary(con, space, changed, passages.get(space, [0, 0]))

    def _total(self, row: Counted, sign: int) -> None:
        numbers = [sign * number for number in row.numbers()]
        for part in row.parts():
            _add(self._totals, (row.space, part, row.audience, row.state, row.category, row.level), numbers)


def _adding(table: str, key: tuple[str, ...], numbers: tuple[str, ...]) -> str:
    types = [_TYPES.get(name, "TEXT") for name in key] + ["BIGINT"] * len(numbers)
    return f"""
        INSERT INTO {table} ({", ".join((*key, *numbers))})
        SELECT * FROM unnest({", ".join(f"%s::{name}[]" for name in types)})
        ON CONFLICT ({", ".join(key)}) DO UPDATE SET
            {", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in numbers)}
        """


_TYPES = {"state": "SMALLINT", "hours": "SMALLINT", "at": "BIGINT"}
_TOTALS_KEY = ("space", "part", "audience", "state", "category", "level")
_ACTIVITY_KEY = ("space", "part", "hours", "at", "audience")
_ADD_UP = f"""
    WITH added AS ({_adding("totals", _TOTALS_KEY, SUMS)})
    {_adding("activity", _ACTIVITY_KEY, ACTIVITY)}
    """


def count_totals(con: Connection) -> None:
    """Totals from all memories.

    This is `Counted` in the server's words: reading a hundred thousand rows takes longer than counting them there.
    """
    con.execute("DELETE FROM totals")
    con.execute(
        f"""
        INSERT INTO totals ({", ".join((*_TOTALS_KEY, *SUMS))})
        SELECT
            space, part, audience, state, category, {LEVEL} AS level,
            count(*), sum(text_bytes), sum(vector_bytes), sum(reads), sum(reads * reads),
            count(*) FILTER (WHERE reads > 0), count(agreed), coalesce(sum(agreed), 0), sum(repeat)
        FROM {_COUNTED_IN_PARTS}
        GROUP BY {", ".join(_TOTALS_KEY)}
        """
    )


def count_created(con: Connection) -> None:
    """What was created when, from all memories. When they were handed out is known nowhere else and stays."""
    con.execute("UPDATE activity SET created = 0 WHERE created <> 0")
    con.execute(
        f"""
        INSERT INTO activity ({", ".join((*_ACTIVITY_KEY, *ACTIVITY))})
        SELECT space, part, hours, greatest(created_at / {HOUR}, 0) / hours * hours AS at, audience, count(*), 0, 0, 0
        FROM {_COUNTED_IN_PARTS}
        CROSS JOIN (VALUES (1), ({DAY})) AS lengths (hours)
        GROUP BY {", ".join(_ACTIVITY_KEY)}
        ON CONFLICT ({", ".join(_ACTIVITY_KEY)}) DO UPDATE SET created = excluded.created
        """
    )


_IN_PARTS = """
    CROSS JOIN LATERAL (
        SELECT part
        FROM (
            VALUES (''), ('user:' || user_id), ('category:' || category), ('conversation:' || conversation_id)
        ) AS all_parts (part)
        WHERE part IS NOT NULL
    ) AS parts
    """
_COUNTED_IN_PARTS = f"(SELECT {COUNTED} FROM memories) AS counted ({', '.join(Counted._fields)}) {_IN_PARTS}"


def _columns(changes: Mapping[Any, list[int]], width: int) -> list[Texts | Numbers]:
    rows = sorted((*where, *added) for where, added in changes.items())
    columns = zip(*rows, strict=True)
    return [Texts(one) if isinstance(one[0], str) else Numbers(one) for one in columns] or [Numbers()] * width


def _write_vocabulary(con: Connection, space: str, changed: Mapping[str, int], passages: list[int]) -> None:
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


def _add(sums: dict[Any, list[int]], key: Any, numbers: Iterable[int]) -> None:
    known = sums.get(key)
    sums[key] = list(numbers) if known is None else [one + more for one, more in zip(known, numbers, strict=True)]


def _changes(sums: Mapping[Any, list[int]]) -> dict[Any, list[int]]:
    return {key: numbers for key, numbers in sums.items() if any(numbers)}


def count_reads(con: Connection, batch: Batch) -> None:
    """Counted on the server alone: a search hands out ten memories, and telling what changed for each costs more."""
    readings = batch.readings
    by_hours = [(memory, hour, count) for memory, one in readings.items() for hour, count in one.hours.items()]
    con.execute(
        _COUNT_READS,
        (
            Texts(readings),
            Numbers(one.count for one in readings.values()),
            Numbers(one.at for one in readings.values()),
            Texts(memory for memory, _, _ in by_hours),
            Numbers(hour for _, hour, _ in by_hours),
            Numbers(count for _, _, count in by_hours),
        ),
    )


_COUNT_READS = f"""
    WITH counted (id, added, {", ".join(Counted._fields)}) AS (
        -- memories_by_id
        UPDATE memories
        SET access_count = access_count + readings.count, accessed_at = greatest(accessed_at, readings.at)
        FROM unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS readings (id, count, at)
        WHERE memories.id = readings.id
        RETURNING memories.id, readings.count, {COUNTED}
    ), totalled AS (
        INSERT INTO totals ({", ".join((*_TOTALS_KEY, *SUMS))})
        SELECT
            space, part, audience, state, category, {LEVEL} AS level,
            0, 0, 0, sum(added), sum(reads * reads - (reads - added) * (reads - added)),
            count(*) FILTER (WHERE reads > 0 AND reads <= added), 0, 0, 0
        FROM counted
        {_IN_PARTS}
        GROUP BY {", ".join(_TOTALS_KEY)}
        ON CONFLICT ({", ".join(_TOTALS_KEY)}) DO UPDATE SET
            reads = totals.reads + excluded.reads,
            squared_reads = totals.squared_reads + excluded.squared_reads,
            read_memories = totals.read_memories + excluded.read_memories
    )
    INSERT INTO activity ({", ".join((*_ACTIVITY_KEY, *ACTIVITY))})
    SELECT space, part, hours, greatest(hour, 0) / hours * hours AS at, audience, 0, sum(count), 0, 0
    FROM counted
    JOIN unnest(%s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS readings (id, hour, count) ON readings.id = counted.id
    {_IN_PARTS}
    CROSS JOIN (VALUES (1), ({DAY})) AS lengths (hours)
    GROUP BY {", ".join(_ACTIVITY_KEY)}
    ON CONFLICT ({", ".join(_ACTIVITY_KEY)}) DO UPDATE SET reads = activity.reads + excluded.reads
    """


def log_recalls(con: Connection, batch: Batch) -> None:
    recalls = batch.recalls
    spaces, users = Texts(one.space for one in recalls), Texts(one.user for one in recalls)
    con.execute(
        """
        INSERT INTO recalls (at, space, user_id, client, memories)
        SELECT * FROM unnest(%s::BIGINT[], %s::TEXT[], %s::TEXT[], %s::TEXT[], %s::TEXT[])
        """,
        (
            Numbers(milliseconds(one.at) for one in recalls),
            spaces,
            users,
            Texts(one.client for one in recalls),
            Texts(as_json(one.memories) for one in recalls),
        ),
    )
    con.execute(
        """
        INSERT INTO recall_counts (space, user_id, hour, recalls, memories)
        SELECT space, user_id, hour, count(*), sum(memories)
        FROM unnest(%s::TEXT[], %s::TEXT[], %s::BIGINT[], %s::BIGINT[]) AS counted (space, user_id, hour, memories)
        GROUP BY space, user_id, hour
        ON CONFLICT (space, user_id, hour) DO UPDATE SET
            recalls = recall_counts.recalls + excluded.recalls,
            memories = recall_counts.memories + excluded.memories
        """,
        (
            spaces,
            users,
            Numbers(milliseconds(one.at) // HOUR for one in recalls),
            Numbers(len(one.memories) for one in recalls),
        ),
    )
    con.execute(
        # recalls_by_number
        "DELETE FROM recalls WHERE number <= (SELECT max(number) FROM recalls) - %s",
        (KEPT_RECALLS,),
    )
