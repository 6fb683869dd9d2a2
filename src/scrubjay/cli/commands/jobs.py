"""`scrubjay jobs`"""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from scrubjay.cli.command import Family
from scrubjay.cli.output import Cell, note, print_facts, print_json, show_table
from scrubjay.cli.session import CommandSession
from scrubjay.values.store import Job, JobStatus


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay jobs list
    scrubjay jobs show arch_job_4x1k9c0d2m7q
    scrubjay jobs cancel job_4x1k9c0d2m7q
    """,
)
def jobs() -> None:
    """List, run or cancel background jobs.

    A running server picks up waiting jobs; without one, use `scrubjay jobs run`.
    """


@jobs.command("list", examples="scrubjay jobs list --unfinished")
@click.option("--unfinished", is_flag=True, help="Only waiting or running jobs.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Maximum number to show.")
@click.pass_obj
def list_jobs(session: CommandSession, unfinished: bool, limit: int) -> None:
    """List jobs, newest first; finished ones are kept for a week."""
    with session.engine(meaning=False) as engine:
        found = engine.jobs.list(unfinished=unfinished, limit=limit)
    rows = [(one.id, one.kind, str(one.status), describe_progress(one), one.created_at, failure(one)) for one in found]
    show_table(list(found), ("job", "kind", "status", "done", "created", "error"), rows, session)
    if not found:
        note("No jobs.", session)


@jobs.command(examples="scrubjay jobs show job_4x1k9c0d2m7q")
@click.argument("id")
@click.pass_obj
def show(session: CommandSession, id: str) -> None:
    """Show a job's progress and result."""
    with session.engine(meaning=False) as engine:
        print_job(engine.jobs.get(id), session)


@jobs.command(examples="scrubjay jobs cancel job_4x1k9c0d2m7q")
@click.argument("id")
@click.pass_obj
def cancel(session: CommandSession, id: str) -> None:
    """Stop a job; what it has already done stays."""
    with session.engine(meaning=False) as engine:
        job = engine.jobs.cancel(id)
    print_job(job, session)
    if job.status is JobStatus.RUNNING:
        note("It will stop shortly.", session)


@jobs.command(examples="scrubjay jobs run job_4x1k9c0d2m7q")
@click.argument("id")
@click.pass_obj
def run(session: CommandSession, id: str) -> None:
    """Run a waiting job now, without a server."""
    with session.engine() as engine:
        print_job(engine.jobs.run(id), session)


def print_job(job: Job, session: CommandSession) -> None:
    if session.as_json:
        print_json(job)
        return
    print_facts(list(facts(job)), room=10)


def facts(job: Job) -> Iterator[tuple[str, Cell]]:
    yield "job", job.id
    yield "kind", job.kind
    yield "status", f"{job.status}, stopping" if job.cancelling and not job.finished else str(job.status)
    yield "done", describe_progress(job)
    for name, moment in (("created", job.created_at), ("started", job.started_at), ("finished", job.finished_at)):
        if moment is not None:
            yield name, moment
    if job.error is not None:
        yield "error", failure(job)
    if job.result is not None:
        yield "result", json.dumps(job.result, ensure_ascii=False)


def describe_progress(job: Job) -> str:
    done = f"{job.done:,}" if job.total is None else f"{job.done:,} of {job.total:,}"
    return f"{done}  {job.note}".rstrip()


def failure(job: Job) -> str:
    return "" if job.error is None else str(job.error.get("message", ""))
