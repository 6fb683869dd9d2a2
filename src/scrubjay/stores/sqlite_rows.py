"""The columns of `memories` in SQLite, where names of spaces, users and conversations are numbers."""

from __future__ import annotations

from typing import Any

from scrubjay.memory import AccessLevel, Memory
from scrubjay.stores.rows import FIELDS, columns_of
from scrubjay.stores.sqlite_filters import FIRST_PRIVATE, PUBLIC, SHARED

NAMES = {"space": "spaces.name", "user": "users.name", "conversation": "conversations.name"}
COLUMNS = ", ".join(NAMES.get(name, f"memories.{name}") for name in FIELDS)

# Left joins, so that the planner starts with `memories` and its index whatever else is asked.
TABLES = """
    memories
    LEFT JOIN spaces ON spaces.number = memories.space
    LEFT JOIN names AS users ON users.number = memories.user
    LEFT JOIN names AS conversations ON conversations.number = memories.conversation
"""


def row_of(memory: Memory, *, space: int, user: int, conversation: int | None) -> dict[str, Any]:
    """The columns of `memories` that follow from the memory; names come as their numbers."""
    return columns_of(memory) | {
        "space": space,
        "audience": audience_of(memory.access_level, user),
        "user": user,
        "conversation": conversation,
        "session": memory.context.session_id,
    }


def audience_of(level: AccessLevel, user: int) -> int:
    return {AccessLevel.PUBLIC: PUBLIC, AccessLevel.SHARED: SHARED, AccessLevel.PRIVATE: FIRST_PRIVATE + user}[level]
