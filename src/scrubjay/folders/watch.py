"""Notices changes in folders, for as long as a server runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

LOOK_AGAIN_MS = 5_000  # for folders that were added or created meanwhile


class Watcher:
    """A thread that calls `changed` with the names of the folders that changed."""

    def __init__(self, folders: Callable[[], Mapping[str, Path]], changed: Callable[[str], None]) -> None:
        self._folders = folders
        self._changed = changed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folders", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=2)

    def _run(self) -> None:
        while not self._stop.is_set():
            folders = {name: path for name, path in self._folders().items() if path.is_dir()}
            if folders:
                self._watch(folders)
            else:
                self._stop.wait(LOOK_AGAIN_MS / 1000)

    def _watch(self, folders: Mapping[str, Path]) -> None:
        """Until there are other folders to watch."""
        from watchfiles import watch  # only servers need it

        for changes in watch(
            *folders.values(),
            watch_filter=lambda _change, path: path.endswith(".md"),
            stop_event=self._stop,
            rust_timeout=LOOK_AGAIN_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            places = [Path(path) for _, path in changes]
            for name, root in folders.items():
                if any(place.is_relative_to(root) for place in places):
                    self._changed(name)
            if {name: path for name, path in self._folders().items() if path.is_dir()} != folders:
                return
