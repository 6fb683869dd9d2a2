"""System's sync_memories: acceptance cases S20 and S21, and every error of its list."""

from __future__ import annotations

import pytest

from scrubjay.dialects.base import Reach
from scrubjay.dialects.system.memories import system
from scrubjay.dialects.validation import Checker
from scrubjay.engine.sync import syncing
from scrubjay.engine.sync.syncing import LEASE
from scrubjay.errors import StorageError
from scrubjay.values.callers import Caller, Role
from scrubjay.values.times import parse_time
from tests.dialects.test_system import ok, refused, stored
from tests.sync.conftest import drive, jay, open_engine  # noqa: F401 -- two stores instead of one


def both_changed(jay, drive, clock):  # noqa: F811
    memory = stored(jay, "User lives in Austin")
    ok(jay, "sync_memories", {"destination": "drive"})
    clock.move(seconds=1)
    ok(jay, "update_memory", {"memory_id": memory, "updates": {"content": "User lives in Rome"}})
    clock.move(seconds=1)
    ok(drive, "update_memory", {"memory_id": memory, "updates": {"content": "User lives in Paris"}})
    return memory


def test_it_is_for_this_machines_owner():
    assert system.operations["sync_memories"].reach is Reach.LOCAL


def test_it_is_said_to_take_away():
    assert system.operations["sync_memories"].destructive


def test_a_sync_says_what_it_did(jay, drive):  # noqa: F811
    stored(jay, "User lives in Austin")
    stored(drive, "User plays the cello")

    body = ok(jay, "sync_memories", {"destination": "drive"})

    assert body["sync_id"].startswith("sync_")
    assert len(body["sync_id"]) >= len("sync_") + 12
    assert (body["sync_type"], body["source"], body["destination"]) == ("incremental", "local", "drive")
    summary = body["summary"]
    assert summary == {
        "total_checked": 2, "synced": 2, "created": 2, "updated": 0, "deleted": 0,
        "conflicts": 0, "conflicts_resolved": 0, "skipped": 0, "errors": 0,
    }  # fmt: skip
    assert body["conflicts_handled"] == []
    waits = parse_time(body["next_sync_recommended"], field="") - parse_time(body["started_at"], field="")
    assert waits.total_seconds() == 12 * 3600


def test_what_one_store_got_by_sync_is_recalled_there(jay, drive):  # noqa: F811
    memory = stored(jay, "User lives in Austin")

    ok(jay, "sync_memories", {"destination": "drive"})

    found = ok(drive, "recall_memories", {"query": "Where does the user live?"})["memories"]
    assert [one["memory_id"] for one in found] == [memory]


def test_s20_a_dry_run_fills_the_same_fields_and_writes_nothing(jay, drive):  # noqa: F811
    stored(jay, "User lives in Austin")

    told = ok(jay, "sync_memories", {"destination": "drive", "dry_run": True})

    assert told["summary"]["created"] == 1
    assert ok(drive, "list_memories")["total_count"] == 0
    done = ok(jay, "sync_memories", {"destination": "drive"})
    assert told.keys() == done.keys()
    assert told["summary"] == done["summary"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": "drive", "destination": "drive"},
        {"source": "local", "destination": "local"},
        {"destination": ""},
        {"destination": "x" * 65},
        {"destination": "drive", "sync_type": "sideways"},
        {"destination": "drive", "conflict_resolution": "dice"},
        {"destination": "drive", "filters": {"categories": ["foo"]}},
        {"destination": "drive", "filters": {"modified_since": "yesterday"}},
        {"destination": "drive", "filters": {"tags": ["x"]}},
        {"destination": "drive", "dry_run": True, "background": True},
        {"destination": "drive", "unknown": 1},
    ],
)
def test_s20_what_makes_no_sense_is_400(jay, arguments):  # noqa: F811
    error = refused(jay, "sync_memories", arguments)

    assert (error["status"], error["code"]) == (400, "INVALID_INPUT")


def test_leaving_conflicts_between_two_other_stores_is_400(jay, tmp_path):  # noqa: F811
    jay.sync.add("stick", tmp_path / "stick.db")

    arguments = {"source": "drive", "destination": "stick", "conflict_resolution": "manual"}
    assert refused(jay, "sync_memories", arguments)["status"] == 400


@pytest.mark.parametrize("role", [Role.MEMBER, Role.READER])
def test_who_is_no_owner_gets_403(jay, role):  # noqa: F811
    ann = jay.bound_to(caller=Caller(user="ann", role=role))

    assert refused(ann, "sync_memories", {"destination": "drive"})["code"] == "FORBIDDEN"


@pytest.mark.parametrize("arguments", [{}, {"source": "phone", "destination": "local"}])
def test_s20_an_unknown_endpoint_is_404_with_the_command_that_adds_it(jay, arguments):  # noqa: F811
    error = refused(jay, "sync_memories", arguments)

    assert (error["status"], error["code"]) == (404, "ENDPOINT_NOT_FOUND")
    assert "scrubjay sync add" in error["message"]


def test_s20_manual_with_conflicts_is_409_listing_them(jay, drive, clock):  # noqa: F811
    memory = both_changed(jay, drive, clock)

    error = refused(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "manual"})

    assert (error["status"], error["code"]) == (409, "CONFLICT")
    [conflict] = error["details"]["conflicts"]
    assert conflict["memory_id"] == memory
    assert conflict["source"]["excerpt"] == jay.get(memory).content
    assert conflict["destination"]["excerpt"] == drive.get(memory).content
    assert "decisions" in error["details"]["hint"]


@pytest.mark.parametrize("keep", ["source", "destination", "newest", "merge"])
def test_a_conflict_is_decided_by_the_tool_that_reports_it(jay, drive, clock, keep):  # noqa: F811
    memory = both_changed(jay, drive, clock)
    ours, theirs = jay.get(memory).content, drive.get(memory).content
    refused(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "manual"})

    decided = [{"memory_id": memory, "keep": keep}]
    ok(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "manual", "decisions": decided})

    assert jay.get(memory).content == drive.get(memory).content
    if keep in ("source", "destination"):
        assert jay.get(memory).content == {"source": ours, "destination": theirs}[keep]
    assert jay.sync.conflicts() == []


def test_a_decision_about_no_conflict_is_refused_and_nothing_is_synced(jay, drive):  # noqa: F811
    memory = stored(jay, "User lives in Austin")

    decided = [{"memory_id": memory, "keep": "source"}]
    error = refused(jay, "sync_memories", {"destination": "drive", "decisions": decided})

    assert (error["status"], error["details"]["field"]) == (400, "decisions")
    assert len(drive.list()) == 0


def test_manual_without_conflicts_is_like_any_other(jay):  # noqa: F811
    stored(jay, "User lives in Austin")

    assert ok(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "manual"})["summary"]["synced"] == 1


def test_s20_a_second_sync_while_one_runs_is_423(jay):  # noqa: F811
    jay.records.upkeep.lease(LEASE, holder="another process", seconds=60)

    for background in (False, True):
        error = refused(jay, "sync_memories", {"destination": "drive", "background": background})
        assert (error["status"], error["code"]) == (423, "LOCKED")


def test_s20_a_second_sync_while_one_is_about_to_run_in_the_background_is_423(jay):  # noqa: F811
    job = ok(jay, "sync_memories", {"destination": "drive", "background": True})["job_id"]

    for arguments in ({}, {"background": True}):
        assert refused(jay, "sync_memories", {"destination": "drive", **arguments})["status"] == 423
    assert ok(jay, "sync_memories", {"destination": "drive", "dry_run": True})
    jay.jobs.run(job)
    assert ok(jay, "job_status", {"job_id": job})["status"] == "completed"
    assert ok(jay, "sync_memories", {"destination": "drive"})


def test_a_job_that_no_server_takes_up_does_not_stop_a_sync(jay, clock):  # noqa: F811
    ok(jay, "sync_memories", {"destination": "drive", "background": True})
    clock.move(seconds=11)

    assert ok(jay, "sync_memories", {"destination": "drive"})


def test_a_job_waits_for_the_run_that_it_meets(jay, drive, monkeypatch):  # noqa: F811
    stored(jay, "User lives in Austin")
    job = ok(jay, "sync_memories", {"destination": "drive", "background": True})["job_id"]
    jay.records.upkeep.lease(LEASE, holder="another", seconds=60)
    monkeypatch.setattr(syncing, "sleep", lambda _seconds: jay.records.upkeep.release(LEASE, holder="another"))

    jay.jobs.run(job)

    assert ok(jay, "job_status", {"job_id": job})["status"] == "completed"
    assert ok(drive, "list_memories")["total_count"] == 1


def test_a_disk_that_fails_on_the_way_is_500(open_engine):  # noqa: F811
    class Broken:
        origin = "elsewhere"

        def __getattr__(self, name):
            raise StorageError("The disk does not answer.")

        def close(self):
            pass

    engine = open_engine(connect=lambda _url, _create: Broken(), endpoints={"drive": "broken"})

    error = refused(engine, "sync_memories", {"destination": "drive"})

    assert (error["status"], error["code"]) == (500, "INTERNAL")
    assert "The disk does not answer" in error["message"]


def test_a_store_that_is_not_there_is_503(jay, drive, tmp_path):  # noqa: F811
    drive.close()
    (tmp_path / "drive.db").rename(tmp_path / "away.db")

    error = refused(jay, "sync_memories", {"destination": "drive"})

    assert (error["status"], error["code"]) == (503, "UNAVAILABLE")
    assert str(tmp_path) not in str(error)


def test_s20_in_the_background_the_job_is_told_at_once_and_followed(jay, drive):  # noqa: F811
    stored(jay, "User lives in Austin")

    begun = ok(jay, "sync_memories", {"destination": "drive", "background": True})
    waiting = ok(jay, "job_status", {"job_id": begun["job_id"]})
    jay.jobs.run(begun["job_id"])
    done = ok(jay, "job_status", {"job_id": begun["job_id"]})

    assert begun["status"] == "waiting"
    assert "summary" not in begun
    assert (waiting["status"], done["status"]) == ("waiting", "completed")
    assert (done["result"]["sync_id"], done["result"]["summary"]["created"]) == (begun["sync_id"], 1)
    Checker(system.operations["sync_memories"].gives).check(done["result"])
    assert ok(drive, "list_memories")["total_count"] == 1


@pytest.mark.parametrize(
    ("resolution", "text", "winner"),
    [
        ("source_wins", "User lives in Rome", "source"),
        ("destination_wins", "User lives in Paris", "destination"),
        ("newest_wins", "User lives in Paris", "destination"),
        ("merge", "User lives in Paris", "both"),
    ],
)
def test_s21_the_named_side_wins(jay, drive, clock, resolution, text, winner):  # noqa: F811
    memory = both_changed(jay, drive, clock)

    body = ok(jay, "sync_memories", {"destination": "drive", "conflict_resolution": resolution})

    assert body["conflicts_handled"] == [{"memory_id": memory, "resolution": resolution, "winner": winner}]
    assert (body["summary"]["conflicts"], body["summary"]["conflicts_resolved"]) == (1, 1)
    assert jay.get(memory).content == drive.get(memory).content == text


def test_s21_merge_unites_tags_and_takes_the_higher_count(jay, drive, clock):  # noqa: F811
    memory = both_changed(jay, drive, clock)
    ok(jay, "update_memory", {"memory_id": memory, "updates": {"tags": {"add": ["here"]}}})
    ok(drive, "update_memory", {"memory_id": memory, "updates": {"tags": {"add": ["there"]}}})
    for _ in range(3):
        ok(drive, "recall_memories", {"query": "User lives in Paris"})
    drive.records.flush_reads()  # what another process has counted is seen once it is written

    ok(jay, "sync_memories", {"destination": "drive", "conflict_resolution": "merge"})

    for engine in (jay, drive):
        [shown] = ok(engine, "list_memories")["memories"]
        assert set(shown["tags"]) == {"here", "there"}
        assert shown["access_count"] == 3


def test_a_key_lets_a_sync_happen_once(jay, drive):  # noqa: F811
    stored(jay, "User lives in Austin")
    first = ok(jay, "sync_memories", {"destination": "drive"}, key="k1")
    stored(jay, "User plays the cello")

    again = ok(jay, "sync_memories", {"destination": "drive"}, key="k1")

    assert again == first
    assert ok(drive, "list_memories")["total_count"] == 1


def test_a_key_starts_a_sync_in_the_background_once(jay, drive):  # noqa: F811
    wanted = {"destination": "drive", "background": True}
    first = ok(jay, "sync_memories", wanted, key="k1")

    again = ok(jay, "sync_memories", wanted, key="k1")
    jay.jobs.run(first["job_id"])
    done = ok(jay, "sync_memories", wanted, key="k1")

    assert again == first
    assert done == {**first, "status": "completed"}


def test_links_that_a_consolidation_moved_are_moved_on_both_sides(jay, drive):  # noqa: F811
    neighbour = stored(jay, "The harbour master is called Ottilie")
    names = [stored(jay, "User likes tea", related_memory_ids=[neighbour]), stored(jay, "User likes tea a lot")]
    ok(jay, "sync_memories", {"destination": "drive"})
    ok(jay, "consolidate_memories", {"memory_ids": names, "consolidation_strategy": "merge_all"})
    ok(jay, "sync_memories", {"destination": "drive"})

    def links(engine):
        found = engine.records.history.links([neighbour, *names])
        return {(link.kind, link.source, link.target, link.state) for link in found}

    assert links(jay) == links(drive)
