"""Pages of a list, and how long the list is: read from an index in the order asked, never sorted as a whole.

An index gives an order within one space and one state, so a list over several is made of arms, one for each, which
SQLite merges as it goes along. Filters are tested on the index, which holds what lists are usually filtered by.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import apsw

from scrubjay.stores.promises.memories import Position
from scrubjay.stores.sqlite.filters import Condition, Restriction, Value, View, among, joined, space_by_space
from scrubjay.values.memory import Order, State

MAX_ARMS = 100  # more spaces than this are sorted

INDEXES: Mapping[Order, str] = {
    Order.CREATED: "memories_by_created",
    Order.UPDATED: "memories_by_updated",
    Order.ACCESSED: "memories_by_accessed",
    Order.IMPORTANCE: "memories_by_importance",
    Order.ACCESSES: "memories_by_access_count",
    Order.LENGTH: "memories_by_length",
}

# With the reads that are not written yet.
OVERLAID: Mapping[Order, str] = {
    Order.ACCESSED: "max(memories.accessed_at, uncounted.at)",
    Order.ACCESSES: "memories.access_count + uncounted.count",
}


def arms(
    con: apsw.Connection,
    restriction: Restriction,
    order: Order,
    *,
    after: Position | None,
    descending: bool,
    uncounted: str,
) -> Condition:
    """A SELECT of the rows that a list is made of, `seq` and the value to sort by; it has no order yet.

    `uncounted` are reads as JSON rows `[id, count, at]`. Their memories are out of place in the index of reads, so
    they make an arm of their own.
    """
    overlaid = order in OVERLAID and uncounted != "[]"
    value, selects = f"memories.{order}", list[str]()
    values: list[Value] = []
    parts = _space_and_state(con, restriction)
    in_order = not restriction.few and len(parts) <= MAX_ARMS
    for part in parts if in_order else [restriction]:
        index, covered = _index(part, order) if in_order else ("", [])
        conditions = [part.condition(), *covered, *_behind(after, value, descending=descending)]
        if overlaid:
            conditions.append((f"memories.seq NOT IN (SELECT seq FROM ({_UNCOUNTED}))", [uncounted]))
        where, given = joined(conditions, "AND")
        selects.append(f"SELECT memories.seq, {value} FROM memories {index} WHERE {where}")
        values += given
    if overlaid:
        where, given = joined([restriction.condition(), *_behind(after, OVERLAID[order], descending=descending)], "AND")
        selects.append(
            f"""
            SELECT memories.seq, {OVERLAID[order]}
            FROM ({_UNCOUNTED}) AS uncounted
            CROSS JOIN memories ON memories.seq = uncounted.seq
            WHERE {where}
            """
        )
        values += [uncounted, *given]
    return "\nUNION ALL ".join(selects), values


def count(con: apsw.Connection, restriction: Restriction) -> int:
    """Counted on an index alone, unless there are filters that it does not hold."""
    if restriction.few:
        where, values = restriction.condition()
        [(rows,)] = con.execute(f"SELECT count(*) FROM memories WHERE {where}", values)
        return int(rows)
    spaces: dict[tuple[int, ...] | None, list[int | None]] = {}
    for view in space_by_space(con, restriction.views):
        spaces.setdefault(view.audiences, []).append(view.space)
    total = 0
    for audiences, numbers in spaces.items():
        alike = replace(restriction, views=(View(None, audiences),))
        where, values = joined(
            [among("memories.space", [n for n in numbers if n is not None]), alike.condition()], "AND"
        )
        [(rows,)] = con.execute(f"SELECT count(*) FROM memories INDEXED BY memories_by_created WHERE {where}", values)
        total += int(rows)
    return total


# By the unique index of ids.
_UNCOUNTED = """
    SELECT memories.seq, value ->> 1 AS count, value ->> 2 AS at
    FROM json_each(?)
    CROSS JOIN memories ON memories.id = value ->> 0
"""


def _space_and_state(con: apsw.Connection, restriction: Restriction) -> list[Restriction]:
    return [
        replace(restriction, views=(view,), states=(state,))
        for view in space_by_space(con, restriction.views)
        for state in restriction.states
    ]


def _index(part: Restriction, order: Order) -> tuple[str, list[Condition]]:
    """The index that gives the order, and what SQLite has to read to know that it may be used."""
    if order is Order.CREATED or State.ARCHIVED in part.states:  # archived ones are in no other: they are sorted
        return f"INDEXED BY {INDEXES[Order.CREATED]}", []
    return f"INDEXED BY {INDEXES[order]}", [(f"memories.state <> {int(State.ARCHIVED)}", [])]


def _behind(after: Position | None, value: str, *, descending: bool) -> Iterator[Condition]:
    beyond = "<" if descending else ">"
    if after is not None and after.value is not None:
        yield f"({value}, memories.seq) {beyond} (?, ?)", [after.value, after.seq]
    elif after is not None:
        yield f"memories.seq {beyond} ?", [after.seq]
