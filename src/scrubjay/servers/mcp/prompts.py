"""What dialects offer people to send to the model, as MCP prompts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from scrubjay.dialects.base import Dialect, UserPrompt
from scrubjay.engine.engine import Engine
from scrubjay.errors import InvalidInput
from scrubjay.servers.mcp.resources import Asking, Context
from scrubjay.values.suggestions import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from scrubjay.servers.http.rate_limits import Limits


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
