"""Where archived memories lie: in the store or in a folder, and moved between the two without a text being lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scrubjay.archives.folder import FolderObjects
from scrubjay.engine.archive import cold_storage
from scrubjay.engine.archive.archives import remove_due
from scrubjay.engine.archive.archiving import Terms
from scrubjay.engine.archive.cold_storage import Place
from scrubjay.engine.holding import holding
from scrubjay.errors import ArchiveUnavailable, StorageFull
from scrubjay.settings import load
from scrubjay.values.memory import State, Status, Tier
from scrubjay.values.search import Filter
from scrubjay.values.times import utc_now
from scrubjay.wiring import open_engine as opened

pytestmark = pytest.mark.process

ARCHIVED = Filter(states=frozenset({State.ARCHIVED}))
TIERS = (Tier.COLD, Tier.GLACIER, Tier.DEEP_ARCHIVE)

both = pytest.mark.parametrize(
    "open_store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def jay(open_engine, folder):
    return open_engine(archive=FolderObjects(folder))


def objects(folder):
    return sorted(path for path in folder.rglob("arch_*") if path.is_file())


def fill_tiers(jay) -> dict[str, str]:
    """A memory in each tier, archived; their texts."""
    texts = {}
    for tier in TIERS:
        memory = jay.store(f"The harbour master of {tier} is called Ottilie").memory
        jay.cold_storage.archive([memory.id], Terms(tier=tier))
        texts[memory.id] = memory.content
    return texts


def lying_in_the_folder(jay, ids) -> int:
    return sum(archive.object is not None for archive in jay.records.archives.get(list(ids)).values())


def read_texts(jay, ids) -> dict[str, str]:
    return {id: jay.get(id).content for id in ids}


# --- in the store ---


@both
def test_all_tiers_may_be_kept_in_the_store(open_engine, folder):
    jay = open_engine(archive=FolderObjects(folder), archive_in_store=True)
    texts = fill_tiers(jay)

    assert lying_in_the_folder(jay, texts) == 0
    assert not folder.exists()
    assert read_texts(jay, texts) == texts
    jay.cold_storage.restore(list(texts))
    assert {jay.get(id).status for id in texts} == {Status.ACTIVE}


def test_a_store_needs_no_folder_to_keep_all_tiers(open_engine):
    jay = open_engine(archive_in_store=True)
    texts = fill_tiers(jay)

    jay.cold_storage.restore(list(texts))
    assert read_texts(jay, texts) == texts


@pytest.mark.postgres
def test_what_one_server_archives_another_one_restores(postgres_store, tmp_path):
    url = postgres_store("archives")
    one, other = (
        opened(load({"SCRUBJAY_HOME": str(tmp_path / name), "SCRUBJAY_EMBEDDER": "hashing"}, store=url))
        for name in ("one", "other")
    )
    with one, other:
        texts = fill_tiers(one)
        other.cold_storage.restore(list(texts))
        assert read_texts(one, texts) == texts


@pytest.mark.postgres
def test_a_shared_folder_serves_both_servers_and_another_one_is_refused(postgres_store, tmp_path):
    url = postgres_store("archives")
    places = {"one": "shared", "other": "shared", "stray": "own"}
    one, other, stray = (
        opened(
            load(
                {"SCRUBJAY_HOME": str(tmp_path / name), "SCRUBJAY_EMBEDDER": "hashing"},
                store=url,
                archive=str(tmp_path / place),
            )
        )
        for name, place in places.items()
    )
    with one, other, stray:
        texts = fill_tiers(one)
        remove_due(stray)
        assert "share" in (stray.upkeep.archive_trouble or "")
        with pytest.raises(ArchiveUnavailable):
            stray.cold_storage.restore(list(texts))
        other.cold_storage.restore(list(texts))
        assert read_texts(one, texts) == texts


@pytest.mark.parametrize(
    ("store", "archive", "in_store", "place"),
    [
        ("sqlite:///{home}/memories.db", None, False, "home/archive"),
        ("sqlite:///{home}/memories.db", "database", True, "home/archive"),
        ("sqlite:///{home}/memories.db", "{home}/cold", False, "home/cold"),
        ("postgresql://jay@db/memory", None, True, "home/archive"),
        ("postgresql://jay@db/memory", "database", True, "home/archive"),
        ("postgresql://jay@db/memory", "{home}/cold", False, "home/cold"),
    ],
)
def test_the_setting_chooses_the_place(tmp_path, store, archive, in_store, place):
    from scrubjay.wiring import archive_folder, archives_in_store

    home = str(tmp_path / "home")
    environ = {"SCRUBJAY_HOME": home, "SCRUBJAY_STORE": store.format(home=home)}
    if archive:
        environ["SCRUBJAY_ARCHIVE"] = archive.format(home=home)
    settings = load(environ)

    assert archives_in_store(settings) is in_store
    assert archive_folder(settings) == tmp_path / place


# --- moved ---


@both
def test_what_is_archived_moves_to_the_store_and_back(jay, folder):
    texts = fill_tiers(jay)

    moved = jay.cold_storage.move(Place.DATABASE)
    assert (moved.memories, moved.damaged, moved.busy) == (2, (), ())
    assert (lying_in_the_folder(jay, texts), objects(folder)) == (0, [])
    assert read_texts(jay, texts) == texts
    assert jay.cold_storage.move(Place.DATABASE).memories == 0

    assert jay.cold_storage.move(Place.FOLDER).memories == 2
    assert (lying_in_the_folder(jay, texts), len(objects(folder))) == (2, 2)
    assert read_texts(jay, texts) == texts
    jay.cold_storage.restore(list(texts))
    assert objects(folder) == []
    assert jay.upkeep.check(deep=True).wrong_hashes == ()


def test_moving_needs_the_folder(jay, folder):
    texts = fill_tiers(jay)
    folder.rename(folder.with_name("unmounted"))

    with pytest.raises(ArchiveUnavailable):
        jay.cold_storage.move(Place.DATABASE)
    assert lying_in_the_folder(jay, texts) == 2


def test_what_is_damaged_stays_and_is_named(jay, folder):
    texts = fill_tiers(jay)
    path = objects(folder)[0]
    path.write_bytes(b"other")
    [damaged] = [id for id, one in jay.records.archives.get(list(texts)).items() if one.id == path.name]

    moved = jay.cold_storage.move(Place.DATABASE)

    assert (moved.memories, moved.damaged) == (1, (damaged,))
    assert objects(folder) == [path]


def test_a_row_that_is_damaged_is_not_moved_out(jay, folder):
    texts = fill_tiers(jay)
    jay.cold_storage.move(Place.DATABASE)
    with jay.records.writing() as tx:
        tx._con.execute("UPDATE archives SET packed = substr(packed, 1, 20) WHERE tier = 'glacier'")

    moved = jay.cold_storage.move(Place.FOLDER)

    assert (moved.memories, len(moved.damaged)) == (1, 1)
    assert lying_in_the_folder(jay, texts) == 1


def test_what_others_work_on_is_left_for_another_run(jay):
    texts = fill_tiers(jay)
    [held] = [id for id, one in jay.records.archives.get(list(texts)).items() if one.tier is Tier.GLACIER]

    with holding(jay, [held]):
        moved = jay.cold_storage.move(Place.DATABASE)
    assert (moved.memories, moved.busy) == (1, (held,))

    assert jay.cold_storage.move(Place.DATABASE).memories == 1


def test_who_reads_while_it_moves_sees_the_text(jay, monkeypatch):
    texts = fill_tiers(jay)
    real, once = jay.records.archives.get, []

    def moved_meanwhile(ids):
        found = real(ids)
        if not once:
            once.append(ids)
            jay.cold_storage.move(Place.DATABASE)
        return found

    monkeypatch.setattr(jay.records.archives, "get", moved_meanwhile)

    assert read_texts(jay, texts) == texts


class Dying(FolderObjects):
    """A process that dies at a certain call of its folder; what comes later, it does not live to do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.left = 10**9

    def _step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise KeyboardInterrupt

    def write(self, name, data):
        self._step()
        super().write(name, data)
        self._step()

    def read(self, name):
        self._step()
        return super().read(name)

    def remove(self, name):
        self._step()
        super().remove(name)
        self._step()


@pytest.mark.parametrize("to", Place)
@pytest.mark.parametrize("point", range(1, 8))
def test_a_move_that_dies_at_any_point_loses_nothing_and_goes_on(open_engine, folder, monkeypatch, clock, to, point):
    monkeypatch.setattr(cold_storage, "BATCH", 2)
    disk = Dying(folder)
    dying = open_engine(archive=disk)
    texts = fill_tiers(dying) | fill_tiers(dying)
    if to is Place.FOLDER:
        dying.cold_storage.move(Place.DATABASE)
    disk.left = point
    with pytest.raises(KeyboardInterrupt):
        dying.cold_storage.move(to)

    jay = open_engine(archive=FolderObjects(folder))
    assert read_texts(jay, texts) == texts
    clock.move(hours=2)  # its holds and announcements have ended
    remove_due(jay)
    assert read_texts(jay, texts) == texts

    jay.cold_storage.move(to)

    remove_due(jay)
    assert read_texts(jay, texts) == texts
    assert lying_in_the_folder(jay, texts) == len(objects(folder)) == (4 if to is Place.FOLDER else 0)


def test_a_full_disk_leaves_everything_in_the_store(open_engine, folder):
    class Full(FolderObjects):
        def write(self, name, data):
            raise StorageFull

    jay = open_engine(archive=Full(folder), archive_in_store=True)
    texts = fill_tiers(jay)

    with pytest.raises(StorageFull):
        jay.cold_storage.move(Place.FOLDER)
    assert read_texts(jay, texts) == texts
    assert lying_in_the_folder(jay, texts) == 0


KILLED = """
import os, sys
from pathlib import Path
from scrubjay.archives.folder import FolderObjects
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.engine.archive.cold_storage import Place
from scrubjay.stores.sqlite.store import SqliteStore

class Last(FolderObjects):
    def write(self, name, data):
        super().write(name, data)
        os.kill(os.getpid(), 9)

    def remove(self, name):
        super().remove(name)
        os.kill(os.getpid(), 9)

engine_on(SqliteStore(Path(sys.argv[1])), None, archive=Last(Path(sys.argv[2]))).cold_storage.move(Place(sys.argv[3]))
"""


@pytest.mark.parametrize("to", Place)
def test_a_process_that_is_killed_in_a_move_loses_nothing(open_engine, folder, tmp_path, to):
    jay = open_engine(archive=FolderObjects(folder), clock=utc_now)  # as the process that is killed
    texts = fill_tiers(jay)
    if to is Place.FOLDER:
        jay.cold_storage.move(Place.DATABASE)

    child = [sys.executable, "-c", KILLED, str(tmp_path / "memories.db"), str(folder), str(to)]
    assert subprocess.run(child, timeout=240, check=False).returncode == -9

    assert read_texts(jay, texts) == texts
    with jay.records.writing() as tx:
        tx._con.execute("DELETE FROM holds")  # two minutes later
    jay.cold_storage.move(to)
    assert read_texts(jay, texts) == texts
    assert lying_in_the_folder(jay, texts) == len(objects(folder)) == (2 if to is Place.FOLDER else 0)
