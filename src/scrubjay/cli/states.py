"""A memory's state, in a word or two for people."""

from __future__ import annotations

from scrubjay.values.memory import Memory, State
from scrubjay.values.times import utc_now


def state_of(memory: Memory) -> str:
    """Empty for a memory that searches find."""
    states = [] if memory.state is State.ACTIVE else [memory.state.name.lower()]
    if memory.expired(utc_now()):
        states.append("expired")
    return ", ".join(states)
