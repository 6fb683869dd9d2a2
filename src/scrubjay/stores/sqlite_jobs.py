"""Jobs and held memories as rows. Leases run by the machine's own clock, as all of them do."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw

from scrubjay.memory import Job
from scrubjay.stores.rows import as_json
from scrubjay.stores.side_rows import JOB, job_of, row_of_job
from scrubjay.stores.sqlite_filters import Condition, joined


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
        SELECT {JOB},
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


def put(con: apsw.Connection, job: Job) -> None:
    columns = row_of_job(job)
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
        (as_json(list(ids)), but, _now()),
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


