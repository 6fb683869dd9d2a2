"""Streamed answers: how many a user may have open, and how each is woken.

A stream with nothing to send costs nothing: it holds no thread and polls nothing. The store's watcher rings when there
may be news, and whatever ends a stream wakes it. All of this belongs to the server's event loop; only `ring` may be
called from other threads.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

import anyio
from anyio.to_thread import run_sync

from scrubjay.dialects.base import Body, Stream
from scrubjay.errors import RateLimited
from scrubjay.values.callers import Caller
from scrubjay.values.frozen import dataclass

OF_ONE_USER = 50
SILENCE_SECONDS = 15.0  # how long a stream is silent before a keep-alive is sent
POLL_SECONDS = 0.5  # how often a stream without notifications is polled
ASKING, CHANGING = 8, 32  # threads that produce pieces; those that change something may wait long, for a model too


@dataclass(frozen=True, slots=True)
class Last:
    """The end of a stream, and what is still to be sent."""

    body: Body | None = None


class OpenStream:
    """One open stream."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.ended = False
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Make the stream look for news; callable from any thread."""
        with suppress(RuntimeError):  # the server has ended
            self._loop.call_soon_threadsafe(self._rung.set)

    def end(self) -> None:
        self.ended = True
        self._rung.set()

    def clear(self) -> None:
        if not self.ended:
            self._rung.clear()

    async def wait_for_ring(self, seconds: float) -> bool:
        """Wait for a ring, at most so long; return whether there was one."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        return self._rung.is_set()


class Streams:
    """All open streams of a server."""

    def __init__(self, *, of_one_user: int = OF_ONE_USER) -> None:
        self.open: set[OpenStream] = set()
        self._of_one_user = of_one_user
        self._stopped = False
        self._threads = {False: anyio.CapacityLimiter(ASKING), True: anyio.CapacityLimiter(CHANGING)}

    @contextmanager
    def opening(self, caller: Caller) -> Iterator[OpenStream]:
        """Count a stream of this caller as open within the block.

        :raises RateLimited: if this user has too many open
        """
        if sum(one.caller.user == caller.user for one in self.open) >= self._of_one_user:
            raise RateLimited(
                f"{caller.user} already has {self._of_one_user} streams open, the maximum per user.",
                hint="Close one of them first.",
            )
        opened = OpenStream(caller)
        opened.ended = self._stopped
        self.open.add(opened)
        try:
            yield opened
        finally:
            self.open.discard(opened)

    def stop(self) -> None:
        """End all streams, and refuse new ones: the server is about to stop."""
        self._stopped = True
        for opened in self.open:
            opened.end()

    async def pieces_of(
        self, stream: Stream, opened: OpenStream, piece: Callable[[], Body | Last | None], *, changes: bool
    ) -> AsyncGenerator[Body | None, None]:
        """Yield the pieces of a stream as they come, and None when it is time for a keep-alive."""
        threads, spoke = self._threads[changes], time.monotonic()
        listening = stream.listening
        patience = SILENCE_SECONDS if listening else POLL_SECONDS
        try:
            with nullcontext() if listening is None else listening(opened.ring):
                while not opened.ended:
                    opened.clear()  # news from here on is not missed
                    found = await run_sync(piece, limiter=threads)
                    if isinstance(found, Last):
                        if found.body is not None:
                            yield found.body
                        return
                    if found is not None or time.monotonic() - spoke >= SILENCE_SECONDS:
                        yield found
                        spoke = time.monotonic()
                    while found is None and not await opened.wait_for_ring(patience):
                        if listening is None:
                            break
                        yield None
                        spoke = time.monotonic()
        finally:
            close = getattr(stream.pieces, "close", None)
            if close is not None:
                with anyio.CancelScope(shield=True):
                    await run_sync(close, limiter=threads)
