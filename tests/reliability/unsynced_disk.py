"""A disk that loses power: what was not synced is dropped, kept or torn, as chance has it.

A file system for SQLite, in Python, in front of the real one. It remembers what every write replaced until the file is
synced; at the Nth call it lays down what a disk might hold after a power cut at that moment, in another folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw

REAL = apsw.vfs_names()[0]
SECTOR = 512


@dataclass
class Write:
    """A change that is not on the disk yet. `size`: the file's before it."""

    offset: int
    before: bytes
    after: bytes | None  # None: cut off at the offset
    size: int


class Disk(apsw.VFS):
    def __init__(self, chance: Random) -> None:
        super().__init__("unsynced", REAL, makedefault=True)
        self.calls = 0
        self.chance = chance
        self.unsynced: dict[str, list[Write]] = {}
        self.cut_at: Callable[[int], bool] = lambda _: False
        self.on_cut: Callable[[], None] = lambda: None

    def xOpen(self, name: Any, flags: list[int]) -> File:
        return File(self, name, flags)

    def count(self) -> None:
        self.calls += 1
        if self.cut_at(self.calls):
            self.on_cut()

    def lay_down(self, source: Path, target: Path) -> None:
        """The files as they might be found after the cut. SQLite's shared memory is gone: it lives in memory."""
        target.mkdir()
        for file in source.iterdir():
            if not file.name.endswith("-shm"):
                data = self._after_the_cut(file.read_bytes(), self.unsynced.get(str(file), []))
                (target / file.name).write_bytes(data)
                (target / file.name).chmod(0o600)

    def _after_the_cut(self, data: bytes, writes: list[Write]) -> bytes:
        found = bytearray(data)
        for write in reversed(writes):  # back to what was synced …
            end = write.offset + len(write.before)
            found = found.ljust(end, b"\0")
            found[write.offset : end] = write.before
            found = found[: write.size].ljust(write.size, b"\0")
        for write in writes:  # … and some of what was not, in part
            fate = self.chance.choice(["dropped", "kept", "torn"])
            if fate == "dropped":
                continue
            if write.after is None:
                found = found[: write.offset]
                continue
            after = write.after
            if fate == "torn":
                after = after[: self.chance.randrange(len(after) // SECTOR + 1) * SECTOR]
            found = found.ljust(write.offset + len(after), b"\0")
            found[write.offset : write.offset + len(after)] = after
        return bytes(found)


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__(REAL, name, flags)
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)

    def _writes(self) -> list[Write]:
        return self._disk.unsynced.setdefault(self._path, [])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.count()
        size = super().xFileSize()
        before = super().xRead(min(len(data), max(0, size - offset)), offset) if size > offset else b""
        self._writes().append(Write(offset, before, bytes(data), size))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._disk.count()
        length = super().xFileSize()
        before = super().xRead(length - size, size) if length > size else b""
        self._writes().append(Write(size, before, None, length))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._disk.count()
        super().xSync(flags)
        self._disk.unsynced[self._path] = []
