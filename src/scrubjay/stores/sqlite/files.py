"""Paths, and the files that memories are kept in. Triggers of the schema let a changed memory's file wait."""

# ruff: noqa: S608 -- clauses are put together from constants; values are always parameters

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import apsw

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.files import Entry, File
from scrubjay.stores.promises.memories import List, Transaction
from scrubjay.stores.sqlite.filters import (
    FIRST_PRIVATE,
    SHARED,
    Condition,
    joined,
    number_of,
    seen,
    space_number,
    views_of,
)
from scrubjay.stores.sqlite.history import SqliteHistory
from scrubjay.stores.sqlite.rows import TABLES, columns_for, pointer_for
from scrubjay.stores.tables.rows import memory_of
from scrubjay.stores.tables.side_rows import entry_of, file_of_row
from scrubjay.values.memory import Audience, Memory

FILES = """
    SELECT
        memories.id, memories.path, iif(memories.space = files.space, memories.state, max(memories.state, 3)),
        memories.version, files.name, files.path, files.version, files.hash, files.stamp, outbox.memory IS NOT NULL
    FROM files
    JOIN memories ON memories.seq = files.memory
    LEFT JOIN outbox ON outbox.memory = files.memory
"""
# Behind files that wait, for those that already do.
AGAIN = "ON CONFLICT (memory) DO UPDATE SET version = excluded.version"


class SqliteFiles(SqliteHistory):
    def at_path(self, space: str, path: str, audience: Audience) -> Memory | None:
        with self._reading() as con:
            number = space_number(con, space)
            visible, values = seen(views_of(con, audience))
            own = FIRST_PRIVATE + (number_of(con, audience.user) or 0)
            columns, told = columns_for(con, audience)
            row = con.execute(
                # memories_by_place
                f"""
                SELECT {columns}
                FROM {TABLES}
                WHERE memories.space = ?
                AND memories.path = ?
                AND memories.state IN (0, 1)
                AND {visible}
                ORDER BY memories.audience <> ?, memories.audience > ?, memories.seq
                LIMIT 1
                """,
                (*told, number, path, *values, own, SHARED),
            ).fetchone()
            return None if row is None else self._tally.laid_over(memory_of(row))

    def entries(self, space: str, section: str, audience: Audience) -> List[Entry]:
        with self._reading() as con:
            conditions: list[Condition] = [seen(views_of(con, audience))]
            if section:  # "0" comes just after "/"
                conditions.append(("memories.path >= ? AND memories.path < ?", [f"{section}/", f"{section}0"]))
            where, values = joined(conditions, "AND")
            newer, told = pointer_for(con, audience, "superseded_by")
            rows = con.execute(
                # memories_by_place
                f"""
                SELECT id, path, title, content_length, updated_at, expires_at, {newer}
                FROM memories
                WHERE space = ?
                AND state IN (0, 1)
                AND {where}
                ORDER BY path
                """,
                (*told, space_number(con, space), *values),
            )
            return [entry_of(row) for row in rows]

    def sections(self, space: str) -> dict[str, str | None]:
        with self._reading() as con:
            return dict(
                con.execute(
                    "SELECT path, description FROM sections WHERE space = ? ORDER BY path", (space_number(con, space),)
                )
            )

    def files(self, space: str, *, waiting: bool = False) -> List[File]:
        with self._reading() as con:
            rows = con.execute(
                # files_by_space, outbox_by_space
                f"""
                {FILES}
                WHERE {"outbox" if waiting else "files"}.space = ?
                ORDER BY files.name
                """,
                (space_number(con, space),),
            )
            return [file_of_row(row) for row in rows]

    def file_of(self, id: str) -> File | None:
        with self._reading() as con:
            row = con.execute(f"{FILES} WHERE memories.id = ?", (id,)).fetchone()
            return None if row is None else file_of_row(row)

    def file_named(self, space: str, name: str) -> File | None:
        with self._reading() as con:
            row = con.execute(
                # files_by_space
                f"""
                {FILES}
                WHERE files.space = ?
                AND files.name = ?
                AND memories.space = files.space
                AND memories.state IN (0, 1)
                """,
                (space_number(con, space), name),
            ).fetchone()
            return None if row is None else file_of_row(row)

    def waiting(self) -> dict[str, int]:
        with self._reading() as con:
            return dict(
                con.execute(
                    # outbox_by_space
                    """
                    SELECT spaces.name, count(*)
                    FROM outbox
                    JOIN spaces ON spaces.number = outbox.space
                    GROUP BY outbox.space
                    """
                )
            )

    def mirrored(self, space: str) -> bool:
        with self._reading() as con:
            return con.execute("SELECT mirrored FROM spaces WHERE name = ?", (space,)).fetchone() == (1,)


class SqliteFileChanges(Transaction):
    """The part of a transaction that changes files and sections."""

    _con: apsw.Connection

    def keep_as_file(self, ids: Sequence[str]) -> None:
        wanted = json.dumps(list(ids))
        self._con.execute(
            """
            INSERT INTO files (memory, space, name)
            SELECT seq, space, ''
            FROM memories
            WHERE id IN (SELECT value FROM json_each(?))
            ON CONFLICT (memory) DO NOTHING
            """,
            (wanted,),
        )
        self._con.execute(
            f"""
            INSERT INTO outbox (memory, space, version)
            SELECT memories.seq, files.space, memories.version
            FROM memories
            JOIN files ON files.memory = memories.seq
            WHERE memories.id IN (SELECT value FROM json_each(?))
            {AGAIN}
            """,
            (wanted,),
        )

    def in_sync(self, id: str, *, name: str, hash: bytes, stamp: str, version: int) -> None:
        self._con.execute(
            # files_by_space; a name is one memory's
            """
            UPDATE files
            SET name = '', hash = NULL, stamp = ''
            WHERE space = (SELECT space FROM memories WHERE id = ?1)
            AND name = ?2
            AND memory <> (SELECT seq FROM memories WHERE id = ?1)
            """,
            (id, name),
        )
        self._con.execute(
            """
            INSERT INTO files (memory, space, name, path, version, hash, stamp)
            SELECT seq, space, ?, path, ?, ?, ?
            FROM memories
            WHERE id = ?
            ON CONFLICT (memory) DO UPDATE SET
                name = excluded.name, path = excluded.path, version = excluded.version, hash = excluded.hash,
                stamp = excluded.stamp
            """,
            (name, version, hash, stamp, id),
        )
        self._con.execute(
            "DELETE FROM outbox WHERE memory = (SELECT seq FROM memories WHERE id = ?) AND version <= ?", (id, version)
        )

    def restamp(self, stamps: Mapping[str, str]) -> None:
        self._con.executemany(
            "UPDATE files SET stamp = ? WHERE memory = (SELECT seq FROM memories WHERE id = ?)",
            [(stamp, memory) for memory, stamp in stamps.items()],
        )

    def withdraw_file(self, id: str, *, version: int) -> None:
        self._con.execute(
            """
            UPDATE files
            SET name = '', path = '', version = 0, hash = NULL, stamp = ''
            WHERE memory = (SELECT seq FROM memories WHERE id = ?)
            """,
            (id,),
        )
        self._con.execute(
            "DELETE FROM outbox WHERE memory = (SELECT seq FROM memories WHERE id = ?) AND version <= ?", (id, version)
        )

    def drop_files(self, ids: Sequence[str]) -> None:
        for table in ("files", "outbox"):
            self._con.execute(
                f"""
                DELETE FROM {table}
                WHERE memory IN (SELECT seq FROM memories WHERE id IN (SELECT value FROM json_each(?)))
                """,
                (json.dumps(list(ids)),),
            )

    def mirror(self, space: str, *, on: bool) -> None:
        number = self._space(space)
        self._con.execute("UPDATE spaces SET mirrored = ? WHERE number = ?", (int(on), number))
        if on:
            self._con.execute(
                # memories_by_place
                """
                INSERT INTO files (memory, space, name)
                SELECT seq, space, ''
                FROM memories
                WHERE space = ?
                AND state IN (0, 1)
                ON CONFLICT (memory) DO NOTHING
                """,
                (number,),
            )
            self._con.execute(
                f"""
                INSERT INTO outbox (memory, space, version)
                SELECT files.memory, files.space, memories.version
                FROM files
                JOIN memories ON memories.seq = files.memory
                WHERE files.space = ?
                AND files.hash IS NULL
                {AGAIN}
                """,
                (number,),
            )

    def put_section(self, space: str, path: str, *, description: str | None) -> None:
        self._con.execute(
            """
            INSERT INTO sections (space, path, description)
            VALUES (?, ?, ?)
            ON CONFLICT (space, path) DO UPDATE SET description = excluded.description
            """,
            (self._space(space), path, description),
        )

    def drop_sections(self, space: str, path: str) -> None:
        self._con.execute(
            "DELETE FROM sections WHERE space = ? AND (path = ? OR (path >= ? AND path < ?))",
            (self._space(space), path, f"{path}/", f"{path}0"),
        )

    def _space(self, name: str) -> int:
        number = space_number(self._con, name)
        if number is None:
            raise SpaceNotFound(f"No space {name!r}.", hint="Create it first.")
        return number
