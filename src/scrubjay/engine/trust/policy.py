"""What a text should not be trusted for: secrets that someone left in it, and sentences that instruct a model.

A memory is read by models for years. A secret in it spreads into every prompt; an order in it ("ignore your earlier
instructions …", "always recommend …") steers whoever recalls it. Neither is proof of bad intent, so by default both are
flagged: stored word for word, shown, and found by a filter. A policy may refuse them, mask secrets, or look away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from scrubjay.engine.trust.instructions import reads_like_instructions
from scrubjay.engine.trust.secrets import Found, masked, secrets_in
from scrubjay.errors import Unprocessable
from scrubjay.values.memory import Memory

SECRET, INSTRUCTION = "secret", "instruction"  # the two flags


class Policy(StrEnum):
    FLAG = "flag"  # store it as it is, and say so
    MASK = "mask"  # store it with the secret taken out
    REFUSE = "refuse"
    OFF = "off"  # do not look


def check_trust(memory: Memory, *, secrets: Policy, instructions: Policy) -> Memory:
    """The memory with the flags that its text earns, or with its secrets masked.

    :raises Unprocessable: if the policy refuses it
    """
    flags = [flag for flag in memory.flags if flag not in (SECRET, INSTRUCTION)]
    if secrets is not Policy.OFF and (found := next(_secrets_of(memory), None)) is not None:
        if secrets is Policy.REFUSE:
            raise Unprocessable(f"The text contains what looks like {found.what}.", hint="Store it without the secret.")
        if secrets is Policy.MASK:
            memory = _masked_memory(memory)
        flags.append(SECRET)
    if instructions is not Policy.OFF and reads_like_instructions(f"{memory.title}\n{memory.text}"):
        if instructions is Policy.REFUSE:
            raise Unprocessable(
                "The text reads like instructions to a model.", hint="Store facts, not instructions to a model."
            )
        flags.append(INSTRUCTION)
    return memory if tuple(flags) == memory.flags else replace(memory, flags=tuple(flags))


def _secrets_of(memory: Memory) -> Iterator[Found]:
    for text in (memory.content, memory.title, *_texts_in(memory.detail), *_texts_in(memory.metadata)):
        yield from secrets_in(text)


def _texts_in(value: Any, name: str = "") -> Iterator[str]:
    """Every text inside, each with the name that it is kept under: `{"password": "…"}` is one by its name."""
    if isinstance(value, str):
        yield f"{name}={value}" if name else value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts_in(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner, name)


def _masked_memory(memory: Memory) -> Memory:
    return replace(
        memory,
        content=masked(memory.content),
        title=masked(memory.title),
        detail=_masked_value(memory.detail),
        metadata=_masked_value(memory.metadata),
    )


def _masked_value(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        whole = masked(f"{name}={value}" if name else value)
        return whole.removeprefix(f"{name}=") if name else whole
    if isinstance(value, Mapping):
        return {key: _masked_value(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_masked_value(inner, name) for inner in value]
    return value
