"""What a server sends a client besides answers: a call's progress, and questions to the client's own model.

handshake era    the question is a request of ours; the worker thread waits for its reply
modern era       the question is the answer (`InputRequiredResult`); the client calls again with the reply
"""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from anyio import from_thread
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from scrubjay.errors import SynthesisFailed
from scrubjay.servers.calls import Unanswered
from scrubjay.values.store import Prompt

Context = ServerRequestContext[Any, Any]
Ask = Callable[[Prompt], str]

QUESTION = "synthesis"  # the key of what we ask of a client's model
# How long a client's model, and the user who has to approve, may take: less than the minute after which most clients
# give up on a call, so that rules can still write what no model wrote.
ASK_SECONDS = 45.0


def reporter(ctx: Context) -> Callable[[int, int | None, str], None] | None:
    """Reports a call's progress to the client, from the worker thread; None if the client did not ask."""
    if "progress_token" not in (ctx.meta or {}):
        return None
    told = -math.inf

    def report(done: int, total: int | None, note: str) -> None:
        nonlocal told
        if done <= told:  # the protocol requires it to increase
            return
        told = done
        try:
            from_thread.run(ctx.session.report_progress, done, total, note or None)
        except (Exception, CancelledError):  # noqa: BLE001 -- the client no longer waits for this call; its work goes on
            told = math.inf

    return report


# --- the client's own language model ---------------------------------------------------------------------------------


class Asking(Unanswered):
    """The call needs an answer from the client's model first; the client sends it again with that answer."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__()
        self.result = result


def client_model(ctx: Context, params: CallToolRequestParams, seconds: float) -> Ask | None:
    """How to ask the client's model, in either era of the protocol; None if the client does not offer it."""
    offered = ctx.session.client_capabilities
    if offered is None or offered.sampling is None:
        return None
    if ctx.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return lambda prompt: asked_before(prompt, params)
    return lambda prompt: from_thread.run(asked_now, prompt, ctx, seconds)


def asked_before(prompt: Prompt, params: CallToolRequestParams) -> str:
    """The answer that was sent along, if it is to this very question; otherwise the question.

    The state says which question was asked: what is to be answered may have changed meanwhile. It comes back sealed
    (`server.py`), so only we can have made it.
    """
    state = sha256(f"{prompt.system}\0{prompt.text}".encode()).hexdigest()
    answer = (params.input_responses or {}).get(QUESTION)
    if params.request_state != state or answer is None:
        raise Asking(InputRequiredResult(input_requests={QUESTION: sampling(prompt)}, request_state=state))
    return text_of(answer)


async def asked_now(prompt: Prompt, ctx: Context, seconds: float) -> str:
    """:raises SynthesisFailed: if the client's model or its user refuses or does not answer, or cannot be asked"""
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        answer = await ctx.session.send_request(
            sampling(prompt), CreateMessageResult, request_read_timeout_seconds=seconds, metadata=related
        )
    except (MCPError, NoBackChannelError, ValueError) as error:
        raise SynthesisFailed("The client's language model did not answer.") from error
    return text_of(answer)


def sampling(prompt: Prompt) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt.text))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[message], system_prompt=prompt.system, max_tokens=prompt.max_tokens, temperature=0.0
        )
    )


def text_of(answer: Any) -> str:
    content = getattr(answer, "content", None)
    text = content.text.strip() if isinstance(content, TextContent) else ""
    if not text:
        raise SynthesisFailed("The client's language model returned no text.")
    return text
