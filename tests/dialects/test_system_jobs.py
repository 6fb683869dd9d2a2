"""System's job_status and job_cancel: whoever started a job sees how it stands."""

from __future__ import annotations

import pytest

from scrubjay.engine import jobs
from scrubjay.values.callers import Caller, Role
from tests.dialects.test_system import ok, refused


@pytest.fixture(autouse=True)
def count(monkeypatch):
    monkeypatch.setitem(jobs.KINDS, "count", lambda _engine, arguments, _handle: {"counted": arguments["n"]})


def test_a_job_is_followed_from_waiting_to_its_result(jay):
    job = jay.jobs.start("count", {"n": 2})
    waiting = ok(jay, "job_status", {"job_id": job.id})
    jay.jobs.run(job.id)
    done = ok(jay, "job_status", {"job_id": job.id})

    assert (waiting["status"], waiting["result"], waiting["finished_at"]) == ("waiting", None, None)
    assert (done["status"], done["result"]) == ("completed", {"counted": 2})
    assert done["finished_at"]


def test_a_job_is_cancelled_and_cancelling_again_changes_nothing(jay):
    job = jay.jobs.start("count", {"n": 2})

    first = ok(jay, "job_cancel", {"job_id": job.id})

    assert first["status"] == "cancelled"
    assert ok(jay, "job_cancel", {"job_id": job.id}) == first


@pytest.mark.parametrize("tool", ["job_status", "job_cancel"])
def test_an_impossible_id_is_400_an_unknown_and_a_foreign_one_404(jay, tool):
    ann = jay.bound_to(caller=Caller(user="ann", role=Role.MEMBER))
    job = jay.jobs.start("count", {"n": 2})

    assert refused(jay, tool, {"job_id": ""})["status"] == 400
    assert refused(jay, tool, {})["status"] == 400
    assert refused(jay, tool, {"job_id": "job_unknown"})["code"] == "JOB_NOT_FOUND"
    assert refused(ann, tool, {"job_id": job.id})["status"] == 404
