"""What a memory's text leaves behind in its path, title and found tags, and how that ends when others come to see it.

Path and title are made from the text when a memory is stored and may outlive it, as found tags did in earlier programs.
As long as the same people see the memory that does no harm. When it is published, to people who may not see what it
said before, they are made from what it says now; what a client chose itself stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scrubjay.engine import access
from scrubjay.engine.store import intake
from scrubjay.values.frozen import replace
from scrubjay.values.memory import Kind, Memory

MADE = ("path", "title", "auto_tags")


def hidden_from_some(former: Iterable[Memory], memory: Memory) -> list[Memory]:
    """The former states that not everyone who sees the memory may see."""
    return [one for one in former if not access.as_open(one, memory)]


def remade(memory: Memory, former: Sequence[Memory]) -> Memory:
    """The memory without a trace of what these former states said, unless a client put it there."""
    if not former:
        return memory
    from scrubjay.engine.store.enrichment import auto_tags  # only what publishes needs it

    text = memory.topic or memory.content
    titles = {intake.title_of(one.topic or one.content) for one in former}
    return replace(
        memory,
        path=intake.path_of(memory, memory.id) if _says_its_text(memory) else memory.path,
        title=intake.title_of(text) if memory.title in titles else memory.title,
        auto_tags=auto_tags(memory.text),
    )


def clean_versions(states: Sequence[Memory]) -> list[Memory]:
    """A memory and its former states, newest first, each without a trace of earlier ones that not all may see."""
    return [remade(state, hidden_from_some(states[place:], state)) for place, state in enumerate(states, 1)]


def made_fields(before: Memory, after: Memory) -> tuple[str, ...]:
    return tuple(name for name in MADE if getattr(before, name) != getattr(after, name))


def _says_its_text(memory: Memory) -> bool:
    """Whether its path is one that we made from its text. A decision's says its topic, which never changes."""
    return memory.kind is Kind.MEMORY and intake.is_generated_path(memory)
