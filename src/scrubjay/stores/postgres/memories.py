"""Rows of `memories` as values, and back. Columns hold what SQLite's hold; only names replace numbers."""

from __future__ import annotations

from typing import Any

from scrubjay.stores.postgres.filters import Condition, audience_of, reach_of, seen
from scrubjay.stores.tables.rows import FIELDS, Row, columns_of, memory_of
from scrubjay.values.memory import Audience, Memory
from scrubjay.values.times import milliseconds

_RENAMED = {"user": "user_id", "conversation": "conversation_id", "session": "session_id"}

# What a memory is read from, in the order `memory_of` takes it apart.
COLUMNS = ", ".join(f"memories.{_RENAMED.get(name, name)}" for name in FIELDS)

# What else statistics need of a row; see postgres/counts.py.
COUNTED = """
    memories.space, memories.audience, memories.user_id, memories.conversation_id, memories.category, memories.state,
    memories.importance, octet_length(memories.content) + octet_length(memories.metadata)
    + octet_length(memories.detail) - 4 + coalesce(memories.packed_bytes, 0), memories.vector_bytes,
    memories.access_count, memories.category_agreed,
    memories.repeat, memories.created_at
"""


POINTERS = ("supersedes", "superseded_by")


def columns_for(audience: Audience) -> Condition:
    """The columns of a memory as this audience is told them, and what to put there."""
    pointers = {name: pointer_for(audience, name) for name in POINTERS}
    own = {name: f"memories.{_RENAMED.get(name, name)}" for name in FIELDS}
    columns = ", ".join(pointers[name][0] if name in pointers else own[name] for name in FIELDS)
    return columns, [value for name in POINTERS for value in pointers[name][1]]


def pointer_for(audience: Audience, name: str) -> Condition:
    """A column that names another memory, or what it names to this audience only."""
    visible, values = seen(reach_of(audience), "others")
    # the primary key of asides, memories_by_id
    aside = f"""
        SELECT asides.other
        FROM asides
        JOIN memories AS others ON others.id = asides.other
        WHERE asides.memory = memories.id
        AND asides.role = '{name}'
        AND others.state < 3
        AND {visible}
        ORDER BY asides.hlc DESC, asides.other
        LIMIT 1
    """  # noqa: S608 -- constants
    return f"coalesce(memories.{name}, ({aside}))", values


def row_of(memory: Memory) -> dict[str, Any]:
    """The columns of `memories` that follow from the memory."""
    return columns_of(memory) | {
        "space": memory.space,
        "audience": audience_of(memory.access_level, memory.context.user_id),
        "user_id": memory.context.user_id,
        "conversation_id": memory.context.conversation_id,
        "session_id": memory.context.session_id,
    }


def first_row_of(memory: Memory) -> dict[str, Any]:
    """What only a new memory's row is given: an imported one brings its reads along; later ones are counted here."""
    return {
        "text_version": memory.version,
        "access_count": memory.access_count,
        "accessed_at": milliseconds(memory.accessed_at),
    }


def memory_of_columns(columns: dict[str, Any]) -> Memory:
    """The memory that reading a row with these columns gives: times rounded to milliseconds."""
    return memory_of([columns[_RENAMED.get(name, name)] for name in FIELDS])


__all__ = [
    "COLUMNS",
    "COUNTED",
    "FIELDS",
    "POINTERS",
    "Row",
    "columns_for",
    "first_row_of",
    "memory_of",
    "memory_of_columns",
    "pointer_for",
    "row_of",
]
