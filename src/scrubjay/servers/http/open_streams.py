"""Answers that are streams: a caller who follows changes must still be allowed to.

A request is authenticated once, and a stream may last for days. So while any is open, one task checks all of them again
every few seconds, each credential once however many streams it has. A stream whose credential fails, or whose caller
has other rights now, ends: its client asks again, and gets what it may see now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from anyio.to_thread import run_sync
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Send

from scrubjay.errors import Error, Forbidden, Unauthenticated
from scrubjay.servers.http.credentials import Proven, proof_in
from scrubjay.values.callers import Caller

RECHECK_SECONDS = 3.0  # we promise that a stream ends within ten seconds

Prove = Callable[[Request, str], Proven]


@dataclass(eq=False, slots=True)
class Answer:
    """One that may become a stream."""

    request: Request
    caller: Caller
    running: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    of_events: bool = False

    @property
    def proof(self) -> tuple[object, ...]:
        """Equal for those that can be checked together."""
        return proof_in(self.request), self.caller


class OpenStreams:
    def __init__(self, prove: Prove, seconds: float = RECHECK_SECONDS) -> None:
        self._prove = prove
        self._seconds = seconds
        self._open: set[Answer] = set()
        self._watching: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, request: Request, caller: Caller, receive: Receive, send: Send) -> None:
        """Let the app answer, for as long as its caller may read the answer."""
        answer = Answer(request, caller)

        async def noticed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                answer.of_events = headers.get("content-type", "").startswith("text/event-stream")
                if "content-length" not in headers:  # its length is not known yet
                    self._watch(answer)
            await send(message)

        try:
            with answer.running:
                await app(request.scope, receive, noticed)
        finally:
            self._leave(answer)
        # Events may end anywhere. Part of anything else (an export) must not look complete: the connection is cut.
        if answer.running.cancelled_caught and answer.of_events:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _watch(self, answer: Answer) -> None:
        self._open.add(answer)
        if self._watching is None:
            self._watching = asyncio.create_task(self._look_again())

    def _leave(self, answer: Answer) -> None:
        self._open.discard(answer)
        if not self._open and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _look_again(self) -> None:
        while True:
            await anyio.sleep(self._seconds)
            alike: dict[tuple[object, ...], list[Answer]] = {}
            for answer in self._open:
                alike.setdefault(answer.proof, []).append(answer)
            for answers in alike.values():
                if not await run_sync(self._still_good, answers[0]):
                    for answer in answers:
                        answer.running.cancel()

    def _still_good(self, answer: Answer) -> bool:
        with suppress(Error):  # the store is unavailable for a moment; the next check decides
            try:
                return self._prove(answer.request, answer.request.method).caller == answer.caller
            except (Unauthenticated, Forbidden):
                return False
        return True
