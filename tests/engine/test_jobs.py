"""Long work: persisted, leased, carried on, cancelled, bound to its caller."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from scrubjay.engine import jobs
from scrubjay.errors import Forbidden, InvalidInput, JobNotFound, Unprocessable
from scrubjay.values.callers import Caller, Provenance, Role
from scrubjay.values.store import JobStatus

SECONDS = 60


@pytest.fixture
def kind(monkeypatch):
    """Register a kind of job for one test."""

    def register(run, name="count"):
        monkeypatch.setitem(jobs.KINDS, name, run)
        return name

    return register


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(jobs, "WRITE_SECONDS", 0.0)
    monkeypatch.setattr(jobs, "PAUSE_SECONDS", 0.05)


def wait_for(engine, id):
    """Wait for a job in the background."""
    patience = threading.Event()
    for _ in range(SECONDS * 50):
        job = engine.jobs.get(id)
        if job.finished:
            return job
        patience.wait(0.02)
    raise AssertionError(f"still {job.status}")


def test_without_a_server_a_job_waits_for_one_of_another_process(open_engine, kind):
    first = open_engine()
    job = first.jobs.start(kind(lambda *_: {"done": True}), {"n": 3})
    assert job.status is JobStatus.WAITING
    assert [one.id for one in first.jobs.list(unfinished=True)] == [job.id]
    first.close()

    second = open_engine()
    second.warm()

    assert wait_for(second, job.id).result == {"done": True}


def test_a_server_takes_it_up_and_its_result_is_kept(jay, kind):
    name = kind(lambda engine, arguments, _: {"sum": arguments["n"] + 1})
    jay.warm()

    job = wait_for(jay, jay.jobs.start(name, {"n": 3}).id)

    assert (job.status, job.result) == (JobStatus.COMPLETED, {"sum": 4})


def test_it_is_done_for_its_caller_and_with_no_more_rights(jay, kind):
    seen = []

    def run(engine, _arguments, _handle):
        seen.append((engine.caller, engine.spaces, engine.provenance.client))
        engine.store("not a reader's to write")
        return {}

    name = kind(run)
    reader = Caller(user="ann", role=Role.READER, spaces=frozenset({"work"}))
    bound = jay.bound_to(caller=reader, spaces=("work",), provenance=Provenance(client="editor"))

    job = bound.jobs.run(bound.jobs.start(name, {}).id)

    assert seen == [(reader, ("work",), "editor")]
    assert (job.status, job.error["code"]) == (JobStatus.FAILED, Forbidden.code)


def test_progress_is_seen_while_it_runs(jay, kind):
    def run(engine, _arguments, handle):
        handle.progress(3, 10, "the third")
        seen.append(engine.jobs.get(handle.id))
        engine.progress(4, 10, "the fourth")  # as work that knows nothing of jobs reports
        seen.append(engine.jobs.get(handle.id))
        return {}

    seen = []
    job = jay.jobs.run(jay.jobs.start(kind(run), {}).id)

    third, fourth = seen
    assert (third.status, third.done, third.total, third.note) == (JobStatus.RUNNING, 3, 10, "the third")
    assert (fourth.done, fourth.note) == (4, "the fourth")
    assert (job.done, job.total, job.note) == (10, 10, "")


def test_a_killed_servers_job_goes_on_from_its_last_state(jay, kind):
    calls = []

    def run(_engine, _arguments, handle):
        calls.append(dict(handle.state))
        handle.progress(1, 2, state={"at": 1})
        if len(calls) == 1:
            raise SystemExit  # nothing of ours catches it: the process is gone
        return {"began_at": calls[-1]["at"]}

    job = jay.jobs.start(kind(run), {})
    with pytest.raises(SystemExit):
        jay.jobs.run(job.id)

    assert jay.jobs.get(job.id).status is JobStatus.WAITING
    assert jay.jobs.run(job.id).result == {"began_at": 1}
    assert calls == [{}, {"at": 1}]


def test_a_job_whose_servers_keep_dying_is_given_up(jay, kind):
    def run(*_):
        raise SystemExit

    job = jay.jobs.start(kind(run), {})
    for _ in range(jobs.MOST_ATTEMPTS):
        with pytest.raises(SystemExit):
            jay.jobs.run(job.id)

    assert jay.jobs.run(job.id).status is JobStatus.FAILED


def test_one_process_at_a_time_does_it(open_engine, kind):
    running, go_on = threading.Event(), threading.Event()
    calls = []

    def run(*_):
        calls.append(1)
        running.set()
        assert go_on.wait(SECONDS)
        return {}

    one, two = open_engine(), open_engine()
    job = one.jobs.start(kind(run), {})
    thread = threading.Thread(target=one.jobs.run, args=(job.id,))
    thread.start()
    assert running.wait(SECONDS)

    assert two.jobs.run(job.id).status is JobStatus.RUNNING
    go_on.set()
    thread.join()

    assert len(calls) == 1
    assert two.jobs.get(job.id).status is JobStatus.COMPLETED


def test_a_closing_server_leaves_its_job_to_the_next(open_engine, kind):
    running, closing = threading.Event(), threading.Event()

    def run(_engine, _arguments, handle):
        handle.progress(1, 2, state={"at": 1})
        running.set()
        while not closing.is_set():
            handle.progress(1, 2)
        return {"from": handle.state["at"]}

    one = open_engine()
    one.warm()
    job = one.jobs.start(kind(run), {})
    assert running.wait(SECONDS)
    one.close()
    closing.set()

    two = open_engine()
    left = two.jobs.get(job.id)
    assert (left.status, left.attempts) == (JobStatus.WAITING, 0)
    assert two.jobs.run(job.id).result == {"from": 1}


def test_a_waiting_job_is_cancelled_at_once(jay, kind):
    job = jay.jobs.start(kind(lambda *_: {"ran": True}), {})

    cancelled = jay.jobs.cancel(job.id)

    assert cancelled.status is JobStatus.CANCELLED
    assert jay.jobs.run(job.id).result is None
    assert jay.jobs.cancel(job.id) == cancelled, "what is finished stays as it is"


def test_a_running_job_is_cancelled_when_it_next_reports(jay, kind):
    def run(engine, _arguments, handle):
        handle.progress(1)
        engine.jobs.cancel(handle.id)
        seen.append(engine.jobs.get(handle.id).status)
        handle.progress(2)
        raise AssertionError("it should have stopped")

    seen = []
    job = jay.jobs.run(jay.jobs.start(kind(run), {}).id)

    assert seen == [JobStatus.RUNNING]
    assert job.status is JobStatus.CANCELLED


def test_a_refusal_is_kept_as_an_error_and_a_fault_as_internal(jay, kind, caplog):
    def refuse(*_):
        raise Unprocessable("It cannot be done.", hint="Do another.", memory_id="mem_1")

    refused = jay.jobs.run(jay.jobs.start(kind(refuse), {}).id)
    faulty = jay.jobs.run(jay.jobs.start(kind(lambda *_: 1 / 0), {}).id)

    assert refused.error == {
        "code": "unprocessable",
        "message": "It cannot be done.",
        "hint": "Do another.",
        "details": {"memory_id": "mem_1"},
    }
    assert faulty.error["code"] == "internal"
    assert "division" not in str(faulty.error)
    assert "division" in caplog.text


def test_a_job_is_its_callers_own(jay, kind):
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default"})))
    bob = jay.bound_to(caller=Caller(user="bob", role=Role.OWNER, spaces=frozenset({"default"})))
    job = ann.jobs.start(kind(lambda *_: {}), {})

    for verb in (bob.jobs.get, bob.jobs.cancel, bob.jobs.run):
        with pytest.raises(JobNotFound):
            verb(job.id)
    assert bob.jobs.list() == []
    assert [one.id for one in ann.jobs.list()] == [job.id]
    assert jay.jobs.get(job.id).caller.user == "ann"  # the owner of everything sees all


@pytest.mark.parametrize("id", ["", "x" * 300, "a\x00"])
def test_an_impossible_id_is_refused(jay, id):
    with pytest.raises(InvalidInput):
        jay.jobs.get(id)


def test_an_unknown_kind_is_refused(jay):
    with pytest.raises(InvalidInput):
        jay.jobs.start("dance", {})


def test_finished_jobs_are_forgotten_after_a_week(jay, kind, clock):
    old = jay.jobs.run(jay.jobs.start(kind(lambda *_: {}), {}).id)
    clock.time += timedelta(days=8)
    jay.jobs.run(jay.jobs.start("count", {}).id)

    with pytest.raises(JobNotFound):
        jay.jobs.get(old.id)


def test_a_key_for_another_space_does_not_reach_its_users_jobs_here(jay, kind):
    kind(lambda _engine, _arguments, _handle: {})
    here = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default"})))
    there = jay.bound_to(caller=Caller(user="ann", role=Role.OWNER, spaces=frozenset({"vault"})), spaces=("vault",))
    job = here.jobs.start("count", {})

    assert [one.id for one in here.jobs.list()] == [job.id]
    assert there.jobs.list() == []
    with pytest.raises(JobNotFound):
        there.jobs.cancel(job.id)
