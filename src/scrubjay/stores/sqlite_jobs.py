"""Jobs and held memories as rows. Leases run by the machine's own clock, as all of them do."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import apsw

from scrubjay.memory import Caller, Job, JobStatus, Provenance, Role
from scrubjay.stores.base import milliseconds, moment
from scrubjay.stores.sqlite_filters import Condition, joined

COLUMNS = """
    id, kind, user, role, granted, spaces, client, transport, dialect, arguments, state, outcome, done, total, note,
    cancelling, attempts, result, error, created_at, started_at, finished_at
"""


def job(con: apsw.Connection, id: str) -> Job | None:
    return next(iter(_jobs(con, ("id = ?", [id]), limit=1)), None)


def jobs(con: apsw.Connection, *, user: str | None, unfinished: bool, limit: int) -> list[Job]:
    conditions: list[Condition] = []
    if user is not None:
        conditions.append(("user = ?", [user]))  # jobs_by_user
    if unfinished:
        conditions.append(("outcome IS NULL", []))  # jobs_unfinished
    return _jobs(con, joined(conditions, "AND"), limit=limit)


def _jobs(con: apsw.Connection, condition: Condition, *, limit: int) -> list[Job]:
    where, values = condition
    rows = con.execute(
        f"""
        SELECT {COLUMNS},
            EXISTS (
                SELECT 1 FROM leases WHERE name = 'job:' || jobs.id AND until > ?1 AND taken_at <= ?1
            ) AS taken
        FROM jobs
        WHERE {where}
        ORDER BY number DESC
        LIMIT ?
        """,
        (_now(), *values, limit),
    )
    return [job_of(*row) for row in rows]


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
        started_at=None if started_at is None else moment(started_at),
        finished_at=None if finished_at is None else moment(finished_at),
    )


def row_of(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "kind": job.kind,
        "user": job.caller.user,
        "role": job.caller.role,
        "granted": None if job.caller.spaces is None else _json(sorted(job.caller.spaces)),
        "spaces": _json(list(job.spaces)),
        "client": job.provenance.client,
        "transport": job.provenance.transport,
        "dialect": job.provenance.dialect,
        "arguments": _json(job.arguments),
        "state": _json(job.state),
        "outcome": str(job.status) if job.finished else None,
        "done": job.done,
        "total": job.total,
        "note": job.note,
        "cancelling": int(job.cancelling),
        "attempts": job.attempts,
        "result": None if job.result is None else _json(job.result),
        "error": None if job.error is None else _json(job.error),
        "created_at": milliseconds(job.created_at),
        "started_at": _milliseconds(job.started_at),
        "finished_at": _milliseconds(job.finished_at),
    }


def put(con: apsw.Connection, job: Job) -> None:
    columns = row_of(job)
    names, values = ", ".join(columns), ", ".join(f":{name}" for name in columns)
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
    con.execute(f"INSERT INTO jobs ({names}) VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {changes}", columns)


# --- held memories ---------------------------------------------------------------------------------------------------


def held(con: apsw.Connection, ids: Sequence[str], *, but: str) -> list[str]:
    rows = con.execute(
        # A hold from the future was taken before the clock was set back; it holds nobody off.
        """
        SELECT holds.memory
        FROM json_each(?1) AS wanted
        CROSS JOIN holds ON holds.memory = wanted.value
        WHERE holds.holder <> ?2
        AND holds.until > ?3
        AND holds.taken_at <= ?3
        """,
        (_json(list(ids)), but, _now()),
    )
    return [memory for (memory,) in rows]


def hold(con: apsw.Connection, ids: Sequence[str], *, holder: str, seconds: float) -> None:
    now = _now()
    con.execute("DELETE FROM holds WHERE until <= ?1 OR taken_at > ?1", (now,))  # left by those who died
    con.executemany(
        """
        INSERT INTO holds (memory, holder, taken_at, until)
        VALUES (?, ?, ?, ?)
        ON CONFLICT (memory) DO UPDATE SET
            holder = excluded.holder, taken_at = excluded.taken_at, until = excluded.until
        """,
        [(memory, holder, now, now + int(seconds * 1000)) for memory in dict.fromkeys(ids)],
    )


def let_go(con: apsw.Connection, holder: str) -> None:
    con.execute("DELETE FROM holds WHERE holder = ?", (holder,))  # holds_by_holder


def _now() -> int:
    return time.time_ns() // 1_000_000


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _milliseconds(at: datetime | None) -> int | None:
    return None if at is None else milliseconds(at)
