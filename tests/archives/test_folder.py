"""The archive folder: wholly written or not at all, and honest about what it cannot give back."""

from __future__ import annotations

import errno
import os
import stat
import sys

import pytest

from scrubjay.archives.folder import MARK, MARKER, FolderObjects
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, StorageError, StorageFull

NAME = "glacier/arch_4x1k9c0d2m7q"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


@pytest.fixture
def objects(folder):
    """Set up, as the engine does it before the first object (engine/archive/marks.py)."""
    made = FolderObjects(folder)
    made.set_mark("glacier", "m1")
    return made


def test_an_object_is_read_as_it_was_written_also_by_another_process(objects, folder):
    objects.write(NAME, b"\x00packed\n")

    assert FolderObjects(folder).read(NAME) == b"\x00packed\n"


def test_reading_and_writing_make_no_folder(folder):
    objects = FolderObjects(folder)
    with pytest.raises(ArchiveUnavailable):
        objects.read(NAME)
    with pytest.raises(ArchiveUnavailable):
        objects.write(NAME, b"x")

    assert not folder.exists()
    assert objects.mark("glacier") is None


def test_a_tier_keeps_its_mark(objects, folder):
    objects.set_mark("deep_archive", "m2")

    assert FolderObjects(folder).mark("glacier") == "m1"
    assert FolderObjects(folder).mark("deep_archive") == "m2"


def test_marks_of_the_version_before_have_no_name(objects, folder):
    (folder / "glacier" / MARKER).write_bytes(MARK)

    assert objects.mark("glacier") == ""


def test_a_missing_object_is_damage_and_a_missing_folder_is_not(objects, folder):
    objects.write(NAME, b"x")
    objects.remove(NAME)
    with pytest.raises(ArchiveDamaged):
        objects.read(NAME)

    (folder / "glacier" / MARKER).unlink()  # an empty mount point
    with pytest.raises(ArchiveUnavailable):
        objects.read(NAME)
    with pytest.raises(ArchiveUnavailable):
        objects.remove(NAME)


def test_removing_twice_is_no_error(objects):
    objects.write(NAME, b"x")

    objects.remove(NAME)
    objects.remove(NAME)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_nobody_else_may_read_it(objects, folder):
    objects.write(NAME, b"x")

    for path in (folder / "glacier", *(folder / "glacier").rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EIO, StorageError),
        (errno.ESTALE, ArchiveUnavailable),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "open"])
def test_what_the_disk_refuses_leaves_nothing(objects, folder, monkeypatch, number, kind, call):
    objects.write("glacier/arch_first0000000", b"x")
    there = sorted(path.name for path in folder.rglob("*") if path.is_file())
    real = getattr(os, call)

    def refuse(what, *rest, **more):
        if call == "fsync" or str(what).endswith(".new"):
            raise OSError(number, os.strerror(number))
        return real(what, *rest, **more)

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(kind) as refused:
        objects.write(NAME, b"y")

    assert str(folder) not in refused.value.message
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == there
