"""Jobs outlive their servers: what one left behind, the next one does."""

from __future__ import annotations

import threading

import pytest

from scrubjay.settings import load
from scrubjay.values.store import JobStatus
from scrubjay.wiring import open_engine
from tests.servers.test_http import real_server

pytestmark = pytest.mark.process

SECONDS = 240


@pytest.fixture
def jay(tmp_path):
    with open_engine(load({}, home=str(tmp_path), embedder="hashing")) as engine:
        yield engine


def finished(jay, id):
    for _ in range(SECONDS * 20):
        job = jay.jobs.get(id)
        if job.finished:
            return job
        threading.Event().wait(0.05)
    raise AssertionError(f"still {job.status}")


def test_a_server_does_what_was_left_waiting_and_a_killed_one_leaves_it_to_the_next(jay, tmp_path):
    memory = jay.store("The harbour master is called Ottilie").memory
    jay.cold_storage.archive([memory.id])
    left = jay.cold_storage.restore([memory.id], background=True)
    assert left.status is JobStatus.WAITING

    with real_server(tmp_path):
        assert finished(jay, left.job).status is JobStatus.COMPLETED
    assert jay.get(memory.id).content == "The harbour master is called Ottilie"

    jay.cold_storage.archive([memory.id])
    again = jay.cold_storage.restore([memory.id], background=True)
    assert jay.jobs.get(again.job).status is JobStatus.WAITING  # the server is killed: nobody is there
    with real_server(tmp_path):
        assert finished(jay, again.job).status is JobStatus.COMPLETED
