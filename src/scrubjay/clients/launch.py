"""The command that a client starts us with; and whether a client is running: it reads its files when it starts, so it
has to be restarted."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scrubjay.clients.catalogue import Client
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


def is_running(client: Client) -> bool:
    return not processes().isdisjoint(client.programs)


def processes() -> set[str]:
    """The names of the processes of this machine, as far as it tells."""
    found: set[str] = set()
    for one in Path("/proc").glob("[0-9]*/comm"):
        try:
            found.add(one.read_text("utf-8", errors="replace").strip())
        except OSError:  # ended meanwhile, or another user's
            continue
    if found:
        return found
    try:
        listed = subprocess.run(["ps", "-axco", "comm"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return found
    return {line.strip() for line in listed.stdout.splitlines()}
