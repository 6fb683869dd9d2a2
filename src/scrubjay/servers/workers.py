"""Threads in which calls run: a limited number, never all for one user, and with a time limit; and the order of calls.

The engine is synchronous, so each call needs a thread. What changes something may wait for the store's one writer, so
it has its own share of the threads: however many changes wait, questions are answered. A user with many calls at once
waits for its own calls first; a call that takes too long is answered without its result, and finishes in its thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync

from scrubjay.errors import TimedOut

Result = TypeVar("Result")

READERS, READERS_OF_ONE_USER = 16, 12  # each keeps a connection to the store
WRITERS, WRITERS_OF_ONE_USER = 8, 6  # the store has one writer: more would only wait
SECONDS = 60.0


class Workers:
    def __init__(
        self,
        *,
        readers: int = READERS,
        readers_of_one_user: int = READERS_OF_ONE_USER,
        writers: int = WRITERS,
        writers_of_one_user: int = WRITERS_OF_ONE_USER,
        seconds: float | None = None,
    ) -> None:
        self._readers = Share(readers, readers_of_one_user)
        self._writers = Share(writers, writers_of_one_user)
        self._seconds = seconds

    async def run(self, user: str, work: Callable[[], Result], *, changes: bool = False) -> Result:
        """:raises TimedOut: if it is not done in time; its changes are made completely or not at all"""
        share = self._writers if changes else self._readers
        try:
            with anyio.fail_after(self._seconds):
                async with share.turn_of(user):
                    return await run_sync(work, limiter=share.threads, abandon_on_cancel=self._seconds is not None)
        except TimeoutError:
            raise TimedOut(f"The call took longer than {self._seconds:g} seconds.") from None


class Share:
    """A share of the threads."""

    def __init__(self, threads: int, of_one_user: int) -> None:
        self.threads = anyio.CapacityLimiter(threads)
        self._of_one_user = of_one_user
        self._users: dict[str, anyio.CapacityLimiter] = {}

    def turn_of(self, user: str) -> anyio.CapacityLimiter:
        # Unused ones are dropped, or every user ever seen would be kept.
        if user not in self._users and len(self._users) >= 1_000:
            self._users = {name: one for name, one in self._users.items() if one.borrowed_tokens}
        return self._users.setdefault(user, anyio.CapacityLimiter(self._of_one_user))


class Turns:
    """Calls of one client in the order in which they came. Belongs to one event loop.

    A client may send "store this" and "find it" at once. So a change waits for every call before it, and a question for
    every change before it; questions run in parallel.
    """

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
