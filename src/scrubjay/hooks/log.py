"""What hooks gave, one JSON line each, in `hooks.log` in the home: only its owner can read it.

At a megabyte the file becomes `hooks.log.1`, in place of the one before.
"""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from scrubjay.hooks.run import Hook

LARGEST = 1_000_000  # bytes
SHOWN = 100  # characters of a prompt


def write(file: str, hook: Hook) -> None:
    """Append what a hook gave; a log that cannot be written is not the session's problem."""
    prompt = hook.given.get("prompt") if hook.moment == "prompt" else None
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hook": hook.moment,
        "client": hook.client,
        "prompt": prompt[:SHOWN] if isinstance(prompt, str) else None,
        **hook.gave,
        "ms": round(1000 * (time.monotonic() - hook.began)),
    }
    try:
        if os.path.exists(file) and os.stat(file).st_size > LARGEST:
            os.replace(file, f"{file}.1")
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, json.dumps({name: value for name, value in line.items() if value}).encode() + b"\n")
    except OSError:
        return


def read(home: Path) -> Iterator[dict[str, Any]]:
    """The newest first; a line that was cut off is left out."""
    for name in ("hooks.log", "hooks.log.1"):
        try:
            lines = (home / name).read_text("utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in reversed(lines):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
