"""Jobs and held memories as rows. Leases run by the database's clock, which all servers share."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence

from scrubjay.memory import Job
from scrubjay.stores.base import List
from scrubjay.stores.postgres_filters import Condition, joined
from scrubjay.stores.postgres_history import Connection, PostgresHistory
from scrubjay.stores.side_rows import JOB, job_of, row_of_job

_COLUMNS = JOB.replace(" user,", " user_id,")


class PostgresJobs(PostgresHistory):
    def job(self, id: str) -> Job | None:
        with self._reading() as con:
            return next(iter(_jobs(con, ("id = %s", [id]), limit=1)), None)

    def jobs(self, *, user: str | None = None, unfinished: bool = False, limit: int = 100) -> List[Job]:
        conditions: list[Condition] = []
        if user is not None:
            conditions.append(("user_id = %s", [user]))  # jobs_by_user
        if unfinished:
            conditions.append(("outcome IS NULL", []))  # jobs_unfinished
        with self._reading() as con:
            return _jobs(con, joined(conditions, "AND"), limit=limit)

    def held(self, ids: Sequence[str], *, but: str = "") -> List[str]:
        with self._reading() as con:
            return held(con, ids, but=but)


def _jobs(con: Connection, condition: Condition, *, limit: int) -> list[Job]:
    where, values = condition
    rows = con.execute(
        f"""
        SELECT {_COLUMNS},
            EXISTS (SELECT 1 FROM leases WHERE name = 'job:' || jobs.id AND until > clock_timestamp()) AS taken
        FROM jobs
        WHERE {where}
        ORDER BY number DESC
        LIMIT %s
        """,
        (*values, limit),
    )
    return [job_of(*row) for row in rows]


def put(con: Connection, job: Job) -> None:
    columns = row_of_job(job)
    columns["user_id"] = columns.pop("user")
    columns["cancelling"] = job.cancelling
    names, values = ", ".join(columns), ", ".join(f"%({name})s" for name in columns)
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "id")
    con.execute(f"INSERT INTO jobs ({names}) VALUES ({values}) ON CONFLICT (id) DO UPDATE SET {changes}", columns)


def held(con: Connection, ids: Sequence[str], *, but: str) -> list[str]:
    rows = con.execute(
        "SELECT memory FROM holds WHERE memory = ANY(%s) AND holder <> %s AND until > clock_timestamp()",
        (list(ids), but),
    )
    found = {memory for (memory,) in rows}
    return [memory for memory in ids if memory in found]


def hold(con: Connection, ids: Sequence[str], *, holder: str, seconds: float) -> None:
    con.execute("DELETE FROM holds WHERE until <= clock_timestamp()")  # left by those who died
    con.execute(
        """
        INSERT INTO holds (memory, holder, until)
        SELECT unnest(%s::TEXT[]), %s, clock_timestamp() + make_interval(secs => %s)
        ON CONFLICT (memory) DO UPDATE SET holder = excluded.holder, until = excluded.until
        """,
        (list(dict.fromkeys(ids)), holder, seconds),
    )
