"""Calls of one client in the order in which they came.

A client may send "store this" and "find it" at once. So a change waits for every call before it, and a question for
every change before it; questions run in parallel.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Turns:
    """Which call waits for which. Belongs to one event loop."""

    def __init__(self) -> None:
        self._change: anyio.Event | None = None  # the latest change; set when done
        self._questions: list[anyio.Event] = []  # those since then

    @asynccontextmanager
    async def turn(self, *, changes: bool) -> AsyncIterator[None]:
        """Enters when it is this call's turn."""
        done = anyio.Event()
        before = [*self._questions, self._change] if changes else [self._change]
        if changes:
            self._change, self._questions = done, []
        else:
            self._questions = [question for question in self._questions if not question.is_set()] + [done]
        try:
            # Must not be cancelled: those behind us wait for us alone, and we for those before.
            with anyio.CancelScope(shield=True):
                for other in before:
                    if other is not None:
                        await other.wait()
            yield
        finally:
            done.set()
