"""A memory's state, in a word or two for people."""

from __future__ import annotations

from scrubjay.values.memory import Memory, State
from scrubjay.values.times import utc_now


def state_of(memory: Memory, newer: str | None = None) -> str:
    """Empty for a memory that searches find, unless `newer` may outdate it."""
    states = [] if memory.state is State.ACTIVE else [memory.state.name.lower()]
    if memory.expired(utc_now()):
        states.append("expired")
    if newer:
        states.append(f"may be outdated by {newer}")
    return ", ".join(states)
