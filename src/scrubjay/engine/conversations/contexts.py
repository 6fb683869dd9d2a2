"""What a language model is given to answer: system prompt, memories and what was said, as far as there is room."""

from __future__ import annotations

from collections.abc import Container, Sequence

from scrubjay.engine.conversations.fence import fence_memories
from scrubjay.errors import InvalidInput
from scrubjay.values.frozen import dataclass
from scrubjay.values.memory import Memory
from scrubjay.values.store import Message

OVERHEAD = 4  # tokens that every part costs beside its text


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext:
    """What a language model is given: its parts, and all of it as one text."""

    system_prompt: str
    memories: tuple[Memory, ...]
    memories_text: str  # fenced; empty without memories
    history: tuple[Message, ...]  # oldest first
    user_message: str | None
    system: str  # prompt and memories together
    tokens: int  # of everything, estimated
    left_out: int  # memories and messages for which there was no room

    @property
    def chat(self) -> list[dict[str, str]]:
        """As a provider takes it."""
        said = [{"role": str(one.role), "content": one.content} for one in self.history]
        system = [{"role": "system", "content": self.system}] if self.system else []
        last = [{"role": "user", "content": self.user_message}] if self.user_message is not None else []
        return [*system, *said, *last]

    @property
    def text(self) -> str:
        """As one text: the system's part as it is, then who said what."""
        lines = (one["content"] if one["role"] == "system" else f"{one['role']}: {one['content']}" for one in self.chat)
        return "\n\n".join(lines)


def tokens_in(text: str) -> int:
    """An estimate on the safe side for the models in use: a token for every four bytes of UTF-8."""
    return -(-len(text.encode()) // 4)


def build_context(
    *,
    prompt: str,
    memories: Sequence[Memory],
    said: Sequence[Message],
    message: str | None,
    budget: int | None = None,
    memories_first: bool = True,
    doubts: Container[str] = (),
) -> BuiltContext:
    """Prompt and message are always in; memories as far as there is room, then messages from the last backwards.
    `doubts`: the ids of memories that a newer one very likely outdates.

    :raises InvalidInput: if there is not even room for prompt and message
    """
    room = Room(budget)
    if not (room.take(prompt) and room.take(message or "")):
        raise InvalidInput(
            "The system prompt and the message alone exceed the token budget.",
            hint="Raise the budget, or shorten them.",
            field="token_budget",
        )
    chosen: list[Memory] = []
    for memory in memories:
        if room.holds(fence_memories([*chosen, memory], doubts)):
            chosen.append(memory)
    block = fence_memories(chosen, doubts)
    room.take(block)
    history: list[Message] = []
    for one in reversed(said):
        if not room.take(one.content):
            break
        history.insert(0, one)
    parts = [block, prompt] if memories_first else [prompt, block]
    return BuiltContext(
        system_prompt=prompt,
        memories=tuple(chosen),
        memories_text=block,
        history=tuple(history),
        user_message=message,
        system="\n\n".join(part for part in parts if part),
        tokens=room.taken,
        left_out=len(memories) - len(chosen) + len(said) - len(history),
    )


class Room:
    """How many tokens are taken of those that there may be; every part costs a few for its role."""

    def __init__(self, budget: int | None) -> None:
        self._budget = budget  # None: as many as it takes
        self.taken = 0

    def holds(self, text: str) -> bool:
        return self._budget is None or self.taken + self._cost(text) <= self._budget

    def take(self, text: str) -> bool:
        """Whether there was room for it; if not, nothing is taken."""
        if not self.holds(text):
            return False
        self.taken += self._cost(text)
        return True

    def _cost(self, text: str) -> int:
        return tokens_in(text) + OVERHEAD if text else 0
