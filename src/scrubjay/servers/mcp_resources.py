"""What dialects offer to be read by address, in the protocol's words: the part of `mcp.py` that is not about tools."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
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
from scrubjay.memory import Provenance

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")

MAX_VALUES = 100  # of a completion, by the protocol
READERS = 4  # that run at once


def resource_handlers(
    dialects: Sequence[Dialect], engine: Callable[[Context], Engine], transport: str
) -> dict[str, Any]:
    """The server's handlers; none where no dialect has anything to read."""
    offered = [(dialect.name, dialect.resources) for dialect in dialects if dialect.resources is not None]
    if not offered:
        return {}
    [(name, resources), *_] = offered
    readers = anyio.CapacityLimiter(READERS)

    async def asked(
        ctx: Context, work: Callable[[Resources, Engine], Result], about: dict[str, str] | None = None
    ) -> Result:
        def run() -> Result:
            opened = engine(ctx)
            provenance = Provenance(client="mcp", caller=opened.caller.user, transport=transport, dialect=name)
            return work(resources, opened.bound_to(provenance=provenance))

        try:
            return await run_sync(run, limiter=readers)
        except Error as error:
            code = INTERNAL_ERROR if isinstance(error, StorageError) else INVALID_PARAMS
            raise MCPError(code=code, message=error.message, data=about) from None
        except Exception:
            fault = secrets.token_hex(4)
            log.exception("fault %s in a resource of %s", fault, name)
            raise MCPError(
                code=INTERNAL_ERROR, message=f"Something went wrong inside scrubjay. The log tells more under {fault}."
            ) from None

    async def list_resources(ctx: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        found = await asked(ctx, lambda resources, opened: resources.listed(opened))
        return ListResourcesResult(
            resources=[
                Resource(uri=one.uri, name=one.name, description=one.description, mime_type=one.mime_type)
                for one in found
            ]
        )

    async def list_templates(_ctx: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(
                    uri_template=one.uri, name=one.name, description=one.description, mime_type=one.mime_type
                )
                for one in resources.templates
            ]
        )

    async def read_resource(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        mime_type, text = await asked(ctx, lambda resources, opened: resources.read(opened, uri), {"uri": uri})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=mime_type, text=text)])

    async def complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
        known = dict(params.context.arguments or {}) if params.context is not None else {}
        argument = params.argument
        values = await asked(
            ctx, lambda resources, opened: resources.complete(opened, argument.name, argument.value, known)
        )
        return CompleteResult(
            completion=Completion(values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES)
        )

    return {
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_completion": complete,
    }
