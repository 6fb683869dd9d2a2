"""What stores disagree about, over REST: endpoints are this machine's, conflicts are every owner's own."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from scrubjay.dialects.table import find
from scrubjay.engine.sync.run import Resolution
from scrubjay.errors import NotFound, Undecided
from scrubjay.servers.http.app import build_app
from scrubjay.values.callers import Caller, Role
from tests.servers.sites import client_of
from tests.sync.test_syncing import both_changed, run

pytestmark = pytest.mark.process


@contextmanager
def site(jay):
    with client_of(build_app(jay, [find("memento")], only_rest=[find("native")])) as client:
        yield client


@pytest.fixture
def undecided(jay, drive, clock):
    id = both_changed(jay, drive, clock)
    with pytest.raises(Undecided):
        run(jay, resolution=Resolution.MANUAL)
    return id


def test_a_conflict_that_does_not_wait_is_not_found(jay, undecided):
    with site(jay) as http:
        unknown = http.post("/api/v1/sync/conflicts/999/resolve", json={"keep": "ours"})
        nonsense = http.post("/api/v1/sync/conflicts/1/resolve", json={"keep": "mine"})

    assert (unknown.status_code, nonsense.status_code) == (404, 400)
    assert jay.get(undecided).content == "User lives in Rome"


def test_owners_of_other_spaces_neither_see_nor_settle_it(jay, undecided):
    stranger = jay.bound_to(caller=Caller(user="eve", role=Role.OWNER, spaces=frozenset({"elsewhere"})))
    [waiting] = jay.sync.conflicts()

    assert not stranger.sync.conflicts()
    with pytest.raises(NotFound):
        stranger.sync.resolve(waiting.number, "theirs")
    assert jay.get(undecided).content == "User lives in Rome"


def test_a_conflict_is_shown_with_both_states_and_settled(jay, drive, undecided):
    with site(jay) as http:
        [waiting] = http.get("/api/v1/sync/conflicts").json()["conflicts"]
        kept = http.post(f"/api/v1/sync/conflicts/{waiting['number']}/resolve", json={"keep": "theirs"}).json()
        left = http.get("/api/v1/sync/conflicts").json()["conflicts"]
        [settled] = http.get("/api/v1/sync/conflicts", params={"settled": "true"}).json()["conflicts"]

    assert (waiting["memory"], waiting["endpoint"]) == (undecided, "drive")
    assert (waiting["ours"]["content"], waiting["theirs"]["content"]) == ("User lives in Rome", "User lives in Paris")
    assert kept["memory"]["content"] == jay.get(undecided).content == "User lives in Paris"
    assert (left, settled["outcome"]) == ([], "theirs")


def test_endpoints_are_added_listed_and_removed(jay, tmp_path):
    with site(jay) as http:
        added = http.post("/api/v1/sync/endpoints", json={"name": "stick", "url": f"sqlite:///{tmp_path / 'stick.db'}"})
        listed = http.get("/api/v1/sync/endpoints").json()["endpoints"]
        removed = http.delete("/api/v1/sync/endpoints/stick")
        again = http.delete("/api/v1/sync/endpoints/stick")

    assert (added.status_code, removed.status_code, again.status_code) == (201, 200, 404)
    assert [one["name"] for one in listed] == ["drive", "stick"]
