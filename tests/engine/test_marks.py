"""The archive folder is known by its mark: a disk that is not mounted, or another's folder, is never taken for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from scrubjay.archives.folder import MARK, MARKER, FolderObjects
from scrubjay.dialects.table import find
from scrubjay.engine.archive.archives import remove_due
from scrubjay.engine.archive.archiving import Terms
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, StorageFull
from scrubjay.servers.http.app import build_app
from scrubjay.values.memory import Status, Tier
from tests.servers.sites import client_of

pytestmark = pytest.mark.process

GLACIER = Terms(tier=Tier.GLACIER)


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def jay(open_engine, folder):
    return open_engine(archive=FolderObjects(folder))


def archive_some(jay, number=1):
    ids = [jay.store(f"The harbour master of {n} is called Ottilie").memory.id for n in range(number)]
    jay.cold_storage.archive(ids, GLACIER)
    return ids


def forget_the_mark(jay, folder):
    """As the version before left a store and its folder."""
    with jay.records.writing() as tx:
        tx._con.execute("DELETE FROM facts WHERE key LIKE 'archive:%'")
    (folder / "glacier" / MARKER).write_bytes(MARK)


def unmount(folder) -> Path:
    away = folder.with_name("unmounted")
    folder.rename(away)
    folder.mkdir()
    return away


def refuses(jay):
    """Nothing can be archived, and nothing has changed."""
    memory = jay.store("The lighthouse is red").memory
    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.archive([memory.id], GLACIER)
    assert jay.get(memory.id) == memory
    assert jay.records.archives.objects_due(jay.now() + timedelta(days=1), 9) == []
    return True


def test_a_folder_of_the_version_before_is_recognised_by_what_it_holds(jay, open_engine, folder):
    ids = archive_some(jay, 3)
    forget_the_mark(jay, folder)

    later = open_engine(archive=FolderObjects(folder))
    remove_due(later)  # what a server does when it starts

    mark = later.records.history.fact("archive:glacier")
    assert mark
    assert FolderObjects(folder).mark("glacier") == mark
    later.cold_storage.restore(ids)


def test_a_disk_that_is_away_when_the_version_after_starts_is_not_set_up_again(jay, open_engine, folder):
    ids = archive_some(jay, 3)
    forget_the_mark(jay, folder)
    away = unmount(folder)
    later = open_engine(archive=FolderObjects(folder))
    remove_due(later)

    assert refuses(later)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    away.rename(folder)
    later.cold_storage.restore(ids)


def test_a_mount_point_with_a_few_stranded_objects_is_not_taken_for_the_disk(jay, open_engine, folder, clock):
    """The version before wrote there and marked it while the disk was away."""
    archive_some(jay, 3)
    away = unmount(folder)
    clock.move(hours=1)
    with jay.records.writing() as tx:
        tx._con.execute("DELETE FROM facts WHERE key LIKE 'archive:%'")
        tx._con.execute("UPDATE archives SET object = 'glacier/arch_elsewhere' || id")
    [stranded] = archive_some(open_engine(file="other.db", archive=FolderObjects(folder)))
    assert stranded
    forget_the_mark(jay, folder)

    assert refuses(open_engine(archive=FolderObjects(folder)))
    assert away.exists()


def test_two_stores_may_share_a_folder(jay, open_engine, folder):
    FolderObjects(folder).set_mark("glacier", "m1")  # as whoever died between mark and store left it
    other = open_engine(file="other.db", archive=FolderObjects(folder))
    mine, others = archive_some(jay), archive_some(other)
    assert jay.records.history.fact("archive:glacier") == "m1"

    jay.cold_storage.restore(mine)
    other.cold_storage.restore(others)

    assert jay.get(mine[0]).status is other.get(others[0]).status is Status.ACTIVE


@pytest.mark.parametrize("marked", [False, True], ids=["empty", "anothers"])
def test_a_server_with_a_folder_of_its_own_refuses_and_says_that_it_must_be_shared(jay, open_engine, tmp_path, marked):
    ids = archive_some(jay)
    beside = FolderObjects(tmp_path / "beside")
    if marked:
        beside.set_mark("glacier", "another")
    second = open_engine(archive=beside)

    assert refuses(second)
    with pytest.raises(ArchiveUnavailable) as refused:
        second.cold_storage.restore(ids)
    assert "share" in refused.value.hint
    jay.cold_storage.restore(ids)


def test_a_disk_that_goes_while_it_is_written_leaves_the_memory_as_it_was(open_engine, folder):
    class Pulled(FolderObjects):
        def write(self, name, data):
            unmount(folder)
            (folder / "glacier").mkdir()  # what an earlier accident left on the mount point
            (folder / "glacier" / MARKER).write_bytes(MARK)
            super().write(name, data)

    jay = open_engine(archive=Pulled(folder))
    memory = jay.store("The lighthouse is red").memory

    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.archive([memory.id], GLACIER)

    assert jay.get(memory.id) == memory


def test_an_object_that_is_missing_on_the_right_disk_is_damage(jay, folder):
    [id] = archive_some(jay)
    for path in folder.rglob("arch_*"):
        path.unlink()

    with pytest.raises(ArchiveDamaged):
        jay.cold_storage.restore([id])


def test_a_folder_that_cannot_be_marked_is_not_remembered(open_engine, folder):
    class Full(FolderObjects):
        def set_mark(self, tier, mark):
            raise StorageFull

    jay = open_engine(archive=Full(folder))
    memory = jay.store("The lighthouse is red").memory
    with pytest.raises(StorageFull):
        jay.cold_storage.archive([memory.id], GLACIER)

    assert jay.records.history.fact("archive:glacier") is None


def test_an_owner_may_accept_a_folder_that_was_emptied(jay, folder):
    archive_some(jay)
    unmount(folder)
    assert refuses(jay)

    assert jay.cold_storage.accept_folder() == {Tier.GLACIER: False, Tier.DEEP_ARCHIVE: True}

    [id] = archive_some(jay)
    jay.cold_storage.restore([id])


def test_a_server_says_that_its_archive_is_away_and_stays_in_service(jay, folder, caplog):
    archive_some(jay)
    with client_of(build_app(jay, [find("memento")])) as client:
        remove_due(jay)
        assert client.get("/readyz").json() == {"status": "ok"}
        away = unmount(folder)
        remove_due(jay)
        remove_due(jay)
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ok", "archive": "unavailable"})
        assert [record.message for record in caplog.records if "mounted" in record.message] == [
            jay.upkeep.archive_trouble
        ]
        folder.rmdir()
        away.rename(folder)
        remove_due(jay)
        assert client.get("/readyz").json() == {"status": "ok"}
