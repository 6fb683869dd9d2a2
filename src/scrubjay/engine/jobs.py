"""Long work: persisted, taken up by any live server, carried on after a crash, cancellable, with progress.

    engine.jobs.start(kind, arguments) ── row ──> worker of a live server: lease `job:<id>`, renewed while it works
                                                    └─ KINDS[kind](engine bound to the caller, arguments, handle)

A job is `running` while a server's lease on it runs and `waiting` otherwise, so a killed server's job needs no tidying:
after fifteen seconds the next server takes it up. It starts over then, with what it last handed to
`handle.progress(…, state=…)` in `handle.state`; so a kind's function must be able to go on from there, and to do over
what it had done since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrubjay.engine import access
from scrubjay.engine.holding import CLOSING_SECONDS, LEASE_SECONDS, PAUSE_SECONDS
from scrubjay.engine.store import intake
from scrubjay.errors import Error, Internal, InvalidInput, JobNotFound
from scrubjay.lazy import logging
from scrubjay.values.callers import Role
from scrubjay.values.frozen import replace
from scrubjay.values.memory import random_suffix
from scrubjay.values.store import Job, JobStatus

if TYPE_CHECKING:
    from logging import Logger

    from scrubjay.engine.engine import Engine
    from scrubjay.stores.promises.memories import Transaction

WRITE_SECONDS = 0.5  # between notes of progress, and looks whether it is to be cancelled
MOST_ATTEMPTS = 5  # at a job whose servers keep dying
KEPT = timedelta(days=7)  # how long a finished job can be asked about
MAX_LISTED = 100

Progress = Callable[[int, int | None, str], None]  # (done, total if known, what it is at)
Run = Callable[["Engine", Mapping[str, Any], "Handle"], Mapping[str, Any]]  # the result is plain JSON without texts

# What jobs there are. A name "module:function" is imported when the first job of its kind is run.
KINDS: dict[str, Run | str] = {
    "restore": "scrubjay.engine.archive.restoring:run_restore",
    "sync": "scrubjay.engine.sync.run:in_background",
    "backup": "scrubjay.engine.upkeep.tasks:run_backup",
    "reembed": "scrubjay.engine.upkeep.tasks:run_reembed",
    "rebuild": "scrubjay.engine.upkeep.tasks:run_rebuild",
    "phrases": "scrubjay.engine.lifecycle.tidying:run",
}


def no_progress(_done: int, _total: int | None, _note: str) -> None:
    """For work that no client waits for."""


class Cancelled(Exception):
    """The job was cancelled; raised out of `handle.progress` so that its function comes to an end."""


class JobStopped(Exception):
    """This process is closing, or has lost its lease: the job is another's to carry on."""


class Handle:
    """What a job's function is given to speak about itself."""

    def __init__(self, engine: Engine, job: Job, stopping: Callable[[], bool]) -> None:
        self.id = job.id
        self.state = dict(job.state)
        self._engine = engine
        self._stopping = stopping
        self._written_at = 0.0

    def progress(
        self, done: int, total: int | None = None, note: str = "", *, state: Mapping[str, Any] | None = None
    ) -> None:
        """Say how far it is; with a state, also how to go on from here. Call it between any two pieces of work.

        A state is always written at once; numbers alone now and then.

        :raises Cancelled: if the job was asked to stop
        :raises Stopped: if this process should not go on
        """
        if self._stopping():
            raise JobStopped
        if state is None and monotonic() - self._written_at < WRITE_SECONDS:
            return
        self._written_at = monotonic()
        with self._engine.records.writing() as tx:
            job = tx.jobs.get(self.id)
            if job is None or job.finished or job.cancelling:
                raise Cancelled
            kept = job.state if state is None else dict(state)
            tx.jobs.put(replace(job, done=done, total=total, note=note[:200], state=kept))


class Jobs:
    """The jobs of one caller. Others' are not found, except by an owner of everything."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def start(self, kind: str, arguments: Mapping[str, Any], *, prefix: str = "job") -> Job:
        """Have something done in the background, by this process if it serves, else by the next that does."""
        if kind not in KINDS:
            raise InvalidInput(f"Unknown kind of job {kind!r}.", field="kind")
        intake.check_json(arguments, "arguments")
        job = self.new(kind, arguments, prefix=prefix)

        def write(tx: Transaction) -> Job:
            tx.jobs.put(job)
            return job

        started = self._engine.transact(Job, write)
        self._engine.parts.worker.wake()
        return self.get(started.id)

    def new(self, kind: str, arguments: Mapping[str, Any], *, prefix: str) -> Job:
        """A job that is not written yet: for work that is done within its call, to write with its result."""
        engine = self._engine
        return Job(
            id=f"{prefix}_{random_suffix()}",
            kind=kind,
            caller=engine.caller,
            spaces=engine.spaces,
            provenance=engine.provenance,
            arguments=dict(arguments),
            created_at=engine.now(),
        )

    def get(self, id: str) -> Job:
        """:raises JobNotFound: if there is none, or none of this caller's"""
        intake.check_id(id)
        job = self._engine.records.jobs.get(id)
        if job is None or not self._may_see(job):
            raise JobNotFound(f"No job {id[:100]}.", hint="Finished jobs are kept for a week.", job_id=id)
        return job

    def list(self, *, unfinished: bool = False, limit: int = 20) -> Sequence[Job]:
        """Jobs, newest first."""
        intake.check_limit(limit)
        user = None if self._sees_all() else self._engine.caller.user
        found = self._engine.records.jobs.list(user=user, unfinished=unfinished, limit=limit)
        return [job for job in found if self._may_see(job)]

    def cancel(self, id: str) -> Job:
        """Stop a job: a waiting one at once, a running one as soon as it notices. A finished one stays as it is."""
        self.get(id)
        with self._engine.records.writing() as tx:
            job = tx.jobs.get(id)
            assert job is not None
            if job.status is JobStatus.WAITING:
                tx.jobs.put(replace(job, status=JobStatus.CANCELLED, cancelling=True, finished_at=self._engine.now()))
            elif job.status is JobStatus.RUNNING:
                tx.jobs.put(replace(job, cancelling=True))
        return self.get(id)

    def run(self, id: str) -> Job:
        """Do a job here and now, unless another process is at it; then say how it stands."""
        self._engine.parts.worker.run(self.get(id))
        return self.get(id)

    def _may_see(self, job: Job) -> bool:
        """Its user's own, where its credential reaches: who owns one space can make a key in anybody's name there."""
        caller = self._engine.caller
        reached = all(access.is_granted(caller, space) for space in job.spaces)
        return (job.caller.user == caller.user and reached) or self._sees_all()

    def _sees_all(self) -> bool:
        caller = self._engine.caller
        return caller.role is Role.OWNER and caller.spaces is None


class JobWorker:
    """What one process does about jobs, in the background of its calls: one after another, oldest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine  # bound to no caller; each job gets it bound to its own caller
        self._holder = random_suffix()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take up jobs from now on; once is enough."""
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """There is a new job: look soon, if this process takes up jobs at all."""
        self._wake.set()

    def close(self) -> None:
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=CLOSING_SECONDS)

    def run_waiting(self) -> int:
        """Do what waits now; how many jobs that were."""
        ran = 0
        for job in reversed(self._engine.records.jobs.list(unfinished=True, limit=MAX_LISTED)):
            if self._closing.is_set():
                break
            if job.status is JobStatus.WAITING:
                ran += self.run(job)
        return ran

    def run(self, job: Job) -> bool:
        """Do a job; False if another process is doing it or it is finished."""
        name, records = f"job:{job.id}", self._engine.records
        if job.finished or not records.upkeep.lease(name, holder=self._holder, seconds=LEASE_SECONDS):
            return False
        lost, done = threading.Event(), threading.Event()
        renewing = threading.Thread(target=self._renew, args=(name, lost, done), name="lease", daemon=True)
        try:
            taken = self._taken_up(job.id)
            if taken is None:
                return False
            renewing.start()
            self._do(taken, lost)
            return True
        finally:
            done.set()
            if renewing.is_alive():
                renewing.join()
            records.upkeep.release(name, holder=self._holder)

    def _taken_up(self, id: str) -> Job | None:
        """Note that it begins; None if there is nothing to do any more."""
        with self._engine.records.writing() as tx:
            job = tx.jobs.get(id)
            if job is None or job.finished:
                return None
            now = self._engine.now()
            if job.cancelling:
                tx.jobs.put(replace(job, status=JobStatus.CANCELLED, finished_at=now))
                return None
            job = replace(job, attempts=job.attempts + 1, started_at=job.started_at or now)
            if job.attempts > MOST_ATTEMPTS:
                died = error_of(Internal(f"It was started {MOST_ATTEMPTS} times, and each time its server stopped."))
                tx.jobs.put(replace(job, status=JobStatus.FAILED, error=died, finished_at=now))
                return None
            tx.jobs.put(job)
            return job

    def _do(self, job: Job, lost: threading.Event) -> None:
        engine = self._engine.bound_to(caller=job.caller, spaces=job.spaces, only=False, provenance=job.provenance)
        handle = Handle(engine, job, lambda: self._closing.is_set() or lost.is_set())
        try:
            result = find_kind(job.kind)(engine.bound_to(progress=handle.progress), job.arguments, handle)
        except Cancelled:
            self._finish(job.id, status=JobStatus.CANCELLED)
        except JobStopped:
            self._give_back(job.id)
        except Error as error:
            self._finish(job.id, status=JobStatus.FAILED, error=error_of(error))
        except Exception:  # noqa: BLE001 -- no server stands behind a job to do this for it
            log().exception("fault in job %s (%s)", job.id, job.kind)
            self._finish(job.id, status=JobStatus.FAILED, error=error_of(Internal()))
        else:
            self._finish(job.id, status=JobStatus.COMPLETED, result=dict(result), note="")

    def _finish(self, id: str, **fields: Any) -> None:
        with self._engine.records.writing() as tx:
            job = tx.jobs.get(id)
            if job is None or job.finished:
                return
            if fields["status"] is JobStatus.COMPLETED and job.total is not None:
                fields["done"] = job.total
            tx.jobs.put(replace(job, finished_at=self._engine.now(), **fields))
            tx.jobs.drop(finished_before=self._engine.now() - KEPT)

    def _give_back(self, id: str) -> None:
        """Left to another, in good order: that was no failed attempt."""
        with self._engine.records.writing() as tx:
            job = tx.jobs.get(id)
            if job is not None and not job.finished:
                tx.jobs.put(replace(job, attempts=job.attempts - 1))

    def _renew(self, name: str, lost: threading.Event, done: threading.Event) -> None:
        while not done.wait(PAUSE_SECONDS):
            try:
                if not self._engine.records.upkeep.lease(name, holder=self._holder, seconds=LEASE_SECONDS):
                    lost.set()  # this machine slept, and another has taken over
                    return
            except Error as error:  # busy or away; there is time for two more tries
                log().info("the lease of %s could not be renewed: %s", name, error.message)

    def _work(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            try:
                self.run_waiting()
            except Error as error:  # the store is busy or away; the next look tries again
                log().info("jobs wait: %s", error.message)
            self._wake.wait(timeout=PAUSE_SECONDS)


def find_kind(kind: str) -> Run:
    """:raises Internal: if this scrubjay knows no such kind: a newer one has started it"""
    run = KINDS.get(kind)
    if isinstance(run, str):
        module, _, name = run.partition(":")
        run = getattr(import_module(module), name)
        KINDS[kind] = run
    if run is None:
        raise Internal(f"This scrubjay does not support the job {kind!r}.", hint="Update scrubjay.")
    return run


def log() -> Logger:
    return logging.getLogger(__name__)


def error_of(error: Error) -> dict[str, Any]:
    """An error as a job keeps it; as dialects show it, with its code and details."""
    details = {name: value for name, value in error.details.items() if isinstance(value, str | int | float | list)}
    return {"code": error.code, "message": error.message, "hint": error.hint, "details": details}
