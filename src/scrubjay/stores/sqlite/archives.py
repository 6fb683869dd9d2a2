"""Memories that were put away: their packed text, the row that stays, and the way between the two."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

import apsw

from scrubjay.stores.promises.memories import milliseconds
from scrubjay.stores.sqlite.words import count_passages, scope_token
from scrubjay.stores.tables.rows import as_json
from scrubjay.stores.tables.side_rows import EMPTY, archive_of
from scrubjay.stores.words.words import MAX_PASSAGES, found_by, indexed, passages
from scrubjay.values.memory import Archive, Memory

PASSAGES = "rowid BETWEEN ?1 * 256 AND ?1 * 256 + 255"


def archives(con: apsw.Connection, ids: Iterable[str]) -> dict[str, Archive]:
    rows = con.execute(
        """
        SELECT memories.id, archives.id, tier, at, bytes, checksum, object, packed
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.id = wanted.value
        CROSS JOIN archives ON archives.memory = memories.seq
        """,
        (json.dumps(list(ids)),),
    )
    return {memory: archive_of(*rest) for memory, *rest in rows}


def total_bytes(con: apsw.Connection) -> int:
    [(size,)] = con.execute("SELECT coalesce(sum(bytes), 0) FROM archives")
    return int(size)


def is_put_away(con: apsw.Connection, seq: int) -> bool:
    return con.execute("SELECT 1 FROM archives WHERE memory = ?", (seq,)).fetchone() is not None


def put_away(con: apsw.Connection, memory: Memory, archive: Archive, *, space: int, vectors: bool) -> None:
    """Empty the row, and keep what was packed of it."""
    seq = memory.seq
    if not vectors:
        con.execute("DELETE FROM vectors WHERE memory = ?", (seq,))
        con.execute("UPDATE memories SET parts = 0 WHERE seq = ?", (seq,))
    for table in ("versions", "pending"):
        con.execute(f"DELETE FROM {table} WHERE memory = ?", (seq,))
    con.execute(f"DELETE FROM words WHERE {PASSAGES}", (seq,))
    con.executemany(
        "INSERT INTO archived_words (rowid, text, scope) VALUES (?, ?, ?)",
        [
            (seq * MAX_PASSAGES + place, indexed(passage), scope_token(space))
            for place, passage in enumerate(passages(found_by(memory)))
        ],
    )
    columns = ", ".join(f"{name} = :{name}" for name in EMPTY)
    name = {"name": memory.detail["name"]} if "name" in memory.detail else {}  # by which others still speak of it
    left = EMPTY | {"detail": as_json(name), "seq": seq}
    # What is being embedded just now belongs to a text that is no longer here.
    con.execute(f"UPDATE memories SET {columns}, text_version = version WHERE seq = :seq", left)
    con.execute(
        """
        INSERT INTO archives (memory, id, tier, at, bytes, checksum, object, packed)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            seq,
            archive.id,
            archive.tier,
            milliseconds(archive.at),
            archive.size,
            archive.checksum,
            archive.object,
            archive.packed,
        ),
    )
    con.execute("DELETE FROM objects_to_remove WHERE object = ?", (archive.object,))
    count_passages(con, seq)


def hot_bytes(con: apsw.Connection, ids: Iterable[str], *, vectors: bool) -> dict[str, int]:
    rows = con.execute(
        """
        SELECT memories.id, memories.seq
        FROM json_each(?) AS wanted
        CROSS JOIN memories ON memories.id = wanted.value
        """,
        (json.dumps(list(ids)),),
    )
    return {str(memory): _hot_bytes(con, int(seq), vectors=vectors) for memory, seq in list(rows)}


def _hot_bytes(con: apsw.Connection, seq: int, *, vectors: bool) -> int:
    sizes = """
        SELECT octet_length(content) + octet_length(title) + octet_length(path) + octet_length(metadata)
            + octet_length(detail)
        FROM memories WHERE seq = ?1
        UNION ALL SELECT coalesce(sum(octet_length(snapshot)), 0) FROM versions WHERE memory = ?1
        UNION ALL SELECT coalesce(sum(octet_length(text)), 0) FROM words WHERE rowid BETWEEN ?1 * 256 AND ?1 * 256 + 255
    """
    if vectors:
        sizes += "UNION ALL SELECT coalesce(sum(octet_length(vector)), 0) FROM vectors WHERE memory = ?1"
    return sum(int(size) for (size,) in con.execute(sizes, (seq,)))


def take_out(con: apsw.Connection, seq: int, *, at: datetime) -> None:
    """Forget what is packed of a memory, here and soon elsewhere."""
    con.execute(f"DELETE FROM archived_words WHERE {PASSAGES}", (seq,))
    con.execute(
        """
        INSERT INTO objects_to_remove (object, due)
        SELECT object, ? FROM archives WHERE memory = ? AND object IS NOT NULL
        ON CONFLICT (object) DO UPDATE SET due = excluded.due
        """,
        (milliseconds(at), seq),
    )
    con.execute("DELETE FROM archives WHERE memory = ?", (seq,))


def move(con: apsw.Connection, id: str, archive: Archive, *, at: datetime) -> None:
    row = con.execute(
        """
        SELECT archives.memory, archives.object
        FROM memories
        CROSS JOIN archives ON archives.memory = memories.seq
        WHERE memories.id = ? AND archives.id = ?
        """,
        (id, archive.id),
    ).fetchone()
    if row is None:
        return
    seq, former = row
    if former not in (None, archive.object):
        announce(con, [former], due=at)
    con.execute("UPDATE archives SET object = ?, packed = ? WHERE memory = ?", (archive.object, archive.packed, seq))
    con.execute("DELETE FROM objects_to_remove WHERE object = ?", (archive.object,))


def announce(con: apsw.Connection, objects: Sequence[str], *, due: datetime) -> None:
    con.executemany(
        """
        INSERT INTO objects_to_remove (object, due)
        VALUES (?, ?)
        ON CONFLICT (object) DO UPDATE SET due = excluded.due
        """,
        [(name, milliseconds(due)) for name in objects],
    )


def objects(con: apsw.Connection, tier: str, limit: int) -> list[str]:
    rows = con.execute(
        "SELECT object FROM archives WHERE object IS NOT NULL AND tier = ? ORDER BY at, object LIMIT ?", (tier, limit)
    )
    return [name for (name,) in rows]


def objects_due(con: apsw.Connection, now: datetime, limit: int) -> list[str]:
    rows = con.execute(
        # objects_to_remove_by_due
        "SELECT object FROM objects_to_remove WHERE due <= ? ORDER BY due LIMIT ?",
        (milliseconds(now), limit),
    )
    return [name for (name,) in rows]
