"""An engine that opens while its server already talks to a client."""

from __future__ import annotations

import threading
from collections.abc import Callable

from scrubjay.engine.engine import Engine


class Opening:
    """Opens the engine when it is first needed, or ahead of that in the background.

    The caller reports a failure, and the next call tries again: a full disk or a busy store may have recovered.
    """

    def __init__(self, open_engine: Callable[[], Engine]) -> None:
        self._open = open_engine
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """:raises Error: if it cannot be opened"""
        with self._lock:
            if self._engine is None:
                engine = self._open()
                engine.warm()
                self._engine = engine
            return self._engine

    def close(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine.close()
