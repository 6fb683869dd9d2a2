"""Places on this machine: how they are named, and kept.

Where somebody names one in words (a client, a setting, an address) there is one rule: it is full. A client does not
see where its server was started, and a setting or an address is read again by programs that are started elsewhere, so
a relative one would lead somewhere else each time. Who types at a shell or calls from Python does see it; the command
line and the library turn what they are given into full paths themselves.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from scrubjay.errors import InvalidInput

SQLITE = "sqlite:///"  # before a file, in the address of a store


def store_address(where: str | Path) -> str:
    """The address of a store that is named by its address or, by somebody who sees where we stand, by its file."""
    return str(where) if "://" in str(where) else f"{SQLITE}{expanded(where, field='store').absolute()}"


def expanded(path: str | Path, *, field: str) -> Path:
    """The path, with ~ as the user's own folder.

    :raises InvalidInput: for ~somebody, whom this machine does not know
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"{field} begins with the home of a user who is not there.", field=field) from None


def full_path(text: str, *, field: str) -> Path:
    """:raises InvalidInput: if it is relative, or cannot name a file"""
    path = expanded(text, field=field)
    if "\0" in text or not path.is_absolute():
        raise InvalidInput(
            f"{field} must be absolute or begin with ~: it must not depend on where the server was started.",
            hint="Name it from the root, such as /backups/monday.db.",
            field=field,
        )
    return path


def sync_folder(folder: Path) -> None:
    """Let new and changed names in a folder survive a power cut; Windows sees to that by itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
