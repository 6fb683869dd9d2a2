"""Answers that go on after they have begun, and what lets them: who follows changes must still be who it was.

A request proves its caller once, and a stream may last for days. So as long as any is open, one task proves all of them
again every few seconds, each credential once however many streams it has. A stream whose proof fails, or whose caller
has other rights now, ends: its client asks again, and gets what it may see today.
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
from scrubjay.values.memory import Caller

RECHECK_SECONDS = 3.0  # promised is that a stream ends within ten seconds

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
        """Equal for those that can be judged together."""
        return proof_in(self.request), self.caller


class OpenStreams:
    def __init__(self, prove: Prove, seconds: float = RECHECK_SECONDS) -> None:
        self._prove = prove
        self._seconds = seconds
        self._open: set[Answer] = set()
        self._watching: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, request: Request, caller: Caller, receive: Receive, send: Send) -> None:
        """Let the app answer, for as long as its caller may read what it is told."""
        answer = Answer(request, caller)

        async def noticed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                answer.of_events = headers.get("content-type", "").startswith("text/event-stream")
                if "content-length" not in headers:  # nobody knows yet how long it will be
                    self._watch(answer)
            await send(message)

        try:
            with answer.running:
                await app(request.scope, receive, noticed)
        finally:
            self._leave(answer)
        # Events may end anywhere. Of anything else (an export) a part must not look like the whole: it is cut off.
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
        with suppress(Error):  # the store is away for a moment; the next look will tell
            try:
                return self._prove(answer.request, answer.request.method).caller == answer.caller
            except (Unauthenticated, Forbidden):
                return False
        return True
