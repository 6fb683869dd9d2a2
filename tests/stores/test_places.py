"""Where a store can lie, and what is said where it cannot; nothing is ever written there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from scrubjay.errors import Error, StorageDamaged, StorageError, StorageTooNew
from scrubjay.stores.sqlite import file as sqlite_file
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.search import Filter
from tests.stores.contract.suite import EVERYTHING, NOW, got, put, some

pytestmark = pytest.mark.process


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_text("Dear diary")


def of_another_program(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as con:
        con.execute("CREATE TABLE bookmarks (url)")


def newer(path: Path) -> None:
    SqliteStore(path).close()
    with closing(apsw.Connection(str(path))) as con:
        con.pragma("user_version", 99)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "mine").write_text("mine")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere.db"))


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def link_to_text(path: Path) -> None:
    text(path.with_name("diary.txt"))
    path.symlink_to(path.with_name("diary.txt"))


BAD: dict[str, tuple[Callable[[Path], None], type[Error]]] = {
    "empty": (empty, StorageDamaged),
    "text": (text, StorageDamaged),
    "of another program": (of_another_program, StorageDamaged),
    "of a newer scrubjay": (newer, StorageTooNew),
    "a folder": (folder, StorageError),
    "a pipe": (pipe, StorageError),
    "a broken link": (link_to_nowhere, StorageError),
    "a link to itself": (link_to_itself, StorageError),
    "a link to a text": (link_to_text, StorageDamaged),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_a_store_is_refused_in_plain_words_and_left_as_it_is(tmp_path, kind):
    make, error = BAD[kind]
    make(tmp_path / "memories.db")
    before = contents(tmp_path)

    with pytest.raises(error) as caught:
        SqliteStore(tmp_path / "memories.db")

    assert caught.value.hint
    assert str(tmp_path) not in f"{caught.value.message} {caught.value.hint}"
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for file in sorted(folder.rglob("*")):
        mode = file.lstat().st_mode
        found[str(file.relative_to(folder))] = file.read_bytes() if stat.S_ISREG(mode) else stat.filemode(mode)
    return found


def test_a_link_to_a_store_is_the_store_with_its_companions_beside_it(tmp_path):
    real, link = tmp_path / "real" / "memories.db", tmp_path / "link.db"
    with closing(SqliteStore(real)) as store:
        memory = put(store, some())
        link.symlink_to(real)
        with closing(SqliteStore(link)) as linked:
            assert got(linked, memory.id) == memory
            assert put(linked, some())
        assert len(store.list(Filter(), EVERYTHING, now=NOW)) == 2

    assert sorted(file.name for file in tmp_path.iterdir()) == ["link.db", "real"]


@pytest.mark.parametrize("system", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_drive_is_refused_and_nothing_is_made_there(tmp_path, monkeypatch, system):
    """Two machines that write there would destroy it: SQLite's log needs memory that both share."""
    drive = tmp_path / "my drive"
    drive.mkdir()
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\nserver:/x {str(drive).replace(' ', chr(92) + '040')} {system} rw 0 0\n"
        "tmpfs /run tmpfs rw 0 0\n"
    )
    monkeypatch.setattr(sqlite_file, "MOUNTS", mounts)

    with pytest.raises(StorageError, match="network drive"):
        SqliteStore(drive / "deep" / "memories.db")

    assert list(drive.iterdir()) == []
    SqliteStore(tmp_path / "local" / "memories.db").close()


def test_an_address_of_another_machine_is_a_network_drive():
    assert sqlite_file.network_system(Path(r"\\server\share\memories.db")) == "smb"


def test_where_mounts_cannot_be_told_the_place_is_taken_for_local(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "MOUNTS", tmp_path / "nothing")

    assert sqlite_file.network_system(tmp_path) is None
