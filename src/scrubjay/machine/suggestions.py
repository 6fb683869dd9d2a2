"""What hooks suggest to remember: a file of this machine, apart from every memory.

It is not in the store, so that no search, export, sync or backup can find what no one has accepted yet.
Only its owner can read it. What is a month old is gone, and there are never more than a few hundred.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scrubjay.machine.locks import try_lock, unlock
from scrubjay.machine.paths import replace_file
from scrubjay.values.frozen import dataclass

FILE = "suggestions.json"
KEPT_SECONDS = 30 * 86_400
MOST = 300
WAIT_SECONDS = 0.1  # for another process that writes; a hook has no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A sentence that a user said, or a session's checkpoint."""

    id: str
    text: str
    kind: str  # memory, checkpoint
    space: str
    client: str
    session: str
    at: float  # seconds since 1970


class Suggestions:
    """The file."""

    def __init__(self, home: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._file = home / FILE
        self._clock = clock

    def all(self) -> list[Suggestion]:
        """Newest first."""
        return sorted(self._read(), key=lambda one: one.at, reverse=True)

    def add(self, new: Iterable[dict[str, Any]]) -> int:
        """Keep what was not suggested before; a session's checkpoint takes the place of its earlier one."""
        with self._alone():
            kept = {self._key(one): one for one in self._read()}
            before = len(kept)
            for one in new:
                made = Suggestion(id=f"sug_{os.urandom(4).hex()}", at=self._clock(), **one)
                key = self._key(made)
                if made.kind == "checkpoint" or key not in kept:
                    kept[key] = made
            self._write(sorted(kept.values(), key=lambda one: one.at)[-MOST:])
            return len(kept) - before

    def take(self, id: str) -> Suggestion | None:
        """Remove one; None if there is no such suggestion."""
        with self._alone():
            found = self._read()
            taken = next((one for one in found if one.id == id), None)
            if taken is not None:
                self._write([one for one in found if one is not taken])
            return taken

    def put_back(self, one: Suggestion) -> None:
        with self._alone():
            self._write([*self._read(), one])

    @staticmethod
    def _key(one: Suggestion) -> tuple[str, ...]:
        return (
            ("checkpoint", one.session) if one.kind == "checkpoint" else (one.space, " ".join(one.text.split()).lower())
        )

    def _read(self) -> list[Suggestion]:
        """What is not too old; a damaged file has none: nothing in it is needed."""
        try:
            rows = json.loads(self._file.read_bytes())
            found = [Suggestion(**row) for row in rows]
        except (OSError, ValueError, TypeError):
            return []
        return [one for one in found if self._clock() - one.at < KEPT_SECONDS]

    def _write(self, rows: list[Suggestion]) -> None:
        fields = Suggestion.__slots__
        replace_file(self._file, json.dumps([{name: getattr(one, name) for name in fields} for one in rows]).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """:raises OSError: if another process holds the file, or it cannot be written"""
        descriptor = os.open(self._file.with_name(f"{FILE}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            until = time.monotonic() + WAIT_SECONDS
            while not try_lock(descriptor):
                if time.monotonic() > until:
                    raise OSError("suggestions are being written by another process")
                time.sleep(0.005)
            yield
            unlock(descriptor)
        finally:
            os.close(descriptor)
