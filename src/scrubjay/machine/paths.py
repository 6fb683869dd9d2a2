"""Paths on this machine: how they are named, and made durable.

A path in a request, a setting or an address must be absolute. A client does not see where its server was started, and a
setting or an address is read again by programs that are started elsewhere, so a relative one would mean something else
each time. Users of a shell or of Python do see it; the command line and the library make their paths absolute.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scrubjay.errors import InvalidInput

SQLITE = "sqlite:///"  # before a file, in the address of a store


def store_address(where: str | Path) -> str:
    """The address of a store given by its address or, by someone who knows the working directory, by its file."""
    return str(where) if "://" in str(where) else f"{SQLITE}{expand_home(where, field='store').absolute()}"


def expand_home(path: str | Path, *, field: str) -> Path:
    """The path, with ~ as the user's own folder.

    :raises InvalidInput: for ~name, if this machine has no such user
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"{field} begins with the home of an unknown user.", field=field) from None


def full_path(text: str, *, field: str) -> Path:
    """:raises InvalidInput: if it is relative, or cannot name a file"""
    path = expand_home(text, field=field)
    if "\0" in text or not path.is_absolute():
        raise InvalidInput(
            f"{field} must be an absolute path or begin with ~.",
            hint="For example /backups/monday.db.",
            field=field,
        )
    return path


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o600,
    draft: Path | None = None,
    put: Callable[[Path, Path], object] = os.replace,
) -> None:
    """Give a file this content, durably: a reader, and a crash, sees the old bytes or all of the new ones."""
    draft = draft or path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        put(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new and changed names in a folder survive a power cut; Windows does that by itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
