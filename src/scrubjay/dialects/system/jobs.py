"""System, jobs: the progress of background work, and how to stop it. The specification's own flow needs both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from scrubjay import errors
from scrubjay.dialects.base import COUNT, TIME, Body, Schema, integer, record, text
from scrubjay.dialects.system import archive, sync
from scrubjay.dialects.system.definitions import ID, code_of, success_reply, tools
from scrubjay.engine.archive.restoring import Restored
from scrubjay.engine.engine import Engine
from scrubjay.engine.sync import run
from scrubjay.errors import Error
from scrubjay.values import codec
from scrubjay.values.store import Job, JobStatus

JobId = Annotated[str, "The job's id, from the call that started it"]
NULLABLE_TIME = {**TIME, "type": ["string", "null"]}
JOB: Schema = {
    "job_id": ID,
    "kind": text(),
    "status": text("waiting: for a running server to pick it up", enum=[str(status) for status in JobStatus]),
    "progress": record({"done": COUNT, "total": {"type": ["integer", "null"]}, "note": text()}),
    "created_at": TIME,
    "started_at": NULLABLE_TIME,
    "finished_at": NULLABLE_TIME,
    "result": {"type": ["object", "null"], "description": "What the call that started it would have answered"},
    "error": {
        "type": ["object", "null"],
        "properties": {"code": text(), "message": text(), "status": integer()},
        "description": "Why it failed",
    },
}


@tools.reads("Get a job's status", gives=JOB)
def job_status(engine: Engine, job_id: JobId) -> Body:
    """Show the status of background work: whether it is waiting, running or done, its progress and its result."""
    return show_job(engine.jobs.get(job_id))


@tools.writes("Cancel a job", destructive=True, idempotent=True, gives=JOB)
def job_cancel(engine: Engine, job_id: JobId) -> Body:
    """Stop background work: a waiting job immediately, a running one as soon as possible. What it has already done
    stays; a finished job does not change."""
    return show_job(engine.jobs.cancel(job_id))


def show_job(job: Job) -> Body:
    return success_reply(
        job_id=job.id,
        kind=job.kind,
        status=job.status,
        progress={"done": job.done, "total": job.total, "note": job.note},
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        result=None if job.result is None else result_of(job),
        error=None if job.error is None else error_of(job.error),
    )


def result_of(job: Job) -> Body:
    """What the same work would return if done directly."""
    assert job.result is not None
    if job.kind == "restore" and "memories" in job.result:  # earlier versions kept only the count
        return archive.show_restored(codec.build_value(Restored, job.result))
    if job.kind == run.KIND:
        return sync.show_status(codec.build_value(run.Synced, job.result))
    return dict(job.result)


def error_of(kept: Mapping[str, Any]) -> Body:
    """An error with this dialect's code, as the same work would return directly."""
    kinds = {kind.code: kind for kind in reversed(errors.every_kind())}
    code, status = code_of(kinds.get(kept["code"], Error))
    return {**kept, "code": code, "status": status}
