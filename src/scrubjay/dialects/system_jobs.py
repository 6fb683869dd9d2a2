"""System, jobs: how background work stands, and how to stop it. The specification's own flow needs both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Schema, object_schema
from scrubjay.dialects.system import COUNT, ID, TIME, gives, succeeded, system
from scrubjay.memory import Job, JobStatus
from scrubjay.times import iso

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

WHICH = object_schema(
    {"job_id": {"type": "string", "description": "The job's id, as the call that started it gave it"}},
    required=("job_id",),
)
NULLABLE_TIME = {**TIME, "type": ["string", "null"]}
JOB: Schema = {
    "job_id": ID,
    "kind": {"type": "string"},
    "status": {
        "type": "string",
        "enum": [str(status) for status in JobStatus],
        "description": "waiting: for a live server to take it up",
    },
    "progress": object_schema(
        {"done": COUNT, "total": {"type": ["integer", "null"]}, "note": {"type": "string"}},
        required=("done", "total", "note"),
    ),
    "created_at": TIME,
    "started_at": NULLABLE_TIME,
    "finished_at": NULLABLE_TIME,
    "result": {"type": ["object", "null"], "description": "What it did, once it is completed"},
    "error": {
        "type": ["object", "null"],
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        "description": "Why it failed",
    },
}


@system.operation("job_status", title="Look at a job", changes=False, takes=WHICH, gives=gives(JOB))
def job_status(engine: Engine, args: Body) -> Body:
    """See how work in the background stands: whether it waits, runs or is done, how far it is, and its result."""
    return shown(engine.jobs.get(args["job_id"]))


@system.operation(
    "job_cancel", title="Cancel a job", changes=True, destructive=True, idempotent=True, takes=WHICH, gives=gives(JOB)
)
def job_cancel(engine: Engine, args: Body) -> Body:
    """Stop work in the background: a waiting job at once, a running one as soon as it notices. What it has already
    done stays; a finished job stays as it is."""
    return shown(engine.jobs.cancel(args["job_id"]))


def shown(job: Job) -> Body:
    return succeeded(
        job_id=job.id,
        kind=job.kind,
        status=str(job.status),
        progress={"done": job.done, "total": job.total, "note": job.note},
        created_at=iso(job.created_at),
        started_at=iso(job.started_at) if job.started_at else None,
        finished_at=iso(job.finished_at) if job.finished_at else None,
        result=None if job.result is None else dict(job.result),
        error=None if job.error is None else dict(job.error),
    )
