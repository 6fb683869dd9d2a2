"""Native, for those who look after a memory: duplicates, health, backups."""

from __future__ import annotations

import time

import pytest

from scrubjay.dialects.table import find
from scrubjay.errors import InvalidInput
from scrubjay.servers.http.app import build_app
from scrubjay.stores.sqlite.store import SqliteStore
from tests.servers.sites import client_of

pytestmark = pytest.mark.process


@pytest.fixture
def http(jay):
    jay.warm()
    with client_of(build_app(jay, [find("memento")], only_rest=[find("native")])) as client:
        yield client


def finished(http, answer):
    """The job once it is done."""
    assert answer.status_code == 202, answer.text
    job = answer.json()["job"]
    for _ in range(1200):
        if job["status"] not in ("waiting", "running"):
            break
        time.sleep(0.05)
        job = http.get(f"/api/v1/jobs/{job['id']}").json()["job"]
    return job


@pytest.mark.parametrize("file", ["memories.db", "../up.db", "/no/such/folder/x.db", "/tmp", "a\0b"])
def test_a_backup_needs_a_new_file_in_a_folder_that_is_there(http, jay, file):
    answer = http.post("/api/v1/backup", json={"file": file})

    assert answer.status_code in (400, 409), answer.text
    assert not jay.jobs.list()


def test_a_backup_never_overwrites(http, tmp_path):
    there = tmp_path / "there.db"
    there.write_text("mine")

    assert http.post("/api/v1/backup", json={"file": str(there)}).status_code == 409
    assert there.read_text() == "mine"


def test_a_backup_is_made_in_the_background_and_holds_everything(http, jay, tmp_path):
    jay.store("The harbour opens at six")
    file = tmp_path / "monday.db"

    job = finished(http, http.post("/api/v1/backup", json={"file": str(file)}))

    assert (job["status"], job["result"]) == ("completed", {"memories": 1})
    copy = SqliteStore(file)
    assert copy.check().memories == 1
    copy.close()


@pytest.mark.parametrize("work", ["reembed", "rebuild"])
def test_indexes_are_made_anew_in_the_background(http, jay, work):
    jay.store("The harbour opens at six")

    assert finished(http, http.post(f"/api/v1/{work}", json={}))["status"] == "completed"
    assert jay.search("harbour").hits


def test_a_checkup_counts_and_finds_no_damage(http, jay):
    jay.store("The harbour opens at six")

    checkup = http.get("/api/v1/check", params={"deep": "true"}).json()["checkup"]

    assert (checkup["problems"], checkup["memories"], checkup["with_vectors"]) == ([], 1, 1)


def test_duplicates_are_listed_in_pairs(http, jay):
    older, newer = jay.store("The harbour opens at six").memory, jay.store("the harbour opens at six!").memory
    jay.store("Tea at four")

    [pair] = http.get("/api/v1/duplicates").json()["duplicates"]

    assert (pair["older"]["id"], pair["newer"]["id"]) == (older.id, newer.id)


def test_a_store_that_is_not_there_is_not_reindexed(http):
    assert http.post("/api/v1/stores/nowhere/reindex", json={}).status_code == 404


def test_a_revocation_says_why_in_the_audit(http, jay):
    made = http.post("/api/v1/keys", json={"user": "ann", "kind": "token"}).json()

    assert "secret" not in made or made["secret"] is None
    jay.callers.revoke(made["key"]["id"], reason="laptop lost")
    assert jay.callers.audit()[0].reason == "laptop lost"


def test_a_password_is_not_sent_over_rest(http, jay):
    """It would lie in requests that are kept to be answered twice; the command line asks for it."""
    assert http.post("/api/v1/keys", json={"user": "ann", "kind": "password"}).status_code == 400
    with pytest.raises(InvalidInput):
        jay.jobs.start("no such work", {})
