"""Archived memories travel: with their text, and put away again where they arrive."""

from __future__ import annotations

import pytest

from scrubjay.archives.folder import FolderObjects
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.archive.archiving import Terms
from scrubjay.values.memory import Status, Tier


@pytest.fixture
def jay(open_engine, drive, tmp_path):
    engine = open_engine(archive=FolderObjects(tmp_path / "archive"))
    engine.sync.add("drive", tmp_path / "drive.db")
    return engine


@pytest.mark.parametrize("tier", Tier)
def test_an_archived_memory_arrives_archived_and_is_restored_there(jay, drive, tier):
    memory = jay.store("User plays the cello", metadata={"a": 1}).memory
    archived = jay.cold_storage.archive([memory.id], Terms(tier=tier)).memories[0].archive

    synced = jay.sync.run(destination="drive")

    assert (synced.created, synced.errors) == (1, 0)
    assert drive.records.archives.get([memory.id])[memory.id].id == archived
    drive.cold_storage.restore([archived])
    there = drive.get(memory.id)
    assert (there.content, there.path, there.metadata) == (memory.content, memory.path, memory.metadata)
    jay.sync.run(destination="drive")
    assert jay.get(memory.id).status is Status.ACTIVE
    assert jay.get(memory.id).content == "User plays the cello"
    assert [hit.memory.id for hit in jay.search("cello")] == [memory.id]


def test_archiving_travels_to_where_the_memory_is_known(jay, drive):
    memory = jay.store("User plays the cello").memory
    jay.sync.run(destination="drive")
    jay.cold_storage.archive([memory.id])

    jay.sync.run(destination="drive")

    assert drive.get(memory.id).status is Status.ARCHIVED
    assert memory.id in drive.records.archives.get([memory.id])
    assert [hit.memory.id for hit in drive.search("cello")] == []


def test_an_edit_elsewhere_meets_an_archived_memory_and_neither_text_is_lost(jay, drive, clock):
    memory = jay.store("User plays the cello").memory
    jay.sync.run(destination="drive")
    clock.move(seconds=1)
    jay.cold_storage.archive([memory.id])
    clock.move(seconds=1)
    drive.update(memory.id, content="User plays the viola")

    synced = jay.sync.run(destination="drive")

    assert len(synced.conflicts) == 1
    for engine in (jay, drive):
        assert engine.get(memory.id).content == "User plays the viola"
        assert engine.get(memory.id).status is Status.ACTIVE
    assert "User plays the cello" in [version.memory.content for version in jay.history(memory.id)]


def test_an_archive_that_cannot_be_read_is_counted_and_stops_nothing(jay, drive, tmp_path):
    lost, other = jay.store("User plays the cello").memory, jay.store("User lives in Austin").memory
    jay.cold_storage.archive([lost.id], Terms(tier=Tier.GLACIER))
    (tmp_path / "archive").rename(tmp_path / "unmounted")

    synced = jay.sync.run(destination="drive")

    assert (synced.created, synced.errors) == (1, 1)
    assert drive.get(other.id)
    (tmp_path / "unmounted").rename(tmp_path / "archive")
    assert jay.sync.run(destination="drive", type="full").created == 1


def test_erasing_an_archived_memory_erases_it_everywhere(jay, drive, tmp_path):
    memory = jay.store("The password is swordfish").memory
    jay.cold_storage.archive([memory.id], Terms(tier=Tier.GLACIER))
    jay.sync.run(destination="drive")
    drive.forget(memory.id, hard=True)

    jay.sync.run(destination="drive")

    assert jay.records.get([memory.id], EVERYTHING) == []
    assert jay.records.archives.get([memory.id]) == {}
