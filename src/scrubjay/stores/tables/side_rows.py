"""Rows of what stands beside memories that are not simply the fields of a value, in every backend."""

from __future__ import annotations

import json
from typing import Any

from scrubjay.stores.promises.files import File
from scrubjay.stores.promises.sync import Erased
from scrubjay.stores.tables.rows import Row, as_json, maybe_milliseconds, maybe_moment, memory_of_snapshot
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.memory import Memory, State, Version
from scrubjay.values.store import Job, JobStatus
from scrubjay.values.times import milliseconds, moment

# What leaves the row. The length stays: lists are sorted by it.
EMPTY = {"content": "", "title": "", "path": "", "metadata": "{}", "detail": "{}", "content_hash": None}
KEPT = ("name", "end_given")  # of the detail


def empty_row(memory: Memory) -> dict[str, Any]:
    """What is left of a row whose text is archived: the name by which others speak of it, and whose its end is."""
    return EMPTY | {"detail": as_json({name: memory.detail[name] for name in KEPT if name in memory.detail})}


STATES = tuple(State)  # by number; quicker than asking the enum ten thousand times


def file_of_row(row: Row) -> File:
    key, path, state, version, name, agreed_path, agreed_version, digest, stamp, waiting = row
    return File(
        memory=key,
        path=path,
        state=STATES[state],
        version=version,
        name=name,
        agreed_path=agreed_path,
        agreed_version=agreed_version,
        hash=digest,
        stamp=stamp,
        waiting=bool(waiting),
    )


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


def erased_of(state: int, final: int) -> Erased:
    if state != State.PURGED:
        return Erased.NO
    return Erased.FINAL if final else Erased.IN_TIME


def version_of(row: Row) -> Version:
    version, snapshot, at, user, reason = row
    return Version(
        id=version,
        memory=memory_of_snapshot(snapshot),
        replaced_at=moment(at),
        replaced_by=user,
        reason=reason,
    )
