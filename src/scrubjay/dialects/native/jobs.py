"""Native: work in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrubjay.dialects.base import Body, Route, flag, integer, object_schema, record, text
from scrubjay.dialects.native.memories import LARGE, ROOT, gives, many, native
from scrubjay.dialects.schemas import shape, shown
from scrubjay.values.memory import Job

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

ONE = record({"id": text("A job's id", minLength=1)})


@native.reads(
    "List jobs",
    route=Route("GET", f"{ROOT}/jobs"),
    takes=object_schema(
        {
            "unfinished": flag("Only waiting or running jobs", default=False),
            "limit": integer(minimum=1, maximum=100, default=20),
        }
    ),
    gives=gives({"jobs": many(Job)}, optional=LARGE),
)
def list_jobs(engine: Engine, args: Body) -> Body:
    """Jobs that the caller may see, newest first."""
    found = engine.jobs.list(unfinished=bool(args.get("unfinished")), limit=int(args.get("limit", 20)))
    return {"jobs": shown(list(found))}


@native.reads("Get a job", route=Route("GET", f"{ROOT}/jobs/{{id}}"), takes=ONE, gives=gives({"job": shape(Job)}))
def get_job(engine: Engine, args: Body) -> Body:
    """A job's progress and result."""
    return {"job": shown(engine.jobs.get(args["id"]))}


@native.writes(
    "Cancel a job",
    destructive=True,
    idempotent=True,
    route=Route("POST", f"{ROOT}/jobs/{{id}}/cancel"),
    takes=ONE,
    gives=gives({"job": shape(Job)}),
)
def cancel_job(engine: Engine, args: Body) -> Body:
    """Ask a job to stop; it does so as soon as it can."""
    return {"job": shown(engine.jobs.cancel(args["id"]))}
