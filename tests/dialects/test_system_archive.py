"""System's acceptance cases S10, S16, S17, S22, S23, the 423s and the rest of their tools' error lists."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from scrubjay.archives.folder import FolderObjects
from scrubjay.dialects.system.memories import system
from scrubjay.dialects.validation import Checker
from scrubjay.engine.holding import holding
from scrubjay.errors import StorageError, StorageFull, SynthesisFailed
from scrubjay.values.callers import Caller, Role
from scrubjay.values.times import iso
from tests.dialects.test_system import ids, ok, recalled, refused, stored

SPANISH = ("User is learning Spanish", "User is learning Spanish with Inés", "User is learning Spanish at night")


@pytest.fixture
def jay(open_engine, tmp_path):
    return open_engine(archive=FolderObjects(tmp_path / "archive"))


def reader(engine):
    return engine.bound_to(caller=Caller(user="ann", role=Role.READER))


def public(engine, content, **more):
    return stored(engine, content, metadata={"access_level": "public"}, **more)


# --- S16, S17: consolidate -------------------------------------------------------------------------------------------


def test_s16_what_cannot_be_consolidated(jay):
    one, other = stored(jay, SPANISH[0]), stored(jay, SPANISH[1])
    unrelated = stored(jay, "Quarterly revenue grew by a tenth")

    def status(memory_ids, strategy="merge_all", **more):
        arguments = {"memory_ids": memory_ids, "consolidation_strategy": strategy, **more}
        return refused(jay, "consolidate_memories", arguments)["status"]

    assert status([one]) == 400
    assert status(["mem_x"] * 51) == 400
    assert refused(jay, "consolidate_memories", {"memory_ids": [one, other]})["status"] == 400
    assert status([one, other], "keep_primary") == 400
    assert status([one, other], "keep_primary", primary_memory_id=unrelated) == 422
    assert status([one, other], "keep_primary", primary_memory_id="mem_unknown") == 422
    assert status([one, "mem_unknown"]) == 404
    assert status([one, unrelated]) == 409
    assert ok(jay, "list_memories")["total_count"] == 3


def test_s16_unrelated_texts_are_told_apart_by_the_real_model(real_jay):
    texts = ("The cat sleeps on the sofa", "Quarterly revenue grew by eleven percent")
    memory_ids = [stored(real_jay, text) for text in texts]

    error = refused(
        real_jay, "consolidate_memories", {"memory_ids": memory_ids, "consolidation_strategy": "ai_synthesis"}
    )

    assert (error["code"], error["status"]) == ("TOO_DISSIMILAR", 409)
    assert 0 <= error["details"]["similarity"] < 0.3


def test_s17_three_become_one(jay, clock):
    memory_ids = []
    for number, text in enumerate(SPANISH):
        clock.move(days=1)
        metadata = {"tags": ["language", f"t{number}"], "importance": (7 + number) / 10}
        memory_ids.append(stored(jay, text, metadata=metadata, context={"timestamp": iso(clock())}))
    related = stored(jay, "Inés lives in Cádiz", related_memory_ids=[memory_ids[0]])
    body = ok(jay, "consolidate_memories", {"memory_ids": memory_ids, "consolidation_strategy": "ai_synthesis"})

    assert body["source_memory_ids"] == memory_ids
    assert body["tags"] == ["language", "t0", "t1", "t2"]
    assert body["importance"] == 0.9
    assert body["created_at"] == iso(clock() - timedelta(days=2))
    provenance = body["provenance"]
    assert (provenance["source_count"], provenance["synthesis_method"]) == (3, "ai_synthesis")
    assert (provenance["synthesis_engine"], provenance["originals_archived"]) == ("local", True)
    assert all(re.fullmatch(r"arch_[a-z0-9]{6,}", name) for name in provenance["archive_ids"])
    archived = ok(jay, "list_memories", {"filters": {"status": ["archived"]}})
    assert set(ids(archived["memories"])) == set(memory_ids)
    new = body["consolidated_memory_id"]
    assert {related, new} <= {end for link in jay.links(new) for end in (link.source, link.target)}


def test_s17_links_are_moved_and_not_doubled(jay):
    neighbour = stored(jay, "The harbour master is called Ottilie")
    names = [stored(jay, SPANISH[0], related_memory_ids=[neighbour]), stored(jay, SPANISH[1])]
    ok(jay, "consolidate_memories", {"memory_ids": names, "consolidation_strategy": "merge_all"})

    listed = ok(jay, "list_memories", {"include_stats": True, "sort": {"order": "asc"}})["memories"]
    assert {memory["memory_id"]: memory["stats"]["link_count"] for memory in listed}[neighbour] == 1
    gone = ok(jay, "forget_memory", {"memory_id": neighbour, "cascade_related": True})
    assert gone["related_memories_affected"] == 1
    assert ok(jay, "list_memories", {"filters": {"status": ["archived"]}})["total_count"] == 2


def test_sources_and_archives_stand_in_the_order_in_which_they_were_named(jay, clock):
    names = []
    for text in SPANISH:
        clock.move(days=1)
        names.append(stored(jay, text))
    named = [names[2], names[0], names[1]]

    body = ok(jay, "consolidate_memories", {"memory_ids": named, "consolidation_strategy": "merge_all"})

    assert body["source_memory_ids"] == named
    for archive, memory in zip(body["provenance"]["archive_ids"], named, strict=True):
        assert jay.get(archive).id == memory


def test_a3_24_a_primary_whose_time_is_not_to_be_preserved_is_of_now(jay, clock):
    names = [stored(jay, text) for text in SPANISH[:2]]
    clock.move(days=1)
    wanted = {"memory_ids": names, "consolidation_strategy": "keep_primary", "primary_memory_id": names[0]}

    body = ok(jay, "consolidate_memories", {**wanted, "preserve_metadata": {"earliest_timestamp": False}})

    assert body["created_at"] == body["consolidated_at"] == iso(clock())


def test_s17_originals_that_are_not_kept_are_softly_deleted(jay):
    memory_ids = [stored(jay, text) for text in SPANISH]
    arguments = {"memory_ids": memory_ids, "consolidation_strategy": "merge_all", "keep_originals": False}
    body = ok(jay, "consolidate_memories", arguments)

    assert body["provenance"]["archive_ids"] == []
    deleted = ok(jay, "list_memories", {"filters": {"status": ["deleted"]}})
    assert set(ids(deleted["memories"])) == set(memory_ids)


def test_consolidating_others_memories_is_403(jay):
    memory_ids = [public(jay, text) for text in SPANISH]
    arguments = {"memory_ids": memory_ids, "consolidation_strategy": "merge_all"}

    assert refused(reader(jay), "consolidate_memories", arguments)["status"] == 403


def test_a_model_that_fails_is_500_and_nothing_has_changed(open_engine):
    def tired(_prompt):
        raise SynthesisFailed("The language model refused with 429.")

    jay = open_engine(model=tired)
    memory_ids = [stored(jay, text) for text in SPANISH]
    arguments = {"memory_ids": memory_ids, "consolidation_strategy": "ai_synthesis"}

    assert refused(jay, "consolidate_memories", arguments)["status"] == 500
    assert ok(jay, "list_memories")["total_count"] == 3


def test_the_rate_of_consolidations_is_counted(jay):
    memory_ids = [stored(jay, text) for text in SPANISH]
    ok(jay, "consolidate_memories", {"memory_ids": memory_ids, "consolidation_strategy": "merge_all"})
    rate = ok(jay, "get_memory_stats", {"metrics": ["consolidation_rate"]})["statistics"]["consolidation_rate"]

    assert rate == {"consolidations_per_week": 1.0, "memories_consolidated": 3, "consolidation_ratio": 0.75}


# --- S22: archive ----------------------------------------------------------------------------------------------------


def test_s22_by_id(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    body = ok(jay, "archive_memory", {"memory_id": memory, "reason": "quiet"})

    [item] = body["memories_archived"]
    assert body["archived_count"] == 1
    assert re.fullmatch(r"arch_job_[a-z0-9]{10,}", body["archive_job_id"])
    assert (item["memory_id"], item["archive_tier"]) == (memory, "cold")
    assert item["retrieval_time_estimate_ms"] >= 1
    assert body["storage_saved_bytes"] > 500
    assert (body["estimated_monthly_savings"], body["total_cost"], item["storage_cost_reduction"]) == (0.0, 0.0, 0.0)
    assert jay.history(memory)[0].reason == "quiet"
    assert ok(jay, "job_status", {"job_id": body["archive_job_id"]})["status"] == "completed"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"memory_id": "mem_x", "memory_ids": ["mem_y"]},
        {"memory_id": "mem_x", "auto_archive_criteria": {"inactive_days": 1}},
        {"auto_archive_criteria": {}},
        {"auto_archive_criteria": {"categories": []}},
        {"auto_archive_criteria": {"categories": ["gossip"]}},
        {"auto_archive_criteria": {"before_date": "yesterday"}},
    ],
)
def test_s22_bad_input_is_400(jay, arguments):
    stored(jay, "The harbour master is called Ottilie")

    assert refused(jay, "archive_memory", arguments)["status"] == 400
    assert ok(jay, "list_memories")["total_count"] == 1


def test_s22_already_archived_is_409_and_the_batch_is_all_or_nothing(jay):
    first, second = stored(jay, "one"), stored(jay, "two")
    ok(jay, "archive_memory", {"memory_id": first})
    error = refused(jay, "archive_memory", {"memory_ids": [second, first]})

    assert (error["code"], error["status"]) == ("ALREADY_ARCHIVED", 409)
    assert ids(ok(jay, "list_memories")["memories"]) == [second]


def test_s22_a_dry_run_fills_the_same_fields_and_changes_nothing(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    preview = ok(jay, "archive_memory", {"memory_id": memory, "dry_run": True})
    done = ok(jay, "archive_memory", {"memory_id": memory})

    assert set(preview) - {"dry_run"} == set(done)
    assert set(preview["memories_archived"][0]) == set(done["memories_archived"][0])
    assert preview["archived_count"] == 1


def test_s22_criteria_are_anded(jay, clock):
    old = stored(jay, "old", metadata={"importance": 0.1, "category": "event"})
    stored(jay, "old and important", metadata={"importance": 0.8, "category": "event"})
    clock.move(days=100)
    stored(jay, "young", metadata={"importance": 0.1, "category": "event"})
    criteria = {"inactive_days": 90, "low_importance": 0.3, "categories": ["context", "event"]}
    body = ok(jay, "archive_memory", {"auto_archive_criteria": criteria, "archive_tier": "deep_archive"})

    assert ids(body["memories_archived"]) == [old]


def test_archiving_a_forgotten_unknown_or_foreign_memory(jay):
    memory, gone = public(jay, "The harbour master is called Ottilie"), stored(jay, "gone")
    ok(jay, "forget_memory", {"memory_id": gone})

    for missing in (gone, "mem_unknown"):
        assert refused(jay, "archive_memory", {"memory_id": missing})["status"] == 404
    assert refused(reader(jay), "archive_memory", {"memory_id": memory})["status"] == 403


def test_archiving_a_named_expired_memory_is_422(jay, clock):
    memory = stored(jay, "brief", metadata={"expires_at": iso(clock() + timedelta(days=1))})
    clock.move(days=2)

    assert refused(jay, "archive_memory", {"memory_id": memory})["status"] == 422


class Failing(FolderObjects):
    def __init__(self, folder, error):
        super().__init__(folder)
        self.error = error

    def write(self, name, data):
        raise self.error


@pytest.mark.parametrize(("error", "status"), [(StorageError(), 500), (StorageFull(), 507)])
def test_a_disk_that_refuses_is_500_or_507_and_nothing_is_lost(open_engine, tmp_path, error, status):
    jay = open_engine(archive=Failing(tmp_path / "archive", error))
    memory = stored(jay, "The harbour master is called Ottilie")

    assert refused(jay, "archive_memory", {"memory_id": memory, "archive_tier": "glacier"})["status"] == status
    assert ids(recalled(jay, "harbour master")) == [memory]


def test_a_full_quota_is_507(open_engine, tmp_path):
    jay = open_engine(archive=FolderObjects(tmp_path / "archive"), archive_quota=10)
    memory = stored(jay, "The harbour master is called Ottilie")

    assert refused(jay, "archive_memory", {"memory_id": memory})["code"] == "QUOTA_EXCEEDED"


# --- S10, the archived half ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["cold", "deep_archive"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_s18_archived_memories_are_walked_by_their_length(jay, tier, order):
    names = [stored(jay, "word " * number + str(number)) for number in range(1, 6)]
    ok(jay, "archive_memory", {"memory_ids": names, "archive_tier": tier})
    walk = {"filters": {"status": ["archived"]}, "sort": {"field": "content_length", "order": order}}
    lengths, cursor = [], {}

    for _ in range(3):
        page = {"limit": 2, **cursor}
        body = ok(jay, "list_memories", {**walk, "include_stats": True, "pagination": page})
        lengths += [memory["stats"]["content_length"] for memory in body["memories"]]
        cursor = {"cursor": body["pagination"]["next_cursor"]}

    assert cursor == {"cursor": None}
    assert lengths == sorted([6, 11, 16, 21, 26], reverse=order == "desc")


@pytest.mark.parametrize("tier", ["cold", "glacier", "deep_archive"])
def test_s10_archived_memories_are_recalled_only_when_asked_for_and_by_their_words(jay, tier):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory, "archive_tier": tier})

    assert recalled(jay, "Who is the harbour master?") == []
    [found] = recalled(jay, "Who is the harbour master?", include_archived=True)
    assert (found["memory_id"], found["status"]) == (memory, "archived")


def test_s10_retained_embeddings_are_searched_by_meaning(real_jay):
    memory = stored(real_jay, "User is learning Spanish")
    body = ok(real_jay, "archive_memory", {"memory_id": memory, "retain_embeddings": True})

    assert body["embeddings_retained"] is True
    assert ids(recalled(real_jay, "Which language does she study?", include_archived=True)) == [memory]


# --- S23: restore ----------------------------------------------------------------------------------------------------


def test_s23_by_id_by_archive_id_and_in_a_batch(jay):
    one, two, three, four = (stored(jay, f"note {n}") for n in range(4))
    body = ok(jay, "archive_memory", {"memory_ids": [one, two, three, four]})
    archive = {item["memory_id"]: item["archive_id"] for item in body["memories_archived"]}

    first = ok(jay, "restore_memory", {"memory_id": one})
    assert (first["status"], first["restored_count"], first["estimated_time_remaining_ms"]) == ("completed", 1, 0)
    assert re.fullmatch(r"restore_job_[a-z0-9]{10,}", first["restore_job_id"])
    [item] = first["memories_restored"]
    assert (item["archive_id"], item["restore_mode"], item["embeddings_regenerated"]) == (archive[one], "full", True)
    assert ok(jay, "restore_memory", {"archive_id": archive[two]})["memories_restored"][0]["memory_id"] == two
    assert ok(jay, "restore_memory", {"memory_ids": [three, four]})["restored_count"] == 2
    assert ok(jay, "list_memories")["total_count"] == 4


@pytest.mark.parametrize("arguments", [{}, {"memory_id": "mem_x", "archive_id": "arch_x"}])
def test_s23_bad_input_is_400(jay, arguments):
    assert refused(jay, "restore_memory", arguments)["status"] == 400


def test_s23_an_active_one_is_409_an_unknown_one_404_a_foreign_one_403(jay):
    memory = public(jay, "The harbour master is called Ottilie")

    assert refused(jay, "restore_memory", {"memory_id": memory})["code"] == "ALREADY_ACTIVE"
    for unknown in ({"memory_id": "mem_unknown"}, {"archive_id": "arch_unknown"}):
        assert refused(jay, "restore_memory", unknown)["status"] == 404
    ok(jay, "archive_memory", {"memory_id": memory})
    assert refused(reader(jay), "restore_memory", {"memory_id": memory})["status"] == 403


def test_s23_metadata_only_restores_neither_content_nor_vectors(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory, "archive_tier": "deep_archive"})
    body = ok(jay, "restore_memory", {"memory_id": memory, "restore_mode": "metadata_only"})

    assert body["memories_restored"][0]["embeddings_regenerated"] is False
    [shown] = ok(jay, "list_memories", {"filters": {"status": ["archived"]}})["memories"]
    assert "content" not in shown
    assert jay.records.vectors([memory]) == {}


@pytest.mark.parametrize("priority", ["normal", "low"])
def test_s23_a_damaged_copy_is_named_and_the_others_of_its_batch_are_restored(jay, tmp_path, priority):
    first, damaged, last = (stored(jay, f"The harbour master of {town} is Ottilie") for town in ("Vik", "Bay", "Ely"))
    batch = {"memory_ids": [first, damaged, last]}
    done = ok(jay, "archive_memory", {**batch, "archive_tier": "glacier"})
    [archive] = [one["archive_id"] for one in done["memories_archived"] if one["memory_id"] == damaged]
    [path] = [path for path in (tmp_path / "archive").rglob(archive) if path.is_file()]
    path.write_bytes(b"damaged")

    body = ok(jay, "restore_memory", {**batch, "priority": priority})
    if priority == "low":
        jay.jobs.run(body["restore_job_id"])
        body = ok(jay, "job_status", {"job_id": body["restore_job_id"]})["result"]

    assert [one["memory_id"] for one in body["memories_restored"]] == [first, last]
    assert body["restored_count"] == 2
    [failed] = body["memories_failed"]
    assert (failed["memory_id"], failed["archive_id"]) == (damaged, archive)
    assert (failed["error"]["code"], failed["error"]["status"]) == ("UNPROCESSABLE", 422)
    assert "damaged" in failed["error"]["message"]
    error = refused(jay, "restore_memory", {"memory_ids": [damaged]})
    assert (error["status"], error["details"]["memory_id"]) == (422, damaged)
    assert ok(jay, "list_memories")["total_count"] == 2


def test_low_priority_is_done_by_a_job(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory})
    body = ok(jay, "restore_memory", {"memory_id": memory, "priority": "low"})

    assert (body["status"], body["restored_count"]) == ("waiting", 0)
    assert body["estimated_time_remaining_ms"] > 0
    jay.jobs.run(body["restore_job_id"])
    assert ok(jay, "job_status", {"job_id": body["restore_job_id"]})["status"] == "completed"


def test_a_key_starts_a_job_once(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory})
    wanted = {"memory_id": memory, "priority": "low"}
    first = ok(jay, "restore_memory", wanted, key="k1")

    assert ok(jay, "restore_memory", wanted, key="k1") == first
    jay.jobs.run(first["restore_job_id"])
    done = ok(jay, "restore_memory", wanted, key="k1")
    assert done == {**first, "status": "completed", "estimated_time_remaining_ms": 0}


def test_a_corrupted_archive_is_422_a_missing_folder_503_an_unreadable_one_500(jay, tmp_path, monkeypatch):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory, "archive_tier": "glacier"})
    folder = tmp_path / "archive"
    folder.rename(tmp_path / "unmounted")
    assert refused(jay, "restore_memory", {"memory_id": memory})["status"] == 503
    (tmp_path / "unmounted").rename(folder)

    with monkeypatch.context() as broken:
        broken.setattr(FolderObjects, "read", lambda *_: (_ for _ in ()).throw(StorageError()))
        assert refused(jay, "restore_memory", {"memory_id": memory})["status"] == 500

    [path] = [path for path in folder.rglob("arch_*") if path.is_file()]
    path.write_bytes(path.read_bytes()[:50])
    assert refused(jay, "restore_memory", {"memory_id": memory})["status"] == 422
    assert ids(recalled(jay, "harbour master", include_archived=True)) == [memory]


# --- 423 -------------------------------------------------------------------------------------------------------------


def test_a_memory_that_long_work_holds_is_423(jay):
    memory, other = stored(jay, SPANISH[0]), stored(jay, SPANISH[1])
    calls = {
        "update_memory": {"memory_id": memory, "updates": {"importance": 0.1}},
        "forget_memory": {"memory_id": memory},
        "archive_memory": {"memory_id": memory},
        "consolidate_memories": {"memory_ids": [memory, other], "consolidation_strategy": "merge_all"},
    }
    with holding(jay, [memory]):
        errors = {tool: refused(jay, tool, arguments) for tool, arguments in calls.items()}

    assert {(error["code"], error["status"]) for error in errors.values()} == {("LOCKED", 423)}
    assert {error["details"]["memory_id"] for error in errors.values()} == {memory}
    ok(jay, "update_memory", calls["update_memory"])


def test_a_hit_in_the_deep_archive_says_how_to_get_its_text(jay):
    memory = stored(jay, "The old tea recipe has cardamom")
    ok(jay, "archive_memory", {"memory_id": memory, "archive_tier": "deep_archive", "retain_embeddings": True})

    [hit] = ok(jay, "recall_memories", {"query": "old tea recipe cardamom", "include_archived": True})["memories"]

    assert hit["content"] == ""
    assert "restore_memory" in hit["note"]


def test_work_in_the_background_ends_with_what_the_call_would_have_answered(jay):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory})
    job = ok(jay, "restore_memory", {"memory_id": memory, "priority": "low"})["restore_job_id"]

    jay.jobs.run(job)

    result = ok(jay, "job_status", {"job_id": job})["result"]
    assert (result["restore_job_id"], result["status"], result["restored_count"]) == (job, "completed", 1)
    assert result["memories_restored"][0]["memory_id"] == memory
    Checker(system.operations["restore_memory"].gives).check(result)


def test_work_that_failed_in_the_background_has_the_code_it_would_have_had(jay, tmp_path):
    memory = stored(jay, "The harbour master is called Ottilie")
    ok(jay, "archive_memory", {"memory_id": memory, "archive_tier": "glacier"})
    job = ok(jay, "restore_memory", {"memory_id": memory, "priority": "low"})["restore_job_id"]
    (tmp_path / "archive").rename(tmp_path / "unmounted")
    direct = refused(jay, "restore_memory", {"memory_id": memory})

    jay.jobs.run(job)

    error = ok(jay, "job_status", {"job_id": job})["error"]
    assert (error["code"], error["status"]) == (direct["code"], direct["status"])


# --- two memories that say the same ----------------------------------------------------------------------------------


def test_a_restored_or_updated_memory_names_those_that_say_the_same(jay):
    first = stored(jay, "The ferry leaves at nine")
    ok(jay, "forget_memory", {"memory_id": first})
    second = stored(jay, "The ferry leaves at nine")
    [restored] = ok(jay, "restore_memory", {"memory_id": first})["memories_restored"]
    assert restored["same_as"] == [second]

    other = {"memory_id": second, "updates": {"content": "The ferry leaves at ten"}}
    assert "same_as" not in ok(jay, "update_memory", other)
    same = {"memory_id": second, "updates": {"content": "The ferry leaves at nine"}}
    assert ok(jay, "update_memory", same)["same_as"] == [first]
