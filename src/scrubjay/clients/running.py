"""Whether a client is running: it reads its files when it starts, so it has to be restarted."""

from __future__ import annotations

import subprocess
from pathlib import Path

from scrubjay.clients.catalogue import Client


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
