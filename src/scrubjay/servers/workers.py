"""Threads in which calls run: some at once, no user all of them, and none for ever.

The engine is synchronous, so each call needs a thread. A user who asks for many at once waits for its own calls first;
a call that takes too long is answered without its result, and ends in its thread by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
from anyio.to_thread import run_sync

from scrubjay.errors import TimedOut

Result = TypeVar("Result")

THREADS = 16  # each keeps a connection to the store
OF_ONE_USER = 12
SECONDS = 60.0


class Workers:
    def __init__(self, *, threads: int = THREADS, of_one_user: int = OF_ONE_USER, seconds: float | None = None) -> None:
        self._threads = anyio.CapacityLimiter(threads)
        self._of_one_user = of_one_user
        self._seconds = seconds
        self._users: dict[str, anyio.CapacityLimiter] = {}

    async def run(self, user: str, work: Callable[[], Result]) -> Result:
        """:raises TimedOut: if it is not done in time; what it changes, it changes wholly or not at all"""
        try:
            with anyio.fail_after(self._seconds):
                async with self._turn_of(user):
                    return await run_sync(work, limiter=self._threads, abandon_on_cancel=self._seconds is not None)
        except TimeoutError:
            raise TimedOut(f"The call took longer than {self._seconds:g} seconds.") from None

    def _turn_of(self, user: str) -> anyio.CapacityLimiter:
        # Those that nobody holds are dropped, or every user ever seen would be kept.
        if user not in self._users and len(self._users) >= 1_000:
            self._users = {name: one for name, one in self._users.items() if one.borrowed_tokens}
        return self._users.setdefault(user, anyio.CapacityLimiter(self._of_one_user))
