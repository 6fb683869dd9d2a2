"""Long work, and memories that are held meanwhile, in every backend."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.stores.tables.side_rows import job_of, row_of_job
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.store import Job
from scrubjay.values.times import milliseconds

List = list  # below, `list` is a verb


class Jobs:
    """What can be read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, id: str) -> Job | None:
        """A job by its id. One that is not finished is running while a lease `job:<id>` runs, else waiting."""
        return next(iter(self._found(["id = :id"], id=id, limit=1)), None)

    def list(self, *, user: str | None = None, unfinished: bool = False, limit: int = 100) -> List[Job]:
        """Jobs, newest first: those of one user, those not finished yet, or all."""
        conditions = []
        if user is not None:
            conditions.append("user_id = :user")  # jobs_by_user
        if unfinished:
            conditions.append("outcome IS NULL")  # jobs_unfinished
        return self._found(conditions, user=user, limit=limit)

    def held(self, ids: Sequence[str], *, but: str = "") -> List[str]:
        """Which of these memories long work holds; what this holder holds is left out."""
        sql = self._sql
        rows = sql.all(
            f"""
            SELECT memory
            FROM holds
            WHERE {sql.among("memory", "ids")}
            AND holder <> :but
            AND {sql.span.runs.format("holds")}
            """,
            ids=List(ids),
            but=but,
        )
        found = {memory for (memory,) in rows}
        return [memory for memory in ids if memory in found]

    def _found(self, conditions: Sequence[str], **values: object) -> List[Job]:
        runs = self._sql.span.runs.format("leases")
        rows = self._sql.all(
            f"""
            SELECT id, kind, user_id, role, granted, spaces, client, transport, dialect, arguments, state,
                outcome, done, total, note, cancelling, attempts, result, error, created_at, started_at, finished_at,
                EXISTS (SELECT 1 FROM leases WHERE name = 'job:' || jobs.id AND {runs}) AS taken
            FROM jobs
            WHERE {" AND ".join(conditions) or "TRUE"}
            ORDER BY number DESC
            LIMIT :limit
            """,
            **values,
        )
        return [job_of(*row) for row in rows]


class JobChanges(Jobs):
    """What a transaction can read and change."""

    def put(self, job: Job) -> None:
        """Write a job as it is now, new or known. Whether it waits or runs is not written: the lease says so."""
        row = row_of_job(job)
        changes = ", ".join(f"{name} = excluded.{name}" for name in row if name != "id")
        self._sql.run(
            f"""
            INSERT INTO jobs ({", ".join(row)})
            VALUES ({", ".join(f":{name}" for name in row)})
            ON CONFLICT (id) DO UPDATE SET {changes}
            """,
            **row,
        )

    def drop(self, *, finished_before: datetime) -> None:
        """Forget jobs that were finished before a moment."""
        self._sql.run("DELETE FROM jobs WHERE finished_at < :moment", moment=milliseconds(finished_before))

    def hold(self, ids: Sequence[str], *, holder: str, seconds: float) -> str | None:
        """Hold memories for long work, or hold them longer: all of them, or none and the id of one that another holds.

        Others may read them meanwhile; their changes are refused above.
        """
        if others := self.held(ids, but=holder):
            return others[0]
        span = self._sql.span
        self._sql.run(f"DELETE FROM holds WHERE NOT {span.runs.format('holds')}")  # left by those who died
        self._sql.many(
            f"""
            INSERT INTO holds (memory, holder, {", ".join(span.columns)})
            VALUES (:memory, :holder, {span.values})
            ON CONFLICT (memory) DO UPDATE SET
                {", ".join(f"{name} = excluded.{name}" for name in ("holder", *span.columns))}
            """,
            [{"memory": memory, "holder": holder, "seconds": seconds} for memory in dict.fromkeys(ids)],
        )
        return None

    def let_go(self, holder: str) -> None:
        """Give back every memory that this holder holds."""
        self._sql.run("DELETE FROM holds WHERE holder = :holder", holder=holder)  # holds_by_holder
