"""Archived objects as files in a folder.

    <folder>/glacier/scrubjay-archive         marks the folder: a disk that is not mounted is not an empty archive
    <folder>/glacier/4x/arch_4x1k9c0d2m7q     an object
    <folder>/deep_archive/…                   likewise; may be a link to another disk

A file is written under another name, synced, and then renamed, so that it is either complete or absent.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scrubjay.archives.base import Objects
from scrubjay.errors import ArchiveDamaged, ArchiveUnavailable, StorageError, StorageFull
from scrubjay.machine.paths import replace_file, sync_folder

MARKER = "scrubjay-archive"
MARK = b"Archived memories of scrubjay. Leave the files as they are.\n"
MOUNT = "Mount it, or set SCRUBJAY_ARCHIVE to where it is."
AWAY = {
    getattr(errno, name)
    for name in ("ENOTCONN", "ESTALE", "ENODEV", "ENXIO", "EHOSTDOWN", "EHOSTUNREACH", "ETIMEDOUT")
    if hasattr(errno, name)
}  # of a disk that was pulled out, or a server that does not answer


class FolderObjects(Objects):
    def __init__(self, folder: Path) -> None:
        """Nothing is created or read before the first object."""
        self._folder = folder

    def mark(self, tier: str) -> str | None:
        with _translated_errors():
            try:
                text = self._marker(tier).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None
            return text[len(MARK) :].decode("ascii", "replace").strip() if text.startswith(MARK) else ""

    def set_mark(self, tier: str, mark: str) -> None:
        marker = self._marker(tier)
        with _translated_errors():
            marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(marker, MARK + mark.encode() + b"\n")
            sync_folder(marker.parent.parent)

    def write(self, name: str, data: bytes) -> None:
        path = self._path(name)
        with _translated_errors():
            self._check_there(name)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            replace_file(path, data)
            sync_folder(path.parent.parent)

    def read(self, name: str) -> bytes:
        with _translated_errors():
            try:
                return self._path(name).read_bytes()
            except FileNotFoundError:
                self._check_there(name)
                raise ArchiveDamaged("The archived object is missing.") from None

    def remove(self, name: str) -> None:
        with _translated_errors():
            try:
                self._path(name).unlink()
            except FileNotFoundError:
                self._check_there(name)

    def _path(self, name: str) -> Path:
        tier, _, own = name.partition("/")
        return self._folder / tier / own.rpartition("_")[2][:2] / own

    def _marker(self, tier: str) -> Path:
        return self._folder / tier / MARKER

    def _check_there(self, name: str) -> None:
        if not self._marker(name.partition("/")[0]).exists():
            raise ArchiveUnavailable("The archive folder does not exist. Is its disk mounted?", hint=MOUNT)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Messages never include a path: they may reach a model or a stranger."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageFull("No space is left on the disk of the archive folder.") from error
        if error.errno in AWAY:
            raise ArchiveUnavailable("The archive folder cannot be reached. Is it mounted?", hint=MOUNT) from error
        raise StorageError("The archive folder cannot be used.", hint="Check its permissions and its disk.") from error
