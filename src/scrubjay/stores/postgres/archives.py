"""Memories that were put away: their packed text, the row that stays, and the way between the two.

Their words stay where they are: a stem says nothing of the order in which it stood.
"""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scrubjay.stores.postgres.history import Connection, PostgresHistory
from scrubjay.stores.promises.memories import List, milliseconds
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.side_rows import EMPTY, archive_of
from scrubjay.values.memory import Archive, Memory


class PostgresArchives(PostgresHistory):
    def archives(self, ids: Sequence[str]) -> dict[str, Archive]:
        with self._reading() as con:
            rows = con.execute(
                # memories_by_id, then the primary key
                """
                SELECT memories.id, archives.id, tier, at, bytes, checksum, object, packed
                FROM memories
                JOIN archives ON archives.space = memories.space AND archives.memory = memories.seq
                WHERE memories.id = ANY(%s)
                """,
                (list(ids),),
            )
            return {memory: archive_of(*rest) for memory, *rest in rows}

    def hot_bytes(self, ids: Sequence[str], *, vectors: bool) -> dict[str, int]:
        with self._reading() as con:
            rows = con.execute(
                f"""
                SELECT id,
                    octet_length(content) + octet_length(title) + octet_length(path) + octet_length(metadata)
                    + octet_length(detail) {"+ vector_bytes" if vectors else ""}
                    + (
                        SELECT coalesce(sum(octet_length(snapshot)), 0)
                        FROM versions
                        WHERE versions.space = memories.space AND versions.memory = memories.seq
                    )::BIGINT
                FROM memories
                WHERE id = ANY(%s)
                """,
                (list(ids),),
            )
            return dict(rows)

    def archived_bytes(self) -> int:
        with self._reading() as con:
            [(size,)] = con.execute("SELECT coalesce(sum(bytes), 0)::BIGINT FROM archives")
            return int(size)

    def objects(self, tier: str, limit: int) -> List[str]:
        with self._reading() as con:
            rows = con.execute(
                "SELECT object FROM archives WHERE object IS NOT NULL AND tier = %s ORDER BY at, object LIMIT %s",
                (tier, limit),
            )
            return [name for (name,) in rows]

    def objects_due(self, now: datetime, limit: int) -> List[str]:
        with self._reading() as con:
            rows = con.execute(
                # objects_to_remove_by_due
                "SELECT object FROM objects_to_remove WHERE due <= %s ORDER BY due LIMIT %s",
                (milliseconds(now), limit),
            )
            return [name for (name,) in rows]


def put_away(con: Connection, memory: Memory, archive: Archive, *, vectors: bool) -> None:
    """Empty the row, and keep what was packed of it."""
    place = (memory.space, memory.seq)
    if not vectors:
        for table in ("vectors", "signatures"):
            con.execute(f"DELETE FROM {table} WHERE space = %s AND memory = %s", place)
        con.execute("UPDATE memories SET parts = 0, vector_bytes = 0 WHERE space = %s AND seq = %s", place)
    for table in ("versions", "pending"):
        con.execute(f"DELETE FROM {table} WHERE space = %s AND memory = %s", place)
    name = {"name": memory.detail["name"]} if "name" in memory.detail else {}  # by which others still speak of it
    left = EMPTY | {"detail": as_json(name), "packed_bytes": archive.size}
    columns = ", ".join(f"{column} = %({column})s" for column in left)
    # What is being embedded just now belongs to a text that is no longer here.
    con.execute(
        f"UPDATE memories SET {columns}, text_version = version WHERE space = %(space)s AND seq = %(seq)s",
        left | {"space": memory.space, "seq": memory.seq},
    )
    con.execute(
        """
        INSERT INTO archives (space, memory, id, tier, at, bytes, checksum, object, packed)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
        """,
        (
            *place,
            archive.id,
            archive.tier,
            milliseconds(archive.at),
            archive.size,
            archive.checksum,
            archive.object,
            archive.packed,
        ),
    )
    con.execute("DELETE FROM objects_to_remove WHERE object = %s", (archive.object,))


def take_out(con: Connection, space: str, seq: int, *, at: datetime) -> None:
    """Forget what is packed of a memory, here and soon elsewhere."""
    con.execute(
        """
        INSERT INTO objects_to_remove (object, due)
        SELECT object, %s FROM archives WHERE space = %s AND memory = %s AND object IS NOT NULL
        ON CONFLICT (object) DO UPDATE SET due = excluded.due
        """,
        (milliseconds(at), space, seq),
    )
    con.execute("DELETE FROM archives WHERE space = %s AND memory = %s", (space, seq))
    con.execute("UPDATE memories SET packed_bytes = NULL WHERE space = %s AND seq = %s", (space, seq))


def move(con: Connection, id: str, archive: Archive, *, at: datetime) -> None:
    row = con.execute(
        # memories_by_id, then the primary key
        """
        SELECT memories.space, memories.seq, archives.object
        FROM memories
        JOIN archives ON archives.space = memories.space AND archives.memory = memories.seq
        WHERE memories.id = %s AND archives.id = %s
        """,
        (id, archive.id),
    ).fetchone()
    if row is None:
        return
    space, seq, former = row
    if former not in (None, archive.object):
        announce(con, [former], due=at)
    con.execute(
        "UPDATE archives SET object = %s, packed = %s WHERE space = %s AND memory = %s",
        (archive.object, archive.packed, space, seq),
    )
    con.execute("DELETE FROM objects_to_remove WHERE object = %s", (archive.object,))


def announce(con: Connection, objects: Sequence[str], *, due: datetime) -> None:
    con.execute(
        """
        INSERT INTO objects_to_remove (object, due)
        SELECT unnest(%s::TEXT[]), %s
        ON CONFLICT (object) DO UPDATE SET due = excluded.due
        """,
        (list(dict.fromkeys(objects)), milliseconds(due)),
    )
