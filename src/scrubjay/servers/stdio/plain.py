"""Ordinary requests over stdio, answered without the protocol's library: its import costs more processor time than
opening the memory and the first calls together, in every editor window.

    inbox ──> ordinary? ──> a thread ──> the dialect ──> stdout
              anything else ──> it, and whatever follows, is for the library

Ordinary are calls of known tools and the lists of prompts and resources, in a session of the handshake era. Whatever is
unusual (another version or era, an unknown tool, a tool that may ask the client, a cursor, a list that fails) is left
to the library, which knows every rule. It hears the client's own handshake first, and takes over once every call that
runs here is answered, so that the order of one client's calls stays.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from threading import Event
from typing import Any

import anyio
from anyio.to_thread import run_sync

from scrubjay.dialects.base import Dialect, Reply, Resource, UserPrompt
from scrubjay.engine.engine import Engine
from scrubjay.errors import InvalidInput
from scrubjay.lazy import orjson
from scrubjay.servers.calls import (
    NOTICES,
    Call,
    Served,
    Service,
    client_called,
    conditions_in,
    fault,
    fit_reply,
    served_tools,
)
from scrubjay.servers.stdio.frames import INTERNAL_ERROR, encode
from scrubjay.servers.stdio.front import HANDSHAKE_VERSIONS, REPLAYED
from scrubjay.servers.workers import Turns, Workers
from scrubjay.values.callers import LOCAL_USER, Provenance

Message = dict[str, Any]
Answer = Callable[[], Awaitable[Message]]
Inbox = SimpleQueue[Message | None]

VERSIONS = HANDSHAKE_VERSIONS[-2:]  # those whose results have all that we say
RESERVED = "io.modelcontextprotocol/"  # names in _meta that have rules of their own
ENOUGH: Message = {}  # in the inbox: the library takes over


class LeftToLibrary(Exception):
    """An ordinary request that could not be answered; asked again, it does no harm."""


class Plain:
    """Answers one client for as long as it asks nothing unusual."""

    def __init__(
        self,
        dialects: Sequence[Dialect],
        engine: Callable[[], Engine],
        inbox: Inbox,
        deliver: Callable[[int | str | None, bytes], None],
    ) -> None:
        self._dialects = dialects
        self._served = served_tools(dialects)
        self._engine = engine
        self._inbox = inbox
        self._deliver = deliver
        self._client: str | None = None  # None: there was no handshake of a version that we know
        self._opening: list[Message] = []  # the handshake, for the library
        self._left: list[Message] = []  # for the library: what we cannot answer, and all behind it
        self._running: dict[anyio.CancelScope, int | str] = {}  # with the ids of requests, which may be the same
        self._handed_over = False
        self._service, self._turns = Service(workers=Workers()), Turns()

    @property
    def client(self) -> str:
        return self._client or "unknown"

    def run(self, serving: Event) -> list[Message] | None:
        """What the library has to hear, once something unusual is asked; None at the end of input."""
        return anyio.run(self._main, serving)

    async def _main(self, serving: Event) -> list[Message] | None:
        own = anyio.CapacityLimiter(1)  # calls cannot take the place of the thread that waits
        async with anyio.create_task_group() as tasks:
            serving.set()
            while (message := await run_sync(self._inbox.get, limiter=own)) is not ENOUGH:
                if message is None:
                    tasks.cancel_scope.cancel()
                    return None
                if self._settled(message):
                    continue
                scope = anyio.CancelScope()
                answer = None if self._left else self._answer_to(message, scope)
                if answer is None:
                    self._leave(message)
                else:
                    self._running[scope] = message["id"]
                    tasks.start_soon(self._answered, message, answer, scope)
        return [*self._opening, *self._left]

    def _leave(self, message: Message) -> None:
        self._left.append(message)
        self._hand_over()

    def _hand_over(self) -> None:
        """Let the loop end once something is left to the library and nothing runs here."""
        if self._left and not self._running and not self._handed_over:
            self._handed_over = True
            self._inbox.put(ENOUGH)

    def _settled(self, message: Message) -> bool:
        """Whether there is nothing to answer."""
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled" and self._took_back(params.get("requestId")):
            return True
        if method is None or "id" not in message:  # a reply to what was never asked, or a notification
            if self._left:
                return False
            if method == "notifications/initialized" and len(self._opening) < 2:  # the others add nothing
                self._opening.append(message)
            return True
        if method == "initialize" and message["id"] == REPLAYED:
            asked = params["protocolVersion"]
            if asked in VERSIONS or asked not in HANDSHAKE_VERSIONS:
                self._client = client_called(params["clientInfo"]["name"])
                self._opening.append(message)
                return True
        return False

    def _took_back(self, id: Any) -> bool:
        """Whether a request of this very id runs here: the front has found out which one is meant."""
        for scope, running in self._running.items():
            if running == id and not scope.cancel_called:
                scope.cancel()
                return True
        return False

    # --- which requests are ordinary ---------------------------------------------------------------------------------

    def _answer_to(self, request: Message, scope: anyio.CancelScope) -> Answer | None:
        """How to answer a request; None to leave it to the library."""
        method, params = request["method"], request.get("params") or {}
        meta = params.get("_meta", {})
        if self._client is None or not _is_plain(meta):
            return None
        if method == "tools/call":
            tool, arguments = self._called(params.get("name")), params.get("arguments")
            known = params.keys() <= {"name", "arguments", "_meta"} and isinstance(arguments, dict | None)
            return partial(self._call, scope, tool, arguments, meta) if tool is not None and known else None
        return self._list_of(method) if params.keys() <= {"_meta"} else None

    def _called(self, name: Any) -> Served | None:
        """The tool of this name, unless it may ask the client something."""
        tool = self._served.get(name) if isinstance(name, str) else None
        return None if tool is None or tool.dialect.operations[tool.operation].asks else tool

    def _list_of(self, method: str) -> Answer | None:
        prompting = next((dialect for dialect in self._dialects if dialect.prompts), None)
        reading = next((dialect for dialect in self._dialects if dialect.resources is not None), None)
        if method == "prompts/list" and prompting is not None:
            return partial(_write_message, {"prompts": [_prompt(one) for one in prompting.prompts]})
        if method == "resources/list" and reading is not None:
            return partial(self._resources, reading)
        if method == "resources/templates/list" and reading is not None and reading.resources is not None:
            found = [_resource(one, "uriTemplate") for one in reading.resources.templates]
            return partial(_write_message, {"resourceTemplates": found})
        return None

    # --- answering ---------------------------------------------------------------------------------------------------

    async def _answered(self, request: Message, answer: Answer, scope: anyio.CancelScope) -> None:
        """Answer a request, unless its client takes it back: then its work is finished, and nothing is said."""
        reply: Message = {"jsonrpc": "2.0", "id": request["id"]}
        with scope:
            try:
                reply["result"] = await answer()
            except LeftToLibrary:
                self._left.append(request)
            except Exception:  # noqa: BLE001 -- the unforeseen goes to the log, with a number for the client
                reply["error"] = {"code": INTERNAL_ERROR, "message": fault(request["method"]).message}
            finally:
                del self._running[scope]
        if len(reply) > 2 and not scope.cancel_called:
            self._deliver(request["id"], _line(reply))
        self._hand_over()

    async def _call(self, scope: anyio.CancelScope, tool: Served, arguments: Message | None, meta: Message) -> Message:
        assert self._client is not None
        operation = tool.dialect.operations[tool.operation]
        async with self._turns.turn(changes=operation.changes):
            try:
                key, version = conditions_in(meta)
                call = Call(
                    dialect=tool.dialect,
                    operation=tool.operation,
                    arguments=arguments,
                    client=self._client,
                    transport="stdio",
                    key=key,
                    if_version=version,
                    prefix=tool.prefix,
                    progress=self._reporter(scope, meta),
                )
            except InvalidInput as error:
                return _result(fit_reply(tool.dialect.failure(error, tool.operation)))
            return await self._service.answer(call, self._engine, lambda reply, _rate: _result(fit_reply(reply, call)))

    def _reporter(self, scope: anyio.CancelScope, meta: Message) -> Callable[[int, int | None, str], None] | None:
        """Tells the client, from the worker thread, how far a call is; None if it did not ask."""
        if "progressToken" not in meta:
            return None
        told = -math.inf

        def report(done: int, total: int | None, note: str) -> None:
            nonlocal told
            if done <= told or scope.cancel_called:  # the protocol requires it to increase
                return
            told = done
            said = {"progressToken": meta["progressToken"], "progress": done, "total": total, "message": note or None}
            params = {name: value for name, value in said.items() if value is not None}
            self._deliver(None, _line({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))

        return report

    async def _resources(self, dialect: Dialect) -> Message:
        def listed() -> list[Resource]:
            engine = self._engine()
            provenance = Provenance(client="mcp", caller=engine.caller.user, transport="stdio", dialect=dialect.name)
            assert dialect.resources is not None
            return dialect.resources.listed(engine.bound_to(provenance=provenance))

        try:
            found = await self._service.workers.run(LOCAL_USER, listed)
        except Exception as error:  # the library asks again, and says what is wrong
            raise LeftToLibrary from error
        return {"resources": [_resource(one, "uri") for one in found]}


async def _write_message(result: Message) -> Message:
    return result


def _is_plain(meta: Any) -> bool:
    if not isinstance(meta, dict) or any(name.startswith(RESERVED) for name in meta):
        return False
    token = meta.get("progressToken", "")
    return isinstance(token, int | str) and not isinstance(token, bool)


def _result(reply: Reply) -> Message:
    return {
        "content": [{"type": "text", "text": reply.text}],
        "structuredContent": reply.body,
        "isError": reply.failed,
        **({"_meta": {NOTICES: list(reply.notices)}} if reply.notices else {}),
    }


def _resource(one: Resource, address: str) -> Message:
    said = {"name": one.name, address: one.uri, "description": one.description, "mimeType": one.mime_type}
    return {name: value for name, value in said.items() if value is not None}


def _prompt(prompt: UserPrompt) -> Message:
    arguments = [
        {"name": name, "description": what, "required": name in prompt.required}
        for name, what in prompt.arguments.items()
    ]
    return {"name": prompt.name, "title": prompt.title, "description": prompt.description, "arguments": arguments}


def _line(message: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:  # a number beyond 64 bits
        return encode(dict(message))
