"""The command that a client starts us with."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from scrubjay.settings import Settings, data_folder

NAME = "scrubjay"
DIALECT = "scrubjay"  # written out, so that an entry means the same whatever the default becomes


def command() -> str:
    """The command that starts this program: its full path, since clients do not inherit a shell's search path."""
    beside = Path(sys.executable).with_name(NAME)
    return str(beside) if beside.exists() else shutil.which(NAME) or NAME


def home_arguments(settings: Settings) -> list[str]:
    """The options a server needs to use this memory. Clients started from a desktop inherit no shell environment, so
    only the plain defaults can be left out."""
    return [] if settings.home == data_folder({}) else ["--home", str(settings.home)]


def left_behind(environ: Mapping[str, str]) -> list[str]:
    """Settings of this shell that a client would not pass on; they are never written into a client's file, as some are
    secrets."""
    written = {"SCRUBJAY_HOME", "SCRUBJAY_SPACE"}
    return sorted(
        name for name, value in environ.items() if name.startswith("SCRUBJAY_") and value and name not in written
    )
