"""The columns of `memories` in SQLite, where names of spaces, users and conversations are numbers."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from typing import Any

import apsw

from scrubjay.stores.sqlite.filters import FIRST_PRIVATE, PUBLIC, SHARED, Condition, reach_of, seen
from scrubjay.stores.tables.rows import FIELDS, columns_of
from scrubjay.values.memory import AccessLevel, Audience, Memory

NAMES = {"space": "spaces.name", "user": "users.name", "conversation": "conversations.name"}
COLUMNS = ", ".join(NAMES.get(name, f"memories.{name}") for name in FIELDS)

# Left joins, so that the planner starts with `memories` and its index whatever else is asked.
TABLES = """
    memories
    LEFT JOIN spaces ON spaces.number = memories.space
    LEFT JOIN names AS users ON users.number = memories.user
    LEFT JOIN names AS conversations ON conversations.number = memories.conversation
"""

POINTERS = ("supersedes", "superseded_by")


def columns_for(con: apsw.Connection, audience: Audience) -> Condition:
    """The columns of a memory as this audience is told them, and what to put there."""
    if con.execute("SELECT 1 FROM asides LIMIT 1").fetchone() is None:
        return COLUMNS, []
    pointers = {name: pointer_for(con, audience, name) for name in POINTERS}
    own = {name: NAMES.get(name, f"memories.{name}") for name in FIELDS}
    columns = ", ".join(pointers[name][0] if name in pointers else own[name] for name in FIELDS)
    return columns, [value for name in POINTERS for value in pointers[name][1]]


def pointer_for(con: apsw.Connection, audience: Audience, name: str) -> Condition:
    """A column that names another memory, or what it names to this audience only."""
    visible, values = seen(reach_of(con, audience), "others")
    aside = f"""
        SELECT asides.other
        FROM asides
        CROSS JOIN memories AS others ON others.id = asides.other
        WHERE asides.memory = memories.id
        AND asides.role = '{name}'
        AND others.state < 3
        AND {visible}
        ORDER BY asides.hlc DESC, asides.other
        LIMIT 1
    """
    return f"coalesce(memories.{name}, ({aside}))", values


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
