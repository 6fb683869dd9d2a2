"""`scrubjay jobs`: people see, carry on and cancel what runs in the background."""

from __future__ import annotations

import pytest

from scrubjay.engine import jobs
from scrubjay.settings import load
from scrubjay.wiring import open_engine


@pytest.fixture
def job(home, monkeypatch):
    monkeypatch.setitem(jobs.KINDS, "count", lambda _engine, arguments, _handle: {"counted": arguments["n"]})
    with open_engine(load({}, home=str(home), embedder="hashing")) as engine:
        return engine.jobs.start("count", {"n": 2})


def test_jobs_are_listed(call, job):
    assert call("jobs", "list").out.startswith(f"{job.id}\tcount\twaiting\t0\t")
    assert call("jobs", "list", "--json").json[0]["id"] == job.id


def test_a_job_is_run_and_shown(call, job):
    assert "completed" in call("jobs", "run", job.id).out
    assert '{"counted": 2}' in call("jobs", "show", job.id).out


def test_a_job_is_cancelled(call, job):
    assert call("jobs", "cancel", job.id, "--json").json["status"] == "cancelled"
