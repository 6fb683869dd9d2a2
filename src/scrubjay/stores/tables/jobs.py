"""Long work, and memories that are held meanwhile, in every backend."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scrubjay.stores.tables.rows import as_json, maybe_milliseconds, maybe_moment
from scrubjay.stores.tables.sql import Sql
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.store import Job, JobStatus
from scrubjay.values.times import milliseconds, moment

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

    def held_by_others(self, ids: Sequence[str], *, but: str = "") -> List[str]:
        """Find which of these memories long work holds; memories that this holder (`but`) holds are left out."""
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
        if others := self.held_by_others(ids, but=holder):
            return others[0]
        span = self._sql.span
        self._sql.run(f"DELETE FROM holds WHERE NOT {span.runs.format('holds')}")  # left by those who died
        self._sql.run_many(
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


def job_of(*row: Any) -> Job:
    (
        key, kind, user, role, granted, spaces, client, transport, dialect, arguments, state, outcome, done, total,
        note, cancelling, attempts, result, error, created_at, started_at, finished_at, taken,
    ) = row  # fmt: skip
    unfinished = JobStatus.RUNNING if taken else JobStatus.WAITING
    return Job(
        id=key,
        kind=kind,
        caller=Caller(user=user, role=Role(role), spaces=None if granted is None else frozenset(json.loads(granted))),
        spaces=tuple(json.loads(spaces)),
        provenance=Provenance(client=client, caller=user, transport=transport, dialect=dialect),
        arguments=json.loads(arguments),
        state=json.loads(state),
        status=unfinished if outcome is None else JobStatus(outcome),
        done=done,
        total=total,
        note=note,
        cancelling=bool(cancelling),
        attempts=attempts,
        result=None if result is None else json.loads(result),
        error=None if error is None else json.loads(error),
        created_at=moment(created_at),
        started_at=maybe_moment(started_at),
        finished_at=maybe_moment(finished_at),
    )


def row_of_job(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "user_id": job.caller.user,
        "role": job.caller.role,
        "granted": None if job.caller.spaces is None else as_json(sorted(job.caller.spaces)),
        "spaces": as_json(list(job.spaces)),
        "client": job.provenance.client,
        "transport": job.provenance.transport,
        "dialect": job.provenance.dialect,
        "arguments": as_json(job.arguments),
        "state": as_json(job.state),
        "outcome": str(job.status) if job.finished else None,
        "done": job.done,
        "total": job.total,
        "note": job.note,
        "cancelling": job.cancelling,
        "attempts": job.attempts,
        "result": None if job.result is None else as_json(job.result),
        "error": None if job.error is None else as_json(job.error),
        "created_at": milliseconds(job.created_at),
        "started_at": maybe_milliseconds(job.started_at),
        "finished_at": maybe_milliseconds(job.finished_at),
    }
