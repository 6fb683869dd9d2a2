"""Backups: complete, checked, never over anything; damaged ones are refused and nothing is touched."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from scrubjay.errors import Conflict, Error, NotFound, StorageBusy, StorageDamaged, StorageTooNew
from scrubjay.stores.sqlite import backup as sqlite_backup
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Filter
from tests.conftest import sqlite_store
from tests.stores.contract.suite import EVERYTHING, NOW, got, put, put_all, some

pytestmark = pytest.mark.process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memories.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(sqlite_store(path)) as store:
        yield store


@pytest.fixture
def copy(store: SqliteStore, tmp_path: Path) -> Path:
    """A backup of forty memories."""
    put_all(store, [some(f"text number {n} " * 20, id=f"mem_{n}") for n in range(40)])
    store.backup(tmp_path / "copy.db")
    return tmp_path / "copy.db"


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def test_a_backup_is_one_file_that_only_its_owner_reads_with_its_checksum(copy, tmp_path):
    made = sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("memories"))

    assert made == ["copy.db", "copy.db.sha256"]
    assert oct(copy.stat().st_mode & 0o777) == "0o600"
    assert (tmp_path / "copy.db.sha256").read_text() == f"{hashlib.sha256(copy.read_bytes()).hexdigest()}  copy.db\n"


def test_a_backup_is_a_store_like_any_other(copy):
    with closing(SqliteStore(copy)) as opened:
        assert got(opened, "mem_7").content.startswith("text number 7 ")


def test_what_is_not_checkpointed_yet_is_in_the_backup(store, tmp_path):
    memory = put(store, some())
    assert (tmp_path / "memories.db-wal").stat().st_size > 0

    store.backup(tmp_path / "copy.db")

    with closing(SqliteStore(tmp_path / "copy.db")) as opened:
        assert got(opened, memory.id) == memory


@pytest.mark.parametrize("there", ["file", "folder", "dangling link"])
def test_nothing_is_overwritten_by_a_backup(store, tmp_path, there):
    target = tmp_path / "copy.db"
    if there == "file":
        target.write_text("mine")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")

    with pytest.raises(Conflict):
        store.backup(target)

    assert sorted(file.name for file in tmp_path.iterdir() if "new" in file.name) == []
    assert there != "file" or target.read_text() == "mine"


def test_a_backup_into_a_folder_that_is_missing_is_refused(store, tmp_path):
    with pytest.raises(Error) as caught:
        store.backup(tmp_path / "nowhere" / "copy.db")

    assert caught.value.hint
    assert str(tmp_path) not in caught.value.message


def test_a_restored_backup_holds_every_memory(copy, tmp_path):
    target = tmp_path / "new" / "memories.db"

    assert sqlite_backup.restore(copy, target) is None

    with closing(SqliteStore(target)) as opened:
        assert opened.check(deep=True).memories == 40
        assert opened.match("number", Filter(), EVERYTHING, now=NOW, limit=99)
        put(opened, some("it can be written"))


def test_progress_is_told_to_the_end_both_ways(store, copy, tmp_path):
    told: list[tuple[int, int]] = []

    for act in (
        lambda: store.backup(tmp_path / "again.db", progress=lambda *now: told.append(now)),
        lambda: sqlite_backup.restore(copy, tmp_path / "new.db", progress=lambda *now: told.append(now)),
    ):
        told.clear()
        act()

        assert told == sorted(told)
        assert told[-1][0] == told[-1][1] > 0


def test_a_store_that_is_there_is_not_replaced_unasked(store, copy, path):
    put(store, some(id="mem_later"))
    store.close()

    with pytest.raises(Conflict):
        sqlite_backup.restore(copy, path)

    with closing(SqliteStore(path)) as opened:
        assert got(opened, "mem_later")


def test_a_replaced_store_is_kept_beside_the_new_one(store, copy, path):
    put(store, some(id="mem_later"))
    store.close()

    aside = sqlite_backup.restore(copy, path, replace=True)

    with closing(SqliteStore(path)) as opened, closing(SqliteStore(aside)) as former:
        assert opened.get(["mem_later"], EVERYTHING) == []
        assert got(former, "mem_later")


def test_a_restore_that_dies_before_its_last_step_leaves_the_store_that_was_there(store, copy, path, monkeypatch):
    put(store, some(id="mem_later"))
    store.close()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sqlite_file, "publish", die)
        with pytest.raises(KeyboardInterrupt):
            sqlite_backup.restore(copy, path, replace=True)

    with closing(SqliteStore(path)) as opened:
        assert got(opened, "mem_later")


def test_a_store_in_use_is_not_replaced(store, copy, path):
    put(store, some(id="mem_later"))

    with pytest.raises(StorageBusy):
        sqlite_backup.restore(copy, path, replace=True)

    assert got(store, "mem_later")
    assert not list(path.parent.glob("*.replaced*"))


def test_a_damaged_store_is_replaced_and_kept(store, copy, path):
    store.close()
    path.write_bytes(path.read_bytes()[:5_000])

    aside = sqlite_backup.restore(copy, path, replace=True)

    assert aside.stat().st_size == 5_000
    with closing(SqliteStore(path)) as opened:
        assert opened.check().memories == 40


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed_page(data: bytes) -> bytes:
    return data[:8192] + bytes(4096) + data[12288:]


def other_text(data: bytes) -> bytes:
    return data.replace(b"text number 7 ", b"text number 8 ")


DAMAGES = {
    "cut": cut,
    "a page of zeros": zeroed_page,
    "garbage": lambda data: random.Random(1).randbytes(len(data)),
    "empty": lambda _: b"",
    "another text": other_text,
    "of another program": lambda _: b"SQLite format 3\0" + bytes(4080),
}


@pytest.mark.parametrize("with_checksum", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_backup_is_refused_and_nothing_is_touched(store, copy, path, damage, with_checksum):
    store.close()
    data = DAMAGES[damage](copy.read_bytes())
    assert data != copy.read_bytes()
    copy.write_bytes(data)
    if not with_checksum:
        os.unlink(f"{copy}.sha256")
    before = files(path.parent)

    for replace in (True, False):
        with pytest.raises((StorageDamaged, Conflict)):
            sqlite_backup.restore(copy, path, replace=replace)
    with pytest.raises(StorageDamaged):
        sqlite_backup.verify(copy)

    assert {name: data for name, data in files(path.parent).items() if name != "memories.db.lock"} == {
        name: data for name, data in before.items() if name != "memories.db.lock"
    }


def test_one_flipped_bit_anywhere_is_noticed_by_the_checksum(copy):
    data = bytearray(copy.read_bytes())
    chance = random.Random(5)
    for _ in range(20):
        place = chance.randrange(len(data))
        data[place] ^= 1
        copy.write_bytes(data)

        with pytest.raises(StorageDamaged):
            sqlite_backup.verify(copy)

        data[place] ^= 1


def test_a_backup_of_a_newer_scrubjay_is_refused(copy, tmp_path):
    with closing(apsw.Connection(str(copy))) as con:
        con.pragma("user_version", 99)
    os.unlink(f"{copy}.sha256")

    with pytest.raises(StorageTooNew):
        sqlite_backup.restore(copy, tmp_path / "new.db")

    assert not (tmp_path / "new.db").exists()


def test_a_backup_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFound):
        sqlite_backup.restore(tmp_path / "nothing.db", tmp_path / "new.db")
