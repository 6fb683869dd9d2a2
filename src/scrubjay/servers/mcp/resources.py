"""What dialects offer to be read by address, as MCP resources: the part of `server.py` that is not about tools."""

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
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from scrubjay.dialects.base import Dialect, Resources
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error, StorageError
from scrubjay.servers.calls import fault
from scrubjay.servers.http.rate_limits import READ
from scrubjay.values.callers import Provenance

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
