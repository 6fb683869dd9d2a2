"""What dialects offer besides tools: what can be read by its address, as MCP resources, and prompts for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from scrubjay.dialects.base import Dialect, Resources, UserPrompt
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, InvalidInput, StorageError
from scrubjay.servers.calls import fault
from scrubjay.servers.http.rate_limits import READ
from scrubjay.values.callers import Provenance
from scrubjay.values.spelling import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scrubjay.servers.http.rate_limits import Limits

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")

MAX_VALUES = 100  # of a completion, by the protocol
READERS = 4  # that run at once


def resource_handlers(
    dialects: Sequence[Dialect], engine: Callable[[Context], Engine], transport: str, limits: Limits | None = None
) -> dict[str, Any]:
    """The server's handlers; none if no dialect has anything to read."""
    for dialect in dialects:
        if dialect.resources is not None:
            reading = Reading(
                dialect=dialect.name, resources=dialect.resources, engine=engine, transport=transport, limits=limits
            )
            return {
                "on_list_resources": reading.list,
                "on_list_resource_templates": reading.list_templates,
                "on_read_resource": reading.read,
                "on_completion": reading.complete,
            }
    return {}


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Asks the engine for what one dialect offers besides its tools."""

    dialect: str
    engine: Callable[[Context], Engine]
    transport: str
    limits: Limits | None
    readers: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, READERS))

    async def ask(self, ctx: Context, work: Callable[[Engine], Result], about: dict[str, str] | None = None) -> Result:
        """What the engine says, in a worker thread."""

        def run() -> Result:
            opened = self.engine(ctx)
            if self.limits is not None:
                self.limits.act(opened.caller, READ)
            provenance = Provenance(
                client="mcp", caller=opened.caller.user, transport=self.transport, dialect=self.dialect
            )
            return work(opened.bound_to(provenance=provenance))

        try:
            return await run_sync(run, limiter=self.readers)
        except Error as error:
            code = INTERNAL_ERROR if isinstance(error, StorageError) else INVALID_PARAMS
            raise MCPError(code=code, message=error.message, data=about) from None
        except Exception:  # noqa: BLE001 -- the unforeseen goes to the log, with a number for the client
            told = fault(f"a resource or prompt of {self.dialect}")
            raise MCPError(code=INTERNAL_ERROR, message=told.message) from None


@dataclass(frozen=True, kw_only=True)
class Reading(Asking):
    """The handlers for what can be read by address."""

    resources: Resources

    async def list(self, ctx: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        found = await self.ask(ctx, self.resources.listed)
        return ListResourcesResult(
            resources=[
                Resource(uri=one.uri, name=one.name, description=one.description, mime_type=one.mime_type)
                for one in found
            ]
        )

    async def list_templates(
        self, _ctx: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=one.uri, name=one.name, description=one.description, mime_type=one.mime_type
                )
                for one in self.resources.templates
            ]
        )

    async def read(self, ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        mime_type, text = await self.ask(ctx, lambda engine: self.resources.read(engine, uri), {"uri": uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)])

    async def complete(self, ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        known = dict(params.context.arguments or {}) if params.context is not None else {}
        name, begun = params.argument.name, params.argument.value
        values = await self.ask(ctx, lambda engine: self.resources.complete(engine, name, begun, known))
        return CompleteResult(
            completion=Completion(values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES)
        )


# --- prompts ---------------------------------------------------------------------------------------------------------


def prompt_handlers(
    dialects: Sequence[Dialect], engine: Callable[[Context], Engine], transport: str, limits: Limits | None = None
) -> dict[str, Any]:
    """The server's handlers; none if no dialect has prompts."""
    for dialect in dialects:
        if dialect.prompts:
            prompting = Prompting(
                dialect=dialect.name, prompts=dialect.prompts, engine=engine, transport=transport, limits=limits
            )
            return {"on_list_prompts": prompting.list, "on_get_prompt": prompting.get}
    return {}


@dataclass(frozen=True, kw_only=True)
class Prompting(Asking):
    """The handlers for one dialect's prompts."""

    prompts: tuple[UserPrompt, ...]

    async def list(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[list_prompt(one) for one in self.prompts])

    async def get(self, ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        given = dict(params.arguments or {})

        def say(engine: Engine) -> tuple[str, str]:
            prompt = self._find(params.name)
            check(prompt, given)
            return prompt.description, prompt.say(engine, given)

        description, text = await self.ask(ctx, say)
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=description, messages=[message])

    def _find(self, name: str) -> UserPrompt:
        known = {one.name: one for one in self.prompts}
        if name not in known:
            raise InvalidInput(f"Unknown prompt {name[:100]!r}. Known: {', '.join(known)}.", field="name")
        return known[name]


def check(prompt: UserPrompt, given: dict[str, str]) -> None:
    for name in given:
        if name not in prompt.arguments:
            near = nearest(name, prompt.arguments)
            hint = f"Did you mean {near}?" if near else f"Known: {', '.join(prompt.arguments) or 'none'}."
            raise InvalidInput(f"{name[:100]} is not known. {hint}", field=name[:100])
    for name in prompt.required:
        if not given.get(name, "").strip():
            raise InvalidInput(f"{name} is required.", field=name)


def list_prompt(prompt: UserPrompt) -> Prompt:
    return Prompt(
        name=prompt.name,
        title=prompt.title,
        description=prompt.description,
        arguments=[
            PromptArgument(name=name, description=what, required=name in prompt.required)
            for name, what in prompt.arguments.items()
        ],
    )
