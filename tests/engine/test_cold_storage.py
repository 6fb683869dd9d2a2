"""Cold storage: nothing is lost, nothing is found that should not be, everything comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from scrubjay.archives.folder import FolderObjects
from scrubjay.engine.archive import archiving
from scrubjay.engine.archive.archives import remove_due
from scrubjay.engine.archive.archiving import Criteria, Terms
from scrubjay.engine.archive.restoring import Mode
from scrubjay.engine.holding import holding
from scrubjay.errors import (
    AlreadyActive,
    AlreadyArchived,
    ArchiveDamaged,
    ArchiveUnavailable,
    Conflict,
    Forbidden,
    InvalidInput,
    Locked,
    NotFound,
    QuotaExceeded,
    StorageFull,
    Unprocessable,
)
from scrubjay.stores.promises.memories import Request
from scrubjay.values.callers import Caller, Role
from scrubjay.values.memory import AccessLevel, Category, State, Status, Tier
from scrubjay.values.search import Filter
from scrubjay.values.store import JobStatus

TEXT = "The harbour master is called Ottilie"
ARCHIVED = Filter(states=frozenset({State.ACTIVE, State.ARCHIVED}))


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def jay(open_engine, folder):
    return open_engine(archive=FolderObjects(folder))


@pytest.fixture(params=list(Tier))
def tier(request) -> Tier:
    return request.param


def objects(folder):
    return sorted(path for path in folder.rglob("arch_*") if path.is_file())


def kept(jay, content=TEXT, **fields):
    return jay.store(content, **fields).memory


# --- there and back --------------------------------------------------------------------------------------------------


def test_a_memory_comes_back_as_it_went(jay, tier, folder):
    memory = kept(jay, metadata={"who": "Ottilie"}, tags=["port"], importance=0.7)
    jay.update(memory.id, importance=0.8, reason="asked again")
    before, history = jay.get(memory.id), jay.history(memory.id)

    [away] = jay.cold_storage.archive([memory.id], Terms(tier=tier)).memories
    assert bool(objects(folder)) is (tier is not Tier.COLD)
    [back] = jay.cold_storage.restore([away.archive]).memories

    now = jay.get(memory.id)
    same = {"status", "version", "updated_at", "hlc"}
    assert replace(now, **{name: getattr(before, name) for name in same}) == before
    assert (now.status, now.version) == (Status.ACTIVE, before.version + 2)
    assert [one.memory for one in jay.history(memory.id)][-len(history) :] == [one.memory for one in history]
    assert back.embedded
    assert objects(folder) == []
    assert jay.upkeep.check(deep=True).problems == jay.upkeep.check(deep=True).wrong_hashes == ()
    assert [hit.memory.id for hit in jay.search("harbour master")] == [memory.id]


def test_what_is_away_is_found_by_words_when_asked_and_shown_with_its_text(jay, tier):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id], Terms(tier=tier))

    [hit] = jay.search("harbour master", filter=ARCHIVED)

    assert hit.memory.id == memory.id
    assert hit.memory.content == ("" if tier is Tier.DEEP_ARCHIVE else TEXT)
    assert len(jay.search("harbour master")) == 0
    assert jay.get(memory.id).content == TEXT


def test_the_text_of_a_decision_keeps_its_reasoning(jay):
    memory = kept(jay, "Use SQLite", kind="decision", topic="store", detail={"reasoning": "One file"})
    jay.cold_storage.archive([memory.id])

    assert jay.get(memory.id).text == "Use SQLite\n\nOne file"
    jay.cold_storage.restore([memory.id])
    assert jay.get(memory.id).detail["reasoning"] == "One file"


@pytest.mark.parametrize("mode", [Mode.FULL, Mode.EXPEDITED])
def test_a_decision_gets_the_vector_that_it_had(jay, mode):
    decision = jay.decisions.save("harbour_fees", "Raise them", reasoning="Dredging costs more").memory
    before = jay.records.vectors([decision.id])[decision.id]
    jay.cold_storage.archive([decision.id])

    jay.cold_storage.restore([decision.id], mode=mode)
    jay.parts.backlog.finish()

    assert (jay.records.vectors([decision.id])[decision.id] == before).all()


def test_vectors_that_were_retained_are_searched_and_not_made_anew(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id], Terms(keep_vectors=True))
    vector = jay.records.vectors([memory.id])[memory.id]
    [back] = jay.cold_storage.restore([memory.id]).memories

    assert not back.embedded
    assert (jay.records.vectors([memory.id])[memory.id] == vector).all()


def test_expedited_brings_the_text_at_once_and_vectors_later(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    [back] = jay.cold_storage.restore([memory.id], mode=Mode.EXPEDITED).memories

    assert not back.embedded
    assert [hit.memory.id for hit in jay.search("harbour master", words_only=True)] == [memory.id]
    jay.parts.backlog.finish()
    assert memory.id in jay.records.vectors([memory.id])


def test_without_regeneration_a_memory_is_found_by_words_only(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    jay.cold_storage.restore([memory.id], embed=False)
    jay.parts.backlog.finish()

    assert jay.records.vectors([memory.id]) == {}
    assert [hit.memory.id for hit in jay.search("harbour master")] == [memory.id]


def test_metadata_only_brings_the_description_and_leaves_text_and_vectors(jay, folder):
    memory = kept(jay, metadata={"who": "Ottilie"})
    jay.cold_storage.archive([memory.id], Terms(tier=Tier.DEEP_ARCHIVE))
    bare = jay.list(replace(ARCHIVED)).memories[0]
    jay.cold_storage.restore([memory.id], mode=Mode.METADATA_ONLY)
    described = jay.list(ARCHIVED).memories[0]

    assert (bare.title, bare.metadata) == ("", {})
    assert (described.title, described.metadata, described.content) == (TEXT, {"who": "Ottilie"}, "")
    assert described.status is Status.ARCHIVED
    assert jay.records.vectors([memory.id]) == {}
    assert len(objects(folder)) == 1
    jay.cold_storage.restore([memory.id])
    assert jay.get(memory.id).content == TEXT


def test_a_path_that_was_taken_meanwhile_gets_a_number(jay):
    memory = kept(jay, path="people/harbour-master")
    jay.cold_storage.archive([memory.id])
    kept(jay, "Somebody else", path="people/harbour-master")
    jay.cold_storage.restore([memory.id])

    assert jay.get(memory.id).path == "people/harbour-master-2"


def test_a_superseded_memory_is_superseded_when_it_is_back(jay):
    old, new = kept(jay), kept(jay, "The harbour master is called Ada")
    jay.supersede(old=old.id, new=new.id)
    jay.cold_storage.archive([old.id])
    jay.cold_storage.restore([old.id])

    assert jay.get(old.id).superseded_by == new.id
    assert old.id not in [hit.memory.id for hit in jay.search("harbour master")]


def test_low_priority_is_a_job_for_a_server(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    later = jay.cold_storage.restore([memory.id], background=True)

    assert (later.status, later.memories) == (JobStatus.WAITING, ())
    assert jay.get(memory.id).status is Status.ARCHIVED
    job = jay.jobs.run(later.job)
    assert (job.status, len(job.result["memories"])) == (JobStatus.COMPLETED, 1)
    assert jay.get(memory.id).status is Status.ACTIVE


# --- forgetting what is away -----------------------------------------------------------------------------------------


def test_a_forgotten_archived_memory_is_recovered_as_archived_and_restored_as_active(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    jay.forget(memory.id)
    assert jay.recover(memory.id).status is Status.ARCHIVED

    jay.forget(memory.id)
    jay.cold_storage.restore([memory.id])
    assert (jay.get(memory.id).status, jay.get(memory.id).content) == (Status.ACTIVE, TEXT)


def test_a_forgotten_memory_is_restored_by_its_id_or_its_backup_until_its_date(jay, clock):
    one, two, three = (kept(jay, f"{TEXT} {n}") for n in range(3))
    backup = jay.forget(one.id).backup
    jay.forget(two.id)
    jay.forget(three.id, days=1)
    clock.move(days=2)

    jay.cold_storage.restore([backup, two.id])

    assert {jay.get(one.id).status, jay.get(two.id).status} == {Status.ACTIVE}
    with pytest.raises(NotFound):
        jay.cold_storage.restore([three.id])


def test_erasing_leaves_no_text_anywhere(jay, tier, folder, tmp_path):
    memory = kept(jay, "Zanzibar Quixotry Plumbago")
    jay.cold_storage.archive([memory.id], Terms(tier=tier))
    jay.forget(memory.id, hard=True)
    jay.close()

    assert objects(folder) == []
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not [word for word in (b"anzibar", b"uixotr", b"lumbago") if word in path.read_bytes()], path


# --- what is refused -------------------------------------------------------------------------------------------------


def test_archiving_twice_is_refused_and_so_is_restoring_what_is_active(jay):
    memory, other = kept(jay), kept(jay, "other")
    jay.cold_storage.archive([memory.id])

    with pytest.raises(AlreadyArchived):
        jay.cold_storage.archive([other.id, memory.id])
    with pytest.raises(AlreadyActive):
        jay.cold_storage.restore([memory.id, other.id])

    assert jay.get(other.id).status is Status.ACTIVE
    assert jay.get(memory.id).status is Status.ARCHIVED


def test_an_expired_memory_is_not_archived(jay, clock):
    memory = kept(jay, expires_at=clock() + timedelta(days=1))
    clock.move(days=2)

    with pytest.raises(Unprocessable):
        jay.cold_storage.archive([memory.id])


def test_an_archived_memory_is_not_updated(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])

    with pytest.raises(Conflict):
        jay.update(memory.id, importance=0.9)


@pytest.mark.parametrize("ids", [[], ["mem_x"] * 1001, [""], ["mem_unknown"]])
def test_impossible_lists_are_refused(jay, ids):
    with pytest.raises((InvalidInput, NotFound)):
        jay.cold_storage.archive(ids)


def test_only_ones_own_are_archived_and_restored(jay):
    mine = kept(jay, access_level=AccessLevel.PUBLIC)
    secret = kept(jay, "secret", access_level=AccessLevel.PRIVATE)
    reader = jay.bound_to(caller=Caller(user="ann", role=Role.READER))

    with pytest.raises(Forbidden):
        reader.cold_storage.archive([mine.id])
    with pytest.raises(NotFound):
        reader.cold_storage.archive([secret.id])
    jay.cold_storage.archive([mine.id])
    with pytest.raises(Forbidden):
        reader.cold_storage.restore([mine.id])


def test_a_held_memory_is_neither_archived_nor_restored(jay):
    active, away = kept(jay), kept(jay, "other")
    jay.cold_storage.archive([away.id])

    with holding(jay, [active.id, away.id]):
        with pytest.raises(Locked):
            jay.cold_storage.archive([active.id])
        with pytest.raises(Locked):
            jay.cold_storage.restore([away.id])


def test_while_it_is_being_archived_others_changes_are_refused(jay, monkeypatch):
    memory = kept(jay)
    refused = []

    def packed(one, tier):
        with pytest.raises(Locked) as error:
            jay.update(memory.id, importance=0.1)
        refused.append(error)
        return real(one, tier)

    real = archiving.pack
    monkeypatch.setattr(archiving, "pack", packed)
    jay.cold_storage.archive([memory.id])

    assert len(refused) == 1
    assert jay.records.jobs.held_by_others([memory.id]) == []


def test_the_archive_has_a_quota(open_engine, folder):
    jay = open_engine(archive=FolderObjects(folder), archive_quota=1000)
    big = kept(jay, " ".join(str(number * 7919) for number in range(1000)))

    with pytest.raises(QuotaExceeded):
        jay.cold_storage.archive([big.id], Terms(tier=Tier.GLACIER))

    assert objects(folder) == []
    assert jay.get(big.id).status is Status.ACTIVE


# --- what goes wrong -------------------------------------------------------------------------------------------------


def broken(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if damage == "half":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        path.write_bytes(data[:-5] + bytes([data[-5] ^ 1]) + data[-4:])
    elif damage == "missing":
        path.unlink()
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("damage", ["half", "flipped", "missing", "empty"])
def test_a_damaged_object_is_named_and_the_others_are_restored(jay, folder, damage):
    memory, other, forgotten = kept(jay), kept(jay, "other"), kept(jay, "forgotten")
    jay.cold_storage.archive([memory.id, other.id], Terms(tier=Tier.GLACIER))
    jay.forget(forgotten.id)
    archive = jay.records.archives.get([memory.id])[memory.id]
    [path] = [one for one in objects(folder) if one.name == archive.id]
    broken(path, damage)

    done = jay.cold_storage.restore([forgotten.id, memory.id, other.id])

    assert [one.memory for one in done.memories] == [forgotten.id, other.id]
    assert [(one.memory, one.archive, one.code) for one in done.left_away] == [
        (memory.id, archive.id, "archive_damaged")
    ]
    assert [jay.get(one.id).content for one in (other, forgotten)] == [other.content, forgotten.content]
    assert jay.get(memory.id).status is Status.ARCHIVED
    with pytest.raises(ArchiveDamaged, match=memory.id):
        jay.cold_storage.restore([memory.id])
    assert [(id, type(error)) for id, error in jay.cold_storage.damaged()] == [(memory.id, ArchiveDamaged)]


def test_a_damaged_row_is_refused_too(jay):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    with jay.records.writing() as tx:
        tx._con.execute("UPDATE archives SET packed = substr(packed, 1, 20)")

    with pytest.raises(ArchiveDamaged):
        jay.cold_storage.restore([memory.id])
    assert jay.upkeep.check(deep=True).wrong_hashes == (memory.id,)


def test_a_folder_that_is_not_there_is_unavailable_and_hides_nothing_else(jay, folder):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id], Terms(tier=Tier.GLACIER))
    away = folder.with_name("unmounted")
    folder.rename(away)

    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.restore([memory.id])
    assert [one.content for one in jay.list(ARCHIVED)] == [""]
    with pytest.raises(ArchiveUnavailable):
        list(jay.transfer.export())

    away.rename(folder)
    jay.cold_storage.restore([memory.id])
    assert jay.get(memory.id).content == TEXT


# --- a disk that is not mounted ---


def unmounted(folder: Path) -> Path:
    """Where the disk's files went; its mount point is an empty folder."""
    away = folder.with_name("unmounted")
    folder.rename(away)
    folder.mkdir()
    return away


def test_nothing_is_archived_on_a_disk_that_is_not_mounted_and_what_is_there_stays_unavailable(jay, folder):
    first, second = kept(jay), kept(jay, "other")
    jay.cold_storage.archive([first.id], Terms(tier=Tier.GLACIER))
    away = unmounted(folder)

    with pytest.raises(ArchiveUnavailable, match="mounted") as refused:
        jay.cold_storage.archive([second.id], Terms(tier=Tier.GLACIER))

    assert "scrubjay archive --accept-folder" in refused.value.hint
    assert str(folder) not in f"{refused.value.message} {refused.value.hint}"
    assert list(folder.rglob("*")) == []
    assert jay.get(second.id).content == "other"
    assert jay.get(second.id).status is Status.ACTIVE
    assert jay.records.archives.objects_due(jay.now() + timedelta(days=1), 9) == []
    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.restore([first.id])

    folder.rmdir()
    away.rename(folder)
    jay.cold_storage.archive([second.id], Terms(tier=Tier.GLACIER))
    jay.cold_storage.restore([first.id, second.id])
    assert jay.get(first.id).content == TEXT


def test_without_a_folder_only_the_store_itself_is_an_archive(open_engine):
    jay = open_engine()
    memory = kept(jay)

    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.archive([memory.id], Terms(tier=Tier.GLACIER))
    assert jay.cold_storage.archive([memory.id]).memories


class FullDisk(FolderObjects):
    """Takes so many objects and no more."""

    def __init__(self, folder: Path, room: int) -> None:
        super().__init__(folder)
        self.room = room

    def write(self, name: str, data: bytes) -> None:
        if not self.room:
            raise StorageFull
        self.room -= 1
        super().write(name, data)


def test_a_full_disk_archives_nothing_and_leaves_nothing(open_engine, folder):
    jay = open_engine(archive=FullDisk(folder, room=2))
    ids = [kept(jay, f"{TEXT} {n}").id for n in range(3)]

    with pytest.raises(StorageFull):
        jay.cold_storage.archive(ids, Terms(tier=Tier.GLACIER))

    assert objects(folder) == []
    assert {jay.get(id).status for id in ids} == {Status.ACTIVE}
    assert jay.records.archives.objects_due(jay.now() + timedelta(days=1), 9) == []
    jay.update(ids[0], importance=0.9)  # nothing is held


def test_what_a_killed_process_left_is_removed_an_hour_later(open_engine, folder, clock):
    class Killed(FolderObjects):
        def write(self, name: str, data: bytes) -> None:
            super().write(name, data)
            raise KeyboardInterrupt

        def remove(self, name: str) -> None:
            raise StorageFull  # nobody is left to do it

    jay = open_engine(archive=Killed(folder))
    memory = kept(jay)
    with pytest.raises(KeyboardInterrupt):
        jay.cold_storage.archive([memory.id], Terms(tier=Tier.GLACIER))
    assert len(objects(folder)) == 1

    clock.move(hours=2)
    remove_due(open_engine(archive=FolderObjects(folder)))

    assert objects(folder) == []
    assert jay.get(memory.id).content == TEXT


# --- by criteria -----------------------------------------------------------------------------------------------------


def test_all_criteria_must_hold(jay, clock):
    old = kept(jay, "old and unimportant", importance=0.1, category="event")
    kept(jay, "old and important", importance=0.9, category="event")
    kept(jay, "old, unimportant, a fact", importance=0.1, category="fact")
    clock.move(days=100)
    kept(jay, "young and unimportant", importance=0.1, category="event")
    criteria = Criteria(
        inactive_days=90,
        below_importance=0.3,
        categories=frozenset({Category.EVENT}),
        before=clock() - timedelta(days=1),
    )

    preview = jay.cold_storage.archive_matching(criteria, dry_run=True)
    assert [one.memory for one in preview.memories] == [old.id]
    assert jay.get(old.id).status is Status.ACTIVE

    done = jay.cold_storage.archive_matching(criteria)
    assert [one.memory for one in done.memories] == [old.id]
    assert preview.saved_bytes == pytest.approx(done.saved_bytes, abs=32)  # ids and times are packed a little otherwise


def test_below_and_before_are_strict(jay, clock):
    memory = kept(jay, importance=0.3)

    assert not jay.cold_storage.archive_matching(Criteria(below_importance=0.3)).memories
    assert not jay.cold_storage.archive_matching(Criteria(before=memory.created_at)).memories
    assert jay.cold_storage.archive_matching(Criteria(before=memory.created_at + timedelta(milliseconds=1))).memories


def test_a_memory_that_was_just_recalled_is_not_inactive(jay, clock):
    memory = kept(jay)
    clock.move(days=100)
    jay.search("harbour master")

    assert not jay.cold_storage.archive_matching(Criteria(inactive_days=90)).memories
    clock.move(days=100)
    assert [one.memory for one in jay.cold_storage.archive_matching(Criteria(inactive_days=90)).memories] == [memory.id]


def test_no_criterion_is_refused(jay):
    with pytest.raises(InvalidInput):
        jay.cold_storage.archive_matching(Criteria())


def test_criteria_pass_over_what_is_held_or_not_ones_own(jay):
    held, free = kept(jay, "held", importance=0.1), kept(jay, "free", importance=0.1)
    foreign = kept(jay, "foreign", importance=0.1, user_id="bob", access_level=AccessLevel.PRIVATE)
    ann = jay.bound_to(caller=Caller(user="local", role=Role.MEMBER))
    with holding(jay, [held.id]):
        done = ann.cold_storage.archive_matching(Criteria(below_importance=0.5))

    assert [one.memory for one in done.memories] == [free.id]
    assert jay.get(foreign.id).status is Status.ACTIVE


def test_many_are_archived_batch_by_batch_with_progress(jay, monkeypatch):
    monkeypatch.setattr(archiving, "PAGE", 3)
    ids = jay.store_many([{"content": f"note {n}", "importance": 0.1} for n in range(8)])
    said = []

    done = jay.bound_to(progress=lambda *far: said.append(far)).cold_storage.archive_matching(
        Criteria(below_importance=0.5)
    )

    assert {one.memory for one in done.memories} == set(ids)
    assert said == [(3, 8, "archiving"), (6, 8, "archiving"), (8, 8, "archiving")]


# --- the same call twice, money --------------------------------------------------------------------------------------


def test_a_repeated_request_is_answered_alike(jay):
    memory = kept(jay)
    bound = jay.bound_to(request=Request(caller="local", key="k", operation="archive", arguments=b"x"))
    back = jay.bound_to(request=Request(caller="local", key="b", operation="restore", arguments=b"x"))

    first = bound.cold_storage.archive([memory.id])
    assert bound.cold_storage.archive([memory.id]) == first
    restored = back.cold_storage.restore([memory.id])
    assert back.cold_storage.restore([memory.id]) == restored


def test_costs_are_nothing_without_prices_and_follow_them_otherwise(open_engine, folder):
    jay = open_engine(archive=FolderObjects(folder))
    one, two = kept(jay), kept(jay, f"{TEXT} too")
    free = jay.cold_storage.archive([one.id], Terms(tier=Tier.GLACIER))
    assert (free.monthly_savings, free.cost, free.memories[0].cost_reduction) == (0.0, 0.0, 0.0)

    prices = {"hot": 1e9, "glacier": 1e8, "glacier.in": 1e9, "glacier.out": 2e9}  # a unit per byte
    priced = open_engine(archive=FolderObjects(folder), prices=prices)
    done = priced.cold_storage.archive([two.id], Terms(tier=Tier.GLACIER))
    [away] = done.memories
    assert done.monthly_savings == pytest.approx(away.hot_bytes - away.packed_bytes / 10)
    assert done.cost == away.packed_bytes
    assert away.cost_reduction == pytest.approx(1 - away.packed_bytes / 10 / away.hot_bytes, abs=0.01)
    assert priced.cold_storage.restore([two.id]).cost == 2 * away.packed_bytes


def test_an_export_holds_the_texts_of_what_is_away(jay, open_engine, tmp_path):
    memory = kept(jay)
    jay.cold_storage.archive([memory.id])
    lines = list(jay.transfer.export())

    [line] = [line for line in lines if line["type"] == "memory"]
    assert (line["content"], line["status"]) == (TEXT, "archived")


def test_one_memory_is_archived_only_at_the_version_that_is_expected(jay):
    memory = jay.store(TEXT).memory

    with pytest.raises(Conflict, match="version 1"):
        jay.bound_to(expected_version=7).cold_storage.archive([memory.id])

    assert jay.get(memory.id).status is Status.ACTIVE
