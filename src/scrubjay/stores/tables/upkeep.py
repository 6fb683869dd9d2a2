"""What waits to be done to memories, and who does it, in every backend."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.stores.promises.memories import FURTHER_MODELS, ONLY_TO_JUDGE, Pending
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.memory import Memory
from scrubjay.values.times import milliseconds


class Upkeep:
    """What can be read; and leases, each in a transaction of its own."""

    def __init__(self, sql: Sql, alone: Sql) -> None:
        """`alone` changes something outside of any transaction."""
        self._sql = sql
        self._alone = alone

    def lease(self, name: str, *, holder: str, seconds: float) -> bool:
        """Take or renew a lease that only one holder at a time can have, in any process; False if another has it."""
        span = self._alone.span
        taken = self._alone.run(
            f"""
            INSERT INTO leases (name, holder, {", ".join(span.columns)})
            VALUES (:name, :holder, {span.values})
            ON CONFLICT (name) DO UPDATE SET
                {", ".join(f"{column} = excluded.{column}" for column in ("holder", *span.columns))}
            WHERE leases.holder = excluded.holder OR NOT {span.runs.format("leases")}
            """,
            name=name,
            holder=holder,
            seconds=seconds,
        )
        return taken == 1

    def release(self, name: str, *, holder: str) -> None:
        """Give a lease back before its time; nothing happens if another has it."""
        self._alone.run("DELETE FROM leases WHERE name = :name AND holder = :holder", name=name, holder=holder)

    def pending(self, *, limit: int) -> list[Pending]:
        """Memories that wait for vectors, fewest attempts first, then oldest. Deleted ones do not wait."""
        rows = self._sql.all(
            # pending_by_attempts, then the key of memories
            f"""
            SELECT memories.id, pending.next_part, pending.attempts, pending.judged
            FROM pending
            CROSS JOIN memories
            WHERE {self._sql.memory_key.joins("pending", "memories")}
            AND memories.state < 3
            ORDER BY pending.attempts, pending.memory
            LIMIT :limit
            """,
            limit=limit,
        )
        found = {memory.id: memory for memory in self._memories([row[0] for row in rows])}
        return [
            Pending(memory=found[memory], next_part=part, attempts=attempts, judged=bool(judged))
            for memory, part, attempts, judged in rows
            if memory in found  # it may be gone meanwhile
        ]

    def count_pending(self) -> int:
        """How many memories wait for vectors, or for being compared with earlier ones."""
        [(count,)] = self._sql.all("SELECT count(*) FROM pending")
        return int(count)

    def any_waits(self) -> bool:
        """Whether a memory has no vector yet and waits for one."""
        return self._sql.first_row("SELECT 1 FROM pending WHERE next_part = 0 LIMIT 1") is not None

    def uncompared(self, ids: Sequence[str]) -> list[str]:
        """Which of these memories wait to be compared with earlier ones."""
        rows = self._sql.all(
            # the ids of memories, then the key of pending
            f"""
            SELECT memories.id
            FROM memories
            JOIN pending ON {self._sql.memory_key.joins("pending", "memories")}
            WHERE {self._sql.among("memories.id", "ids")}
            AND NOT pending.judged
            """,
            ids=list(ids),
        )
        return [memory for (memory,) in rows]

    def lacking(self, model: str, *, after: int = 0, limit: int) -> list[Memory]:
        """Memories without vectors of a further model, in order of arrival, behind an arrival number. Deleted ones and
        those whose text is archived need none."""
        rows = self._sql.all(
            # the key of memories, then that of vectors
            f"""
            SELECT memories.id
            FROM memories
            WHERE memories.seq > :after
            AND {self._lacks_vectors}
            ORDER BY memories.seq
            LIMIT :limit
            """,
            model=model,
            after=after,
            limit=limit,
        )
        return sorted(self._memories([memory for (memory,) in rows]), key=lambda memory: memory.seq)

    def count_lacking(self, model: str) -> int:
        """How many there are of those."""
        [(count,)] = self._sql.all(f"SELECT count(*) FROM memories WHERE {self._lacks_vectors}", model=model)
        return int(count)

    @property
    def _lacks_vectors(self) -> str:
        meets = self._sql.memory_key.joins
        return f"""memories.state < 3
            AND NOT EXISTS (SELECT 1 FROM archives WHERE {meets("archives", "memories")})
            AND NOT EXISTS (
                SELECT 1
                FROM vectors
                WHERE {meets("vectors", "memories")}
                AND vectors.model = :model
            )"""

    def _memories(self, ids: list[str]) -> list[Memory]:
        return self._sql.memories(self._sql.among("memories.id", "ids"), None, ids=ids)

    def due_for_purge(self, now: datetime, limit: int) -> list[str]:
        """Ids of soft-deleted memories whose date (`recoverable_until`) has come, those due longest first.

        For the store's own housekeeping: whoever they belong to, in every space.
        """
        rows = self._sql.all(
            # memories_by_recovery
            """
            SELECT id
            FROM memories
            WHERE state = 3
            AND recoverable_until <= :due
            ORDER BY recoverable_until
            LIMIT :limit
            """,
            due=milliseconds(now),
            limit=limit,
        )
        return [memory for (memory,) in rows]


class UpkeepChanges(Upkeep):
    """What a transaction can read and change."""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql, sql)

    def await_judgement(self, *ids: str) -> None:
        """Let memories that have their vectors wait for being compared with earlier ones, after what waits for
        vectors."""
        columns, of, _ = self._sql.memory_key
        self._sql.run_many(
            f"""
            INSERT INTO pending ({", ".join(columns)}, next_part, attempts)
            SELECT {", ".join(of)}, :part, 1 FROM memories WHERE memories.id = :memory
            ON CONFLICT DO NOTHING
            """,
            [{"memory": memory, "part": ONLY_TO_JUDGE} for memory in ids],
        )

    def end_judgement(self, id: str) -> None:
        its_row = self._sql.memory_key.matches_parameters("pending")
        self._sql.run(f"DELETE FROM pending WHERE {its_row} AND next_part = :part", memory=id, part=ONLY_TO_JUDGE)

    def keep_models(self, models: Sequence[str]) -> None:
        """Let these be the only models with vectors in the store beside its own; the vectors of others are deleted."""
        values = {"models": [*models], "key": FURTHER_MODELS, "value": as_json(models)}
        self._sql.run(f"DELETE FROM vectors WHERE model <> '' AND NOT ({self._sql.among('model', 'models')})", **values)
        self._sql.run(
            """
            INSERT INTO facts (key, value) VALUES (:key, :value)
            ON CONFLICT (key) DO UPDATE SET value = excluded.value
            """,
            **values,
        )

    def put_off(self, id: str, *, judged: bool | None = None, failed: bool = False) -> None:
        """Note that embedding failed once more, or that the judgement is done, for a memory in `pending`."""
        self._sql.run(
            f"""
            UPDATE pending
            SET attempts = attempts + :failed, judged = coalesce(:judged, judged)
            WHERE {self._sql.memory_key.matches_parameters("pending")}
            """,
            failed=int(failed),
            judged=judged,
            memory=id,
        )
