"""A memory's row as it stands, the statement for a new one, and its file, which then waits to be written."""

## ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from scrubjay.errors import Conflict, SpaceNotFound
from scrubjay.stores.postgres.connections import Connection
from scrubjay.stores.postgres.filters import CARRIED, audiences_of_path
from scrubjay.stores.postgres.sql import COLUMNS
from scrubjay.stores.tables.rows import FIELDS, Row, check_next, memory_of
from scrubjay.values.memory import AT_HAND, Memory, State

# Behind files that wait, for those that already do.
AGAIN = "ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version"
SELECT_KNOWN = f"SELECT {COLUMNS}, memories.state, memories.fingerprint, memories.packed_bytes FROM memories"
SPACE, SEQ = FIELDS.index("space"), FIELDS.index("seq")


class Known(NamedTuple):
    """A memory's row as it stands."""

    row: Row
    state: int
    fingerprint: bytes | None
    packed_bytes: int | None  # None: it was not archived

    @property
    def memory(self) -> Memory:
        return memory_of(self.row)

    @property
    def space(self) -> str:
        return str(self.row[SPACE])

    @property
    def seq(self) -> int:
        return int(self.row[SEQ])


def look_up(con: Connection, memory: Memory, fingerprint: bytes, *, same: bool) -> tuple[Known | None, bool, bool]:
    """The row that a memory replaces, whether others have its text, and whether its space is a folder of files.

    :raises Conflict, SpaceNotFound: as `put` does
    """
    row = con.execute(
        # the primary key of spaces, aliases_by_alias, memories_by_place, memories_by_fingerprint, memories_by_id
        f"""
        SELECT
            (SELECT mirrored FROM spaces WHERE name = %(space)s),
            EXISTS (SELECT 1 FROM aliases WHERE alias = %(id)s),
            EXISTS (
                SELECT 1
                FROM memories
                WHERE space = %(space)s AND path = %(path)s AND state IN (0, 1) AND id <> %(id)s
                AND audience = ANY(%(audiences_of_path)s)
            ),
            EXISTS (SELECT 1 FROM memories WHERE fingerprint = %(fingerprint)s),
            found.*
        FROM (SELECT) AS always
        LEFT JOIN (
            {SELECT_KNOWN}
            WHERE id = %(id)s
        ) AS found ON TRUE
        """,
        {
            "space": memory.space,
            "id": memory.id,
            "path": memory.path,
            "audiences_of_path": audiences_of_path(memory),
            "fingerprint": fingerprint,
        },
    ).fetchone()
    assert row is not None
    space, alias, path, repeated = row[:4]
    known = None if row[4] is None else _known_of(row[4:])
    if known is not None:
        check_next(memory, known.memory.version, purged=known.state == State.PURGED, same=same)
    elif alias:
        raise Conflict(f"The id {memory.id!r} is taken.")
    if space is None:
        raise SpaceNotFound(f"No space {memory.space!r}.", hint="Create it first.")
    if path and memory.state in AT_HAND:
        raise Conflict(f"The path {memory.path!r} is taken.", hint="Choose another path.", path=memory.path)
    return known, bool(repeated), bool(space)


def find(con: Connection, id: str) -> Known | None:
    row = con.execute(f"{SELECT_KNOWN} WHERE id = %s", (id,)).fetchone()
    return None if row is None else _known_of(row)


def _known_of(row: Row) -> Known:
    return Known(row[: len(FIELDS)], *row[len(FIELDS) :])


@cache
def inserting(columns: tuple[str, ...]) -> str:
    """The statement that stores a new memory with all that hangs on it; 7 parameters come before the row's."""
    carried = ", ".join(CARRIED)
    return f"""
        WITH arrived AS (
            INSERT INTO memories (seq, {", ".join(columns)})
            VALUES (nextval('arrivals'), {", ".join(f"${number}" for number, _ in enumerate(columns, 8))})
            RETURNING space, seq, {carried}
        ), tagged AS (
            INSERT INTO tags (space, memory, tag)
            SELECT space, seq, tag FROM arrived CROSS JOIN unnest($1::TEXT[]) AS each (tag)
        ), worded AS (
            INSERT INTO words (space, memory, place, length, terms, {carried})
            SELECT space, seq, place, length, terms::TSVECTOR, {carried}
            FROM arrived
            CROSS JOIN unnest($2::SMALLINT[], $3::INTEGER[], $4::TEXT[]) AS each (place, length, terms)
        ), placed AS (
            INSERT INTO vectors (space, memory, part, model, vector)
            SELECT space, seq, number - 1, '', vector
            FROM arrived
            CROSS JOIN unnest($5) WITH ORDINALITY AS each (vector, number)
        ), signed AS (
            INSERT INTO signatures (space, memory, part, {carried}, levels)
            SELECT space, seq, number - 1, {carried}, levels_of(vector)
            FROM arrived
            CROSS JOIN unnest($5) WITH ORDINALITY AS each (vector, number)
        ), waiting AS (
            INSERT INTO pending (space, memory, next_part)
            SELECT space, seq, $6::INTEGER FROM arrived WHERE $6::INTEGER < $7::INTEGER
        )
        SELECT seq FROM arrived
        """


def await_file(con: Connection, id: str, *, space: str, version: int, state: int, moved: bool) -> None:
    """A memory has changed: its file, if it is kept as one, is to be written; and if it has moved, those that
    name it by its path."""
    con.execute(
        """
        INSERT INTO files (space, memory, name)
        SELECT name, %(id)s, ''
        FROM spaces
        WHERE name = %(space)s
        AND mirrored
        AND %(state)s < 2
        AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = %(id)s)
        """,
        {"id": id, "space": space, "state": state},
    )
    con.execute(
        f"""
        INSERT INTO outbox (space, memory, version)
        SELECT space, memory, %s FROM files WHERE memory = %s
        {AGAIN}
        """,
        (version, id),
    )
    if moved:
        con.execute(
            f"""
            INSERT INTO outbox (space, memory, version)
            SELECT DISTINCT files.space, files.memory, others.version
            FROM links
            JOIN memories AS others ON others.id IN (links.source, links.target)
            JOIN files ON files.memory = others.id
            WHERE (links.source = %(id)s OR links.target = %(id)s)
            AND others.id <> %(id)s
            {AGAIN}
            """,
            {"id": id},
        )
